"""Reports: a study's folder of raw results as one HTML file with tables and plots (docs/report.md).

reading.py   raw results with their places     tables.py    means, best values, significance
numbers.py   digits, signs, means              plotting.py  SVG by matplotlib, in the colours of the page
figures.py   kinds of figures: lines.py, tags.py, texts.py make them, blocks.py is what they make
page.py      the page; templates/ and their style sheet
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from duilian.errors import UsageError

__all__ = ["missing", "write_report"]

NEEDED = ("matplotlib", "jinja2")


def missing() -> list[str]:
    """The libraries of ``[report]`` that are not installed."""
    return [name for name in NEEDED if find_spec(name) is None]


def write_report(folder: Path) -> Path:
    """Make FOLDER/report.html from the raw results in a study's folder, and from those alone; returns its path."""
    if absent := missing():
        raise UsageError(
            f"a report needs {' and '.join(absent)}: pip install 'duilian[report]'. The results in {folder} are "
            "complete without it; duilian study report makes it later."
        )
    from duilian.report.page import write

    return write(folder)
