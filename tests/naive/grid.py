"""Twins of duilian/inference/grid.py: label sequences of every side, all combinations, scored by definition."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

Sequences = tuple[tuple[int, ...], ...]
"""Per side the labels of a sentence."""


def every(sizes: Sequence[int], length: int) -> list[Sequences]:
    """All combinations of label sequences."""
    return list(itertools.product(*(itertools.product(range(size), repeat=length) for size in sizes)))


def score(
    sequences: Sequences,
    nodes: Sequence[Sequence[Sequence[float]]],
    tables: Sequence[Sequence[Sequence[float]]],
    node_joint: Callable[[int, tuple[int, ...]], float],
    joint: Callable[[tuple[int, ...], tuple[int, ...]], float],
) -> float:
    """Scores of each side by itself, and of what is joint (li2015 Eq. 2)."""
    total = 0.0
    for labels, node, table in zip(sequences, nodes, tables, strict=True):
        total += sum(row[label] for row, label in zip(node, labels, strict=True))
        total += sum(table[a][b] for a, b in itertools.pairwise(labels))
    bundled = list(zip(*sequences, strict=True))
    total += sum(node_joint(t, bundle) for t, bundle in enumerate(bundled))
    return total + sum(joint(a, b) for a, b in itertools.pairwise(bundled))


def probabilities(scores: Sequence[float]) -> tuple[float, list[float]]:
    """log Z, and each score's share."""
    top = max(scores)
    if top == -math.inf:
        return top, [0.0] * len(scores)
    log_z = top + math.log(math.fsum(math.exp(s - top) for s in scores))
    return log_z, [math.exp(s - log_z) for s in scores]
