"""The benchmarks run, and count what they say they count."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from duilian.benchmarks import machine
from duilian.benchmarks.data import FULL, Bench, repeated
from duilian.benchmarks.measure import Measurement, Target, run_child
from duilian.benchmarks.table import BENCHMARKS
from duilian.cli import main
from duilian.errors import DataError, DuilianError

IN_PROCESS = (
    "train-crf",
    "train-perceptron",
    "train-seg",
    "train-segpos",
    "train-hmm",
    "train-correspondence",
    "train-multitask",
    "rows",
    "features",
)
CHILDREN = (
    "help", "file-to-model", "memory", "tag-pos", "tag-seg", "model-load", "phases", "train-pairs", "tag-pairs",
    "train-coupled", "tag-coupled",
)  # fmt: skip


def bench(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as exit:
        main(["bench", *map(str, arguments)])
    captured = capsys.readouterr()
    assert isinstance(exit.value.code, int)
    return exit.value.code, captured.out, captured.err


def history_rows(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


def check(found: dict[str, Any], names: Sequence[str]) -> None:
    """Every benchmark gave figures; rates and seconds are positive."""
    assert {one["benchmark"] for one in found["measurements"]} == set(names)
    for one in found["measurements"]:
        if one["name"].endswith("collisions"):
            assert one["runs"] == [0]
        else:
            assert one["runs"]
            assert min(one["runs"]) > 0
        assert (one["ratio"] is None) == (not one["peer_runs"])


def test_all_benchmarks_are_tried_here() -> None:
    assert set(BENCHMARKS) == {*IN_PROCESS, *CHILDREN}


def test_benchmarks_of_this_process_run(capsys: pytest.CaptureFixture[str], corpus_file: Path) -> None:
    code, out, _ = bench(capsys, *IN_PROCESS, "--quick", "--data", corpus_file, "--json", "--quiet")
    assert code == 0
    found = json.loads(out)
    check(found, IN_PROCESS)
    dense, mixed, sparse = (
        next(one["details"]["entries"] for one in found["measurements"] if one["name"] == f"perceptron segpos, {name}")
        for name in ("dense", "mixed", "labels seen")
    )
    assert dense >= mixed > sparse


@pytest.mark.slow
def test_benchmarks_of_whole_commands_run(
    capsys: pytest.CaptureFixture[str], corpus_file: Path, tmp_path: Path
) -> None:
    history = tmp_path / "history.csv"
    code, out, err = bench(
        capsys, *CHILDREN, "--quick", "--data", corpus_file, "--record", history, "--keep", tmp_path / "keep", "--json"
    )
    assert code == 0, err
    found = json.loads(out)
    check(found, CHILDREN)
    assert all(f"{name}: " in err for name in CHILDREN)
    assert [row["name"] for row in history_rows(history)] == [one["name"] for one in found["measurements"]]
    answer = (tmp_path / "keep" / "tagged.txt").read_text(encoding="utf-8")
    assert "".join(answer.split()) in "".join((tmp_path / "keep" / "raw.txt").read_text(encoding="utf-8").split())


def test_the_list_names_every_benchmark(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = bench(capsys, "--list")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == list(BENCHMARKS)
    code, _, err = bench(capsys, "frobnicate")
    assert code == 2
    assert "train-crf" in err


def test_data_without_tags_is_an_error(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "raw.txt").write_text("没有标注\n", encoding="utf-8")
    code, _, err = bench(capsys, "train-hmm", "--data", tmp_path / "raw.txt")
    assert code == 1
    assert "ten sentences" in err


# Figures


def test_best_and_ratio_of_rates_and_of_seconds() -> None:
    rate = Measurement("b", "n", "words/s", (100.0, 300.0, 200.0), "peer", (50.0, 100.0, 50.0))
    assert (rate.best, rate.ratio, rate.ratio_of_pairs) == (300.0, 3.0, 3.0)
    cost = Measurement("b", "n", "s", (4.0, 2.0), "peer", (12.0, 10.0), (Target("ratio", 5), Target("figure", 1, True)))
    assert (cost.best, cost.ratio, cost.ratio_of_pairs) == (2.0, 5.0, 4.0)
    assert [cost.reached(target) for target in cost.targets] == [True, False]
    assert [str(target) for target in cost.targets] == ["at least 5x", "at most 1"]
    alone = Measurement("b", "n", "s", (4.0,), targets=(Target("ratio", 5),))
    assert (alone.ratio, alone.reached(alone.targets[0])) == (None, None)
    better = (Target("ratio", 1),)
    scores = [Measurement("b", "n", unit, (95.0,), "peer", (94.0,), better) for unit in ("F", "accuracy", "s")]
    assert [score.reached(better[0]) for score in scores] == [True, True, False]


def test_history_gets_titles_once(tmp_path: Path) -> None:
    path = tmp_path / "history.csv"
    machine.append(path, [Measurement("b", "one", "words/s", (123456.7,), "peer", (61728.35,))])
    machine.append(path, [Measurement("b", "two", "s", (0.25, 0.5))])
    found = [(row["name"], row["figure"], row["ratio"]) for row in history_rows(path)]
    assert found == [("one", "1.235e+05", "2"), ("two", "0.25", "")]
    assert path.read_text(encoding="utf-8").count("benchmark") == 1
    with pytest.raises(DataError, match="cannot be written"):
        machine.append(tmp_path / "no" / "such" / "folder.csv", [])


def test_a_child_has_a_peak_of_its_own() -> None:
    held = np.ones(15_000_000)
    child = run_child(["python3", "-c", "print('done')"])
    assert child.output == "done\n"
    assert 0 < child.peak < held.nbytes
    assert child.cpu > 0
    larger = run_child(["python3", "-c", "x = bytearray(150_000_000)"])
    assert larger.peak > 150_000_000


def test_a_child_that_fails_is_an_error() -> None:
    with pytest.raises(DuilianError, match="no such luck"):
        run_child(["python3", "-c", "import sys; sys.exit('no such luck')"])


def test_lines_are_repeated_until_there_are_enough() -> None:
    assert repeated(["a", "b"], [2, 1], 6) == ["a", "b", "a", "b"]
    assert repeated(["a", "b"], [2, 1], 1) == ["a"]


def test_sizes_of_the_full_run_are_those_that_were_promised() -> None:
    assert (FULL.train, FULL.joint, FULL.words, FULL.characters) == (15_000, 5_000, 1_000_000, 10_000_000)


def test_another_file_is_split_without_overlap(corpus_file: Path, tmp_path: Path) -> None:
    train, dev = Bench(corpus_file, tmp_path).parts
    assert (len(train), len(dev)) == (24, 3)
    whole = [words for part in (train, dev) for words in part.words()]
    lines = corpus_file.read_text(encoding="utf-8").splitlines()[:27]
    assert whole == [[token.rpartition("/")[0] for token in line.split()] for line in lines]
