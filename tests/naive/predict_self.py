"""Predict-self reestimation from its definition: every y is scored both ways, feature by feature, one by one."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from naive import features as naive

Labels = tuple[int, ...]


@dataclass
class Model:
    """Weights of (feature, label), of label pairs, of how sentences start and end."""

    templates: Sequence[str]
    weights: Mapping[tuple[naive.Feature, int], float]
    trans: Sequence[Sequence[float]]
    start: Sequence[float]
    end: Sequence[float]


def score(model: Model, sentence: Sequence[str], guide: Sequence[int], labels: Sequence[int]) -> float:
    """S(labels | model, guide): the sum of all weights that are in it."""
    total = model.start[labels[0]] + model.end[labels[-1]]
    total += sum(model.trans[i][j] for i, j in itertools.pairwise(labels))
    for found, label in zip(naive.features(sentence, model.templates, guide=guide), labels, strict=True):
        total += sum(model.weights.get((feature, label), 0.0) for feature in found)
    return total


def plus_scores(
    forward: Model, backward: Model, ratio: float, sentence: Sequence[str], x: Sequence[int]
) -> dict[Labels, float]:
    """S+(y) of every y that both ways allow (jiang2012 Eq. 2); 0 times what is impossible is impossible."""
    found = {}
    for y in itertools.product(range(len(forward.start)), repeat=len(sentence)):
        there, back = score(forward, sentence, x, y), score(backward, sentence, y, x)
        if there > -math.inf and back > -math.inf:
            found[y] = (1 - ratio) * there + ratio * back
    return found
