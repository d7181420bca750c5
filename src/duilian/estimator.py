"""Estimator: lists in, lists out, in the manner of scikit-learn (which it does not need).

from duilian import Estimator
tagger = Estimator("perceptron", epochs=5).fit([["the", "dog"], ["dogs", "bark"]], [["DT", "NN"], ["NNS", "VBP"]])
tagger.predict([["the", "dogs"]])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from duilian import methods
from duilian.corpus import Label, build
from duilian.errors import UsageError
from duilian.tagger import Tagger

Words = Sequence[Sequence[str]]


class Estimator:
    """A tagger of given words for one standard. Settings are those of the method (``METHODS[method].settings``).

    After ``fit``: tagger_ (to save, or to ask for more), classes_, history_.
    """

    def __init__(self, method: str = "crf", *, seed: int = 1, **settings: Any) -> None:
        self.method, self.seed, self.settings = method, seed, settings
        self.tagger_: Tagger | None = None

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """What it was made with."""
        return {"method": self.method, "seed": self.seed, **self.settings}

    def set_params(self, **params: Any) -> Self:
        """Change what it is made with."""
        self.method, self.seed = params.pop("method", self.method), params.pop("seed", self.seed)
        self.settings = {**self.settings, **params}
        return self

    def fit(
        self, X: Words, y: Sequence[Sequence[Label]], dev: tuple[Words, Sequence[Sequence[Label]]] | None = None
    ) -> Self:
        """Learn from sentences and their labels; a label may be None (unknown) or a frozenset (one of these).

        dev: (sentences, labels) on which the best epoch is chosen
        """
        train, held = _corpus(X, y), None if dev is None else _corpus(*dev)
        run = methods.train(self.method, [methods.Side("y", train, held)], "pos", self.settings, self.seed)
        self.history_ = list(run)
        self.tagger_ = run.tagger
        self.classes_ = list(self.tagger_.side().tags)
        return self

    def predict(self, X: Words) -> list[list[str]]:
        """The best labels of each sentence."""
        tagged = self._fitted().tag(_corpus(X, None))
        return [[str(label) for label in labels] for labels in tagged.tags()]

    def predict_proba(self, X: Words) -> list[list[float]]:
        """The probability of each label that ``predict`` gives."""
        layer = self._fitted().tag(_corpus(X, None), confidence=True).layer()
        assert layer.confidence is not None
        return [
            layer.confidence[begin:end].tolist()
            for begin, end in zip(layer.offsets[:-1], layer.offsets[1:], strict=True)
        ]

    def score(self, X: Words, y: Sequence[Sequence[Label]]) -> float:
        """Accuracy, from 0 to 1."""
        from duilian.evaluation import evaluate

        gold = _corpus(X, y)
        return float(evaluate(gold, self._fitted().tag(gold), task="pos")["accuracy"]) / 100

    def _fitted(self) -> Tagger:
        if self.tagger_ is None:
            raise UsageError("this estimator is not fitted yet: call fit(X, y) first.")
        return self.tagger_


def _corpus(X: Words, y: Sequence[Sequence[Label]] | None) -> Any:
    if y is not None and len(X) != len(y):
        raise UsageError(f"{len(X)} sentences and {len(y)} lists of labels: they must be as many.")
    try:
        return build((words, None if y is None else y[number]) for number, words in enumerate(X))
    except ValueError as error:
        raise UsageError(f"{error}.") from None
