"""Corpus formats: one file each, all in the table FORMATS.

read(path) -> Corpus                       a whole file
read_blocks(path) -> Iterator[Corpus]      a file of any size, whole sentences at a time
open_writer(path, format) -> Writer        write block after block; nothing appears until all is written
detect(path) -> name                       the format, by content
split_layer("FILE#LAYER") -> (FILE, LAYER or None)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from duilian.corpus import Corpus, encode
from duilian.errors import FormatError, UsageError
from duilian.formats import brackets, conllu, coupled10, jsonl, raw, segmented, slash, tsv, underscore
from duilian.formats.base import Block, Format, ReadOptions, WriteOptions
from duilian.formats.files import SAMPLE, blocks, decoded, decoder_of, expanded, opened
from duilian.formats.writing import Writer, open_writer, write

__all__ = [
    "FORMATS",
    "Format",
    "WriteOptions",
    "Writer",
    "detect",
    "detect_text",
    "find",
    "open_writer",
    "read",
    "read_blocks",
    "split_layer",
    "write",
]

FORMATS: dict[str, Format] = {
    format.name: format
    for format in (
        jsonl.FORMAT,
        coupled10.FORMAT,
        conllu.FORMAT,
        brackets.FORMAT,
        slash.FORMAT,
        underscore.FORMAT,
        tsv.FORMAT,
        segmented.FORMAT,
        raw.FORMAT,
    )
}
"""All formats; where two look equally likely, detection takes the first."""

BLOCK_CHARS = 1 << 21


def find(name: str) -> Format:
    """The format of that name."""
    if name not in FORMATS:
        raise UsageError(f"there is no format {name!r}. Formats: {', '.join(FORMATS)}.")
    return FORMATS[name]


def detect_text(sample: str, path: str = "") -> str:
    """The format that a sample of a file looks most like; of a file without content, what its name says."""
    if not sample.strip():
        name = Path(path).name.removesuffix(".gz").removesuffix(".xz")
        for format in FORMATS.values():
            if name.endswith(format.suffixes):
                return format.name
        return "raw"
    if len(sample) >= SAMPLE and "\n" in sample:
        sample = sample[: sample.rindex("\n") + 1]
    return max(FORMATS.values(), key=lambda format: format.detect(sample)).name


def detect(path: Any, encoding: str = "utf-8") -> str:
    """The format of a file, by its content."""
    with opened(path) as (stream, where):
        texts = decoded(expanded(stream, where, whole=False), where, encoding)
        return detect_text(_sample(texts)[0], where)


def _sample(texts: Iterator[str]) -> tuple[str, Iterator[str], bool]:
    """(the beginning, all of the text without a byte order mark, whether there was one)."""
    head: list[str] = []
    length = 0
    for text in texts:
        head.append(text)
        length += len(text)
        if length >= SAMPLE:
            break
    bom = bool(head) and head[0].startswith("\ufeff")
    if bom:
        head[0] = head[0][1:]
    return "".join(head)[:SAMPLE], chain(head, texts), bom


def read(
    path: Any,
    layer: str | None = None,
    format: str = "auto",
    encoding: str = "utf-8",
    on_error: Literal["stop", "skip"] = "stop",
    keep_source: bool = False,
    on_skip: Callable[[FormatError], None] | None = None,
    *,
    labels: bool = True,
    compounds: Literal["flatten", "keep"] = "flatten",
) -> Corpus:
    """Read a whole file: a path, ``-`` for standard input, or a binary stream.

    on_error="skip" leaves broken sentences out and tells on_skip about each. keep_source=True keeps what is needed to
    write the corpus back with nothing but the annotation changed. labels=False reads words only.
    """
    options = _options(on_error, on_skip, keep_source, labels, compounds)
    with opened(path) as (stream, where):
        texts = decoded(expanded(stream, where, whole=True), where, encoding)
        sample, texts, bom = _sample(texts)
        chosen = find(detect_text(sample, where) if format == "auto" else format)
        points = encode("".join(texts))
        return _marked(chosen.read(Block(where, 1, points), layer, options), encoding, bom)


def read_blocks(
    path: Any,
    layer: str | None = None,
    format: str = "auto",
    encoding: str = "utf-8",
    on_error: Literal["stop", "skip"] = "stop",
    keep_source: bool = False,
    on_skip: Callable[[FormatError], None] | None = None,
    *,
    labels: bool = True,
    compounds: Literal["flatten", "keep"] = "flatten",
    block_chars: int = BLOCK_CHARS,
) -> Iterator[Corpus]:
    """Read a file of any size as corpora of about ``block_chars`` characters, cut between sentences.

    The arguments are those of ``read``. A file without content gives one empty corpus.
    """
    options = _options(on_error, on_skip, keep_source, labels, compounds)
    with opened(path) as (stream, where):
        texts = decoded(expanded(stream, where, whole=False), where, encoding)
        sample, texts, bom = _sample(texts)
        chosen = find(detect_text(sample, where) if format == "auto" else format)
        session: dict[str, Any] = {}
        first = True
        for points, line in blocks(texts, chosen.cut, max(block_chars, 1), where):
            yield _marked(chosen.read(Block(where, line, points, session), layer, options), encoding, bom and first)
            first = False
        if first:
            yield _marked(chosen.read(Block(where, 1, encode(""), session), layer, options), encoding, bom)


def _options(on_error: Any, on_skip: Any, keep_source: bool, labels: bool, compounds: Any) -> ReadOptions:
    if on_error not in ("stop", "skip"):
        raise UsageError(f"on_error is 'stop' or 'skip', not {on_error!r}")
    if compounds not in ("flatten", "keep"):
        raise UsageError(f"compounds is 'flatten' or 'keep', not {compounds!r}")
    return ReadOptions(on_error, on_skip, keep_source, labels, compounds)


def _marked(corpus: Corpus, encoding: str, bom: bool) -> Corpus:
    """Note in the source how the file was encoded."""
    if corpus.source is not None:
        name = decoder_of(encoding)[0]
        corpus.source.style.update(encoding=name, bom=bom and name != "utf-16")
    return corpus


def split_layer(name: str) -> tuple[str, str | None]:
    """``FILE#LAYER`` -> (FILE, LAYER); the mark counts only if no file has the whole name."""
    path, mark, layer = name.rpartition("#")
    if not mark or not path or Path(name).exists():
        return name, None
    if not layer:
        raise UsageError(f"{name}: expected the name of a layer behind #, as in {path}#xpos.")
    return path, layer
