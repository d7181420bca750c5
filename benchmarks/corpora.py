"""The corpora of ``accuracy.py``, cut as its rows need them: one file for each part and standard."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

SPLIT = ("train", "dev", "test")
EWT_TRAIN, EWT_DEV = 6272, 1000
"""English: so many sentences of train and dev show the tags of the Penn Treebank, all others those of UD."""


def blocks(path: Path) -> Iterator[str]:
    """The sentences of a CoNLL-U file, as they stand."""
    lines: list[str] = []
    for line in path.read_text("utf-8").splitlines(keepends=True):
        lines.append(line)
        if not line.strip():
            yield "".join(lines)
            lines = []
    if lines:
        yield "".join(lines) + "\n"


def write(path: Path, sentences: Iterator[str]) -> None:
    """Some sentences to a file."""
    path.write_text("".join(sentences), "utf-8")


def chinese(folder: Path, data: Path) -> None:
    """zh-{train,dev,test}.conllu, pku-{train,dev,test}.txt and pku-N.txt, the first N training lines."""
    for part in SPLIT:
        (folder / f"zh-{part}.conllu").write_bytes((data / "zh_ud" / f"zh_ud-{part}.conllu").read_bytes())
    peoples_daily(folder)


def peoples_daily(folder: Path, data: Path | None = None) -> None:
    """pku-{train,dev,test}.txt and pku-N.txt, the first N training lines."""
    command = [sys.executable, "-m", "duilian", "data", "get", "peoples-daily", "--split", "--to", str(folder)]
    subprocess.run(command, check=True, capture_output=True)
    for part in SPLIT:
        (folder / f"peoples-daily-{part}.txt").rename(folder / f"pku-{part}.txt")
    with (folder / "pku-train.txt").open("rb") as whole:
        (folder / "pku-5000.txt").write_bytes(b"".join(itertools.islice(whole, 5000)))


def english(folder: Path, data: Path) -> None:
    """en-ptb-{train,dev}.conllu and en-ud-{train,dev}.conllu on disjoint sentences; en-{dev,test}.conllu with both."""
    for part, cut in (("train", EWT_TRAIN), ("dev", EWT_DEV)):
        found = list(blocks(data / "en_ewt" / f"en_ewt-{part}.conllu"))
        write(folder / f"en-ptb-{part}.conllu", iter(found[:cut]))
        write(folder / f"en-ud-{part}.conllu", iter(found[cut:]))
    for part in ("dev", "test"):
        (folder / f"en-{part}.conllu").write_bytes((data / "en_ewt" / f"en_ewt-{part}.conllu").read_bytes())


def japanese(folder: Path, data: Path) -> None:
    """ja-{suw,luw}-train.conllu, disjoint halves of dev; ja-{suw,luw}-{dev,test}.conllu: the other half, and test."""
    for side, first in (("suw", True), ("luw", False)):
        found = list(blocks(data / "ja_gsd" / f"ja_gsd_{side}-dev.conllu"))
        half = len(found) // 2
        write(folder / f"ja-{side}-train.conllu", iter(found[:half] if first else found[half:]))
        (folder / f"ja-{side}-test.conllu").write_bytes((data / "ja_gsd" / f"ja_gsd_{side}-test.conllu").read_bytes())


MAKERS = {"pku": peoples_daily, "zh": chinese, "en": english, "ja": japanese}
