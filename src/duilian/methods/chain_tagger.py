"""A chain as a tagger. Asked: a chain, some units and what is known of them -> labels, words, confidences, n best."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duilian.corpus import Corpus, Layer
from duilian.lifting import Units, boundary_sets, is_space, label_units, layer_from, units_of
from duilian.models.chain import Chain
from duilian.ragged import Ragged
from duilian.standards.schemes import parse_labels, scheme, words_of
from duilian.tagger import SideInfo, Tagger, read_sides
from duilian.tensors import Header, require_field

Allowed = tuple[NDArray[np.int32] | None, Ragged | None]
"""Labels and sets that units are limited to, as in a Layer; None: all of them."""


@dataclass(frozen=True, eq=False)
class Asked:
    """A chain asked about units.

    features: what the chain scores them by;  allowed, sets: what they are limited to
    """

    chain: Chain
    units: Units
    features: Any
    allowed: NDArray[np.int32] | None = None
    sets: Ragged | None = None

    def best(self) -> NDArray[np.int32]:
        """(U,) the best labels."""
        return self.chain.decode(self.features, self.units.sentences, self.allowed, self.sets)

    def layer(self, corpus: Corpus, like: Layer | None, name: str, confidence: bool = False) -> Layer:
        """The best labels as a layer."""
        labels = self.best()
        new = self._layer(corpus, labels, like, name)
        return replace(new, confidence=self.confidence(labels)) if confidence else new

    def confidence(self, labels: NDArray[np.int32]) -> NDArray[np.float32]:
        """Of each word: the marginal of its tag, or of its whole span with its tag."""
        chain, found = self.chain, []
        for begin, end, part in chain.posteriors(self.features, self.units.sentences, self.allowed, self.sets):
            if chain.task == "pos":
                found.append(part.of_labels(labels[begin:end]))
                continue
            prefixes, _, _ = parse_labels(scheme(chain.scheme), chain.names)
            begins, ends, _ = words_of(scheme(chain.scheme), prefixes[labels[begin:end]], part.sentences)
            found.append(part.of_spans(labels[begin:end], begins, ends))
        return np.concatenate([*found, np.zeros(0)]).astype(np.float32)

    def sample(self, corpus: Corpus, like: Layer | None, name: str, rng: np.random.Generator) -> Layer:
        """Labels drawn from the chain's distribution as a layer."""
        parts = self.chain.posteriors(self.features, self.units.sentences, self.allowed, self.sets)
        labels = [part.sample(rng) for _, _, part in parts]
        return self._layer(corpus, np.concatenate([np.zeros(0, np.int32), *labels]), like, name)

    def several(self, corpus: Corpus, like: Layer | None, name: str, k: int) -> list[tuple[Layer, float]]:
        """The k best labellings of the one sentence that the corpus has, with their probabilities, best first."""
        chain = self.chain
        paths, scores = chain.n_best(self.features, 0, len(self.units), k, self.allowed, self.sets)
        parts = chain.posteriors(self.features, self.units.sentences, self.allowed, self.sets)
        log_z = sum((float(part.log_z.sum()) for _, _, part in parts), 0.0)
        return [
            (self._layer(corpus, path, like, name), float(np.exp(score / chain.temperature - log_z)))
            for path, score in zip(paths, scores, strict=True)
        ]

    def _layer(self, corpus: Corpus, labels: NDArray[np.int32], like: Layer | None, name: str) -> Layer:
        return layer_from(corpus, labels, self.chain.names, self.chain.task, like, name, self.chain.scheme)


def allowed_in(chain: Chain, corpus: Corpus, layer: Layer | None, units: Units, constrain: bool) -> Allowed:
    """What units are limited to: labels that are to be kept, or what spaces in raw text leave."""
    if constrain and layer is not None and layer.name != "chunks":
        given = label_units(corpus, layer, chain.task, chain.scheme, chain.names)
        return given.labels, given.sets
    if chain.task != "pos" and (layer is None or layer.name == "chunks") and is_space(corpus.text).any():
        return boundary_sets(corpus, units, chain.names, chain.scheme)
    return None, None


def tags_of(chain: Chain) -> tuple[str, ...]:
    """The tags that a chain answers with, sorted."""
    if chain.task == "pos":
        return chain.names
    return tuple(sorted({tag for tag in parse_labels(scheme(chain.scheme), chain.names)[2] if tag}))


class ChainTagger(Tagger):
    """A chain as a tagger. Methods that give their chain guides have an ``ask`` of their own."""

    def __init__(self, method: str, task: str, side: SideInfo, chain: Chain, about: dict[str, Any]) -> None:
        super().__init__(task, [side], about)
        self.method, self.chain = method, chain

    def ask(self, corpus: Corpus, layer: Layer | None, constrain: bool = False) -> Asked:
        """The chain asked about a corpus."""
        units = units_of(corpus, layer, self.task)
        allowed, sets = allowed_in(self.chain, corpus, layer, units, constrain)
        return Asked(self.chain, units, self.chain.features(units), allowed, sets)

    def label(self, corpus: Corpus, layer: Layer | None, side: SideInfo, *, constrain: bool, confidence: bool) -> Layer:
        """Words relabelled, or text segmented anew."""
        return self.ask(corpus, layer, constrain).layer(corpus, layer, side.name, confidence)

    def sample(self, corpus: Corpus, rng: np.random.Generator, layer: str | None = None) -> Corpus:
        """The corpus with a labelling drawn from the model's distribution in place of the best one."""
        read = next((one for one in corpus.layers if layer is None or one.name == layer), None)
        name = read.name if read is not None else self.side().name
        return corpus.with_layer(self.ask(corpus, read).sample(corpus, read, name, rng))

    def n_best(self, corpus: Corpus, side: str | None, layer: str | None, k: int) -> list[list[tuple[Layer, float]]]:
        """The k best labellings of each sentence with their probabilities, best first."""
        info = self.answer(side)
        found = []
        for number in range(len(corpus)):
            one = corpus.select([number])
            read = next((part for part in one.layers if layer is None or part.name == layer), None)
            found.append(self.ask(one, read).several(one, read, info.name, k))
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
