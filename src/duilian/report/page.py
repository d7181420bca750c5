"""The page: what was run, tables and figures of a study, put together by templates that escape what they are given."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from duilian.mapping.drawing import STYLE
from duilian.report.figures import draw
from duilian.report.numbers import probability, shown, signed
from duilian.report.reading import Number, Part, Raw, read
from duilian.report.tables import LEVELS, fill

if TYPE_CHECKING:
    from jinja2 import Environment

NAME = "report.html"


def write(folder: Path) -> Path:
    """Make the report of a study's folder; returns its path. Nothing but the folder is read."""
    html = render(read(folder))
    path, half = folder / NAME, folder / f"{NAME}.new"
    half.write_text(html, encoding="utf-8", newline="\n", errors="backslashreplace")
    return half.replace(path)


def render(raw: Raw) -> str:
    """The whole page."""
    environment = templates()
    return environment.get_template("report.html").render(
        plan=raw.plan,
        tables=fill(raw),
        blocks=draw(raw),
        runs=[(name, raw.cell(name)) for name in raw.plan.cells],
        state={name: _state(raw, name) for name in raw.plan.cells},
        levels=LEVELS,
        heat_style=STYLE,
        total=_total(raw),
    )


def templates() -> Environment:
    """Templates with what they may call; everything is escaped unless this package made it as markup."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("duilian.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "shown": shown, "signed": signed, "probability": probability, "exact": exact, "source": source,
        "setting": setting,
    }  # fmt: skip
    environment.globals["cell_file"] = lambda name: f"cells/{quote(name)}.json"
    environment.tests["number"] = lambda value: isinstance(value, Number)
    environment.tests["word"] = lambda value: isinstance(value, str)
    return environment


def exact(number: Number) -> str:
    """A number as it stands in its file."""
    return f"{number.value / number.scale:.12g}"


def source(number: Number) -> str:
    """Where a number comes from: file, place, and what stands there."""
    return f"{number.file}#{number.pointer} = {exact(number)}"


def setting(value: Any) -> str:
    """A setting as the command line takes it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ",".join(str(one) for one in value)
    return str(value)


def _state(raw: Raw, name: str) -> str:
    return "done" if raw.done(name) else "failed" if raw.cell(name) else "not run"


def _total(raw: Raw) -> dict[str, Any]:
    """How long all runs took together, and the most memory that one of them had."""
    seconds: list[Number] = []
    peaks: list[Number] = []
    for name in raw.plan.cells:
        cell: Part = raw.cell(name)
        seconds += [number] if (number := cell["seconds"].number()) else []
        peaks += [number] if (number := cell["peak_bytes"].number(1e-6)) else []
    return {
        "seconds": sum(number.value for number in seconds) if seconds else None,
        "peak": max(peaks, key=lambda number: number.value) if peaks else None,
    }
