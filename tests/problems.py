"""A small learning problem in both forms: arrays for the kernels, dictionaries for the twins in naive/learners.py."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from naive import chain as naive_chain
from naive import learners as naive

from duilian.inference.chain import runs_of
from duilian.models.weights import Features, Rows, build_rows
from duilian.ragged import Ragged


@dataclass(frozen=True, eq=False)
class LearningProblem:
    """Units with rows and labels; weights to begin with; what the grammar allows.

    rows: units' feature rows; labels (U,) int32 and sets as in a Layer; sentences (S + 1,) int64
    weights (n_entries,) float32 of ``table``; trans (L, L), start, end (L,) float32, -inf where forbidden
    """

    rows: Ragged
    labels: Any
    sets: Ragged
    sentences: Any
    table: Rows
    trans: Any
    start: Any
    end: Any

    @property
    def n_labels(self) -> int:
        return len(self.start)

    @property
    def features(self) -> Features:
        return Features(self.rows.data, self.rows.offsets)

    @property
    def runs(self) -> Any:
        return runs_of(self.trans > -np.inf)

    def naive_sentences(self) -> list[naive.Sentence]:
        """The sentences as the twins take them, empty ones too."""
        sets = [row.tolist() for row in self.sets]
        units = [tuple(row.tolist()) for row in self.rows]
        allowed = [tuple(naive_chain.allowed_labels(label, sets, self.n_labels)) for label in self.labels.tolist()]
        edges = self.sentences.tolist()
        return [naive.Sentence(tuple(units[a:b]), tuple(allowed[a:b])) for a, b in itertools.pairwise(edges)]

    def naive_weights(self, weights: Any, trans: Any, start: Any, end: Any) -> naive.Weights:
        """Arrays as a dictionary; what is forbidden is left out."""
        found: naive.Weights = {}
        for row in range(len(self.table)):
            for at in range(self.table.offsets[row], self.table.offsets[row + 1]):
                found["row", row, int(self.table.labels[at])] = float(weights[at])
        for label in range(self.n_labels):
            found["start", label], found["end", label] = float(start[label]), float(end[label])
            for after in range(self.n_labels):
                found["step", label, after] = float(trans[label, after])
        return {name: weight for name, weight in found.items() if weight > -np.inf}


def random_problem(
    seed: int, *, lengths: tuple[int, ...] = (3, 0, 1, 2), n_labels: int = 3, spread: float = 1.0,
    table_spread: float | None = None, whole: bool = False, holes: float = 0.0, known: float = 0.5, full: float = 0.5,
) -> LearningProblem:  # fmt: skip
    """A problem from a seed.

    spread, table_spread: of the weights of rows, and of the tables; whole: weights are whole numbers
    holes: share of forbidden steps; known: share of units with one label, the others have sets or are unknown
    """
    rng = np.random.default_rng(seed)
    n_units, n_rows = sum(lengths), 5
    rows = Ragged.from_rows([rng.integers(0, n_rows, size=rng.integers(0, 4)) for _ in range(n_units)], np.int32)
    sets = [sorted(rng.permutation(n_labels)[: rng.integers(1, n_labels + 1)].tolist()) for _ in range(3)]
    labels = rng.integers(0, n_labels, size=n_units).astype(np.int32)
    loose = rng.random(n_units) >= known
    labels[loose] = rng.integers(-1 - len(sets), 0, size=int(loose.sum()))
    ragged_sets = Ragged.from_rows(sets, np.int32)

    def values(scale: float, *shape: int) -> Any:
        found = rng.normal(size=shape) * scale
        return (np.round(found) if whole else found).astype(np.float32)

    def with_holes(array: Any) -> Any:
        array[rng.random(array.shape) < holes] = -np.inf
        return array

    table = build_rows(n_rows, n_labels, [(rows, labels, ragged_sets)], full)
    scale = spread if table_spread is None else table_spread
    filled = Rows(n_labels, table.offsets, table.labels, values(spread, len(table.labels)))
    return LearningProblem(
        rows, labels, ragged_sets, np.cumsum([0, *lengths]).astype(np.int64), filled,
        with_holes(values(scale, n_labels, n_labels)), with_holes(values(scale, n_labels)),
        with_holes(values(scale, n_labels)),
    )  # fmt: skip
