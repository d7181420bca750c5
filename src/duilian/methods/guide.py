"""guide: two stages. Taggers of other standards label the target's text; their labels are features of its own tagger.

li2015 section 5.3 ("guide-feature"), after Jiang et al. 2009; jiang2012 calls it annotation adaptation (``adapt``).
Conversion takes the gold labels of the other standard as guides where the taggers' labels were in training.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duilian.corpus import Corpus, Layer
from duilian.errors import TaskError
from duilian.features.templates import GUIDES
from duilian.lifting import label_units, units_of
from duilian.methods import single
from duilian.methods.base import Method, Side, Training, stamp_of
from duilian.methods.chain_tagger import Asked, ChainTagger, allowed_in, tags_of
from duilian.methods.guides import annotate, dev_units, fill, source_labels, trained_chain
from duilian.methods.learned import learner_of, settings_for
from duilian.methods.single import ChainRun, without_doubtful
from duilian.models.chain import Chain
from duilian.settings import Setting
from duilian.stages import Context
from duilian.tagger import SideInfo, Tagger, read_sides
from duilian.tensors import Header, reject, require_field
from duilian.training.loop import Loop

LEARNERS = single.METHODS
OWN = (
    Setting("folds", 5, "parts for jack-knifing where a source has sentences of the target; 1: no jack-knifing", low=1),
)


class GuidedTagger(ChainTagger):
    """A chain of the first side whose guides are labels of the other sides.

    sources: a chain for each other side
    """

    def __init__(
        self, method: str, task: str, sides: Sequence[SideInfo], chain: Chain, sources: Sequence[Chain],
        about: dict[str, Any],
    ) -> None:  # fmt: skip
        super().__init__(method, task, sides[0], chain, about)
        self.sides, self.sources = tuple(sides), tuple(sources)

    @property
    def answers(self) -> tuple[SideInfo, ...]:
        """The first side alone."""
        return self.sides[:1]

    def ask(self, corpus: Corpus, layer: Layer | None, constrain: bool = False) -> Asked:
        """The chain with the labels of the other sides' chains as guides."""
        units = units_of(corpus, layer, self.task)
        guide = []
        for one in self.sources:
            spaces = allowed_in(one, corpus, layer, units, False)
            guide.append(Asked(one, units, one.features(units), *spaces).best())
        allowed, sets = allowed_in(self.chain, corpus, layer, units, constrain)
        return Asked(self.chain, units, self.chain.features(units, np.stack(guide)), allowed, sets)

    def convert_layer(
        self, corpus: Corpus, layer: Layer, source: SideInfo, target: SideInfo, *, given: Layer | None,
        confidence: bool,
    ) -> Layer:  # fmt: skip
        """The source's guides are what the layer says (li2015 section 5.4)."""
        return self._given(corpus, layer, source, target, given).layer(corpus, layer, target.name, confidence)

    def convert_n_best(
        self, corpus: Corpus, layer: Layer, source: SideInfo, target: SideInfo, k: int, *, given: Layer | None = None
    ) -> list[list[tuple[Layer, float]]]:
        """The k best conversions of each sentence with their probabilities."""
        found = []
        whole = Corpus(corpus.text, corpus.offsets, (layer,) if given is None else (layer, given))
        for number in range(len(corpus)):
            one = whole.select([number])
            read, kept = one.layers[0], one.layers[1] if given is not None else None
            found.append(self._given(one, read, source, target, kept).several(one, read, target.name, k))
        return found

    def _given(self, corpus: Corpus, layer: Layer, source: SideInfo, target: SideInfo, given: Layer | None) -> Asked:
        if target.name != self.sides[0].name:
            raise TaskError(
                f"{self.method} converts to {self.sides[0].name} alone: train with {target.name} as the first side."
            )
        units = units_of(corpus, layer, self.task)
        guide = []
        for info, chain in zip(self.sides[1:], self.sources, strict=True):
            if info.name == source.name:
                guide.append(fill(chain, label_units(corpus, layer, self.task, chain.scheme, chain.names)))
            else:
                guide.append(annotate(chain, units))
        allowed, sets = None, None
        if given is not None:
            kept = label_units(corpus, given, self.task, self.chain.scheme, self.chain.names)
            allowed, sets = kept.labels, kept.sets
        return Asked(self.chain, units, self.chain.features(units, np.stack(guide)), allowed, sets)

    def parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Header fields and tensors of all chains."""
        header, tensors = self.chain.to_tensors()
        sources = []
        for number, chain in enumerate(self.sources):
            fields, more = chain.to_tensors(f"source.{number}.")
            sources.append(fields)
            tensors |= more
        return {"target": header, "sources": sources}, tensors

    @classmethod
    def load(cls, header: dict[str, Any], tensors: dict[str, NDArray[Any]]) -> GuidedTagger:
        """From a model file."""
        path = getattr(header, "path", "model")
        fields = Header(path, require_field(header, "model", dict))
        sides = read_sides(header, tensors)
        chain = read_chain(fields, "target", tensors)
        records = require_field(fields, "sources", list)
        if not 1 <= len(records) <= len(GUIDES) or len(records) != len(sides) - 1:
            reject(header, f"it has {len(sides)} sides and chains for {len(records)} beside the first")
        sources = []
        for number, record in enumerate(records):
            one = read_chain(Header(path, {"chain": record}), "chain", tensors, f"source.{number}.")
            if one.task != chain.task:
                reject(header, f"its chains are for {chain.task} and {one.task}")
            sources.append(one)
        return cls(
            require_field(header, "method", str),
            chain.task,
            sides,
            chain,
            sources,
            require_field(header, "about", dict),
        )


def read_chain(fields: Header, name: str, tensors: dict[str, NDArray[Any]], prefix: str = "") -> Chain:
    """One of several chains of a model file."""
    return Chain.from_tensors(Header(fields.path, require_field(fields, name, dict)), tensors, prefix)


def start(method: str) -> Callable[[list[Side], str, dict[str, Any], int], Training]:
    """The training runs of a cascade."""

    def begin(sides: list[Side], task: str, settings: dict[str, Any], seed: int) -> Training:
        learner, chosen = learner_of(LEARNERS, settings, task, OWN)
        kept = [without_doubtful(side, chosen) for side in sides]
        about: dict[str, Any] = {"learner": learner.name, "settings": chosen, "seed": seed}
        sources: list[Chain] = []
        runs: list[ChainRun] = []

        def prepare(context: Context) -> Loop:
            sources.clear()
            target = kept[0]
            units, held = units_of(target.corpus, target.gold, task), dev_units(target, task)
            guide, dev_guide = [], []
            for side in kept[1:]:
                chain, went = trained_chain(side.name, learner, side, task, chosen, seed, context)
                sources.append(chain)
                about.setdefault("sources", {})[side.name] = went
                guide.append(source_labels(side, chain, units, learner, task, chosen, seed, settings["folds"], context))
                if held is not None:
                    dev_guide.append(annotate(chain, held, threads=context.threads))
            run = ChainRun(
                target, task, chosen, seed, np.stack(guide), np.stack(dev_guide) if held is not None else None
            )
            runs.append(run)
            about.update(run.about())
            return run.loop

        def finish(model: Chain) -> Tagger:
            infos = [side.info(tags_of(chain)) for side, chain in zip(sides, (model, *sources), strict=True)]
            return GuidedTagger(method, task, infos, runs[0].finished(model), sources, {})

        return Training(method, prepare, finish, about, stamp_of(method, sides, task, settings, seed))

    return begin


def cascade(name: str, about: str, learner: str) -> Method:
    """A cascade as a row of METHODS: what differs is the learner that is the default."""
    return Method(
        name,
        about,
        ("pos", "seg", "segpos"),
        (2, 1 + len(GUIDES)),
        "the first side",
        "others -> first",
        settings_for(LEARNERS, learner, "what all chains are trained by", OWN),
        start(name),
        GuidedTagger.load,
    )


METHOD = cascade(
    "guide", "taggers of other standards label, their labels are features (li2015, Jiang et al. 2009)", "crf"
)
