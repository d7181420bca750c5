"""Standard: a tag set and a segmentation convention as a value; to and from TOML.

A standard file (docs/standards.md tells each key):

    name, title, language, unit, version, source, licence, segmentation     about the standard
    [tags]      tag = "what it means"
    [slips]     tag = "why it is accepted": tags that occur in the corpora but do not belong to the standard
    [parents]   sub-category = its category
    [prefixes] [suffixes] [joins]   how tags are composed: FW-NN, NN-TL, PPSS+BEM
    [[tails]]   after = [tags], glosses = {tail = meaning}: each tag joined by "-" with each tail is a tag
    extends, drop, fold_case        everything another standard has, less these tags; letter case does not matter
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from duilian.errors import StandardError

UNITS = ("word", "character")
_TEXTS = ("name", "title", "language", "unit", "version", "source", "licence", "segmentation")
_OPTIONAL = ("version", "segmentation")
_TABLES = ("tags", "slips", "parents", "prefixes", "suffixes", "joins")
_ONLY_IN_FILES = ("extends", "drop", "tails")
_NAME = re.compile(r"\w[\w.-]*")
_LONGEST_TAG = 100


@dataclass(frozen=True)
class Standard:
    """A tag set with glosses and a segmentation convention.

    tags:     tag -> gloss, in the order of the file
    slips:    tag -> reason; known, but no tag of the standard proper
    parents:  sub-category -> category, both among the tags
    prefixes, suffixes: mark -> gloss; a known tag with such a mark before or behind it is known
    joins:    mark -> gloss; two known tags with such a mark between them are known
    """

    name: str
    title: str
    language: str
    unit: str
    tags: dict[str, str]
    source: str
    licence: str
    version: str = ""
    segmentation: str = ""
    slips: dict[str, str] = field(default_factory=dict)
    parents: dict[str, str] = field(default_factory=dict)
    prefixes: dict[str, str] = field(default_factory=dict)
    suffixes: dict[str, str] = field(default_factory=dict)
    joins: dict[str, str] = field(default_factory=dict)
    fold_case: bool = False

    def knows(self, tag: str) -> bool:
        """Whether the tag, a slip, or a composed tag belongs to the standard."""
        return self.gloss(tag) is not None

    def gloss(self, tag: str) -> str | None:
        """What a tag means, composed tags included; None if the standard does not know it."""
        if self.fold_case:
            tag = tag.upper()
        plain = {**self.tags, **self.slips}
        if self.fold_case:
            plain = {known.upper(): gloss for known, gloss in plain.items()}
        if tag in plain:
            return plain[tag]
        if len(tag) > _LONGEST_TAG or not (self.prefixes or self.suffixes or self.joins):
            return None
        return self._compose(tag, plain, {})

    def _compose(self, tag: str, plain: dict[str, str], seen: dict[str, str | None]) -> str | None:
        if tag in plain:
            return plain[tag]
        if tag not in seen:
            seen[tag] = None
            seen[tag] = self._composed(tag, plain, seen)
        return seen[tag]

    def _composed(self, tag: str, plain: dict[str, str], seen: dict[str, str | None]) -> str | None:
        for mark, gloss in self.suffixes.items():
            core = self._compose(tag[: -len(mark)], plain, seen) if tag.endswith(mark) else None
            if core is not None:
                return f"{core}; {gloss}"
        for mark, gloss in self.prefixes.items():
            core = self._compose(tag[len(mark) :], plain, seen) if tag.startswith(mark) else None
            if core is not None:
                return f"{gloss}: {core}"
        for mark, gloss in self.joins.items():
            for match in re.finditer(re.escape(mark), tag):
                left = self._compose(tag[: match.start()], plain, seen)
                right = self._compose(tag[match.end() :], plain, seen) if left is not None else None
                if right is not None:
                    return f"{left} {gloss} {right}"
        return None

    def children(self, tag: str) -> tuple[str, ...]:
        """The direct sub-categories of a tag."""
        return tuple(child for child, parent in self.parents.items() if parent == tag)

    def expand(self, tag: str) -> tuple[str, ...]:
        """The tag and all its sub-categories, theirs included."""
        found = [tag]
        for one in found:
            found += [child for child in self.children(one) if child not in found]
        return tuple(found)

    def nearest(self, tag: str) -> str | None:
        """The known tag most like this one: equal but for letter case, else fewest edits; None if all differs."""
        for known in (*self.tags, *self.slips):
            if known.casefold() == tag.casefold():
                return known
        tag = tag.upper() if self.fold_case else tag
        for mark in self.suffixes:
            if tag.endswith(mark) and len(tag) > len(mark) and (core := self.nearest(tag[: -len(mark)])):
                return core + mark
        for mark in self.prefixes:
            if tag.startswith(mark) and len(tag) > len(mark) and (core := self.nearest(tag[len(mark) :])):
                return mark + core
        if len(tag) > _LONGEST_TAG:
            return None
        ranked = [(edit_distance(tag, known), place, known) for place, known in enumerate(self.tags)]
        distance, _, known = min(ranked, default=(0, 0, ""))
        return known if known and distance < max(len(tag), len(known)) else None

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a model's header; from_dict takes it back."""
        return {key: value for key, value in asdict(self).items() if value or key in ("tags", "source", "licence")}

    def to_toml(self) -> str:
        """The standard as a file that a person can edit."""
        lines = [f"{key} = {_quoted(getattr(self, key))}" for key in _TEXTS]
        if self.fold_case:
            lines.append("fold_case = true")
        for table in _TABLES:
            entries = getattr(self, table)
            if entries or table == "tags":
                lines += ["", f"[{table}]", *(f"{_key(key)} = {_quoted(value)}" for key, value in entries.items())]
        return "\n".join(lines) + "\n"

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], where: str = "standard") -> Standard:
        """From plain data with every key checked; ``extends`` is the registry's business and not allowed here."""
        allowed = (*_TEXTS, *_TABLES, "fold_case", "tails", "drop")
        for key in data:
            if key not in allowed:
                raise StandardError(f"{where}: unknown key {key!r}; the keys are {', '.join((*allowed, 'extends'))}")
        values: dict[str, Any] = {key: _text(data, key, where) for key in _TEXTS}
        values |= {table: _table(data, table, where) for table in _TABLES}
        values["tags"] |= _expanded(data, values["tags"], where)
        fold_case = data.get("fold_case", False)
        if not isinstance(fold_case, bool):
            raise StandardError(f"{where}: fold_case must be true or false, found {fold_case!r}")
        for tag in _strings(data.get("drop", []), f"{where}: drop"):
            if tag not in values["tags"]:
                raise StandardError(f"{where}: drop names {tag!r}, which is no tag to begin with")
            del values["tags"][tag]
            values["parents"] = {child: up for child, up in values["parents"].items() if tag not in (child, up)}
        standard = cls(**values, fold_case=fold_case)
        _check_standard(standard, where)
        return standard


def read_toml(path: Path) -> dict[str, Any]:
    """The raw content of a standard file, or a StandardError that says what is wrong with it."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise StandardError(f"{path}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise StandardError(f"{path}: is not UTF-8 (byte {error.start}); save it as UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        hint = 'A tag with other characters than letters, digits, - and _ needs quotes: "PRP$" = ...'
        raise StandardError(f"{path}: is not TOML: {error}. {hint}") from error
    except RecursionError as error:
        raise StandardError(f"{path}: is not a standard: nested too deeply") from error


def edit_distance(one: str, other: str) -> int:
    """Levenshtein's: the fewest insertions, deletions and substitutions of a character."""
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        diagonal, row[0] = row[0], i
        for j, b in enumerate(other, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (a != b))
    return row[-1]


def _text(data: Mapping[str, Any], key: str, where: str) -> str:
    value = data.get(key, "" if key in _OPTIONAL else None)
    if value is None:
        raise StandardError(f"{where}: the key {key!r} is missing; it must be a text")
    if not isinstance(value, str):
        raise StandardError(f"{where}: {key} must be a text, found {value!r}")
    return value.strip()


def _table(data: Mapping[str, Any], key: str, where: str) -> dict[str, str]:
    table = data.get(key, {})
    if not isinstance(table, dict):
        raise StandardError(f"{where}: {key} must be a table [{key}], found {table!r}")
    for name, value in table.items():
        if not isinstance(value, str):
            example = "PRP$" if isinstance(value, dict) else name or "NN"
            raise StandardError(
                f'{where}: [{key}] {name!r} must have a text, found {value!r}; a line is like "{example}" = "noun"'
            )
    return dict(table)


def _strings(value: Any, where: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise StandardError(f"{where} must be a list of texts, found {value!r}")
    return value


def _expanded(data: Mapping[str, Any], tags: dict[str, str], where: str) -> dict[str, str]:
    """The tags that [[tails]] stand for: tag-tail for each of ``after`` and each tail."""
    tails = data.get("tails", [])
    if not isinstance(tails, list) or not all(isinstance(tail, dict) for tail in tails):
        raise StandardError(f"{where}: tails must be written as [[tails]], found {tails!r}")
    found = {}
    for number, tail in enumerate(tails, 1):
        place = f"{where}: [[tails]] number {number}"
        if set(tail) != {"after", "glosses"}:
            raise StandardError(f"{place} must have the keys after and glosses, found {sorted(tail)}")
        glosses = _table(tail, "glosses", place)
        for before, (end, gloss) in product(_strings(tail["after"], f"{place}: after"), glosses.items()):
            if before not in tags:
                raise StandardError(f"{place}: after names {before!r}, which is not in [tags]")
            found[f"{before}-{end}"] = f"{tags[before]}; {gloss}"
    return found


def _check_standard(standard: Standard, where: str) -> None:
    if not _NAME.fullmatch(standard.name):
        raise StandardError(f"{where}: name must be of letters, digits, '.', '-' and '_', found {standard.name!r}")
    if standard.unit not in UNITS:
        raise StandardError(f"{where}: unit must be one of {', '.join(UNITS)}, found {standard.unit!r}")
    if not standard.tags and standard.unit == "word":
        raise StandardError(f"{where}: [tags] is empty; a standard of words needs tags")
    for tag in standard.slips:
        if tag in standard.tags:
            raise StandardError(f"{where}: {tag!r} is in [tags] and in [slips]; one of them must go")
    for child, parent in standard.parents.items():
        for tag in (child, parent):
            if tag not in standard.tags:
                raise StandardError(f"{where}: [parents] {child!r} = {parent!r} names {tag!r}, which is not in [tags]")
        if child in standard.expand(parent) and parent in standard.expand(child):
            raise StandardError(f"{where}: [parents] makes {child!r} a sub-category of itself")
    for table in ("prefixes", "suffixes", "joins"):
        if "" in getattr(standard, table):
            raise StandardError(f"{where}: [{table}] holds an empty mark")


_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\b": "\\b", "\f": "\\f"}


def _quoted(text: str) -> str:
    body = (_ESCAPES.get(c) or (f"\\u{ord(c):04X}" if ord(c) < 32 or ord(c) == 127 else c) for c in text)
    return '"' + "".join(body) + '"'


def _key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else _quoted(key)
