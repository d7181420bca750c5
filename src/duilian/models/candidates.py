"""Which bundles compete at each unit: lists of labels that pruning keeps, side by side, and the lattices made of them.

offline  labels that single-side chains find probable, once for all units                    (li2016 section 3)
online   labels that the coupled model's own separate features find probable, batch by batch
none     all labels
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duilian.corpus import UNKNOWN
from duilian.inference.blocks import run_blocks, sentence_blocks
from duilian.inference.bundles import full_lists
from duilian.inference.chain import constrain
from duilian.inference.chain_marginals import best_paths, marginals
from duilian.inference.lattice import Lattice, product, product_space
from duilian.inference.pruning import given_mask, prune
from duilian.models.side_model import SideModel
from duilian.models.weights import Features
from duilian.ragged import Ragged, offsets_of, ranges

BLOCK = 1 << 14
"""Marginals are computed for about this many units at a time."""

_NO_SETS = Ragged(np.zeros(0, np.int32), np.zeros(1, np.int64))


@dataclass(frozen=True, eq=False)
class Given:
    """What is given on one side: (U,) int32 labels as in a Layer, and the sets they point to."""

    labels: NDArray[np.int32]
    sets: Ragged = _NO_SETS

    @classmethod
    def nothing(cls, n_units: int) -> Given:
        """Every unit is free."""
        return cls(np.full(n_units, UNKNOWN, np.int32))

    def select(self, units: Any) -> Given:
        """The labels of some units."""
        return Given(self.labels[units], self.sets)

    def allows(self, units: NDArray[np.int64], labels: NDArray[np.integer[Any]]) -> NDArray[np.bool_]:
        """(n,) whether units[k] may carry labels[k]."""
        here = self.labels[units]
        found: NDArray[np.bool_] = (here == UNKNOWN) | (here == labels)
        several = np.flatnonzero(here <= -2)
        if len(several):
            n = int(max(self.sets.data.max(initial=0), labels.max(initial=0))) + 1
            table = np.zeros((len(self.sets), n), np.bool_)
            table[np.repeat(np.arange(len(self.sets)), self.sets.lengths), self.sets.data] = True
            found[several] = table[-2 - here[several], labels[several]]
        return found

    def lists(self, size: int) -> Ragged:
        """The labels that are possible at each unit, of so many."""
        n = len(self.labels)
        labels = np.tile(np.arange(size, dtype=np.int32), n)
        fits = self.allows(np.arange(n, dtype=np.int64).repeat(size), labels)
        return Ragged(labels[fits], offsets_of(fits.reshape(n, size).sum(axis=1)))


@dataclass(frozen=True, eq=False)
class Pruner:
    """Chains of single sides, and how many labels of each survive.

    r, lambda_: per side as in ``inference.pruning``
    paths:      also keep the labels of each chain's best path, so that a legal path is left (labels of characters)
    """

    chains: tuple[SideModel, ...]
    r: tuple[int, ...]
    lambda_: tuple[float, ...]
    paths: bool

    def keep(
        self,
        side: int,
        features: Features,
        sentences: NDArray[np.int64],
        given: Given | None = None,
        must: Given | None = None,
        threads: int = 1,
    ) -> Ragged:
        """Labels that survive at each unit.

        given: no other labels are possible (conversion);  must: these survive in any case (training)
        """
        chain = self.chains[side]
        if given is not None and np.all(given.labels >= 0):
            return Ragged(given.labels, np.arange(len(given.labels) + 1, dtype=np.int64))

        def work(first: int, last: int) -> Ragged:
            begin, end = int(sentences[first]), int(sentences[last])
            part = slice_features(features, begin, end)
            node = chain.scores(part, sentences[first : last + 1] - begin)
            here = None if given is None else given.select(slice(begin, end))
            also = None if must is None else must.select(slice(begin, end))
            return survivors(
                node, sentences[first : last + 1] - begin, chain.trans, self.r[side], self.lambda_[side],
                self.paths, here, also,
            )  # fmt: skip

        n_blocks = max(1, -(-int(sentences[-1]) // BLOCK))
        return join(run_blocks(work, sentence_blocks(sentences, n_blocks), threads))


def survivors(
    node: NDArray[np.float32], sentences: NDArray[np.int64], trans: NDArray[np.float32], r: int, lambda_: float,
    paths: bool, given: Given | None = None, must: Given | None = None,
) -> Ragged:  # fmt: skip
    """Labels that survive, from the scores of a chain; given, must and paths as in ``Pruner``. node is spoilt."""
    n_labels = node.shape[1]
    if given is not None:
        constrain(node, 0, len(node), given.labels, given.sets.data, given.sets.offsets)
    keep = None
    if must is not None:
        keep = _mask(must, n_labels)
    if paths and len(node):
        keep = np.zeros(node.shape, np.bool_) if keep is None else keep
        keep[np.arange(len(node)), best_paths(node, sentences, trans)] = True
    found = prune(marginals(node, sentences, trans), r, lambda_, keep)
    if given is None:
        return found
    tokens = np.repeat(np.arange(len(found)), found.lengths)
    allowed = given.allows(tokens, found.data)
    return Ragged(found.data[allowed], offsets_of(np.bincount(tokens[allowed], minlength=len(found))))


def _mask(given: Given, n_labels: int) -> NDArray[np.bool_]:
    return given_mask(given.labels, given.sets, n_labels)


@dataclass(frozen=True, eq=False)
class Candidates:
    """Labels kept at each unit, side by side: side s keeps kept[lists[n]:lists[n + 1]] at unit t, n = t * S + s.

    lists: (U * S + 1,) int64; kept: (n,) int32; sizes: labels per side
    """

    lists: NDArray[np.int64]
    kept: NDArray[np.int32]
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, sides: Sequence[Ragged], sizes: Sequence[int]) -> Candidates:
        """From one list of lists per side."""
        space = product(np.array([0, len(sides[0])], np.int64), sides, sizes).space
        return cls(space.lists, space.kept, tuple(sizes))

    @classmethod
    def full(cls, n_units: int, sizes: Sequence[int]) -> Candidates:
        """All labels everywhere."""
        return cls.of([full_lists(n_units, size) for size in sizes], sizes)

    def __len__(self) -> int:
        return (len(self.lists) - 1) // len(self.sizes)

    def mean(self, side: int) -> float:
        """How many labels a unit keeps on one side, on average."""
        return float(np.diff(self.lists)[side :: len(self.sizes)].mean()) if len(self) else 0.0

    def entries(self, units: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where the kept labels of some units are, and the new lists over them."""
        s = len(self.sizes)
        rows = (units[:, None] * s + np.arange(s)).ravel()
        begins, ends = self.lists[rows], self.lists[rows + 1]
        return ranges(begins, ends), offsets_of(ends - begins)

    def select(self, units: NDArray[np.int64]) -> Candidates:
        """Those of some units, in the given order."""
        at, lists = self.entries(units)
        return Candidates(lists, self.kept[at], self.sizes)

    def slice(self, begin: int, end: int) -> Candidates:
        """Those of units begin..end, without a copy of them."""
        lists = self.lists[begin * len(self.sizes) : end * len(self.sizes) + 1]
        return Candidates(lists - lists[0], self.kept[lists[0] : lists[-1]], self.sizes)

    def allowed(self, given: Sequence[Given]) -> NDArray[np.bool_]:
        """(n,) whether each kept label is among those given on its side."""
        found = np.empty(len(self.kept), np.bool_)
        s = len(self.sizes)
        lengths = np.diff(self.lists).reshape(-1, s)
        for side, one in enumerate(given):
            begins = self.lists[:-1].reshape(-1, s)[:, side]
            at = ranges(begins, begins + lengths[:, side])
            found[at] = one.allows(np.repeat(np.arange(len(self)), lengths[:, side]), self.kept[at])
        return found

    def lattice(self, sentences: NDArray[np.int64]) -> Lattice:
        """All combinations at every unit."""
        return Lattice(product_space(sentences, self.lists, self.kept, np.array(self.sizes, np.int64)))


def mapped_lattice(space: Lattice, table: NDArray[np.bool_], given: Sequence[Given] | None = None) -> Lattice:
    """Only the bundles that a mapping knows; where it knows none of a unit's, all stay.

    table: (L of each side) bool, from ``Mapping.table``
    given: while training: where the mapping knows none of the bundles that are allowed, all of those stay
    """
    known = table[tuple(space.labels.T)]
    known |= _alone(space, known, np.ones(len(known), np.bool_))
    if given is not None:
        known |= _alone(space, known, allowed_bundles(space, given))
    return replace(space.restrict(known), origin=None)


def _alone(space: Lattice, known: NDArray[np.bool_], wanted: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """(n_bundles,) the wanted bundles of the units at which no wanted bundle is known."""
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(known & wanted)])
    lacking = np.diff(before[space.space.starts]) == 0
    return np.repeat(lacking, np.diff(space.space.starts)) & wanted


def allowed_bundles(space: Lattice, given: Sequence[Given]) -> NDArray[np.bool_]:
    """(n_bundles,) whether each bundle of a lattice has only labels that are given."""
    tokens = np.repeat(np.arange(space.n_tokens), np.diff(space.space.starts))
    labels = space.labels
    found = np.ones(space.n_bundles, np.bool_)
    for side, one in enumerate(given):
        found &= one.allows(tokens, labels[:, side])
    return found


def slice_features(features: Features, begin: int, end: int) -> Features:
    """The feature rows of units begin..end, without a copy of them."""
    offsets = features.offsets[begin : end + 1]
    return Features(features.data[offsets[0] : offsets[-1]], offsets - offsets[0])


def join(parts: Sequence[Ragged]) -> Ragged:
    """Lists of lists, one behind the other."""
    if len(parts) == 1:
        return parts[0]
    data = np.concatenate([np.zeros(0, np.int32), *(part.data for part in parts)])
    return Ragged(data, offsets_of(np.concatenate([np.zeros(0, np.int64), *(part.lengths for part in parts)])))
