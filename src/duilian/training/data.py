"""Training data as learners take it: feature rows, labels and sentences; thinned by dropout, cut at punctuation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duilian.kernels import kernel
from duilian.lifting import Labelled, Units
from duilian.models.weights import Features
from duilian.ragged import Ragged

_NONE = np.zeros(0, np.float32)


@dataclass(frozen=True, eq=False)
class TrainingData:
    """What a learner walks over.

    features:  rows of each unit; labels (U,) int32 and sets as in a Layer; sentences (S + 1,) int64 into the units
    gains:     (S,) float32, how much each sentence counts; empty where all count 1
    """

    features: Features
    labels: NDArray[np.int32]
    sets: Ragged
    sentences: NDArray[np.int64]
    gains: NDArray[np.float32] = field(default_factory=lambda: _NONE)

    @classmethod
    def of(
        cls, labelled: Labelled, rows: Ragged, sentences: NDArray[np.int64] | None = None,
        gains: NDArray[np.float32] = _NONE,
    ) -> TrainingData:  # fmt: skip
        """Labelled units with their feature rows; sentences as they are, or other cuts."""
        cuts = labelled.units.sentences if sentences is None else sentences
        return cls(Features(rows.data, rows.offsets), labelled.labels, labelled.sets, cuts, gains)

    def __len__(self) -> int:
        return len(self.sentences) - 1


@kernel
def thin(
    data: Any, offsets: Any, rate: Any, rare: Any, groups: Any, hide: Any, seed: Any, out: Any, out_offsets: Any
) -> Any:
    """Leave each row out with probability rate, and all rare rows of a unit with probability hide.

    data (n,), offsets (U + 1,) -> out and its; returns how many stay
    rare (G, n_rows) bool: what is rare for units of each group; groups (U,) int8, -1 for units that hide nothing, or ()
    for all in group 0. The same seed leaves the same rows out, whatever the groups.
    """
    state = (np.uint64(seed) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    limit, hidden = np.uint64(rate * 2.0**32), np.uint64(hide * 2.0**32)
    n = 0
    out_offsets[0] = 0
    for u in range(len(offsets) - 1):
        new: Any = False
        group = np.int64(groups[u]) if len(groups) else np.int64(0)
        if hidden > 0:
            state ^= state << np.uint64(13)
            state ^= state >> np.uint64(7)
            state ^= state << np.uint64(17)
            new = (state >> np.uint64(32)) < hidden and group >= 0
        for k in range(offsets[u], offsets[u + 1]):
            state ^= state << np.uint64(13)
            state ^= state >> np.uint64(7)
            state ^= state << np.uint64(17)
            if (state >> np.uint64(32)) >= limit and not (new and rare[group, data[k]]):
                out[n] = data[k]
                n += 1
        out_offsets[u + 1] = n
    return n


def dropout(
    features: Features,
    rate: float,
    seed: int,
    room: list[Features],
    rare: NDArray[np.bool_] | None = None,
    hide: float = 0.0,
    groups: NDArray[np.int8] | None = None,
) -> Features:
    """The rows that stay; room keeps the arrays from one epoch to the next.

    rare: (n_rows,) bool, the features that a unit loses all at once with probability hide, as if it were new; or
          (G, n_rows), and groups (U,) int8 says which row of it counts for a unit, -1 for none
    """
    if rate == 0 and (rare is None or hide == 0):
        return features
    if rare is None:
        rare, hide = np.zeros((1, 0), np.bool_), 0.0
    if groups is None:
        groups = np.zeros(0, np.int8)
    if not room:
        room.append(Features(np.empty_like(features.data), np.empty_like(features.offsets)))
    table = np.ascontiguousarray(np.atleast_2d(rare))
    thin(features.data, features.offsets, rate, table, groups, hide, seed, room[0].data, room[0].offsets)
    return room[0]


def cut_at(units: Units, marks: str, begins: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
    """Sentence offsets with further cuts behind units that are one of the marks.

    begins: (U,) whether a sentence may begin at a unit (None: at all), so that no word is cut in two
    """
    if not marks:
        return units.sentences
    single = units.ends - units.starts == 1
    points = np.array(sorted({ord(mark) for mark in marks}), dtype=np.uint32)
    hit = single & np.isin(units.text[np.minimum(units.starts, max(len(units.text) - 1, 0))], points)
    cuts = np.flatnonzero(hit) + 1
    if begins is not None:
        cuts = cuts[np.append(begins, True)[cuts]]
    return np.union1d(units.sentences, cuts).astype(np.int64)


def shuffled(n: int, seed: int, epoch: int, sample: int = 0) -> NDArray[np.int64]:
    """Sentence numbers in the order of an epoch: all of them, or as many as asked, drawn without replacement."""
    order = np.random.default_rng([seed, epoch]).permutation(n)
    return np.ascontiguousarray(order[:sample] if 0 < sample < n else order, np.int64)
