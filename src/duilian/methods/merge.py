"""merge: different standards concatenated as if they were one. What the other methods have to beat (jiang2012 Table 5).

The labels of the target are kept; a word of another side keeps its boundaries, and its tag where the target has a tag
of that name. A tag that the target does not know becomes unknown, so that nothing foreign is ever answered.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from duilian.corpus import Corpus, concatenate, with_tags
from duilian.errors import SettingError
from duilian.methods import hmm, single
from duilian.methods.base import Method, Side, Training
from duilian.settings import Setting, resolve
from duilian.tagger import Tagger

LEARNERS = {method.name: method for method in (*single.METHODS, hmm.METHOD)}
LEARNER = Setting("learner", "crf", "what is trained on the merged corpus", choices=tuple(LEARNERS))
_NAMES = {setting.name for method in LEARNERS.values() for setting in method.settings}


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
    given = dict(settings)
    learner = LEARNERS[given.pop("learner")]
    if task not in learner.tasks:
        raise SettingError(f"learner={learner.name} does {', '.join(learner.tasks)}, not {task}.")
    chosen = {name: value for name, value in given.items() if value is not None}
    run = learner.start([merged(sides)], task, resolve(learner.settings, chosen, f"learner {learner.name}"), seed)
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
    loader = hmm.METHOD.load if learner == "hmm" else single.ChainTagger.load
    tagger = loader(header, tensors)
    tagger.method = "merge"
    return tagger


class AnySetting(Setting):
    """A setting that is handed to the learner, which checks it; unset unless given."""

    def read(self, value: Any) -> Any:
        """As it is."""
        return value


METHOD = Method(
    "merge",
    "different standards concatenated (jiang2012 Table 5)",
    ("pos", "seg", "segpos"),
    (2, None),
    "the first side",
    "",
    (LEARNER, *(AnySetting(name, None, "of the learner") for name in sorted(_NAMES))),
    start,
    load,
)
__all__ = ["METHOD", "merged"]
