"""Figures that are lines: learning curves, curves over a setting, ranks, risk and coverage, calibration."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from duilian.report.blocks import Block, Numbers, Value, one
from duilian.report.plotting import INK, MUTED, Look, Panel, axes, panel, plain_ticks
from duilian.report.reading import Number, Raw
from duilian.studies.results import Figure

FEW = 8
"""As many values on an axis are each given a tick."""
MOST_MARKERS = 20
"""A line of more points has a marker on some of them."""
WIDE = 40.0
"""From this ratio of its largest to its smallest value on, the axis of a setting is logarithmic."""
SHARES = (10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 100)
"""What is kept, in the table below a risk-coverage curve; the nearest points of the curve stand there."""
RANKS = 16
"""Candidates that are shown; what comes behind them is hardly ever kept."""


@dataclass
class Line:
    """A series. points: (x, number), by x; flat: a horizontal line without x."""

    name: str
    points: list[tuple[float, Number]] = field(default_factory=list)
    flat: Number | None = None


def learning_curve(raw: Raw, figure: Figure) -> Block:
    """A value of each epoch: what dev says, mostly."""
    block, path = Block(figure), str(figure.refers.get("path", ""))
    lines = []
    for entry in figure.refers.get("series", ()):
        cell = block.run(raw, str(entry.get("cell", "")))
        points = [
            (float(epoch.value), number)
            for step in cell["history"]
            if (epoch := step["epoch"].number()) and (number := step.at(path).number())
        ]
        lines.append(Line(str(entry.get("name", "")), points))
    return _drawn(block, lines, figure, "epoch", "score on dev", _course)


def curve(raw: Raw, figure: Figure) -> Block:
    """A value of several runs over a setting of theirs."""
    block = Block(figure)
    entries = [(str(entry.get("name", "")), entry.get("points", ())) for entry in figure.refers.get("series", ())]
    given = [point.get("x") for _, points in entries for point in points]
    named = not all(isinstance(x, int | float) for x in given)
    places = list(dict.fromkeys(str(x) for x in given)) if named else []
    lines = []
    for name, points in entries:
        line = Line(name)
        for point in points:
            number = block.run(raw, str(point.get("cell", ""))).at(str(point.get("path", ""))).number()
            if number is not None:
                line.points.append((float(places.index(str(point["x"])) if named else point["x"]), number))
        line.points.sort(key=lambda at: at[0])
        lines.append(line)
    for entry in figure.refers.get("lines", ()):
        flat = block.run(raw, str(entry.get("cell", ""))).at(str(entry.get("path", ""))).number()
        lines.append(Line(str(entry.get("name", "")), flat=flat))
    return _drawn(block, lines, figure, "", "", _course, places, log_x=True)


def rank_probabilities(raw: Raw, figure: Figure) -> Block:
    """The mean probability of the k-th best candidate, and the entropy (li2016, Fig. 3)."""
    block = Block(figure)
    lines, rows = [], []
    for entry in figure.refers.get("series", ()):
        ranks = block.run(raw, str(entry.get("cell", "")))["ranks"][str(entry.get("side", ""))]
        numbers = [part.number() for part in list(ranks["kth_best"])[:RANKS]]
        line = Line(
            str(entry.get("name", "")),
            [(k + 1.0, number) for k, number in enumerate(numbers) if number is not None and number.value > 0],
        )
        lines.append(line)
        if line.points:
            rows.append((line, ranks["entropy"].number(), ranks["mean_candidates"].number()))
    if not rows:
        return block
    words = [
        f"{line.name}: {', '.join(f'{number.value:.3g}' for _, number in line.points[:4])} from the best downwards"
        + (f", entropy {entropy.value:.3f} nats" if entropy else "")
        + (f", {kept.value:.2f} candidates kept" if kept else "")
        for line, entropy, kept in rows
    ]
    block.panels.append(_plot(lines, "k-th best candidate", "mean probability", words, log_y=True))
    most = max(len(line.points) for line, _, _ in rows)
    heads = [("", False), ("entropy, nats", True), ("candidates kept", True)]
    block.numbers = Numbers(heads + [(f"{k + 1}", True) for k in range(most)], [])
    for line, entropy, kept in rows:
        probabilities: list[Value] = [one(number, 4) for _, number in line.points]
        filler: list[Value] = [None] * (most - len(probabilities))
        block.numbers.rows.append([line.name, one(entropy, 4), one(kept), *probabilities, *filler])
    return block


def risk_coverage(raw: Raw, figure: Figure) -> Block:
    """How many errors are among what is kept when only the surest words are kept."""
    block, of = Block(figure), _of(figure)
    lines = []
    for entry in figure.refers.get("series", ()):
        block.run(raw, str(entry.get("cell", "")))
        risk = raw.scores(str(entry.get("cell", "")), str(entry.get("side") or of))["risk"]
        points = [(100 * float(at[0].content), number) for at in risk if at[0].number() and (number := at[1].number())]
        lines.append(Line(str(entry.get("name", "")), sorted(points, key=lambda at: at[0])))

    def words(line: Line) -> str:
        some = [min(line.points, key=lambda at: abs(at[0] - share)) for share in (50, 80, 100)]
        said = ", ".join(
            f"{number.value:.2f} % errors among {x:.0f} % of the words" for x, number in dict(some).items()
        )
        return f"{line.name}: {said}"

    _drawn(block, lines, figure, "surest words that are kept, %", "errors among them, %", words)
    there = [line for line in lines if line.points]
    if there:
        block.numbers = Numbers([("kept, %", True)] + [(line.name, True) for line in there], [])
        for share in SHARES:
            near = [min(line.points, key=lambda at: abs(at[0] - share)) for line in there]
            block.numbers.rows.append([f"{share}", *(one(number) for _, number in near)])
    return block


def calibration(raw: Raw, figure: Figure) -> Block:
    """Reliability: how often a word is right, over how sure the tagger was."""
    block, name = Block(figure), str(figure.refers.get("cell", ""))
    block.run(raw, name)
    found = raw.scores(name, _of(figure))["calibration"]
    rows = []
    for part in found["bins"]:
        row = [number for k in range(5) if (number := part[k].number())]
        if len(row) == 5 and row[4].value > 0:
            rows.append(row)
    if not rows:
        return block
    sure, right, sizes = ([row[k].value for row in rows] for k in (2, 3, 4))
    total = sum(sizes)
    with axes() as (plot, drawn):
        look = Look(0)
        plot.plot([0, 1], [0, 1], ":", color=MUTED, linewidth=1.2)
        plot.plot(sure, right, "-", color=look.colour, linewidth=1.2)
        plot.scatter(sure, right, [12 + 150 * math.sqrt(n / total) for n in sizes], color=look.colour, alpha=0.75)
        plot.set(xlim=(-0.03, 1.04), ylim=(-0.03, 1.04), xlabel="confidence", ylabel="share that is right")
        plain_ticks(plot.xaxis)
        plain_ticks(plot.yaxis)
    ece = found["ece"].number()
    worst = max(zip(sure, right, sizes, strict=True), key=lambda bin: bin[2] * abs(bin[0] - bin[1]))
    words = (
        f"{figure.title}: share of right words over confidence, in {len(rows)} bins"
        + (f"; expected calibration error {ece.value:.4f}" if ece else "")
        + f". The bin that errs most has {worst[2]:,.0f} words with confidence {worst[0]:.2f} of which {worst[1]:.2f} "
        "are right. The dotted line is perfect calibration; larger dots are more words"
    )
    block.panels.append(panel(drawn, words))
    if ece:
        block.more["facts"] = [("Expected calibration error", one(ece, 4))]
    heads = [("from", True), ("to", True), ("mean confidence", True), ("share right", True), ("words", True)]
    digits = (3, 3, 4, 4, 0)
    block.numbers = Numbers(heads, [[one(n, d) for n, d in zip(row, digits, strict=True)] for row in rows])
    return block


def _of(figure: Figure) -> str:
    return str(figure.refers.get("conversion") or figure.refers.get("side") or "")


def _course(line: Line) -> str:
    """What a line says, in words."""
    if line.flat is not None:
        return f"{line.name}: {line.flat.value:.2f} throughout"
    (x, first), (last_x, last) = line.points[0], line.points[-1]
    if len(line.points) == 1:
        return f"{line.name}: {first.value:.2f} at {x:g}"
    best_x, best = max(line.points, key=lambda at: at[1].value)
    return (
        f"{line.name}: from {first.value:.2f} at {x:g} to {last.value:.2f} at {last_x:g}, "
        f"highest {best.value:.2f} at {best_x:g}"
    )


def _drawn(
    block: Block, lines: Sequence[Line], figure: Figure, x_title: str, y_title: str, words: Callable[[Line], str],
    places: Sequence[str] = (), log_x: bool = False,
) -> Block:  # fmt: skip
    """One panel with all lines, and a table of x and their values."""
    there = [line for line in lines if line.points or line.flat is not None]
    if not there:
        return block
    x_title = str(figure.refers.get("x_title") or x_title)
    y_title = str(figure.refers.get("y_title") or y_title)
    said = [words(line) for line in there]
    if places:
        said.insert(0, "positions " + ", ".join(f"{k} is {place}" for k, place in enumerate(places)))
    block.panels.append(_plot(there, x_title, y_title, said, places, log_x))
    known = sorted({x for line in there for x, _ in line.points})
    block.numbers = Numbers([(x_title or "x", not places)] + [(line.name, True) for line in there], [])
    for x in known:
        label = places[int(x)] if places else f"{x:,.10g}"
        block.numbers.rows.append([label, *(one(line.flat or dict(line.points).get(x)) for line in there)])
    if not known:
        block.numbers.rows.append(["", *(one(line.flat) for line in there)])
    return block


def _plot(
    lines: Sequence[Line], x_title: str, y_title: str, words: Sequence[str], places: Sequence[str] = (),
    log_x: bool = False, log_y: bool = False,
) -> Panel:  # fmt: skip
    known = sorted({x for line in lines for x, _ in line.points})
    names = [(Look(k, flat=line.flat is not None), line.name) for k, line in enumerate(lines)]
    with axes(left=62 if log_y else 52) as (plot, drawn):
        for (look, _), line in zip(names, lines, strict=True):
            if line.flat is not None:
                ends = (known[0], known[-1]) if known else (0.0, 1.0)
                plot.plot(ends, [line.flat.value] * 2, **look.style)
            else:
                xs, ys = [x for x, _ in line.points], [number.value for _, number in line.points]
                plot.plot(xs, ys, **look.style, markevery=max(1, len(xs) // MOST_MARKERS))
        if log_y:
            plot.set_yscale("log")
        if places:
            plot.set_xticks(range(len(places)), places)
        elif log_x and known and known[0] > 0 and known[-1] / known[0] >= WIDE and len(known) > 2:
            plot.set_xscale("log")
        if not places:
            plain_ticks(plot.xaxis)
            if len(known) <= FEW:
                plot.set_xticks(known, [f"{x:.10g}" for x in known])
        plain_ticks(plot.yaxis)
        plot.set_xlabel(x_title, color=INK)
        plot.set_ylabel(y_title, color=INK)
        plot.margins(x=0.04, y=0.08)
    title = f"{y_title} over {x_title}" if x_title and y_title else "Lines"
    return panel(drawn, f"{title}. {'; '.join(words)}", names=names)
