"""Penn Chinese Treebank 5 as it comes: a folder of bracketed files, cut into the papers' parts by file number.

    bracketed/chtb_001.fid ... chtb_1151.fid       GB-encoded with SGML around the trees, or later chtb_0001.mrg, UTF-8

Two splits are in use. Their numbers of sentences are checked: a release or a copy that differs is told.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from duilian import formats
from duilian.corpus import Corpus, concatenate
from duilian.errors import DataError
from duilian.formats import brackets

Ranges = tuple[tuple[int, int], ...]
_NAME = re.compile(r"chtb_(\d{3,4})(\.[a-z]+)$")
INSIDE = ("", "bracketed", "data/bracketed", "data/utf-8/bracketed", "data/utf8/bracketed", "utf8/bracketed")
"""Where the files are below the folder that is named."""
SLACK = 0.01
"""A part may have so many sentences more or fewer, as a share, before its split is refused."""


@dataclass(frozen=True)
class Split:
    """File numbers of the three parts, how many sentences each should have, and who says so."""

    train: Ranges
    dev: Ranges
    test: Ranges
    expected: tuple[int, int, int]
    source: str


SPLITS = {
    "parsing": Split(
        ((1, 815), (1001, 1136)),
        ((886, 931), (1148, 1151)),
        ((816, 885), (1137, 1147)),
        (16_091, 803, 1_910),
        "file numbers of Duan et al. 2007, which li2015 and li2016 call the standard split; counts of li2015, Table 2",
    ),
    "joint": Split(
        ((1, 270), (400, 931), (1001, 1151)),
        ((301, 325),),
        ((271, 300),),
        (18_089, 350, 348),
        "file numbers of jiang2012, Table 3, and qiu2013, Table 3; counts as in joint segmentation and tagging",
    ),
}
"""parsing: li2015, li2016; joint: jiang2012, qiu2013, and CTB5X of li2016 (which counts 352 dev sentences)."""


def parts(folder: Path, split: str, report: Callable[[str], None] = lambda text: None) -> dict[str, Corpus]:
    """train, dev and test of a treebank. Few sentences more or fewer than expected are reported, many an error."""
    chosen = SPLITS[split]
    files = found_files(folder)
    ranges = (("train", chosen.train), ("dev", chosen.dev), ("test", chosen.test))
    missing = {name: wanted for name, wanted in ranges if not any(_inside(number, wanted) for number in files)}
    if missing:
        needed = "; ".join(f"{name}: {_shown(wanted)}" for name, wanted in missing.items())
        raise DataError(
            f"{folder}: files for {', '.join(missing)} are missing. Found {len(files)} files, numbers "
            f"{_shown(_runs(sorted(files)))}; expected {needed} ({chosen.source})."
        )
    result = {}
    complaints, bad = [], False
    for (name, wanted), expected in zip(ranges, chosen.expected, strict=True):
        corpus = concatenate([read(files[number]) for number in sorted(files) if _inside(number, wanted)])
        corpus = corpus.select(corpus.layer().offsets[1:] > corpus.layer().offsets[:-1])
        result[name] = corpus
        if len(corpus) != expected:
            complaints.append(f"{name} has {len(corpus):,} sentences, expected {expected:,}")
            bad = bad or abs(len(corpus) - expected) > SLACK * expected
    if complaints:
        text = f"{folder}: {'; '.join(complaints)} (split {split}: {chosen.source})."
        if bad:
            raise DataError(
                f"{text} Is this Chinese Treebank 5, and all of it? For another release or split give the parts "
                "yourself: --target ctb=FILE --dev ctb=FILE --test ctb=FILE."
            )
        report(f"warning: {text} Scores are not quite those of the literature.")
    return result


def write_parts(
    folder: Path, split: str, to: Path, report: Callable[[str], None] = lambda text: None
) -> dict[str, Path]:
    """The parts as files of JSON lines; returns part -> path."""
    to.mkdir(parents=True, exist_ok=True)
    paths = {}
    for name, corpus in parts(folder, split, report).items():
        paths[name] = to / f"ctb-{split}-{name}.jsonl"
        formats.write(paths[name], corpus, "jsonl")
    return paths


def found_files(folder: Path) -> dict[int, Path]:
    """Number -> file of every bracketed file, in the folder or where releases have them below it."""
    if not folder.is_dir():
        raise DataError(f"{folder}: there is no such folder. Expected Chinese Treebank 5 with its bracketed files.")
    for inside in INSIDE:
        found: dict[int, Path] = {}
        for path in sorted((folder / inside).glob("chtb_*")):
            match = _NAME.fullmatch(path.name)
            if match and match[2] in brackets.FORMAT.suffixes:
                number = int(match[1])
                if number in found:
                    raise DataError(f"{path}: file number {number} is there twice; {found[number].name} has it, too.")
                found[number] = path
        if found:
            return found
    raise DataError(
        f"{folder}: no bracketed files. Expected chtb_001.fid and so on, here or in {', '.join(INSIDE[1:])}."
    )


def read(path: Path) -> Corpus:
    """One bracketed file, UTF-8 or GB 18030."""
    data = path.read_bytes()
    try:
        data.decode("utf-8")
        encoding = "utf-8"
    except UnicodeDecodeError:
        encoding = "gb18030"
    return formats.read(path, format="brackets", encoding=encoding)


def _inside(number: int, ranges: Ranges) -> bool:
    return any(first <= number <= last for first, last in ranges)


def _runs(numbers: list[int]) -> Ranges:
    """Sorted numbers as ranges."""
    if not numbers:
        return ()
    edges = [0, *(k + 1 for k, (a, b) in enumerate(pairwise(numbers)) if b != a + 1), len(numbers)]
    return tuple((numbers[first], numbers[last - 1]) for first, last in pairwise(edges))


def _shown(ranges: Ranges, most: int = 8) -> str:
    texts = [f"{first}-{last}" if first != last else f"{first}" for first, last in ranges]
    return ", ".join(texts[:most]) + (", ..." if len(texts) > most else "")
