"""What all commands share: options that mean the same everywhere, and how results and remarks are printed.

Data goes to stdout, everything else to stderr. Bars are drawn on terminals only.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Protocol

import typer

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No bars and no remarks; errors are still told.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
Seed = Annotated[int, typer.Option("--seed", help="Where random numbers start.", min=0)]
Threads = Annotated[int, typer.Option("--threads", help="Number of threads; results do not depend on it.", min=1)]
Format = Annotated[str, typer.Option("--format", help="Format of the files; auto looks at the content.")]
Encoding = Annotated[str, typer.Option("--encoding", help="Encoding of the files, such as utf-8 or gb18030.")]
OnError = Annotated[str, typer.Option("--on-error", help="A broken line: stop, or skip its sentence and say so.")]


def print_json(value: Mapping[str, Any]) -> None:
    """One JSON object on stdout; what is not a number becomes null."""
    sys.stdout.write(json.dumps(_plain(value), ensure_ascii=False, allow_nan=False) + "\n")


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, str | bool | int) or value is None:
        return value
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "tolist"):  # NumPy scalars and arrays, without importing NumPy
        return _plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Iterable):
        return [_plain(item) for item in value]
    raise TypeError(f"no JSON for {type(value).__name__}")


def print_table(rows: Iterable[Sequence[object]], titles: Sequence[str] = ()) -> None:
    """Rows on stdout in aligned columns; columns of numbers to the right."""
    cells = [[_cell(value) for value in row] for row in rows]
    if not cells:
        return
    lines = [list(titles), *cells] if titles else cells
    widths = [max(width(line[k]) for line in lines) for k in range(len(cells[0]))]
    right = [all(_is_number(row[k]) for row in cells) for k in range(len(cells[0]))]
    for line in lines:
        padded = [
            " " * (w - width(text)) + text if to_right else text + " " * (w - width(text))
            for text, w, to_right in zip(line, widths, right, strict=True)
        ]
        sys.stdout.write("  ".join(padded).rstrip() + "\n")


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.2f}"
    return str(value)


def _is_number(text: str) -> bool:
    return text.replace(",", "").replace(".", "", 1).removeprefix("-").removeprefix("+").isdigit() or text in ("-", "")


def width(text: str) -> int:
    """Columns that a text takes on a terminal: wide characters take two."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


class Remarks:
    """Says things on stderr unless told to be quiet; errors are not its business."""

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet

    def __call__(self, text: str) -> None:
        if not self.quiet:
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()

    @property
    def on_terminal(self) -> bool:
        """Whether bars may be drawn."""
        return not self.quiet and sys.stderr.isatty()


class Bar(Protocol):
    """Says how much is done, of how much, with an optional text behind the bar."""

    def __call__(self, done: float, total: float | None = None, text: str = "") -> None: ...


@contextmanager
def bar(remarks: Remarks, title: str) -> Iterator[Bar]:
    """A progress bar on stderr, where that is a terminal; else nothing."""
    if not remarks.on_terminal:
        yield lambda done, total=None, text="": None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TextColumn("{task.fields[text]}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=None, text="")
        yield lambda done, total=None, text="": progress.update(task, completed=done, total=total, text=text)
