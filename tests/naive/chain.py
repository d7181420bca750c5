"""Linear chains by enumeration: every labelling of one sentence is scored, one by one, from the definition."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any

Labelling = tuple[int, ...]
Scores = dict[Labelling, float]
INF = math.inf


def score(labels: Sequence[int], node: Any, trans: Any, start: Any, end: Any) -> float:
    """The sum of the parts that a labelling uses; 0 for the labelling of an empty sentence."""
    if not labels:
        return 0.0
    total = float(start[labels[0]]) + float(end[labels[-1]])
    total += sum(float(node[t][label]) for t, label in enumerate(labels))
    return total + sum(float(trans[i][j]) for i, j in itertools.pairwise(labels))


def all_scores(
    node: Any, trans: Any, start: Any, end: Any, allowed: Sequence[Iterable[int]] | None = None
) -> dict[Labelling, float]:
    """Every possible labelling and its score: those with a score of -inf are left out."""
    choices = [range(len(trans)) for _ in node] if allowed is None else allowed
    found = {labels: score(labels, node, trans, start, end) for labels in itertools.product(*choices)}
    return {labels: value for labels, value in found.items() if value > -INF}


def allowed_labels(label: int, sets: Sequence[Sequence[int]], n_labels: int) -> list[int]:
    """What a label number of a corpus allows: one label, all of them, or a set."""
    if label >= 0:
        return [label]
    return list(range(n_labels)) if label == -1 else sorted(sets[-2 - label])


def log_sum(values: Iterable[float]) -> float:
    """log of the sum of the exponentials."""
    values = list(values)
    top = max(values, default=-INF)
    return top if top == -INF else top + math.log(math.fsum(math.exp(value - top) for value in values))


def log_partition(scores: Scores) -> float:
    """log Z."""
    return log_sum(scores.values())


def probabilities(scores: Scores) -> Scores:
    """The share of each labelling."""
    log_z = log_partition(scores)
    return {labels: math.exp(value - log_z) for labels, value in scores.items()}


def marginal(scores: Scores, t: int, label: int) -> float:
    """The share of the labellings that have the label at unit t."""
    return math.fsum(p for labels, p in probabilities(scores).items() if labels[t] == label)


def expected_pairs(scores: Scores, n_labels: int) -> list[list[float]]:
    """[i][j]: how often label j follows label i, on average."""
    counts = [[0.0] * n_labels for _ in range(n_labels)]
    for labels, p in probabilities(scores).items():
        for i, j in itertools.pairwise(labels):
            counts[i][j] += p
    return counts


def span(scores: Scores, begin: int, labels: Sequence[int]) -> float:
    """The share of the labellings that have exactly these labels from unit begin on."""
    end = begin + len(labels)
    return math.fsum(p for found, p in probabilities(scores).items() if found[begin:end] == tuple(labels))


def ranked(scores: Scores) -> list[tuple[float, Labelling]]:
    """All labellings, best first; of equals the one whose last differing label is smaller."""
    return sorted(((value, labels) for labels, value in scores.items()), key=lambda one: (-one[0], one[1][::-1]))


def best(scores: Scores) -> Labelling:
    """The best labelling; of equals the one whose last differing label is smaller."""
    return ranked(scores)[0][1]


def best_wrong(scores: Scores, allowed: Sequence[Iterable[int]]) -> float:
    """The best score of a labelling that somewhere has a label that is not allowed there; -inf when there is none."""
    sets = [set(labels) for labels in allowed]
    wrong = [
        value
        for labels, value in scores.items()
        if any(label not in fine for label, fine in zip(labels, sets, strict=True))
    ]
    return max(wrong, default=-INF)
