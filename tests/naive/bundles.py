"""Twins of duilian/inference/bundles.py: every path of a lattice written out one by one."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

Bundle = tuple[int, ...]


def paths(candidates: Sequence[Sequence[Bundle]]) -> list[tuple[int, ...]]:
    """All ways to choose one candidate per token, as positions in the lists."""
    return list(itertools.product(*(range(len(bundles)) for bundles in candidates)))


def score(
    candidates: Sequence[Sequence[Bundle]],
    node: Sequence[Sequence[float]],
    step: Callable[[Bundle, Bundle], float],
    path: Sequence[int],
) -> float:
    """Sum of node scores and of the scores of all steps."""
    total = sum(node[t][k] for t, k in enumerate(path))
    chosen = [candidates[t][k] for t, k in enumerate(path)]
    return total + sum(step(a, b) for a, b in itertools.pairwise(chosen))


def step_score(
    tables: Sequence[Sequence[Sequence[float]]], joint: Callable[[Bundle, Bundle], float] | None = None
) -> Callable[[Bundle, Bundle], float]:
    """Score of two neighbouring bundles from one table per side, and a weight for the pair."""

    def step(a: Bundle, b: Bundle) -> float:
        value = sum(tables[s][a[s]][b[s]] for s in range(len(tables)))
        return value + (joint(a, b) if joint else 0.0)

    return step


def log_total(scores: Sequence[float]) -> float:
    """log of the sum of exponentials."""
    top = max(scores, default=-math.inf)
    return top if top == -math.inf else top + math.log(math.fsum(math.exp(s - top) for s in scores))


def distribution(
    candidates: Sequence[Sequence[Bundle]], node: Sequence[Sequence[float]], step: Callable[[Bundle, Bundle], float]
) -> tuple[float, dict[tuple[int, ...], float]]:
    """log Z and the probability of every path."""
    scores = {path: score(candidates, node, step, path) for path in paths(candidates)}
    log_z = log_total(list(scores.values()))
    if log_z == -math.inf:
        return log_z, {}
    return log_z, {path: math.exp(value - log_z) for path, value in scores.items()}


def marginal(chances: dict[tuple[int, ...], float], t: int, k: int) -> float:
    """P(candidate k at token t)."""
    return math.fsum(p for path, p in chances.items() if path[t] == k)


def expected_steps(
    candidates: Sequence[Sequence[Bundle]], chances: dict[tuple[int, ...], float]
) -> dict[tuple[Bundle, Bundle], float]:
    """How often each pair of neighbouring bundles is expected."""
    found: dict[tuple[Bundle, Bundle], float] = {}
    for path, p in chances.items():
        for t in range(len(path) - 1):
            pair = (candidates[t][path[t]], candidates[t + 1][path[t + 1]])
            found[pair] = found.get(pair, 0.0) + p
    return found


def span(
    candidates: Sequence[Sequence[Bundle]],
    chances: dict[tuple[int, ...], float],
    side: int,
    labels: Sequence[int],
    begin: int,
    end: int,
) -> float:
    """P(one side carries labels[begin:end] there)."""
    return math.fsum(
        p for path, p in chances.items() if all(candidates[t][path[t]][side] == labels[t] for t in range(begin, end))
    )
