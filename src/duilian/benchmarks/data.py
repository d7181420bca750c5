"""The corpora and files that are measured on: the People's Daily of January 1998, or an annotated file of the user's.

Everything is written once into a working folder, in plain layouts that other programs read too, and taken from there.
The test part is never touched: speed needs no gold.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING

from duilian.benchmarks.measure import Child, run_duilian
from duilian.errors import DataError

if TYPE_CHECKING:
    from duilian.corpus import Corpus

SIDE = "bench"


@dataclass(frozen=True)
class Sizes:
    """How much is measured.

    train, joint: sentences for words, and for characters with joint labels; words, characters: of the files to tag
    pair_epochs, pair_sample: of trainings on two corpora, and sentences of each in a walk of the complete space;
    pair_lines: lines that such models tag
    epochs: timed, behind one that is not; file_epochs: of a training from file to file; repeats: of whole commands
    """

    train: int = 15_000
    joint: int = 5_000
    words: int = 1_000_000
    characters: int = 10_000_000
    epochs: int = 4
    file_epochs: int = 10
    model_epochs: int = 3
    repeats: int = 3
    pair_epochs: int = 3
    pair_sample: int = 500
    pair_lines: int = 6_000


FULL = Sizes()
QUICK = Sizes(
    train=300,
    joint=100,
    words=3_000,
    characters=10_000,
    epochs=1,
    file_epochs=2,
    model_epochs=1,
    repeats=1,
    pair_epochs=1,
    pair_sample=30,
    pair_lines=30,
)
TINY = Sizes(
    train=20,
    joint=20,
    words=100,
    characters=200,
    epochs=1,
    file_epochs=1,
    model_epochs=1,
    repeats=1,
    pair_epochs=1,
    pair_sample=5,
    pair_lines=5,
)


class Bench:
    """Data, sizes and threads of one run; makes files and models when they are first asked for."""

    def __init__(self, whole: Path, folder: Path, sizes: Sizes = FULL, threads: int = 2) -> None:
        self.whole, self.folder, self.sizes, self.threads = whole, folder, sizes, threads
        self.trained: dict[str, list[Child]] = {}

    @cached_property
    def parts(self) -> tuple[Corpus, Corpus]:
        """(train, dev): of the People's Daily as everywhere; of another file four fifths, and the next tenth."""
        from duilian import formats
        from duilian.datasets import DATASETS, is_intact

        daily = DATASETS["peoples-daily"]
        assert daily.member is not None
        corpus = formats.read(self.whole)
        n = len(corpus)
        if is_intact(self.whole, daily.member):
            (_, a, b), (_, c, d) = daily.parts[:2]
            ranges = (a - 1, b), (c - 1, d)
        else:
            ranges = (0, n * 8 // 10), (n * 8 // 10, n * 9 // 10)
        train, dev = (corpus.select(slice(*bounds)) for bounds in ranges)
        if not len(train.layer()) or not len(dev.layer()) or not train.layer().has_tags:
            raise DataError(f"{self.whole}: expected at least ten sentences of words with tags.")
        return train.select(slice(0, self.sizes.train)), dev

    def sentences(self, n: int) -> Corpus:
        """The first training sentences."""
        return self.parts[0].select(slice(0, n))

    def warm(self) -> Corpus:
        """A few sentences: running on them first compiles kernels, or takes them from the cache."""
        return self.sentences(10)

    def file(self, name: str) -> Path:
        """train.txt, dev.txt, tiny.txt (word/tag), words.txt (segmented), raw.txt (no spaces), line.txt (one line)."""
        path = self.folder / name
        if not path.exists():
            lines = self._lines(name)
            path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        return path

    def _lines(self, name: str) -> list[str]:
        train, dev = self.parts
        if name in ("words.txt", "raw.txt", "line.txt"):
            sentences = [words for corpus in (train, dev) for words in corpus.words() if words]
            if name == "line.txt":
                return ["  ".join(sentences[0])]
            if name == "words.txt":
                return repeated(["  ".join(words) for words in sentences], list(map(len, sentences)), self.sizes.words)
            raw = ["".join(words) for words in sentences]
            return repeated(raw, list(map(len, raw)), self.sizes.characters)
        corpus = {"train.txt": train, "dev.txt": dev, "tiny.txt": self.warm()}[name]
        return [
            "  ".join(f"{word}/{tag}" for word, tag in zip(words, tags, strict=True))
            for words, tags in zip(corpus.words(), corpus.tags(), strict=True)
            if words
        ]

    def train(self, method: str, task: str = "pos", epochs: int = 10, file: str = "train.txt") -> tuple[Path, Child]:
        """Run ``duilian train`` on a file: the model, and what the command took."""
        output = self.folder / f"{method}-{task}-{file.removesuffix('.txt')}-{epochs}.model"
        child = run_duilian(
            "train", method, "--task", task, "--side", f"{SIDE}={self.file(file)}", "--standard", "auto",
            "--format", "slash", "--set", f"epochs={epochs}", "--quiet", "--json", "-o", output,
        )  # fmt: skip
        return output, child

    def pair(self) -> tuple[str, str]:
        """Training files of two standards, FILE or FILE#LAYER: zh_ud where DUILIAN_DATA has it, or a twin by rules."""
        other = Path(os.environ.get("DUILIAN_DATA", ".")) / "zh_ud" / "zh_ud-train.conllu"
        if self.sizes is FULL and "DUILIAN_DATA" in os.environ and other.is_file():
            return f"{other}#xpos", str(self.file("train.txt"))
        from duilian import formats
        from duilian.datasets import twin

        path = self.folder / "twin.txt"
        if not path.exists():
            corpus = self.sentences(max(2, len(self.parts[0]) // 4))
            formats.write(path, twin.convert(corpus), "slash")
        return str(path), str(self.file("train.txt"))

    def model(self, method: str, task: str) -> Path:
        """A model of the training file: the newest that there is, else one of a few epochs."""
        found = sorted(self.folder.glob(f"{method}-{task}-train-*.model"))
        return found[-1] if found else self.train(method, task, self.sizes.model_epochs)[0]


def repeated(lines: Sequence[str], sizes: Sequence[int], wanted: int) -> list[str]:
    """Lines, from the start again when they end, until their sizes sum up to what is wanted."""
    found: list[str] = []
    total = 0
    for line, size in cycle(zip(lines, sizes, strict=True)):
        if total >= wanted:
            break
        found.append(line)
        total += size
    return found
