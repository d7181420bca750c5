"""What `duilian mapping` writes and shows: rule files, tables, JSON, pictures, a heat map on the terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from duilian.cli.arguments import Reading
from duilian.cli.terminal import print_json, print_table
from duilian.errors import UsageError

if TYPE_CHECKING:
    from duilian.corpus import Corpus, Layer
    from duilian.mapping import Example
    from duilian.mapping import Mapping as Bundles


@dataclass
class Shown:
    """What is to be shown: a mapping, the names of its sides, and where it was counted, if it was."""

    mapping: Bundles
    names: tuple[str, ...]
    parts: Sequence[tuple[Corpus, Sequence[Layer]]] = ()


def finish(
    found: Shown, reading: Reading, output: Path | None, picture: Path | None, weak: float, examples: int, heat: bool,
    as_json: bool,
) -> None:  # fmt: skip
    """What all commands do with a mapping: write it, draw it, show it."""
    from duilian import mapping

    reading.finish()
    if weak:
        found.mapping = mapping.mark_weak(found.mapping, weak)
    places = mapping.examples(found.parts, found.mapping.names(), examples) if examples and found.parts else {}
    if output is not None:
        write_mapping(found, output)
    if picture is not None:
        write_picture(found, picture, places)
    if as_json:
        return print_json(facts(found, places))
    if output is None or heat or examples:
        show(found, places, heat)
    if output is not None:
        reading.remarks(f"{len(found.mapping)} relations in {output}")
    return None


def facts(found: Shown, places: Mapping[tuple[str, ...], Sequence[Example]]) -> dict[str, Any]:
    """A mapping as JSON has it."""
    bundles = found.mapping
    return {
        "sides": {name: list(labels) for name, labels in zip(found.names, bundles.sides, strict=True)},
        "relations": [
            {
                "labels": list(labels),
                "count": int(count),
                "weak": bool(weak),
                "examples": [
                    {"left": one.left, "words": list(one.words), "right": one.right, "sentence": one.sentence}
                    for one in places.get(labels, ())
                ],
            }
            for labels, count, weak in zip(bundles.names(), bundles.counts, bundles.weak, strict=True)
        ],
        "without_relation": dict(zip(found.names, bundles.uncovered(), strict=True)),
    }


def write_mapping(found: Shown, path: Path) -> None:
    """A rule file; or a table by the suffix .tsv or .json."""
    from duilian import mapping

    if path.suffix == ".tsv":
        lines = ["\t".join([*found.names, "count", "weak"])]
        for labels, count, weak in zip(
            found.mapping.names(), found.mapping.counts.tolist(), found.mapping.weak.tolist(), strict=True
        ):
            lines.append("\t".join([*labels, str(count), "weak" if weak else ""]))
        text = "\n".join(lines) + "\n"
    elif path.suffix == ".json":
        text = json.dumps(facts(found, {}), ensure_ascii=False, indent=1) + "\n"
    else:
        text = mapping.to_rules(found.mapping, names=found.names)
    path.write_text(text, encoding="utf-8")


def write_picture(found: Shown, path: Path, places: Mapping[tuple[str, ...], Sequence[Example]]) -> None:
    """A heat map as SVG or in an HTML page."""
    from duilian import mapping

    if path.suffix not in (".svg", ".html"):
        raise UsageError(f"--picture {path}: expected a file that ends in .svg or .html.")
    html = path.suffix == ".html"
    text = mapping.page(found.mapping, found.names, places) if html else mapping.picture(found.mapping, found.names)
    path.write_text(text, encoding="utf-8")


def show(found: Shown, places: Mapping[tuple[str, ...], Sequence[Example]], heat: bool) -> None:
    """Relations with counts, the commonest first; examples below them; a heat map."""
    bundles = found.mapping
    names = bundles.names()
    order = sorted(range(len(bundles)), key=lambda at: (-int(bundles.counts[at]), at))
    if places:
        for at in order:
            weak = " weak" if bundles.weak[at] else ""
            typer.echo(f"{'  '.join(names[at])}  {int(bundles.counts[at]):,}{weak}")
            for one in places.get(names[at], ()):
                words = "/".join(dict.fromkeys(one.words))
                typer.echo(f"    {one.sentence:,}: {one.left}[{words}]{one.right}")
    else:
        rows = [(*names[at], int(bundles.counts[at]), "weak" if bundles.weak[at] else "") for at in order]
        print_table(rows, (*found.names, "seen", ""))
    for name, missing in zip(found.names, bundles.uncovered(), strict=True):
        if missing:
            typer.echo(f"no relation on side {name}: {' '.join(missing)}")
    if heat and len(bundles) and len(found.names) == 2:
        draw_heat(found, sys.stdout.isatty())


def draw_heat(found: Shown, colours: bool) -> None:
    """Rows are labels of the first side; a cell is the share of the row in tenths, darker where it is more."""
    from rich.console import Console
    from rich.text import Text

    from duilian.mapping import shares
    from duilian.mapping.drawing import colour

    rows, columns, share = shares(found.mapping)
    one, other = found.mapping.sides
    table = found.mapping.table
    console = Console(file=sys.stdout, highlight=False, soft_wrap=True)
    left = max(len(one[k]) for k in rows) + 1
    at_once = max(1, (console.width - left) // 2) if colours else len(columns)
    for first in range(0, len(columns), at_once):
        here = columns[first : first + at_once]
        typer.echo(f"\n{found.names[0]} down, {found.names[1]} across: tenths of the row")
        height = max(len(other[k]) for k in here)
        for level in range(height):
            letters = (other[k].rjust(height)[level] for k in here)
            typer.echo((" " * left + "".join(f" {letter}" for letter in letters)).rstrip())
        for r, row in enumerate(rows):
            line = Text(one[row].ljust(left))
            for k, column in enumerate(here, first):
                part = float(share[r, k])
                mark = _tenths(part) if table[row, column] else " "
                style = f"{'white' if part > 0.2 else 'black'} on {colour(part)}" if table[row, column] else ""
                line.append(f" {mark}", style=style)
            line.rstrip()
            console.print(line)


def _tenths(share: float) -> str:
    """A share as one character: a dot below 5 %, X from 95 % on."""
    tenths = round(10 * share)
    return "·" if tenths == 0 else "X" if tenths == 10 else str(tenths)
