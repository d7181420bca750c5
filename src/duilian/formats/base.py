"""What a format is: a row of the table FORMATS, the block it reads, the faults it finds, and what all of them share.

Reading. ``read(block, layer, options) -> Corpus`` gets whole sentences as code points. It never opens a file. A broken
place is a ``Fault``; ``mended`` raises it as a FormatError with its line, or (on_error="skip") reports it, takes the
broken lines out of the block and reads the rest.

Writing. ``write(corpus, layer, options) -> str``. ``weaving`` has what the formats share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from duilian.corpus import UNKNOWN, Corpus, Layer, Source, decode
from duilian.errors import FormatError, UsageError
from duilian.ragged import Ragged, offsets_of

T = TypeVar("T")
Points = NDArray[np.uint32]
Ints = NDArray[np.int64]

TAGS = "tags"
"""The layer of a format that has only one."""


@dataclass(frozen=True)
class Block:
    """Whole sentences of a file.

    where:   name of the file, for messages
    line:    number of the block's first line, from 1
    points:  the code points, without a byte order mark
    session: what earlier blocks of this file settled (number of columns, default layer); formats may write to it
    """

    where: str
    line: int
    points: Points
    session: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ReadOptions:
    """How to read: the same for all formats."""

    on_error: Literal["stop", "skip"] = "stop"
    on_skip: Callable[[FormatError], None] | None = None
    keep_source: bool = False
    labels: bool = True
    compounds: Literal["flatten", "keep"] = "flatten"


NBest = dict[str, list[list[tuple[float, Layer]]]]


@dataclass(frozen=True)
class WriteOptions:
    """How to write: the same for all formats.

    nbest: side -> for each sentence of the corpus, (score, layer over that sentence alone), best first; JSONL only
    """

    confidence: bool = False
    nbest: NBest | None = None
    where: str = "<output>"


@dataclass(frozen=True)
class Format:
    """One corpus format.

    cut:     where a block may end: behind any line, behind a blank line, behind a tree
    layers:  the layers it has, for people
    holds:   what it can write beyond words and one known tag for each of them
    comment: what a comment line begins with, if there are comments
    detect:  sample of a file -> how much it looks like this format, 0 to 100
    """

    name: str
    about: str
    suffixes: tuple[str, ...]
    cut: Literal["line", "blank", "tree"]
    layers: str
    keeps_tags: bool
    detect: Callable[[str], int]
    read: Callable[[Block, str | None, ReadOptions], Corpus]
    write: Callable[[Corpus, str | None, WriteOptions], str] | None
    holds: frozenset[Literal["unknown", "sets", "confidence", "nbest"]] = frozenset()
    comment: str | None = None


class Fault(NamedTuple):
    """A broken place: ``points[begin:end]`` is what has to go, ``at`` is where it shows."""

    begin: int
    end: int
    at: int
    message: str
    hint: str = ""


def mended(
    block: Block, options: ReadOptions, parse: Callable[[Points], tuple[T | None, Iterable[Fault]]]
) -> tuple[T, Points]:
    """Parse a block; at a fault stop with its line, or report it and parse what is left without it.

    Faults come one by one, in order, so that a file that is nothing but faults takes no memory for them.
    """
    points = block.points
    result, faults = parse(points)
    faults = iter(faults)
    first = next(faults, None)
    if first is not None:
        breaks = np.flatnonzero(points == 10)
        keep = np.ones(len(points), bool)
        for fault in chain([first], faults):
            line = block.line + int(np.searchsorted(breaks, fault.at))
            error = FormatError(block.where, line, fault.message, fault.hint)
            if options.on_error == "stop":
                raise error
            if options.on_skip is not None:
                options.on_skip(error)
            keep[fault.begin : fault.end] = False
        points = points[keep]
        result, faults = parse(points)
        for fault in faults:
            raise FormatError(block.where, None, fault.message, fault.hint)
    assert result is not None
    return result, points


def fixed(array: Any, dtype: Any) -> Any:
    """An array as kernels take it: contiguous, of one dtype, read-only, so that each kernel is compiled once."""
    view = np.ascontiguousarray(array, dtype=dtype).view()
    view.flags.writeable = False
    return view


def first_of_each(points: Points, starts: Ints, ends: Ints) -> NDArray[np.int64]:
    """Where each different string at the given places stands first."""
    firsts: NDArray[np.int64] = _numbered(points, starts, ends)[1]
    return firsts


def number(points: Points, starts: Ints, ends: Ints) -> tuple[tuple[str, ...], NDArray[np.int32]]:
    """The strings at the given places -> (sorted distinct strings, number of each)."""
    numbers, firsts = _numbered(points, starts, ends)
    seen = [
        decode(points[begin:end]) for begin, end in zip(starts[firsts].tolist(), ends[firsts].tolist(), strict=True)
    ]
    order = sorted(range(len(seen)), key=seen.__getitem__)
    table = np.zeros(max(len(seen), 1), np.int32)
    table[order] = np.arange(len(seen), dtype=np.int32)
    return tuple(seen[k] for k in order), table[numbers]


def _numbered(points: Points, starts: Ints, ends: Ints) -> Any:
    from duilian.formats.scan_kernels import number_strings

    return number_strings(fixed(points, np.uint32), fixed(starts, np.int64), fixed(ends, np.int64))


def without(tags: tuple[str, ...], labels: NDArray[np.int32], unknown: str) -> tuple[tuple[str, ...], Any]:
    """The same labels with one tag read as unknown."""
    if unknown not in tags:
        return tags, labels
    gone = tags.index(unknown)
    labels = np.where(labels == gone, UNKNOWN, labels - (labels > gone)).astype(np.int32)
    return tags[:gone] + tags[gone + 1 :], labels


class Units(NamedTuple):
    """Words as a format found them: their text put together, and the units over it."""

    text: Points
    edges: Ints
    offsets: Ints
    starts: Ints
    ends: Ints


def assemble(points: Points, starts: Ints, ends: Ints, offsets: Ints) -> Units:
    """Words at the given places of the file, ``offsets`` of them per sentence -> text and units without markup."""
    from duilian.formats.scan_kernels import gather

    text = gather(fixed(points, np.uint32), fixed(starts, np.int64), fixed(ends, np.int64))
    edges = offsets_of(ends - starts)
    return Units(text, edges[offsets], offsets, edges[:-1], edges[1:])


def tagged(units: Units, name: str, tags: tuple[str, ...] = (), labels: Any = None) -> Layer:
    """A layer over these units; without labels all are unknown."""
    if labels is None:
        labels = np.full(len(units.starts), UNKNOWN, np.int32)
    return Layer(name, tags, units.offsets, units.starts, units.ends, labels)


def quote(points: Points, begin: int, end: int, limit: int = 40) -> str:
    """A place of the file as a message shows it."""
    return short(decode(points[begin : min(end, begin + limit + 1)]), limit)


def short(text: str, limit: int = 40) -> str:
    """A text as a message shows it: quoted, and not for ever."""
    return repr(text) if len(text) <= limit else repr(text[:limit] + "...")


def one_layer(layer: str | None, has: tuple[str, ...], format: str) -> str:
    """Check the layer asked for against those the format has; the default is the first."""
    if layer is None:
        return has[0]
    if layer not in has:
        raise UsageError(
            f"{format} has no layer {layer!r}, only {', '.join(has)}. Leave #{layer} out or name another format."
        )
    return layer


def with_source(
    corpus: Corpus, format: str, points: Points, offsets: Ints, slots: dict[str, tuple[Ints, Ints]], **style: Any
) -> Corpus:
    """The corpus with what is needed to write it back; remembers the layers as read, to see what changed."""
    newline = "\n"
    breaks = np.flatnonzero(points[: 1 << 16] == 10)
    if len(breaks) and breaks[0] > 0 and points[breaks[0] - 1] == 13:
        newline = "\r\n"
    style = {"newline": newline, "layers": corpus.layers, "edges": corpus.offsets, "text": corpus.text, **style}
    return replace(corpus, source=Source(format, points, offsets, slots, style))


def empty_corpus(name: str) -> Corpus:
    """No sentences, one layer."""
    none = np.zeros(1, np.int64)
    at = np.zeros(0, np.int64)
    layer = Layer(name, (), none, at, at, np.zeros(0, np.int32), Ragged(np.zeros(0, np.int32), none))
    return Corpus(np.zeros(0, np.uint32), none, (layer,))
