"""Learners from their equations: dictionaries of weights, one sentence at a time, every labelling enumerated.

A parameter is ("row", row, label), ("start", label), ("step", label, label) or ("end", label); one that is missing from
the weights is forbidden if it is a start, step or end (-inf), and 0 for ever if it is a row.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from naive import chain

Parameter = tuple[str | int, ...]
Weights = dict[Parameter, float]
Labelling = tuple[int, ...]


@dataclass(frozen=True)
class Sentence:
    """Rows of each unit, and the labels that each unit allows."""

    rows: tuple[tuple[int, ...], ...]
    allowed: tuple[tuple[int, ...], ...]


def features(sentence: Sentence, labels: Labelling) -> Counter[Parameter]:
    """Phi(x, y): how often each parameter is used."""
    found: Counter[Parameter] = Counter()
    for rows, label in zip(sentence.rows, labels, strict=True):
        found.update(("row", row, label) for row in rows)
    found["start", labels[0]] += 1
    found["end", labels[-1]] += 1
    found.update(("step", i, j) for i, j in itertools.pairwise(labels))
    return found


def value(weights: Weights, found: Counter[Parameter]) -> float:
    """w . Phi."""
    return sum(count * weights.get(name, 0.0 if name[0] == "row" else -math.inf) for name, count in found.items())


def all_scores(sentence: Sentence, weights: Weights, n_labels: int, constrained: bool = False) -> chain.Scores:
    """Every possible labelling and its score."""
    choices: Iterable[Iterable[int]] = sentence.allowed if constrained else [range(n_labels)] * len(sentence.rows)
    found = {labels: value(weights, features(sentence, labels)) for labels in itertools.product(*choices)}
    return {labels: score for labels, score in found.items() if score > -math.inf}


# Log-likelihood -----------------------------------------------------------------------------------------------------


def log_likelihood(sentence: Sentence, weights: Weights, n_labels: int) -> float:
    """log p(V | x) = log Z(x, V) - log Z(x)                                                       li2015 Eq. 5"""
    held = chain.log_partition(all_scores(sentence, weights, n_labels, constrained=True))
    return held - chain.log_partition(all_scores(sentence, weights, n_labels))


def objective(sentences: Sequence[Sentence], weights: Weights, n_labels: int, decay: float) -> float:
    """Log-likelihood with an L2 term, decay / 2 of the squared weights for the whole batch."""
    likely = sum(log_likelihood(sentence, weights, n_labels) for sentence in sentences)
    return likely - decay / 2 * sum(weight * weight for weight in weights.values())


def gradient(sentences: Sequence[Sentence], weights: Weights, n_labels: int, decay: float) -> Weights:
    """Central differences of the objective."""
    h = 1e-5
    slopes = {}
    for name, weight in weights.items():
        up, down = ({**weights, name: weight + way * h} for way in (1, -1))
        slopes[name] = (objective(sentences, up, n_labels, decay) - objective(sentences, down, n_labels, decay)) / (
            2 * h
        )
    return slopes


# By mistakes --------------------------------------------------------------------------------------------------------


def gold_of(sentence: Sentence, weights: Weights, n_labels: int) -> Labelling | None:
    """The best labelling among those allowed; None where there is none."""
    scores = all_scores(sentence, weights, n_labels, constrained=True)
    return chain.best(scores) if scores else None


def perceptron_update(sentence: Sentence, weights: Weights, n_labels: int) -> Counter[Parameter]:
    """Phi(x, gold) - Phi(x, pred); nothing where pred is right or gold impossible."""
    gold = gold_of(sentence, weights, n_labels)
    if gold is None:
        return Counter()
    pred = chain.best(all_scores(sentence, weights, n_labels))
    return difference(sentence, gold, pred) if pred != gold else Counter()


def difference(sentence: Sentence, gold: Labelling, pred: Labelling) -> Counter[Parameter]:
    """Phi(x, gold) - Phi(x, pred), without zeros."""
    change = features(sentence, gold)
    change.subtract(features(sentence, pred))
    return Counter({name: count for name, count in change.items() if count})


@dataclass(frozen=True)
class Mistake:
    """What a step of PA-I has to mend: e = Phi(x, gold) - Phi(x, wrong), and the loss, margin asked less margin had."""

    change: Counter[Parameter]
    loss: float

    @property
    def norm(self) -> int:
        """|e|^2."""
        return sum(count * count for count in self.change.values())

    def tau(self, c: float) -> float:
        """PA-I's step along e                                                    Crammer et al. 2006, Figure 1"""
        return min(c, self.loss / self.norm) if self.norm else 0.0

    def objective(self, tau: float, c: float) -> float:
        """What PA-I minimises, at w + tau e: half the squared distance from w, plus C times the loss that is left."""
        return tau * tau * self.norm / 2 + c * max(0.0, self.loss - tau * self.norm)


def pa_mistake(sentence: Sentence, weights: Weights, n_labels: int, by_errors: bool) -> Mistake:
    """Gold against the best labelling that some unit does not allow; no change where there is nothing to mend."""
    gold = gold_of(sentence, weights, n_labels)

    def n_wrong(labels: Labelling) -> int:
        return sum(label not in fine for label, fine in zip(labels, sentence.allowed, strict=True))

    scores = all_scores(sentence, weights, n_labels)
    wrong = {labels: score for labels, score in scores.items() if n_wrong(labels)}
    if gold is None or not wrong:
        return Mistake(Counter(), 0.0)
    pred = chain.best(wrong)
    loss = max(0.0, (n_wrong(pred) if by_errors else 1) - (scores[gold] - scores[pred]))
    # A parameter without a weight cannot move: it is no part of e.
    change = {name: count for name, count in difference(sentence, gold, pred).items() if name in weights}
    return Mistake(Counter(change if loss else {}), loss)


def step(weights: Weights, change: Counter[Parameter], tau: float = 1.0) -> Weights:
    """w + tau e; parameters that have no weight stay without."""
    return {name: weight + tau * change[name] for name, weight in weights.items()}


def average(history: Sequence[Weights]) -> Weights:
    """The mean of the weights before the first step and after each."""
    return {name: sum(weights[name] for weights in history) / len(history) for name in history[0]}
