"""transform: a corpus of another standard is transformed to the target's, and one classifier learns from both.

jiang2012 Algorithm 2 is the first round, Algorithm 3 the rounds after it: both directions each round, until the
classifier's dev score stops rising. Kept are the classifier of the best round and the chains of the last one.
Predict-self filtration and reestimation: section 3.3 there, and ``models/predict_self.py``.
The tagger: ``transform_tagger.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duilian.corpus import UNKNOWN, Corpus, Layer
from duilian.errors import SettingError
from duilian.features.templates import guide_offsets
from duilian.lifting import Labelled, Units, blocks, label_units, layer_from, word_units
from duilian.methods import single
from duilian.methods.base import Method, Side, Training, stamp_of
from duilian.methods.chain_tagger import tags_of
from duilian.methods.guides import BLOCK, annotate, dev_units, fill, trained_chain, twins
from duilian.methods.learned import learner_of, settings_for
from duilian.methods.merge import merged
from duilian.methods.single import Dev, template_lines, without_doubtful
from duilian.methods.transform_tagger import Transformation, TransformTagger
from duilian.models.chain import Chain
from duilian.models.predict_self import PredictSelf
from duilian.ragged import ranges
from duilian.settings import Setting
from duilian.stages import Context
from duilian.tagger import Tagger, in_order
from duilian.training.data import cut_at
from duilian.training.learners import restore
from duilian.training.loop import Loop
from duilian.training.temperature import fit_temperature

LEARNERS = single.METHODS
OWN = (
    Setting("rounds", 8, "rounds of transformation at the most; 1 is Algorithm 2", low=1),
    Setting("round_patience", 3, "stop when dev has not risen for so many rounds", low=1),
    Setting("reestimation", True, "a transformation is also judged by how well it transforms back"),
    Setting("lambda", "auto", "weight of the way back, 0 to 1; auto: the best of ``grid`` on dev in round 1"),
    Setting("grid", ("0", "0.2", "0.4", "0.6"), "weights that are tried, each by training a classifier"),
    Setting("filtration", False, "drop what does not transform back, in pieces cut at ``split``"),
)
WITHOUT_DEV = 0.2
"""Lambda where there is no dev corpus to find one."""


def start(sides: list[Side], task: str, settings: dict[str, Any], seed: int) -> Training:
    """The training run: its epochs are the rounds."""
    learner, chosen = learner_of(LEARNERS, settings, task, OWN)
    ratios = _ratios(settings, sides[0].dev is not None)
    lines = template_lines(chosen["templates"], task, 1)
    if guide_offsets(lines) is None:
        raise SettingError("templates: what transforms back looks at one guide at a time, as in `c-1 g0` or `g-1`.")
    own = {name: settings[name] for name in ("rounds", "round_patience", "reestimation", "filtration")}
    about: dict[str, Any] = {"learner": learner.name, "settings": {**chosen, **own}, "seed": seed}
    made: list[Rounds] = []

    def prepare(context: Context) -> Loop:
        kept = [without_doubtful(side, chosen) for side in sides]
        made[:] = [Rounds(kept, task, learner, chosen, ratios, settings["filtration"], seed, context)]
        target = sides[0]

        def score(model: Transformation) -> dict[str, float]:
            return {target.name: Dev(target, task, model.classifier.featurizer).score(model.classifier)}

        return Loop(made[0], score if target.dev is not None else None, settings["rounds"], settings["round_patience"])

    def finish(best: Transformation) -> Tagger:
        last = made[0].model
        assert last is not None
        model = replace(last, classifier=best.classifier)
        about.update(
            {
                "features": len(model.classifier.featurizer),
                "entries": len(model.classifier.rows.labels),
                "lambda": model.ratio,
            }
        )
        infos = [sides[0].info(tags_of(model.classifier)), sides[1].info(tags_of(model.backward))]
        return TransformTagger(task, infos, model, {})

    return Training("transform", prepare, finish, about, stamp_of("transform", sides, task, settings, seed))


def _ratios(settings: dict[str, Any], dev: bool) -> list[float]:
    """The weights of the way back that are tried in round 1."""
    if not settings["reestimation"]:
        return [0.0]
    texts = settings["grid"] if settings["lambda"] == "auto" else (settings["lambda"],)
    try:
        found = [float(text) for text in texts]
    except ValueError:
        found = []
    if not found or not all(0 <= value <= 1 for value in found):
        raise SettingError(f"lambda={','.join(map(str, texts))}: expected auto, or numbers from 0 to 1.")
    return found if len(found) == 1 or dev else [WITHOUT_DEV]


class Half:
    """One side with what the other side's standard says of its units, which changes from round to round.

    gold:         the training units with their labels;  x: (U,) the same without gaps, as guides
    other, dev_other: labels of the other standard on the training and dev units
    """

    def __init__(self, side: Side, task: str, gold: Labelled, own: Chain, theirs: Chain, threads: int) -> None:
        self.side, self.gold, self.names = side, gold, own.names
        self.x = fill(own, gold)
        self.other = annotate(theirs, gold.units, threads=threads)
        self.dev = dev_units(side, task)
        self.dev_x = self.dev_first = self.dev_other = np.zeros(0, np.int32)
        self.dev_gold: Labelled | None = None
        if self.dev is not None:
            assert side.dev is not None
            self.dev_gold = label_units(side.dev, side.dev.layer(side.dev_layer), task, own.scheme, own.names)
            self.dev_x = fill(own, self.dev_gold)
            self.dev_first = annotate(theirs, self.dev, threads=threads)
            self.dev_other = self.dev_first.copy()

    def keep_parallel(self, other: Half) -> NDArray[np.bool_]:
        """Where the other corpus has the same sentence, its labels are known; returns which sentences it has."""
        same = _parallel(self.gold.units, other.gold.units)
        mine, theirs = self.gold.units.sentences, other.gold.units.sentences
        here = np.flatnonzero(same >= 0)
        there = same[here]
        self.other[ranges(mine[here], mine[here + 1])] = other.x[ranges(theirs[there], theirs[there + 1])]
        return same >= 0


class Rounds:
    """Rounds of Algorithm 3 as a learner: an epoch is a round."""

    def __init__(
        self, sides: Sequence[Side], task: str, learner: Method, settings: dict[str, Any], ratios: list[float],
        filtration: bool, seed: int, context: Context,
    ) -> None:  # fmt: skip
        self.task, self.learner, self.settings, self.seed, self.context = task, learner, settings, seed, context
        self.ratios, self.filtration = ratios, filtration
        self.ratio = np.full(1, ratios[0] if len(ratios) == 1 else np.nan)
        self.tokens = 0
        labelled = [label_units(side.corpus, side.gold, task, settings["scheme"]) for side in sides]
        chains = [self._train(side.name, side)[0] for side in sides]
        self.halves = [
            Half(side, task, gold, own, theirs, context.threads)
            for side, gold, own, theirs in zip(sides, labelled, chains, chains[::-1], strict=True)
        ]
        target, source = self.halves
        target.keep_parallel(source)
        self.new = ~source.keep_parallel(target)
        self.model: Transformation | None = None

    def warm_up(self) -> None:
        """The chains of a round compile what they need."""

    def epoch(self, number: int) -> tuple[float, int]:
        """One round (lines 7 to 12); the share of the transformed labels that are as they were, and units visited."""
        target, source = self.halves
        self.tokens = 0
        name = f"round {number}, "
        forward = self._transtrain(f"{name}{source.side.name} -> {target.side.name}", target)
        backward = self._transtrain(f"{name}{target.side.name} -> {source.side.name}", source)
        ratios = self.ratios if np.isnan(self.ratio[0]) else [float(self.ratio[0])]
        found = self._transformed(forward, backward, ratios, source.gold.units, source.x)
        tried = []
        for ratio, labels in zip(ratios, found, strict=True):
            note = f"lambda {ratio:g}, " if len(ratios) > 1 else ""
            corpus = self._corpus(labels, backward)
            tried.append(self._train(f"{name}{note}classifier", merged([target.side, corpus])))
        best = max(range(len(tried)), key=lambda k: (tried[k][1]["dev"] or 0.0, -k))
        self.ratio[0] = ratios[best]
        ratio, labels = ratios[best], found[best]
        same = float(np.mean(labels == source.other)) if len(labels) else 1.0
        source.other = labels.copy()
        target.other = self._transformed(backward, forward, [ratio], target.gold.units, target.x)[0]
        target.keep_parallel(source)
        source.keep_parallel(target)
        for half, way, back in ((target, backward, forward), (source, forward, backward)):
            if half.dev is not None:
                half.dev_other = self._transformed(way, back, [ratio], half.dev, half.dev_x)[0]
        self.model = Transformation(
            tried[best][0], forward, backward, ratio,
            self._heat(target, forward, backward, ratio), self._heat(source, backward, forward, ratio),
        )  # fmt: skip
        return same, self.tokens

    def _train(self, what: str, side: Side, guide: Any = None, dev_guide: Any = None) -> tuple[Chain, dict[str, Any]]:
        chain, went = trained_chain(
            what, self.learner, side, self.task, self.settings, self.seed, self.context, guide, dev_guide
        )
        self.tokens += went["tokens"]
        return chain, went

    def _transtrain(self, what: str, half: Half) -> Chain:
        """A chain of one side with the other side's labels as guides; dev goes through the rounds as training does."""
        return self._train(what, half.side, half.other[None], half.dev_other[None])[0]

    def _transformed(
        self, forward: Chain, backward: Chain, ratios: list[float], units: Units, given: NDArray[np.int32]
    ) -> list[NDArray[np.int32]]:
        """For each weight the labels with the highest S+."""
        models = [PredictSelf.of(forward, backward, ratio) for ratio in ratios]
        widest = max(models, key=lambda model: model.ratio)

        def work(block: tuple[int, int, Units]) -> list[NDArray[np.int32]]:
            begin, end, part = block
            asked = widest.both_ways(part, given[begin:end])
            return [model.decode(asked, part.sentences) for model in models]

        found = list(in_order(work, blocks(units, BLOCK), self.context.threads))
        return [np.concatenate([np.zeros(0, np.int32), *(one[k] for one in found)]) for k in range(len(models))]

    def _corpus(self, labels: NDArray[np.int32], backward: Chain) -> Side:
        """The source corpus with transformed labels, without what the target has itself and what is filtered out."""
        target, source = self.halves
        side = source.side
        names, scheme = target.gold.names, self.settings["scheme"]
        layer = layer_from(side.corpus, labels, names, self.task, side.gold, "transformed", scheme)
        corpus = Corpus(side.corpus.text, side.corpus.offsets, (layer,))
        wrong = np.repeat(~self.new, np.diff(source.gold.units.sentences))
        marks = ""
        if self.filtration:
            wrong |= annotate(backward, source.gold.units, labels[None], self.context.threads) != source.x
            marks = self.settings["split"]
        return replace(side, corpus=without(corpus, wrong, marks, self.task), dev=None, layer=None)

    def _heat(self, half: Half, forward: Chain, backward: Chain, ratio: float) -> float:
        """The temperature of conversion to a side, found on its dev corpus with the other side's first labels."""
        if half.dev is None or half.dev_gold is None or not len(half.dev):
            return 1.0
        model = PredictSelf.of(forward, backward, ratio)
        asked = model.both_ways(half.dev, half.dev_first)
        return fit_temperature(model, asked, half.dev_gold.labels, half.dev_gold.sets, half.dev.sentences)

    def current(self) -> Any:
        """What the last round made; before the first, what can be restored."""
        return self.model or Transformation

    def tensors(self) -> dict[str, NDArray[Any]]:
        """The labels that the next round starts from, lambda, and what the last round made."""
        last = {} if self.model is None else self.model.numbers()
        return self._state() | {f"last.{name}": array for name, array in last.items()}

    def _state(self) -> dict[str, NDArray[Any]]:
        found: dict[str, NDArray[Any]] = {"ratio": self.ratio}
        for number, half in enumerate(self.halves):
            found |= {f"other{number}": half.other, f"dev_other{number}": half.dev_other}
        return found

    def restore(self, tensors: dict[str, NDArray[Any]]) -> None:
        """Take up where ``tensors`` left off."""
        restore(self._state(), tensors)
        last = {name[5:]: array for name, array in tensors.items() if name.startswith("last.")}
        self.model = Transformation.with_numbers(last) if last else None


def _parallel(units: Units, others: Units) -> NDArray[np.int64]:
    """(S,) the other sentence that has the same characters and units, or -1."""
    same = twins(units, others)
    for k in np.flatnonzero(same >= 0).tolist():
        mine = slice(int(units.sentences[k]), int(units.sentences[k + 1]))
        theirs = slice(int(others.sentences[same[k]]), int(others.sentences[same[k] + 1]))
        lengths = units.ends[mine] - units.starts[mine], others.ends[theirs] - others.starts[theirs]
        if not np.array_equal(*lengths):
            same[k] = UNKNOWN
    return same


def without(corpus: Corpus, wrong: NDArray[np.bool_], marks: str, task: str) -> Corpus:
    """The sentences of a corpus of one layer that have no wrong unit, once they are cut behind words that are marks."""
    layer: Layer = corpus.layer()
    cuts = np.setdiff1d(cut_at(word_units(corpus, layer), marks), layer.offsets)
    if len(cuts):
        offsets = np.union1d(corpus.offsets, layer.ends[cuts - 1]).astype(np.int64)
        places = np.append(np.searchsorted(layer.starts, offsets[:-1]), len(layer)).astype(np.int64)
        corpus = Corpus(corpus.text, offsets, (replace(layer, offsets=places),))
    if not wrong.any():
        return corpus
    units = label_units(corpus, corpus.layer(), task).units
    some = np.concatenate([np.zeros(1, np.int64), np.cumsum(wrong)])
    return corpus.select(some[units.sentences[1:]] == some[units.sentences[:-1]])


METHOD = Method(
    "transform",
    "a source corpus transformed to the target's standard, round by round (jiang2012)",
    ("pos", "seg", "segpos"),
    (2, 2),
    "the first side",
    "both ways",
    settings_for(LEARNERS, "crf", "what all chains are trained by", OWN),
    start,
    TransformTagger.load,
)
