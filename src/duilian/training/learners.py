"""Learners: what finds the weights of a chain, one epoch at a time. CrfLearner by SGD, OnlineLearner by mistakes.

A learner is a model with empty weights, data, and numbers that change. ``tensors`` and ``restore`` carry those numbers
over an interruption; the order of sentences comes from the seed and the epoch alone.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from duilian.errors import DuilianError
from duilian.inference.chain import runs_of
from duilian.models.chain import Chain
from duilian.models.weights import Features, occurrences
from duilian.training.data import TrainingData, dropout, shuffled
from duilian.training.online import online_pass
from duilian.training.sgd import Steps, blend, crf_steps


class Learner(Protocol):
    """What the training loop needs."""

    def warm_up(self) -> None:
        """Compile every kernel that an epoch needs, and change nothing."""

    def epoch(self, number: int) -> tuple[float, int]:
        """Walk the data once; the objective, and how many units were visited."""

    def current(self) -> Any:
        """The model as it stands, averaged."""

    def tensors(self) -> dict[str, NDArray[Any]]:
        """Everything that an interruption must not lose."""

    def restore(self, tensors: dict[str, NDArray[Any]]) -> None:
        """Take up where ``tensors`` left off."""


class CrfLearner:
    """Log-likelihood by SGD. The model is a polynomial-decay average of the weights after every part of an epoch."""

    PARTS = 5
    DECAY = 3.0
    CALIBRATION_SENTENCES = 1000

    def __init__(self, chain: Chain, data: TrainingData, settings: dict[str, Any], seed: int) -> None:
        self.chain, self.data, self.settings, self.seed = chain, data, settings, seed
        self.weights = chain.rows.weights.copy()
        self.trans, self.start, self.end = chain.trans.copy(), chain.start.copy(), chain.end.copy()
        self.steps = Steps(np.zeros(1, np.int64), np.ones(1), np.zeros(1, np.int64))
        self.means = [np.zeros(part.shape, np.float64) for part in (self.weights, self.trans, self.start, self.end)]
        self.n_means = np.zeros(1, np.int64)
        self.eta = np.array([settings["eta"]], np.float64)
        self.back = runs_of((chain.trans > -np.inf).T)
        self.decay = settings["c2"] / max(len(data), 1)
        counts = occurrences(data.features, len(chain.rows))
        self.rare = counts <= settings.get("rare", 0)
        self.rates = row_rates(counts, settings["common"])
        self.table_rate = float(row_rates(np.array([len(data.labels) / len(chain.names)]), settings["common"])[0])
        self._room: list[Any] = []

    def _walk(self, order: Any, features: Any, eta: float, parts: Any, steps: Steps) -> float:
        weights, trans, start, end = parts
        data = self.data
        return float(
            crf_steps(
                self.chain.rows.sparse(weights), trans, start, end, self.chain.runs, self.back, features, data.labels,
                data.sets.data, data.sets.offsets, data.sentences, order, self.settings["batch"], steps, eta,
                self.decay, self.rates, self.table_rate, data.gains,
            )
        )  # fmt: skip

    def warm_up(self) -> None:
        """A walk over no sentences."""
        parts = (self.weights, self.trans, self.start, self.end)
        self._walk(np.zeros(0, np.int64), self.data.features, 0.0, parts, self.steps)
        for mean, part in zip(self.means, parts, strict=True):
            blend(mean.reshape(-1)[:0], part.reshape(-1)[:0], 1.0, 0.0)
        _warm_up_dropout(self.settings)

    def calibrate(self) -> float:
        """The rate that serves a sample best after one walk: 0.1, doubled or halved while that helps (CRFsuite)."""
        order = shuffled(len(self.data), self.seed, -1 & 0xFFFF, self.CALIBRATION_SENTENCES)
        tried: dict[int, float] = {}

        def loss(power: int) -> float:
            if power not in tried:
                parts = [part.copy() for part in (self.weights, self.trans, self.start, self.end)]
                steps = Steps(np.zeros(1, np.int64), np.ones(1), np.zeros(1, np.int64))
                eta = 0.1 * 2.0**power
                self._walk(order, self.data.features, eta, parts, steps)
                after = -self._walk(order, self.data.features, 0.0, parts, steps)
                tried[power] = after if np.isfinite(after) and not steps.skipped[0] else np.inf
            return tried[power]

        best = 0
        for way in (1, -1):
            while abs(best) < 10 and loss(best + way) < loss(best):
                best += way
            if best:
                break
        return float(0.1 * 2.0**best)

    def epoch(self, number: int) -> tuple[float, int]:
        """One walk over the data, or over a sample of it."""
        if self.eta[0] <= 0:
            self.eta[0] = self.calibrate()
        data, rate = self.data, self.settings["dropout"]
        features = dropout(
            data.features, rate, self.seed * 1000 + number, self._room, self.rare, self.settings.get("hide", 0.0)
        )
        order = shuffled(len(data), self.seed, number, self.settings["sample"])
        total = 0.0
        parts = (self.weights, self.trans, self.start, self.end)
        self.steps.skipped[0] = 0
        for piece in np.array_split(order, self.PARTS):
            total += self._walk(piece, features, float(self.eta[0]), parts, self.steps)
            self.n_means += 1
            share = (self.DECAY + 1) / (int(self.n_means[0]) + self.DECAY)
            for mean, part in zip(self.means, parts, strict=True):
                blend(mean.reshape(-1), part.reshape(-1), float(self.steps.scale[0]), share)
        if self.steps.scale[0] < 1e-4:
            self._rescale()
        if self.steps.skipped[0] > len(order) // 10 or not np.isfinite(total):
            raise DuilianError(
                f"training ran away in epoch {number}: {self.steps.skipped[0]} sentences had no finite probability. "
                f"The rate was {self.eta[0]:g}: try --set eta={self.eta[0] / 4:g}."
            )
        return total, int(np.diff(data.sentences)[order].sum())

    def _rescale(self) -> None:
        """Fold the scale into the weights before it gets too small for float32."""
        for part in (self.weights, self.trans, self.start, self.end):
            part *= np.float32(self.steps.scale[0])
        self.steps.scale[0] = 1.0

    def current(self) -> Chain:
        """The averaged model; dropped features count fully again."""
        weights, trans, start, end = self.means
        return self.chain.with_weights(weights * (1 - self.settings["dropout"]), trans, start, end)

    def tensors(self) -> dict[str, NDArray[Any]]:
        """Everything that an interruption must not lose."""
        found: dict[str, NDArray[Any]] = {"weights": self.weights, "trans": self.trans, "start": self.start}
        found |= {"end": self.end, "eta": self.eta}
        found |= {f"mean{k}": mean for k, mean in enumerate(self.means)}
        return found | {
            "n_means": self.n_means,
            "taken": self.steps.taken,
            "scale": self.steps.scale,
            "skipped": self.steps.skipped,
        }

    def restore(self, tensors: dict[str, NDArray[Any]]) -> None:
        """Take up where ``tensors`` left off."""
        restore(self.tensors(), tensors)


def row_rates(counts: NDArray[Any], common: float) -> NDArray[np.float32]:
    """What the step of a row is multiplied by: near 1 below ``common`` occurrences, then falling with their root."""
    return np.asarray(1 / np.sqrt(1 + counts / common), np.float32)


class OnlineLearner:
    """Averaged perceptron, or PA-I where the setting C is above 0."""

    def __init__(self, chain: Chain, data: TrainingData, settings: dict[str, Any], seed: int) -> None:
        self.chain, self.data, self.settings, self.seed = chain, data, settings, seed
        self.weights = chain.rows.weights.copy()
        self.sums = np.zeros_like(self.weights)
        self.table = np.concatenate([chain.trans.reshape(-1), chain.start, chain.end])
        self.table_sums = np.zeros_like(self.table)
        counts = occurrences(data.features, len(chain.rows))
        self.rare = counts <= settings.get("rare", 0)
        self.now = np.ones(1, np.int64)
        self._room: list[Any] = []

    def epoch(self, number: int) -> tuple[float, int]:
        """One pass over the data, or over a sample of it."""
        data, settings = self.data, self.settings
        features = dropout(
            data.features, settings["dropout"], self.seed * 1000 + number, self._room, self.rare,
            settings.get("hide", 0.0),
        )  # fmt: skip
        order = shuffled(len(data), self.seed, number, settings["sample"])
        wrong = self._walk(order, features)
        self.now += len(order)
        return -float(wrong), int(np.diff(data.sentences)[order].sum())

    def warm_up(self) -> None:
        """A pass over no sentences."""
        self._walk(np.zeros(0, np.int64), self.data.features)
        _warm_up_dropout(self.settings)

    def _walk(self, order: Any, features: Any) -> int:
        data, settings = self.data, self.settings
        wrong = online_pass(
            self.chain.rows.sparse(self.weights), self.sums, self.table, self.table_sums, self.chain.runs, features,
            data.labels, data.sets.data, data.sets.offsets, data.sentences, order, int(self.now[0]),
            settings.get("C", 0.0), settings.get("margin") == "errors", data.gains,
        )  # fmt: skip
        return int(wrong)

    def current(self) -> Chain:
        """The averaged model; dropped features count fully again."""
        n, size = np.float32(self.now[0]), len(self.chain.names)
        table = np.where(self.table > -np.inf, self.table - self.table_sums / n, self.table)
        weights = (self.weights - self.sums / n) * np.float32(1 - self.settings["dropout"])
        cut = size * size
        return self.chain.with_weights(
            weights, table[:cut].reshape(size, size), table[cut : cut + size], table[cut + size :]
        )

    def tensors(self) -> dict[str, NDArray[Any]]:
        """Everything that an interruption must not lose."""
        return {
            "weights": self.weights,
            "sums": self.sums,
            "table": self.table,
            "table_sums": self.table_sums,
            "now": self.now,
        }

    def restore(self, tensors: dict[str, NDArray[Any]]) -> None:
        """Take up where ``tensors`` left off."""
        restore(self.tensors(), tensors)


def _warm_up_dropout(settings: dict[str, Any]) -> None:
    if settings["dropout"] > 0 or settings.get("hide", 0) > 0:
        none = Features(np.zeros(0, np.int32), np.zeros(1, np.int64))
        dropout(none, 0.5, 0, [])


def restore(into: dict[str, NDArray[Any]], tensors: dict[str, NDArray[Any]]) -> None:
    """Copy each array over its namesake; shapes and types must agree."""
    for name, array in into.items():
        found = tensors.get(name)
        if found is None or found.shape != array.shape or found.dtype != array.dtype:
            raise DuilianError("the checkpoint was made from other data or settings: start again without --resume.")
        array[...] = found
