"""Every Hypothesis strategy of the suite, sized so that they also run with compilation off."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st
from naive import chain as naive

SPREADS = (0.0, 1.0, 1.0, 5.0, 30.0)
"""Standard deviations of scores; 0 makes everything equal."""


@dataclass(frozen=True, eq=False)
class ChainProblem:
    """A few sentences over few labels: scores, what may follow what, and what each unit allows.

    node (U, L), trans (L, L), start (L,), end (L,) float32 with some -inf; sentences (S + 1,) int64
    labels (U,) int32: -1 all, >= 0 that one, -2 - k the labels sets[k], rising
    """

    node: Any
    trans: Any
    start: Any
    end: Any
    sentences: Any
    labels: Any
    sets: list[list[int]]

    @property
    def n_labels(self) -> int:
        return len(self.start)

    def edges(self) -> list[tuple[int, int]]:
        """First and last unit of each sentence."""
        return list(itertools.pairwise(self.sentences.tolist()))

    def scores(self, first: int, last: int, constrained: bool = False) -> naive.Scores:
        """Every possible labelling of a sentence, by enumeration."""
        allowed = self.allowed(first, last) if constrained else None
        return naive.all_scores(self.node[first:last], self.trans, self.start, self.end, allowed)

    def allowed(self, first: int, last: int) -> list[list[int]]:
        """What each unit of a sentence allows."""
        return [naive.allowed_labels(int(label), self.sets, self.n_labels) for label in self.labels[first:last]]


@st.composite
def chain_problems(draw: st.DrawFn, *, whole: bool = False, most: int = 5) -> ChainProblem:
    """whole: scores are whole numbers, so that float32 sums are exact and ties are ties. most: labels, and units."""
    n_labels = draw(st.integers(1, most))
    lengths = draw(st.lists(st.integers(0, most), min_size=1, max_size=3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    spread = draw(st.sampled_from((0.0, 1.0, 2.0) if whole else SPREADS))
    holes = draw(st.sampled_from((0.0, 0.0, 0.2, 0.6)))

    def values(*shape: int) -> Any:
        found = (rng.normal(size=shape) * spread).astype(np.float32)
        found = np.round(found) if whole else found
        found[rng.random(shape) < holes] = -np.inf
        return found

    sets = draw(st.lists(st.lists(st.integers(0, n_labels - 1), unique=True).map(sorted), max_size=3))
    labels = rng.integers(-1 - len(sets), n_labels, size=sum(lengths)).astype(np.int32)
    return ChainProblem(
        values(sum(lengths), n_labels), values(n_labels, n_labels), values(n_labels), values(n_labels),
        np.cumsum([0, *lengths]).astype(np.int64), labels, sets,
    )  # fmt: skip
