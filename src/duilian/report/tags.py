"""Figures about tags and words: F per tag of two runs, words that one gets right more often, confusions."""

from __future__ import annotations

from duilian.report.blocks import Bar, Block, Numbers, Shown, difference, one
from duilian.report.numbers import shown, signed
from duilian.report.plotting import INK, MUTED, Look, axes, panel, plain_ticks, text_width
from duilian.report.reading import Number, Part, Raw
from duilian.studies.results import Figure

ENOUGH = 10
"""A tag with fewer gold words is in the table but not on the drawing; nor is one that does not change."""
FIRST = 12
"""Confusions that are seen at first."""
GAINS, LOSSES = 14, 4
"""How many tags are drawn, at most."""


def per_tag(raw: Raw, figure: Figure) -> Block:
    """F of each tag, of two runs; the largest gains are drawn."""
    block = Block(figure)
    first, second = (raw.scores(name, _of(figure))["per_tag"] for name in _pair(raw, figure, block))
    tags = []
    for tag in second.names():
        before, after, gold = first[tag]["f"].number(), second[tag]["f"].number(), second[tag]["gold"].number()
        if before and after and gold:
            tags.append((tag, before, after, gold))
    if not tags:
        return block
    tags.sort(key=lambda one: (one[1].value - one[2].value, one[0]))
    common = [one for one in tags if one[3].value >= ENOUGH and one[1].value != one[2].value]
    if len(common) > GAINS + LOSSES:
        common = common[:GAINS] + common[-LOSSES:]
    if common:
        _draw_tags(raw, figure, block, common)
    heads = [("tag", False), ("gold words", True), *((name, True) for name in _titles(raw, figure)), ("gain", True)]
    block.numbers = Numbers(
        heads, [[tag, one(gold, 0), one(a), one(b), difference(a, b)] for tag, a, b, gold in tags]
    )  # fmt: skip
    return block


def _draw_tags(raw: Raw, figure: Figure, block: Block, tags: list[tuple[str, Number, Number, Number]]) -> None:
    names = [(Look(k, points=True), title) for k, title in enumerate(_titles(raw, figure))]
    left = min(16 + max(text_width(tag) for tag, *_ in tags), 160)
    with axes(height=60 + 19 * len(tags), left=left) as (plot, drawn):
        for y, (_, before, after, _) in enumerate(tags):
            plot.plot([before.value, after.value], [y, y], "-", color=MUTED, linewidth=1.6)
        values_of = [before.value for _, before, _, _ in tags], [after.value for _, _, after, _ in tags]
        for (look, _), values in zip(names, values_of, strict=True):
            plot.plot(values, range(len(tags)), **look.style, markersize=6)
        plot.set_yticks(range(len(tags)), [tag for tag, *_ in tags])
        plot.set_ylim(len(tags) - 0.4, -0.6)
        plot.set_xlabel("F", color=INK)
        plot.grid(True, axis="x")
        plain_ticks(plot.xaxis)
    (best, *ends), (worst, *worst_ends) = tags[0][:3], tags[-1][:3]
    words = (
        f"F per tag of {names[0][1]} and {names[1][1]}: {len(tags)} tags that change, of {ENOUGH} gold words or more. "
        f"The largest gain is {best}, {ends[0].value:.2f} to {ends[1].value:.2f} "
        f"({signed(ends[1].value - ends[0].value)}); at the other end {worst}, "
        f"{worst_ends[0].value:.2f} to {worst_ends[1].value:.2f}"
    )
    block.panels.append(panel(drawn, words, names=names))


def word_gains(raw: Raw, figure: Figure) -> Block:
    """Words that the second run gets right more often than the first, or less often."""
    block = Block(figure)
    first, second = _pair(raw, figure, block)
    words = list(raw.comparison(first, second, _of(figure))["words"])
    rows: list[tuple[float, Part, Number, Number]] = []
    for entry in words:
        before, after = entry[2].number(), entry[3].number()
        if before and after:
            rows.append((after.value - before.value, entry, before, after))
    if not rows:
        if not (block.failed or block.missing):
            block.notes.append("not run: the comparison of these two runs")
        return block
    rows.sort(key=lambda row: -row[0])
    most = max(abs(gain) for gain, *_ in rows) or 1.0
    heads = [("word", False), ("gold tag", False), ("times", True)]
    heads += [(f"right: {title}", True) for title in _titles(raw, figure)] + [("gain", True), ("", False)]
    block.numbers = Numbers(heads, [])
    block.folded = False
    for gain, entry, before, after in rows:
        block.numbers.rows.append(
            [entry[0].text(), entry[1].text(), one(entry[4].number(), 0), one(before, 0), one(after, 0),
             difference(before, after, 0), Bar(gain / most)]
        )  # fmt: skip
    return block


def confusion(raw: Raw, figure: Figure) -> Block:
    """Which tags are taken for which, the most frequent first."""
    block = Block(figure)
    name = str(figure.refers.get("cell", ""))
    block.run(raw, name)
    scores = raw.scores(name, _of(figure))
    rows = [(entry, number) for entry in scores["confusion"] if (number := entry[2].number())]
    if not rows:
        return block
    most = max(number.value for _, number in rows)
    block.folded = False
    heads = [("gold", False), ("answer", False), ("words", True), ("of the gold tag", True), ("", False)]
    block.numbers = Numbers(heads, [], first=FIRST)
    for entry, number in rows:
        gold = scores["per_tag"][entry[0].text()]["gold"].number()
        part = Shown(f"{shown(100 * number.value / gold.value, 1)} %", (number, gold)) if gold and gold.value else None
        block.numbers.rows.append(
            [entry[0].text(), entry[1].text(), one(number, 0), part, Bar(number.value / most)]
        )  # fmt: skip
    return block


def _pair(raw: Raw, figure: Figure, block: Block) -> tuple[str, str]:
    """The two runs of a comparison; where one is missing, the figure says so."""
    first, second = (str(figure.refers.get(key, "")) for key in ("baseline", "system"))
    for name in (first, second):
        block.run(raw, name)
    return first, second


def _titles(raw: Raw, figure: Figure) -> list[str]:
    return [raw.title(str(figure.refers.get(key, ""))) for key in ("baseline", "system")]


def _of(figure: Figure) -> str:
    return str(figure.refers.get("conversion") or figure.refers.get("side") or "")
