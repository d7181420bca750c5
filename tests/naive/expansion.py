"""Expanded scores by enumeration (qiu2013 Eq. 6 to 15): dictionaries, every labelling with every expansion.

A label's expansion is a label of the other side or None. Twin of inference/expansion.py and training/multitask.py;
features, weights and scores are those of ``naive/learners.py``, once for each side.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from naive.learners import Labelling, Parameter, Weights

Expansion = tuple[int | None, ...]
Phi = Mapping[int, Sequence[int | None]]
"""phi(y): the labels that a label may bring along; None is none."""


def expansions(labels: Labelling, phi: Phi) -> list[Expansion]:
    """phi(y_1) x ... x phi(y_n)."""
    return list(itertools.product(*(phi[label] for label in labels)))


def features(rows: Sequence[Sequence[int]], labels: Sequence[int | None]) -> Counter[Parameter]:
    """Phi(x, z): every parameter that labels use; what touches None is not there."""
    found: Counter[Parameter] = Counter()
    for here, label in zip(rows, labels, strict=True):
        if label is not None:
            found.update(("row", row, label) for row in here)
    if labels[0] is not None:
        found["start", labels[0]] += 1
    if labels[-1] is not None:
        found["end", labels[-1]] += 1
    found.update(("step", i, j) for i, j in itertools.pairwise(labels) if i is not None and j is not None)
    return found


def value(weights: Weights, found: Counter[Parameter]) -> float:
    """w . Phi; a start, step or end without a weight is forbidden."""
    return sum(count * weights.get(name, 0.0 if name[0] == "row" else -math.inf) for name, count in found.items())


@dataclass(frozen=True)
class Task:
    """A sentence of one side: rows as this side and as the other sees them, right labels, both sides' weights.

    help: what Phi of an expansion is multiplied by
    """

    rows: tuple[tuple[int, ...], ...]
    other_rows: tuple[tuple[int, ...], ...]
    allowed: tuple[tuple[int, ...], ...]
    own: Weights
    other: Weights
    n_labels: int
    phi: Phi
    help: float = 1.0

    def scores(self) -> dict[tuple[Labelling, Expansion], float]:
        """Every labelling with every expansion that is possible, and its score (Eq. 6)."""
        found = {}
        for labels in itertools.product(range(self.n_labels), repeat=len(self.rows)):
            mine = value(self.own, features(self.rows, labels))
            if mine == -math.inf:
                continue
            for other in expansions(labels, self.phi):
                score = mine + self.help * value(self.other, features(self.other_rows, other))
                if score > -math.inf:
                    found[labels, other] = score
        return found

    def is_right(self, labels: Labelling) -> bool:
        """Whether every unit has a label that is right there."""
        return all(label in fine for label, fine in zip(labels, self.allowed, strict=True))

    def n_wrong(self, labels: Labelling) -> int:
        """How many units have a wrong label."""
        return sum(label not in fine for label, fine in zip(labels, self.allowed, strict=True))

    def best(self, right: bool) -> tuple[tuple[Labelling, Expansion], float] | None:
        """The best that is right, or the best that is wrong somewhere (Eq. 11)."""
        some = {pair: score for pair, score in self.scores().items() if self.is_right(pair[0]) == right}
        return max(some.items(), key=lambda item: item[1]) if some else None

    def change(self, gold: tuple[Labelling, Expansion], wrong: tuple[Labelling, Expansion]) -> tuple[Weights, Weights]:
        """e of Eq. 15 on both sides, over the parameters that have a weight."""
        found = []
        for k, (rows, weights) in enumerate(((self.rows, self.own), (self.other_rows, self.other))):
            e = features(rows, gold[k])
            e.subtract(features(rows, wrong[k]))
            factor = self.help if k else 1.0
            found.append({name: factor * count for name, count in e.items() if count and name in weights})
        return found[0], found[1]


def norm(change: tuple[Weights, Weights]) -> float:
    """|e|^2."""
    return sum(count * count for part in change for count in part.values())


def move(weights: Weights, change: Weights, tau: float) -> Weights:
    """w + tau e."""
    return {name: weight + tau * change.get(name, 0.0) for name, weight in weights.items()}


def quadratic_program(e: Sequence[float], loss: float, c: float) -> tuple[list[float], float]:
    """Eq. 14 solved by itself: min |d|^2 / 2 + C xi  s.t.  e . d >= loss - xi, xi >= 0; the step d and xi.

    The minimum lies where the gradient vanishes under one of the two faces: the constraint is tight with xi = 0, or xi
    is above 0. Each face is solved by bisection on its dual variable, the price of the constraint, between 0 and C.
    """
    low, high = 0.0, c
    for _ in range(200):
        price = (low + high) / 2
        d = [price * one for one in e]  # where |d|^2 / 2 - price * (e . d) is least
        left = loss - sum(one * step for one, step in zip(e, d, strict=True))
        if left > 0:
            low = price
        else:
            high = price
    d = [high * one for one in e]
    return d, max(0.0, loss - sum(one * step for one, step in zip(e, d, strict=True)))
