"""JSON lines: one object for each sentence, with everything that a corpus can carry.

    {"text": "上海浦东", "sides": {"ctb": {"units": [[0, 2], [2, 4]], "labels": ["NR", null]}}}

``units`` are [begin, end) in code points of the text; each side has its own. A label is a tag, null (unknown) or a
list (these tags are allowed). docs/formats.md has all fields. A line with the key ``duilian`` speaks of the file.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator
from typing import Any

import numpy as np

from duilian.corpus import UNKNOWN, Corpus, Layer, decode, encode
from duilian.errors import UsageError
from duilian.formats.base import TAGS, Block, Fault, Format, Points, ReadOptions, mended, short, with_source
from duilian.formats.jsonl_writing import write
from duilian.ragged import Ragged, offsets_of


def detect(sample: str) -> int:
    """The first line that is not blank begins an object."""
    for line in sample.split("\n"):
        if line.strip():
            return 99 if line.lstrip().startswith('{"') or line.strip() == "{}" else 0
    return 0


class Wrong(Exception):
    """What a line has that it must not have."""


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is no number")


_DECODER = json.JSONDecoder(parse_constant=_constant)


def text_of(value: Any, what: str) -> str:
    """A string that can be written to a file again."""
    if not isinstance(value, str):
        raise Wrong(f"{what}: expected a string, found {json.dumps(value)[:40]}.")
    if "\0" in value:
        raise Wrong(f"{what} has a NUL character in it.")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise Wrong(f"{what} has half of a surrogate pair in it.") from None
    return value


class Side:
    """One side as it is read, sentence after sentence."""

    def __init__(self, n_before: int) -> None:
        self.counts = array("q", [0]) * n_before
        self.starts, self.ends = array("q"), array("q")
        self.labels = array("i")
        self.confidence: array[float] | None = None
        self.tags: dict[str, int] = {}
        self.sets: dict[frozenset[int], int] = {}
        self.standard: str | None = None

    def tag(self, value: Any, name: str) -> int:
        """The number of a tag."""
        known = self.tags.get(value) if isinstance(value, str) else None
        if known is None:
            if not text_of(value, f"a label of side {short(name)}"):
                raise Wrong(f"side {short(name)} has an empty label.")
            known = self.tags[value] = len(self.tags)
        return known

    def label(self, value: Any, name: str) -> int:
        """The number of a label: a tag, null or a list."""
        if value is None:
            return UNKNOWN
        if isinstance(value, list):
            if not value:
                raise Wrong(f"side {short(name)} has an empty list of labels; unknown is null.")
            members = frozenset(self.tag(item, name) for item in value)
            return self.sets.setdefault(members, -2 - len(self.sets))
        return self.tag(value, name)

    def add(self, name: str, value: Any, at: int, length: int, with_labels: bool) -> None:
        """One more sentence, whose text begins at ``at``. Nothing is added if anything is wrong."""
        if not isinstance(value, dict):
            raise Wrong(f"side {short(name)}: expected an object, found {json.dumps(value)[:40]}.")
        units = value.get("units")
        if not isinstance(units, list):
            raise Wrong(f"side {short(name)} has no list of units.")
        starts, ends = array("q"), array("q")
        before = 0
        for unit in units:
            if not (isinstance(unit, list) and len(unit) == 2 and type(unit[0]) is int and type(unit[1]) is int):
                raise Wrong(f"side {short(name)}: expected units [begin, end], found {json.dumps(unit)[:40]}.")
            begin, end = unit
            if not before <= begin < end <= length:
                raise Wrong(
                    f"side {short(name)}: unit [{begin}, {end}] is empty, out of order, or outside of a text of "
                    f"{length} characters."
                )
            before = begin
            starts.append(at + begin)
            ends.append(at + end)
        labels = array("i", [UNKNOWN]) * len(units)
        given = value.get("labels")
        if given is not None:
            if not isinstance(given, list) or len(given) != len(units):
                found = len(given) if isinstance(given, list) else json.dumps(given)[:40]
                raise Wrong(f"side {short(name)}: expected {len(units)} labels, one for each unit, found {found}.")
            if with_labels:
                labels = array("i", [self.label(item, name) for item in given])
        confidence = value.get("confidence")
        if confidence is not None:
            if not isinstance(confidence, list) or len(confidence) != len(units):
                raise Wrong(f"side {short(name)}: expected {len(units)} confidences, one for each unit.")
            for item in confidence:
                if item is not None and not (type(item) in (int, float) and 0 <= item <= 1):
                    raise Wrong(f"side {short(name)}: expected confidences from 0 to 1, found {json.dumps(item)[:40]}.")
        standard = value.get("standard")
        if standard is not None:
            self.standard = text_of(standard, f"the standard of side {short(name)}")
        if confidence is not None and self.confidence is None:
            self.confidence = array("f", [np.nan]) * len(self.starts)
        if self.confidence is not None:
            items = confidence if confidence is not None else [None] * len(units)
            self.confidence.extend(np.nan if item is None else float(item) for item in items)
        self.starts.extend(starts)
        self.ends.extend(ends)
        self.labels.extend(labels)
        self.counts.append(len(units))

    def layer(self, name: str) -> Layer:
        """The side as a layer, its tags sorted."""
        tags = sorted(self.tags)
        table = np.zeros(max(len(tags), 1), np.int32)
        table[[self.tags[tag] for tag in tags]] = np.arange(len(tags), dtype=np.int32)
        labels = np.array(self.labels, np.int32)
        labels = np.where(labels >= 0, table[np.maximum(labels, 0)], labels).astype(np.int32)
        sets = Ragged.from_rows([sorted(table[list(members)].tolist()) for members in self.sets], np.int32)
        return Layer(
            name,
            tuple(tags),
            offsets_of(np.array(self.counts, np.int64)),
            np.array(self.starts, np.int64),
            np.array(self.ends, np.int64),
            labels,
            sets,
            self.standard,
            None if self.confidence is None else np.array(self.confidence, np.float32),
        )


class Sentences:
    """What the lines of a block hold."""

    def __init__(self, names: list[str]) -> None:
        self.texts: list[str] = []
        self.lengths = array("q")
        self.at = 0
        self.sides = {name: Side(0) for name in names}
        self.begins, self.ends = array("q"), array("q")

    def add_line(self, line: str, with_labels: bool) -> str | None:
        """Add the sentence of one line; "file" if the line is about the file, "wrong" if it cannot be read."""
        try:
            return None if self.add(_DECODER.decode(line), with_labels) else "file"
        except (Wrong, ValueError, RecursionError):
            return "wrong"

    def add(self, record: Any, with_labels: bool) -> bool:
        """Add the sentence of one record; False if it is about the file."""
        if not isinstance(record, dict):
            raise Wrong(f"expected an object, found {json.dumps(record)[:40]}.")
        if "duilian" in record and "text" not in record:
            return False
        if "text" not in record:
            raise Wrong("expected an object with the key 'text'.")
        text = text_of(record["text"], "the text")
        sides = record.get("sides", {})
        if not isinstance(sides, dict):
            raise Wrong(f"sides: expected an object, found {json.dumps(sides)[:40]}.")
        n_before = len(self.lengths)
        for name, value in sides.items():
            text_of(name, "the name of a side")
            if name not in self.sides:
                self.sides[name] = Side(n_before)
            self.sides[name].add(name, value, self.at, len(text), with_labels)
        for side in self.sides.values():
            if len(side.counts) == n_before:
                side.counts.append(0)
                if side.confidence is not None and len(side.confidence) < len(side.starts):
                    side.confidence.extend([np.nan] * (len(side.starts) - len(side.confidence)))
        self.texts.append(text)
        self.lengths.append(len(text))
        self.at += len(text)
        return True


def read(block: Block, layer: str | None, options: ReadOptions) -> Corpus:
    """All sides; the one asked for comes first. A side that some sentences lack has no units there.

    A block without any side has the layer ``tags`` without units."""
    names: list[str] = block.session.setdefault("sides", [])

    def parse(points: Points) -> tuple[Sentences, Iterator[Fault]]:
        found = Sentences(names)
        broken = array("q")
        for begin, end in lines_of(points):
            line = decode(points[begin:end])
            if line.strip():
                problem = found.add_line(line, options.labels)
                if problem is None:
                    found.begins.append(begin)
                    found.ends.append(begin + len(line.rstrip("\r")))
                elif problem == "wrong":
                    broken.extend((begin, end))
                    if options.on_error == "stop":
                        break
        return found, line_faults(points, broken)

    found, points = mended(block, options, parse)
    known = dict.fromkeys([*names, *found.sides])
    names[:] = list(known)
    if layer is not None and layer not in known:
        if len(found.lengths):
            has = ", ".join(map(short, [*known][:20])) or "no sides at all"
            raise UsageError(f"{block.where} has no side {short(layer)}; it has {has}.")
        found.sides[layer] = Side(len(found.lengths))
        known[layer] = None
    if not known:
        found.sides[TAGS] = Side(len(found.lengths))
        known[TAGS] = None
    order = sorted(known, key=lambda name: name != layer)
    layers = tuple(found.sides[name].layer(name) for name in order)
    corpus = Corpus(encode("".join(found.texts)), offsets_of(np.array(found.lengths, np.int64)), layers)
    if options.keep_source:
        begins, ends = np.array(found.begins, np.int64), np.array(found.ends, np.int64)
        bounds = np.append(begins, len(points))
        bounds[0] = 0 if len(begins) else len(points)
        corpus = with_source(corpus, "jsonl", points, bounds, {"lines": (begins, ends)})
    return corpus


def lines_of(points: Points) -> Iterator[tuple[int, int]]:
    """Where each line begins and ends."""
    begin = 0
    for end in np.flatnonzero(points == 10):
        yield begin, int(end)
        begin = int(end) + 1
    if begin < len(points):
        yield begin, len(points)


def line_faults(points: Points, broken: array[int]) -> Iterator[Fault]:
    """What is wrong with these lines: each is read once more to tell."""
    for k in range(0, len(broken), 2):
        begin, end = broken[k : k + 2]
        yield Fault(begin, min(end + 1, len(points)), begin, *explain(decode(points[begin:end])))


def explain(line: str) -> tuple[str, str]:
    """Message and hint for a line that is wrong."""
    try:
        Sentences([]).add(_DECODER.decode(line), True)
    except Wrong as error:
        return str(error), "docs/formats.md has the schema."
    except json.JSONDecodeError as error:
        return f"no JSON: {error.msg} at character {error.pos + 1}: {short(line[error.pos : error.pos + 41])}.", ""
    except RecursionError:
        return "brackets nested too deep.", "docs/formats.md has the schema."
    except ValueError as error:
        return f"no JSON: {short(str(error), 80)}.", ""
    return "a line that cannot be read.", "docs/formats.md has the schema."


FORMAT = Format(
    name="jsonl",
    about="JSON lines that carry everything: sides, open and ambiguous labels, confidences",
    suffixes=(".jsonl", ".ndjson"),
    cut="line",
    layers="the names of its sides",
    keeps_tags=True,
    detect=detect,
    read=read,
    write=write,
    holds=frozenset({"unknown", "sets", "confidence", "nbest"}),
    comment="",
)
