"""A mapping of two sides as a picture: a heat map as SVG, and a page with it and the counts. Needs no library.

The darkness of a cell is the share of the row's label that goes with the column's: p(second | first). Colours are CSS
variables, with those of light and dark pages beside them in ``STYLE``; the reports of studies bring their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Mapping as MappingOf
from html import escape
from unicodedata import east_asian_width

import numpy as np
from numpy.typing import NDArray

from duilian.errors import UsageError
from duilian.mapping.counting import Example
from duilian.mapping.table import Mapping

CELL = 18
STYLE = (
    ".heat{font:12px sans-serif;color:var(--ink,#1a1a1a)}.heat text{fill:currentColor}"
    ".heat .field{fill:var(--field,#f1f1f1)}"
    ".heat .line{stroke:var(--paper,#fff);stroke-width:2}.heat .cell{fill:var(--heat,#08306b)}"
    ".heat .weak{stroke:var(--weak,#c05020);stroke-width:1.5}.heat a:hover .cell{stroke:currentColor;stroke-width:2}"
)
"""How a heat map is painted. A weak relation has a frame."""
DARK = (
    "@media screen and (prefers-color-scheme:dark)"
    "{:root{--ink:#e8e6e1;--field:#26282b;--paper:#16181a;--heat:#8ec5ff;--weak:#ff9d66}}"
)
"""The variables on a dark page."""


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


def picture(
    mapping: Mapping,
    names: Sequence[str] = ("", ""),
    shown: MappingOf[tuple[str, ...], Sequence[Example]] | None = None,
    link: Callable[[tuple[str, ...]], str] | None = None,
    style: str = STYLE + DARK,
) -> str:
    """An SVG drawing: rows are labels of the first side, columns of the second; each cell says its count.

    shown: examples that a cell says too;  link: where a cell leads to;  style: "" where the page has ``STYLE``
    """
    rows, columns, share = shares(mapping)
    one, other = mapping.sides
    left = 16 + round(8 * max((_width(one[k]) for k in rows), default=0))
    top = 34 + round(8 * max((_width(other[k]) for k in columns), default=0))
    right, bottom = left + CELL * len(columns), top + CELL * len(rows)
    count, weak = np.zeros(mapping.sizes, np.int64), np.zeros(mapping.sizes, np.bool_)
    where = tuple(mapping.bundles.T)
    count[where], weak[where] = mapping.counts, mapping.weak
    table = mapping.table
    about = escape(describe(mapping, names))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="heat" role="img" aria-label="{about}" width="{right + 10}" '
        f'height="{bottom + 10}" viewBox="0 0 {right + 10} {bottom + 10}">',
        *(
            [f"<style>{style}</style>", '<rect class="page" width="100%" height="100%" fill="var(--paper,#fff)"/>']
            if style
            else []
        ),
        f'<rect class="field" x="{left}" y="{top}" width="{right - left}" height="{bottom - top}"/>',
        f'<text x="4" y="14">{escape(names[0])} \u2193  {escape(names[1])} \u2192</text>',
    ]
    for k, column in enumerate(columns):
        x, y = left + CELL * k + 13, top - 6
        parts.append(f'<text x="{x}" y="{y}" transform="rotate(-90 {x} {y})">{escape(other[column])}</text>')
        parts.append(f'<path class="line" d="M{left + CELL * (k + 1) - 1} {top}V{bottom}"/>')
    for r, row in enumerate(rows):
        y = top + CELL * r
        parts.append(f'<text x="{left - 6}" y="{y + 13}" text-anchor="end">{escape(one[row])}</text>')
        parts.append(f'<path class="line" d="M{left} {y + CELL - 1}H{right}"/>')
        for k, column in enumerate(columns):
            if not table[row, column]:
                continue
            bundle = (one[row], other[column])
            said = [f"{one[row]} {other[column]}: {count[row, column]:,} ({100 * share[r, k]:.1f} %)"]
            said += [f"{a.left}[{' / '.join(dict.fromkeys(a.words))}]{a.right}" for a in (shown or {}).get(bundle, ())]
            drawn = _cell(left + CELL * k, y, share[r, k], bool(weak[row, column]), "\n".join(said))
            # The table says the same to who cannot point: the link is no stop on the way through the page.
            parts.append(f'<a href="{escape(link(bundle))}" tabindex="-1">{drawn}</a>' if link else drawn)
    return "\n".join([*parts, "</svg>"]) + "\n"


def describe(mapping: Mapping, names: Sequence[str] = ("", ""), most: int = 5) -> str:
    """The picture in words: how many relations, and the most frequent ones with their share of the row."""
    rows, columns, share = shares(mapping)
    place = {row: k for k, row in enumerate(rows)}, {column: k for k, column in enumerate(columns)}
    order = sorted(range(len(mapping)), key=lambda at: (-int(mapping.counts[at]), at))[:most]
    said = []
    for at in order:
        a, b = (int(label) for label in mapping.bundles[at])
        part = 100 * share[place[0][a], place[1][b]]
        one, other = mapping.sides[0][a], mapping.sides[1][b]
        said.append(f"{one} goes with {other} ({int(mapping.counts[at]):,}, {part:.1f} % of the row)")
    few = f". The most frequent: {'; '.join(said)}" if said and mapping.counts.any() else ""
    sizes = f"{mapping.sizes[0]} labels of {names[0]} in rows, {mapping.sizes[1]} of {names[1]} in columns"
    return f"Heat map of {len(mapping)} relations: {sizes}{few}"


def page(
    mapping: Mapping,
    names: Sequence[str] = ("", ""),
    shown: MappingOf[tuple[str, ...], Sequence[Example]] | None = None,
) -> str:
    """An HTML page: the picture, and every relation with its count and, where there are, examples in context."""
    title = f"{names[0]} and {names[1]}: {len(mapping)} relations"
    order = sorted(range(len(mapping)), key=lambda at: (-int(mapping.counts[at]), at))
    bundles = mapping.names()
    place = {bundles[at]: n for n, at in enumerate(order)}
    lines = [
        "<!doctype html>", '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">', f"<title>{escape(title)}</title>",
        f"<style>{STYLE}{DARK}",
        "body{font-family:sans-serif;color:var(--ink,#1a1a1a);background:var(--paper,#fff)}"
        "td,th{padding:2px 10px;text-align:left;vertical-align:top}td.n{text-align:right}"
        "mark{background:var(--mark,#ffe9a8);color:#1a1a1a}.scroll{overflow-x:auto}"
        "tr:target{outline:2px solid}</style>",
        "</head><body>", f"<h1>{escape(title)}</h1>",
        f'<div class="scroll">{picture(mapping, names, shown, lambda bundle: f"#r{place[bundle]}", "")}</div>',
        '<div class="scroll"><table><tr>'
        + "".join(f"<th>{escape(name)}</th>" for name in (*names, "seen", "", "examples")) + "</tr>",
    ]  # fmt: skip
    for n, at in enumerate(order):
        bundle = bundles[at]
        cells = "".join(f"<td>{escape(label)}</td>" for label in bundle)
        places = "<br>".join(_in_context(one) for one in (shown or {}).get(bundle, ()))
        weak = "weak" if mapping.weak[at] else ""
        seen = f'<td class="n">{int(mapping.counts[at])}</td>'
        lines.append(f'<tr id="r{n}">{cells}{seen}<td>{weak}</td><td>{places}</td></tr>')
    return "\n".join([*lines, "</table></div></body></html>"]) + "\n"


def colour(share: float) -> str:
    """From pale to dark blue; small shares are still to be seen."""
    depth = float(np.sqrt(min(max(share, 0.0), 1.0)))
    red, green, blue = (round(a + (b - a) * depth) for a, b in ((222, 8), (235, 48), (247, 107)))
    return f"#{red:02x}{green:02x}{blue:02x}"


def _cell(x: int, y: int, share: float, weak: bool, said: str) -> str:
    depth = 0.08 + 0.92 * float(np.sqrt(min(max(share, 0.0), 1.0)))  # small shares are still to be seen
    return (
        f'<rect class="cell{" weak" if weak else ""}" x="{x}" y="{y}" width="{CELL - 2}" height="{CELL - 2}" '
        f'fill-opacity="{depth:.3f}"><title>{escape(said)}</title></rect>'
    )


def _width(text: str) -> float:
    """Letters, wide ones counted twice."""
    return sum(1.6 if east_asian_width(letter) in "WF" else 1 for letter in text)


def _in_context(one: Example) -> str:
    words = " / ".join(dict.fromkeys(one.words))
    return f"{escape(one.left)}<mark>{escape(words)}</mark>{escape(one.right)}"
