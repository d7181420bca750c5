"""Twin of models/coupled.py and models/spaces.py: every way to bundle labels over a sentence written out.

A model is a dictionary of weights by name; a way is one bundle (a label per side) for each unit.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any

Bundle = tuple[int, ...]
Way = tuple[Bundle, ...]
Weights = dict[tuple[Any, ...], float]


def ways(candidates: Sequence[Iterable[Bundle]]) -> list[Way]:
    """All sequences of bundles, one of the candidates at each unit."""
    return list(itertools.product(*(sorted(set(here)) for here in candidates)))


def all_bundles(sizes: Sequence[int]) -> list[Bundle]:
    """Every combination of labels."""
    return list(itertools.product(*(range(size) for size in sizes)))


def counts(rows: Sequence[Sequence[int]], way: Way) -> dict[tuple[Any, ...], int]:
    """How often each weight is in the score of a way: li2015 Eq. 2, feature by feature."""
    found: dict[tuple[Any, ...], int] = {}

    def add(*name: Any) -> None:
        found[name] = found.get(name, 0) + 1

    for t, bundle in enumerate(way):
        for row in rows[t]:
            add("joint", row, bundle)
            for side, label in enumerate(bundle):
                add("separate", side, row, label)
        for side, label in enumerate(bundle):
            if t == 0:
                add("start", side, label)
            if t == len(way) - 1:
                add("end", side, label)
            if t > 0:
                add("trans", side, way[t - 1][side], label)
        if t > 0:
            add("pair", way[t - 1], bundle)
    return found


def score(weights: Weights, rows: Sequence[Sequence[int]], way: Way) -> float:
    """The score of a way; a weight that the model does not have is 0."""
    return sum(n * weights.get(name, 0.0) for name, n in counts(rows, way).items())


def log_total(weights: Weights, rows: Sequence[Sequence[int]], found: Sequence[Way]) -> float:
    """log Z over some ways."""
    scores = [score(weights, rows, way) for way in found]
    top = max(scores, default=-math.inf)
    return top if top == -math.inf else top + math.log(math.fsum(math.exp(one - top) for one in scores))


def expectations(weights: Weights, rows: Sequence[Sequence[int]], found: Sequence[Way]) -> dict[tuple[Any, ...], float]:
    """E[count] of each weight over some ways."""
    log_z = log_total(weights, rows, found)
    total: dict[tuple[Any, ...], float] = {}
    for way in found:
        p = math.exp(score(weights, rows, way) - log_z)
        for name, n in counts(rows, way).items():
            total[name] = total.get(name, 0.0) + p * n
    return total


def gradient(
    weights: Weights, rows: Sequence[Sequence[int]], allowed: Sequence[Way], whole: Sequence[Way]
) -> tuple[float, dict[tuple[Any, ...], float]]:
    """log Z(allowed) - log Z, and E_allowed[count] - E[count] (li2015 Eq. 4-6)."""
    value = log_total(weights, rows, allowed) - log_total(weights, rows, whole)
    inside, outside = expectations(weights, rows, allowed), expectations(weights, rows, whole)
    return value, {name: inside.get(name, 0.0) - outside.get(name, 0.0) for name in inside | outside}
