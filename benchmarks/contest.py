"""Programs and tasks of ``peers.py``: how ours and its peers train, tag and are timed; each behind the same four words.

Files are written once into the working folder: words with tags, segmented, raw, as each program reads them.
"""

from __future__ import annotations

import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import peer_crfsuite
import peer_ltp

from duilian import formats
from duilian.benchmarks.data import SIDE, Bench
from duilian.benchmarks.measure import Child, run_child, run_duilian
from duilian.benchmarks.training import PLAIN, own_epochs, prepared

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Task:
    """What is learnt, what is read and written, and what counts.

    unit:      of the rates                          templates: with which all have the same features
    text:      format of the text that is tagged     annotated: of the answer
    score:     path into what ``duilian evaluate`` says
    """

    name: str
    unit: str
    templates: str
    text: str
    annotated: str
    metric: str
    score: tuple[str, ...]


TASKS = {
    task.name: task
    for task in (
        Task("pos", "words/s", "li2015", "segmented", "slash", "accuracy", ("accuracy",)),
        Task("seg", "characters/s", "jiang2012", "raw", "segmented", "F", ("ws", "f")),
        Task("segpos", "characters/s", "jiang2012", "raw", "slash", "F", ("joint", "f")),
    )
}


class Arena:
    """The data of one task: sizes, and files in the formats that programs read."""

    def __init__(self, bench: Bench, task: Task) -> None:
        self.bench, self.task, self.sizes = bench, task, bench.sizes
        self.corpus = bench.sentences(bench.sizes.joint if task.name == "segpos" else bench.sizes.train)

    def file(self, part: str, format: str) -> Path:
        """train, dev or tiny, as ``slash``, ``segmented`` or ``raw``; without empty lines."""
        path = self.bench.folder / f"{self.task.name}-{part}-{format}.txt"
        if not path.exists():
            corpus = {"train": self.corpus, "dev": self.bench.parts[1], "tiny": self.bench.warm()}[part]
            kept = [k for k, words in enumerate(corpus.words()) if words]
            formats.write(path, corpus.select(kept), format)
        return path

    def text(self) -> tuple[Path, int]:
        """The large file that is tagged, and how many units it has."""
        if self.task.name == "pos":
            path = self.bench.file("words.txt")
            with path.open(encoding="utf-8") as lines:
                return path, sum(len(line.split()) for line in lines)
        path, count = self.bench.folder / f"{self.task.name}-text.txt", 0
        wanted = self.sizes.characters // (5 if self.task.name == "seg" else 20)
        with self.bench.file("raw.txt").open(encoding="utf-8") as lines, path.open("w", encoding="utf-8") as out:
            for line in lines:
                if count >= wanted:
                    break
                out.write(line)
                count += len(line.rstrip("\n"))
        return path, count

    def score(self, answer: Path) -> float:
        """Accuracy or F on the dev part, 0 to 100."""
        found: Any = json.loads(run_duilian("evaluate", self.file("dev", "slash"), answer, "--json", "--quiet").output)
        for key in self.task.score:
            found = found[key]
        return float(found)


class Program(ABC):
    """One program in one configuration. Files stay in the working folder, named after it."""

    package = ""
    """What to install; empty for ours."""
    module = ""
    ours = False

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def installed(self) -> bool:
        """Whether it can be run here."""
        return not self.module or find_spec(self.module) is not None

    def can(self, task: Task) -> bool:
        """Whether it has a model for the task."""
        return True

    def model(self, arena: Arena) -> Path:
        """Where its model is."""
        stem = self.name.replace(", ", "-").replace(" ", "-")
        return arena.bench.folder / f"{stem}-{arena.task.name}.model"

    @abstractmethod
    def epochs(self, arena: Arena, n: int) -> Iterator[float]:
        """CPU seconds of each epoch, on one thread; it rests until the next is asked for."""

    @abstractmethod
    def train(self, arena: Arena, epochs: int) -> Child:
        """From an annotated file to a model file."""

    @abstractmethod
    def tag(self, arena: Arena, text: Path, output: Path, threads: int) -> Child:
        """From a text file to an annotated one."""

    def threads(self, asked: int) -> int:
        """With how many threads it tags if it may have so many."""
        return asked


class Own(Program):
    """duilian: on the features that CRFsuite gets and on nothing else, or with its defaults."""

    ours = True

    def __init__(self, method: str, plain: bool) -> None:
        super().__init__(f"duilian {method}{', plain features' if plain else ''}")
        self.method, self.plain = method, plain

    def settings(self, task: Task) -> dict[str, Any]:
        """Those of its configuration."""
        return {**PLAIN, "templates": task.templates} if self.plain else {}

    def epochs(self, arena: Arena, n: int) -> Iterator[float]:
        settings, task = self.settings(arena.task), arena.task.name
        list(own_epochs(prepared(self.method, arena.bench.warm(), task, settings, 1)))
        for epoch in own_epochs(prepared(self.method, arena.corpus, task, settings, n)):
            yield epoch.seconds

    def _train(self, arena: Arena, part: str, epochs: int, model: Path) -> Child:
        settings = self.settings(arena.task)
        return run_duilian(
            "train", self.method, "--task", arena.task.name, "--side", f"{SIDE}={arena.file(part, 'slash')}",
            "--standard", "auto", "--format", "slash", "--set", f"epochs={epochs}",
            *(word for key, value in settings.items() for word in ("--set", f"{key}={value}")),
            "--quiet", "--json", "-o", model,
        )  # fmt: skip

    def train(self, arena: Arena, epochs: int) -> Child:
        self._train(arena, "tiny", 1, arena.bench.folder / "tiny.model")
        return self._train(arena, "train", epochs, self.model(arena))

    def tag(self, arena: Arena, text: Path, output: Path, threads: int) -> Child:
        return run_duilian(
            "tag", self.model(arena), text, "-o", output, "--input-format", arena.task.text,
            "--format", arena.task.annotated, "--threads", threads, "--quiet",
        )  # fmt: skip


class CrfSuite(Program):
    """python-crfsuite; it has no threads."""

    package, module = "python-crfsuite", "pycrfsuite"

    def __init__(self, algorithm: str) -> None:
        super().__init__(f"crfsuite {algorithm}")
        self.algorithm = algorithm

    def epochs(self, arena: Arena, n: int) -> Iterator[float]:
        task = arena.task.name
        given = list(peer_crfsuite.sentences(task, str(arena.file("train", "slash"))))
        units, labels = [one for one, _ in given], [one for _, one in given]
        return peer_crfsuite.epochs(self.algorithm, units, labels, peer_crfsuite.STRINGS[task], n)

    def _run(self, *words: object) -> Child:
        return run_child([sys.executable, HERE / "peer_crfsuite.py", *words])

    def train(self, arena: Arena, epochs: int) -> Child:
        task, file = arena.task.name, arena.file("train", "slash")
        return self._run("train", self.algorithm, task, file, self.model(arena), epochs)

    def tag(self, arena: Arena, text: Path, output: Path, threads: int) -> Child:
        return self._run("tag", arena.task.name, self.model(arena), text, output)

    def threads(self, asked: int) -> int:
        return 1


class Ltp(Program):
    """ltp-extension's averaged perceptron, trained on one thread, with dev: without it would keep its first epoch."""

    package, module = "ltp-extension", "ltp_extension"

    def __init__(self) -> None:
        super().__init__("ltp-extension AP")

    def can(self, task: Task) -> bool:
        return task.name in peer_ltp.TASKS

    def epochs(self, arena: Arena, n: int) -> Iterator[float]:
        return peer_ltp.epochs(arena.task.name, arena.file("train", arena.task.annotated), n)

    def _run(self, *words: object) -> Child:
        return run_child([sys.executable, HERE / "peer_ltp.py", *words])

    def train(self, arena: Arena, epochs: int) -> Child:
        train, dev = (arena.file(part, arena.task.annotated) for part in ("train", "dev"))
        return self._run("train", arena.task.name, train, dev, self.model(arena), epochs)

    def tag(self, arena: Arena, text: Path, output: Path, threads: int) -> Child:
        return self._run("tag", arena.task.name, self.model(arena), text, output, threads)


CONTESTS: tuple[tuple[tuple[Own, ...], tuple[Program, ...]], ...] = (
    ((Own("crf", True), Own("crf", False)), (CrfSuite("l2sgd"),)),
    ((Own("perceptron", True), Own("perceptron", False)), (CrfSuite("ap"), Ltp())),
)
"""Ours, and who trains in the same way: they take turns."""
