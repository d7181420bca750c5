"""A mapping of two sides as a picture: a heat map as SVG, and a page with it and the counts. Needs no library.

The darkness of a cell is the share of the row's label that goes with the column's: p(second | first).
"""

from __future__ import annotations

from collections.abc import Mapping as MappingOf
from collections.abc import Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

from duilian.errors import UsageError
from duilian.mapping.counting import Example
from duilian.mapping.table import Mapping

CELL = 18
WEAK = "#c05020"
"""Colour of the frame around a weak relation."""


def shares(mapping: Mapping) -> tuple[list[int], list[int], NDArray[np.float64]]:
    """Rows and columns in the order in which they are drawn, and (rows, columns) the share of each in its row.

    Rows go from the commonest label down; a column stands below the row that it mostly goes with. Without counts every
    relation of a row has the same share.
    """
    if len(mapping.sides) != 2:
        raise UsageError(
            f"a heat map has two sides, and this mapping has {len(mapping.sides)}: choose two with --only."
        )
    counts = np.zeros(mapping.sizes)
    counts[tuple(mapping.bundles.T)] = mapping.counts if mapping.counts.any() else 1
    total = counts.sum(axis=1)
    rows = np.lexsort((np.arange(len(total)), -total)).tolist()
    place = np.empty(len(rows), np.int64)
    place[rows] = np.arange(len(rows))
    below = place[counts.argmax(axis=0)] if len(rows) else np.zeros(counts.shape[1])
    below = np.where(counts.sum(axis=0) > 0, below, len(rows))
    columns = np.lexsort((np.arange(counts.shape[1]), -counts.sum(axis=0), below)).tolist()
    share = counts / np.maximum(total, 1)[:, None]
    return rows, columns, share[np.ix_(rows, columns)]


def picture(mapping: Mapping, names: Sequence[str] = ("", "")) -> str:
    """An SVG drawing: rows are labels of the first side, columns of the second; each cell says its count."""
    rows, columns, share = shares(mapping)
    one, other = mapping.sides
    left = 16 + 8 * max((len(one[k]) for k in rows), default=0)
    top = 34 + 8 * max((len(other[k]) for k in columns), default=0)
    width, height = left + CELL * len(columns) + 10, top + CELL * len(rows) + 10
    count, weak = np.zeros(mapping.sizes, np.int64), np.zeros(mapping.sizes, np.bool_)
    where = tuple(mapping.bundles.T)
    count[where], weak[where] = mapping.counts, mapping.weak
    table = mapping.table
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        f'<text x="4" y="14">{escape(names[0])} \u2193  {escape(names[1])} \u2192</text>',
    ]
    for k, column in enumerate(columns):
        x, y = left + CELL * k + 13, top - 6
        parts.append(f'<text x="{x}" y="{y}" transform="rotate(-90 {x} {y})">{escape(other[column])}</text>')
    for r, row in enumerate(rows):
        y = top + CELL * r
        parts.append(f'<text x="{left - 6}" y="{y + 13}" text-anchor="end">{escape(one[row])}</text>')
        for k, column in enumerate(columns):
            if not table[row, column]:
                parts.append(_cell(left + CELL * k, y, "#f4f4f4", "", ""))
                continue
            frame = f' stroke="{WEAK}"' if weak[row, column] else ""
            said = f"{one[row]} {other[column]}: {count[row, column]} ({100 * share[r, k]:.1f} %)"
            parts.append(_cell(left + CELL * k, y, colour(share[r, k]), frame, said))
    return "\n".join([*parts, "</svg>"]) + "\n"


def page(
    mapping: Mapping,
    names: Sequence[str] = ("", ""),
    shown: MappingOf[tuple[str, ...], Sequence[Example]] | None = None,
) -> str:
    """An HTML page: the picture, and every relation with its count and, where there are, examples in context."""
    title = f"{names[0]} and {names[1]}: {len(mapping)} relations"
    lines = [
        "<!doctype html>", '<html><head><meta charset="utf-8">', f"<title>{escape(title)}</title>",
        "<style>body{font-family:sans-serif}td,th{padding:2px 10px;text-align:left;vertical-align:top}"
        "td.n{text-align:right}mark{background:#ffe9a8}</style>",
        "</head><body>", f"<h1>{escape(title)}</h1>", picture(mapping, names),
        "<table><tr>" + "".join(f"<th>{escape(name)}</th>" for name in (*names, "seen", "", "examples")) + "</tr>",
    ]  # fmt: skip
    order = sorted(range(len(mapping)), key=lambda at: (-int(mapping.counts[at]), at))
    bundles = mapping.names()
    for at in order:
        bundle = bundles[at]
        cells = "".join(f"<td>{escape(label)}</td>" for label in bundle)
        places = "<br>".join(_in_context(one) for one in (shown or {}).get(bundle, ()))
        weak = "weak" if mapping.weak[at] else ""
        lines.append(f'<tr>{cells}<td class="n">{int(mapping.counts[at])}</td><td>{weak}</td><td>{places}</td></tr>')
    return "\n".join([*lines, "</table></body></html>"]) + "\n"


def colour(share: float) -> str:
    """From pale to dark blue; small shares are still to be seen."""
    depth = float(np.sqrt(min(max(share, 0.0), 1.0)))
    red, green, blue = (round(a + (b - a) * depth) for a, b in ((222, 8), (235, 48), (247, 107)))
    return f"#{red:02x}{green:02x}{blue:02x}"


def _cell(x: int, y: int, fill: str, frame: str, said: str) -> str:
    title = f"<title>{escape(said)}</title>" if said else ""
    return f'<rect x="{x}" y="{y}" width="{CELL - 2}" height="{CELL - 2}" fill="{fill}"{frame}>{title}</rect>'


def _in_context(one: Example) -> str:
    words = " / ".join(dict.fromkeys(one.words))
    return f"{escape(one.left)}<mark>{escape(words)}</mark>{escape(one.right)}"
