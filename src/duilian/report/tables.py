"""Tables of a study: what stands in each place, which value is best, which differences are more than chance.

A place holds the mean over the seeds that were run; a run that failed shows as failed, one that is missing as not run.
The paper's numbers have columns of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from duilian.report.numbers import Mean, mean, shown
from duilian.report.reading import Number, Part, Raw
from duilian.studies.results import Column, Row, Table

LEVELS = (0.05, 0.01, 0.001)
"""A difference gets one mark for each of these that its p-value is below."""
MEASURES = {"accuracy": "accuracy", "joint": "joint.f", "joint_f": "joint.f", "ws": "ws.f", "ws_f": "ws.f"}


@dataclass
class Place:
    """One place of a table. marks: +, ++, +++ for better than the row compared with, -, --, --- for worse."""

    mean: Mean | None
    best: bool = False
    marks: str = ""
    paper: Number | None = None


@dataclass(frozen=True)
class Against:
    """What became of a row's comparison. title: of the other row; of: the path that was compared."""

    title: str
    of: str
    differences: Mean
    p_values: tuple[Number, ...]

    @property
    def p(self) -> float:
        """The largest p-value: what is marked must hold for every seed."""
        return max(one.value for one in self.p_values)

    @property
    def marks(self) -> str:
        """One mark for each level that the p-value is below; none where seeds disagree about the sign, or one lacks."""
        values = [one.value for one in self.differences.numbers]
        if min(values) < 0 < max(values) or not self.differences.whole:
            return ""
        return ("-" if min(values) < 0 else "+") * sum(self.p < level for level in LEVELS)


@dataclass
class Line:
    """A row as it is shown. failed: (run, its message); missing: runs that there are no results of."""

    row: Row
    places: list[Place]
    against: Against | None
    failed: list[tuple[Part, str]] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    @property
    def state(self) -> str:
        """done if any run has results, else failed if any failed, else not run."""
        if len(self.failed) + len(self.missing) < len(self.row.cells):
            return "done"
        return "failed" if self.failed else "not run"


@dataclass
class Filled:
    """A table with its lines. papers: keys of the columns that the paper has numbers for."""

    table: Table
    lines: list[Line]
    papers: frozenset[str]

    @property
    def compares(self) -> bool:
        """Whether any row is compared with another."""
        return any(line.against for line in self.lines)

    @property
    def several_seeds(self) -> bool:
        """Whether any place is a mean."""
        return any(len(place.mean.numbers) > 1 for line in self.lines for place in line.places if place.mean)

    @property
    def has_best(self) -> bool:
        """Whether any value is marked as the best."""
        return any(place.best for line in self.lines for place in line.places)


def fill(raw: Raw) -> list[Filled]:
    """Every table of a study, filled with what was run."""
    return [_fill(raw, table, raw.study["tables"][k]) for k, table in enumerate(raw.plan.tables)]


def _fill(raw: Raw, table: Table, part: Part) -> Filled:
    lines = []
    for k, row in enumerate(table.rows):
        against = _against(raw, table, row)
        runs = {name: raw.cell(name) for name in row.cells}
        paper = part["rows"][k]["paper"]
        lines.append(
            Line(
                row,
                [_place(raw, column, row, paper, against) for column in table.columns],
                against,
                [(run, run["error"].text("no message")) for name, run in runs.items() if run and not raw.done(name)],
                [name for name, run in runs.items() if not run],
            )
        )
    for k, column in enumerate(table.columns):
        _mark_best(column, [line.places[k] for line in lines])
    return Filled(table, lines, frozenset(key for row in table.rows for key in row.paper))


def _place(raw: Raw, column: Column, row: Row, paper: Part, against: Against | None) -> Place:
    path = row.paths.get(column.key, column.path)
    numbers = [raw.done(name).at(path).number(column.scale) for name in row.cells]
    marks = against.marks if against and path == against.of else ""
    return Place(mean(numbers), marks=marks, paper=paper[column.key].number())


def _against(raw: Raw, table: Table, row: Row) -> Against | None:
    """The comparison of two rows, seed by seed."""
    if row.against is None or table.compared is None:
        return None
    other = table.row(row.against)
    found = [raw.comparison(a, b, table.compared) for a, b in zip(other.cells, row.cells, strict=True)]
    differences = mean([one["difference"].number() for one in found])
    p_values = tuple(p for one in found if (p := one["p_value"].number()) is not None)
    if differences is None or not p_values:
        return None
    measure = next(one for one in found if one)["measure"].text()
    top = "conversions" if "->" in table.compared else "scores"
    return Against(other.title, f"{top}.{table.compared}.{MEASURES.get(measure, measure)}", differences, p_values)


def _mark_best(column: Column, places: Sequence[Place]) -> None:
    """Mark the best of at least two, and whatever looks the same as it; what lacks a seed is not compared."""
    there = [(place, place.mean.value) for place in places if place.mean and place.mean.whole]
    if column.better not in ("high", "low") or len(there) < 2:
        return
    choose = max if column.better == "high" else min
    best = shown(choose(value for _, value in there), column.digits)
    for place, value in there:
        place.best = shown(value, column.digits) == best
