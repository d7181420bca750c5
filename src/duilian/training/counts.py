"""Counting: labelled words -> the smoothed tables of a second-order HMM. No iteration, unless labels are partial.

    P(w | u, v) = k N(u,v,w) / N(u,v) + (1 - k) P(w | v)     P(w | v) = k N(v,w) / N(v) + (1 - k) P(w)
    P(o | t, u) = k N(u,t,o) / N(u,t) + (1 - k) N(t,o) / N(t)
    k = (log10(n + 1) + 1) / (log10(n + 1) + 2),  n the count in the numerator beside it     (Thede & Harper 1999)

Why these, and what an unknown word gets: docs/decisions/0004-hmm-smoothing.md. Twin: ``tests/naive/hmm.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duilian.errors import DataError
from duilian.lifting import Units
from duilian.models.hmm import Hmm, plain_text, word_hashes
from duilian.models.lexicon import affix_hashes_of
from duilian.ragged import Ragged, offsets_of, ranges

Part = tuple[Units, Any, Ragged]
"""One corpus: its words, their labels (-1 unknown, -2 - k the set k), and the sets."""

AFFIX_PRIOR = 3.0
"""An affix seen 3 times believes its own counts and those of the shorter affix by halves."""


@dataclass(frozen=True)
class Counting:
    """Settings.

    longest: characters of the longest prefix and suffix of an unknown word
    rare:    words seen at most so often stand for the unknown ones
    rounds:  how often partially labelled sentences are labelled and counted again
    fold:    whether full-width characters count as their half-width twins
    """

    longest: int = 2
    rare: int = 5
    rounds: int = 3
    fold: bool = True


@dataclass(frozen=True, eq=False)
class Observed:
    """What is counted: words and labels, -1 where a label is unknown, with a share for each label of a set.

    ids:    (T,) int64 number of each word; words: Ragged of their code points
    labels: (T,) int64; offsets: (S + 1,) int64
    soft:   (token, label, share) of the tokens whose label is one of a set
    """

    ids: NDArray[np.int64]
    words: Ragged
    labels: NDArray[np.int64]
    offsets: NDArray[np.int64]
    soft: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]


def fit(parts: Sequence[Part], n_labels: int, settings: Counting = Counting()) -> Hmm:
    """An HMM from corpora over one list of labels.

    Sentences without any label are left out. If some labels are unknown or sets, the first model counts what is certain
    (a set counts in shares, for its word alone); then ``rounds`` times the best labels that the given ones allow are
    found by Viterbi and counted as if they had been given.
    """
    units, labels, sets = _join(parts)
    labels = labels.astype(np.int64)
    given_sets = np.flatnonzero(labels <= -2)
    rows = -2 - labels[given_sets]
    sizes = sets.lengths[rows]
    labels[given_sets[sizes == 0]] = -1
    labels[given_sets[sizes == 1]] = sets.data[sets.offsets[rows[sizes == 1]]]
    if not np.any(labels != -1):
        raise DataError("there is no label to learn from: every word's label is unknown; check the layer that is read")
    units, labels = _with_evidence(units, labels)
    partial = np.flatnonzero(labels < 0)
    soft = _shares(labels, sets)
    known = np.where(labels >= 0, labels, -1)
    ids, words = _number_words(units, settings.fold)
    model = _count(Observed(ids, words, known, units.sentences, soft), n_labels, settings)
    if len(partial) == 0:
        return model
    allowed = allowed_labels(labels, sets, n_labels)
    none = (np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
    for _ in range(settings.rounds):
        best = model.tag(units, allowed=allowed).astype(np.int64)
        model = _count(Observed(ids, words, best, units.sentences, none), n_labels, settings)
    return model


def allowed_labels(labels: Any, sets: Ragged, n_labels: int) -> NDArray[np.bool_]:
    """(T, L) which labels each token may have: its own, those of its set, or all."""
    labels = np.asarray(labels, np.int64)
    allowed = np.zeros((len(labels), n_labels), np.bool_)
    allowed[labels == -1] = True
    known = np.flatnonzero(labels >= 0)
    allowed[known, labels[known]] = True
    tokens, members, _ = _shares(labels, sets)
    allowed[tokens, members] = True
    return allowed


# What is counted ----------------------------------------------------------------------------------------------------


def _join(parts: Sequence[Part]) -> tuple[Units, NDArray[Any], Ragged]:
    """Several corpora as one."""
    at = np.cumsum([0, *(len(units.text) for units, _, _ in parts)])
    first = np.cumsum([0, *(len(units) for units, _, _ in parts)])
    number = np.cumsum([0, *(len(sets) for _, _, sets in parts)])
    units = Units(
        np.concatenate([np.zeros(0, np.uint32), *(units.text for units, _, _ in parts)]),
        np.concatenate([np.zeros(0, np.int64), *(u.starts + a for (u, _, _), a in zip(parts, at[:-1], strict=True))]),
        np.concatenate([np.zeros(0, np.int64), *(u.ends + a for (u, _, _), a in zip(parts, at[:-1], strict=True))]),
        np.concatenate(
            [np.zeros(1, np.int64), *(u.sentences[1:] + f for (u, _, _), f in zip(parts, first, strict=False))]
        ),
    )
    labels = [np.where(lb <= -2, lb - n, lb) for (_, lb, _), n in zip(parts, number[:-1], strict=True)]
    data = np.concatenate([np.zeros(0, np.int32), *(sets.data for _, _, sets in parts)])
    lengths = np.concatenate([np.zeros(0, np.int64), *(sets.lengths for _, _, sets in parts)])
    return units, np.concatenate([np.zeros(0, np.int64), *labels]), Ragged(data, offsets_of(lengths))


def _with_evidence(units: Units, labels: NDArray[np.int64]) -> tuple[Units, NDArray[np.int64]]:
    """The sentences in which at least one label is given."""
    given = offsets_of(labels != -1)[units.sentences]
    keep = np.flatnonzero(np.diff(given) > 0)
    begins, ends = units.sentences[keep], units.sentences[keep + 1]
    tokens = ranges(begins, ends)
    return Units(units.text, units.starts[tokens], units.ends[tokens], offsets_of(ends - begins)), labels[tokens]


def _shares(
    labels: NDArray[np.int64], sets: Ragged
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """(token, label, share) for each label of each token that has a set."""
    tokens = np.flatnonzero(labels <= -2)
    rows = -2 - labels[tokens]
    sizes = sets.lengths[rows] if len(rows) else np.zeros(0, np.int64)
    members = sets.data[ranges(sets.offsets[rows], sets.offsets[rows + 1])].astype(np.int64)
    return np.repeat(tokens, sizes), members, np.repeat(1 / np.maximum(sizes, 1), sizes)


def _number_words(units: Units, fold: bool) -> tuple[NDArray[np.int64], Ragged]:
    """(number of each token's word, the words), in the order of their hashes."""
    text = plain_text(units, fold)
    _, first, ids = np.unique(word_hashes(text, units.starts, units.ends), return_index=True, return_inverse=True)
    starts, ends = units.starts[first], units.ends[first]
    return ids.astype(np.int64), Ragged(text[ranges(starts, ends)], offsets_of(ends - starts))


# Tables -------------------------------------------------------------------------------------------------------------


def log_weight(n: Any) -> Any:
    """Thede & Harper's weight of an estimate that was seen n times: 1/2 for never, rising with the logarithm."""
    grown = np.log10(n + 1) + 1
    return grown / (grown + 1)


def _count(seen: Observed, n_labels: int, settings: Counting) -> Hmm:
    """All tables from labels as they stand."""
    before = _before(seen.labels, seen.offsets, n_labels, 1)
    tokens, members, shares = seen.soft
    known = np.flatnonzero(seen.labels >= 0)
    tokens, members = np.concatenate([known, tokens]), np.concatenate([seen.labels[known], members])
    shares = np.concatenate([np.ones(len(known)), shares])

    n_label = np.bincount(members, shares, n_labels)
    prior = _proportions(n_label + 0.5)
    # Entries: each (word, label) that was seen, in order; n_entry its count.
    codes, inverse = np.unique(seen.ids[tokens] * n_labels + members, return_inverse=True)
    word, label = codes // n_labels, codes % n_labels
    n_entry = np.bincount(inverse, shares, len(codes))
    kept, word = np.unique(word, return_inverse=True)  # a word whose label is never given is not a known word
    words = seen.words.select(kept)
    n_word = np.bincount(word, n_entry, len(words))
    given_label = (n_entry / n_word[word]) / prior[label]  # P(o|t) / P(o) = P(t|o) / P(t)

    # Pairs: each (entry, label before); only tokens whose label and whose neighbour's label are certain.
    certain = np.flatnonzero(before[known] >= 0)
    previous = before[known[certain]]
    side = n_labels + 1
    codes, n_pair = np.unique(inverse[certain] * side + previous, return_counts=True)
    entry, previous = codes // side, codes % side
    n_step = np.bincount(before[known[certain]] * n_labels + seen.labels[known[certain]], minlength=side * n_labels)
    share_of_word = n_word[word[entry]] / shares.sum()
    given_both = n_pair / n_step[previous * n_labels + label[entry]] / share_of_word  # P(o|t,u) / P(o)
    weight = log_weight(n_pair)
    pair_scores = np.log(weight * given_both + (1 - weight) * given_label[entry])

    rare = n_word[word] <= settings.rare
    affix_keys, affixes, rest = _count_affixes(
        words, word[rare], label[rare], (n_entry / n_word[word])[rare], n_labels, settings.longest
    )
    return Hmm(
        trigrams=_trigrams(seen, n_label, n_labels).astype(np.float32),
        words=words,
        entries=np.searchsorted(word, np.arange(len(words) + 1)).astype(np.int64),
        labels=label.astype(np.int32),
        scores=np.log((1 - log_weight(0)) * given_label).astype(np.float32),
        pairs=np.searchsorted(entry, np.arange(len(word) + 1)).astype(np.int64),
        previous=previous.astype(np.int32),
        pair_scores=pair_scores.astype(np.float32),
        affix_keys=affix_keys,
        affixes=affixes.astype(np.float32),
        rest=(rest - np.log(prior)).astype(np.float32),
        prior=np.log(prior).astype(np.float32),
        longest=settings.longest,
        fold=settings.fold,
    )


def _trigrams(seen: Observed, n_label: NDArray[Any], n_labels: int) -> NDArray[np.float64]:
    """log P(w | u, v), (L + 1, L + 1, L + 1); rows are divided by their sums."""
    side = n_labels + 1
    # Each sentence with its end: as many windows as tokens, plus one.
    offsets = seen.offsets + np.arange(len(seen.offsets))
    labels = np.full(offsets[-1], n_labels, np.int64)
    labels[ranges(offsets[:-1], offsets[1:] - 1)] = seen.labels
    one, two = _before(labels, offsets, n_labels, 1), _before(labels, offsets, n_labels, 2)
    n_1 = np.append(n_label, len(offsets) - 1.0)
    both = (labels >= 0) & (one >= 0)
    n_2 = np.bincount((one * side + labels)[both], minlength=side**2).reshape(side, side).astype(float)
    all_ = both & (two >= 0)
    n_3 = (
        np.bincount(((two * side + one) * side + labels)[all_], minlength=side**3)
        .reshape(side, side, side)
        .astype(float)
    )
    p_1 = _proportions(n_1 + 0.5)
    p_2 = _mixed(n_2, p_1)
    return np.asarray(np.log(_mixed(n_3, p_2)))


def _mixed(n: NDArray[np.float64], lower: NDArray[np.float64]) -> NDArray[np.float64]:
    """k n / sum(n) + (1 - k) lower along the last axis, each row divided by its sum."""
    weight = log_weight(n)
    own = n / np.maximum(n.sum(axis=-1, keepdims=True), 1)
    return _proportions(weight * own + (1 - weight) * lower)


def _proportions(n: NDArray[Any]) -> NDArray[np.float64]:
    return np.asarray(n / n.sum(axis=-1, keepdims=True))


def _before(labels: NDArray[np.int64], offsets: NDArray[np.int64], boundary: int, distance: int) -> NDArray[np.int64]:
    """(T,) the label so many tokens before; the boundary before the sentence."""
    shifted = np.concatenate([np.full(distance, boundary, np.int64), labels])[: len(labels)]
    place = np.arange(len(labels)) - np.repeat(offsets[:-1], np.diff(offsets))
    return np.where(place < distance, boundary, shifted)


def _count_affixes(
    words: Ragged,
    word: NDArray[np.int64],
    label: NDArray[np.int64],
    share: NDArray[np.float64],
    n_labels: int,
    longest: int,
) -> tuple[NDArray[np.uint64], NDArray[np.float64], NDArray[np.float64]]:
    """(keys (A,), log P(t|affix) - log P(t|rare) (A, L), log P(t|rare) (L,)) of rare words, each counted once.

    P(t|affix) = (n(affix, t) + 3 P(t|affix shorter by one)) / (n(affix) + 3); the empty affix is P(t|rare).
    """
    rare = _proportions(np.bincount(label, share, n_labels) + 0.1)
    hashes = np.zeros((len(words), 2, longest), np.uint64)
    lengths = np.empty(len(words), np.int64)
    affix_hashes_of(words.data, words.offsets, longest, hashes, lengths)
    keys, scores = [np.zeros(0, np.uint64)], [np.zeros((0, n_labels))]
    for kind in range(2):
        shorter = rare[None]
        row_of = np.zeros(len(word), np.int64)  # row in shorter of each entry's word
        for k in range(longest):
            long_enough = np.flatnonzero(lengths[word] > k)
            if len(long_enough) == 0:
                break
            key, first, row = np.unique(hashes[word[long_enough], kind, k], return_index=True, return_inverse=True)
            n = np.bincount(row * n_labels + label[long_enough], share[long_enough], len(key) * n_labels)
            n = n.reshape(len(key), n_labels)
            parent = shorter[row_of[long_enough[first]]]
            shorter = (n + AFFIX_PRIOR * parent) / (n.sum(axis=1, keepdims=True) + AFFIX_PRIOR)
            row_of[long_enough] = row
            keys.append(key)
            scores.append(np.log(shorter) - np.log(rare))
    return np.concatenate(keys), np.concatenate(scores), np.log(rare)
