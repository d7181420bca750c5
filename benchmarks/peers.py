"""Other programs beside ours, in one run on the same data: python-crfsuite (l2sgd, ap) and ltp-extension.

    python benchmarks/peers.py                                             all tasks: pos, seg, segpos, coupled
    python benchmarks/peers.py pos --steps epochs,trainings --json
    python benchmarks/peers.py --record benchmarks/history.csv

Runs of all take turns, because machines drift: ratios are what counts. docs/benchmarks.md says how it is measured.
Scores are on the dev part of the People's Daily, or of ``--data``. A peer that is not installed is named, and left out.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import comparisons
from contest import CONTESTS, TASKS, Arena

from duilian import datasets
from duilian.benchmarks import machine
from duilian.benchmarks.data import FULL, QUICK, Bench
from duilian.benchmarks.measure import Measurement
from duilian.cli.bench import describe, number, print_machine, verdict
from duilian.cli.terminal import Remarks, print_json, print_table
from duilian.errors import DuilianError

PEERS = {peer.package: peer for _, peers in CONTESTS for peer in peers}
PROGRAMS = tuple(peer.name for _, peers in CONTESTS for peer in peers)
NAMES = (*TASKS, "coupled")


def missing() -> list[str]:
    """Packages that are not installed."""
    return [package for package, peer in PEERS.items() if not peer.installed]


def run(
    names: Sequence[str], steps: Sequence[str], bench: Bench, say: Callable[[str], None], keep: Callable[..., None],
    beside: Sequence[str] = (),
) -> dict[str, Any]:  # fmt: skip
    """Compare on these tasks; the tables, and the measurements behind them. ``keep`` gets each as it comes in."""
    tables: dict[str, comparisons.Figures] = {}
    measured: list[Measurement] = []

    def take(found: Iterable[Measurement]) -> None:
        for one in found:
            say(f"  {describe(one)}")
            measured.append(one)
            keep(one)

    for name in names:
        if name == "coupled":
            take(comparisons.compare_coupled(Arena(bench, TASKS["pos"]), say))
        else:
            tables[name], found = comparisons.compare(Arena(bench, TASKS[name]), steps, bench.threads, say, beside)
            take(found)
    return {"tables": tables, "measurements": [one.record() for one in measured]}


def print_found(found: dict[str, Any]) -> None:
    """A table of programs for each task, and one of the ratios."""
    print_machine(found["machine"])
    for package in found["missing"]:
        print(f"{package} is not installed: not compared. Try pip install {package}.")
    for name, rows in found["tables"].items():
        task = TASKS[name]
        print(f"\n{name}: {task.metric} on dev, {task.unit} of an epoch, seconds from file to model, {task.unit} of "
              "tagging from file to file (threads), MB of memory in training and tagging, MB of the model")  # fmt: skip
        table = []
        for program, row in rows.items():
            threads = "" if row["tagging_threads"] is None else f" ({row['tagging_threads']})"
            table.append((
                program,
                "-" if row["score"] is None else f"{row['score']:.2f}",
                number(row["epoch_per_second"]),
                number(row["file_to_model_seconds"]),
                number(row["tagging_per_second"]) + threads,
                *(number(row[key]) for key in ("train_mb", "tag_mb", "model_mb")),
            ))  # fmt: skip
        titles = ("program", task.metric, "epoch", "file to model", "tagging", "train MB", "tag MB", "model MB")
        print_table(table, titles)
    print("\nours beside a peer's: times better")
    compared = [one for one in found["measurements"] if one["ratio"] is not None]
    print_table(
        [
            (
                one["name"], number(one["best"]), one["unit"], one["peer"], number(one["peer_best"]),
                f"{one['ratio']:.3f}",
                "" if found["quick"] else "; ".join(verdict(target) for target in one["targets"]),
            )
            for one in compared
        ],
        ("ours", "best", "unit", "peer", "best", "ratio", "target"),
    )  # fmt: skip


def options() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(NAMES)} [default: all]")
    parser.add_argument("--steps", default=",".join(comparisons.STEPS), help="of them, with commas [default: all]")
    parser.add_argument(
        "--beside", metavar="PEERS", help=f"with commas, of {', '.join(PROGRAMS)} [default: all; some take long]"
    )
    parser.add_argument("--quick", action="store_true", help="a few sentences, to see that it runs")
    parser.add_argument("--data", type=Path, metavar="FILE", help="words with tags [default: the People's Daily]")
    parser.add_argument("--threads", type=int, default=2, help="threads of tagging; training has one")
    parser.add_argument("--record", type=Path, metavar="FILE", help="append the figures to a CSV file")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="folder for files and models, kept and used again")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quiet", "-q", action="store_true", help="no remarks")
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    """Compare, and print."""
    parser = options()
    given = parser.parse_args(arguments)
    steps, beside = given.steps.split(","), given.beside.split(",") if given.beside else []
    for asked, known in ((given.names, NAMES), (steps, comparisons.STEPS), (beside, PROGRAMS)):
        if strange := [word for word in asked if word not in known]:
            parser.error(f"no {strange[0]!r}; there are {', '.join(known)}")
    say = Remarks(given.quiet)
    packages = (*machine.PACKAGES, *PEERS)
    facts = machine.machine(packages)
    for package in missing():
        say(f"{package} is not installed: not compared. Try pip install {package}.")

    def keep(one: Measurement) -> None:
        if given.record is not None:
            machine.append(given.record, [one], packages)

    try:
        whole = given.data or datasets.get("peoples-daily", report=say)
        with tempfile.TemporaryDirectory() as folder:
            if given.keep is not None:
                given.keep.mkdir(parents=True, exist_ok=True)
            bench = Bench(whole, given.keep or Path(folder), QUICK if given.quick else FULL, given.threads)
            found = run(given.names or NAMES, steps, bench, say, keep, beside)
    except DuilianError as error:
        sys.exit(f"{error}")
    answer = {"machine": facts, "quick": given.quick, "missing": missing(), **found}
    if given.json:
        print_json(answer)
    else:
        print_found(answer)


if __name__ == "__main__":
    main()
