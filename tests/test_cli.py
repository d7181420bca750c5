"""The command line as a user meets it: what goes where, which exit status, what `--json` holds."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import Run

import duilian
from duilian.cli import main
from duilian.cli.terminal import print_table, width

GOLD = "我/r  爱/v  北京/ns\n他/r  爱/v  上海/ns  。/w\n好/a\n"
WRONG_TAG = GOLD.replace("上海/ns", "上海/n")
WRONG_WORD = GOLD.replace("上海/ns", "上/f  海/n")


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    texts = {"gold": GOLD, "tag": WRONG_TAG, "word": WRONG_WORD, "words": re.sub(r"/\w+", "", GOLD)}
    paths = {name: tmp_path / f"{name}.txt" for name in texts}
    for name, text in texts.items():
        paths[name].write_text(text, encoding="utf-8")
    return paths


def object_on(out: str) -> dict[str, Any]:
    """The one JSON object that stdout must be."""
    assert out.count("\n") == 1
    found = json.loads(out)
    assert isinstance(found, dict)
    return found


def test_help_and_version(run: Run) -> None:
    code, out, err = run("--help")
    assert (code, err) == (0, "")
    assert "duilian demo" in out
    assert run("--version") == (0, f"duilian {duilian.__version__}\n", "")


@pytest.mark.parametrize(
    "arguments",
    [
        ["frobnicate"],
        ["evaluate"],
        ["evaluate", "a", "b", "c"],
        ["evaluate", "a", "b", "--nonsense"],
        ["compare", "a", "b", "c", "--samples", "0"],
        ["data", "get", "nothing"],
        ["evaluate", "gold", "tag", "--side", "x"],
        ["evaluate", "gold", "tag", "--format", "nothing"],
        ["evaluate", "gold", "tag", "--encoding", "nothing"],
        ["evaluate", "gold", "tag", "--on-error", "ignore"],
    ],
)
def test_misuse_exits_2_and_prints_nothing_on_stdout(run: Run, files: dict[str, Path], arguments: list[str]) -> None:
    code, out, err = run(*(files.get(argument, argument) for argument in arguments))
    assert (code, out) == (2, "")
    assert err
    assert "Traceback" not in err


def test_a_file_that_is_not_there_exits_1(run: Run, files: dict[str, Path]) -> None:
    code, out, err = run("evaluate", files["gold"], "nowhere.txt")
    assert (code, out) == (1, "")
    assert "nowhere.txt" in err


def test_debug_shows_where_an_error_came_from(run: Run, files: dict[str, Path]) -> None:
    with pytest.raises(duilian.errors.DuilianError):
        main(["evaluate", str(files["gold"]), "nowhere.txt", "--debug"])


def test_evaluate_counts_what_a_hand_counts(run: Run, files: dict[str, Path]) -> None:
    code, out, err = run("evaluate", files["gold"], files["tag"], "--json")
    found = object_on(out)
    assert (code, err) == (0, "")
    assert found["tokens"] == 8
    assert found["accuracy"] == pytest.approx(100 * 7 / 8)
    assert found["ws"] == {"p": 100, "r": 100, "f": 100}
    assert found["joint"]["f"] == pytest.approx(100 * 7 / 8)
    assert found["oov_recall"] is None
    found = object_on(run("evaluate", files["gold"], files["word"], "--json")[1])
    assert found["accuracy"] is None
    assert found["ws"] == pytest.approx({"p": 100 * 7 / 9, "r": 100 * 7 / 8, "f": 200 * 7 / 17})
    found = object_on(run("evaluate", files["words"], files["word"], "--json")[1])
    assert found["joint"] is None


def test_evaluate_for_people(run: Run, files: dict[str, Path]) -> None:
    out = run("evaluate", files["gold"], files["tag"], "--per-tag")[1]
    assert "accuracy: 87.50" in out
    assert "ns" in out
    assert "words: P" in run("evaluate", files["gold"], files["word"])[1]


def test_known_words_come_from_the_training_files(run: Run, files: dict[str, Path], tmp_path: Path) -> None:
    train = tmp_path / "train.txt"
    train.write_text(GOLD.replace("上海/ns", "南京/ns"), encoding="utf-8")
    found = object_on(run("evaluate", files["gold"], files["tag"], "--train", train, "--json")[1])
    assert found["oov_rate"] == pytest.approx(100 / 8), "上海 is the one new word"
    assert found["oov_recall"] == 0
    assert found["iv_recall"] == 100


def test_different_texts_exit_1_with_the_place(run: Run, files: dict[str, Path], tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text(GOLD.replace("上海", "重庆"), encoding="utf-8")
    code, out, err = run("evaluate", files["gold"], other)
    assert (code, out) == (1, "")
    assert "sentence 2" in err


def test_compare(run: Run, files: dict[str, Path]) -> None:
    found = object_on(run("compare", files["gold"], files["tag"], files["gold"], "--samples", 99, "--json")[1])
    assert found["metric"] == "accuracy"
    assert found["difference"] == pytest.approx(100 / 8), "the second less the first"
    assert 0.01 <= found["p_value"] <= 1
    assert "difference: +12.50" in run("compare", files["gold"], files["tag"], files["gold"], "--samples", 9)[1]
    same = ["compare", files["gold"], files["word"], files["tag"], "--json", "--seed", 3]
    assert run(*same) == run(*same)


def test_inspect_several_corpora(run: Run, files: dict[str, Path]) -> None:
    found = object_on(run("inspect", files["gold"], files["word"], "--json")[1])
    gold = found["corpora"][str(files["gold"])]
    assert (gold["sentences"], gold["tokens"], gold["characters"]) == (3, 8, 10)
    assert found["overlap"][0]["sentences_in_both"] == 3
    out = run("inspect", files["gold"], files["words"])[1]
    assert "5 tags: ns 2, r 2, v 2, a 1, w 1" in out
    assert "sentences that are in both: 3" in out


def test_a_broken_line_stops_or_is_skipped(run: Run, files: dict[str, Path], tmp_path: Path) -> None:
    broken = tmp_path / "broken.txt"
    broken.write_text(GOLD + "没有标记\n", encoding="utf-8")
    code, out, err = run("inspect", broken, "--format", "slash", "--json")
    assert (code, out) == (1, "")
    assert "broken.txt:4" in err
    code, out, err = run("inspect", broken, "--format", "slash", "--json", "--on-error", "skip")
    assert code == 0
    assert object_on(out)["corpora"][str(broken)]["sentences"] == 3
    assert "skipped" in err
    assert run("inspect", broken, "--format", "slash", "--on-error", "skip", "--quiet", "--json")[2] == ""


def test_data_list(run: Run) -> None:
    found = object_on(run("data", "list", "--json")[1])
    assert found["datasets"]["peoples-daily"]["can_be_fetched"]
    assert not found["datasets"]["zh_ud"]["can_be_fetched"]
    assert "bring your own: zh_ud-train.conllu" in run("data", "list")[1]
    assert run("data", "get", "zh_ud")[0] == 1


def test_standard_input(files: dict[str, Path]) -> None:
    command = [sys.executable, "-m", "duilian", "evaluate", str(files["gold"]), "-", "--json"]
    done = subprocess.run(command, input=WRONG_TAG.encode(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["accuracy"] == pytest.approx(87.5)


@pytest.mark.parametrize(
    ("arguments", "status", "begins"),
    [(["--version"], 0, "duilian "), (["data", "get", "zh_ud"], 1, ""), (["frobnicate"], 2, "")],
)
def test_the_process_ends_with_its_status_and_all_it_said(arguments: list[str], status: int, begins: str) -> None:
    """It leaves without Python's own tidying up, which would have written what is still in the buffers."""
    done = subprocess.run([sys.executable, "-m", "duilian", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == status
    assert done.stdout.startswith(begins)
    assert (done.stdout or done.stderr).endswith("\n")


def test_a_closed_pipe_is_no_traceback(files: dict[str, Path]) -> None:
    line = f"{sys.executable} -m duilian data list | true"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr


@pytest.mark.compiled
def test_help_answers_at_once() -> None:
    """Under 0.3 s of processor time: what the program spends, whatever else the machine is doing."""
    before = os.times()
    subprocess.run([sys.executable, "-m", "duilian", "--help"], capture_output=True, check=True)
    after = os.times()
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    assert 0 < spent < 0.3


def test_tables_line_up_with_wide_characters(capsys: pytest.CaptureFixture[str]) -> None:
    print_table([("上海", 1, 99.5), ("ab", 1234, None)], ("word", "count", "F"))
    assert capsys.readouterr().out == "word  count      F\n上海      1  99.50\nab    1,234      -\n"
    assert (width("上海a"), width("e\u0301")) == (5, 1)
