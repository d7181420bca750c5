"""Accuracy on the People's Daily: train with default options, score on dev or, once, on test; for docs/results.md.

    python benchmarks/accuracy.py --on dev                       all rows, seed 1
    python benchmarks/accuracy.py --on test --seeds 1,2,3 crf-pos perceptron-pos

Every line of output is one JSON object: row, seed, part, scores, seconds. A use of the test part belongs into the log
of docs/results.md.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROWS: dict[str, tuple[str, str, int]] = {
    "crf-pos": ("crf", "pos", 15000),
    "perceptron-pos": ("perceptron", "pos", 15000),
    "pa-pos": ("pa", "pos", 15000),
    "hmm-pos": ("hmm", "pos", 15000),
    "crf-seg": ("crf", "seg", 15000),
    "perceptron-seg": ("perceptron", "seg", 15000),
    "pa-seg": ("pa", "seg", 15000),
    "crf-segpos-5000": ("crf", "segpos", 5000),
    "perceptron-segpos-5000": ("perceptron", "segpos", 5000),
    "pa-segpos-5000": ("pa", "segpos", 5000),
    "crf-segpos": ("crf", "segpos", 15000),
    "perceptron-segpos": ("perceptron", "segpos", 15000),
}
"""Row -> method, task, training lines."""


def duilian(*words: object) -> Any:
    """The JSON of a command."""
    command = [sys.executable, "-m", "duilian", *map(str, words), "--quiet", "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def measure(folder: Path, row: str, seed: int, part: str) -> dict[str, Any]:
    """Train one row and score it."""
    method, task, lines = ROWS[row]
    train, model = folder / f"train-{lines}.txt", folder / f"{row}-{seed}.model"
    if not train.exists():
        with (folder / "peoples-daily-train.txt").open("rb") as whole:
            train.write_bytes(b"".join(line for _, line in zip(range(lines), whole, strict=False)))
    began = time.perf_counter()
    dev = folder / "peoples-daily-dev.txt"
    trained = duilian(
        "train", method, "--task", task, "--side", f"pku={train}", "--dev", f"pku={dev}", "--seed", seed, "-o", model
    )
    seconds = time.perf_counter() - began
    scores = duilian("evaluate", model, folder / f"peoples-daily-{part}.txt")
    model.unlink()
    return {"row": row, "seed": seed, "part": part, "scores": scores, "seconds": seconds, "train": trained}


def main() -> None:
    """Rows and seeds from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", help=f"rows to run: {', '.join(ROWS)} [default: all]")
    parser.add_argument("--on", choices=("dev", "test"), default="dev", help="which part is scored")
    parser.add_argument("--seeds", default="1", help="comma-separated")
    given = parser.parse_args()
    unknown = [row for row in given.rows if row not in ROWS]
    if unknown:
        parser.error(f"no row {unknown[0]!r}; there are {', '.join(ROWS)}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        duilian("data", "get", "peoples-daily", "--split", "--to", folder)
        for row in given.rows or ROWS:
            for seed in given.seeds.split(","):
                print(json.dumps(measure(folder, row, int(seed), given.on)), flush=True)


if __name__ == "__main__":
    main()
