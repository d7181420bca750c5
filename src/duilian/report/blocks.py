"""What a figure of a study becomes on the page: drawings, the numbers behind them, remarks on what is missing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from duilian.report.numbers import shown, signed
from duilian.report.plotting import Panel
from duilian.report.reading import Number, Part, Raw
from duilian.studies.results import Figure


@dataclass(frozen=True)
class Shown:
    """A number as it is printed. derived: it was computed from its sources in the raw results, else it is the one."""

    text: str
    sources: tuple[Number, ...]
    derived: bool = True


@dataclass(frozen=True)
class Bar:
    """A bar in a table. share: of the place's width, 0 to 1; below zero it is a loss."""

    share: float


Value = str | Shown | Bar | None
"""What stands in a table: words, a number, a bar, nothing."""


@dataclass
class Numbers:
    """A table behind a drawing. heads: (title, whether numbers stand below it); first: rows that are seen at first."""

    heads: list[tuple[str, bool]]
    rows: list[list[Value]]
    first: int | None = None


@dataclass
class Block:
    """A figure on the page. notes: remarks; failed, missing: runs that it lacks; more: what only its template knows."""

    figure: Figure
    panels: list[Panel] = field(default_factory=list)
    numbers: Numbers | None = None
    folded: bool = True
    """Whether the table of numbers is folded away at first."""
    notes: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    more: dict[str, Any] = field(default_factory=dict)

    def run(self, raw: Raw, name: str) -> Part:
        """A finished run; where it failed or has not been run the figure says so."""
        found = raw.done(name)
        lacking = self.failed if raw.cell(name) else self.missing
        if not found and name not in lacking:
            lacking.append(name)
        return found

    @property
    def narrow(self) -> bool:
        """Whether it is narrow: two of them stand side by side where there is room."""
        return self.figure.kind == "confusion" or (bool(self.panels) and "relations" not in self.more)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to be seen."""
        return not self.panels and self.numbers is None and not self.more


def one(number: Number | None, digits: int = 2) -> Shown | None:
    """A number of the raw results as it is."""
    return None if number is None else Shown(shown(number.value, digits), (number,), derived=False)


def difference(first: Number | None, second: Number | None, digits: int = 2) -> Shown | None:
    """second less first, with its sign."""
    if first is None or second is None:
        return None
    return Shown(signed(second.value - first.value, digits), (first, second))
