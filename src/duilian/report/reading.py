"""Raw results with their places: every number knows the file and the place in it (a JSON pointer) that it comes from.

A view of ``duilian.studies.results``, which reads the files. Whatever the report shows can be traced by it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from duilian.studies import results as raw

Place = tuple[str | int, ...]


@dataclass(frozen=True)
class Number:
    """A number of the raw results. file: relative to the folder; place: keys from the top of the file down to it.

    value: as it is shown, that is times ``scale``
    """

    value: float
    file: str
    place: Place
    scale: float = 1.0

    @property
    def pointer(self) -> str:
        """The place as a JSON pointer (RFC 6901)."""
        return "".join("/" + str(key).replace("~", "~0").replace("/", "~1") for key in self.place)

    @property
    def href(self) -> str:
        """An address, relative to the report."""
        return f"{quote(self.file, safe='/~')}#{quote(self.pointer, safe='/~')}"


@dataclass(frozen=True)
class Part:
    """A part of a JSON file: ``part["scores"]`` goes down, and knows the way."""

    content: Any
    file: str
    place: Place = ()

    def __getitem__(self, key: str | int) -> Part:
        """The part below a key or a position; one without content where there is none."""
        below = None
        if isinstance(self.content, dict):
            below = self.content.get(key)
        elif isinstance(self.content, list) and isinstance(key, int) and -len(self.content) <= key < len(self.content):
            key %= len(self.content)
            below = self.content[key]
        return Part(below, self.file, (*self.place, key))

    def __bool__(self) -> bool:
        return self.content not in (None, {}, [])

    def __iter__(self) -> Iterator[Part]:
        """The parts of a list, or the values of an object, in the file's order."""
        if isinstance(self.content, dict):
            yield from (self[key] for key in self.content)
        elif isinstance(self.content, list):
            yield from (self[k] for k in range(len(self.content)))

    def names(self) -> list[str]:
        """The keys of an object; none of anything else."""
        return list(self.content) if isinstance(self.content, dict) else []

    def text(self, otherwise: str = "") -> str:
        """The content as a text."""
        return otherwise if self.content is None else str(self.content)

    def number(self, scale: float = 1.0) -> Number | None:
        """The content as a number; None where it is none, or not finite."""
        value = self.content
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            return None
        return Number(value * scale, self.file, self.place, scale)

    def at(self, path: str) -> Part:
        """The part at a path with dots, such as ``scores.zh-ud.accuracy`` or ``history.-1.seconds``.

        Names may have dots themselves: the longest that leads somewhere is taken.
        """
        steps = path.split(".")
        if isinstance(self.content, list) and steps[0].removeprefix("-").isdigit():
            return self[int(steps[0])].at(".".join(steps[1:])) if steps[1:] else self[int(steps[0])]
        for n in range(len(steps), 0, -1):
            head, rest = ".".join(steps[:n]), ".".join(steps[n:])
            if isinstance(self.content, dict) and head in self.content:
                found = self[head].at(rest) if rest else self[head]
                if found.content is not None:
                    return found
        return Part(None, self.file, (*self.place, *steps))


@dataclass(frozen=True)
class Raw:
    """A study's folder, for the report. study: the plan as it stands in its file."""

    results: raw.Results
    study: Part

    @property
    def plan(self) -> raw.Plan:
        """What was asked."""
        return self.results.plan

    def cell(self, name: str) -> Part:
        """A finished run, failed ones too; without content if it has not been run."""
        found = self.results.cells.get(name)
        return Part(None if found is None else found.data, f"{raw.CELLS}/{name}.json")

    def done(self, name: str) -> Part:
        """A run that has scores; without content if it failed or has not been run."""
        found = self.results.cells.get(name)
        return Part(found.data if found is not None and found.done else None, f"{raw.CELLS}/{name}.json")

    def scores(self, name: str, of: str) -> Part:
        """The scores of a run on a side, or of a conversion such as ud->ptb."""
        return self.done(name)["conversions" if "->" in of else "scores"][of]

    def comparison(self, baseline: str, system: str, of: str) -> Part:
        """Significance of one run against another on a side or conversion; without content if there is none."""
        file = f"{raw.COMPARISONS}/{raw.comparison_name(baseline, system, of)}"
        path = self.results.folder / file
        return Part(raw.read_json(path) if path.is_file() else None, file)

    def title(self, name: str) -> str:
        """What a run is called: the row of a table that shows it, with its seed if it has several; else its method."""
        for table in self.plan.tables:
            for row in table.rows:
                if name in row.cells:
                    cell = self.cell(name)
                    seed = f", seed {cell['seed'].content}" if len(row.cells) > 1 and cell else ""
                    return row.title + seed
        return self.cell(name)["method"].text(name)


def read(folder: Path) -> Raw:
    """The raw results in a folder; DataError where there are none that can be read."""
    return Raw(raw.load(folder), Part(raw.read_json(folder / raw.PLAN), raw.PLAN))
