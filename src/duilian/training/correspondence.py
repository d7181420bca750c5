"""How P(s | t) is learnt without a corpus that carries both labels (correspondence, section 3): seven estimators.

    by a tagger    hmm-t crf-t: a tagger of the target labels the source's corpus; hmm-s crf-s: the reverse. The pairs
                   (label given, label predicted) are counted.
    common words   cw-t: each word of both corpora spreads its source labels over its target labels by their prior
                   there (Algorithm 1), W(s,t) += N(s) N(t) / sum_k N(t_k); cw-s: by the prior of the source labels,
                   W(s,t) += N(t) N(s) / sum_k N(s_k); cw-c: the mean of both probabilities.

    P(s | t) = (W(s,t) + P(s)) / (sum_s' W(s',t) + 1)

P(s) is the share of s in the source's corpus: added once, so that no pair of labels is impossible. Twin:
``tests/naive/correspondence.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from duilian.lifting import Labelled
from duilian.models.correspondence import WordCounts
from duilian.models.hmm import plain_text, word_hashes
from duilian.ragged import Ragged, ranges

ESTIMATORS = ("hmm-t", "hmm-s", "crf-t", "crf-s", "cw-t", "cw-s", "cw-c", "none")


@dataclass(frozen=True, eq=False)
class Evidence:
    """Pairs of labels at words, with how much each counts.

    keys: (n,) uint64 hash of the word; source, target: (n,) int64 labels; weights: (n,) float64
    """

    keys: NDArray[np.uint64]
    source: NDArray[np.int64]
    target: NDArray[np.int64]
    weights: NDArray[np.float64]

    def matrix(self, n_source: int, n_target: int) -> NDArray[np.float64]:
        """W(s, t), (S, L)."""
        codes = self.source * n_target + self.target
        counts = np.bincount(codes, self.weights, n_source * n_target).astype(np.float64)
        return counts.reshape(n_source, n_target)

    def by_word(self, n_target: int) -> WordCounts:
        """n(s, t, o)."""
        codes = self.source * n_target + self.target
        order = np.lexsort((codes, self.keys))
        keys, codes = self.keys[order], codes[order]
        first = np.ones(len(keys), np.bool_)
        first[1:] = (keys[1:] != keys[:-1]) | (codes[1:] != codes[:-1])
        group = np.cumsum(first) - 1
        counts = np.bincount(group, self.weights[order], int(first.sum()))
        words, at = np.unique(keys[first], return_index=True)
        offsets = np.append(at, len(counts)).astype(np.int64)
        return WordCounts(words, offsets, codes[first].astype(np.int32), counts.astype(np.float32))


@dataclass(frozen=True, eq=False)
class Shares:
    """Words with what their labels say: one, each of a set in equal parts; unknown ones are left out."""

    tokens: NDArray[np.int64]
    labels: NDArray[np.int64]
    weights: NDArray[np.float64]


def shares_of(labels: NDArray[np.int32], sets: Ragged) -> Shares:
    """labels (T,) and sets as in a Layer."""
    known, loose = np.flatnonzero(labels >= 0), np.flatnonzero(labels <= -2)
    rows = -2 - labels[loose].astype(np.int64)
    sizes = sets.lengths[rows] if len(rows) else np.zeros(0, np.int64)
    members = sets.data[ranges(sets.offsets[rows], sets.offsets[rows + 1])]
    return Shares(
        np.concatenate([known, np.repeat(loose, sizes)]),
        np.concatenate([labels[known], members]).astype(np.int64),
        np.concatenate([np.ones(len(known)), np.repeat(1 / np.maximum(sizes, 1), sizes)]),
    )


def hashes_of(labelled: Labelled, fold: bool) -> NDArray[np.uint64]:
    """(T,) the hash of each word."""
    units = labelled.units
    return word_hashes(plain_text(units, fold), units.starts, units.ends)


def paired(given: Labelled, predicted: NDArray[Any], fold: bool, given_is_source: bool) -> Evidence:
    """Every word of a corpus with its label and the one that a tagger of the other standard gave it."""
    seen = shares_of(given.labels, given.sets)
    keys, other = hashes_of(given, fold)[seen.tokens], predicted.astype(np.int64)[seen.tokens]
    pair = (seen.labels, other) if given_is_source else (other, seen.labels)
    return Evidence(keys, *pair, seen.weights)


class _Counts(NamedTuple):
    """Labels by word. words: (W,) hashes, rising; offsets: (W + 1,) into labels, n (counts), share (of the word's)."""

    words: Any
    offsets: Any
    labels: Any
    n: Any
    share: Any


def _counts_of(labelled: Labelled, fold: bool) -> _Counts:
    seen, size = shares_of(labelled.labels, labelled.sets), len(labelled.names)
    words, word = np.unique(hashes_of(labelled, fold)[seen.tokens], return_inverse=True)
    codes, entry = np.unique(word.ravel() * size + seen.labels, return_inverse=True)
    n = np.bincount(entry.ravel(), seen.weights, len(codes))
    of = codes // size
    offsets = np.searchsorted(of, np.arange(len(words) + 1))
    return _Counts(words, offsets, codes % size, n, n / np.bincount(of, n, len(words))[of])


def common_words(source: Labelled, target: Labelled, fold: bool, prior: str) -> Evidence:
    """Algorithm 1: for each word of both corpora every pair of its labels. prior: target (CW-T) or source (CW-S)."""
    s, t = _counts_of(source, fold), _counts_of(target, fold)
    both, one, other = np.intersect1d(s.words, t.words, return_indices=True)
    n_s, n_t = s.offsets[one + 1] - s.offsets[one], t.offsets[other + 1] - t.offsets[other]
    # Every source label of a common word meets every target label of it.
    left = np.repeat(ranges(s.offsets[one], s.offsets[one + 1]), np.repeat(n_t, n_s))
    begins = np.repeat(t.offsets[other], n_s)
    right = ranges(begins, begins + np.repeat(n_t, n_s))
    weights = s.n[left] * t.share[right] if prior == "target" else t.n[right] * s.share[left]
    return Evidence(np.repeat(both, n_s * n_t), s.labels[left], t.labels[right], weights)


def probabilities(weights: NDArray[np.float64], shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """P(s | t) from W(s, t), (S, L); shares: (S,) P(s)."""
    found: NDArray[np.float64] = (weights + shares[:, None]) / (weights.sum(axis=0) + 1)
    return found


def shares_of_labels(source: Labelled) -> NDArray[np.float64]:
    """(S,) P(s), each label counted half a time more than it occurs."""
    seen = shares_of(source.labels, source.sets)
    counts = np.bincount(seen.labels, seen.weights, len(source.names)) + 0.5
    found: NDArray[np.float64] = counts / counts.sum()
    return found


def estimate(evidence: Sequence[Evidence], source: Labelled, n_target: int) -> tuple[NDArray[np.float32], WordCounts]:
    """log P(s | t), the mean of the probabilities of each evidence, and the mean of their counts by word."""
    shares, n_source = shares_of_labels(source), len(source.names)
    tables = [probabilities(one.matrix(n_source, n_target), shares) for one in evidence]
    together = Evidence(
        np.concatenate([one.keys for one in evidence]),
        np.concatenate([one.source for one in evidence]),
        np.concatenate([one.target for one in evidence]),
        np.concatenate([one.weights for one in evidence]) / len(evidence),
    )
    return np.log(np.mean(tables, axis=0)).astype(np.float32), together.by_word(n_target)


def words_seen(labelled: Labelled, fold: bool, known: NDArray[np.uint64]) -> NDArray[np.float32]:
    """(W,) how often each of some words has a label in a corpus, at least once. known: (W,) hashes, rising or not."""
    seen = shares_of(labelled.labels, labelled.sets)
    keys, word = np.unique(hashes_of(labelled, fold)[seen.tokens], return_inverse=True)
    counts = np.bincount(word.ravel(), seen.weights, len(keys))
    at = np.minimum(np.searchsorted(keys, known), max(len(keys) - 1, 0))
    found = np.where(keys[at] == known, counts[at], 0) if len(keys) else np.zeros(len(known))
    return np.maximum(found, 1).astype(np.float32)
