"""What transformation leaves: a single classifier that tags, and two chains that convert, each checked by the other."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duilian.corpus import UNKNOWN, Corpus, Layer
from duilian.features.templates import guide_offsets
from duilian.lifting import label_units
from duilian.methods.chain_tagger import Asked, ChainTagger
from duilian.methods.guide import read_chain
from duilian.methods.guides import fill
from duilian.models.chain import Chain
from duilian.models.predict_self import PredictSelf
from duilian.tagger import SideInfo, read_sides
from duilian.tensors import Header, reject, require_field


@dataclass(frozen=True, eq=False)
class Transformation:
    """A round of jiang2012 Algorithm 3.

    classifier:        the chain that learnt from the target and the transformed source
    forward, backward: source -> target and target -> source, each with the other side's label as guide
    ratio:             lambda of Eq. 2
    heat, back_heat:   temperatures of conversion to the first and to the second side
    """

    classifier: Chain
    forward: Chain
    backward: Chain
    ratio: float
    heat: float
    back_heat: float

    def to_first(self) -> PredictSelf:
        """What converts the second side's standard to the first's."""
        return PredictSelf.of(self.forward, self.backward, self.ratio, self.heat)

    def to_second(self) -> PredictSelf:
        """What converts the first side's standard to the second's."""
        return PredictSelf.of(self.backward, self.forward, self.ratio, self.back_heat)

    def to_tensors(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """What a model file keeps of it: header fields and tensors."""
        header: dict[str, Any] = {"lambda": self.ratio, "temperatures": [self.heat, self.back_heat]}
        tensors: dict[str, NDArray[Any]] = {}
        for name in ("classifier", "forward", "backward"):
            header[name], more = getattr(self, name).to_tensors(f"{name}.")
            tensors |= more
        return header, tensors

    @classmethod
    def from_tensors(cls, fields: Header, tensors: dict[str, NDArray[Any]]) -> Transformation:
        """The reverse of ``to_tensors``; what it takes on trust is checked here."""
        chains = [read_chain(fields, name, tensors, f"{name}.") for name in ("classifier", "forward", "backward")]
        if len({chain.task for chain in chains}) > 1:
            reject(fields, f"its chains are for {', '.join(chain.task for chain in chains)}")
        for chain in chains:
            if guide_offsets(chain.featurizer.table.texts) is None:
                reject(fields, "one of its templates looks at more than one guide")
        heats = require_field(fields, "temperatures", list)
        if len(heats) != 2 or not all(isinstance(heat, float) and 0 < heat < np.inf for heat in heats):
            reject(fields, f"its temperatures are {heats!r}")
        ratio = require_field(fields, "lambda", float)
        if not 0 <= ratio <= 1:
            reject(fields, f"its lambda is {ratio}")
        return cls(chains[0], chains[1], chains[2], ratio, heats[0], heats[1])

    def numbers(self) -> dict[str, NDArray[Any]]:
        """Everything that a round changes: all of it."""
        header, tensors = self.to_tensors()
        return tensors | {"header": np.frombuffer(json.dumps(header).encode("utf-8", "surrogatepass"), np.uint8)}

    @staticmethod
    def with_numbers(numbers: dict[str, NDArray[Any]]) -> Transformation:
        """The transformation that has these numbers."""
        header = json.loads(numbers["header"].tobytes().decode("utf-8", "surrogatepass"))
        return Transformation.from_tensors(Header("checkpoint", header), dict(numbers))


class TransformTagger(ChainTagger):
    """The single classifier as a tagger of the first side; conversion both ways."""

    def __init__(self, task: str, sides: Sequence[SideInfo], model: Transformation, about: dict[str, Any]) -> None:
        super().__init__("transform", task, sides[0], model.classifier, about)
        self.sides, self.model = tuple(sides), model

    @property
    def answers(self) -> tuple[SideInfo, ...]:
        """The first side alone."""
        return self.sides[:1]

    def convert_layer(
        self, corpus: Corpus, layer: Layer, source: SideInfo, target: SideInfo, *, given: Layer | None,
        confidence: bool,
    ) -> Layer:  # fmt: skip
        """The labels with the highest S+, what the layer says being x (jiang2012 Eq. 2)."""
        return self._given(corpus, layer, target, given).layer(corpus, layer, target.name, confidence)

    def convert_n_best(
        self, corpus: Corpus, layer: Layer, source: SideInfo, target: SideInfo, k: int, *, given: Layer | None = None
    ) -> list[list[tuple[Layer, float]]]:
        """The k best conversions of each sentence with their probabilities."""
        found = []
        whole = Corpus(corpus.text, corpus.offsets, (layer,) if given is None else (layer, given))
        for number in range(len(corpus)):
            one = whole.select([number])
            read, kept = one.layers[0], one.layers[1] if given is not None else None
            found.append(self._given(one, read, target, kept).several(one, read, target.name, k))
        return found

    def _given(self, corpus: Corpus, layer: Layer, target: SideInfo, given: Layer | None) -> Asked:
        """Conversion asked about a corpus. Gaps in its annotation are filled by the chain the other way, unguided."""
        model = self.model.to_first() if target.name == self.sides[0].name else self.model.to_second()
        own = model.backward
        assert own is not None
        labelled = label_units(corpus, layer, self.task, own.scheme, own.names)
        x = fill(own, labelled, np.full((1, len(labelled.units)), UNKNOWN, np.int32))
        allowed, sets = None, None
        if given is not None:
            kept = label_units(corpus, given, self.task, model.scheme, model.names)
            allowed, sets = kept.labels, kept.sets
        return Asked(model, labelled.units, model.both_ways(labelled.units, x), allowed, sets)

    def parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Header fields and tensors of the three chains."""
        return self.model.to_tensors()

    @classmethod
    def load(cls, header: dict[str, Any], tensors: dict[str, NDArray[Any]]) -> TransformTagger:
        """From a model file."""
        fields = Header(getattr(header, "path", "model"), require_field(header, "model", dict))
        sides = read_sides(header, tensors)
        if len(sides) != 2:
            reject(header, f"it has {len(sides)} sides where 2 were expected")
        model = Transformation.from_tensors(fields, tensors)
        return cls(model.classifier.task, sides, model, require_field(header, "about", dict))
