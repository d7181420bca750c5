"""duilian bench: how fast training and tagging are here, beside python-crfsuite in the same run.

Options and printing only; what is measured, and how, is in ``duilian.benchmarks`` (docs/benchmarks.md).
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from duilian.cli.terminal import Debug, Json, Quiet, Remarks, print_json, print_table

if TYPE_CHECKING:
    from duilian.benchmarks.measure import Measurement


def command(
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME", help="Benchmarks to run. [default: all]")] = None,
    listing: Annotated[bool, typer.Option("--list", help="List the benchmarks and run none.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="A few sentences, to see that it runs.")] = False,
    data: Annotated[
        Path | None,
        typer.Option("--data", metavar="FILE", help="Words with tags to measure on. [default: the People's Daily]"),
    ] = None,
    threads: Annotated[int, typer.Option("--threads", help="Threads of tagging; training has one.", min=1)] = 2,
    record: Annotated[
        Path | None, typer.Option("--record", metavar="FILE", help="Append the figures to a CSV file.")
    ] = None,
    keep: Annotated[
        Path | None,
        typer.Option("--keep", metavar="DIR", help="Folder for files and models; those that are there are used again."),
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Measure training and tagging, with python-crfsuite beside where it is installed.

    Machines drift: what counts is the ratio to the other program, whose runs alternate with ours.

    \b
    Examples:
      duilian bench --list
      duilian bench train-crf tag-pos
      duilian bench --record benchmarks/history.csv
    """
    if listing:
        found = list_benchmarks()
        return print_json(found) if as_json else print_table(found["benchmarks"].items())
    remarks = Remarks(quiet)
    found = bench(names or [], remarks, quick=quick, data=data, threads=threads, record=record, keep=keep)
    if as_json:
        return print_json(found)
    print_figures(found)
    return None


def list_benchmarks() -> dict[str, Any]:
    """Name -> what it measures."""
    from duilian.benchmarks.table import BENCHMARKS

    return {"benchmarks": {name: benchmark.about for name, benchmark in BENCHMARKS.items()}}


def bench(
    names: Sequence[str],
    remarks: Remarks,
    quick: bool = False,
    data: Path | None = None,
    threads: int = 2,
    record: Path | None = None,
    keep: Path | None = None,
) -> dict[str, Any]:
    """Run benchmarks; the machine and the figures."""
    from duilian import datasets
    from duilian.benchmarks import crfsuite, machine
    from duilian.benchmarks.data import FULL, QUICK, Bench
    from duilian.benchmarks.table import chosen, run

    chosen(names)
    facts = machine.machine()
    whole = data or datasets.get("peoples-daily", report=remarks)
    if not crfsuite.available():
        remarks("python-crfsuite is not installed: nothing to compare with. Try pip install python-crfsuite.")
    if (facts["load"] or 0) > 0.5:
        remarks(f"other programs are running (load {facts['load']}): trust ratios, not figures")
    measured: list[Measurement] = []
    with tempfile.TemporaryDirectory() as folder:
        if keep is not None:
            keep.mkdir(parents=True, exist_ok=True)
        place = Bench(whole, keep or Path(folder), QUICK if quick else FULL, threads)
        for one in run(names, place, remarks):
            remarks(f"  {describe(one)}")
            measured.append(one)
            if record is not None:
                machine.append(record, [one])
    return {
        "machine": facts,
        "quick": quick,
        "peer": crfsuite.available(),
        "measurements": [one.record() for one in measured],
    }


def describe(one: Measurement) -> str:
    """A figure as it comes in."""
    text = f"{one.name}: {_number(one.best)} {one.unit}"
    return text + (f", {one.ratio:.2f} times {one.peer}" if one.ratio is not None else "")


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.4g}"


def print_figures(found: dict[str, Any]) -> None:
    """One line for each figure, and the machine above them."""
    facts = found["machine"]
    versions = ", ".join(f"{name} {version or 'not installed'}" for name, version in facts["versions"].items())
    typer.echo(f"{facts['processor']}, {facts['cores']} cores, {facts['memory_gb']} GB, load {facts['load']}")
    typer.echo(f"{facts['system']}, python {facts['python']}, {versions}")
    rows = [
        (
            one["benchmark"],
            one["name"],
            _number(one["best"]),
            _number(one["median"]),
            one["unit"],
            _number(one["peer_best"]),
            _number(one["ratio"]),
            "" if found["quick"] else "; ".join(_verdict(target) for target in one["targets"]),
        )
        for one in found["measurements"]
    ]
    print_table(rows, ("benchmark", "what", "best", "median", "unit", "peer", "ratio", "target"))


def _verdict(target: dict[str, Any]) -> str:
    verdict = {True: "reached", False: "MISSED", None: "not measured"}[target["reached"]]
    return f"{target['target']}: {verdict}"
