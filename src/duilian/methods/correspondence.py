"""correspondence: an HMM of the target, and what the source's labels say of its labels. Converts words with labels.

    t* = argmax_t P(t) P(o | t) prod_i P(s_i | t_i)                                           (correspondence, Eq. 4)

The model is in ``models/correspondence.py``, the seven estimators of P(s | t) in ``training/correspondence.py``. Word
boundaries stay as the source has them (the paper's TBWC); where a layer of the target's name is there already, over
the same text, its words are taken instead (TAWC), and its labels, if it has some, are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duilian.corpus import Corpus, Layer
from duilian.errors import TaskError
from duilian.inference.chain_marginals import best_paths
from duilian.lifting import Labelled, carry_labels, label_units, layer_from, relabel, word_units
from duilian.methods import hmm, single
from duilian.methods.base import Method, Side, Training, dev_score, stamp_of
from duilian.methods.coupled_pruning import train_side
from duilian.models.correspondence import Correspondence
from duilian.models.hmm import Extra
from duilian.models.weights import Features
from duilian.settings import Setting, resolve
from duilian.stages import Context, key_of
from duilian.tagger import SideInfo, Tagger, read_sides
from duilian.tensors import Header, reject, require_field
from duilian.training import counts
from duilian.training.correspondence import ESTIMATORS, common_words, estimate, hashes_of, paired, words_seen
from duilian.training.counts import Counting, allowed_labels
from duilian.training.data import TrainingData
from duilian.training.loop import Loop

SETTINGS = (
    Setting(
        "estimator", "hmm-s",
        "what the correspondence of labels is learnt from: a tagger of the target on the source's corpus (-t) or the "
        "reverse (-s); words common to both, with the target's prior (cw-t), the source's (cw-s), the mean of both "
        "probabilities (cw-c); none leaves the source's labels out",
        choices=ESTIMATORS,
    ),
    Setting("words", False, "the correspondence may depend on the word: P(s|t,o) interpolated with P(s|t)"),
    Setting("open", 2.0, "how much a known word is believed to have labels it was not seen with", low=0),
    Setting("tagger_epochs", 6, "passes of the CRF that labels the other corpus (crf-t, crf-s)", low=1),
    *hmm.SETTINGS,
)  # fmt: skip
_COUNTING = tuple(setting.name for setting in hmm.SETTINGS)
BLOCK = 256
"""The CRF labels so many sentences at a time."""


class CorrespondenceLearner:
    """One epoch: count the target's HMM, then the correspondence. crf: what a CRF predicted for the other corpus."""

    def __init__(
        self, target: Labelled, source: Labelled, settings: dict[str, Any], crf: NDArray[np.int32] | None
    ) -> None:
        self.target, self.source, self.settings, self.crf = target, source, settings, crf
        self.counting = Counting(**{name: settings[name] for name in _COUNTING})
        self.model: Correspondence | None = None

    def warm_up(self) -> None:
        """Counting has few kernels, and they compile fast."""

    def epoch(self, number: int) -> tuple[float, int]:
        """Count everything; there is nothing to walk twice."""
        target, source, estimator, fold = self.target, self.source, self.settings["estimator"], self.counting.fold
        model = self._fit(target)
        table = words = None
        if estimator != "none":
            if estimator.startswith("cw"):
                priors = {"cw-t": ["target"], "cw-s": ["source"], "cw-c": ["target", "source"]}[estimator]
                evidence = [common_words(source, target, fold, prior) for prior in priors]
            elif estimator.endswith("t"):
                predicted = model.tag(source.units) if self.crf is None else self.crf
                evidence = [paired(source, predicted, fold, given_is_source=True)]
            else:
                predicted = self._fit(source).tag(target.units) if self.crf is None else self.crf
                evidence = [paired(target, predicted, fold, given_is_source=False)]
            table, counted = estimate(evidence, source, len(target.names))
            words = counted if self.settings["words"] else None
        seen = words_seen(target, fold, model.keys)
        self.model = Correspondence(model, seen, table, words, self.settings["open"])
        return 0.0, len(target.units) + len(source.units)

    def _fit(self, one: Labelled) -> Any:
        return counts.fit([(one.units, one.labels, one.sets)], len(one.names), self.counting)

    def current(self) -> Correspondence:
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


def predicted_by_crf(trained: Labelled, other: Labelled, epochs: int, seed: int, context: Context) -> NDArray[np.int32]:
    """Labels that a CRF trained on one corpus gives the words of another; kept as a stage."""
    key = key_of(
        "crf labels 1", epochs, seed, trained.names, trained.labels, trained.sets.data, trained.sets.offsets,
        *(array for one in (trained, other) for array in (one.units.sentences, hashes_of(one, False))),
    )  # fmt: skip
    if (kept := context.stages.find(key)) is not None and len(kept[1].get("labels", ())) == len(other.units):
        return np.array(kept[1]["labels"], np.int32)
    context.report("training a CRF that labels the other corpus")
    settings = resolve(single.CRF, {}, "crf")
    featurizer = single.make_featurizer(single.template_lines("auto", "pos"), "pos", settings, None)
    (rows,) = featurizer.fit([trained.units], cutoff=settings["cutoff"])
    chain = train_side(
        TrainingData.of(trained, rows), trained.names, "pos", settings["scheme"], featurizer, epochs, seed
    )
    found = featurizer.transform(other.units)
    labels, sentences = [np.zeros(0, np.int32)], other.units.sentences
    for first in range(0, len(sentences) - 1, BLOCK):
        here = sentences[first : first + BLOCK + 1]
        begin, end = int(here[0]), int(here[-1])
        low, high = int(found.offsets[begin]), int(found.offsets[end])
        part = Features(found.data[low:high], found.offsets[begin : end + 1] - low)
        labels.append(best_paths(chain.scores(part, here - begin), here - begin, chain.trans))
    whole = np.concatenate(labels)
    context.stages.keep(key, {}, {"labels": whole})
    return whole


class CorrespondenceTagger(hmm.HmmTagger):
    """Tags in the first side, converts from the second to the first."""

    method = "correspondence"

    def __init__(self, sides: Sequence[SideInfo], model: Correspondence, about: dict[str, Any]) -> None:
        Tagger.__init__(self, "pos", sides, about)
        self.model, self.hmm = model, model.hmm

    @property
    def answers(self) -> tuple[SideInfo, ...]:
        """The first side alone, by the HMM alone."""
        return self.sides[:1]

    def convert_layer(
        self, corpus: Corpus, layer: Layer, source: SideInfo, target: SideInfo, *, given: Layer | None,
        confidence: bool,
    ) -> Layer:  # fmt: skip
        """The best labels under those of the source, over its words, or over those that the target has already."""
        read, units, allowed, extra = self._known(corpus, layer, source, target, given)
        return self._best(corpus, read, units, target, allowed, extra, confidence)

    def convert_n_best(
        self, corpus: Corpus, layer: Layer, source: SideInfo, target: SideInfo, k: int, *, given: Layer | None = None
    ) -> list[list[tuple[Layer, float]]]:
        """The k best conversions of each sentence with their probabilities, best first."""
        read, units, allowed, extra = self._known(corpus, layer, source, target, given)
        return self._ranked(corpus, read, units, target, k, allowed, extra)

    def _known(
        self, corpus: Corpus, layer: Layer, source: SideInfo, target: SideInfo, given: Layer | None
    ) -> tuple[Layer, Any, Any, Extra | None]:
        """Words that get labels, as layer and units, which labels they may have, and what the source's say of them."""
        if target.name != self.sides[0].name:
            raise TaskError(
                f"correspondence converts to {self.sides[0].name} alone: train with {target.name} as the first side."
            )
        read, told = layer, layer
        if given is not None and not (
            np.array_equal(given.starts, layer.starts) and np.array_equal(given.ends, layer.ends)
        ):
            read, told = given, carry_labels(layer, given)
        units = word_units(corpus, read)
        here = relabel(label_units(corpus, told, "pos"), source.tags)
        allowed = None
        if given is not None and given.has_tags:
            mine = relabel(label_units(corpus, given, "pos"), target.tags)
            allowed = allowed_labels(mine.labels, mine.sets, len(target.tags))
        return read, units, allowed, self.model.extra(units, here.labels, here.sets)

    def parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Tensors of the model; it has no header fields of its own."""
        return {}, self.model.to_tensors()

    @classmethod
    def load(cls, header: dict[str, Any], tensors: dict[str, NDArray[Any]]) -> CorrespondenceTagger:
        """From a model file."""
        sides = read_sides(header, tensors)
        if len(sides) != 2:
            reject(header, f"it has {len(sides)} sides where two were expected")
        model = Correspondence.from_tensors(tensors, len(sides[1].tags), len(sides[0].tags))
        return cls(sides, model, require_field(Header(getattr(header, "path", "model"), header), "about", dict))


def start(sides: list[Side], task: str, settings: dict[str, Any], seed: int) -> Training:
    """The training run."""
    target, source = (label_units(side.corpus, side.gold, "pos") for side in sides)
    side = sides[0]
    estimator = settings["estimator"]

    def score(model: Correspondence) -> dict[str, float]:
        def label(corpus: Corpus, gold: Layer) -> Layer:
            return layer_from(corpus, model.hmm.tag(word_units(corpus, gold)), target.names, "pos", gold, "pred")

        return {side.name: dev_score(side, "pos", label)}

    def prepare(context: Context) -> Loop:
        crf = None
        if estimator.startswith("crf"):
            pair = (target, source) if estimator == "crf-t" else (source, target)
            crf = predicted_by_crf(*pair, settings["tagger_epochs"], seed, context)
        learner = CorrespondenceLearner(target, source, settings, crf)
        return Loop(learner, score if side.dev is not None else None, 1, 1)

    def finish(model: Correspondence) -> Tagger:
        return CorrespondenceTagger([sides[0].info(target.names), sides[1].info(source.names)], model, {})

    about = {"settings": settings, "seed": seed, "features": len(target.names) * len(source.names)}
    return Training("correspondence", prepare, finish, about, stamp_of("correspondence", sides, task, settings, seed))


METHOD = Method(
    "correspondence",
    "HMM transformation by label correspondence (Zhu et al. 2009)",
    ("pos",),
    (2, 2),
    "the first side",
    "second -> first",
    SETTINGS,
    start,
    CorrespondenceTagger.load,
)
