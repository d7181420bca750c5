"""Weights of (feature, bundle) pairs: sparse rows over bundle codes, scored at the candidates of a unit only.

The code of a bundle is its number among all combinations of labels, the last side fastest. A row holds the codes that
some training unit allows together with the feature, rising. Twin: ``tests/naive/coupled.py``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from duilian.inference.lattice import write_token
from duilian.kernels import fast_kernel, kernel

LONG = 4
"""Rows longer than this many times the candidates are searched, shorter ones are walked."""


class Sparse(NamedTuple):
    """Rows as kernels see them: n_entries weights (float32) and codes (int32), n_rows + 1 offsets (int64)."""

    weights: Any
    offsets: Any
    codes: Any


@dataclass(frozen=True, eq=False)
class JointRows:
    """Sparse weights, n_rows x n_codes.

    offsets: (n_rows + 1,) int64 into codes and weights
    codes:   (n_entries,) int32, rising within a row
    weights: (n_entries,) float32
    """

    n_codes: int
    offsets: NDArray[np.int64]
    codes: NDArray[np.int32]
    weights: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def sparse(self, weights: NDArray[np.float32] | None = None) -> Sparse:
        """The rows as kernels see them, with these weights or their own."""
        return Sparse(self.weights if weights is None else weights, self.offsets, self.codes)

    def with_weights(self, weights: Any) -> JointRows:
        """The same pairs with other weights."""
        return replace(self, weights=weights.astype(np.float32))


@kernel
def find_code(codes: Any, low: Any, high: Any, code: Any) -> Any:
    """Where in codes[low:high], which rise, the code stands, or would."""
    while low < high:
        middle = (low + high) >> 1
        if codes[middle] < code:
            low = middle + 1
        else:
            high = middle
    return low


@fast_kernel
def score_candidates(
    sparse: Any, features: Any, space: Any, begin: Any, end: Any, scale: Any, rows: Any, where: Any, node: Any
) -> None:
    """node[bundle] += scale * sum of the weights of its code in the unit's rows, for units begin..end of a lattice.

    features: Features of the same units; space: Space whose bundles rise by code; node (n_bundles,) float32
    rows: scratch of ``write_token``; where (n_codes,) int32 all -1, and left so
    """
    for t in range(begin, end):
        k = write_token(space, t, rows)
        codes = rows[-1]
        first = space.starts[t]
        for j in range(k):
            where[codes[j]] = j
        for at in range(features.offsets[t], features.offsets[t + 1]):
            row = features.data[at]
            low, high = sparse.offsets[row], sparse.offsets[row + 1]
            if high - low > LONG * k:
                for j in range(k):
                    low = find_code(sparse.codes, low, high, codes[j])
                    if low == high:
                        break
                    if sparse.codes[low] == codes[j]:
                        node[first + j] += scale * sparse.weights[low]
            else:
                for e in range(low, high):
                    j = where[sparse.codes[e]]
                    if j >= 0:
                        node[first + j] += scale * sparse.weights[e]
        for j in range(k):
            where[codes[j]] = -1


@fast_kernel
def add_candidates(
    sparse: Any, rates: Any, features: Any, space: Any, begin: Any, end: Any, rows: Any, where: Any, delta: Any
) -> None:
    """Add rates[row] * delta[bundle] to the weight of each bundle's code in the unit's rows; as in the score."""
    for t in range(begin, end):
        k = write_token(space, t, rows)
        codes = rows[-1]
        first = space.starts[t]
        for j in range(k):
            where[codes[j]] = j
        for at in range(features.offsets[t], features.offsets[t + 1]):
            row = features.data[at]
            low, high = sparse.offsets[row], sparse.offsets[row + 1]
            rate = rates[row]
            if high - low > LONG * k:
                for j in range(k):
                    low = find_code(sparse.codes, low, high, codes[j])
                    if low == high:
                        break
                    if sparse.codes[low] == codes[j]:
                        sparse.weights[low] += rate * delta[first + j]
            else:
                for e in range(low, high):
                    j = where[sparse.codes[e]]
                    if j >= 0:
                        sparse.weights[e] += rate * delta[first + j]
        for j in range(k):
            where[codes[j]] = -1


@fast_kernel
def score_all(sparse: Any, features: Any, begin: Any, end: Any, scale: Any, node: Any) -> None:
    """node[t, code] += scale * sum of the weights of the unit's rows, for units begin..end. node (T, n_codes)."""
    for t in range(begin, end):
        out = node[t]
        for at in range(features.offsets[t], features.offsets[t + 1]):
            row = features.data[at]
            for e in range(sparse.offsets[row], sparse.offsets[row + 1]):
                out[sparse.codes[e]] += scale * sparse.weights[e]


@fast_kernel
def add_all(sparse: Any, rates: Any, features: Any, begin: Any, end: Any, delta: Any) -> None:
    """Add rates[row] * delta[t, code] to the weights of the unit's rows, for units begin..end. delta (T, n_codes)."""
    for t in range(begin, end):
        change = delta[t]
        for at in range(features.offsets[t], features.offsets[t + 1]):
            row = features.data[at]
            rate = rates[row]
            for e in range(sparse.offsets[row], sparse.offsets[row + 1]):
                sparse.weights[e] += rate * change[sparse.codes[e]]


@kernel
def units_by_row(data: Any, offsets: Any, ends: Any, units: Any) -> None:
    """The units of each row, row after row. ends (n_rows,) where each row's units begin in, and end out."""
    for u in range(len(offsets) - 1):
        for k in range(offsets[u], offsets[u + 1]):
            row = data[k]
            units[ends[row]] = u
            ends[row] += 1


@kernel
def collect(
    ends: Any, units: Any, kinds: Any, kind_offsets: Any, kind_codes: Any, stamp: Any, offsets: Any, codes: Any
) -> None:
    """The different codes that the units of each row allow, rising; with codes of no length, their number alone.

    ends (n_rows,), units (n,) as ``units_by_row`` leaves them; kinds (U,) int32: unit u allows the codes
    kind_codes[kind_offsets[kinds[u]]:kind_offsets[kinds[u] + 1]]; stamp (n_codes,) int32 all -1, spoilt;
    offsets (n_rows + 1,) int64, out if codes has no length
    """
    counting = len(codes) == 0
    begin = 0
    n = np.int64(0)
    offsets[0] = 0
    for row in range(len(ends)):
        first = n
        for k in range(begin, ends[row]):
            kind = kinds[units[k]]
            for c in range(kind_offsets[kind], kind_offsets[kind + 1]):
                code = kind_codes[c]
                if stamp[code] != row:
                    stamp[code] = row
                    if not counting:
                        codes[n] = code
                    n += 1
        begin = ends[row]
        if counting:
            offsets[row + 1] = n
        elif n - first > 1:
            codes[first:n].sort()


def build_joint_rows(
    n_rows: int, n_codes: int, data: Any, offsets: Any, kinds: NDArray[np.int32], kind_offsets: Any, kind_codes: Any,
    least: int = 1,
) -> JointRows:  # fmt: skip
    """Rows with the (feature, bundle) pairs that training allows, all weights 0.

    data, offsets: feature rows of the units; kinds (U,): which run of kind_codes each unit allows
    least: rows of features seen fewer times stay empty
    """
    counts = np.bincount(data, minlength=n_rows)
    if least > 1:
        kept = counts[data] >= least
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(kept)])[offsets]
        data = data[kept]
        counts = np.where(counts >= least, counts, 0)
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])[:-1].copy()
    units = np.empty(len(data), np.int32)
    units_by_row(data, offsets, ends, units)
    found = np.zeros(n_rows + 1, np.int64)
    none = np.zeros(0, np.int32)
    collect(ends, units, kinds, kind_offsets, kind_codes, np.full(n_codes, -1, np.int32), found, none)
    codes = np.empty(found[-1], np.int32)
    if len(codes):
        stamp = np.full(n_codes, -1, np.int32)
        collect(ends, units, kinds, kind_offsets, kind_codes, stamp, found.copy(), codes)
    return JointRows(n_codes, found, codes, np.zeros(len(codes), np.float32))
