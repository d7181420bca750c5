"""The corpora at hand, cut as studies and benchmarks/accuracy.py need them: one file for each part and standard."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from duilian import datasets
from duilian.errors import DataError

SPLIT = ("train", "dev", "test")
EWT_TRAIN, EWT_DEV = 6272, 1000
"""English: so many sentences of train and dev show the tags of the Penn Treebank, all others those of UD."""
ZH_TRAIN, ZH_DEV = 2000, 250
"""Chinese halves: so many show XPOS, all others UPOS."""


def brought(data: Path, name: str, file: str) -> Path:
    """A file that the user brings, in the folder of its dataset."""
    path = data / name / file
    if not path.is_file():
        chosen = datasets.dataset(name)
        raise DataError(
            f"{path}: there is no such file. {name} ({chosen.about}; {chosen.licence}) comes from {chosen.source}: put "
            f"{', '.join(chosen.files)} into {data / name}, name another folder with --data or DUILIAN_DATA, or give "
            "corpora of your own with --target, --source, --dev and --test."
        )
    return path


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


def write(path: Path, sentences: Iterable[str]) -> None:
    """Some sentences to a file."""
    datasets.write(path, "".join(sentences).encode())


def chinese(folder: Path, data: Path) -> None:
    """zh-{train,dev,test}.conllu, pku-{train,dev,test}.txt and pku-N.txt, the first N training lines."""
    for part in SPLIT:
        datasets.write(folder / f"zh-{part}.conllu", brought(data, "zh_ud", f"zh_ud-{part}.conllu").read_bytes())
    peoples_daily(folder)


def peoples_daily(folder: Path, data: Path | None = None) -> None:
    """pku-{train,dev,test}.txt and pku-N.txt, the first N training lines."""
    parts = datasets.split("peoples-daily", datasets.get("peoples-daily"), folder)
    for part in SPLIT:
        parts[part].rename(folder / f"pku-{part}.txt")
    with (folder / "pku-train.txt").open("rb") as whole:
        datasets.write(folder / "pku-5000.txt", b"".join(itertools.islice(whole, 5000)))


def english(folder: Path, data: Path) -> None:
    """en-ptb-{train,dev}.conllu and en-ud-{train,dev}.conllu on disjoint sentences; en-{dev,test}.conllu with both."""
    _halves(folder, data, "en_ewt", "en", ("ptb", "ud"), (EWT_TRAIN, EWT_DEV))


def chinese_halves(folder: Path, data: Path) -> None:
    """zh-xpos-{train,dev}.conllu and zh-upos-{train,dev}.conllu on disjoint sentences; zh-{dev,test}.conllu."""
    _halves(folder, data, "zh_ud", "zh", ("xpos", "upos"), (ZH_TRAIN, ZH_DEV))


def _halves(folder: Path, data: Path, name: str, short: str, sides: tuple[str, str], cuts: tuple[int, int]) -> None:
    one, other = sides
    for part, cut in zip(("train", "dev"), cuts, strict=True):
        found = list(blocks(brought(data, name, f"{name}-{part}.conllu")))
        write(folder / f"{short}-{one}-{part}.conllu", found[:cut])
        write(folder / f"{short}-{other}-{part}.conllu", found[cut:])
    for part in ("dev", "test"):
        datasets.write(folder / f"{short}-{part}.conllu", brought(data, name, f"{name}-{part}.conllu").read_bytes())


def japanese(folder: Path, data: Path) -> None:
    """ja-{suw,luw}-train.conllu, disjoint halves of dev; ja-{suw,luw}-test.conllu, the same sentences twice."""
    for side, first in (("suw", True), ("luw", False)):
        found = list(blocks(brought(data, "ja_gsd", f"ja_gsd_{side}-dev.conllu")))
        half = len(found) // 2
        write(folder / f"ja-{side}-train.conllu", found[:half] if first else found[half:])
        test = brought(data, "ja_gsd", f"ja_gsd_{side}-test.conllu")
        datasets.write(folder / f"ja-{side}-test.conllu", test.read_bytes())


MAKERS: dict[str, Callable[[Path, Path], None]] = {
    "pku": peoples_daily, "zh": chinese, "zh-halves": chinese_halves, "en": english, "ja": japanese,
}  # fmt: skip
