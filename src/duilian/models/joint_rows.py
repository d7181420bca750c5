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
from duilian.models.weights import Features, occurrences
from duilian.vectors import count_bits, prefetch

AHEAD = 16
"""So many features ahead the beginning of a row is asked for."""
LONG = 4
"""Rows longer than this many times the candidates are searched, shorter ones are walked."""
FULL = 16
"""A row that has at least one of so many codes has a map."""


class Maps(NamedTuple):
    """Which codes a long row has, as bits: which place a code has is then counted instead of searched.

    of (n_rows,) int32 the map of a row, or -1; bits (n_maps, n_words) uint64; before (n_maps, n_words) int32 how many
    codes stand in the words before
    """

    of: Any
    bits: Any
    before: Any


class Sparse(NamedTuple):
    """Rows as kernels see them: n_entries weights (float32) and codes (int32), n_rows + 1 offsets (int64), Maps."""

    weights: Any
    offsets: Any
    codes: Any
    maps: Any


@dataclass(frozen=True, eq=False)
class JointRows:
    """Sparse weights, n_rows x n_codes.

    offsets: (n_rows + 1,) int64 into codes and weights
    codes:   (n_entries,) int32, rising within a row
    weights: (n_entries,) float32
    maps:    of the long rows, made where none are given
    """

    n_codes: int
    offsets: NDArray[np.int64]
    codes: NDArray[np.int32]
    weights: NDArray[np.float32]
    maps: Maps | None = None

    def __post_init__(self) -> None:
        if self.maps is None:
            object.__setattr__(self, "maps", build_maps(self.n_codes, self.offsets, self.codes))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def sparse(self, weights: NDArray[np.float32] | None = None) -> Sparse:
        """The rows as kernels see them, with these weights or their own."""
        return Sparse(self.weights if weights is None else weights, self.offsets, self.codes, self.maps)

    def with_weights(self, weights: Any) -> JointRows:
        """The same pairs with other weights."""
        return replace(self, weights=weights.astype(np.float32))


def build_maps(n_codes: int, offsets: NDArray[np.int64], codes: NDArray[np.int32]) -> Maps:
    """Maps of all rows with at least one in FULL of the codes, which takes less room than those codes."""
    lengths = np.diff(offsets)
    long = lengths * FULL >= max(n_codes, 64 * FULL)
    of = np.where(long, np.cumsum(long) - 1, -1).astype(np.int32)
    shape = (int(long.sum()), -(-n_codes // 64))
    maps = Maps(of, np.zeros(shape, np.uint64), np.zeros(shape, np.int32))
    draw_maps(offsets, codes, maps)
    return maps


@kernel
def draw_maps(offsets: Any, codes: Any, maps: Any) -> None:
    """Set the bits of every row that has a map, and count them."""
    for row in range(len(maps.of)):
        which = maps.of[row]
        if which < 0:
            continue
        for e in range(offsets[row], offsets[row + 1]):
            maps.bits[which, codes[e] >> 6] |= np.uint64(1) << np.uint64(codes[e] & 63)
        n = 0
        for word in range(maps.bits.shape[1]):
            maps.before[which, word] = n
            n += count_bits(maps.bits[which, word])


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


class Hits(NamedTuple):
    """Where the candidates of some units have weights, written down while they are scored.

    offsets (n_features + 1,) int64 for each feature of each unit; entries (n,) int64 into the weights; bundles (n,)
    int64 into the lattice. With arrays of no length nothing is written down.
    """

    offsets: Any
    entries: Any
    bundles: Any


def no_hits() -> Hits:
    """Nothing is written down."""
    none = np.zeros(0, np.int64)
    return Hits(none, none, none)


def room_for_hits(sparse: Sparse, features: Any, space: Any) -> Hits:
    """Arrays that the hits of all units of a lattice fit into."""
    n = most_hits(sparse, features, space)
    return Hits(np.zeros(features.offsets[-1] + 1, np.int64), np.empty(n, np.int64), np.empty(n, np.int64))


@kernel
def most_hits(sparse: Any, features: Any, space: Any) -> Any:
    """A bound on the hits of all units: a row has no more of them than entries, and no more than candidates."""
    n = np.int64(0)
    last = features.offsets[-1] - 1
    for t in range(len(space.starts) - 1):
        k = space.starts[t + 1] - space.starts[t]
        for at in range(features.offsets[t], features.offsets[t + 1]):
            prefetch(sparse.offsets, features.data[min(at + AHEAD, last)])
            row = features.data[at]
            n += min(k, sparse.offsets[row + 1] - sparse.offsets[row])
    return n


@fast_kernel
def score_candidates(
    sparse: Any, features: Any, space: Any, begin: Any, end: Any, scale: Any, rows: Any, where: Any, node: Any,
    hits: Any,
) -> None:  # fmt: skip
    """node[bundle] += scale * sum of the weights of its code in the unit's rows, for units begin..end of a lattice.

    features: Features of the same units; space: Space whose bundles rise by code; node (n_bundles,) float32
    rows: scratch of ``write_token``; where (n_codes,) int32 all -1, and left so; hits: Hits, for ``add_hits``, which
    begin with unit 0 and therefore ask for begin = 0
    """
    last = features.offsets[end] - 1
    n = np.int64(0)
    wanted = len(hits.offsets) > 0
    for t in range(begin, end):
        k = write_token(space, t, rows)
        codes = rows[-1]
        first = space.starts[t]
        for j in range(k):
            where[codes[j]] = j
        for at in range(features.offsets[t], features.offsets[t + 1]):
            prefetch(sparse.offsets, features.data[min(at + 2 * AHEAD, last)])
            soon = sparse.offsets[features.data[min(at + AHEAD, last)]]
            prefetch(sparse.codes, soon)
            prefetch(sparse.weights, soon)
            row = features.data[at]
            low, high = sparse.offsets[row], sparse.offsets[row + 1]
            which = np.int32(-1)
            if high - low > k and high - low >= 64:
                which = sparse.maps.of[row]
            if which >= 0:
                bits, before = sparse.maps.bits[which], sparse.maps.before[which]
                for j in range(k):
                    word, bit = bits[codes[j] >> 6], np.uint64(1) << np.uint64(codes[j] & 63)
                    if word & bit:
                        e = low + before[codes[j] >> 6] + count_bits(word & (bit - np.uint64(1)))
                        node[first + j] += scale * sparse.weights[e]
                        if wanted:
                            hits.entries[n] = e
                            hits.bundles[n] = first + j
                            n += 1
            elif high - low > LONG * k:
                for j in range(k):
                    low = find_code(sparse.codes, low, high, codes[j])
                    if low == high:
                        break
                    if sparse.codes[low] == codes[j]:
                        node[first + j] += scale * sparse.weights[low]
                        if wanted:
                            hits.entries[n] = low
                            hits.bundles[n] = first + j
                            n += 1
            else:
                for e in range(low, high):
                    j = where[sparse.codes[e]]
                    if j >= 0:
                        node[first + j] += scale * sparse.weights[e]
                        if wanted:
                            hits.entries[n] = e
                            hits.bundles[n] = first + j
                            n += 1
            if wanted:
                hits.offsets[at + 1] = n
        for j in range(k):
            where[codes[j]] = -1


@fast_kernel
def add_hits(sparse: Any, rates: Any, features: Any, hits: Any, part: Any, parts: Any, delta: Any) -> None:
    """Add rates[row] * delta[bundle] to each weight that was scored.

    part, parts: only the rows that leave part when divided by parts, so that several threads share the work and no row
    is changed by two
    """
    n_features = features.offsets[-1]
    last = n_features - 1
    for at in range(n_features):
        soon = min(at + AHEAD, last)
        if hits.offsets[soon] < len(hits.entries):
            prefetch(sparse.weights, hits.entries[hits.offsets[soon]])
        row = features.data[at]
        if row % parts != part:
            continue
        rate = rates[row]
        for h in range(hits.offsets[at], hits.offsets[at + 1]):
            sparse.weights[hits.entries[h]] += rate * delta[hits.bundles[h]]


@fast_kernel
def score_all(sparse: Any, features: Any, begin: Any, end: Any, scale: Any, node: Any) -> None:
    """node[t, code] += scale * sum of the weights of the unit's rows, for units begin..end. node (T, n_codes)."""
    last = features.offsets[end] - 1
    for t in range(begin, end):
        out = node[t]
        for at in range(features.offsets[t], features.offsets[t + 1]):
            prefetch(sparse.offsets, features.data[min(at + 2 * AHEAD, last)])
            soon = sparse.offsets[features.data[min(at + AHEAD, last)]]
            prefetch(sparse.codes, soon)
            prefetch(sparse.weights, soon)
            row = features.data[at]
            for e in range(sparse.offsets[row], sparse.offsets[row + 1]):
                out[sparse.codes[e]] += scale * sparse.weights[e]


@fast_kernel
def add_all(sparse: Any, rates: Any, features: Any, part: Any, parts: Any, delta: Any) -> None:
    """Add rates[row] * delta[t, code] to the weights of every unit's rows. delta (T, n_codes); parts: ``add_hits``."""
    for t in range(len(features.offsets) - 1):
        change = delta[t]
        for at in range(features.offsets[t], features.offsets[t + 1]):
            row = features.data[at]
            if row % parts != part:
                continue
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
    counts = occurrences(Features(data, offsets), n_rows)
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
