"""Which kinds of figures there are, and what makes each of them."""

from __future__ import annotations

from collections.abc import Callable

from duilian.report import lines, tags, texts
from duilian.report.blocks import Block
from duilian.report.reading import Raw
from duilian.studies.results import Figure

KINDS: dict[str, Callable[[Raw, Figure], Block]] = {
    "learning-curve": lines.learning_curve,
    "curve": lines.curve,
    "rank-probabilities": lines.rank_probabilities,
    "risk-coverage": lines.risk_coverage,
    "calibration": lines.calibration,
    "per-tag": tags.per_tag,
    "word-gains": tags.word_gains,
    "confusion": tags.confusion,
    "mapping": texts.mapping,
    "samples": texts.samples,
}


def draw(raw: Raw) -> list[Block]:
    """Every figure of a study; one that has no results yet says so."""
    blocks = []
    for figure in raw.plan.figures:
        maker = KINDS.get(figure.kind)
        if maker is None:
            block = Block(figure, notes=[f"this version cannot draw a figure of the kind {figure.kind}"])
        else:
            block = maker(raw, figure)
            if block.empty and not (block.notes or block.failed or block.missing):
                block.notes.append("no such results: the runs that this figure names did not measure what it shows")
        blocks.append(block)
    return blocks
