"""One standard, one chain: crf (SGD), perceptron, pa. The baselines, and the parts that other methods are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duilian.corpus import Corpus, Layer
from duilian.errors import DataError
from duilian.features import TEMPLATES, Featurizer
from duilian.features.dictionary import build as build_dictionary
from duilian.lifting import (
    Labelled,
    Units,
    boundary_sets,
    grammar_of,
    is_space,
    label_units,
    layer_from,
    units_of,
    word_units,
)
from duilian.methods.base import Method, Side, Training, dev_score, stamp_of
from duilian.models.chain import Chain
from duilian.models.weights import Features, build_rows
from duilian.ragged import Ragged
from duilian.settings import Setting
from duilian.standards.schemes import parse_labels, scheme, words_of
from duilian.tagger import SideInfo, Tagger, read_sides
from duilian.tensors import Header, require_field
from duilian.training import doubt
from duilian.training.data import TrainingData, cut_at
from duilian.training.learners import CrfLearner, Learner, OnlineLearner
from duilian.training.loop import Loop
from duilian.training.temperature import fit_temperature

SHARED = (
    Setting("epochs", 20, "passes over the training data at the most", low=1),
    Setting("patience", 6, "stop when dev has not risen for so many epochs", low=1),
    Setting("templates", "auto", "name of a template set, or `auto`: li2015 for words, lexicon for characters"),
    Setting("cutoff", 1, "features seen fewer times are left out", low=1),
    Setting("fold", True, "features see full-width forms as half-width ones"),
    Setting("full", 0.1, "rows with at least this share of the labels hold all of them", low=0, high=1),
    Setting("sample", 0, "sentences drawn for each epoch; 0 is all", low=0),
    Setting(
        "hide", 0.3, "share of units that lose all rare features while training, as if they were new", low=0, high=0.9
    ),
    Setting("rare", 5, "features seen at most so often are rare", low=0),
    Setting("split", "", "characters behind which training sentences are cut"),
    Setting("scheme", "BIES", "labels of characters", choices=("BIES", "BMES", "BILOU", "BIO")),
)
CRF = (
    *SHARED,
    *doubt.SETTINGS,
    Setting("batch", 5, "sentences in a step", low=1),
    Setting("c2", 0.01, "weight of the L2 term", low=0),
    Setting("common", 10.0, "occurrences above which the step of a feature shrinks", low=1e-6),
    Setting("eta", 0.0, "learning rate; 0 calibrates it on a sample", low=0),
    Setting("dropout", 0.3, "share of features left out at random while training", low=0, high=0.9),
)
PERCEPTRON = (
    *SHARED,
    *doubt.SETTINGS,
    Setting("dropout", 0.2, "share of features left out at random while training", low=0, high=0.9),
)
PA = (
    *PERCEPTRON,
    Setting("C", 0.1, "aggressiveness: no step is longer", low=1e-6),
    Setting(
        "margin", "errors", "by how much gold has to win: by 1, or by the number of errors", choices=("one", "errors")
    ),
)


def template_lines(name: str, task: str) -> tuple[str, ...]:
    """The templates that a setting means: a name of TEMPLATES, or lines separated by semicolons."""
    if name == "auto":
        name = "li2015" if task == "pos" else "lexicon"
    return TEMPLATES[name] if name in TEMPLATES else tuple(line.strip() for line in name.split(";"))


def make_featurizer(
    lines: Sequence[str], task: str, settings: dict[str, Any], words: Units | Sequence[Units] | None
) -> Featurizer:
    """A featurizer for the task; templates that ask for the training words get their list."""
    asks = any(part.rstrip("+-0123456789") in ("begin", "end", "mid") for line in lines for part in line.split())
    dictionary = build_dictionary(words, settings["fold"]) if asks and words is not None and task != "pos" else None
    return Featurizer(lines, "word" if task == "pos" else "character", fold=settings["fold"], dictionary=dictionary)


def empty_chain(labelled: Labelled, rows: Ragged, featurizer: Featurizer, task: str, settings: dict[str, Any]) -> Chain:
    """A chain with a weight for every (feature, label) that the data allows, all 0."""
    n = len(labelled.names)
    rules = grammar_of(labelled.names, task, settings["scheme"])
    inf = np.float32(-np.inf)
    return Chain(
        labelled.names,
        task,
        featurizer,
        build_rows(len(featurizer), n, [(rows, labelled.labels, labelled.sets)], settings["full"]),
        np.where(rules.follows, np.float32(0), inf),
        np.where(rules.starts, np.float32(0), inf),
        np.where(rules.ends, np.float32(0), inf),
        settings["scheme"],
    )


def make_learner(chain: Chain, data: TrainingData, settings: dict[str, Any], seed: int) -> Learner:
    """SGD where there is a batch size, else an online learner."""
    return (
        CrfLearner(chain, data, settings, seed) if "batch" in settings else OnlineLearner(chain, data, settings, seed)
    )


def prepare(side: Side, task: str, settings: dict[str, Any]) -> tuple[Chain, TrainingData]:
    """Labels, features and an empty chain for one side."""
    side = without_doubtful(side, settings)
    gold = side.gold
    labelled = label_units(side.corpus, gold, task, settings["scheme"])
    sure = doubt.of_units(side.corpus, gold, task)
    if settings.get("unsure") == "label":
        labelled = doubt.forget(labelled, sure, settings["sure"])
    lines = template_lines(settings["templates"], task)
    featurizer = make_featurizer(lines, task, settings, word_units(side.corpus, gold) if task != "pos" else None)
    (rows,) = featurizer.fit([labelled.units], cutoff=settings["cutoff"])
    chain = empty_chain(labelled, rows, featurizer, task, settings)
    begins = may_begin(labelled, grammar_of(chain.names, task, settings["scheme"]).starts)
    cuts = cut_at(labelled.units, settings["split"], begins)
    gains = doubt.means(sure, cuts) if settings.get("weigh") else np.zeros(0, np.float32)
    return chain, TrainingData.of(labelled, rows, cuts, gains)


def without_doubtful(side: Side, settings: dict[str, Any]) -> Side:
    """The side without the sentences that ``unsure=sentence`` leaves out."""
    if settings.get("unsure") != "sentence":
        return side
    kept = doubt.trusted(side.gold, settings["sure"])
    if not kept.any():
        raise DataError(f"side {side.name}: no sentence has a mean confidence of {settings['sure']:g}: lower sure=.")
    return replace(side, corpus=side.corpus.select(kept))


def may_begin(labelled: Labelled, starts: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """(U,) whether a sentence may begin at each unit, by its labels. starts: (L,) labels that may be the first."""
    some = np.array([bool(starts[row].any()) for row in labelled.sets], np.bool_)
    return np.concatenate([starts, some[::-1], [True]])[labelled.labels]


class Dev:
    """A dev corpus with its features, looked up once."""

    def __init__(self, side: Side, task: str, featurizer: Featurizer) -> None:
        assert side.dev is not None
        self.side, self.task = side, task
        self.units = units_of(side.dev, side.dev.layer(side.dev_layer), task)
        rows = featurizer.transform(self.units)
        self.features = Features(rows.data, rows.offsets)

    def score(self, chain: Chain) -> float:
        """How well the chain does."""

        def label(corpus: Corpus, gold: Layer) -> Layer:
            labels = chain.decode(self.features, self.units.sentences)
            return layer_from(corpus, labels, chain.names, self.task, gold, "pred", chain.scheme)

        return dev_score(self.side, self.task, label)

    def with_temperature(self, chain: Chain) -> Chain:
        """The chain with the temperature under which this corpus is likeliest."""
        assert self.side.dev is not None
        layer = self.side.dev.layer(self.side.dev_layer)
        gold = label_units(self.side.dev, layer, self.task, chain.scheme, chain.names)
        heat = fit_temperature(chain, self.features, gold.labels, gold.sets, self.units.sentences)
        return replace(chain, temperature=heat)


def start(name: str) -> Callable[[list[Side], str, dict[str, Any], int], Training]:
    """The training run of crf, perceptron or pa."""

    def run(sides: list[Side], task: str, settings: dict[str, Any], seed: int) -> Training:
        return train_chain(name, sides[0], sides, task, settings, seed)

    return run


def train_chain(name: str, side: Side, sides: list[Side], task: str, settings: dict[str, Any], seed: int) -> Training:
    """A chain on one side; sides: what the user gave, for the stamp."""
    chain, data = prepare(side, task, settings)
    dev = Dev(side, task, chain.featurizer) if side.dev is not None else None
    loop = Loop(
        make_learner(chain, data, settings, seed),
        None if dev is None else lambda model: {side.name: dev.score(model)},
        settings["epochs"],
        settings["patience"],
    )

    def finish(model: Chain) -> Tagger:
        if "batch" not in settings and dev is not None:
            model = dev.with_temperature(model)
        tags = (
            sorted({tag for tag in (parse_labels(scheme(model.scheme), model.names)[2]) if tag})
            if task != "pos"
            else model.names
        )
        return ChainTagger(name, task, side.info(tags), model.without_idle_rows(), {})

    about = {"settings": settings, "seed": seed, "features": len(chain.featurizer), "entries": len(chain.rows.labels)}
    return Training(name, loop, finish, about, stamp_of(name, sides, task, settings, seed))


class ChainTagger(Tagger):
    """A chain as a tagger."""

    def __init__(self, method: str, task: str, side: SideInfo, chain: Chain, about: dict[str, Any]) -> None:
        super().__init__(task, [side], about)
        self.method, self.chain = method, chain

    def label(self, corpus: Corpus, layer: Layer | None, side: SideInfo, *, constrain: bool, confidence: bool) -> Layer:
        """Words relabelled, or text segmented anew."""
        chain, task = self.chain, self.task
        units = units_of(corpus, layer, task)
        features = chain.features(units)
        allowed, sets = self._allowed(corpus, layer, units, constrain)
        labels = chain.decode(features, units.sentences, allowed, sets)
        new = layer_from(corpus, labels, chain.names, task, layer, side.name, chain.scheme)
        if confidence:
            new = replace(new, confidence=self._confidence(units, features, labels, allowed, sets))
        return new

    def _allowed(
        self, corpus: Corpus, layer: Layer | None, units: Units, constrain: bool
    ) -> tuple[NDArray[np.int32] | None, Ragged | None]:
        if constrain and layer is not None and layer.name != "chunks":
            given = label_units(corpus, layer, self.task, self.chain.scheme, self.chain.names)
            return given.labels, given.sets
        if self.task != "pos" and (layer is None or layer.name == "chunks") and is_space(corpus.text).any():
            return boundary_sets(corpus, units, self.chain.names, self.chain.scheme)
        return None, None

    def _confidence(
        self, units: Units, features: Features, labels: NDArray[np.int32], allowed: Any, sets: Ragged | None
    ) -> NDArray[np.float32]:
        """Of each word: the marginal of its tag, or of its whole span with its tag."""
        chain, found = self.chain, []
        for begin, end, part in chain.posteriors(features, units.sentences, allowed, sets):
            if self.task == "pos":
                found.append(part.of_labels(labels[begin:end]))
                continue
            prefixes, _, _ = parse_labels(scheme(chain.scheme), chain.names)
            begins, ends, _ = words_of(scheme(chain.scheme), prefixes[labels[begin:end]], part.sentences)
            found.append(part.of_spans(labels[begin:end], begins, ends))
        return np.concatenate([*found, np.zeros(0)]).astype(np.float32)

    def sample(self, corpus: Corpus, rng: np.random.Generator, layer: str | None = None) -> Corpus:
        """The corpus with a labelling drawn from the model's distribution in place of the best one."""
        read = next((one for one in corpus.layers if layer is None or one.name == layer), None)
        units = units_of(corpus, read, self.task)
        features = self.chain.features(units)
        allowed, sets = self._allowed(corpus, read, units, False)
        labels = [part.sample(rng) for _, _, part in self.chain.posteriors(features, units.sentences, allowed, sets)]
        drawn = np.concatenate([np.zeros(0, np.int32), *labels])
        name = read.name if read is not None else self.side().name
        return corpus.with_layer(layer_from(corpus, drawn, self.chain.names, self.task, read, name, self.chain.scheme))

    def n_best(self, corpus: Corpus, side: str | None, layer: str | None, k: int) -> list[list[tuple[Layer, float]]]:
        """The k best labellings of each sentence with their probabilities, best first."""
        info = self.side(side)
        found = []
        for number in range(len(corpus)):
            one = corpus.select([number])
            read = next((part for part in one.layers if layer is None or part.name == layer), None)
            units = units_of(one, read, self.task)
            features = self.chain.features(units)
            allowed, sets = self._allowed(one, read, units, constrain=False)
            paths, scores = self.chain.n_best(features, 0, len(units), k, allowed, sets)
            parts = self.chain.posteriors(features, units.sentences, allowed, sets)
            log_z = sum((float(part.log_z.sum()) for _, _, part in parts), 0.0)
            found.append(
                [
                    (
                        layer_from(one, path, self.chain.names, self.task, read, info.name, self.chain.scheme),
                        float(np.exp(score / self.chain.temperature - log_z)),
                    )
                    for path, score in zip(paths, scores, strict=True)
                ]
            )
        return found

    def parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Header fields and tensors of the chain."""
        return self.chain.to_tensors()

    @classmethod
    def load(cls, header: dict[str, Any], tensors: dict[str, NDArray[Any]]) -> ChainTagger:
        """From a model file."""
        fields = Header(getattr(header, "path", "model"), require_field(header, "model", dict))
        chain = Chain.from_tensors(fields, tensors)
        (side,) = read_sides(header, tensors)[:1]
        return cls(require_field(header, "method", str), chain.task, side, chain, require_field(header, "about", dict))


def method(name: str, about: str, settings: tuple[Setting, ...]) -> Method:
    """A row of METHODS."""
    return Method(
        name, about, ("pos", "seg", "segpos"), (1, 1), "its side", "", settings, start(name), ChainTagger.load
    )


METHODS = (
    method("crf", "conditional random field, trained by SGD with L2", CRF),
    method("perceptron", "averaged perceptron (jiang2012 Algorithm 1)", PERCEPTRON),
    method("pa", "passive-aggressive, PA-I (qiu2013, one side)", PA),
)
