"""Whole commands in child processes: wall clock, with start-up, from file to file; what is compared takes turns."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from duilian.benchmarks.data import Bench
from duilian.benchmarks.measure import Child, Measurement, Target, run_child, run_duilian

METHODS = ("crf", "perceptron")


def turns(repeats: int, *ways: Callable[[], Child]) -> list[list[Child]]:
    """Run all ways, then all again: the runs of each."""
    rounds = [[way() for way in ways] for _ in range(repeats)]
    return [list(runs) for runs in zip(*rounds, strict=True)]


def costs(children: Sequence[Child]) -> dict[str, object]:
    """CPU seconds and peak memory beside the wall clock."""
    return {
        "cpu_seconds": [child.cpu for child in children],
        "peak_mb": max(child.peak for child in children) / 1e6,
    }


def trained(bench: Bench, method: str, epochs: int) -> Child:
    """Run ``duilian train`` on the training file."""
    return bench.train(method, epochs=epochs)[1]


def file_to_model(bench: Bench) -> list[Measurement]:
    """From a word/tag file to a saved model, ten epochs, with our defaults."""
    n = bench.sizes.file_epochs
    for method in METHODS:
        bench.train(method, epochs=1, file="tiny.txt")
    rounds = turns(max(1, bench.sizes.repeats - 1), *(partial(trained, bench, method, n) for method in METHODS))
    bench.trained.update(zip(METHODS, rounds, strict=True))
    return [
        Measurement(
            "file-to-model",
            f"{method} pos, {n} epochs",
            "s",
            tuple(child.wall for child in children),
            details=costs(children),
        )
        for method, children in zip(METHODS, rounds, strict=True)
    ]


def memory(bench: Bench) -> list[Measurement]:
    """Peak memory of a training command on the whole training file."""
    found = []
    for method in METHODS:
        if method not in bench.trained:
            bench.trained[method] = [bench.train(method, epochs=bench.sizes.model_epochs)[1]]
        peaks = tuple(child.peak / 1e6 for child in bench.trained[method])
        found.append(Measurement("memory", f"train {method} pos", "MB", peaks, targets=(Target("figure", 1200, True),)))
    return found


def tagging(bench: Bench, task: str, model: Path, file: str, threads: int) -> Child:
    """Run ``duilian tag``."""
    formats = ("segmented", "slash") if task == "pos" else ("raw", "segmented")
    return run_duilian(
        "tag", model, bench.file(file), "-o", bench.folder / "tagged.txt",
        "--input-format", formats[0], "--format", formats[1], "--threads", threads, "--quiet",
    )  # fmt: skip


def tag_pos(bench: Bench) -> list[Measurement]:
    """Words from text file to text file."""
    model, file = bench.model("crf", "pos"), bench.file("words.txt")
    with file.open(encoding="utf-8") as lines:
        count = sum(len(line.split()) for line in lines)
    tagging(bench, "pos", model, "line.txt", 1)
    ways: list[Callable[[], Child]] = [
        partial(tagging, bench, "pos", model, file.name, threads) for threads in (bench.threads, 1)
    ]
    children = turns(bench.sizes.repeats, *ways)
    return [
        Measurement(
            "tag-pos",
            f"crf pos, threads: {threads}",
            "words/s",
            tuple(count / child.wall for child in ours),
            targets=goals,
            details={**costs(ours), "words": count, "wall": [child.wall for child in ours]},
        )
        for threads, ours, goals in zip((bench.threads, 1), children, ((Target("figure", 400_000),), ()), strict=True)
    ]


def tag_seg(bench: Bench) -> list[Measurement]:
    """Characters from raw text file to segmented text file."""
    found = []
    file = bench.file("raw.txt")
    with file.open(encoding="utf-8") as lines:
        count = sum(len(line.rstrip("\n")) for line in lines)
    model = bench.model("perceptron", "seg")
    tagging(bench, "seg", model, "line.txt", 1)
    ways: list[Callable[[], Child]] = [
        partial(tagging, bench, "seg", model, file.name, threads) for threads in (bench.threads, 1)
    ]
    children = turns(bench.sizes.repeats, *ways)
    for threads, ours, goals in zip((bench.threads, 1), children, ((Target("figure", 2_000_000),), ()), strict=True):
        found.append(
            Measurement(
                "tag-seg",
                f"perceptron seg, threads: {threads}",
                "characters/s",
                tuple(count / child.wall for child in ours),
                targets=goals,
                details={**costs(ours), "characters": count, "wall": [child.wall for child in ours]},
            )
        )
    return found


_LOAD = """
import sys, time
began = time.perf_counter()
from duilian import methods
middle = time.perf_counter()
methods.load(sys.argv[1])
print(middle - began, time.perf_counter() - middle)
"""


def model_load(bench: Bench) -> list[Measurement]:
    """A model file into memory, in a fresh process; and a whole command on one line of text."""
    repeats = 2 * bench.sizes.repeats + 1
    found = []
    for method, task in (("crf", "pos"), ("perceptron", "seg")):
        model = bench.model(method, task)
        size = model.stat().st_size / 1e6
        runs = [run_child([sys.executable, "-c", _LOAD, model]).output.split() for _ in range(repeats)]
        targets = (Target("figure", 0.5, True),)
        loads = tuple(float(run[1]) for run in runs)
        details = {"model_mb": size, "import_seconds": [float(run[0]) for run in runs]}
        found.append(Measurement("model-load", f"load, {method} {task}", "s", loads, targets=targets, details=details))
        whole = tuple(tagging(bench, task, model, "line.txt", 1).wall for _ in range(repeats))
        found.append(Measurement("model-load", f"tag one line, {method} {task}", "s", whole))
    return found


def start(bench: Bench) -> list[Measurement]:
    """``duilian --help``, from the shell's point of view."""
    runs = tuple(run_duilian("--help").wall for _ in range(4 * bench.sizes.repeats + 1))
    return [Measurement("help", "duilian --help", "s", runs, targets=(Target("figure", 0.3, True),))]
