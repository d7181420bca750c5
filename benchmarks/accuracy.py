"""Accuracy: train with default options, score on dev or, once, on test; for docs/results.md.

    python benchmarks/accuracy.py --on dev                       all rows, seed 1
    python benchmarks/accuracy.py --on test --seeds 1,2,3 crf-pos perceptron-pos
    python benchmarks/accuracy.py --keep DIR zh-pos-coupled --set r=8

Every line of output is one JSON object: row, seed, part, scores of each side, seconds. Answers stay in the folder of
``--keep``, for ``duilian compare``. A use of the test part belongs into the log of docs/results.md.

The People's Daily comes from the package index; the other corpora are looked for in the folder that DUILIAN_DATA names,
or in ../shared/data.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from duilian.studies.cuts import MAKERS

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Row:
    """What is trained, and what it is asked.

    sides: (name, training file, dev file or "", layer or ""); the first is the target
    tests: (side, file that says "{part}", layer): tagged and scored
    converts: (source, target, file annotated as the source, file with the target's gold, layers of both)
    """

    corpora: str
    method: str
    task: str
    sides: tuple[tuple[str, str, str, str], ...]
    tests: tuple[tuple[str, str, str], ...] = ()
    converts: tuple[tuple[str, str, str, str, str, str], ...] = ()
    settings: tuple[str, ...] = ()


PKU = ("pku", "pku-train.txt", "pku-dev.txt", "")
PKU_5000 = ("pku", "pku-5000.txt", "pku-dev.txt", "")
ZH = ("zh-ud", "zh-train.conllu", "zh-dev.conllu", "xpos")
ON_PKU = ("pku", "pku-{part}.txt", "")
ON_ZH = ("zh-ud", "zh-{part}.conllu", "xpos")
PTB = ("ptb", "en-ptb-train.conllu", "en-ptb-dev.conllu", "xpos")
UD = ("ud", "en-ud-train.conllu", "en-ud-dev.conllu", "upos")
EN_BOTH = (
    ("ud", "ptb", "en-{part}.conllu", "en-{part}.conllu", "upos", "xpos"),
    ("ptb", "ud", "en-{part}.conllu", "en-{part}.conllu", "xpos", "upos"),
)
CASCADES = ("merge", "guide", "adapt", "transform")
"""Methods of several sides that answer in the first."""
JA = (("unidic-luw", "ja-luw-train.conllu", "", "xpos"), ("unidic-suw", "ja-suw-train.conllu", "", "xpos"))
JA_WAY = (("unidic-suw", "unidic-luw", "ja-suw-test.conllu", "ja-luw-test.conllu", "xpos", "xpos"),)


def one_side(method: str, task: str, side: tuple[str, str, str, str], test: tuple[str, str, str], home: str) -> Row:
    """A baseline."""
    return Row(home, method, task, (side,), (test,))


ROWS: dict[str, Row] = {
    **{f"{m}-pos": one_side(m, "pos", PKU, ON_PKU, "pku") for m in ("crf", "perceptron", "pa", "hmm")},
    **{f"{m}-seg": one_side(m, "seg", PKU, ON_PKU, "pku") for m in ("crf", "perceptron", "pa")},
    **{f"{m}-segpos-5000": one_side(m, "segpos", PKU_5000, ON_PKU, "pku") for m in ("crf", "perceptron", "pa")},
    **{f"{m}-segpos": one_side(m, "segpos", PKU, ON_PKU, "pku") for m in ("crf", "perceptron", "pa")},
    **{f"zh-{t}-{m}": one_side(m, t, ZH, ON_ZH, "zh") for t in ("pos", "seg", "segpos") for m in ("crf", "perceptron")},
    **{f"zh-{t}-{m}": Row("zh", m, t, (ZH, PKU), (ON_ZH,)) for t in ("pos", "seg", "segpos") for m in CASCADES},
    **{f"zh-{t}-coupled": Row("zh", "coupled", t, (ZH, PKU), (ON_ZH, ON_PKU)) for t in ("pos", "seg", "segpos")},
    "zh-pos-coupled-grid": Row("zh", "coupled", "pos", (ZH, PKU), (ON_ZH, ON_PKU), (), ("space=grid",)),
    "zh-seg-transform-once": Row("zh", "transform", "seg", (ZH, PKU), (ON_ZH,), (), ("rounds=1", "reestimation=no")),
    "zh-seg-transform-rounds": Row("zh", "transform", "seg", (ZH, PKU), (ON_ZH,), (), ("reestimation=no",)),
    "zh-seg-adapt-lexicon": Row("zh", "adapt", "seg", (ZH, PKU), (ON_ZH,), (), ("templates=lexicon",)),
    "zh-segpos-pa": one_side("pa", "segpos", ZH, ON_ZH, "zh"),
    "zh-segpos-multitask": Row("zh", "multitask", "segpos", (ZH, PKU), (ON_ZH, ON_PKU)),
    "zh-segpos-multitask-one-way": Row(
        "zh", "multitask", "segpos", (ZH, PKU), (ON_ZH, ON_PKU), (), ("direction=one-way",)
    ),
    "en-transform": Row("en", "transform", "pos", (PTB, UD), (), EN_BOTH, ("templates=alphabetic",)),
    "en-coupled": Row("en", "coupled", "pos", (PTB, UD), (), EN_BOTH),
    "ja-coupled": Row("ja", "coupled", "segpos", JA, (), JA_WAY),
}


def duilian(*words: object) -> Any:
    """The JSON of a command."""
    command = [sys.executable, "-m", "duilian", *map(str, words), "--quiet", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stderr}")
    return json.loads(done.stdout)


def at(folder: Path, file: str, layer: str) -> str:
    """FILE or FILE#LAYER."""
    return f"{folder / file}#{layer}" if layer else str(folder / file)


def measure(
    folder: Path, name: str, row: Row, seed: int, part: str, settings: list[str], threads: int, keep: str
) -> dict[str, Any]:
    """Train one row and score it."""
    model = folder / f"{name}{keep}-{seed}.model"
    words: list[str] = []
    for side, train, dev, layer in row.sides:
        words += ["--side", f"{side}={at(folder, train, layer)}"]
        words += ["--dev", f"{side}={at(folder, dev, layer)}"] if dev else []
    for setting in (*row.settings, *settings):
        words += ["--set", setting]
    began = time.perf_counter()
    trained = duilian(
        "train", row.method, "--task", row.task, *words, "--seed", seed, "--threads", threads, "-o", model
    )
    seconds = time.perf_counter() - began
    scores: dict[str, Any] = {}
    for side, file, layer in row.tests:
        gold = at(folder, file.format(part=part), layer)
        scores[side] = duilian("evaluate", model, gold, "--side", side)
        if keep:
            duilian("tag", model, gold, "--side", side, "-o", folder / f"{name}{keep}-{seed}-{side}-{part}.out")
    for source, target, given, gold, given_layer, gold_layer in row.converts:
        if "{part}" not in given and part != "test":
            continue
        out = folder / f"{name}{keep}-{seed}-{source}-{target}-{part}.conllu"
        read = at(folder, given.format(part=part), given_layer)
        duilian("convert", model, read, "--from", source, "--to", target, "--confidence", "-o", out)
        answer = f"{out}#{given_layer}"
        scores[f"{source}->{target}"] = duilian(
            "evaluate", at(folder, gold.format(part=part), gold_layer), answer, "--calibration"
        )
    if not keep:
        model.unlink()
    return {"row": name, "seed": seed, "part": part, "set": settings, "scores": scores, "seconds": seconds,
            "train": trained}  # fmt: skip


def main() -> None:
    """Rows and seeds from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", help=f"rows to run: {', '.join(ROWS)} [default: all]")
    parser.add_argument("--on", choices=("dev", "test"), default="dev", help="which part is scored")
    parser.add_argument("--seeds", default="1", help="comma-separated")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting (repeatable)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--keep", type=Path, metavar="DIR", help="folder for corpora, models and answers, kept")
    parser.add_argument("--mark", default="", help="goes into the names of kept models and answers")
    given = parser.parse_args()
    unknown = [row for row in given.rows if row not in ROWS]
    if unknown:
        parser.error(f"no row {unknown[0]!r}; there are {', '.join(ROWS)}")
    data = Path(os.environ.get("DUILIAN_DATA", HERE.parents[1] / "shared" / "data"))
    with tempfile.TemporaryDirectory() as name:
        folder = given.keep or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        for row in given.rows or ROWS:
            chosen = ROWS[row]
            if not (folder / f"{chosen.corpora}.done").exists():
                MAKERS[chosen.corpora](folder, data)
                (folder / f"{chosen.corpora}.done").touch()
            for seed in given.seeds.split(","):
                keep = f"{given.mark}." if given.keep else ""
                found = measure(folder, row, chosen, int(seed), given.on, given.set, given.threads, keep)
                print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
