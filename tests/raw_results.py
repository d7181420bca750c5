"""Raw results of studies that never ran, after docs/studies.md, for tests of reports. Numbers are drawn by a seed."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path
from typing import Any

from duilian.studies.results import comparison_name

NASTY = ("<b>&\"'", "名词", "اسم", "🙂", "PRP$", "$", "</script>", "a_b^{c}", "`` ''", "-LRB-")
"""Tags that a careless page, or a careless plot, takes for something else."""
TARGET, SOURCE = 'zh.ud<&"', "pku"
WAY = f"{SOURCE}->{TARGET}"
METHODS = ("crf", "guide", "coupled")


def write(folder: Path, content: dict[str, Any]) -> None:
    """Each JSON file of ``content`` (path -> object) below a folder."""
    for name, value in content.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")


def whole(seeds: int = 2) -> dict[str, Any]:
    """A study with a figure of every kind: path -> content of each file. The last seed of guide has failed."""
    rng = random.Random(7)
    files: dict[str, Any] = {}
    for method in METHODS:
        for seed in range(1, seeds + 1):
            files[f"cells/{method}-{seed}.json"] = _cell(method, seed, rng)
    failed = files[f"cells/guide-{seeds}.json"]
    for key in ("scores", "conversions", "train", "history", "tag", "ranks", "mapping", "samples"):
        del failed[key]
    failed |= {"status": "failed", "error": "no memory for <5> & more"}
    for seed in range(1, seeds + 1):
        files[compared(seed)] = {
            "format": 1, "baseline": f"crf-{seed}", "system": f"coupled-{seed}", "side": TARGET, "measure": "accuracy",
            "difference": rng.uniform(0.3, 0.9), "p_value": rng.uniform(0.001, 0.009), "samples": 10000,
            "words": [[word, tag, rng.randrange(9), rng.randrange(20), 20] for word, tag in _words(rng)],
        }  # fmt: skip
    files["study.json"] = _plan(seeds)
    return files


def compared(seed: int) -> str:
    """The file in which coupled is compared with crf."""
    return f"comparisons/{comparison_name(f'crf-{seed}', f'coupled-{seed}', TARGET)}"


def empty() -> dict[str, Any]:
    """A study that plans nothing."""
    return {"study.json": _plan(1) | {"cells": [], "tables": [], "figures": [], "sides": [], "files": []}}


def _plan(seeds: int) -> dict[str, Any]:
    cells = {method: [f"{method}-{seed}" for seed in range(1, seeds + 1)] for method in METHODS}
    columns = [
        {"key": "accuracy", "title": f"{TARGET} accuracy", "path": f"scores.{TARGET}.accuracy", "unit": "%",
         "digits": 2, "better": "high", "scale": 1.0},
        {"key": "oov", "title": "new words", "path": f"scores.{TARGET}.oov_recall", "unit": "%", "digits": 1,
         "better": "high", "scale": 1.0},
        {"key": "seconds", "title": "time", "path": "seconds", "unit": "s", "digits": 0, "better": "low", "scale": 1.0},
        {"key": "size", "title": "model", "path": "train.model_bytes", "unit": "MB", "digits": 1, "better": "low",
         "scale": 1e-6},
    ]  # fmt: skip
    rows = [
        {"id": "crf", "title": "crf alone", "cells": cells["crf"], "paper": {"accuracy": 94.07}, "note": "one side"},
        {"id": "guide", "title": "guide <i>", "cells": cells["guide"], "against": "crf", "paper": {"accuracy": 94.35}},
        {"id": "coupled", "title": "coupled", "cells": cells["coupled"], "against": "crf",
         "paper": {"accuracy": 94.83}},
        {"id": "later", "title": "never run", "cells": ["later-1", "later-2"][:seeds], "against": "crf"},
    ]  # fmt: skip
    series = [{"name": method, "cell": f"{method}-1"} for method in METHODS]
    points = {
        method: [{"cell": f"{method}-{seed}", "x": x, "path": f"scores.{TARGET}.accuracy"}
                 for seed, x in zip(range(1, seeds + 1), (0.9, 0.98), strict=False)]
        for method in ("crf", "coupled")
    }  # fmt: skip
    figures = [
        {"id": "learning", "kind": "learning-curve", "title": "Learning curves", "caption": "dev by epoch",
         "series": series, "path": f"dev.{TARGET}", "x_title": "epoch", "y_title": "accuracy on dev, %"},
        {"id": "lambda", "kind": "curve", "title": "Lambda", "caption": "", "x_title": "λ", "y_title": "accuracy, %",
         "series": [{"name": name, "points": there} for name, there in points.items()],
         "lines": [{"name": "guide", "cell": "guide-1", "path": f"scores.{TARGET}.accuracy"}]},
        {"id": "ranks", "kind": "rank-probabilities", "title": "Candidates by rank", "caption": "",
         "series": [{"name": "coupled", "cell": "coupled-1", "side": TARGET}]},
        {"id": "tags", "kind": "per-tag", "title": "F per tag", "caption": "", "baseline": "crf-1",
         "system": "coupled-1", "side": TARGET},
        {"id": "words", "kind": "word-gains", "title": "Words", "caption": "", "baseline": "crf-1",
         "system": "coupled-1", "side": TARGET},
        {"id": "confusion", "kind": "confusion", "title": "Confusions", "caption": "", "cell": "coupled-1",
         "side": TARGET},
        {"id": "calibration", "kind": "calibration", "title": "Calibration", "caption": "", "cell": "coupled-1",
         "side": WAY},
        {"id": "risk", "kind": "risk-coverage", "title": "Risk and coverage", "caption": "", "series": series,
         "side": TARGET},
        {"id": "mapping", "kind": "mapping", "title": "Learned mapping", "caption": "", "cell": "coupled-1"},
        {"id": "samples", "kind": "samples", "title": "Converted sentences", "caption": "", "cell": "coupled-1",
         "conversion": WAY},
    ]  # fmt: skip
    return {
        "format": 1, "study": "all", "title": 'Every method on <my> "pair" & more', "task": "pos",
        "seeds": list(range(1, seeds + 1)), "quick": True, "command": "duilian study all --target 'a<b' --quick",
        "paper": {"key": "li2016", "title": "Fast Coupled <Sequence> Labeling", "year": 2016},
        "same_corpora_as_paper": False, "notes": ["only <a> part & parcel"],
        "sides": [
            {"name": TARGET, "role": "target", "standard": "ud", "unit": "word", "licence": "CC BY-SA 4.0"},
            {"name": SOURCE, "role": "source", "standard": None, "unit": "word", "licence": None},
        ],
        "files": [{"side": TARGET, "part": "train", "name": "train <1>.conllu", "layer": "xpos", "sha256": "0a" * 32,
                   "sentences": 3997, "tokens": 98616}],
        "versions": {"duilian": "0.1.0", "numpy": "2.4.6"}, "commit": "abc123", "machine": {"cores": 2, "threads": 1},
        "cells": [*itertools.chain(*cells.values()), *["later-1", "later-2"][:seeds]],
        "tables": [{"id": "final", "title": "Results", "caption": "On test.", "compared": TARGET, "columns": columns,
                    "rows": rows}],
        "figures": figures,
    }  # fmt: skip


def _cell(method: str, seed: int, rng: random.Random) -> dict[str, Any]:
    return {
        "format": 1, "id": f"{method}-{seed}", "method": method, "task": "pos", "seed": seed, "status": "done",
        "settings": {"epochs": 10, "mapping": "complete", "raw": True}, "sides": [TARGET, SOURCE], "error": None,
        "scores": {TARGET: _scores(rng), SOURCE: _scores(rng)}, "conversions": {WAY: _scores(rng)},
        "train": {"seconds": rng.uniform(5, 9), "tokens_per_second": 4e5 * rng.random(),
                  "model_bytes": rng.randrange(10**8)},
        "history": [{"epoch": n, "seconds": n * 1.5, "dev": {TARGET: 90 + 3 * (1 - rng.random() ** n)}}
                    for n in range(1, 8)],
        "tag": {TARGET: {"tokens": 1000, "seconds": 0.5, "tokens_per_second": 2000.0}},
        "ranks": {TARGET: {"kth_best": [0.91, 0.05, 0.02, 0.008], "entropy": rng.uniform(0.1, 0.4),
                           "mean_candidates": 4.5, "lost": 0.1, "tokens": 1000}},
        "mapping": {"sides": [TARGET, SOURCE], "relations": [
            [one, other, 1 + rng.randrange(400), [["前文<", f"词{k}&", "后文"], ["", "x", ""]][: k % 3]]
            for k, (one, other) in enumerate((a, b) for a in NASTY for b in ("n", "名词", "v<") if rng.random() < 0.5)
        ]},
        "samples": {WAY: [_sample(rng, n) for n in (5, 9)]},
        "seconds": rng.uniform(10, 90), "peak_bytes": rng.randrange(10**9), "versions": {}, "commit": None,
        "inputs": "x",
    }  # fmt: skip


def _scores(rng: random.Random) -> dict[str, Any]:
    per_tag = {}
    for tag in NASTY:
        gold = rng.randrange(5, 400)
        right = rng.randrange(gold // 2, gold + 1)
        f = 100 * right / gold
        per_tag[tag] = {"gold": gold, "answered": gold, "right": right, "p": f, "r": f, "f": f}
    edges = [k / 15 for k in range(16)]
    return {
        "tokens": 12012, "accuracy": rng.uniform(90, 95), "oov_recall": rng.uniform(70, 85), "per_tag": per_tag,
        "confusion": [[a, b, rng.randrange(1, 60)] for a, b in itertools.pairwise(NASTY)],
        "calibration": {"ece": rng.uniform(0.005, 0.03), "bins": [
            [low, high, (low + high) / 2, min(1.0, (low + high) / 2 * rng.uniform(0.8, 1.1)), rng.randrange(1, 900)]
            for low, high in itertools.pairwise(edges)
        ]},
        "risk": [[k / 20, 8 * (k / 20) ** 3 + rng.random() / 10] for k in range(1, 21)],
    }  # fmt: skip


def _sample(rng: random.Random, n: int) -> dict[str, Any]:
    words = [rng.choice(("北京", "the <dog>", "كتاب", "🙂", "A&B", "花")) for _ in range(n)]
    tags = [rng.choice(NASTY) for _ in words]
    answers = [tag if rng.random() < 0.8 else rng.choice(NASTY) for tag in tags]
    return {
        "given": [[word, "n"] for word in words],
        "answer": [[word, tag, rng.random()] for word, tag in zip(words, answers, strict=True)],
        "gold": [[word, tag] for word, tag in zip(words, tags, strict=True)],
    }


def _words(rng: random.Random) -> list[tuple[str, str]]:
    return [(word, rng.choice(NASTY)) for word in ("的", "被", "<em>", "كتاب", "'s", "🙂🙂")]
