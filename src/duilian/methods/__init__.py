"""Methods: one file per published method, all in METHODS, behind two doors: ``train`` and ``load``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

from duilian import storage
from duilian.errors import UsageError
from duilian.methods.base import Method, Side, Training
from duilian.settings import resolve
from duilian.tagger import Tagger
from duilian.tensors import reject

__all__ = ["METHODS", "Method", "Side", "Training", "find", "load", "train"]

FILES = {
    "crf": "single",
    "perceptron": "single",
    "pa": "single",
    "hmm": "hmm",
    "merge": "merge",
    "guide": "guide",
    "adapt": "adapt",
    "transform": "transform",
    "multitask": "multitask",
    "correspondence": "correspondence",
    "coupled": "coupled",
}
"""Method -> the file that it is in; each has a METHOD, or METHODS."""


class Table(Mapping[str, Method]):
    """The methods by name. A method's file is imported when it is first asked for: a command needs one of them."""

    def __getitem__(self, name: str) -> Method:
        module = import_module(f"duilian.methods.{FILES[name]}")
        rows: tuple[Method, ...] = module.METHODS if hasattr(module, "METHODS") else (module.METHOD,)
        return next(method for method in rows if method.name == name)

    def __iter__(self) -> Iterator[str]:
        return iter(FILES)

    def __len__(self) -> int:
        return len(FILES)


METHODS: Mapping[str, Method] = Table()


def find(name: str) -> Method:
    """The method of that name."""
    if name not in METHODS:
        raise UsageError(f"no method {name!r}. There are {', '.join(METHODS)}.")
    return METHODS[name]


def train(
    method: str,
    sides: Sequence[Side],
    task: str = "pos",
    settings: Mapping[str, Any] | None = None,
    seed: int = 1,
) -> Training:
    """A training run, not begun: iterate over it, then take its ``tagger``. The first side is the target."""
    chosen = find(method)
    values = resolve(chosen.settings, settings or {}, chosen.name)
    chosen.check(sides, task)
    return chosen.start(list(sides), task, values, seed)


def load(path: Any) -> Tagger:
    """The tagger in a model file."""
    header, tensors = storage.load(path)
    name = header.get("method")
    if name == "checkpoint":
        raise UsageError(f"{path} is a checkpoint of an unfinished training, not a model: go on with train --resume.")
    if not isinstance(name, str) or name not in METHODS:
        reject(header, f"its method is {name!r}, and this version knows {', '.join(METHODS)}")
    return METHODS[name].load(header, tensors)
