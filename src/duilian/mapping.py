"""Mapping functions: which labels of different standards may be bundled (li2015 Eq. 3, section 3.1; qiu2013 section 4).

    complete    every bundle                        automatic   every bundle that occurs: tag one corpus with a tagger
    from_rules  a rule file that a linguist wrote               trained on the other, collect the pairs
    loose       sub-categories follow their category            lift        from tags to labels of characters

A rule file has one rule per line: labels of the first side, then labels of the second; with three sides or more, or
several labels on the left, ``|`` stands between the sides. Every combination may be bundled.

    # verbal nouns are nouns on one side, verbs on the other
    NN   n Ng vn?          a trailing ? marks a weak relation: relaxed mappings have it, tight ones do not
    V*   v a z             * stands for any characters
    NN NR | n nz | NOUN    three sides

A ``#`` by itself begins a comment. A backslash takes the meaning off the next character, so that ``\\#`` is a tag.
"""

from __future__ import annotations

import difflib
import itertools
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duilian.corpus import Layer
from duilian.errors import FormatError, MismatchError, SettingError
from duilian.standards.schemes import Scheme, scheme, split_label

Sides = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, eq=False)
class Mapping:
    """The bundles that may exist.

    sides:   per side its labels
    bundles: (n, S) int32, sorted, each once
    weak:    (n,) bool, relations that a tight mapping leaves out
    counts:  (n,) int64, how often each was seen; zeros where nothing was counted
    """

    sides: Sides
    bundles: NDArray[np.int32]
    weak: NDArray[np.bool_]
    counts: NDArray[np.int64]

    def __post_init__(self) -> None:
        for array in (self.bundles, self.weak, self.counts):
            array.flags.writeable = False

    def __len__(self) -> int:
        return len(self.bundles)

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many labels each side has."""
        return tuple(len(side) for side in self.sides)

    @property
    def table(self) -> NDArray[np.bool_]:
        """(L of each side) whether a bundle may exist: m(ta, tb) of li2015 Eq. 3."""
        found = np.zeros(self.sizes, dtype=np.bool_)
        found[tuple(self.bundles.T)] = True
        return found

    @property
    def is_complete(self) -> bool:
        """Whether every bundle may exist."""
        return len(self) == int(np.prod(self.sizes))

    def names(self) -> list[tuple[str, ...]]:
        """The bundles as a person writes them."""
        return [tuple(side[k] for side, k in zip(self.sides, row, strict=True)) for row in self.bundles.tolist()]

    def tight(self) -> Mapping:
        """Without the weak relations."""
        return self._select(~self.weak)

    def at_least(self, count: int) -> Mapping:
        """Only bundles seen at least that often."""
        return self._select(self.counts >= count)

    def uncovered(self) -> list[list[str]]:
        """Per side the labels that no bundle holds: whoever carries one could be mapped to nothing."""
        missing = []
        for s, side in enumerate(self.sides):
            seen = np.zeros(len(side), dtype=np.bool_)
            seen[self.bundles[:, s]] = True
            missing.append([side[k] for k in np.flatnonzero(~seen)])
        return missing

    def union(self, other: Mapping) -> Mapping:
        """Bundles of either; weak where neither says otherwise; counts added up."""
        if self.sides != other.sides:
            raise MismatchError("two mappings can be joined only if their sides have the same labels in the same order")
        return _mapping(
            self.sides,
            np.concatenate([self.bundles, other.bundles]),
            np.concatenate([self.weak, other.weak]),
            np.concatenate([self.counts, other.counts]),
        )

    def with_sides(self, sides: Sequence[Sequence[str]]) -> Mapping:
        """The same relations over other lists of labels; bundles with a label that a list lacks are left out."""
        wanted = tuple(tuple(side) for side in sides)
        rows = np.empty_like(self.bundles)
        for s, (old, new) in enumerate(zip(self.sides, wanted, strict=True)):
            number = {label: k for k, label in enumerate(new)}
            rows[:, s] = np.array([number.get(label, -1) for label in old] or [-1], dtype=np.int32)[self.bundles[:, s]]
        kept = (rows >= 0).all(axis=1)
        return _mapping(wanted, rows[kept], self.weak[kept], self.counts[kept])

    def _select(self, kept: NDArray[np.bool_]) -> Mapping:
        return replace(self, bundles=self.bundles[kept], weak=self.weak[kept], counts=self.counts[kept])


def complete(sides: Sequence[Sequence[str]]) -> Mapping:
    """Every bundle of labels."""
    rows = np.indices([len(side) for side in sides]).reshape(len(sides), -1).T
    return _mapping(sides, rows, np.zeros(len(rows), np.bool_), np.zeros(len(rows), np.int64))


def automatic(sides: Sequence[Sequence[str]], *labels: NDArray[np.int32], min_count: int = 1) -> Mapping:
    """Every bundle that occurs, with its counts: per side the labels of the same units, (U,) each.

    One side is given, the others were predicted. Units with an unknown label, or a set, on any side do not count.
    """
    if len(labels) != len(sides) or len({len(row) for row in labels}) > 1:
        raise MismatchError(f"{len(sides)} sides, but labels for {[len(row) for row in labels]} units")
    rows = np.stack(labels, axis=1)
    found, counts = np.unique(rows[(rows >= 0).all(axis=1)], axis=0, return_counts=True)
    whole = _mapping(sides, found.reshape(-1, len(sides)), np.zeros(len(found), np.bool_), counts)
    return whole.at_least(min_count)


def from_layers(*layers: Layer, min_count: int = 1) -> Mapping:
    """``automatic`` from layers over the same units: one as given, the others as taggers predict them."""
    first = layers[0]
    for layer in layers[1:]:
        if not (np.array_equal(layer.starts, first.starts) and np.array_equal(layer.ends, first.ends)):
            raise MismatchError(
                f"layers {first.name!r} and {layer.name!r} have different words; "
                "a mapping is counted over the same units: tag the words of one layer, or use labels of characters"
            )
    return automatic([layer.tags for layer in layers], *(layer.labels for layer in layers), min_count=min_count)


def loose(mapping: Mapping, children: Sequence[Callable[[str], Sequence[str]] | None] | None = None) -> Mapping:
    """Where a category is mapped, its sub-categories are too (qiu2013, section 4: nr brings nrf and nrg).

    children: per side a function from a tag to its sub-categories (``Standard.expand`` is one), or None: a tag that no
    relation mentions belongs to the longest mentioned tag that it begins with. A mentioned tag stays what it is.
    """
    rows = [mapping.bundles]
    weak, counts = [mapping.weak], [mapping.counts]
    below: list[dict[int, list[int]]] = []
    for s, side in enumerate(mapping.sides):
        mentioned = {side[k] for k in np.unique(mapping.bundles[:, s])}
        number = {label: k for k, label in enumerate(side)}
        tree: dict[int, list[int]] = {k: [k] for k in range(len(side))}
        ask = children[s] if children else None
        if ask is not None:
            for label in mentioned:
                tree[number[label]] += [number[c] for c in ask(label) if c in number and c not in mentioned]
        else:
            for label in side:
                parents = [tag for tag in mentioned if label not in mentioned and label.startswith(tag)]
                if parents:
                    tree[number[max(parents, key=len)]].append(number[label])
        below.append(tree)
    for row, is_weak in zip(mapping.bundles.tolist(), mapping.weak.tolist(), strict=True):
        spread = list(itertools.product(*(tree[k] for tree, k in zip(below, row, strict=True))))
        rows.append(np.array(spread, dtype=np.int32))
        weak.append(np.full(len(spread), is_weak))
        counts.append(np.zeros(len(spread), np.int64))
    return _mapping(mapping.sides, np.concatenate(rows), np.concatenate(weak), np.concatenate(counts))


# Roles of a character in the words of two sides that may meet: single, begin, middle, end, in this order.
_SAME = np.eye(4, dtype=np.bool_)
_FINER = np.array([[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 1], [1, 0, 0, 1]], dtype=np.bool_)
LIFTS: dict[str, NDArray[np.bool_]] = {
    "same": _SAME,
    "finer": _FINER,
    "coarser": _FINER.T,
    "nested": _FINER | _FINER.T,
    "free": np.ones((4, 4), dtype=np.bool_),
}
"""same: t1 <-> t2 gives B@t1 <-> B@t2 and so on (qiu2013). finer: the later side may cut the word further
(B@NR <-> S@nrf, E@NR <-> E@nrg). coarser: the other way about. nested: either.
free: any two prefixes, as the complete space has it."""


def lift(
    mapping: Mapping,
    labels: Sequence[Sequence[str]],
    mode: str = "same",
    special: Sequence[tuple[str, ...]] = (),
    special_mode: str = "nested",
    scheme_name: str = "BIES",
) -> Mapping:
    """From tags to labels of characters (``B@NN``; a plain ``B`` goes with every tag).

    labels: per side the labels of characters;  mode: which positions may meet, a key of LIFTS
    special: bundles of tags, ``*`` allowed, that follow ``special_mode`` as well: proper names, say, that one standard
    cuts and the other does not (qiu2013, section 4)
    """
    for name in (mode, special_mode):
        if name not in LIFTS:
            raise SettingError(f"no way of lifting is called {name!r}; there are {', '.join(LIFTS)}")
    way = scheme(scheme_name)
    tags, prefixes = [], []
    for s, side in enumerate(labels):
        number = {tag: k for k, tag in enumerate(mapping.sides[s])}
        parts = [split_label(label) for label in side]
        for label, (prefix, tag) in zip(side, parts, strict=True):
            if prefix not in way.prefixes:
                raise SettingError(f"label {label!r} does not begin with a prefix of {way.name}: {way.prefixes}")
            if tag is not None and tag not in number:
                raise SettingError(f"label {label!r}: the mapping knows no tag {tag!r} on side {s + 1}")
        tags.append(np.array([-1 if tag is None else number[tag] for _, tag in parts], dtype=np.int64))
        prefixes.append(np.array([way.prefixes.index(prefix) for prefix, _ in parts], dtype=np.int64))
    named = np.zeros(mapping.sizes, dtype=np.bool_)
    for patterns in special:
        chosen = [_matching(pattern, side) for pattern, side in zip(patterns, mapping.sides, strict=True)]
        named[np.ix_(*chosen)] = True
    allowed = _spread(mapping.table, tags) & _meeting(way, prefixes, mode)
    allowed |= _spread(mapping.table & named, tags) & _meeting(way, prefixes, special_mode)
    rows = np.argwhere(allowed)
    bundled = _mapping(labels, rows, np.zeros(len(rows), np.bool_), np.zeros(len(rows), np.int64))
    weak = np.zeros(mapping.sizes, dtype=np.bool_)
    weak[tuple(mapping.bundles[mapping.weak].T)] = True
    strong = mapping.table & ~weak
    return replace(bundled, weak=~_spread(strong, tags)[tuple(bundled.bundles.T)])


def _spread(table: NDArray[np.bool_], tags: Sequence[NDArray[np.int64]]) -> NDArray[np.bool_]:
    """A table over tags as one over labels; tag -1 goes with every tag."""
    for axis, numbers in enumerate(tags):
        any_tag = table.any(axis=axis, keepdims=True)
        free = np.expand_dims(numbers < 0, tuple(k for k in range(table.ndim) if k != axis))
        table = np.where(free, any_tag, np.take(table, np.maximum(numbers, 0), axis=axis))
    return table


def _meeting(way: Scheme, prefixes: Sequence[NDArray[np.int64]], mode: str) -> NDArray[np.bool_]:
    """Whether the prefixes of a bundle of labels may meet at a character, every two sides by the mode."""
    plays = np.zeros((len(way), 4), dtype=np.int64)
    plays[way.roles, np.arange(4)] = 1
    meet = (plays @ LIFTS[mode].astype(np.int64) @ plays.T) > 0
    n_sides = len(prefixes)
    found = np.ones([1] * n_sides, dtype=np.bool_)
    for a, b in itertools.combinations(range(n_sides), 2):
        pair = meet[prefixes[a][:, None], prefixes[b][None, :]]
        found = found & np.expand_dims(pair, tuple(k for k in range(n_sides) if k not in (a, b)))
    return np.broadcast_to(found, [len(side) for side in prefixes])


def from_rules(path: str | os.PathLike[str], sides: Sequence[Sequence[str]]) -> Mapping:
    """Read a rule file; sides: per side its labels, in the order of the columns."""
    where = os.fspath(path)
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise FormatError(where, None, f"is not UTF-8 (byte {error.start}).", "Convert the file to UTF-8.") from None
    return parse_rules(text, sides, where)


def parse_rules(text: str, sides: Sequence[Sequence[str]], where: str = "rules") -> Mapping:
    """The text of a rule file -> a mapping; see the head of this file."""
    rows: list[tuple[int, ...]] = []
    weak: list[bool] = []
    for line_number, line in enumerate(text.splitlines(), 1):
        columns = _columns(line)
        if not columns:
            continue
        if len(columns) == 1 and len(sides) == 2:
            columns = [columns[0][:1], columns[0][1:]]
        if len(columns) != len(sides) or not all(columns):
            raise FormatError(
                where,
                line_number,
                f"expected labels of {len(sides)} sides, found {line.strip()!r}.",
                "Write 'NN n Ng', or put | between the sides: 'NN NR | n nr'.",
            )
        chosen = []
        for s, (column, side) in enumerate(zip(columns, sides, strict=True)):
            found: dict[int, bool] = {}
            for pattern in column:
                is_weak = _parts(pattern)[-1] == "?"
                numbers = _matching(pattern[:-1] if is_weak else pattern, side)
                if not len(numbers):
                    raise FormatError(
                        where, line_number, f"side {s + 1} has no label {_plain(pattern)!r}.", _nearest(pattern, side)
                    )
                for number in numbers.tolist():
                    found[number] = found.get(number, True) and is_weak
            chosen.append(found)
        for row in itertools.product(*chosen):
            rows.append(row)
            weak.append(any(found[number] for found, number in zip(chosen, row, strict=True)))
    table = np.array(rows, dtype=np.int32).reshape(-1, len(sides))
    return _mapping(sides, table, np.array(weak, dtype=np.bool_), np.zeros(len(rows), np.int64))


def to_rules(mapping: Mapping, counts: bool = True) -> str:
    """A mapping as the text of a rule file, with how often each line was seen as a comment."""
    lines = [f"# {len(mapping)} bundles of {' x '.join(map(str, mapping.sizes))} labels"]
    groups: dict[tuple[str, ...], list[int]] = {}
    for at, names in enumerate(mapping.names()):
        groups.setdefault(names[:-1], []).append(at)
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


def _mapping(sides: Sequence[Sequence[str]], rows: Any, weak: Any, counts: Any) -> Mapping:
    """Sorted, each bundle once: weak only if it is so everywhere, counts added up."""
    rows = np.asarray(rows, dtype=np.int32).reshape(-1, len(sides))
    bundles, where = np.unique(rows, axis=0, return_inverse=True)
    where = where.ravel()
    total = np.zeros(len(bundles), dtype=np.int64)
    np.add.at(total, where, np.asarray(counts, dtype=np.int64))
    strong = np.zeros(len(bundles), dtype=np.bool_)
    strong[where[~np.asarray(weak, dtype=np.bool_)]] = True
    return Mapping(tuple(tuple(side) for side in sides), bundles.astype(np.int32), ~strong, total)


def _columns(line: str) -> list[list[str]]:
    """The patterns of each side, escapes still in them."""
    columns: list[list[str]] = [[]]
    for word in line.split():
        if word == "#":
            break
        if word == "|":
            columns.append([])
        else:
            columns[-1].append(word)
    return columns if any(columns) else []


def _matching(pattern: str, side: Sequence[str]) -> NDArray[np.int64]:
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
