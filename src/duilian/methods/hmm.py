"""The second-order HMM as a method: counting instead of iterating, words given."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duilian.corpus import Corpus, Layer
from duilian.lifting import Labelled, Units, label_units, layer_from, relabel, word_units
from duilian.methods.base import Method, Side, Training, dev_score, stamp_of
from duilian.models.hmm import Extra, Hmm
from duilian.settings import Setting
from duilian.tagger import SideInfo, Tagger, read_sides
from duilian.tensors import require_field
from duilian.training.counts import Counting, allowed_labels, fit
from duilian.training.loop import Loop

SETTINGS = (
    Setting("longest", 2, "characters of the longest prefix and suffix of an unknown word", low=1, high=8),
    Setting("rare", 5, "words seen at most so often stand for the unknown ones", low=0),
    Setting("rounds", 3, "how often partially labelled sentences are labelled and counted again", low=0),
    Setting("fold", True, "full-width characters count as their half-width twins"),
)


@dataclass(frozen=True)
class Counted:
    """A counted model as the training loop sees it."""

    hmm: Hmm

    def numbers(self) -> dict[str, NDArray[Any]]:
        """Everything that training changes: all of it."""
        return self.hmm.to_tensors()

    def with_numbers(self, numbers: dict[str, NDArray[Any]]) -> Counted:
        """The model of these tables."""
        return Counted(Hmm.from_tensors(dict(numbers), self.hmm.n_labels))


class CountingLearner:
    """One epoch: count."""

    def __init__(self, labelled: Labelled, settings: dict[str, Any]) -> None:
        self.labelled, self.counting = labelled, Counting(**settings)
        self.model: Counted | None = None

    def warm_up(self) -> None:
        """Counting has few kernels, and they compile fast."""

    def epoch(self, number: int) -> tuple[float, int]:
        """Count everything; there is nothing to walk twice."""
        one = self.labelled
        self.model = Counted(fit([(one.units, one.labels, one.sets)], len(one.names), self.counting))
        return 0.0, len(one.units)

    def current(self) -> Counted:
        """The counted model."""
        if self.model is None:
            self.epoch(1)
        assert self.model is not None
        return self.model

    def tensors(self) -> dict[str, NDArray[Any]]:
        """Nothing: counting again costs less than reading it back."""
        return {}

    def restore(self, tensors: dict[str, NDArray[Any]]) -> None:
        """Nothing to take up."""


class HmmTagger(Tagger):
    """A second-order HMM as a tagger of words."""

    method = "hmm"

    def __init__(self, side: SideInfo, hmm: Hmm, about: dict[str, Any]) -> None:
        super().__init__("pos", [side], about)
        self.hmm = hmm

    def label(self, corpus: Corpus, layer: Layer | None, side: SideInfo, *, constrain: bool, confidence: bool) -> Layer:
        """Words relabelled."""
        assert layer is not None
        units = word_units(corpus, layer)
        allowed = None
        if constrain:
            given = relabel(label_units(corpus, layer, "pos"), side.tags)
            allowed = allowed_labels(given.labels, given.sets, len(side.tags))
        return self._best(corpus, layer, units, side, allowed, None, confidence)

    def sample(self, corpus: Corpus, rng: np.random.Generator, layer: str | None = None) -> Corpus:
        """The corpus with a labelling drawn from the model's distribution in place of the best one."""
        read = corpus.layer(layer)
        labels = self.hmm.sample(word_units(corpus, read), 1, rng)[0]
        return corpus.with_layer(layer_from(corpus, labels, self.side().tags, "pos", read, read.name))

    def n_best(self, corpus: Corpus, side: str | None, layer: str | None, k: int) -> list[list[tuple[Layer, float]]]:
        """The k best labellings of each sentence with their probabilities, best first."""
        info = self.answer(side)
        read = corpus.layer(layer)
        units = word_units(corpus, read)
        return self._ranked(corpus, read, units, info, k, None, None)

    def _ranked(
        self, corpus: Corpus, read: Layer, units: Units, side: SideInfo, k: int, allowed: Any, extra: Extra | None
    ) -> list[list[tuple[Layer, float]]]:
        """The k best labellings of each sentence; allowed and extra as the model takes them."""
        totals = self.hmm.log_partition(units, allowed=allowed, extra=extra)
        found = []
        for number, paths in enumerate(self.hmm.nbest(units, k, allowed=allowed, extra=extra)):
            one = corpus.select([number])
            like = one.layer(read.name)
            found.append(
                [
                    (
                        layer_from(one, path, side.tags, "pos", like, side.name),
                        float(np.exp(score - totals[number])),
                    )
                    for score, path in paths
                ]
            )
        return found

    def _best(
        self, corpus: Corpus, read: Layer, units: Units, side: SideInfo, allowed: Any, extra: Extra | None, sure: bool
    ) -> Layer:
        """The best labelling, with the probability of each label if asked (sure)."""
        if not sure:
            labels = self.hmm.tag(units, allowed=allowed, extra=extra)
            return layer_from(corpus, labels, side.tags, "pos", read, side.name)
        labels, probabilities = self.hmm.tag_with_confidence(units, allowed=allowed, extra=extra)
        new = layer_from(corpus, labels, side.tags, "pos", read, side.name)
        return replace(new, confidence=probabilities.astype(np.float32))

    def parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Tensors of the model; it has no header fields of its own."""
        return {}, self.hmm.to_tensors()

    @classmethod
    def load(cls, header: dict[str, Any], tensors: dict[str, NDArray[Any]]) -> HmmTagger:
        """From a model file."""
        side = read_sides(header, tensors)[0]
        return cls(side, Hmm.from_tensors(tensors, len(side.tags)), require_field(header, "about", dict))


def start(sides: list[Side], task: str, settings: dict[str, Any], seed: int) -> Training:
    """The training run."""
    side = sides[0]
    labelled = label_units(side.corpus, side.gold, "pos")
    names = labelled.names

    def score(model: Counted) -> dict[str, float]:
        def label(corpus: Corpus, gold: Layer) -> Layer:
            return layer_from(corpus, model.hmm.tag(word_units(corpus, gold)), names, "pos", gold, "pred")

        return {side.name: dev_score(side, "pos", label)}

    loop = Loop(CountingLearner(labelled, settings), score if side.dev is not None else None, 1, 1)
    about = {"settings": settings, "seed": seed, "features": len(np.unique(labelled.labels))}
    return Training(
        "hmm",
        loop,
        lambda model: HmmTagger(side.info(names), model.hmm, {}),
        about,
        stamp_of("hmm", sides, task, settings, seed),
    )


METHOD = Method(
    "hmm",
    "second-order hidden Markov model (Thede and Harper 1999)",
    ("pos",),
    (1, 1),
    "its side",
    "",
    SETTINGS,
    start,
    HmmTagger.load,
)
