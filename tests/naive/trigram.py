"""Second-order chains by enumeration: every labelling of a sentence is scored, one by one, from the definition."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

Labelling = tuple[int, ...]


def score(labels: Sequence[int], emission: Callable[[int, int, int], float], table: Any, boundary: int) -> float:
    """sum_t table[y_(t-2)][y_(t-1)][y_t] + emission(t, y_(t-1), y_t), and the step to the end."""
    padded = [boundary, boundary, *labels, boundary]
    total = sum(float(table[padded[t]][padded[t + 1]][padded[t + 2]]) for t in range(len(labels) + 1))
    return total + sum(emission(t, padded[t + 1], padded[t + 2]) for t in range(len(labels)))


def all_scores(
    candidates: Sequence[Sequence[int]], emission: Callable[[int, int, int], float], table: Any, boundary: int
) -> dict[Labelling, float]:
    """Every labelling and its score."""
    return {labels: score(labels, emission, table, boundary) for labels in itertools.product(*candidates)}


def log_partition(scores: dict[Labelling, float]) -> float:
    """log of the sum of the exponentials."""
    top = max(scores.values())
    if top == -math.inf:
        return -math.inf
    return top + math.log(sum(math.exp(value - top) for value in scores.values()))


def marginal(scores: dict[Labelling, float], t: int, label: int) -> float:
    """The share of the labellings that have the label at token t."""
    log_z = log_partition(scores)
    if log_z == -math.inf:
        return 0.0
    return sum(math.exp(value - log_z) for labels, value in scores.items() if labels[t] == label)


def ranked(scores: dict[Labelling, float]) -> list[float]:
    """The scores of all possible labellings, best first."""
    return sorted((value for value in scores.values() if value > -math.inf), reverse=True)
