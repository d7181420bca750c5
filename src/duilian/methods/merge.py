"""merge: different standards concatenated as if they were one. What the other methods have to beat (jiang2012 Table 5).

The labels of the target are kept; a word of another side keeps its boundaries, and its tag where the target has a tag
of that name. A tag that the target does not know becomes unknown, so that nothing foreign is ever answered.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from duilian.corpus import Corpus, concatenate, with_tags
from duilian.methods import hmm, single
from duilian.methods.base import Method, Side, Training
from duilian.methods.chain_tagger import ChainTagger
from duilian.methods.learned import learner_of, settings_for
from duilian.tagger import Tagger

LEARNERS = (*single.METHODS, hmm.METHOD)


def merged(sides: list[Side]) -> Side:
    """The target with the sentences of all others behind its own."""
    target = sides[0]
    tags = target.gold.tags
    parts = []
    for side in sides:
        layer = with_tags(side.gold, tags)
        parts.append(Corpus(side.corpus.text, side.corpus.offsets, (replace(layer, name="merged"),)))
    whole = concatenate(parts)
    return replace(target, corpus=whole, layer="merged")


def start(sides: list[Side], task: str, settings: dict[str, Any], seed: int) -> Training:
    """Train the learner on everything."""
    learner, chosen = learner_of(LEARNERS, settings, task)
    run = learner.start([merged(sides)], task, chosen, seed)
    run.method = "merge"
    run.about["learner"] = learner.name
    finish: Callable[[Any], Tagger] = run.finish

    def renamed(model: Any) -> Tagger:
        tagger = finish(model)
        tagger.method = "merge"
        return tagger

    run.finish = renamed
    return run


def load(header: dict[str, Any], tensors: dict[str, Any]) -> Tagger:
    """From a model file, by its learner."""
    learner = header.get("about", {}).get("learner") if isinstance(header.get("about"), dict) else None
    loader = hmm.METHOD.load if learner == "hmm" else ChainTagger.load
    tagger = loader(header, tensors)
    tagger.method = "merge"
    return tagger


METHOD = Method(
    "merge",
    "different standards concatenated (jiang2012 Table 5)",
    ("pos", "seg", "segpos"),
    (2, None),
    "the first side",
    "",
    settings_for(LEARNERS, "crf", "what is trained on the merged corpus"),
    start,
    load,
)
__all__ = ["METHOD", "merged"]
