"""A second-order HMM from its definition: dictionaries of strings, one probability at a time.

A label is a string, a frozenset of allowed strings, or None. BOUNDARY stands before a sentence and END behind it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

BOUNDARY, END = "<s>", "</s>"
Label = str | frozenset[str] | None
Sentence = tuple[Sequence[str], Sequence[Label]]


def k(n: float) -> float:
    """Thede & Harper's weight."""
    return (math.log10(n + 1) + 1) / (math.log10(n + 1) + 2)


class Hmm:
    """Counts of labelled sentences, and the probabilities made of them."""

    def __init__(self, sentences: Sequence[Sentence], labels: Sequence[str], longest: int, rare: int) -> None:
        self.labels = list(labels)
        self.longest = longest
        self.n_label: Counter[str] = Counter()
        self.n_word: Counter[str] = Counter()
        self.n_word_label: Counter[tuple[str, str]] = Counter()
        self.n_pair_word: Counter[tuple[str, str, str]] = Counter()
        self.n_pair: Counter[tuple[str, str]] = Counter()
        self.n_end = 0
        windows: list[tuple[Label, Label, Label]] = []
        for words, given in sentences:
            if all(label is None for label in given):
                continue
            self.n_end += 1
            padded = [BOUNDARY, BOUNDARY, *given, END]
            windows += [(padded[i], padded[i + 1], padded[i + 2]) for i in range(len(given) + 1)]
            for i, word in enumerate(words):
                for label, share in shares(given[i]).items():
                    self.n_label[label] += share
                    self.n_word[word] += share
                    self.n_word_label[word, label] += share
                before, label = padded[i + 1], given[i]
                if isinstance(before, str) and isinstance(label, str):
                    self.n_pair[before, label] += 1
                    self.n_pair_word[before, label, word] += 1
        certain = [w for w in windows if all(isinstance(label, str) for label in w)]
        self.n_3 = Counter(certain)
        self.n_2 = Counter((v, w) for _, v, w in windows if isinstance(v, str) and isinstance(w, str))
        self.total = sum(self.n_label.values())
        self.rare = [word for word in self.n_word if self.n_word[word] <= rare]

    # Labels -----------------------------------------------------------------------------------------------------

    def unigram(self, w: str) -> float:
        n = self.n_end if w == END else self.n_label[w]
        return (n + 0.5) / (self.total + self.n_end + 0.5 * (len(self.labels) + 1))

    def bigram(self, v: str, w: str) -> float:
        return self._row([self.n_2[v, x] for x in self._next()], [self.unigram(x) for x in self._next()])[w]

    def trigram(self, u: str, v: str, w: str) -> float:
        return self._row([self.n_3[u, v, x] for x in self._next()], [self.bigram(v, x) for x in self._next()])[w]

    def _next(self) -> list[str]:
        return [*self.labels, END]

    def _row(self, counts: list[int], lower: list[float]) -> dict[str, float]:
        total = sum(counts)
        mixed = [
            k(n) * (n / total if total else 0.0) + (1 - k(n)) * below for n, below in zip(counts, lower, strict=True)
        ]
        return {label: value / sum(mixed) for label, value in zip(self._next(), mixed, strict=True)}

    # Words ------------------------------------------------------------------------------------------------------

    def prior(self, t: str) -> float:
        return (self.n_label[t] + 0.5) / (self.total + 0.5 * len(self.labels))

    def word_score(self, word: str, t: str, u: str) -> float:
        """log P(word | t, u) - log P(word)."""
        if self.n_word_label[word, t] == 0:
            return self.guess(word, t)
        by_label = self.n_word_label[word, t] / self.n_word[word] / self.prior(t)
        n = self.n_pair_word[u, t, word]
        both = n / self.n_pair[u, t] / (self.n_word[word] / self.total) if n else 0.0
        return math.log(k(n) * both + (1 - k(n)) * by_label)

    def guess(self, word: str, t: str) -> float:
        """log P(t | prefix, suffix) - log P(t), prefix and suffix taken as independent of each other given t."""
        rare = self.rare_share(t)
        score = math.log(rare) - math.log(self.prior(t))
        for side in ("prefix", "suffix"):
            known = [
                n for n in range(1, min(self.longest, len(word)) + 1) if self._with(side, self._cut(side, word, n))
            ]
            if known:
                score += math.log(self._affix_share(side, self._cut(side, word, max(known)), t)) - math.log(rare)
        return score

    def rare_share(self, t: str) -> float:
        counts = {label: sum(self._share(word, label) for word in self.rare) for label in self.labels}
        return (counts[t] + 0.1) / (sum(counts.values()) + 0.1 * len(self.labels))

    def _affix_share(self, side: str, affix: str, t: str) -> float:
        if affix == "":
            return self.rare_share(t)
        words = self._with(side, affix)
        shorter = self._affix_share(side, self._cut(side, affix, len(affix) - 1), t)
        return (sum(self._share(word, t) for word in words) + 3 * shorter) / (len(words) + 3)

    def _with(self, side: str, affix: str) -> list[str]:
        return [w for w in self.rare if len(w) >= len(affix) and self._cut(side, w, len(affix)) == affix]

    def _share(self, word: str, t: str) -> float:
        return self.n_word_label[word, t] / self.n_word[word]

    @staticmethod
    def _cut(side: str, word: str, n: int) -> str:
        return word[:n] if side == "prefix" else word[len(word) - n :]

    # Sentences --------------------------------------------------------------------------------------------------

    def score(self, words: Sequence[str], labels: Sequence[str]) -> float:
        padded = [BOUNDARY, BOUNDARY, *labels, END]
        total = sum(math.log(self.trigram(*padded[i : i + 3])) for i in range(len(labels) + 1))
        return total + sum(self.word_score(word, labels[i], padded[i + 1]) for i, word in enumerate(words))

    def candidates(self, word: str, beam: float) -> list[str]:
        """The labels a known word was seen with; those of an unknown one that are not exp(beam) below the best."""
        if self.n_word[word] > 0:
            return [t for t in self.labels if self.n_word_label[word, t] > 0]
        posterior = {t: self.guess(word, t) + math.log(self.prior(t)) for t in self.labels}
        return [t for t in self.labels if posterior[t] >= max(posterior.values()) - beam]


def shares(label: Label) -> dict[str, float]:
    """What a label says: one, each of a set in equal parts, or nothing."""
    if label is None:
        return {}
    chosen = {label} if isinstance(label, str) else label
    return {one: 1 / len(chosen) for one in chosen}
