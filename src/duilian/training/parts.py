"""Training data of several standards as one run of units: who is labelled on which side, candidates cut out of it.

Corpora stand one after the other. A sentence that two sides annotate is there once, with labels on both; every other
one has labels on one side and is free on the others (an ambiguous labeling, li2015 section 3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from duilian.corpus import UNKNOWN
from duilian.lifting import Labelled, Units
from duilian.models.candidates import Given
from duilian.models.weights import Features
from duilian.ragged import Ragged, offsets_of, ranges
from duilian.training.data import TrainingData

_NO_SETS = Ragged(np.zeros(0, np.int32), np.zeros(1, np.int64))


@dataclass(frozen=True, eq=False)
class Part:
    """One corpus: its units, and per side what is given there (None: nothing)."""

    units: Units
    given: tuple[Given | None, ...]
    home: int


@dataclass(frozen=True, eq=False)
class Parts:
    """All corpora.

    features:  rows of each unit;  sentences: (S + 1,) int64 into the units
    given:     per side the labels of all units
    homes:     (S,) int8, the side that each sentence is drawn for
    """

    features: Features
    sentences: NDArray[np.int64]
    given: tuple[Given, ...]
    homes: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.sentences) - 1

    @property
    def n_units(self) -> int:
        """How many units there are."""
        return int(self.sentences[-1])

    def known(self, side: int) -> NDArray[np.bool_]:
        """(S,) whether anything is given on a side in each sentence."""
        some = np.concatenate([np.zeros(1, np.int64), np.cumsum(self.given[side].labels != UNKNOWN)])
        return some[self.sentences[1:]] > some[self.sentences[:-1]]

    def units_of(self, sentences: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The units of some sentences, in their order, and where each sentence begins among them."""
        begins, ends = self.sentences[sentences], self.sentences[sentences + 1]
        return ranges(begins, ends), offsets_of(ends - begins)

    def features_of(self, units: NDArray[np.int64]) -> Features:
        """The feature rows of some units."""
        return select_features(self.features, units)

    def chain_data(self, side: int, sentences: NDArray[np.int64]) -> TrainingData:
        """Some sentences as training data of one side alone."""
        units, offsets = self.units_of(sentences)
        given = self.given[side].select(units)
        return TrainingData(self.features_of(units), given.labels, given.sets, offsets)


def select_features(features: Features, units: NDArray[np.int64]) -> Features:
    """The feature rows of some units."""
    begins, ends = features.offsets[units], features.offsets[units + 1]
    return Features(features.data[ranges(begins, ends)], offsets_of(ends - begins))


def lay_out(labelled: Sequence[Labelled], words: bool) -> list[Part]:
    """Corpora of all sides, those that have the same text put together.

    labelled: per side its corpus;  words: units are words, which have to be the same too
    """
    n = len(labelled)
    places: list[tuple[list[int], Units]] = []
    for side, one in enumerate(labelled):
        for members, units in places:
            if _same(units, one.units, words):
                members.append(side)
                break
        else:
            places.append(([side], one.units))
    return [
        Part(
            units,
            tuple(Given(labelled[s].labels, labelled[s].sets) if s in members else None for s in range(n)),
            members[0],
        )
        for members, units in places
    ]


def _same(one: Units, other: Units, words: bool) -> bool:
    if not np.array_equal(one.sentences, other.sentences):
        return False
    if words and not (np.array_equal(one.starts, other.starts) and np.array_equal(one.ends, other.ends)):
        return False
    return bool(
        np.array_equal(one.text, other.text)
        if words
        else np.array_equal(one.text[one.starts], other.text[other.starts])
    )


def put_together(
    parts: Sequence[Part], rows: Sequence[Ragged], cuts: Sequence[NDArray[np.int64]], n_sides: int
) -> Parts:
    """One run of units. rows: feature rows of each part's units; cuts: its sentences, perhaps cut further."""
    data = np.concatenate([part.data for part in rows])
    offsets = offsets_of(np.concatenate([part.lengths for part in rows]))
    sentences = offsets_of(np.concatenate([np.diff(cut) for cut in cuts]))
    homes = np.repeat([part.home for part in parts], [len(cut) - 1 for cut in cuts]).astype(np.int8)
    given = []
    for side in range(n_sides):
        labels, sets, n_sets = [], [], 0
        for part in parts:
            here = part.given[side]
            if here is None:
                labels.append(np.full(len(part.units), UNKNOWN, np.int32))
                continue
            labels.append(np.where(here.labels <= -2, here.labels - n_sets, here.labels).astype(np.int32))
            sets.append(here.sets)
            n_sets += len(here.sets)
        joined = _NO_SETS
        if sets:
            flat = np.concatenate([one.data for one in sets]).astype(np.int32)
            joined = Ragged(flat, offsets_of(np.concatenate([one.lengths for one in sets])))
        given.append(Given(np.concatenate(labels), joined))
    return Parts(Features(data, offsets), sentences, tuple(given), homes)


def drawn(homes: NDArray[np.int8], sample: Sequence[int], seed: int, epoch: int) -> NDArray[np.int64]:
    """Sentence numbers of an epoch: so many of each side, without replacement, shuffled together (Algorithm 1).

    sample: per side how many, 0 for all; a number that is missing is the last one
    """
    rng = np.random.default_rng([seed, epoch])
    chosen = []
    for side in range(int(homes.max(initial=-1)) + 1):
        mine = rng.permutation(np.flatnonzero(homes == side))
        most = sample[min(side, len(sample) - 1)]
        chosen.append(mine[:most] if 0 < most < len(mine) else mine)
    return rng.permutation(np.concatenate([np.zeros(0, np.int64), *chosen])).astype(np.int64)
