"""Lattice: which bundles compete at each token, and the tables that score a step from one bundle to the next.

A bundle is one label per side. Two layouts, one class:

    product  a list of labels per token and side; the bundles of a token are all combinations, the last side fastest
    listed   a list of bundles per token, whatever a mapping or a pruning left

Kernels see a lattice as the named tuple ``Space`` and the weights of bundle pairs as ``Pairs``; ``bundles.py`` is the
door.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from duilian.kernels import kernel
from duilian.ragged import Ragged, offsets_of


class Space(NamedTuple):
    """A lattice as kernels see it.

    offsets: (n_sentences + 1,) int64; tokens of sentence i are offsets[i]:offsets[i + 1]
    starts:  (T + 1,) int64; bundles of token t are starts[t]:starts[t + 1]
    lists:   (T * S + 1,) int64; product layout: side s keeps kept[lists[n]:lists[n + 1]] at token t, n = t * S + s
    kept:    (n_kept,) int32
    labels:  (n_bundles, S) int32; listed layout, else (0, S)
    sizes:   (S,) int64, labels per side
    tables:  (S + 1,) int64; the (sizes[s], sizes[s]) transition table of side s is flat[tables[s]:tables[s + 1]]
    """

    offsets: Any
    starts: Any
    lists: Any
    kept: Any
    labels: Any
    sizes: Any
    tables: Any


class Pairs(NamedTuple):
    """Which weight belongs to a pair of bundles: an open hash table, or no table (every pair has one).

    keys:    (capacity,) int64, -1 where empty; capacity 0: the weight of a pair is its own key
    slots:   (capacity,) int64, number of the weight
    n_codes: (1,) int64, number of possible bundles; key = code of the first * n_codes + code of the second
    """

    keys: Any
    slots: Any
    n_codes: Any


@dataclass(frozen=True, eq=False)
class Lattice:
    """Competing bundles for every token of a batch of sentences; ``origin`` tells where a restricted one came from.

    origin: (n_bundles,) int64, number of each bundle in the lattice that this one was cut from, or None
    """

    space: Space
    origin: NDArray[np.int64] | None = field(default=None)

    @property
    def n_sides(self) -> int:
        return len(self.space.sizes)

    @property
    def n_tokens(self) -> int:
        return len(self.space.starts) - 1

    @property
    def n_sentences(self) -> int:
        return len(self.space.offsets) - 1

    @property
    def n_bundles(self) -> int:
        return int(self.space.starts[-1])

    @property
    def is_product(self) -> bool:
        """Whether the bundles of each token are all combinations of one list per side."""
        return len(self.space.lists) == self.n_tokens * self.n_sides + 1

    @property
    def labels(self) -> NDArray[np.int32]:
        """(n_bundles, S) the labels of every bundle."""
        if not self.is_product:
            return self.space.labels  # type: ignore[no-any-return]
        out = np.empty((self.n_bundles, self.n_sides), dtype=np.int32)
        _write_labels(self.space, room_for_token(self.space), out)
        return out

    def side_lists(self, side: int) -> Ragged:
        """The labels kept on one side, token by token (product layout)."""
        if not self.is_product:
            raise ValueError("this lattice lists bundles; only a product of lists has lists per side")
        lists = self.space.lists
        return Ragged(self.space.kept, lists).select(np.arange(side, len(lists) - 1, self.n_sides))

    def restrict(self, allowed: NDArray[np.bool_]) -> Lattice:
        """The same sentences with the allowed bundles only, listed; allowed: (n_bundles,) bool."""
        if allowed.shape != (self.n_bundles,):
            raise ValueError(f"a mask over {self.n_bundles} bundles was expected, found one of shape {allowed.shape}")
        counts = np.concatenate([np.zeros(1, np.int64), np.cumsum(allowed, dtype=np.int64)])
        kept = np.flatnonzero(allowed)
        starts = counts[self.space.starts]
        return listed(self.space.offsets, starts, self.labels[kept], self.space.sizes, self._first(kept))

    def restrict_sides(self, allowed: NDArray[np.bool_]) -> Lattice:
        """The same sentences with the allowed labels only, still a product; allowed: (n_kept,) over ``space.kept``."""
        if not self.is_product:
            raise ValueError("this lattice lists bundles; use restrict with a mask over bundles")
        if allowed.shape != self.space.kept.shape:
            raise ValueError(f"a mask over {len(self.space.kept)} labels was expected, found {allowed.shape}")
        counts = np.concatenate([np.zeros(1, np.int64), np.cumsum(allowed, dtype=np.int64)])
        space = product_space(self.space.offsets, counts[self.space.lists], self.space.kept[allowed], self.space.sizes)
        origin = np.empty(space.starts[-1], dtype=np.int64)
        _write_origin(self.space, space, np.flatnonzero(allowed), origin)
        return Lattice(space, self._first(origin))

    def _first(self, origin: NDArray[np.int64]) -> NDArray[np.int64]:
        return origin if self.origin is None else self.origin[origin]


def product(offsets: NDArray[np.int64], sides: Sequence[Ragged], sizes: Sequence[int]) -> Lattice:
    """A lattice whose bundles are all combinations of the labels kept on each side.

    offsets: (n_sentences + 1,) tokens;  sides: per side the labels kept at each token, ascending
    sizes: how many labels each side has
    """
    n_tokens, n_sides = int(offsets[-1]), len(sides)
    if len(sizes) != n_sides or any(len(side) != n_tokens for side in sides):
        raise ValueError(f"{n_tokens} tokens and {len(sizes)} sizes, but lists for {[len(side) for side in sides]}")
    lengths = np.stack([side.lengths for side in sides], axis=1) if n_tokens else np.zeros((0, n_sides), np.int64)
    lists = offsets_of(lengths.ravel())
    kept = np.empty(lists[-1], dtype=np.int32)
    for s, (side, size) in enumerate(zip(sides, sizes, strict=True)):
        if len(side.data) and not 0 <= side.data.min() <= side.data.max() < size:
            raise ValueError(f"side {s} has {size} labels; found {side.data.min()} to {side.data.max()}")
        inner = np.ones(len(side.data) + 1, dtype=bool)
        inner[side.offsets] = False
        if np.any(np.diff(side.data, prepend=-1)[inner[:-1]] <= 0):
            raise ValueError(f"side {s}: the labels of a token must be in ascending order, each once")
        begins = lists[s:-1:n_sides]
        where = np.arange(len(side.data), dtype=np.int64) + np.repeat(begins - side.offsets[:-1], side.lengths)
        kept[where] = side.data
    return Lattice(product_space(offsets, lists, kept, np.asarray(sizes, dtype=np.int64)))


def listed(
    offsets: NDArray[np.int64],
    starts: NDArray[np.int64],
    labels: NDArray[np.int32],
    sizes: Any,
    origin: NDArray[np.int64] | None = None,
) -> Lattice:
    """A lattice of bundle lists: bundles of token t are labels[starts[t]:starts[t + 1]], one column per side."""
    sizes = np.asarray(sizes, dtype=np.int64)
    labels = np.ascontiguousarray(labels, dtype=np.int32).reshape(-1, len(sizes))
    if len(starts) != int(offsets[-1]) + 1 or starts[-1] != len(labels):
        raise ValueError(f"{offsets[-1]} tokens and {len(labels)} bundles, but starts for {len(starts) - 1} tokens")
    if len(labels) and (labels.min() < 0 or np.any(labels.max(axis=0) >= sizes)):
        raise ValueError(f"labels run from {labels.min()} to {labels.max(axis=0)}, the sides have {sizes}")
    none = np.zeros(0, dtype=np.int64)
    space = Space(_int64(offsets), _int64(starts), none, np.zeros(0, np.int32), labels, sizes, offsets_of(sizes**2))
    return Lattice(space, origin)


def mapped(
    offsets: NDArray[np.int64], rows: NDArray[np.int32], sizes: Any, allowed: Sequence[NDArray[np.bool_] | None]
) -> Lattice:
    """A lattice of the bundles that a mapping knows and that every side allows; a token may be left with none.

    rows: (n, S) the mapping's bundles;  allowed: per side a mask (T, L), or None for a side that is free
    """
    n_tokens, sizes = int(offsets[-1]), np.asarray(sizes, dtype=np.int64)
    rows = np.ascontiguousarray(rows, dtype=np.int32).reshape(-1, len(sizes))
    free = [mask is None for mask in allowed]
    masks = [np.ones((1, size), np.bool_) if m is None else m for m, size in zip(allowed, sizes, strict=True)]
    for mask, size, is_free in zip(masks, sizes, free, strict=True):
        if not is_free and mask.shape != (n_tokens, size):
            raise ValueError(f"a mask of shape {(n_tokens, size)} was expected, found {mask.shape}")
    counts = np.empty(n_tokens, dtype=np.int64)
    parts = []
    for first in range(0, n_tokens, 4096):
        last = min(first + 4096, n_tokens)
        fits = np.ones((last - first, len(rows)), dtype=np.bool_)
        for s, mask in enumerate(masks):
            fits &= (mask if free[s] else mask[first:last])[:, rows[:, s]]
        counts[first:last] = fits.sum(axis=1)
        parts.append(rows[np.nonzero(fits)[1]])
    labels = np.concatenate(parts) if parts else rows[:0]
    return listed(offsets, offsets_of(counts), labels, sizes)


def index_pairs(n_codes: int, keys: NDArray[np.int64] | None = None) -> Pairs:
    """Pairs for the given keys (weight i belongs to keys[i]), or for every pair of bundles when keys is None."""
    if keys is None:
        return Pairs(np.zeros(0, np.int64), np.zeros(0, np.int64), np.array([n_codes], dtype=np.int64))
    capacity = 1 << max(3, int(2 * len(keys) - 1).bit_length())
    table = Pairs(np.full(capacity, -1, np.int64), np.zeros(capacity, np.int64), np.array([n_codes], dtype=np.int64))
    if not _fill_pairs(_int64(keys), table):
        raise ValueError("a pair of bundles occurs twice, or is negative")
    return table


def allowed_pairs(lattice: Lattice) -> NDArray[np.int64]:
    """Sorted keys of every pair of neighbouring bundles that a lattice holds: the pairs worth a weight."""
    n_codes = int(np.prod(lattice.space.sizes))
    if n_codes**2 <= 1 << 28:
        seen = np.zeros(n_codes**2, dtype=np.bool_)
        rows = room_for_token(lattice.space)
        _mark_pairs(lattice.space, rows, np.empty_like(rows[0]), seen)
        return np.flatnonzero(seen).astype(np.int64)
    keys = np.zeros(0, np.int64)
    for first in range(0, lattice.n_sentences, 64):
        part = _list_pairs(lattice.space, n_codes, first, min(first + 64, lattice.n_sentences))
        keys = np.union1d(keys, part)
    return keys


def product_space(offsets: Any, lists: NDArray[np.int64], kept: NDArray[np.int32], sizes: NDArray[np.int64]) -> Space:
    """A product lattice as kernels see it, from lists that are known to be right: those of a token side after side."""
    counts = np.diff(lists).reshape(-1, len(sizes)).prod(axis=1)
    none = np.zeros((0, len(sizes)), dtype=np.int32)
    return Space(_int64(offsets), offsets_of(counts), _int64(lists), kept, none, sizes, offsets_of(sizes**2))


def _int64(array: Any) -> NDArray[np.int64]:
    return np.require(array, dtype=np.int64, requirements=["C", "W"])


@kernel
def is_product(space: Any) -> Any:
    """Whether the bundles of a token are all combinations of its lists."""
    return len(space.lists) == (len(space.starts) - 1) * len(space.sizes) + 1


@kernel
def write_token(space: Any, t: Any, rows: Any) -> Any:
    """Write token t's bundles into rows (S + 1, >= K) int64: a row of labels per side, and their codes; returns K.

    The code of a bundle is its number among all combinations of labels, the last side fastest.
    """
    n_sides = len(space.sizes)
    begin = space.starts[t]
    n = space.starts[t + 1] - begin
    for j in range(n):
        rows[n_sides, j] = 0
    left: Any = np.int64(1)
    right: Any = n
    for s in range(n_sides):
        if is_product(space):
            at = space.lists[t * n_sides + s]
            k = space.lists[t * n_sides + s + 1] - at
            right //= max(1, k)
            to: Any = np.int64(0)
            for _ in range(left):
                for i in range(k):
                    label = space.kept[at + i]
                    for _ in range(right):
                        rows[s, to] = label
                        to += 1
            left *= k
        else:
            for j in range(n):
                rows[s, j] = space.labels[begin + j, s]
        for j in range(n):
            rows[n_sides, j] = rows[n_sides, j] * space.sizes[s] + rows[s, j]
    return n


@kernel
def slot_of(pairs: Any, first: Any, second: Any) -> Any:
    """Number of the weight of a pair of bundle codes, or -1."""
    key = first * pairs.n_codes[0] + second
    capacity = len(pairs.keys)
    if capacity == 0:
        return key
    at = _scatter(key) & (capacity - 1)
    while pairs.keys[at] >= 0:
        if pairs.keys[at] == key:
            return pairs.slots[at]
        at = (at + 1) & (capacity - 1)
    return np.int64(-1)


@kernel
def _scatter(key: Any) -> Any:
    """A number in 0..2**31 that spreads neighbouring keys; products stay below 2**62, so that nothing overflows."""
    low = (key & 0x3FFFFFFF) * 1103515245
    high = ((key >> 30) & 0x3FFFFFFF) * 1540483477
    mixed = (low >> 13) ^ (high >> 11) ^ low ^ high
    return (mixed ^ (mixed >> 31)) & 0x7FFFFFFF


@kernel
def _fill_pairs(keys: Any, pairs: Any) -> Any:
    capacity = len(pairs.keys)
    for i in range(len(keys)):
        if keys[i] < 0:
            return False
        at = _scatter(keys[i]) & (capacity - 1)
        while pairs.keys[at] >= 0:
            if pairs.keys[at] == keys[i]:
                return False
            at = (at + 1) & (capacity - 1)
        pairs.keys[at] = keys[i]
        pairs.slots[at] = i
    return True


@kernel
def _write_labels(space: Any, rows: Any, out: Any) -> None:
    for t in range(len(space.starts) - 1):
        for j in range(write_token(space, t, rows)):
            for s in range(len(space.sizes)):
                out[space.starts[t] + j, s] = rows[s, j]


@kernel
def write_codes(space: Any, rows: Any, out: Any) -> None:
    """out (n_bundles,) the code of every bundle; rows: scratch for ``write_token``."""
    n_sides = len(space.sizes)
    for t in range(len(space.starts) - 1):
        for j in range(write_token(space, t, rows)):
            out[space.starts[t] + j] = rows[n_sides, j]


@kernel
def _write_origin(whole: Any, part: Any, kept: Any, origin: Any) -> None:
    """For each bundle of part, its number in whole; kept: which entry of whole.kept each entry of part.kept was."""
    n_sides = len(whole.sizes)
    for t in range(len(whole.starts) - 1):
        begin = part.starts[t]
        for j in range(part.starts[t + 1] - begin):
            rest = j
            number, stride = np.int64(0), np.int64(1)
            for back in range(n_sides):
                row = t * n_sides + n_sides - 1 - back
                k = part.lists[row + 1] - part.lists[row]
                number += (kept[part.lists[row] + rest % k] - whole.lists[row]) * stride
                stride *= whole.lists[row + 1] - whole.lists[row]
                rest //= k
            origin[begin + j] = whole.starts[t] + number


@kernel
def _mark_pairs(space: Any, rows: Any, codes: Any, seen: Any) -> None:
    n_codes = space.sizes.prod()
    for i in range(len(space.offsets) - 1):
        n_before = 0
        for t in range(space.offsets[i], space.offsets[i + 1]):
            n_here = write_token(space, t, rows)
            for k in range(n_before):
                for j in range(n_here):
                    seen[codes[k] * n_codes + rows[-1, j]] = True
            codes[:n_here] = rows[-1, :n_here]
            n_before = n_here


def room_for_token(space: Space) -> NDArray[np.int64]:
    """Where ``write_token`` may write any token of a lattice."""
    return np.empty((len(space.sizes) + 1, int(np.diff(space.starts).max(initial=1))), dtype=np.int64)


def _list_pairs(space: Space, n_codes: int, first: int, last: int) -> NDArray[np.int64]:
    parts = []
    rows = room_for_token(space)
    for i in range(first, last):
        before = np.zeros(0, np.int64)
        for t in range(int(space.offsets[i]), int(space.offsets[i + 1])):
            here = rows[-1, : write_token(space, t, rows)].copy()
            parts.append((before[:, None] * n_codes + here[None, :]).ravel())
            before = here
    return np.unique(np.concatenate(parts)) if parts else np.zeros(0, np.int64)
