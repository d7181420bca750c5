"""Guideline tables: which tags of two standards may stand for the same word (qiu2013, section 4).

One TOML file for each pair of standards, called FIRST+SECOND.toml:

    sides   the two standards, in the order of the columns          source  where the relations come from
    rules   a rule file (see ``duilian.mapping``); a relation marked weak counts as well: the mapping is a loose one
    names   pairs of patterns "NR | nr*": tags whose words one standard cuts and the other does not
    same    true: tags of the same name stand for each other too

Relations are given between categories; sub-categories follow theirs, and what the training data does not have is left
out. Adding a table is adding a file.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from duilian import mapping as mappings
from duilian.errors import FormatError
from duilian.mapping import Mapping
from duilian.standards import Standard
from duilian.standards import get as standard_of

FOLDER = Path(__file__).parent
_HINT = "Copy one of the tables that duilian has."


@dataclass(frozen=True)
class Guideline:
    """A table between two standards. names: pairs of patterns of tags whose words may be cut differently."""

    sides: tuple[str, str]
    rules: str
    names: tuple[tuple[str, str], ...] = ()
    same: bool = False
    source: str = ""
    where: str = "guideline"

    def turned(self, order: Sequence[str]) -> tuple[tuple[str, str], ...]:
        """``names`` with the sides in that order."""
        return self.names if tuple(order) == self.sides else tuple((b, a) for a, b in self.names)

    def mapping(self, order: Sequence[str], tags: Sequence[Sequence[str]]) -> Mapping:
        """The loose mapping between lists of tags; order: the standards' names, in the order of the lists."""
        given = list(tags) if tuple(order) == self.sides else list(tags)[::-1]
        standards = [standard_of(name) for name in self.sides]
        every = [_with(standard, some) for standard, some in zip(standards, given, strict=True)]
        found = mappings.parse_rules(self.rules, every, self.where)
        if self.same:
            second = {tag: number for number, tag in enumerate(every[1])}
            rows = [(number, second[tag]) for number, tag in enumerate(every[0]) if tag in second]
            nothing = [0] * len(rows)
            found = found.union(mappings.make(every, rows, [bool(n) for n in nothing], nothing))
        found = mappings.loose(found, [one.expand if one.parents else None for one in standards])
        found = found.with_sides(given)
        return found if tuple(order) == self.sides else found.reversed()


def paths() -> dict[tuple[str, str], Path]:
    """Pairs of standards -> file."""
    found = {}
    for path in sorted(FOLDER.glob("*+*.toml")):
        first, _, second = path.stem.partition("+")
        found[first, second] = path
    return found


def find(one: str, other: str) -> Guideline | None:
    """The table between two standards, whichever comes first; None if there is none."""
    known = paths()
    path = known.get((one, other)) or known.get((other, one))
    return None if path is None else read(path)


def read(path: Path) -> Guideline:
    """A table from its file."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FormatError(
            str(path), None, f"is not TOML: {error}.", "Copy one of the tables that duilian has."
        ) from None
    unknown = sorted(set(data) - {"sides", "source", "rules", "names", "same"})
    sides, rules = data.get("sides"), data.get("rules")
    if unknown or not isinstance(rules, str) or not isinstance(sides, list) or "+".join(sides) != path.stem:
        raise FormatError(
            str(path), None, f"expected sides = {path.stem.split('+')} and rules; unknown keys: {unknown}.",
            _HINT,
        )  # fmt: skip
    names = []
    for text in data.get("names", []):
        columns = [part.strip() for part in str(text).split("|")]
        if len(columns) != 2 or not all(columns):
            raise FormatError(str(path), None, f"names: {text!r} is no pair of patterns.", "Write 'NR | nr*'.")
        names.append((columns[0], columns[1]))
    return Guideline(
        (sides[0], sides[1]), rules, tuple(names), bool(data.get("same", False)), str(data.get("source", "")), str(path)
    )


def _with(standard: Standard, tags: Sequence[str]) -> tuple[str, ...]:
    """All tags of a standard, and those that the data has beside them."""
    return tuple(dict.fromkeys([*standard.tags, *standard.slips, *tags]))
