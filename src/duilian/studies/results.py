"""The folder of a study, read: the plan, finished cells and comparisons as typed objects, and values by their path.

    results = load(folder)
    for table in results.plan.tables:
        for row in table.rows:
            for column in table.columns:
                results.figure(row, column)          # mean, deviation, what each seed says, which cells failed

A path such as ``scores.zh-ud.accuracy`` or ``history.-1.seconds`` leads through a cell's file (docs/studies.md). What
is not there, or belongs to a failed cell, is None: nothing is made up.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from duilian.errors import DataError

FORMAT = 1
PLAN, CELLS, ANSWERS, COMPARISONS = "study.json", "cells", "answers", "comparisons"
_NAMES = ("id", "kind", "title", "caption")
A = TypeVar("A")


@dataclass(frozen=True)
class Paper:
    """The paper that a study reproduces."""

    key: str
    title: str
    year: int


@dataclass(frozen=True)
class SideOf:
    """A standard in a study. role: target or source; unit: word or character."""

    name: str
    role: str
    standard: str | None = None
    unit: str = "word"
    licence: str | None = None


@dataclass(frozen=True)
class FileOf:
    """A corpus file. part: train, dev or test; sentences and tokens are what is used of it."""

    side: str
    part: str
    name: str
    layer: str | None = None
    sha256: str = ""
    sentences: int = 0
    tokens: int = 0


@dataclass(frozen=True)
class Column:
    """A column of a table. unit: %, s, MB, words/s or nothing; better: high, low or none."""

    key: str
    title: str
    path: str
    unit: str = ""
    digits: int = 2
    better: str = "none"
    scale: float = 1.0
    """What the value under the path is multiplied by, such as 1e-6 from bytes to MB."""


@dataclass(frozen=True)
class Row:
    """A row of a table: a cell for each seed. against: the row that its significance is tested against."""

    id: str
    title: str
    cells: tuple[str, ...]
    against: str | None = None
    note: str | None = None
    paper: Mapping[str, float] = field(default_factory=dict)
    paths: Mapping[str, str] = field(default_factory=dict)
    """Column key -> a path of this row's own, where it is not the column's."""


@dataclass(frozen=True)
class Table:
    """A table. compared: the side, or the conversion such as ud->ptb, that significance is tested on."""

    id: str
    title: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    compared: str | None = None

    def row(self, id: str) -> Row:
        """The row of that id."""
        return next(row for row in self.rows if row.id == id)


@dataclass(frozen=True)
class Figure:
    """A figure. refers: what its kind needs, as docs/studies.md says (cells, series, side, path)."""

    id: str
    kind: str
    title: str
    caption: str
    refers: Mapping[str, Any] = field(default_factory=dict)

    def cells(self) -> list[str]:
        """All cells that it refers to, each once, in order."""
        return list(dict.fromkeys(_cells_in(self.refers)))


@dataclass(frozen=True)
class Plan:
    """What was asked, without any score."""

    study: str
    title: str
    task: str
    seeds: tuple[int, ...]
    quick: bool
    command: str
    cells: tuple[str, ...]
    tables: tuple[Table, ...]
    figures: tuple[Figure, ...]
    sides: tuple[SideOf, ...] = ()
    files: tuple[FileOf, ...] = ()
    paper: Paper | None = None
    same_corpora_as_paper: bool = False
    versions: Mapping[str, str] = field(default_factory=dict)
    commit: str | None = None
    machine: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    """What a reader must know: what --quick left out, which tables had to be left out and why."""

    @property
    def target(self) -> str:
        """The name of the first target side."""
        return next(side.name for side in self.sides if side.role == "target")

    def to_json(self) -> dict[str, Any]:
        """As it stands in study.json."""
        found = {"format": FORMAT, **plain(self)}
        for figure in found["figures"]:
            figure.update(figure.pop("refers"))
        return found


@dataclass(frozen=True)
class Cell:
    """A finished run. data: its whole file."""

    id: str
    method: str
    task: str
    seed: int
    status: str
    settings: Mapping[str, Any]
    sides: tuple[str, ...]
    error: str | None
    inputs: str
    data: Mapping[str, Any]

    @property
    def done(self) -> bool:
        """Whether it ended well."""
        return self.status == "done"

    def get(self, path: str) -> Any:
        """The value under a path, or None; None also if the cell failed."""
        return lookup(self.data, path) if self.done else None


@dataclass(frozen=True)
class Comparison:
    """Significance of one cell against another on one side or conversion; words: gains of single words."""

    baseline: str
    system: str
    side: str
    measure: str
    difference: float
    p_value: float
    samples: int
    words: tuple[tuple[Any, ...], ...] = ()
    interval: tuple[float, float] | None = None


@dataclass(frozen=True)
class Value:
    """What a row says in a column: one value for each seed (None: not there), and the ids of failed cells."""

    values: tuple[float | None, ...]
    failed: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    """Cells that have not been run yet."""

    @property
    def mean(self) -> float | None:
        """The mean, if every seed has a value."""
        known = [value for value in self.values if value is not None]
        return sum(known) / len(known) if known and len(known) == len(self.values) else None

    @property
    def deviation(self) -> float | None:
        """The standard deviation of the sample; None of a single seed."""
        mean = self.mean
        if mean is None or len(self.values) < 2:
            return None
        squares = sum((value - mean) ** 2 for value in self.values if value is not None)
        return math.sqrt(squares / (len(self.values) - 1))


@dataclass(frozen=True)
class Results:
    """A study's folder, read."""

    folder: Path
    plan: Plan
    cells: Mapping[str, Cell]
    comparisons: Mapping[tuple[str, str, str], Comparison]

    def value(self, cell: str, path: str) -> Any:
        """What is under a path of a cell; None if it is not there, failed, or not run yet."""
        found = self.cells.get(cell)
        return None if found is None else found.get(path)

    def scores(self, cell: str, side: str) -> Mapping[str, Any] | None:
        """All scores of a cell on a side, or on a conversion such as ud->ptb."""
        found = self.cells.get(cell)
        if found is None or not found.done:
            return None
        scores = found.data.get("conversions" if "->" in side else "scores", {}).get(side)
        return scores if isinstance(scores, Mapping) else None

    def figure(self, row: Row, column: Column) -> Value:
        """What a row says in a column, scaled."""
        path = row.paths.get(column.key, column.path)
        values = tuple(number(self.value(id, path), column.scale) for id in row.cells)
        failed = tuple(id for id in row.cells if id in self.cells and not self.cells[id].done)
        return Value(values, failed, tuple(id for id in row.cells if id not in self.cells))

    def comparisons_of(self, table: Table, row: Row) -> list[Comparison | None]:
        """For each seed how the row compares with the row it is tested against; None where that is not known."""
        if row.against is None or table.compared is None:
            return [None] * len(row.cells)
        base = table.row(row.against)
        pairs = zip(base.cells, row.cells, strict=True)
        return [self.comparisons.get((one, other, table.compared)) for one, other in pairs]

    def answer(self, cell: str, side: str) -> Path | None:
        """The file of a cell's answers on a side or conversion, JSON lines, or None."""
        path = self.folder / ANSWERS / answer_name(cell, side)
        return path if path.is_file() else None


def load(folder: Path) -> Results:
    """Read a study's folder; what is not finished yet is not in it."""
    plan = read_plan(folder / PLAN)
    cells = {id: read_cell(path) for id in plan.cells if (path := folder / CELLS / f"{id}.json").is_file()}
    found = {}
    for path in sorted((folder / COMPARISONS).glob("*.json")):
        one = read_comparison(path)
        found[one.baseline, one.system, one.side] = one
    return Results(folder, plan, cells, found)


def read_plan(path: Path) -> Plan:
    """study.json."""
    data = read_json(path)
    tables = tuple(
        _made(
            Table,
            one,
            path,
            columns=tuple(_made(Column, column, path) for column in one.get("columns", ())),
            rows=tuple(_made(Row, row, path) for row in one.get("rows", ())),
        )
        for one in data.get("tables", ())
    )
    figures = tuple(
        _made(Figure, one, path, refers={key: value for key, value in one.items() if key not in _NAMES})
        for one in data.get("figures", ())
    )
    paper = data.get("paper")
    return _made(
        Plan,
        data,
        path,
        tables=tables,
        figures=figures,
        sides=tuple(_made(SideOf, one, path) for one in data.get("sides", ())),
        files=tuple(_made(FileOf, one, path) for one in data.get("files", ())),
        paper=None if paper is None else _made(Paper, paper, path),
    )


def read_cell(path: Path) -> Cell:
    """One of cells/*.json."""
    data = read_json(path)
    return _made(Cell, data, path, data=data, error=data.get("error"))


def read_comparison(path: Path) -> Comparison:
    """One of comparisons/*.json."""
    data = read_json(path)
    words = tuple(tuple(row) for row in data.get("words", ()))
    return _made(Comparison, data, path, words=words)


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object of this format."""
    try:
        found = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise DataError(
            f"{path}: there is no such file. Expected the folder that `duilian study ... --out FOLDER` wrote."
        ) from None
    except (ValueError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: not a JSON file: {error}. Delete it and run the study again.") from None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        shown = found.get("format") if isinstance(found, dict) else type(found).__name__
        raise DataError(f"{path}: expected results of format {FORMAT}, found {shown!r}.")
    return found


def lookup(data: Any, path: str) -> Any:
    """The value under a dotted path, or None. Keys may have dots in them; lists take numbers, also from the end."""
    return _walk(data, path.split("."))


def number(value: Any, scale: float = 1.0) -> float | None:
    """A number times a scale; None if it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return value * scale


def answer_name(cell: str, side: str) -> str:
    """The file of a cell's answers on a side, or on a conversion such as ud->ptb."""
    return f"{cell}.{_file_part(side)}.jsonl"


def comparison_name(baseline: str, system: str, side: str) -> str:
    """The file of a comparison."""
    return f"{baseline}~{system}.{_file_part(side)}.json"


def _file_part(side: str) -> str:
    return re.sub(r"[^\w.@+-]", "_", side.replace("->", "-to-"))


def plain(value: Any) -> Any:
    """Dataclasses, mappings and sequences as JSON has them."""
    if hasattr(value, "__dataclass_fields__"):
        return {one.name: plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def _walk(data: Any, parts: Sequence[str]) -> Any:
    if not parts:
        return data
    if isinstance(data, Mapping):
        for n in range(len(parts), 0, -1):
            key = ".".join(parts[:n])
            if key in data:
                found = _walk(data[key], parts[n:])
                if found is not None:
                    return found
        return None
    if isinstance(data, list | tuple):
        try:
            return _walk(data[int(parts[0])], parts[1:])
        except (ValueError, IndexError):
            return None
    return None


def _cells_in(value: Any, key: str = "") -> Iterable[str]:
    """Cell ids in the references of a figure: what stands under cell or cells, however deep."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _cells_in(item, str(name))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _cells_in(item, key)
    elif key in ("cell", "cells", "baseline", "system") and isinstance(value, str):
        yield value


def _made(kind: type[A], read: Any, path: Path, /, **given: Any) -> A:
    """A dataclass from a JSON object; unknown keys are passed over: fields may be added later."""
    if not isinstance(read, Mapping):
        raise DataError(f"{path}: expected an object for {kind.__name__}, found {type(read).__name__}.")
    known = {one.name for one in fields(kind)}  # type: ignore[arg-type]
    values = {key: tuple(item) if isinstance(item, list) else item for key, item in read.items() if key in known}
    try:
        return kind(**(values | given))
    except TypeError as error:
        raise DataError(f"{path}: {kind.__name__} cannot be read: {error}.") from None
