"""Weights by feature row, as a dictionary from (row, label) to a number: what may have a weight, and sums over it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Weights = dict[tuple[int, int], float]


def allowed_pairs(
    units: Iterable[Sequence[int]], labels: Iterable[Sequence[int]], n_labels: int, full_from: float
) -> set[tuple[int, int]]:
    """(row, label) of a unit's rows with the labels it allows; all labels of a row that has full_from of them."""
    seen: dict[int, set[int]] = {}
    for rows, allowed in zip(units, labels, strict=True):
        for row in rows:
            seen.setdefault(row, set()).update(allowed)
    return {
        (row, label) for row, found in seen.items() for label in (range(n_labels) if len(found) >= full_from else found)
    }


def score(rows: Sequence[int], weights: Weights, n_labels: int) -> list[float]:
    """The score of each label at a unit: the sum of the weights of its rows, a row twice if it is there twice."""
    return [sum(weights.get((row, label), 0.0) for row in rows) for label in range(n_labels)]


def add(rows: Sequence[int], weights: Weights, change: Sequence[float], rates: Sequence[float]) -> Weights:
    """The weights after each row's labels have changed so much; pairs without a weight stay without."""
    new = dict(weights)
    for row in rows:
        for label, value in enumerate(change):
            if (row, label) in new:
                new[row, label] += rates[row] * value
    return new


def occurrences(units: Sequence[Sequence[int]], n_rows: int) -> list[int]:
    """How often each row stands among the units."""
    return [sum(unit.count(row) for unit in map(list, units)) for row in range(n_rows)]
