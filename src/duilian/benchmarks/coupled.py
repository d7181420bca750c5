"""The coupled model: whole trainings and taggings in child processes, with their memory.

The second standard is UD Chinese with its own tags (zh_ud) where that corpus is at hand, else a rule-made twin of the
other half of the same corpus: its figures are comparable to themselves alone.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

from duilian.benchmarks.data import SIDE, Bench
from duilian.benchmarks.measure import Child, Measurement, Target, run_duilian

PRUNED = ("r=16", "lambda=0.9999")
SPACES: dict[str, tuple[str, tuple[str, ...], Target | None]] = {
    "pos, pruned, r=16 0.9999": ("pos", PRUNED, Target("figure", 60_000)),
    "pos, defaults": ("pos", (), None),
    "pos, complete space": ("pos", ("space=grid",), Target("figure", 20_000)),
    "pos, complete space, joint transitions": (
        "pos", ("space=grid", "transitions=joint", "features=separate"), Target("figure", 5_000)
    ),
    "segpos, defaults": ("segpos", (), None),
    "segpos, complete space": ("segpos", ("space=grid", "features=separate"), None),
}  # fmt: skip
"""What is trained -> task, settings, tokens per second to reach on two threads."""
MEMORY = Target("figure", 6_000, True)


def trained(bench: Bench, name: str) -> tuple[Path, Child]:
    """Run ``duilian train coupled``: the model, and what the command took. Walks are timed after pruning is done."""
    task, settings, _ = SPACES[name]
    model = bench.folder / ("coupled-" + name.replace(", ", "-").replace(" ", "-") + ".model")
    target, source = bench.pair()
    words = [word for setting in settings for word in ("--set", setting)]
    sample = bench.sizes.pair_sample if "space=grid" in settings else bench.sizes.joint
    child = run_duilian(
        "train", "coupled", "--task", task, "--side", f"target={target}", "--side", f"{SIDE}={source}",
        "--standard", "auto", "--set", f"epochs={bench.sizes.pair_epochs}", "--set", "eta=0.2",
        "--set", f"sample={sample}", *words, "--threads", bench.threads, "--quiet", "--json", "-o", model,
        "--cache", bench.folder / "stages",
    )  # fmt: skip
    return model, child


def train_coupled(bench: Bench) -> list[Measurement]:
    """Walks over two corpora under pruning and in the complete space, words and joint labels; peak memory of each."""
    found = []
    for name, (task, settings, target) in SPACES.items():
        _, child = trained(bench, name)
        report = json.loads(child.output)
        rate = float(report["tokens_per_second"])
        unit = "words/s" if task == "pos" else "characters/s"
        details = {"settings": list(settings), "wall": child.wall, "model_bytes": report["model_bytes"]}
        targets = () if target is None else (target,)
        found.append(Measurement("train-coupled", name, unit, (rate,), targets=targets, details=details))
        found.append(Measurement("train-coupled", f"{name}, memory", "MB", (child.peak / 1e6,), targets=(MEMORY,)))
    return found


def tag_coupled(bench: Bench) -> list[Measurement]:
    """Words and raw text from file to file by coupled models, the models that prune included."""
    found = []
    for name, file, formats, bound in (
        ("pos, pruned, r=16 0.9999", "words.txt", ("segmented", "slash"), 100_000),
        ("segpos, defaults", "raw.txt", ("raw", "slash"), 60_000),
    ):
        task = SPACES[name][0]
        model = bench.folder / ("coupled-" + name.replace(", ", "-").replace(" ", "-") + ".model")
        if not model.exists():
            model, _ = trained(bench, name)
        text = bench.file(file).read_text(encoding="utf-8").splitlines()[: bench.sizes.pair_lines]
        part = bench.folder / f"part-{file}"
        part.write_text("".join(line + "\n" for line in text), encoding="utf-8")
        units = sum(len(line.split()) if task == "pos" else len(line) for line in text)

        run = partial(
            run_duilian, "tag", model, part, "--side", "target", "-o", bench.folder / "coupled.txt",
            "--input-format", formats[0], "--format", formats[1], "--threads", bench.threads, "--quiet",
        )  # fmt: skip
        children = [run() for _ in range(bench.sizes.repeats + 1)][1:]
        unit = "words/s" if task == "pos" else "characters/s"
        rates = tuple(units / child.wall for child in children)
        details = {"units": units, "peak_mb": max(child.peak for child in children) / 1e6}
        found.append(Measurement("tag-coupled", name, unit, rates, targets=(Target("figure", bound),), details=details))
    return found
