"""Rule files: mappings that a linguist writes, reads and edits.

A rule file has one rule per line: labels of the first side, then labels of the second; with three sides or more, or
several labels on the left, ``|`` stands between the sides. Every combination may be bundled.

    # verbal nouns are nouns on one side, verbs on the other
    NN   n Ng vn?          a trailing ? marks a weak relation: relaxed mappings have it, tight ones do not
    V*   v a z             * stands for any characters
    NN NR | n nz | NOUN    three sides

A ``#`` by itself begins a comment. A backslash takes the meaning off the next character, so that ``\\#`` is a tag.

Such a comment behind the labels of a line is also where counts are kept, one for each label of the last side; where
they do not fit the labels any more, because the line was edited, they are gone. A line ``# sides: ctb | pku`` names the
sides.
"""

from __future__ import annotations

import difflib
import itertools
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from duilian.errors import DataError, FormatError
from duilian.mapping.table import Mapping, make

_SIDES = "# sides:"


@dataclass(frozen=True)
class Rules:
    """A mapping as a file has it, and the names of its sides; empty where the file does not tell them."""

    mapping: Mapping
    names: tuple[str, ...]


def from_rules(path: str | os.PathLike[str], sides: Sequence[Sequence[str]]) -> Mapping:
    """Read a rule file; sides: per side its labels, in the order of the columns."""
    return parse_rules(_text(path), sides, os.fspath(path))


def read_rules(path: str | os.PathLike[str], sides: Sequence[Sequence[str]] | None = None) -> Rules:
    """Read a rule file with the names of its sides. sides: their labels; None: the labels that the file mentions."""
    text, where = _text(path), os.fspath(path)
    names = _names(text)
    if sides is None:
        sides = _mentioned(text, where)
    if len(names) != len(sides):
        names = ()
    return Rules(parse_rules(text, sides, where), names)


def parse_rules(text: str, sides: Sequence[Sequence[str]], where: str = "rules") -> Mapping:
    """The text of a rule file -> a mapping; see the head of this file."""
    rows: list[tuple[int, ...]] = []
    weak: list[bool] = []
    counts: list[int] = []
    for line_number, columns, note in _lines(text, len(sides), where):
        chosen = []
        for s, (column, side) in enumerate(zip(columns, sides, strict=True)):
            found: dict[int, bool] = {}
            for pattern in column:
                is_weak = _parts(pattern)[-1] == "?"
                numbers = matching(pattern[:-1] if is_weak else pattern, side)
                if not len(numbers):
                    raise FormatError(
                        where, line_number, f"side {s + 1} has no label {_plain(pattern)!r}.", _nearest(pattern, side)
                    )
                for number in numbers.tolist():
                    found[number] = found.get(number, True) and is_weak
            chosen.append(found)
        here = list(itertools.product(*chosen))
        rows += here
        weak += [any(found[number] for found, number in zip(chosen, row, strict=True)) for row in here]
        fits = len(note) == len(here) == len(columns[-1]) and all(word.isdecimal() for word in note)
        counts += map(int, note) if fits else [0] * len(here)
    table = np.array(rows, dtype=np.int32).reshape(-1, len(sides))
    return make(sides, table, np.array(weak, dtype=np.bool_), np.array(counts, dtype=np.int64))


def to_rules(mapping: Mapping, counts: bool = True, names: Sequence[str] = ()) -> str:
    """A mapping as the text of a rule file, with how often each relation was seen as a comment.

    names: of the sides; with them the file also tells which labels have no relation
    """
    lines = [f"# {len(mapping)} bundles of {' x '.join(map(str, mapping.sizes))} labels"]
    if names:
        lines.append(f"{_SIDES} {' | '.join(names)}")
        for name, missing in zip(names, mapping.uncovered(), strict=True):
            if missing:
                lines.append(f"# no relation on side {name}: {' '.join(missing)}")
    groups: dict[tuple[str, ...], list[int]] = {}
    for at, row in enumerate(mapping.names()):
        groups.setdefault(row[:-1], []).append(at)
    for first, members in groups.items():
        if mapping.counts.any():
            members = sorted(members, key=lambda at: (-int(mapping.counts[at]), at))
        last = [
            _escape(mapping.sides[-1][mapping.bundles[at, -1]]) + ("?" if mapping.weak[at] else "") for at in members
        ]
        seen = int(mapping.counts[members].sum())
        mark = " " if len(first) == 1 else " | "
        note = f"  # {' '.join(str(int(mapping.counts[at])) for at in members)}" if counts and seen else ""
        lines.append(mark.join([*map(_escape, first), " ".join(last)]) + note)
    return "\n".join(lines) + "\n"


def _text(path: str | os.PathLike[str]) -> str:
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise FormatError(
            os.fspath(path), None, f"is not UTF-8 (byte {error.start}).", "Convert the file to UTF-8."
        ) from None
    except FileNotFoundError:
        raise DataError(f"{os.fspath(path)}: there is no such file.") from None


def _names(text: str) -> tuple[str, ...]:
    """The names of the sides, if the file tells them."""
    for line in text.splitlines():
        if line.startswith(_SIDES):
            return tuple(name.strip() for name in line.removeprefix(_SIDES).split(" | "))
    return ()


def _mentioned(text: str, where: str) -> list[list[str]]:
    """Per side the labels that a file mentions, sorted. It may have no patterns: nothing tells what they stand for."""
    n_sides = len(_names(text)) or max((len(columns) for columns, _ in map(_columns, text.splitlines())), default=0)
    found: list[set[str]] = [set() for _ in range(max(2, n_sides))]
    for line_number, columns, _ in _lines(text, len(found), where):
        for labels, column in zip(found, columns, strict=True):
            for pattern in column:
                if "*" in _parts(pattern):
                    raise FormatError(
                        where, line_number, f"{pattern!r} stands for many labels, and nothing tells which there are.",
                        "Name a corpus of each side: --side NAME=FILE.",
                    )  # fmt: skip
                labels.add(_plain(pattern[:-1] if _parts(pattern)[-1] == "?" else pattern))
    return [sorted(labels) for labels in found]


def _lines(text: str, n_sides: int, where: str) -> Iterator[tuple[int, list[list[str]], list[str]]]:
    """Number, patterns of each side, and words of the comment of each line that has a rule."""
    for line_number, line in enumerate(text.splitlines(), 1):
        columns, note = _columns(line)
        if not columns:
            continue
        if len(columns) == 1 and n_sides == 2:
            columns = [columns[0][:1], columns[0][1:]]
        if len(columns) != n_sides or not all(columns):
            raise FormatError(
                where,
                line_number,
                f"expected labels of {n_sides} sides, found {line.strip()!r}.",
                "Write 'NN n Ng', or put | between the sides: 'NN NR | n nr'.",
            )
        yield line_number, columns, note


def _columns(line: str) -> tuple[list[list[str]], list[str]]:
    """The patterns of each side, escapes still in them, and the words of the comment."""
    columns: list[list[str]] = [[]]
    words = line.split()
    end = words.index("#") if "#" in words else len(words)
    for word in words[:end]:
        if word == "|":
            columns.append([])
        else:
            columns[-1].append(word)
    return columns if any(columns) else [], words[end + 1 :]


def matching(pattern: str, side: Sequence[str]) -> NDArray[np.int64]:
    """Numbers of the labels that a pattern stands for."""
    regex = "".join(".*" if part == "*" else re.escape(_plain(part)) for part in _parts(pattern))
    return np.array([k for k, label in enumerate(side) if re.fullmatch(regex, label, re.DOTALL)], dtype=np.int64)


def _parts(pattern: str) -> list[str]:
    """The characters of a pattern, each with the backslash before it."""
    return re.findall(r"\\.|.", pattern)


def _plain(pattern: str) -> str:
    return re.sub(r"\\(.)", r"\1", pattern)


def _escape(label: str) -> str:
    return "\\" + label if label in ("#", "|") else re.sub(r"([\\*?])", r"\\\1", label)


def _nearest(pattern: str, side: Sequence[str]) -> str:
    near = difflib.get_close_matches(_plain(pattern), side, n=1, cutoff=0.0)
    return f"The nearest is {near[0]!r}." if near else "It has no labels at all."
