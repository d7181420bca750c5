"""Label correspondence from its definition: dictionaries of strings, every labelling of a sentence enumerated.

A label is a string, a frozenset of labels that it may be, or None. Twin of duilian/training/correspondence.py and
models/correspondence.py; the HMM is that of ``naive/hmm.py``.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from naive import hmm

Table = dict[tuple[str, str], float]
"""W(s, t), or P(s | t)."""
ByWord = dict[str, Counter[str]]


def counts(sentences: Sequence[hmm.Sentence]) -> ByWord:
    """N(o, t): how often each word has each label."""
    found: ByWord = defaultdict(Counter)
    for words, labels in sentences:
        for word, label in zip(words, labels, strict=True):
            for one, share in hmm.shares(label).items():
                found[word][one] += share
    return dict(found)


def spread_by_target(source: ByWord, target: ByWord, words: Sequence[str]) -> Table:
    """CW-T: W(s,t) += N(s) * N(t) / sum_k N(t_k), for each of the words that both have."""
    found: Table = defaultdict(float)
    for word in words:
        for s, n_s in source.get(word, {}).items():
            for t, n_t in target.get(word, {}).items():
                found[s, t] += n_s * n_t / sum(target[word].values())
    return dict(found)


def spread_by_source(source: ByWord, target: ByWord, words: Sequence[str]) -> Table:
    """CW-S: the prior on the source side instead."""
    turned = spread_by_target(target, source, words)
    return {(s, t): n for (t, s), n in turned.items()}


def share_of(source: ByWord, labels: Sequence[str]) -> dict[str, float]:
    """P(s), each label half a time more than it was seen."""
    total = sum(sum(row.values()) for row in source.values()) + 0.5 * len(labels)
    return {s: (sum(row[s] for row in source.values()) + 0.5) / total for s in labels}


def probabilities(weights: Table, prior: Mapping[str, float], targets: Sequence[str]) -> Table:
    """P(s | t) = (W(s,t) + P(s)) / (sum_s' W(s',t) + 1)."""
    found = {}
    for t in targets:
        total = sum(n for (_, other), n in weights.items() if other == t)
        for s, share in prior.items():
            found[s, t] = (weights.get((s, t), 0.0) + share) / (total + 1)
    return found


class Transformation:
    """P(t) P(o | t) P(s | t) of every labelling of a sentence.

    by_word: n(s, t) of each word for the interpolated form, or nothing; open: how much known words may have new labels
    """

    def __init__(self, model: hmm.Hmm, table: Table, by_word: Mapping[str, Table], open_: float) -> None:
        self.model, self.table, self.by_word, self.open = model, table, by_word, open_

    def given(self, word: str, s: hmm.Label, t: str) -> float:
        """P(s | t, o); 1 where s is unknown; of a set the sum."""
        if s is None:
            return 1.0
        if isinstance(s, frozenset):
            return sum(self.table[one, t] for one in s)
        own = self.by_word.get(word)
        if own is None:
            return self.table[s, t]
        total = sum(n for (_, other), n in own.items() if other == t)
        return (own.get((s, t), 0.0) + 5 * self.table[s, t]) / (total + 5)

    def word_score(self, word: str, t: str, before: str, s: hmm.Label) -> float:
        """log P(o | t, before) P(s | t, o), up to a constant for the word."""
        seen = self.model.n_word[word]
        if seen == 0 or self.model.n_word_label[word, t] > 0:
            score = self.model.word_score(word, t, before)
        else:
            score = self.model.guess(word, t) + math.log(self.open / 2 / seen)
        return score + math.log(self.given(word, s, t))

    def candidates(self, word: str, s: hmm.Label) -> list[str]:
        """All labels where the word is open, else those that the HMM has for it."""
        if self.model.n_word[word] == 0 or (s is not None and self.open > 0):
            return list(self.model.labels)
        return self.model.candidates(word, math.inf)

    def score(self, words: Sequence[str], labels: Sequence[str], given: Sequence[hmm.Label]) -> float:
        """log P(t) P(o | t) P(s | t)."""
        padded = [hmm.BOUNDARY, hmm.BOUNDARY, *labels, hmm.END]
        total = sum(math.log(self.model.trigram(*padded[i : i + 3])) for i in range(len(labels) + 1))
        return total + sum(self.word_score(word, labels[i], padded[i + 1], given[i]) for i, word in enumerate(words))

    def best(self, words: Sequence[str], given: Sequence[hmm.Label]) -> float:
        """The score of the best labelling."""
        choices = [self.candidates(word, s) for word, s in zip(words, given, strict=True)]
        return max(self.score(words, labels, given) for labels in itertools.product(*choices))
