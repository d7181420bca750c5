"""What every method shares: Side, the training corpora of one standard; Method, a row of METHODS; Training, a run."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duilian import storage
from duilian.corpus import Corpus, Layer
from duilian.errors import DataError, DuilianError, TaskError, UsageError
from duilian.evaluation import evaluate
from duilian.settings import Setting
from duilian.stages import Context
from duilian.standards import Standard
from duilian.tagger import SideInfo, Tagger, words_of
from duilian.training.loop import Loop, Progress


@dataclass(frozen=True, eq=False)
class Side:
    """Training data of one standard.

    layer, dev_layer: which layer of the corpus to learn from; None is its first
    standard: its tags are checked against it before; None: the tag set is what the data has
    licence:  goes into the model file as given
    """

    name: str
    corpus: Corpus
    dev: Corpus | None = None
    layer: str | None = None
    dev_layer: str | None = None
    standard: Standard | None = None
    licence: str = ""

    @property
    def gold(self) -> Layer:
        """The layer to learn from."""
        return self.corpus.layer(self.layer)

    def info(self, tags: Sequence[str]) -> SideInfo:
        """What the model file keeps of this side."""
        return SideInfo(self.name, tuple(tags), self.standard, self.licence, words_of(self.corpus, self.gold))


@dataclass(frozen=True)
class Method:
    """One published method.

    tasks:   what it can do
    sides:   how few and how many sides it takes (None: any number)
    answers: in which standards ``tag`` answers, in words
    converts: between which sides ``convert`` works, in words; empty for not at all
    start:   sides, task, settings, seed -> a training run, not begun
    load:    header and tensors of a model file -> the tagger
    """

    name: str
    about: str
    tasks: tuple[str, ...]
    sides: tuple[int, int | None]
    answers: str
    converts: str
    settings: tuple[Setting, ...]
    start: Callable[[list[Side], str, dict[str, Any], int], Training]
    load: Callable[[dict[str, Any], dict[str, NDArray[Any]]], Tagger]

    def check_names(self, names: Sequence[str], task: str) -> None:
        """Whether it does the task with so many sides."""
        if task not in self.tasks:
            raise TaskError(f"{self.name} does {', '.join(self.tasks)}, not {task}.")
        low, high = self.sides
        if len(names) < low or (high is not None and len(names) > high):
            wanted = "one side" if high == 1 else f"{low} sides" if high == low else f"at least {low} sides"
            raise UsageError(
                f"{self.name} takes {wanted}, found {len(names)} ({', '.join(names)}). "
                "More files of one standard: repeat its name."
            )

    def check(self, sides: Sequence[Side], task: str) -> None:
        """Whether it can do this at all."""
        self.check_names([side.name for side in sides], task)
        for side in sides:
            gold = side.gold
            if len(gold) == 0:
                raise DataError(f"side {side.name}: its training corpus has no words.")
            if task != "seg" and not gold.has_tags:
                raise DataError(
                    f"side {side.name}: its training corpus has no tags. For boundaries alone use --task seg."
                )
            if side.dev is not None:
                dev = side.dev.layer(side.dev_layer)
                if len(dev) == 0 or (task != "seg" and not dev.has_tags):
                    what = "words" if len(dev) == 0 else "tags"
                    raise DataError(f"side {side.name}: its dev corpus has no {what}, so nothing can be scored on it.")


class Training:
    """A run of one method: iterate for Progress; ``tagger`` is the best so far; ``save_checkpoint`` between epochs.

    prepare: the epochs, or what makes them ready: earlier stages, such as models that a method is built on, run when
             the loop is first asked for, tell ``context.report`` and keep what they finish in ``context.stages``
    finish:  best model -> tagger
    about:   goes into the model file; ``prepare`` may add to it
    """

    def __init__(
        self,
        method: str,
        prepare: Loop | Callable[[Context], Loop],
        finish: Callable[[Any], Tagger],
        about: dict[str, Any],
        stamp: str,
    ) -> None:
        self.method, self.finish, self.about, self.stamp = method, finish, about, stamp
        self.context = Context()
        self._prepare = prepare

    @property
    def loop(self) -> Loop:
        """The epochs."""
        if not isinstance(self._prepare, Loop):
            self._prepare = self._prepare(self.context)
        return self._prepare

    @property
    def begun(self) -> bool:
        """Whether there is a model to save."""
        return isinstance(self._prepare, Loop) and self._prepare.model is not None

    def __iter__(self) -> Iterator[Progress]:
        yield from self.loop

    @property
    def tagger(self) -> Tagger:
        """The best model so far."""
        if not self.begun:
            raise DuilianError("nothing is trained yet: not one epoch is complete.")
        tagger = self.finish(self.loop.model)
        best = self.loop.best
        tagger.about = {
            **self.about,
            "epochs": len(self.loop.history),
            "best_epoch": best.epoch if best else 0,
            "history": [{"epoch": p.epoch, "objective": p.objective, "dev": p.dev} for p in self.loop.history],
        }
        return tagger

    def summary(self) -> dict[str, Any]:
        """How a finished training went."""
        loop, best = self.loop, self.loop.best
        return {
            "method": self.method,
            "dev": dict(best.dev) if best is not None else {},
            "epochs": len(loop.history),
            "best_epoch": best.epoch if best is not None else None,
            "seconds": loop.seconds,
            "tokens_per_second": loop.tokens / loop.seconds if loop.seconds else None,
            "features": self.about.get("features"),
        }

    def save_checkpoint(self, path: Any) -> None:
        """Everything needed to go on."""
        header, tensors = self.loop.state()
        storage.save(path, {"method": "checkpoint", "of": self.method, "stamp": self.stamp, "loop": header}, tensors)

    def resume(self, path: Any) -> None:
        """Go on from a checkpoint of the same method, data, settings and seed."""
        header, tensors = storage.load(path)
        if header.get("method") != "checkpoint" or header.get("stamp") != self.stamp:
            raise UsageError(
                f"{path}: this checkpoint was made by another method, or with other data, settings or seed. "
                "Start again without --resume, or restore what was given then."
            )
        self.loop.restore(header["loop"], {name: np.array(tensor) for name, tensor in tensors.items()})


def stamp_of(method: str, sides: Sequence[Side], task: str, settings: Mapping[str, Any], seed: int) -> str:
    """A fingerprint of everything that decides a training run."""
    digest = hashlib.blake2b(repr((method, task, sorted(settings.items()), seed)).encode(), digest_size=16)
    for side in sides:
        digest.update(side.name.encode())
        for corpus, name in ((side.corpus, side.layer), (side.dev, side.dev_layer)):
            if corpus is not None:
                layer = corpus.layer(name)
                digest.update(repr(layer.tags).encode())
                sentences = corpus.text, corpus.offsets, layer.offsets
                for array in (*sentences, layer.starts, layer.ends, layer.labels, layer.sets.data, layer.sets.offsets):
                    digest.update(np.ascontiguousarray(array).tobytes())
                if layer.confidence is not None:
                    digest.update(layer.confidence.tobytes())
    return digest.hexdigest()


def main_score(scores: Mapping[str, Any], task: str) -> float:
    """The one number that training watches: accuracy, F of words, or F of tagged words."""
    if task == "pos":
        return float(scores["accuracy"])
    return float(scores["ws" if task == "seg" else "joint"]["f"])


def dev_score(side: Side, task: str, label: Callable[[Corpus, Layer], Layer]) -> float:
    """Score of a labelling function on the dev corpus of a side."""
    assert side.dev is not None
    gold = side.dev.layer(side.dev_layer)
    new = label(side.dev, gold)
    pred = Corpus(side.dev.text, side.dev.offsets, (new,))
    return main_score(evaluate(side.dev, pred, gold.name, new.name, task=task), task)
