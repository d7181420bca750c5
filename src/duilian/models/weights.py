"""Weights by feature row: each row holds only the labels that training allowed together with the feature.

A row is a run of entries (label, weight), labels rising. Rows that cover much of the label set hold every label, so
that the kernel can add them without looking at the labels. Twin: ``tests/naive/weights.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from duilian.kernels import fast_kernel, kernel
from duilian.ragged import offsets_of
from duilian.vectors import prefetch

AHEAD = 24
"""So many features ahead a row's weights are asked for, and twice as many ahead the place where they begin."""


class Sparse(NamedTuple):
    """Rows as kernels see them, n_entries weights (float32) and labels (uint16), n_rows + 1 offsets (int32)."""

    weights: Any
    offsets: Any
    labels: Any


class Features(NamedTuple):
    """Feature rows of units as kernels see them: data (n,) int32, offsets (U + 1,) int64."""

    data: Any
    offsets: Any


@dataclass(frozen=True, eq=False)
class Rows:
    """Sparse weights, n_rows x n_labels.

    offsets: (n_rows + 1,) int32 into labels and weights
    labels:  (n_entries,) uint16, rising within a row
    weights: (n_entries,) float32
    """

    n_labels: int
    offsets: NDArray[np.int32]
    labels: NDArray[np.uint16]
    weights: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def sparse(self, weights: NDArray[np.float32] | None = None) -> Sparse:
        """The rows as kernels see them, with these weights or their own."""
        return Sparse(self.weights if weights is None else weights, self.offsets, self.labels)


@kernel
def mark(seen: Any, rows: Any, row_offsets: Any, labels: Any, set_data: Any, set_offsets: Any, n_labels: Any) -> None:
    """Mark every (row, label) that a unit allows.

    seen (n_rows, n_words) uint64 bit sets, in and out; rows (n,) int32 with row_offsets (U + 1,) int64;
    labels (U,) int32 (-1 all labels, -2 - k the labels of set k)
    """
    for u in range(len(labels)):
        label = labels[u]
        for k in range(row_offsets[u], row_offsets[u + 1]):
            row = rows[k]
            if label >= 0:
                seen[row, label >> 6] |= np.uint64(1) << np.uint64(label & 63)
            elif label == -1:
                for one in range(n_labels):
                    seen[row, one >> 6] |= np.uint64(1) << np.uint64(one & 63)
            else:
                for at in range(set_offsets[-2 - label], set_offsets[-1 - label]):
                    one = set_data[at]
                    seen[row, one >> 6] |= np.uint64(1) << np.uint64(one & 63)


@kernel
def count_marks(seen: Any, n_labels: Any, full_from: Any, counts: Any) -> None:
    """Entries of each row; a row with full_from labels or more gets all n_labels."""
    for row in range(len(seen)):
        n = np.int64(0)
        for label in range(n_labels):
            n += np.int64((seen[row, label >> 6] >> np.uint64(label & 63)) & np.uint64(1))
        counts[row] = n_labels if n >= full_from else n


@kernel
def list_marks(seen: Any, n_labels: Any, offsets: Any, labels: Any) -> None:
    """Write the labels of each row, in order; offsets (n_rows + 1,), labels (n_entries,) uint16 out."""
    for row in range(len(seen)):
        n = offsets[row]
        full = offsets[row + 1] - n == n_labels
        for label in range(n_labels):
            if full or (seen[row, label >> 6] >> np.uint64(label & 63)) & np.uint64(1):
                labels[n] = label
                n += 1


@kernel
def is_whole(sparse: Any, n_labels: Any) -> Any:
    """Whether every row holds every label: then a row's place needs no looking up."""
    return len(sparse.weights) == n_labels * (len(sparse.offsets) - 1)


@fast_kernel
def score_four(sparse: Any, features: Any, begin: Any, end: Any, scale: Any, node: Any) -> None:
    """``score`` for rows that all hold the same four labels, as B, I, E and S: sums stay in registers."""
    weights = sparse.weights
    for u in range(begin, end):
        b = i = e = s = np.float32(0)
        for k in range(features.offsets[u], features.offsets[u + 1]):
            first = 4 * np.int64(features.data[k])
            b += weights[first]
            i += weights[first + 1]
            e += weights[first + 2]
            s += weights[first + 3]
        out = node[u - begin]
        out[0] = b * scale
        out[1] = i * scale
        out[2] = e * scale
        out[3] = s * scale


@fast_kernel
def score(sparse: Any, features: Any, begin: Any, end: Any, scale: Any, node: Any) -> None:
    """node[u - begin, label] = scale * sum of the weights of the unit's rows, for units begin..end.

    sparse: Sparse; features: Features; node (>= end - begin, L) float32 out
    """
    n_labels = node.shape[1]
    if n_labels == 4 and is_whole(sparse, n_labels):
        score_four(sparse, features, begin, end, scale, node)
        return
    rim = features.offsets[end] - 1
    for u in range(begin, end):
        out = node[u - begin]
        for j in range(n_labels):
            out[j] = 0
        for k in range(features.offsets[u], features.offsets[u + 1]):
            prefetch(sparse.offsets, features.data[min(k + 2 * AHEAD, rim)])
            soon = sparse.offsets[features.data[min(k + AHEAD, rim)]]
            prefetch(sparse.weights, soon)
            prefetch(sparse.labels, soon)
            row = features.data[k]
            first, last = sparse.offsets[row], sparse.offsets[row + 1]
            if last - first == n_labels:
                entries = sparse.weights[first:last]
                for j in range(n_labels):
                    out[j] += entries[j]
            else:
                for e in range(first, last):
                    out[sparse.labels[e]] += sparse.weights[e]
        if scale != 1:
            for j in range(n_labels):
                out[j] *= scale


@fast_kernel
def add(sparse: Any, rates: Any, features: Any, begin: Any, end: Any, delta: Any) -> None:
    """Add rates[row] * delta[u - begin, label] to the weights of the unit's rows, for units begin..end.

    rates (n_rows,) float32; the others as in ``score``
    """
    n_labels = delta.shape[1]
    for u in range(begin, end):
        change = delta[u - begin]
        for k in range(features.offsets[u], features.offsets[u + 1]):
            row = features.data[k]
            first, last = sparse.offsets[row], sparse.offsets[row + 1]
            rate = rates[row]
            if last - first == n_labels:
                entries = sparse.weights[first:last]
                for j in range(n_labels):
                    entries[j] += rate * change[j]
            else:
                for e in range(first, last):
                    sparse.weights[e] += rate * change[sparse.labels[e]]


@kernel
def tally(rows: Any, counts: Any) -> None:
    """counts[row] += 1 for each of rows. rows (n,) int32, counts (n_rows,) int64."""
    for k in range(len(rows)):
        counts[rows[k]] += 1


def occurrences(features: Features, n_rows: int) -> NDArray[np.int64]:
    """How often each row stands among the units; NumPy's bincount would first copy all of them as 64-bit numbers."""
    counts = np.zeros(n_rows, np.int64)
    tally(features.data, counts)
    return counts


@kernel
def entry(sparse: Any, row: Any, label: Any) -> Any:
    """Where the weight of (row, label) is, or -1: no training unit has that feature with that label."""
    first, last = sparse.offsets[row], sparse.offsets[row + 1]
    for e in range(first, last):
        if sparse.labels[e] == label:
            return np.int64(e)
    return np.int64(-1)


def build_rows(n_rows: int, n_labels: int, parts: Any, full_share: float = 0.1) -> Rows:
    """Rows with the (feature, label) pairs that training allows, all weights 0.

    parts: for each corpus (rows: Ragged, labels (U,) int32, sets: Ragged)
    """
    seen = np.zeros((n_rows, (n_labels + 63) // 64), np.uint64)
    for rows, labels, sets in parts:
        mark(seen, rows.data, rows.offsets, labels, sets.data, sets.offsets, n_labels)
    counts = np.empty(n_rows, np.int64)
    count_marks(seen, n_labels, max(1, int(np.ceil(full_share * n_labels))), counts)
    offsets = offsets_of(counts).astype(np.int32)
    labels = np.empty(offsets[-1], np.uint16)
    list_marks(seen, n_labels, offsets, labels)
    return Rows(n_labels, offsets, labels, np.zeros(len(labels), np.float32))
