"""The corpora of a study: sides with their parts, from the user's files or from those at hand; what has gold on both.

Piece     a file, or its beginning            SideData  one standard: train, dev and test
Corpora   the sides of a study, the target first, and between which of them conversion can be scored
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np

from duilian import datasets, formats, standards
from duilian.corpus import Corpus, concatenate
from duilian.errors import DataError, TagError, UsageError
from duilian.lifting import is_space
from duilian.methods import Side
from duilian.studies import cuts
from duilian.studies.results import FileOf, SideOf

PARTS = ("train", "dev", "test")
QUICK = {"target": 400, "source": 800, "dev": 100, "test": 150}
"""--quick: so many sentences of each, at the most."""


@dataclass(frozen=True)
class Piece:
    """A corpus file, or its first sentences. path may be called FILE#LAYER in commands; here the two stand apart."""

    path: str
    layer: str | None = None
    limit: int = 0
    made_by: tuple[str, str, str] | None = None
    """(cell, from, to): the file is converted by that cell's model when it is read."""

    def read(self, name: str) -> Corpus:
        """The corpus, its one layer called after the side."""
        corpus = formats.read(self.path, layer=self.layer)
        if not corpus.layers:
            raise DataError(f"{self.path}: raw text; a study needs words or tags.")
        corpus = Corpus(corpus.text, corpus.offsets, (replace(corpus.layer(), name=name),))
        return corpus.select(slice(0, self.limit)) if self.limit and self.limit < len(corpus) else corpus


@dataclass(frozen=True)
class SideData:
    """One standard's corpora. standard: the registered one that it is checked against, or None."""

    name: str
    role: str
    train: tuple[Piece, ...]
    dev: tuple[Piece, ...] = ()
    test: tuple[Piece, ...] = ()
    standard: str | None = None
    licence: str = ""

    def part(self, name: str) -> tuple[Piece, ...]:
        """train, dev or test."""
        return {"train": self.train, "dev": self.dev, "test": self.test}[name]

    def beginning(self, sentences: int) -> SideData:
        """The same with no more than so many sentences of its first training file."""
        return replace(self, train=(_first(self.train[0], sentences),))


@dataclass(frozen=True)
class Corpora:
    """The sides of a study, the target first.

    conversions: (from, to) whose test parts are the same text with gold on both
    """

    sides: tuple[SideData, ...]
    conversions: tuple[tuple[str, str], ...] = ()

    @property
    def target(self) -> SideData:
        """The first side."""
        return self.sides[0]

    @property
    def sources(self) -> tuple[SideData, ...]:
        """All others."""
        return self.sides[1:]

    def side(self, name: str) -> SideData:
        """The side of that name."""
        return next(side for side in self.sides if side.name == name)

    def quick(self) -> Corpora:
        """The same with the first sentences of each file alone."""
        return replace(
            self,
            sides=tuple(
                replace(
                    side,
                    train=tuple(_first(piece, QUICK[side.role]) for piece in side.train),
                    dev=tuple(_first(piece, QUICK["dev"]) for piece in side.dev),
                    test=tuple(_first(piece, QUICK["test"]) for piece in side.test),
                )
                for side in self.sides
            ),
        )

    def reversed(self) -> Corpora:
        """The same with the first source as the target."""
        first, second, *others = self.sides
        return replace(self, sides=(replace(second, role="target"), replace(first, role="source"), *others))


def _first(piece: Piece, sentences: int) -> Piece:
    return replace(piece, limit=min(sentences, piece.limit) if piece.limit else sentences)


def read_side(side: SideData, task: str) -> Side:
    """Training and dev corpora, checked as `duilian train` checks them."""
    train = concatenate([piece.read(side.name) for piece in side.train])
    dev = concatenate([piece.read(side.name) for piece in side.dev]) if side.dev else None
    chosen = standards.get(side.standard) if side.standard is not None and task != "seg" else None
    if chosen is not None:
        where = ", ".join(piece.path for piece in side.train)
        try:
            standards.check(train.layer(), chosen, where, train.text)
        except TagError as error:
            raise TagError(f"{error} If its tags are others: give the side a name that is no standard's.") from None
    return Side(side.name, train, dev, standard=chosen, licence=side.licence)


def whole(pieces: Sequence[Piece], name: str) -> Corpus:
    """Files of one side, one after the other."""
    return concatenate([piece.read(name) for piece in pieces])


@dataclass(frozen=True)
class Given:
    """One side as the user gives it: files FILE[#LAYER], or ctb:FOLDER alone."""

    name: str
    standard: str | None
    files: tuple[str, ...]


def from_files(
    targets: Sequence[Given], sources: Sequence[Given], devs: Sequence[Given], tests: Sequence[Given]
) -> Corpora:
    """Sides from files; the first target is the one that counts."""
    names = [side.name for side in (*targets, *sources)]
    if len(set(names)) < len(names):
        raise UsageError(f"a side is a target or a source, not both: {', '.join(names)}.")
    for option, some in (("--dev", devs), ("--test", tests)):
        for one in some:
            if one.name not in names:
                raise UsageError(f"{option} {one.name}: there is no such side; sides are {', '.join(names)}.")
    sides = (*sides_of(targets, "target", devs, tests), *sides_of(sources, "source", devs, tests))
    if not sides[0].test:
        raise UsageError(
            f"--test {sides[0].name}=FILE is missing: a study scores on a test part, here of the target "
            f"{sides[0].name}. A source without one is learnt from and not scored."
        )
    return Corpora(sides)


def sides_of(given: Sequence[Given], role: str, devs: Sequence[Given], tests: Sequence[Given]) -> tuple[SideData, ...]:
    """Sides from files, each with its own dev and test files."""
    sides = []
    for one in given:
        files = (
            one.files,
            [file for other in devs if other.name == one.name for file in other.files],
            [file for other in tests if other.name == one.name for file in other.files],
        )
        train, dev, test = (tuple(_piece(file) for file in some) for some in files)
        known = one.standard or (one.name if one.name in standards.names() else None)
        sides.append(SideData(one.name, role, train, dev, test, known))
    return tuple(sides)


def _piece(file: str) -> Piece:
    path, layer = formats.split_layer(file)
    if not Path(path).is_file():
        raise DataError(f"{path}: there is no such file. Expected an annotated corpus, FILE or FILE#LAYER.")
    return Piece(str(Path(path).resolve()), layer)


def data_folder(given: Path | None) -> Path:
    """Where the corpora at hand are: --data, or DUILIAN_DATA."""
    named = given or (Path(os.environ["DUILIAN_DATA"]) if os.environ.get("DUILIAN_DATA") else None)
    what = (
        "Without --target and --source a study takes the corpora of the documents (`duilian data list`): a folder with "
        "zh_ud, en_ewt and ja_gsd in it, and the People's Daily, which it fetches itself. "
    )
    if named is None:
        raise DataError(
            f"no folder of corpora: neither --data nor the environment variable DUILIAN_DATA names one. {what}"
            "Name it, or give corpora of your own with --target, --source, --dev and --test."
        )
    if not named.is_dir():
        asked = "--data" if given is not None else "DUILIAN_DATA"
        raise DataError(f"{named}: there is no such folder ({asked} names it). {what}")
    return named


AT_HAND: dict[str, tuple[tuple[str, str, str | None, str, tuple[str, str, str]], ...]] = {
    "zh": (
        ("zh-ud", "zh-ud", "xpos", "zh_ud", ("zh-train.conllu", "zh-dev.conllu", "zh-test.conllu")),
        ("pku", "pku", None, "peoples-daily", ("pku-train.txt", "pku-dev.txt", "pku-test.txt")),
    ),
    "zh-halves": (
        ("zh-xpos", "zh-ud", "xpos", "zh_ud", ("zh-xpos-train.conllu", "zh-xpos-dev.conllu", "zh-test.conllu")),
        ("zh-upos", "ud", "upos", "zh_ud", ("zh-upos-train.conllu", "zh-upos-dev.conllu", "zh-test.conllu")),
    ),
    "en": (
        ("ptb", "ptb", "xpos", "en_ewt", ("en-ptb-train.conllu", "en-ptb-dev.conllu", "en-test.conllu")),
        ("ud", "ud", "upos", "en_ewt", ("en-ud-train.conllu", "en-ud-dev.conllu", "en-test.conllu")),
    ),
    "ja": (
        ("unidic-luw", "unidic-luw", "xpos", "ja_gsd", ("ja-luw-train.conllu", "", "ja-luw-test.conllu")),
        ("unidic-suw", "unidic-suw", "xpos", "ja_gsd", ("ja-suw-train.conllu", "", "ja-suw-test.conllu")),
    ),
}
"""Kind of corpora -> target and source: side, standard, layer, dataset, (train, dev, test)."""


def at_hand(kind: str, data: Path, out: Path) -> Corpora:
    """Corpora of the documents, cut below OUT/corpora. kind: zh, zh-halves, en or ja."""
    folder = out / "corpora" / kind
    done = folder / "done"
    if not done.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        cuts.MAKERS[kind](folder, data)
        done.touch()

    sides = []
    for role, (name, standard, layer, dataset, files) in zip(("target", "source"), AT_HAND[kind], strict=True):
        train, dev, test = ((Piece(str((folder / file).resolve()), layer),) if file else () for file in files)
        sides.append(SideData(name, role, train, dev, test, standard, datasets.dataset(dataset).licence))
    return Corpora(tuple(sides), () if kind == "zh" else tuple(permutations([side.name for side in sides], 2)))


def with_conversions(corpora: Corpora, task: str) -> Corpora:
    """The same, knowing which test parts are one text with gold on both: there conversion can be scored."""
    tested = [side for side in corpora.sides if side.test]
    read = {side.name: whole(side.test, side.name) for side in tested}
    found = tuple(
        (one.name, other.name)
        for one in tested
        for other in tested
        if one is not other and _same_text(read[one.name], read[other.name], task)
    )
    return replace(corpora, conversions=found)


def _same_text(one: Corpus, other: Corpus, task: str) -> bool:
    """Whether two corpora are the same characters, for pos cut into the same words."""
    here, there = one.text[~is_space(one.text)], other.text[~is_space(other.text)]
    if not np.array_equal(here, there) or (task != "seg" and not (one.layer().has_tags and other.layer().has_tags)):
        return False
    return task != "pos" or one.words() == other.words()


def described(corpora: Sequence[Corpora], task: str) -> tuple[tuple[SideOf, ...], tuple[FileOf, ...]]:
    """Sides and files as the plan has them."""
    sides: dict[str, SideOf] = {}
    files: dict[FileOf, None] = {}
    for some in corpora:
        for side in some.sides:
            unit = "word" if task == "pos" else "character"
            sides.setdefault(side.name, SideOf(side.name, side.role, side.standard, unit, side.licence or None))
            for part in PARTS:
                for piece in side.part(part):
                    name = Path(piece.path).name
                    files[FileOf(side.name, part, name, piece.layer, digest(piece.path), *size_of(piece))] = None
    return tuple(sides.values()), tuple(files)


@lru_cache(maxsize=64)
def size_of(piece: Piece) -> tuple[int, int]:
    """(sentences, words) of a piece."""
    corpus = piece.read("words")
    return len(corpus), len(corpus.layer())


def digest(path: str) -> str:
    """sha256 of a file, hexadecimal."""
    stat = Path(path).stat()
    return _digest(path, stat.st_size, stat.st_mtime_ns)


@lru_cache(maxsize=256)
def _digest(path: str, size: int, changed: int) -> str:
    with Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def piece_to_json(piece: Piece) -> dict[str, Any]:
    """A piece as a job has it."""
    return {"path": piece.path, "layer": piece.layer, "limit": piece.limit, "made_by": piece.made_by}


def piece_from_json(data: dict[str, Any]) -> Piece:
    """The reverse."""
    made = data.get("made_by")
    return Piece(data["path"], data["layer"], data["limit"], tuple(made) if made else None)
