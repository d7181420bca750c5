"""Mapping functions: which labels of different standards may be bundled (li2015 Eq. 3, section 3.1; qiu2013 section 4).

complete    every bundle                        automatic   every bundle that occurs: tag one corpus with a tagger
loose       sub-categories follow their category            trained on the other, collect the pairs
mark_weak   what is seen seldom is weak
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duilian.corpus import Layer
from duilian.errors import MismatchError

Sides = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, eq=False)
class Mapping:
    """The bundles that may exist.

    sides:   per side its labels
    bundles: (n, S) int32, sorted, each once
    weak:    (n,) bool, relations that a tight mapping leaves out
    counts:  (n,) int64, how often each was seen; zeros where nothing was counted
    """

    sides: Sides
    bundles: NDArray[np.int32]
    weak: NDArray[np.bool_]
    counts: NDArray[np.int64]

    def __post_init__(self) -> None:
        for array in (self.bundles, self.weak, self.counts):
            array.flags.writeable = False

    def __len__(self) -> int:
        return len(self.bundles)

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many labels each side has."""
        return tuple(len(side) for side in self.sides)

    @property
    def table(self) -> NDArray[np.bool_]:
        """(L of each side) whether a bundle may exist: m(ta, tb) of li2015 Eq. 3."""
        found = np.zeros(self.sizes, dtype=np.bool_)
        found[tuple(self.bundles.T)] = True
        return found

    @property
    def is_complete(self) -> bool:
        """Whether every bundle may exist."""
        return len(self) == int(np.prod(self.sizes))

    def names(self) -> list[tuple[str, ...]]:
        """The bundles as a person writes them."""
        return [tuple(side[k] for side, k in zip(self.sides, row, strict=True)) for row in self.bundles.tolist()]

    def tight(self) -> Mapping:
        """Without the weak relations."""
        return self._select(~self.weak)

    def at_least(self, count: int) -> Mapping:
        """Only bundles seen at least that often."""
        return self._select(self.counts >= count)

    def uncovered(self) -> list[list[str]]:
        """Per side the labels that no bundle holds: whoever carries one could be mapped to nothing."""
        missing = []
        for s, side in enumerate(self.sides):
            seen = np.zeros(len(side), dtype=np.bool_)
            seen[self.bundles[:, s]] = True
            missing.append([side[k] for k in np.flatnonzero(~seen)])
        return missing

    def union(self, other: Mapping) -> Mapping:
        """Bundles of either; weak where neither says otherwise; counts added up."""
        if self.sides != other.sides:
            raise MismatchError("two mappings can be joined only if their sides have the same labels in the same order")
        return make(
            self.sides,
            np.concatenate([self.bundles, other.bundles]),
            np.concatenate([self.weak, other.weak]),
            np.concatenate([self.counts, other.counts]),
        )

    def with_sides(self, sides: Sequence[Sequence[str]]) -> Mapping:
        """The same relations over other lists of labels; bundles with a label that a list lacks are left out."""
        wanted = tuple(tuple(side) for side in sides)
        rows = np.empty_like(self.bundles)
        for s, (old, new) in enumerate(zip(self.sides, wanted, strict=True)):
            number = {label: k for k, label in enumerate(new)}
            rows[:, s] = np.array([number.get(label, -1) for label in old] or [-1], dtype=np.int32)[self.bundles[:, s]]
        kept = (rows >= 0).all(axis=1)
        return make(wanted, rows[kept], self.weak[kept], self.counts[kept])

    def reversed(self) -> Mapping:
        """The same relations, the last side first."""
        return make(self.sides[::-1], self.bundles[:, ::-1], self.weak, self.counts)

    def common(self, share: float) -> Mapping:
        """Only bundles that make at least this share of what was seen of one of their labels."""
        kept = np.zeros(len(self), np.bool_)
        for s, size in enumerate(self.sizes):
            totals = np.bincount(self.bundles[:, s], self.counts, size)
            kept |= self.counts >= share * totals[self.bundles[:, s]]
        return self._select(kept & (self.counts > 0))

    def _select(self, kept: NDArray[np.bool_]) -> Mapping:
        return replace(self, bundles=self.bundles[kept], weak=self.weak[kept], counts=self.counts[kept])


def complete(sides: Sequence[Sequence[str]]) -> Mapping:
    """Every bundle of labels."""
    rows = np.indices([len(side) for side in sides]).reshape(len(sides), -1).T
    return make(sides, rows, np.zeros(len(rows), np.bool_), np.zeros(len(rows), np.int64))


def automatic(sides: Sequence[Sequence[str]], *labels: NDArray[np.int32], min_count: int = 1) -> Mapping:
    """Every bundle that occurs, with its counts: per side the labels of the same units, (U,) each.

    One side is given, the others were predicted. Units with an unknown label, or a set, on any side do not count.
    """
    if len(labels) != len(sides) or len({len(row) for row in labels}) > 1:
        raise MismatchError(f"{len(sides)} sides, but labels for {[len(row) for row in labels]} units")
    rows = np.stack(labels, axis=1)
    found, counts = np.unique(rows[(rows >= 0).all(axis=1)], axis=0, return_counts=True)
    whole = make(sides, found.reshape(-1, len(sides)), np.zeros(len(found), np.bool_), counts)
    return whole.at_least(min_count)


def from_layers(*layers: Layer, min_count: int = 1) -> Mapping:
    """``automatic`` from layers over the same units: one as given, the others as taggers predict them."""
    first = layers[0]
    for layer in layers[1:]:
        if not (np.array_equal(layer.starts, first.starts) and np.array_equal(layer.ends, first.ends)):
            raise MismatchError(
                f"layers {first.name!r} and {layer.name!r} have different words; "
                "a mapping is counted over the same units: tag the words of one layer, or use labels of characters"
            )
    return automatic([layer.tags for layer in layers], *(layer.labels for layer in layers), min_count=min_count)


def loose(mapping: Mapping, children: Sequence[Callable[[str], Sequence[str]] | None] | None = None) -> Mapping:
    """Where a category is mapped, its sub-categories are too (qiu2013, section 4: nr brings nrf and nrg).

    children: per side a function from a tag to its sub-categories (``Standard.expand`` is one), or None: a tag that no
    relation mentions belongs to the longest mentioned tag that it begins with. A mentioned tag stays what it is.
    """
    rows = [mapping.bundles]
    weak, counts = [mapping.weak], [mapping.counts]
    below: list[dict[int, list[int]]] = []
    for s, side in enumerate(mapping.sides):
        mentioned = {side[k] for k in np.unique(mapping.bundles[:, s])}
        number = {label: k for k, label in enumerate(side)}
        tree: dict[int, list[int]] = {k: [k] for k in range(len(side))}
        ask = children[s] if children else None
        if ask is not None:
            for label in mentioned:
                tree[number[label]] += [number[c] for c in ask(label) if c in number and c not in mentioned]
        else:
            for label in side:
                parents = [tag for tag in mentioned if label not in mentioned and label.startswith(tag)]
                if parents:
                    tree[number[max(parents, key=len)]].append(number[label])
        below.append(tree)
    for row, is_weak in zip(mapping.bundles.tolist(), mapping.weak.tolist(), strict=True):
        spread = list(itertools.product(*(tree[k] for tree, k in zip(below, row, strict=True))))
        rows.append(np.array(spread, dtype=np.int32))
        weak.append(np.full(len(spread), is_weak))
        counts.append(np.zeros(len(spread), np.int64))
    return make(mapping.sides, np.concatenate(rows), np.concatenate(weak), np.concatenate(counts))


def mark_weak(mapping: Mapping, share: float) -> Mapping:
    """Relations that make up less than a share of the occurrences of each of their labels become weak.

    share: 0 to 1; what is weak already stays so
    """
    rare = np.ones(len(mapping), np.bool_)
    for s, size in enumerate(mapping.sizes):
        here = mapping.bundles[:, s]
        total = np.bincount(here, weights=mapping.counts, minlength=size)[here]
        rare &= mapping.counts < share * total
    return replace(mapping, weak=mapping.weak | rare)


def make(sides: Sequence[Sequence[str]], rows: Any, weak: Any, counts: Any) -> Mapping:
    """Sorted, each bundle once: weak only if it is so everywhere, counts added up."""
    rows = np.asarray(rows, dtype=np.int32).reshape(-1, len(sides))
    bundles, where = np.unique(rows, axis=0, return_inverse=True)
    where = where.ravel()
    total = np.zeros(len(bundles), dtype=np.int64)
    np.add.at(total, where, np.asarray(counts, dtype=np.int64))
    strong = np.zeros(len(bundles), dtype=np.bool_)
    strong[where[~np.asarray(weak, dtype=np.bool_)]] = True
    return Mapping(tuple(tuple(side) for side in sides), bundles.astype(np.int32), ~strong, total)
