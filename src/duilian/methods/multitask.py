"""multitask: one model of two standards whose features help each other across a loose mapping (qiu2013).

The model is in ``models/multitask.py``, PA-I over expanded scores in ``training/multitask.py``, the tables between
standards in ``guidelines/``. ``tag`` answers in both sides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duilian import guidelines
from duilian import mapping as mappings
from duilian.corpus import Corpus, Layer
from duilian.errors import DuilianError, SettingError
from duilian.evaluation.calibration import best_temperature
from duilian.features import Dictionary, Featurizer
from duilian.lifting import Labelled, Units, boundary_sets, grammar_of, is_space, label_units, layer_from, units_of
from duilian.lifting import word_units as words_in
from duilian.methods.base import Method, Side, Training, dev_score, stamp_of
from duilian.methods.coupled_pruning import best_labels, train_side
from duilian.methods.coupled_tagger import Choices, Labeller
from duilian.methods.single import PA, make_featurizer, may_begin, template_lines
from duilian.models.candidates import Given
from duilian.models.multitask import MultiTask
from duilian.models.side_model import empty_side
from duilian.models.spaces import Batch, LatticeSpace
from duilian.models.weights import Features, build_rows
from duilian.ragged import Ragged
from duilian.settings import Setting
from duilian.stages import Context, key_of
from duilian.standards.schemes import parse_labels, scheme, split_label, words_of
from duilian.tagger import SideInfo, Tagger, read_sides
from duilian.tensors import Header, reject, require, require_field, require_names
from duilian.training.data import cut_at
from duilian.training.loop import Loop
from duilian.training.multitask import MultiTaskLearner
from duilian.training.parts import Part, Parts, put_together
from duilian.training.temperature import COLDEST, HOTTEST, SENTENCES

_KEPT = tuple(setting for setting in PA if setting.name not in ("sample",))
SETTINGS = (
    *_KEPT,
    Setting("sample", ("0",), "sentences of each side drawn for a pass, as in 0,5000; 0 is all"),
    Setting("help", 0.3, "what the features of the other side's labels count, in scores and steps", low=0.01, high=10),
    Setting("direction", "both", "one-way: labels of the second side bring none of the first along",
            choices=("both", "one-way")),
    Setting("mapping", "auto", "guideline: the table between the two standards; automatic: counted from taggers' "
            "answers; a rule file; auto is the guideline where there is one"),
    Setting("lift", "same", "which positions of characters may meet under a mapping of tags",
            choices=tuple(mappings.LIFTS)),
    Setting("names", "nested", "the same for tags whose words one standard cuts and the other does not (guideline)",
            choices=tuple(mappings.LIFTS)),
    Setting("share", 0.02, "an automatic mapping has the pairs that make this share of what one label is seen with",
            low=0, high=1),
    Setting("mapping_epochs", 4, "passes of the taggers that an automatic mapping asks", low=1),
    Setting("average", "steps", "the mean of the weights at the ends of the passes, or of those after every step",
            choices=("passes", "steps")),
)  # fmt: skip


def start(sides: list[Side], task: str, settings: dict[str, Any], seed: int) -> Training:
    """The training run."""
    try:
        numbers = [int(number) for number in settings["sample"]]
    except ValueError:
        numbers = [-1]
    if len(numbers) > 2 or min(numbers) < 0:
        raise SettingError(
            f"sample={','.join(map(str, settings['sample']))}: expected one or two numbers of at least 0."
        )
    chosen = settings["mapping"]
    if chosen not in ("auto", "guideline", "automatic") and not Path(chosen).is_file():
        raise SettingError(
            f"mapping={chosen}: expected auto, guideline, automatic or a rule file; there is no such file."
        )
    about: dict[str, Any] = {"settings": settings, "seed": seed}
    made: list[Preparation] = []

    def prepare(context: Context) -> Loop:
        made[:] = [Preparation(sides, task, settings, seed, context)]
        return made[0].loop(about)

    def finish(model: MultiTask) -> MultiTaskTagger:
        return made[0].tagger(model)

    return Training("multitask", prepare, finish, about, stamp_of("multitask", sides, task, settings, seed))


class Preparation:
    """Everything between the corpora and the first pass."""

    def __init__(self, sides: list[Side], task: str, settings: dict[str, Any], seed: int, context: Context) -> None:
        self.sides, self.task, self.settings, self.seed, self.context = sides, task, settings, seed, context
        labelled = [resolved(label_units(side.corpus, side.gold, task, settings["scheme"])) for side in sides]
        self.names = [one.names for one in labelled]
        words = None if task == "pos" else [words_in(side.corpus, side.gold) for side in sides]
        self.featurizer = make_featurizer(template_lines(settings["templates"], task), task, settings, words)
        rows = self.featurizer.fit([one.units for one in labelled], cutoff=settings["cutoff"])
        given = [Given(one.labels, one.sets) for one in labelled]
        parts = [Part(labelled[0].units, (given[0], None), 0), Part(labelled[1].units, (None, given[1]), 1)]
        cuts = [self._cuts(one) for one in labelled]
        self.parts: Parts = put_together(parts, rows, cuts, 2)
        self.pairs = self._pairs()

    def _cuts(self, one: Labelled) -> NDArray[np.int64]:
        starts = grammar_of(one.names, self.task, self.settings["scheme"]).starts
        return cut_at(one.units, self.settings["split"], may_begin(one, starts))

    def _pairs(self) -> NDArray[np.int32]:
        """Which labels map to each other: pairs of labels of words, or of characters."""
        choice, settings, task = self.settings["mapping"], self.settings, self.task
        standards = [side.standard.name if side.standard is not None else "" for side in self.sides]
        table = guidelines.find(*standards) if all(standards) else None
        if choice == "automatic" or (choice == "auto" and table is None and task != "seg"):
            found = self._counted()
        elif task == "seg":
            found = mappings.lift(mappings.complete([("",), ("",)]), self.names, settings["lift"],
                                  scheme_name=settings["scheme"])  # fmt: skip
        else:
            tags = self.names
            if task == "segpos":
                tags = [tuple(sorted({tag for _, tag in map(split_label, names) if tag})) for names in self.names]
            special: Sequence[tuple[str, ...]] = ()
            if choice in ("auto", "guideline"):
                if table is None:
                    between = " and ".join(name or "no standard" for name in standards)
                    raise SettingError(
                        f"mapping=guideline: there is no table between {between}; use mapping=automatic or a rule "
                        "file, or tie a side to its standard: --side NAME:STANDARD=FILE."
                    )
                found, special = table.mapping(standards, tags), table.turned(standards)
            else:
                found = mappings.from_rules(choice, tags)
            if task == "segpos":
                found = mappings.lift(
                    found, self.names, settings["lift"], special, settings["names"], settings["scheme"]
                )
        for side, missing in zip(self.sides, found.uncovered(), strict=True):
            if missing:
                self.context.report(
                    f"the mapping says nothing of {len(missing)} labels of {side.name}: {', '.join(missing[:8])}"
                )
        return found.bundles

    def _counted(self) -> mappings.Mapping:
        """Pairs of labels given on one side and predicted by a tagger of the other (qiu2013, future work)."""
        settings, parts, context = self.settings, self.parts, self.context
        key = key_of(
            "labels of the other side 1", self.task, self.names, settings["mapping_epochs"], settings["scheme"],
            self.seed, self.featurizer.table.texts, parts.features.data, parts.features.offsets, parts.sentences,
            *(array for one in parts.given for array in (one.labels, one.sets.data, one.sets.offsets)),
        )  # fmt: skip
        kept = context.stages.find(key)
        if kept is None:
            predicted = []
            for side in (0, 1):
                context.report(f"training a tagger of {self.sides[side].name} that labels the other corpus")
                chain = train_side(
                    parts.chain_data(side, np.flatnonzero(parts.homes == side)), self.names[side], self.task,
                    settings["scheme"], self.featurizer, settings["mapping_epochs"], self.seed,
                )  # fmt: skip
                predicted.append(best_labels(parts, side, chain))
            kept = {}, {"labels": np.stack(predicted)}
            context.stages.keep(key, *kept)
        homes = np.repeat(parts.homes, np.diff(parts.sentences))
        labels = []
        for side, best in enumerate(kept[1]["labels"]):
            labels.append(np.where(homes == side, parts.given[side].labels, best).astype(np.int32))
        return mappings.automatic(self.names, *labels).common(settings["share"])

    def model(self) -> MultiTask:
        """The model with a weight for every (feature, label) that each side's own corpus has, all 0."""
        settings, parts = self.settings, self.parts
        homes = np.repeat(parts.homes, np.diff(parts.sentences))
        flat = Ragged(parts.features.data, parts.features.offsets)
        sides = []
        for side, names in enumerate(self.names):
            mine, given = np.flatnonzero(homes == side), parts.given[side]
            corpus = flat.select(mine), given.labels[mine], given.sets
            rows = build_rows(len(self.featurizer), len(names), [corpus], settings["full"])
            sides.append(empty_side(names, self.task, settings["scheme"], rows))
        one_way = settings["direction"] == "one-way"
        return MultiTask(
            self.task, settings["scheme"], self.featurizer, tuple(sides), self.pairs, one_way, settings["help"]
        )

    def loop(self, about: dict[str, Any]) -> Loop:
        """The passes."""
        model = self.model()
        learner = MultiTaskLearner(model, self.parts, self.settings, self.seed)
        about |= {
            "features": len(self.featurizer),
            "entries": int(sum(len(side.rows.labels) for side in model.sides)),
            "pairs": len(self.pairs),
        }
        self.devs = [Dev(side, s, self) for s, side in enumerate(self.sides) if side.dev is not None]

        def score(now: MultiTask) -> dict[str, float]:
            return {dev.side.name: dev.score(now) for dev in self.devs}

        return Loop(learner, score if self.devs else None, self.settings["epochs"], self.settings["patience"])

    def tagger(self, model: MultiTask) -> MultiTaskTagger:
        """The tagger of a model, with temperatures fitted on dev."""
        heats = list(model.temperatures)
        for dev in self.devs:
            heats[dev.number] = dev.temperature(model)
        model = replace(model, temperatures=tuple(heats))
        infos = []
        for side, names in zip(self.sides, self.names, strict=True):
            tags = names
            if self.task != "pos":
                tags = tuple(sorted({tag for tag in parse_labels(scheme(self.settings["scheme"]), names)[2] if tag}))
            infos.append(side.info(tags))
        return MultiTaskTagger(self.task, infos, model, {})


def resolved(labelled: Labelled) -> Labelled:
    """The same labels; a set of one is that label, so that it counts in a mapping."""
    loose = np.flatnonzero(labelled.labels <= -2)
    rows = -2 - labelled.labels[loose].astype(np.int64)
    single = labelled.sets.lengths[rows] == 1
    labels = labelled.labels.copy()
    labels[loose[single]] = labelled.sets.data[labelled.sets.offsets[rows[single]]]
    return replace(labelled, labels=labels)


class Dev:
    """The dev corpus of one side, its features looked up once."""

    def __init__(self, side: Side, number: int, made: Preparation) -> None:
        assert side.dev is not None
        self.side, self.number, self.made = side, number, made
        self.units = units_of(side.dev, side.dev.layer(side.dev_layer), made.task)
        rows = made.featurizer.transform(self.units)
        self.features = Features(rows.data, rows.offsets)

    def score(self, model: MultiTask) -> float:
        """How well the model does."""

        def label(corpus: Corpus, gold: Layer) -> Layer:
            labels = model.decode(self.number, self.features, self.units.sentences)
            names = model.sides[self.number].names
            return layer_from(corpus, labels, names, model.task, gold, "pred", model.scheme)

        return dev_score(self.side, self.made.task, label)

    def temperature(self, model: MultiTask) -> float:
        """The temperature under which the first sentences are likeliest."""
        assert self.side.dev is not None
        layer = self.side.dev.layer(self.side.dev_layer)
        gold = label_units(self.side.dev, layer, model.task, model.scheme, model.sides[self.number].names)
        sentences = self.units.sentences[: SENTENCES + 1]
        n = int(sentences[-1])
        if n == 0:
            return 1.0
        cut = Features(self.features.data[: self.features.offsets[n]], self.features.offsets[: n + 1])
        pairs, table = model.pair_model(self.number, 1.0)
        space, numbers = LatticeSpace(table), pairs.numbers()
        batch = Batch((cut,) * 3, sentences, (Given(gold.labels[:n], gold.sets), Given.nothing(n)))

        def loss(heat: float) -> float:
            found = space.gradient(pairs, numbers, 1 / heat, batch).log_likelihood
            return -float(found[np.isfinite(found)].sum())

        return best_temperature(loss, COLDEST, HOTTEST, 1e-3)


class MultiTaskTagger(Tagger):
    """A model of two sides behind the protocol of all taggers."""

    method = "multitask"

    def __init__(self, task: str, sides: Sequence[SideInfo], model: MultiTask, about: dict[str, Any]) -> None:
        super().__init__(task, sides, about)
        self.model = model

    def label(self, corpus: Corpus, layer: Layer | None, side: SideInfo, *, constrain: bool, confidence: bool) -> Layer:
        """Words relabelled, or text segmented anew, to the standard of a side."""
        number, model = self._number(side), self.model
        units = units_of(corpus, layer, self.task)
        features = model.features(units)
        given = self._given(corpus, layer, units, number, constrain)
        known = (None, None) if given is None else (given.labels, given.sets)
        labels = model.decode(number, features, units.sentences, *known)
        new = self._layer(corpus, labels, number, layer, side.name)
        if not confidence:
            return new
        labeller, found = self._labeller(number), [np.zeros(0, np.float32)]
        at = 0
        for batch in labeller.batches(features, units.sentences, self._both(given, len(units))):
            here = labels[at : at + batch.n_units]
            at += batch.n_units
            if self.task == "pos":
                found.append(labeller.of_labels(batch, 0, here))
                continue
            way = scheme(model.scheme)
            begins, _, _ = words_of(way, parse_labels(way, model.sides[number].names)[0][here], batch.sentences)
            found.append(labeller.of_words(batch, 0, here, np.append(begins, batch.n_units).astype(np.int64)))
        return replace(new, confidence=np.concatenate(found))

    def n_best(self, corpus: Corpus, side: str | None, layer: str | None, k: int) -> list[list[tuple[Layer, float]]]:
        """The k best labellings of each sentence on a side; those that differ in their expansion alone are one."""
        info = self.side(side)
        number = self._number(info)
        read = next((one for one in corpus.layers if layer is None or one.name == layer), None)
        units = units_of(corpus, read, self.task)
        given = self._both(self._given(corpus, read, units, number, False), len(units))
        labeller = self._labeller(number)
        answers: list[list[tuple[Layer, float]]] = []
        for batch in labeller.batches(self.model.features(units), units.sentences, given):
            for paths in labeller.different(batch, 0, k):
                one = corpus.select([len(answers)])
                like = None if read is None else one.layer(read.name)
                answers.append([(self._layer(one, path, number, like, info.name), p) for p, path in paths])
        return answers

    def _labeller(self, number: int) -> Labeller:
        pairs, table = self.model.pair_model(number)
        return Labeller(pairs, Choices(None, LatticeSpace(table), "path"))

    def _layer(self, corpus: Corpus, labels: NDArray[np.int32], number: int, like: Layer | None, name: str) -> Layer:
        model = self.model
        return layer_from(corpus, labels, model.sides[number].names, model.task, like, name, model.scheme)

    def _number(self, side: SideInfo) -> int:
        return next(number for number, one in enumerate(self.sides) if one.name == side.name)

    def _given(self, corpus: Corpus, layer: Layer | None, units: Units, number: int, constrain: bool) -> Given | None:
        """What is known before tagging: labels that are to be kept, or where spaces in the text leave no choice."""
        names = self.model.sides[number].names
        if constrain and layer is not None and layer.name != "chunks":
            here = label_units(corpus, layer, self.task, self.model.scheme, names)
            return Given(here.labels, here.sets)
        if self.task != "pos" and (layer is None or layer.name == "chunks") and is_space(corpus.text).any():
            return Given(*boundary_sets(corpus, units, names, self.model.scheme))
        return None

    @staticmethod
    def _both(given: Given | None, n: int) -> list[Given] | None:
        return None if given is None else [given, Given.nothing(n)]

    def parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Header fields and tensors of the model and its featurizer."""
        header, tensors = self.model.to_tensors()
        featurizer = self.model.featurizer
        header |= {"templates": list(featurizer.table.texts), "fold": featurizer.fold}
        tensors["keys"] = featurizer.index.keys
        if featurizer.dictionary is not None:
            header["longest"] = featurizer.dictionary.longest
            tensors["dictionary"] = featurizer.dictionary.words
        return header, tensors

    @classmethod
    def load(cls, header: dict[str, Any], tensors: dict[str, NDArray[Any]]) -> MultiTaskTagger:
        """From a model file."""
        fields = Header(getattr(header, "path", "model"), require_field(header, "model", dict))
        task = require_field(fields, "task", str)
        keys = require(tensors, "keys", np.uint64, (None,))
        dictionary = None
        if "dictionary" in tensors:
            words = require(tensors, "dictionary", np.uint64, (None,))
            longest = min(64, max(1, require_field(fields, "longest", int)))
            dictionary = Dictionary(words, np.full(len(words), -1, np.int8), longest)
        try:
            featurizer = Featurizer(
                require_names(fields, "templates"), "word" if task == "pos" else "character",
                fold=require_field(fields, "fold", bool), dictionary=dictionary, keys=keys,
            )  # fmt: skip
        except DuilianError as error:
            reject(header, str(error))
        model = MultiTask.from_tensors(fields, tensors, featurizer)
        sides = read_sides(header, tensors)
        if len(sides) != 2:
            reject(header, f"it has {len(sides)} sides where two were expected")
        return cls(task, sides, model, require_field(header, "about", dict))


METHOD = Method(
    "multitask",
    "two standards whose features help each other across a loose mapping (qiu2013)",
    ("pos", "seg", "segpos"),
    (2, 2),
    "both sides",
    "",
    SETTINGS,
    start,
    MultiTaskTagger.load,
)
