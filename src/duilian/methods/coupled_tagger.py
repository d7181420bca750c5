"""A coupled model as a tagger: answers in any of its standards, converts from any to any other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duilian.corpus import Corpus, Layer
from duilian.errors import DuilianError
from duilian.features import Dictionary, Featurizer
from duilian.inference.chain_marginals import marginals
from duilian.inference.pruning import Statistics, given_mask, statistics
from duilian.lifting import Units, boundary_sets, is_space, label_units, layer_from, units_of
from duilian.models.candidates import Candidates, Given, Pruner, slice_features
from duilian.models.coupled import Coupled
from duilian.models.side_model import SideModel
from duilian.models.spaces import Batch, GridSpace, LatticeSpace
from duilian.models.weights import Features
from duilian.ragged import Ragged, offsets_of
from duilian.standards.schemes import parse_labels, scheme, words_of
from duilian.tagger import SideInfo, Tagger, read_sides
from duilian.tensors import Header, reject, require, require_field, require_names

BLOCK = 1 << 13
"""Units are labelled in batches of about this many."""
FAINT = 1e-6
"""In the complete space words are weighed among the labels at least this probable."""


@dataclass(frozen=True)
class Choices:
    """How a model is asked: offline pruning or none, the space, and what the answer is (``path`` or ``label``)."""

    pruner: Pruner | None
    space: LatticeSpace | GridSpace
    decode: str


class Labeller:
    """Units with their features -> labels, marginals, confidences."""

    def __init__(self, model: Coupled, choices: Choices, threads: int = 1) -> None:
        self.model, self.choices, self.threads = model, choices, threads

    def batches(self, features: Features, sentences: NDArray[np.int64], given: list[Given] | None) -> Iterator[Batch]:
        """Blocks of whole sentences with their candidates. given: per side what is known."""
        at = 0
        n_sides = len(self.model.sides)
        while at < len(sentences) - 1:
            to = max(at + 1, int(np.searchsorted(sentences, sentences[at] + BLOCK, side="right")) - 1)
            begin, end = int(sentences[at]), int(sentences[to])
            part, offsets = slice_features(features, begin, end), sentences[at : to + 1] - begin
            at = to
            if given is None:
                here = tuple(Given.nothing(end - begin) for _ in range(n_sides))
            else:
                here = tuple(one.select(slice(begin, end)) for one in given)
            yield Batch(
                (part,) * (n_sides + 1), offsets, here, self._candidates(part, offsets, here, given is not None)
            )

    def _candidates(
        self, features: Features, sentences: NDArray[np.int64], given: tuple[Given, ...], some: bool
    ) -> Candidates | None:
        if isinstance(self.choices.space, GridSpace):
            return None
        pruner = self.choices.pruner
        lists = []
        for side, one in enumerate(given):
            if pruner is not None:
                lists.append(pruner.keep(side, features, sentences, one if some else None))
            elif some:
                lists.append(one.lists(self.model.sizes[side]))
        return Candidates.of(lists, self.model.sizes) if lists else None

    def best(self, batch: Batch) -> NDArray[np.int32]:
        """(T, S) labels."""
        if self.choices.decode == "label":
            marginals = self.choices.space.marginals(self.model, batch)
            return np.stack([side.argmax(axis=1) for side in marginals.sides], axis=1).astype(np.int32)
        labels = self.choices.space.best(self.model, batch)
        if np.any(labels < 0):
            unit = int(np.argmax(labels[:, 0] < 0))
            sentence = int(np.searchsorted(batch.sentences, unit, side="right"))
            raise DuilianError(
                f"sentence {sentence} of a block: the model has no labels among those that are allowed there."
            )
        return labels

    def of_labels(self, batch: Batch, side: int, labels: NDArray[np.int32]) -> NDArray[np.float32]:
        """(T,) the probability of each label."""
        found = self.choices.space.marginals(self.model, batch).sides[side]
        return np.minimum(1.0, found[np.arange(len(labels)), labels]).astype(np.float32)

    def of_words(
        self, batch: Batch, side: int, labels: NDArray[np.int32], spans: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        """(n_words,) the probability that the side carries these labels all over each word."""
        space = self.choices.space
        if isinstance(space, GridSpace):
            batch = replace(batch, candidates=self._likely(space, batch))
            space = LatticeSpace()
        return space.spans(self.model, batch, side, labels, spans).astype(np.float32)

    def n_best(self, batch: Batch, k: int) -> list[list[tuple[float, NDArray[np.int32]]]]:
        """Per sentence the k best paths with their probabilities, (T, S) labels each."""
        space = self.choices.space
        if isinstance(space, GridSpace):
            batch = replace(batch, candidates=self._likely(space, batch))
            space = LatticeSpace()
        return space.n_best(self.model, batch, k)

    def different(self, batch: Batch, side: int, k: int) -> list[list[tuple[float, NDArray[np.int32]]]]:
        """Per sentence the k best paths of one side; those that differ elsewhere alone are put together."""
        asked = k
        while True:
            answers, enough = [], True
            for paths in self.n_best(batch, asked):
                together: dict[bytes, tuple[float, NDArray[np.int32]]] = {}
                for score, path in paths:
                    mine = np.ascontiguousarray(path[:, side])
                    before = together.get(mine.tobytes(), (0.0, mine))[0]
                    together[mine.tobytes()] = (before + score, mine)
                enough = enough and (len(together) >= k or len(paths) < asked)
                answers.append(sorted(together.values(), key=lambda one: -one[0])[:k])
            if enough or asked >= 16 * k:
                return answers
            asked *= 4

    def _likely(self, space: GridSpace, batch: Batch) -> Candidates:
        """Labels of the complete space that are not all too improbable, and those of the best path."""
        best = space.best(self.model, batch)
        lists = []
        for side, found in enumerate(space.marginals(self.model, batch).sides):
            likely = found >= FAINT
            likely[np.arange(len(likely)), best[:, side]] = True
            lists.append(Ragged(np.nonzero(likely)[1].astype(np.int32), offsets_of(likely.sum(axis=1))))
        return Candidates.of(lists, self.model.sizes)


class CoupledTagger(Tagger):
    """A coupled model behind the protocol of all taggers."""

    method = "coupled"

    def __init__(
        self, task: str, sides: list[SideInfo], model: Coupled, choices: Choices, about: dict[str, Any]
    ) -> None:
        super().__init__(task, sides, about)
        self.model, self.choices = model, choices

    def label(self, corpus: Corpus, layer: Layer | None, side: SideInfo, *, constrain: bool, confidence: bool) -> Layer:
        """Words relabelled, or text segmented anew, to the standard of a side."""
        units = units_of(corpus, layer, self.task)
        given = self._given(corpus, layer, units, side, constrain)
        return self._answer(corpus, layer, units, side, given, confidence, self.choices)

    def convert_layer(
        self, corpus: Corpus, layer: Layer, source: SideInfo, target: SideInfo, *, given: Layer | None,
        confidence: bool,
    ) -> Layer:  # fmt: skip
        """Constrained decoding: the source side's labels are given (li2015 section 3.4)."""
        units = units_of(corpus, layer, self.task)
        known = self._known(corpus, layer, units, source, target, given)
        return self._answer(corpus, layer, units, target, known, confidence, self.choices)

    def convert_n_best(
        self, corpus: Corpus, layer: Layer, source: SideInfo, target: SideInfo, k: int, *, given: Layer | None = None
    ) -> list[list[tuple[Layer, float]]]:
        """The k best conversions of each sentence; paths that differ on other sides alone count as one."""
        units = units_of(corpus, layer, self.task)
        known = self._known(corpus, layer, units, source, target, given)
        return self._several(corpus, layer, target, k, known)

    def n_best(self, corpus: Corpus, side: str | None, layer: str | None, k: int) -> list[list[tuple[Layer, float]]]:
        """The k best labellings of each sentence on one side."""
        read = next((one for one in corpus.layers if layer is None or one.name == layer), None)
        units = units_of(corpus, read, self.task)
        info = self.side(side)
        return self._several(corpus, read, info, k, self._given(corpus, read, units, info, False))

    def pruning_statistics(self, corpus: Corpus, side: str, layer: str | None = None) -> Statistics:
        """What this model's pruning does to a corpus with gold labels of a side (li2016 Tables 2 and 4, Figure 3).

        Offline the side's own chain is asked, online and without pruning the model's separate features of that side.
        """
        read, number = corpus.layer(layer), self._number(self.side(side))
        units, own = units_of(corpus, read, self.task), self.model.sides[number]
        gold = label_units(corpus, read, self.task, self.model.scheme, own.names)
        pruner, space = self.choices.pruner, self.choices.space
        chain, (r, lambda_) = own, (len(own.names), 1.0)
        if pruner is not None:
            chain, r, lambda_ = pruner.chains[number], pruner.r[number], pruner.lambda_[number]
        elif isinstance(space, LatticeSpace) and space.online:
            r, lambda_ = space.online[number]
        features = self.model.features(units)
        node = chain.scores(features, units.sentences)
        given = given_mask(gold.labels, gold.sets, node.shape[1])
        return statistics(marginals(node, units.sentences, chain.trans), r, lambda_, given)

    def _answer(
        self, corpus: Corpus, layer: Layer | None, units: Units, side: SideInfo, given: list[Given] | None,
        confidence: bool, choices: Choices,
    ) -> Layer:  # fmt: skip
        labeller, number = Labeller(self.model, choices), self._number(side)
        features = self.model.features(units)
        labels, sure = [np.zeros(0, np.int32)], [np.zeros(0, np.float32)]
        for batch in labeller.batches(features, units.sentences, given):
            here = np.ascontiguousarray(labeller.best(batch)[:, number])
            labels.append(here)
            if confidence and self.task == "pos":
                sure.append(labeller.of_labels(batch, number, here))
            elif confidence:
                sure.append(labeller.of_words(batch, number, here, self._spans(batch, number, here)))
        flat = np.concatenate(labels)
        new = layer_of(corpus, self.model, number, flat, layer, side.name)
        return replace(new, confidence=np.concatenate(sure)) if confidence else new

    def _spans(self, batch: Batch, side: int, labels: NDArray[np.int32]) -> NDArray[np.int64]:
        way = scheme(self.model.scheme)
        prefixes, _, _ = parse_labels(way, self.model.sides[side].names)
        begins, _, _ = words_of(way, prefixes[labels], batch.sentences)
        return np.append(begins, batch.n_units).astype(np.int64)

    def _number(self, side: SideInfo) -> int:
        return next(number for number, one in enumerate(self.sides) if one.name == side.name)

    def _given(
        self, corpus: Corpus, layer: Layer | None, units: Units, side: SideInfo, constrain: bool
    ) -> list[Given] | None:
        """What is known before tagging: labels that are to be kept, or where spaces in the text leave no choice."""
        found = [Given.nothing(len(units)) for _ in self.sides]
        number, names = self._number(side), [one.names for one in self.model.sides]
        if constrain and layer is not None and layer.name != "chunks":
            here = label_units(corpus, layer, self.task, self.model.scheme, names[number])
            found[number] = Given(here.labels, here.sets)
            return found
        if self.task != "pos" and (layer is None or layer.name == "chunks") and is_space(corpus.text).any():
            for s, one in enumerate(names):
                found[s] = Given(*boundary_sets(corpus, units, one, self.model.scheme))
            return found
        return None

    def _known(
        self, corpus: Corpus, layer: Layer, units: Units, source: SideInfo, target: SideInfo, given: Layer | None
    ) -> list[Given]:
        """What is known before converting: the source side's labels, and those that the target side has already."""
        found = [Given.nothing(len(units)) for _ in self.sides]
        for one, side in ((layer, source), (given, target)):
            if one is not None:
                number = self._number(side)
                names = self.model.sides[number].names
                here = label_units(corpus, one, self.task, self.model.scheme, names)
                found[number] = Given(here.labels, here.sets)
        return found

    def _several(
        self, corpus: Corpus, layer: Layer | None, side: SideInfo, k: int, given: list[Given] | None
    ) -> list[list[tuple[Layer, float]]]:
        labeller, number = Labeller(self.model, self.choices), self._number(side)
        units = units_of(corpus, layer, self.task)
        features = self.model.features(units)
        answers: list[list[tuple[Layer, float]]] = []
        for batch in labeller.batches(features, units.sentences, given):
            for paths in labeller.different(batch, number, k):
                one = corpus.select([len(answers)])
                read = None if layer is None else one.layer(layer.name)
                answers.append(
                    [(layer_of(one, self.model, number, path, read, side.name), score) for score, path in paths]
                )
        return answers

    def parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Header fields and tensors of the model, its featurizer, and the chains that pruning asks."""
        header, tensors = self.model.to_tensors()
        featurizer, space, pruner = self.model.featurizer, self.choices.space, self.choices.pruner
        header |= {"templates": list(featurizer.table.texts), "fold": featurizer.fold, "decode": self.choices.decode}
        tensors["keys"] = featurizer.index.keys
        if featurizer.dictionary is not None:
            header["longest"] = featurizer.dictionary.longest
            tensors["dictionary"] = featurizer.dictionary.words
        header["space"] = "grid" if isinstance(space, GridSpace) else "bundles"
        if isinstance(space, LatticeSpace):
            header["online"] = [list(one) for one in space.online]
            if space.table is not None:
                tensors["mapping"] = np.argwhere(space.table).astype(np.int32)
        if pruner is not None:
            header["pruning"] = {"r": list(pruner.r), "lambda": list(pruner.lambda_)}
            for s, chain in enumerate(pruner.chains):
                tensors |= chain.to_tensors(f"pruning.{s}")
        return header, tensors

    @classmethod
    def load(cls, header: dict[str, Any], tensors: dict[str, NDArray[Any]]) -> CoupledTagger:
        """From a model file."""
        path = getattr(header, "path", "model")
        fields = Header(path, require_field(header, "model", dict))
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
        model = Coupled.from_tensors(fields, tensors, featurizer)
        sides = read_sides(header, tensors)
        if len(sides) != len(model.sides):
            reject(header, f"it has {len(sides)} sides, and labels of {len(model.sides)}")
        choices = _choices(fields, tensors, model)
        return cls(task, sides, model, choices, require_field(header, "about", dict))


def _choices(fields: Header, tensors: dict[str, NDArray[Any]], model: Coupled) -> Choices:
    """How the model is to be asked, from its file."""
    decode, kind = require_field(fields, "decode", str), require_field(fields, "space", str)
    if decode not in ("path", "label") or kind not in ("grid", "bundles"):
        reject(fields, f"it wants to be asked for {decode!r} in {kind!r}")
    if kind == "grid":
        return Choices(None, GridSpace(), decode)
    n = len(model.sides)
    online = tuple(_limits(fields, one) for one in require_field(fields, "online", list))
    if len(online) not in (0, n):
        reject(fields, f"it has limits for {len(online)} sides of {n}")
    table = None
    if "mapping" in tensors:
        rows = require(tensors, "mapping", np.int32, (None, n))
        if len(rows) and (rows.min() < 0 or np.any(rows.max(axis=0) >= np.array(model.sizes))):
            reject(tensors, "its mapping names labels that it does not have")
        table = np.zeros(model.sizes, np.bool_)
        table[tuple(rows.T)] = True
    pruner = None
    if "pruning" in fields:
        asked = require_field(fields, "pruning", dict)
        limits = [_limits(fields, one) for one in zip(asked.get("r", ()), asked.get("lambda", ()), strict=False)]
        if len(limits) != n:
            reject(fields, f"it has limits for {len(limits)} sides of {n}")
        chains = tuple(
            SideModel.from_tensors(
                f"pruning.{s}", side.names, model.task, model.scheme, len(model.featurizer), fields, tensors
            )
            for s, side in enumerate(model.sides)
        )
        r, lambda_ = zip(*limits, strict=True)
        pruner = Pruner(chains, r, lambda_, model.task != "pos")
    return Choices(pruner, LatticeSpace(table, online, model.task != "pos"), decode)


def _limits(fields: Header, pair: Any) -> tuple[int, float]:
    """(r, lambda) of one side."""
    if isinstance(pair, list | tuple) and len(pair) == 2:
        r, lambda_ = pair
        if (
            isinstance(r, int)
            and not isinstance(r, bool)
            and r >= 1
            and isinstance(lambda_, int | float)
            and lambda_ > 0
        ):
            return r, float(lambda_)
    reject(fields, f"its pruning limits are {pair!r}")


def layer_of(
    corpus: Corpus, model: Coupled, side: int, labels: NDArray[np.int32], like: Layer | None, name: str
) -> Layer:
    """Labels of one side -> a layer."""
    return layer_from(corpus, labels, model.sides[side].names, model.task, like, name, model.scheme)
