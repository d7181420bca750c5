"""Plots as SVG by matplotlib, for pages of two themes: colours become CSS variables, text stays text, ids are dropped.

Same numbers, same bytes: no dates, no hashes of time, a fixed layout, coordinates to a hundredth.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH, HEIGHT = 420, 270
"""Of a panel, in CSS pixels: it fits a phone without getting illegible."""
SERIES = 8
"""Colours there are; further series take them again with other dashes and markers."""
# Stand-ins that matplotlib draws with; the style sheet says what they are in each theme.
INK, MUTED, GRID, PAPER = "#000001", "#000002", "#000003", "#000004"
VARIABLES = {INK: "var(--ink)", MUTED: "var(--muted)", GRID: "var(--grid)", PAPER: "var(--paper)"} | {
    f"#0001{k:02x}": f"var(--s{k})" for k in range(SERIES)
}
MARKERS, DASHES, FLAT = "osD^vPX*", ("-", "-.", ":"), "--"
SETTINGS: Any = {
    "svg.hashsalt": "duilian", "svg.fonttype": "none", "text.parse_math": False, "font.family": "DejaVu Sans",
    "font.size": 11, "axes.labelsize": 11, "xtick.labelsize": 10, "ytick.labelsize": 10, "text.color": INK,
    "axes.labelcolor": INK, "axes.edgecolor": MUTED, "axes.linewidth": 0.8, "axes.facecolor": "none",
    "xtick.color": MUTED, "ytick.color": MUTED, "xtick.labelcolor": INK, "ytick.labelcolor": INK, "grid.color": GRID,
    "grid.linewidth": 0.8, "figure.facecolor": "none", "lines.linewidth": 1.8, "lines.markersize": 4.5,
    "path.simplify": False,
}  # fmt: skip
_SVG, _XLINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}"


@dataclass(frozen=True)
class Look:
    """How a series is drawn, on the plot and in the legend. flat: a line of reference; points: markers alone."""

    number: int
    flat: bool = False
    points: bool = False

    @property
    def colour(self) -> str:
        """The stand-in for its colour."""
        return f"#0001{self.number % SERIES:02x}"

    @property
    def marker(self) -> str:
        """Its marker, as matplotlib calls it."""
        return "" if self.flat else MARKERS[self.number % len(MARKERS)]

    @property
    def dash(self) -> str:
        """Its line, as matplotlib calls it: another one when the colours begin again."""
        return "" if self.points else FLAT if self.flat else DASHES[(self.number // SERIES) % len(DASHES)]

    @property
    def style(self) -> dict[str, Any]:
        """All of it, for matplotlib."""
        return {"color": self.colour, "marker": self.marker, "linestyle": self.dash}


@dataclass
class Panel:
    """One drawing. words: what is to be seen in it, with numbers, for those who do not see it."""

    svg: str
    words: str
    title: str = ""
    legend: list[tuple[str, str]] = field(default_factory=list)
    """(drawing of the line, what it is called)"""


@contextmanager
def axes(
    width: float = WIDTH, height: float = HEIGHT, left: float = 52, bottom: float = 42, right: float = 12,
    top: float = 10,
) -> Iterator[tuple[Axes, list[str]]]:  # fmt: skip
    """Axes to draw on, and a list that holds the SVG when the block has been left. Margins are in pixels."""
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    drawn: list[str] = []
    with matplotlib.rc_context(SETTINGS), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")  # the browser's fonts have it
        figure = Figure(figsize=(width / 72, height / 72), dpi=72)
        FigureCanvasSVG(figure)
        place = (left / width, bottom / height, (width - left - right) / width, (height - top - bottom) / height)
        plot = figure.add_axes(place)
        plot.spines[["top", "right"]].set_visible(False)
        plot.grid(True, axis="y")
        plot.set_axisbelow(True)
        plot.tick_params(length=3)
        yield plot, drawn
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    drawn.append(out.getvalue())


def panel(drawn: Sequence[str], words: str, title: str = "", names: Sequence[tuple[Look, str]] = ()) -> Panel:
    """A drawing that was made with ``axes``, ready for a page."""
    return Panel(themed(drawn[0], words), words, title, [(swatch(look), name) for look, name in names])


def swatch(look: Look) -> str:
    """A line with its marker, for a legend in HTML."""
    import matplotlib

    with matplotlib.rc_context(SETTINGS), axes(34, 14, 0, 0, 0, 0) as (plot, drawn):
        plot.set_axis_off()
        plot.set(xlim=(0, 1), ylim=(0, 1))
        plot.plot([0.05, 0.5, 0.95], [0.5] * 3, **look.style, markevery=[1])
    return themed(drawn[0], "")


def themed(svg: str, words: str) -> str:
    """A drawing of matplotlib's as an element of an HTML page; ``words`` is its text alternative, "" for decoration."""
    root = ElementTree.fromstring(svg)
    width, height = (f"{float(value):g}" for value in root.attrib["viewBox"].split()[2:])
    role = f'role="img" aria-label="{escape(words)}"' if words else 'aria-hidden="true"'
    return (
        f'<svg class="plot" viewBox="0 0 {width} {height}" width="{width}" height="{height}" {role}>'
        f"{''.join(_inner(root, _shapes(root)))}</svg>"
    )


def _shapes(root: ElementTree.Element) -> dict[str, ElementTree.Element]:
    """Everything with an id: what ``use`` and clipping refer to."""
    return {f"#{element.attrib['id']}": element for element in root.iter() if "id" in element.attrib}


def _inner(parent: ElementTree.Element, shapes: dict[str, ElementTree.Element]) -> Iterator[str]:
    """Children as HTML. What is used by reference is written out where it is used: no ids, none twice on a page.

    Clipping is left out: limits hold all that is drawn.
    """
    for element in parent:
        tag = element.tag.removeprefix(_SVG)
        if tag in ("defs", "metadata", "style", "clipPath"):
            continue
        if tag == "g":
            yield from _inner(element, shapes)
        elif tag == "use":
            shape = shapes[element.attrib[f"{_XLINK}href"]]
            place = f"translate({_short(element.get('x', '0'))} {_short(element.get('y', '0'))})"
            yield f'<path d="{_path(shape)}" transform="{place}"{_style(element, shape)}/>'
        elif tag == "path":
            style = _style(element)
            if style:
                yield f'<path d="{_path(element)}"{style}/>'
        elif tag == "text":
            turn = element.get("transform", "")
            kept = f' transform="{_short(turn)}"' if turn and not re.match(r"rotate\(-?0[ ,]", turn) else ""
            at = "".join(f' {key}="{_short(element.attrib[key])}"' for key in ("x", "y") if key in element.attrib)
            yield f"<text{at}{kept}{_style(element)}>{escape(element.text or '')}</text>"
        else:
            raise ValueError(f"matplotlib drew a {tag!r}, which no plot of a report has")


def _path(element: ElementTree.Element) -> str:
    return _short(" ".join(element.attrib["d"].split()))


def _style(*elements: ElementTree.Element) -> str:
    """The style, with colours of the theme and without fonts; nothing for what is not to be seen."""
    kept = {}
    for element in elements:
        for entry in element.get("style", "").split(";"):
            key, _, value = entry.strip().partition(": ")
            if value and key not in ("font-family", "stroke-linejoin", "stroke-linecap", "stroke-miterlimit"):
                kept[key] = VARIABLES.get(value, value)
    if kept.get("fill") == "none" and "stroke" not in kept:
        return ""
    return f' style="{";".join(f"{key}:{value}" for key, value in kept.items())}"' if kept else ""


def _short(text: str) -> str:
    """Numbers to a hundredth."""
    return re.sub(r"-?\d+\.\d+", lambda found: f"{round(float(found[0]), 2):g}", text)


def plain_ticks(axis: Any) -> None:
    """Tick labels as plain decimals: no powers, no offsets."""
    from matplotlib.ticker import FuncFormatter, NullFormatter, ScalarFormatter

    if axis.get_scale() == "log":
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.12f}".rstrip("0").rstrip(".")))
        axis.set_minor_formatter(NullFormatter())
        return
    plain = ScalarFormatter(useOffset=False, useMathText=False)
    plain.set_scientific(False)
    axis.set_major_formatter(plain)


def text_width(text: str, size: float = 10) -> float:
    """About how wide a text is, in pixels: wide characters are as wide as the type is high."""
    from unicodedata import east_asian_width

    return sum(size if east_asian_width(letter) in "WF" else 0.62 * size for letter in text)
