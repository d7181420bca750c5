"""duilian bench: how fast training and tagging are here.

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
    """Measure training and tagging.

    Machines drift: for ratios to other programs, whose runs alternate with ours, see benchmarks/peers.py.

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
    from duilian.benchmarks import machine
    from duilian.benchmarks.data import FULL, QUICK, Bench
    from duilian.benchmarks.table import chosen, run

    chosen(names)
    facts = machine.machine()
    whole = data or datasets.get("peoples-daily", report=remarks)
    if (facts["load"] or 0) > 0.5:
        remarks(f"other programs are running (load {facts['load']}): figures will be low")
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
        "measurements": [one.record() for one in measured],
    }


def describe(one: Measurement) -> str:
    """A figure as it comes in."""
    text = f"{one.name}: {number(one.best)} {one.unit}"
    return text + (f", {one.ratio:.3g} times {one.peer}" if one.ratio is not None else "")


def number(value: float | None) -> str:
    """Four digits, or all before the point."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.4g}"


def print_machine(facts: dict[str, Any]) -> None:
    """What it was measured on, in two lines."""
    versions = ", ".join(f"{name} {version or 'not installed'}" for name, version in facts["versions"].items())
    typer.echo(f"{facts['processor']}, {facts['cores']} cores, {facts['memory_gb']} GB, load {facts['load']}")
    typer.echo(f"{facts['system']}, python {facts['python']}, {versions}")


def print_figures(found: dict[str, Any]) -> None:
    """One line for each figure, and the machine above them."""
    print_machine(found["machine"])
    rows = [
        (
            one["benchmark"],
            one["name"],
            number(one["best"]),
            number(one["median"]),
            one["unit"],
            "" if found["quick"] else "; ".join(verdict(target) for target in one["targets"]),
        )
        for one in found["measurements"]
    ]
    print_table(rows, ("benchmark", "what", "best", "median", "unit", "target"))


def verdict(target: dict[str, Any]) -> str:
    """A target, and whether it was reached."""
    said = {True: "reached", False: "MISSED", None: "not measured"}[target["reached"]]
    return f"{target['target']}: {said}"
