"""coupled: one model over bundles of labels, one label per standard, trained on corpora that have one each.

li2015: bundles, ambiguous labelings, joint and separate features, mapping functions. li2016: context-aware pruning,
joint segmentation and tagging. And the complete space, exact (``space=grid``), which both papers found too dear.

What is trained here is in ``models/coupled.py``, how in ``training/coupled.py``; the tagger: ``coupled_tagger.py``;
the chains that pruning asks: ``coupled_pruning.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duilian import mapping as mappings
from duilian.corpus import UNKNOWN, Layer
from duilian.errors import DataError, SettingError
from duilian.inference.lattice import Lattice, allowed_pairs, room_for_token, write_codes
from duilian.lifting import Labelled, Units, grammar_of, label_units, units_of, word_units
from duilian.methods.base import Method, Side, Training, dev_score, stamp_of
from duilian.methods.coupled_pruning import LEARNING, Folds, best_labels, keep_for_training, train_chains
from duilian.methods.coupled_start import begin_with_associations
from duilian.methods.coupled_tagger import Choices, CoupledTagger, Labeller, layer_of
from duilian.methods.single import SHARED, make_featurizer, may_begin, template_lines
from duilian.models.candidates import Candidates, Given, Pruner, allowed_bundles, mapped_lattice
from duilian.models.coupled import MOST_CODES, Coupled
from duilian.models.joint_rows import JointRows, build_joint_rows
from duilian.models.side_model import SideModel, empty_side
from duilian.models.spaces import GridSpace, LatticeSpace
from duilian.models.weights import Features, build_rows
from duilian.ragged import Ragged, offsets_of
from duilian.settings import Setting
from duilian.stages import Context, key_of
from duilian.standards.schemes import parse_labels, scheme, split_label
from duilian.training.coupled import CoupledLearner
from duilian.training.data import cut_at
from duilian.training.loop import Loop
from duilian.training.parts import Parts, lay_out, put_together

MOST_DROPOUT = 0.99
BIAS = "bias"
"""A template that is always added: its joint weights say which labels go together, whatever the word."""
START = 1.4
"""What the weights of single models are multiplied by where a coupled model starts from them."""

_KEPT = ("epochs", "patience", "templates", "cutoff", "fold", "full", "hide", "rare", "split", "scheme")
SETTINGS = (
    *(setting for setting in SHARED if setting.name in _KEPT),
    Setting("dropout", "auto", "share of joint features left out in training; auto: 0.1 of words, 0.3 of characters"),
    Setting("side_dropout", ("auto",), "the same of separate features; for each side, as in 0.9,0.3; auto: by size"),
    Setting("batch", 30, "sentences in a step", low=1),
    Setting("c2", 0.01, "weight of the L2 term", low=0),
    Setting("common", 10.0, "occurrences above which the step of a feature shrinks", low=1e-6),
    Setting("eta", 0.4, "learning rate; 0 calibrates it on a sample", low=0),
    Setting("sample", ("10000",), "sentences of each side drawn for an epoch, as in 5000,20000; 0 is all"),
    Setting(
        "space", "bundles", "bundles: what mapping and pruning leave; grid: all, exact", choices=("bundles", "grid")
    ),
    Setting(
        "pruning", "offline", "by models of single sides, by the model's own separate features, or not at all",
        choices=("offline", "online", "none"),
    ),
    Setting("r", ("8",), "labels of a side that survive at a unit, at the most; for each side, as in 16,8"),
    Setting("lambda", ("0.999",), "probability that the surviving labels hold together; for each side"),
    Setting("folds", 5, "parts for jack-knifing: no sentence is pruned by a model that saw it", low=1),
    Setting("pruning_epochs", 6, "passes of the models that offline pruning asks", low=1),
    Setting(
        "start", "models", "separate features begin with the weights of the models that pruning asks, or with zeros",
        choices=("models", "zeros"),
    ),
    Setting(
        "associations", 1.5, "weights of bundles begin with so many times the logarithm of how much likelier than by "
        "chance their labels meet", low=0,
    ),
    Setting("mapping", "complete", "complete, automatic, or a rule file"),
    Setting("least", 1, "an automatic mapping has the bundles seen at least so often", low=1),
    Setting(
        "lift", "free", "which positions of characters may meet under a mapping", choices=tuple(mappings.LIFTS)
    ),
    Setting("joint_cutoff", 3, "features seen fewer times have no joint weights", low=1),
    Setting("features", "both", "joint, separate, or both", choices=("joint", "separate", "both")),
    Setting(
        "transitions", "separate", "label pairs of each side, or also pairs of bundles", choices=("separate", "joint")
    ),
    Setting("decode", "path", "the best bundles, or the label likeliest by itself (pos)", choices=("path", "label")),
)  # fmt: skip


def start(sides: list[Side], task: str, settings: dict[str, Any], seed: int) -> Training:
    """The training run."""
    _check(sides, task, settings)
    about: dict[str, Any] = {"settings": settings, "seed": seed}
    made: list[Preparation] = []

    def prepare(context: Context) -> Loop:
        made[:] = [Preparation(sides, task, settings, seed, context)]
        return made[0].loop(about)

    def finish(model: Coupled) -> CoupledTagger:
        return made[0].tagger(model)

    return Training("coupled", prepare, finish, about, stamp_of("coupled", sides, task, settings, seed))


def _check(sides: Sequence[Side], task: str, settings: dict[str, Any]) -> None:
    names = [side.name for side in sides]
    for name, low in (("r", 1), ("lambda", 0), ("sample", 0), ("side_dropout", 0)):
        values = settings[name]
        if name == "side_dropout" and tuple(values) == ("auto",):
            continue
        try:
            numbers = [int(value) if name in ("r", "sample") else float(value) for value in values]
        except ValueError:
            raise SettingError(f"{name}={','.join(map(str, values))}: expected numbers, one for each side.") from None
        if len(numbers) not in (1, len(sides)):
            raise SettingError(f"{name} has {len(numbers)} values for {len(sides)} sides ({', '.join(names)}).")
        if any(value < low or (name == "lambda" and value <= 0) for value in numbers):
            raise SettingError(f"{name}={','.join(map(str, values))}: expected numbers of at least {low}.")
        if name == "side_dropout" and any(value > MOST_DROPOUT for value in numbers):
            raise SettingError(f"{name}={','.join(map(str, values))}: expected numbers of at most {MOST_DROPOUT}.")
    if settings["dropout"] != "auto":
        try:
            fine = 0 <= float(settings["dropout"]) <= MOST_DROPOUT
        except ValueError:
            fine = False
        if not fine:
            raise SettingError(f"dropout={settings['dropout']}: expected auto, or a number from 0 to {MOST_DROPOUT}.")
    if settings["space"] == "grid" and settings["mapping"] != "complete":
        raise SettingError("space=grid is the complete space: a mapping needs space=bundles.")
    if settings["decode"] == "label" and task != "pos":
        raise SettingError(
            f"decode=label could answer labels of characters that make no words: {task} needs decode=path."
        )


def per_side(values: Sequence[Any], n_sides: int, kind: Any) -> tuple[Any, ...]:
    """A setting of one value for all sides, or one for each."""
    numbers = tuple(kind(value) for value in values)
    return numbers * n_sides if len(numbers) == 1 else numbers


class Preparation:
    """Everything between the corpora and the first epoch; what takes long is kept in ``context.stages``."""

    def __init__(self, sides: list[Side], task: str, settings: dict[str, Any], seed: int, context: Context) -> None:
        self.sides, self.task, self.settings, self.seed, self.context = sides, task, settings, seed, context
        n = len(sides)
        labelled = [label_units(side.corpus, side.gold, task, settings["scheme"]) for side in sides]
        self.names = [one.names for one in labelled]
        laid = lay_out(labelled, task == "pos")
        words = None if task == "pos" else [word_units(side.corpus, side.gold) for side in sides]
        lines = template_lines(settings["templates"], task)
        if BIAS not in lines:
            lines = (*lines, BIAS)
        self.featurizer = make_featurizer(lines, task, settings, words)
        rows = self.featurizer.fit([part.units for part in laid], cutoff=settings["cutoff"])
        cuts = [self._cuts(part.units, part.given) for part in laid]
        self.parts: Parts = put_together(laid, rows, cuts, n)
        self.sizes = [len(names) for names in self.names]
        if np.prod([float(size) for size in self.sizes]) >= MOST_CODES:
            raise DataError(f"{' x '.join(map(str, self.sizes))} labels make more bundles than can be numbered.")
        self.chains: tuple[SideModel, ...] = ()
        self.candidates: Candidates | None = None
        self.table: NDArray[np.bool_] | None = None
        self.mapping: mappings.Mapping | None = None
        r, lambda_ = per_side(settings["r"], n, int), per_side(settings["lambda"], n, float)
        self.limits = tuple(zip(r, lambda_, strict=True))
        automatic = settings["mapping"] == "automatic"
        bundled = settings["space"] == "bundles"
        asked = settings["start"] == "models" or (settings["associations"] > 0 and settings["features"] != "separate")
        if (bundled and settings["pruning"] == "offline") or automatic or asked:
            self._single_models(r, lambda_)
        if bundled and settings["mapping"] != "complete":
            self._map()
        online = self.limits if bundled and settings["pruning"] == "online" else ()
        self.space: LatticeSpace | GridSpace
        if bundled:
            self.space = LatticeSpace(self.table, online, task != "pos")
        else:
            self.space = GridSpace()

    def _cuts(self, units: Units, given: Sequence[Given | None]) -> NDArray[np.int64]:
        begins = np.ones(len(units), np.bool_)
        for side, one in enumerate(given):
            if one is not None:
                starts = grammar_of(self.names[side], self.task, self.settings["scheme"]).starts
                begins &= may_begin(Labelled(units, self.names[side], one.labels, one.sets), starts)
        return cut_at(units, self.settings["split"], begins)

    def _single_models(self, r: tuple[int, ...], lambda_: tuple[float, ...]) -> None:
        """Chains of single sides, and what they leave at every training unit."""
        settings, parts, context = self.settings, self.parts, self.context
        offline = settings["pruning"] == "offline" and settings["space"] == "bundles"
        folds = [Folds(parts, side, settings["folds"] if offline else 1) for side in range(len(self.sides))]
        asked = {name: settings[name] for name in ("folds", "pruning_epochs", "scheme", "full", "cutoff", "fold")}
        key = key_of(
            "single models 1", LEARNING, self.task, self.names, asked, offline, self.seed, self.featurizer.table.texts,
            parts.features.data, parts.features.offsets, parts.sentences,
            *(array for one in parts.given for array in (one.labels, one.sets.data, one.sets.offsets)),
        )  # fmt: skip
        chains: list[list[SideModel]]
        kept = context.stages.find(key)
        if kept is not None:
            chains = [[self._stage_side(kept[1], s, k) for k in range(one.n_folds + 1)] for s, one in enumerate(folds)]
        else:
            chains = train_chains(
                parts, self.names, folds, self.task, settings["scheme"], self.featurizer, settings, self.seed, context
            )
            tensors: dict[str, NDArray[Any]] = {}
            for s, models in enumerate(chains):
                for k, model in enumerate(models):
                    tensors |= model.to_tensors(f"{s}.{k}")
            context.stages.keep(key, {}, tensors)
        self.chains = tuple(models[0] for models in chains)
        if not offline:
            return
        pruner = self.pruner()
        assert pruner is not None
        lists = [
            keep_for_training(parts, s, chains[s], folds[s], pruner, context.threads) for s in range(len(self.sides))
        ]
        self.candidates = Candidates.of(lists, self.sizes)
        means = " x ".join(f"{self.candidates.mean(s):.1f}" for s in range(len(self.sides)))
        context.report(f"pruning leaves {means} labels at a unit")

    def _stage_side(self, tensors: dict[str, NDArray[Any]], s: int, k: int) -> SideModel:
        return SideModel.from_tensors(
            f"{s}.{k}", self.names[s], self.task, self.settings["scheme"], len(self.featurizer), {}, tensors
        )

    def pruner(self) -> Pruner | None:
        """The pruner of the trained model, or None."""
        if not self.chains or self.settings["pruning"] != "offline" or self.settings["space"] != "bundles":
            return None
        r, lambda_ = zip(*self.limits, strict=True)
        return Pruner(self.chains, r, lambda_, self.task != "pos")

    def _map(self) -> None:
        """The mapping: which bundles may exist at all."""
        choice, scheme_name = self.settings["mapping"], self.settings["scheme"]
        if choice == "automatic":
            found = []
            for side, chain in enumerate(self.chains):
                found.append(best_labels(self.parts, side, chain))
            labels = [
                np.where(one.labels >= 0, one.labels, best) for one, best in zip(self.parts.given, found, strict=True)
            ]
            self.mapping = mappings.automatic(self.names, *labels, min_count=self.settings["least"])
        else:
            if not Path(choice).is_file():
                raise SettingError(
                    f"mapping={choice}: expected complete, automatic, or a rule file; there is no such file."
                )
            if self.task == "pos":
                self.mapping = mappings.from_rules(choice, self.names)
            elif self.task == "segpos":
                tags = [sorted({tag for tag in map(_tag_of, names) if tag}) for names in self.names]
                self.mapping = mappings.lift(
                    mappings.from_rules(choice, tags), self.names, self.settings["lift"], scheme_name=scheme_name
                )
            else:
                raise SettingError(
                    "a rule file maps tags, and the task seg has none: use mapping=complete or automatic."
                )
        for one, missing in zip(self.sides, self.mapping.uncovered(), strict=True):
            if missing:
                self.context.report(
                    f"the mapping says nothing of {len(missing)} labels of {one.name}: {', '.join(missing[:8])}"
                )
        self.table = self.mapping.table

    def allowed(self) -> Lattice | None:
        """The bundles that training allows at every unit; None for a grid."""
        if isinstance(self.space, GridSpace):
            return None
        parts = self.parts
        if self.candidates is not None:
            candidates = self.candidates
        else:
            lists = [one.lists(size) for one, size in zip(parts.given, self.sizes, strict=True)]
            candidates = Candidates.of(lists, self.sizes)
        space = candidates.lattice(parts.sentences)
        if self.table is not None:
            space = mapped_lattice(space, self.table, parts.given)
        if space.is_product:
            return space.restrict_sides(candidates.allowed(parts.given))
        return space.restrict(allowed_bundles(space, parts.given))

    def model(self) -> Coupled:
        """The model with a weight for every (feature, label) and (feature, bundle) that training allows, all 0."""
        settings, parts = self.settings, self.parts
        n_rows, n_codes = len(self.featurizer), int(np.prod(self.sizes))
        flat = Ragged(parts.features.data, parts.features.offsets)
        allowed = self.allowed()
        sides = []
        for s, (names, given) in enumerate(zip(self.names, parts.given, strict=True)):
            labels, sets = given.labels, given.sets
            if settings["features"] == "joint":
                labels = labels[:0]
            elif allowed is not None:
                labels, sets = _side_sets(allowed, s, self.sizes[s])
            features = flat if len(labels) else Ragged(flat.data[:0], np.zeros(1, np.int64))
            rows = build_rows(n_rows, len(names), [(features, labels, sets)], settings["full"])
            side = empty_side(names, self.task, settings["scheme"], rows)
            if self.chains and settings["start"] == "models":
                side = side.starting_from(self.chains[s], START)
            sides.append(side)
        joint = _no_joint(n_rows, n_codes)
        if settings["features"] != "separate":
            kinds, offsets, codes = self._kinds(allowed)
            joint = build_joint_rows(
                n_rows, n_codes, flat.data, flat.offsets, kinds, offsets, codes, settings["joint_cutoff"]
            )
            if self.chains and settings["associations"] > 0:
                everywhere = int(np.argmax(np.bincount(flat.data, minlength=n_rows)))
                joint = begin_with_associations(joint, everywhere, parts, self.chains, settings["associations"])
        keys = np.zeros(0, np.int64)
        if settings["transitions"] == "joint":
            if allowed is not None:
                keys = allowed_pairs(allowed)
            elif n_codes**2 <= 1 << 26:
                keys = np.arange(n_codes**2, dtype=np.int64)
            else:
                raise SettingError(
                    f"transitions=joint in the complete space needs {n_codes:,} x {n_codes:,} weights: "
                    "use transitions=separate, or space=bundles."
                )
        pairs = np.zeros(len(keys), np.float32)
        return Coupled(self.task, settings["scheme"], self.featurizer, tuple(sides), joint, keys, pairs)

    def _kinds(self, allowed: Lattice | None) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int32]]:
        """For each unit which run of bundle codes it allows."""
        if allowed is not None:
            codes = np.empty(allowed.n_bundles, np.int32)
            write_codes(allowed.space, room_for_token(allowed.space), codes)
            return np.arange(allowed.n_tokens, dtype=np.int32), allowed.space.starts, codes
        labels = np.stack([one.labels for one in self.parts.given], axis=1)
        kinds, where = np.unique(labels, axis=0, return_inverse=True)
        runs = []
        for row in kinds.tolist():
            code = np.zeros(1, np.int64)
            for given, size, label in zip(self.parts.given, self.sizes, row, strict=True):
                here = (
                    np.arange(size) if label == UNKNOWN else np.array([label]) if label >= 0 else given.sets[-2 - label]
                )
                code = (code[:, None] * size + here[None, :]).ravel()
            runs.append(np.sort(code).astype(np.int32))
        return where.ravel().astype(np.int32), offsets_of([len(run) for run in runs]), np.concatenate(runs)

    def loop(self, about: dict[str, Any]) -> Loop:
        """The epochs."""
        settings = self.settings
        model = self.model()
        learner = CoupledLearner(
            model, self.parts, self.space, self.candidates, settings, self.seed, self.context.threads
        )
        about |= {
            "features": len(self.featurizer),
            "entries": int(sum(len(side.rows.labels) for side in model.sides) + len(model.joint.codes)),
        }
        if self.mapping is not None:
            about["bundles"] = len(self.mapping)
        units, seconds = learner.forecast()
        self.context.report(
            f"an epoch visits {units:,} units in about {seconds:.0f} s; {settings['epochs']} epochs at the most: about "
            f"{seconds * settings['epochs'] / 60:.0f} min, dev not counted"
        )
        devs = [Dev(side, s, self, model) for s, side in enumerate(self.sides) if side.dev is not None]

        def score(now: Coupled) -> dict[str, float]:
            return {dev.side.name: dev.score(now) for dev in devs}

        return Loop(learner, score if devs else None, settings["epochs"], settings["patience"])

    def choices(self) -> Choices:
        """What a tagger needs beside the model."""
        return Choices(self.pruner(), self.space, self.settings["decode"])

    def tagger(self, model: Coupled) -> CoupledTagger:
        """The tagger of a model."""
        infos = []
        for side, names in zip(self.sides, self.names, strict=True):
            tags = names
            if self.task != "pos":
                tags = tuple(sorted({tag for tag in parse_labels(scheme(self.settings["scheme"]), names)[2] if tag}))
            infos.append(side.info(tags))
        return CoupledTagger(self.task, infos, model, self.choices(), {})


class Dev:
    """The dev corpus of one side, its features and candidates looked up once."""

    def __init__(self, side: Side, number: int, made: Preparation, model: Coupled) -> None:
        assert side.dev is not None
        self.side, self.number, self.task = side, number, made.task
        units = units_of(side.dev, side.dev.layer(side.dev_layer), made.task)
        rows = made.featurizer.transform(units)
        labeller = Labeller(model, made.choices(), made.context.threads)
        self.batches = list(labeller.batches(Features(rows.data, rows.offsets), units.sentences, None))
        self.made = made

    def score(self, model: Coupled) -> float:
        """How well the model does."""
        labeller = Labeller(model, self.made.choices(), self.made.context.threads)

        def label(corpus: Any, gold: Layer) -> Layer:
            found = [labeller.best(batch)[:, self.number] for batch in self.batches]
            labels = np.concatenate([np.zeros(0, np.int32), *found])
            return layer_of(corpus, model, self.number, labels, gold, "pred")

        return dev_score(self.side, self.task, label)


def _side_sets(allowed: Lattice, side: int, size: int) -> tuple[NDArray[np.int32], Ragged]:
    """The labels of one side that a lattice allows at each unit, as labels and sets."""
    if allowed.is_product:
        lists = allowed.side_lists(side)
    else:
        tokens = np.repeat(np.arange(allowed.n_tokens), np.diff(allowed.space.starts))
        codes = np.unique(tokens * size + allowed.labels[:, side])
        lists = Ragged(
            (codes % size).astype(np.int32), offsets_of(np.bincount(codes // size, minlength=allowed.n_tokens))
        )
    return (-2 - np.arange(allowed.n_tokens)).astype(np.int32), lists


def _no_joint(n_rows: int, n_codes: int) -> JointRows:
    return JointRows(n_codes, np.zeros(n_rows + 1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32))


def _tag_of(label: str) -> str | None:
    return split_label(label)[1]


METHOD = Method(
    "coupled",
    "bundles of labels, one per standard (li2015, li2016)",
    ("pos", "seg", "segpos"),
    (2, None),
    "all sides",
    "any side -> any other",
    SETTINGS,
    start,
    CoupledTagger.load,
)
