"""The training loop: epochs, dev scores, the best model, patience, and what an interruption must not lose.

It prints nothing: it yields a Progress after every epoch, and whoever iterates draws a bar, streams, or collects.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from duilian.training.learners import Learner


class Model(Protocol):
    """What the loop needs of a model: its numbers, and itself with other numbers."""

    def numbers(self) -> dict[str, NDArray[Any]]:
        """Everything that training changes."""

    def with_numbers(self, numbers: dict[str, NDArray[Any]]) -> Any:
        """The same model with other numbers."""


@dataclass(frozen=True)
class Progress:
    """One epoch: what it did and where training stands."""

    epoch: int
    epochs: int
    objective: float
    dev: dict[str, float]
    best: bool
    tokens: int
    seconds: float


class Loop:
    """Epochs of one learner. ``model`` is the best so far; iterate to train.

    score: model -> dev score of each side, the first decides; None keeps the last model
    stage: a name, where a method trains several models after each other
    """

    def __init__(
        self,
        learner: Learner,
        score: Callable[[Any], dict[str, float]] | None,
        epochs: int,
        patience: int,
        stage: str = "",
    ) -> None:
        self.learner, self.score, self.epochs, self.patience, self.stage = learner, score, epochs, patience, stage
        self.history: list[Progress] = []
        self.model: Any = None
        self.tokens, self.seconds = 0, 0.0

    @property
    def best(self) -> Progress | None:
        """The epoch that the model comes from."""
        return next((progress for progress in reversed(self.history) if progress.best), None)

    @property
    def done(self) -> bool:
        """Whether all epochs are run or the best is too long ago."""
        last = len(self.history)
        return last >= self.epochs or (
            self.score is not None and self.best is not None and last - self.best.epoch >= self.patience
        )

    def __iter__(self) -> Iterator[Progress]:
        self.learner.warm_up()
        while not self.done:
            yield self.step()

    def step(self) -> Progress:
        """One more epoch."""
        began = time.perf_counter()
        number = len(self.history) + 1
        objective, tokens = self.learner.epoch(number)
        self.seconds += time.perf_counter() - began
        self.tokens += tokens
        model = self.learner.current()
        dev = {} if self.score is None else self.score(model)
        before = self.best
        first = next(iter(dev), "")
        # By name: a checkpoint's dev scores come back sorted.
        better = before is None or not dev or dev[first] > before.dev[first]
        if better:
            self.model = model
        progress = Progress(number, self.epochs, objective, dev, better, self.tokens, self.seconds)
        self.history.append(progress)
        return progress

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """A checkpoint of the loop: header fields and tensors."""
        tensors = {f"learner.{name}": np.asarray(array) for name, array in self.learner.tensors().items()}
        if self.model is not None:
            tensors |= {f"best.{name}": np.asarray(array) for name, array in self.model.numbers().items()}
        return {"history": [asdict(progress) for progress in self.history], "stage": self.stage}, tensors

    def restore(self, header: dict[str, Any], tensors: dict[str, NDArray[Any]]) -> None:
        """Go on from a checkpoint."""

        def named(prefix: str) -> dict[str, NDArray[Any]]:
            return {name[len(prefix) :]: array for name, array in tensors.items() if name.startswith(prefix)}

        self.learner.restore(named("learner."))
        self.history = [Progress(**record) for record in header["history"]]
        if self.history:
            self.model = self.learner.current().with_numbers(named("best."))
            self.tokens, self.seconds = self.history[-1].tokens, self.history[-1].seconds
