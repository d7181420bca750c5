"""Every method of two standards, trained and applied by our commands, at the rates that these tell with ``--json``.

Training: units visited in a second of the training loop; reading, jack-knifing and dev are no part of it.
Tagging:  words of the answer in a second, from reading the first line to writing the last; without start-up.

The corpora are those of ``coupled.py``. Each method has few epochs and one setting of what else it could search for.
"""

from __future__ import annotations

import json
from pathlib import Path

from duilian.benchmarks.data import SIDE, Bench
from duilian.benchmarks.measure import Child, Measurement, run_duilian

METHODS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "merge": (("pos", "seg"), ("epochs={epochs}",)),
    "guide": (("pos", "seg"), ("epochs={epochs}",)),
    "adapt": (("pos", "seg"), ("epochs={epochs}",)),
    "transform": (("pos", "seg"), ("epochs={epochs}", "rounds=1", "lambda=0.4")),
    "multitask": (("pos", "seg"), ("epochs={epochs}",)),
    "correspondence": (("pos",), ("tagger_epochs={epochs}",)),
    "coupled": (("pos", "seg"), ("epochs={epochs}",)),
}
"""Method -> tasks, settings."""


def each() -> list[tuple[str, str]]:
    """Methods with their tasks."""
    return [(method, task) for method, (tasks, _) in METHODS.items() for task in tasks]


def trained(bench: Bench, method: str, task: str) -> tuple[Path, Child]:
    """Run ``duilian train`` on two corpora: the model, and what the command took."""
    model = bench.folder / f"pair-{method}-{task}.model"
    target, source = bench.pair()
    settings = [setting.format(epochs=bench.sizes.pair_epochs) for setting in METHODS[method][1]]
    child = run_duilian(
        "train", method, "--task", task, "--side", f"target={target}", "--side", f"{SIDE}={source}",
        "--standard", "auto", *(word for setting in settings for word in ("--set", setting)),
        "--threads", bench.threads, "--quiet", "--json", "-o", model,
    )  # fmt: skip
    return model, child


def train_pairs(bench: Bench) -> list[Measurement]:
    """Training of each method of two standards, as the command tells it."""
    found = []
    for method, task in each():
        _, child = trained(bench, method, task)
        report = json.loads(child.output)
        details = {"wall": child.wall, "peak_mb": child.peak / 1e6, "model_bytes": report["model_bytes"]}
        unit = "words/s" if task == "pos" else "characters/s"
        rate = float(report["tokens_per_second"])
        found.append(Measurement("train-pairs", f"{method} {task}", unit, (rate,), details=details))
    return found


def tag_pairs(bench: Bench) -> list[Measurement]:
    """Tagging of each method of two standards, as the command tells it."""
    found = []
    for method, task in each():
        model = bench.folder / f"pair-{method}-{task}.model"
        if not model.exists():
            trained(bench, method, task)
        file, formats = ("words.txt", ("segmented", "slash")) if task == "pos" else ("raw.txt", ("raw", "segmented"))
        lines = bench.file(file).read_text(encoding="utf-8").splitlines()[: bench.sizes.pair_lines]
        part = bench.folder / f"pair-{file}"
        part.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        children = [
            run_duilian(
                "tag", model, part, "-o", bench.folder / "pair-answer.txt", "--input-format", formats[0],
                "--format", formats[1], "--threads", bench.threads, "--quiet", "--json",
            )
            for _ in range(bench.sizes.repeats + 1)
        ][1:]  # fmt: skip
        rates = tuple(float(json.loads(child.output)["tokens_per_second"]) for child in children)
        details = {"wall": [child.wall for child in children], "peak_mb": max(child.peak for child in children) / 1e6}
        found.append(Measurement("tag-pairs", f"{method} {task}", "words/s", rates, details=details))
    return found
