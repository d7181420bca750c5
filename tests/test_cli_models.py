"""train, tag and evaluate MODEL as a user meets them, on four sentences."""

from __future__ import annotations

import io
import json
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from commands import Run
from pages import Page, untraceable

import duilian.cli.demo
import duilian.cli.train
import duilian.report
from duilian.cli import main
from duilian.studies.results import load

TRAIN = "我/r  爱/v  北京/ns\n他/r  爱/v  上海/ns  。/w\n好/a\n我/r  好/a  。/w\n"
WORDS = "我 爱 上海 。\n他 好\n"
TAGGED = "我/r  爱/v  上海/ns  。/w\n他/r  好/a\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files, and a model of each task that knows them by heart."""
    folder = tmp_path_factory.mktemp("models")
    for name, text in (("train", TRAIN), ("words", WORDS), ("raw", "我爱上海。\n"), ("gold", TAGGED)):
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")
    for task in ("pos", "seg", "segpos"):
        command = ["train", "perceptron", "--task", task, "--side", f"mine={folder / 'train.txt'}", "--quiet"]
        with pytest.raises(SystemExit) as exit:
            main([*command, "-o", str(folder / task), "--set", "epochs=10", "--set", "dropout=0", "--set", "hide=0"])
        assert exit.value.code == 0
    return folder


def fitted(
    run: Run, folder: Path, output: Path, *more: object, method: str = "crf", epochs: int = 4
) -> tuple[int, str, str]:
    side = f"mine={folder / 'train.txt'}"
    return run("train", method, "--side", side, "--dev", side, "-o", output, "--set", f"epochs={epochs}", *more)


def test_train_says_how_it_went(run: Run, folder: Path, tmp_path: Path) -> None:
    model = tmp_path / "x.model"
    code, out, err = fitted(run, folder, model, "--json")
    found = json.loads(out)
    assert code == 0
    assert set(found) >= {"dev", "seconds", "tokens_per_second", "epochs", "features", "model_bytes"}
    assert 0 <= found["dev"]["mine"] <= 100
    assert 1 <= found["epochs"] <= 4
    assert found["model_bytes"] == model.stat().st_size
    assert "epoch 1 of 4" in err
    assert [path.name for path in tmp_path.iterdir()] == ["x.model"]
    assert "dev mine:" in fitted(run, folder, model)[1]


def test_the_same_seed_gives_the_same_bytes(run: Run, folder: Path, tmp_path: Path) -> None:
    for name, threads, seed in (("a", 1, 1), ("b", 2, 1), ("c", 1, 2)):
        fitted(run, folder, tmp_path / name, "--threads", threads, "--seed", seed, "--quiet")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert (tmp_path / "a").read_bytes() != (tmp_path / "c").read_bytes()


@pytest.mark.parametrize("method", ["crf", "perceptron"])
def test_ctrl_c_leaves_the_best_model_and_resume_ends_in_the_same_bytes(
    run: Run, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    fitted(run, folder, whole, method=method)

    @contextmanager
    def interrupting(*_: Any) -> Iterator[Callable[..., None]]:
        yield lambda done, total=None, text="": signal.raise_signal(signal.SIGINT) if done == 2 else None

    with monkeypatch.context() as patch:
        patch.setattr(duilian.cli.train, "bar", interrupting)
        code, out, err = fitted(run, folder, parts, method=method)
    assert (code, out) == (130, "")
    assert "--resume" in err
    assert run("evaluate", parts, folder / "gold.txt")[0] == 0
    assert (tmp_path / "parts.checkpoint").is_file()
    assert parts.read_bytes() != whole.read_bytes()
    assert fitted(run, folder, parts, "--resume", "--seed", 9, method=method)[0] == 2, "another seed, another run"
    assert fitted(run, folder, parts, "--resume", method=method)[0] == 0
    assert parts.read_bytes() == whole.read_bytes()
    assert not (tmp_path / "parts.checkpoint").exists()


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["nonsense", "--side", "a=train.txt"], "perceptron"),
        (["crf", "--side", "a=train.txt", "--task", "parse"], "segpos"),
        (["crf", "--side", "a=train.txt", "--side", "b=train.txt"], "one side"),
        (["crf", "--side", "train.txt"], "NAME=FILE"),
        (["crf", "--side", "a=train.txt", "--dev", "b=train.txt"], "no such side"),
        (["crf", "--side", "a=train.txt", "--set", "epoch=3"], "epochs"),
        (["crf", "--side", "a=train.txt", "--set", "epochs=many"], "whole number"),
        (["crf", "--side", "a:nonsense=train.txt"], "pku"),
        (["crf", "--side", "a=train.txt", "--standard", "mine"], "auto"),
    ],
)
def test_what_train_cannot_do_exits_2_and_names_what_it_can(
    run: Run, folder: Path, tmp_path: Path, arguments: list[str], names: str
) -> None:
    arguments = [text.replace("train.txt", str(folder / "train.txt")) for text in arguments]
    code, out, err = run("train", *arguments, "-o", tmp_path / "m")
    assert (code, out) == (2, "")
    assert names in err
    assert list(tmp_path.iterdir()) == []


def test_tags_are_checked_against_the_standard_of_that_name(run: Run, folder: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.txt"
    wrong.write_text(TRAIN.replace("/ns", "/place"), encoding="utf-8")
    model = tmp_path / "m"
    code, _, err = run("train", "crf", "--side", f"pku={wrong}", "-o", model)
    assert code == 1
    assert "place" in err
    assert not model.exists()
    assert run("train", "crf", "--side", f"other:pku={wrong}", "-o", model)[0] == 1
    assert run("train", "crf", "--side", f"pku={wrong}", "--standard", "auto", "-o", model, "--set", "epochs=1")[0] == 0
    code, _, err = run(
        "train",
        "crf",
        "--side",
        f"pku={folder / 'train.txt'}",
        "--dev",
        f"pku={wrong}",
        "-o",
        model,
        "--set",
        "epochs=1",
    )
    assert code == 0
    assert "warning" in err


def test_resume_without_a_checkpoint_says_so(run: Run, folder: Path, tmp_path: Path) -> None:
    code, _, err = fitted(run, folder, tmp_path / "m", "--resume")
    assert code == 1
    assert "m.checkpoint" in err


def test_several_files_of_one_side_are_one_corpus(run: Run, folder: Path, tmp_path: Path) -> None:
    lines = TRAIN.splitlines(keepends=True)
    (tmp_path / "1.txt").write_text("".join(lines[:2]), encoding="utf-8")
    (tmp_path / "2.tsv").write_text("好\ta\n\n我\tr\n好\ta\n。\tw\n\n", encoding="utf-8")
    one, two = tmp_path / "one", tmp_path / "two"
    run("train", "crf", "--side", f"m={folder / 'train.txt'}", "-o", one, "--set", "epochs=2")
    sides = ["--side", f"m={tmp_path / '1.txt'}", "--side", f"m={tmp_path / '2.tsv'}"]
    assert run("train", "crf", *sides, "-o", two, "--set", "epochs=2")[0] == 0
    assert one.read_bytes() == two.read_bytes()


def test_tag_writes_the_answer_and_nothing_else(run: Run, folder: Path, tmp_path: Path) -> None:
    code, out, err = run("tag", folder / "pos", folder / "words.txt", "--input-format", "segmented", "--quiet")
    assert (code, err) == (0, "")
    assert [line.split() for line in out.splitlines()] == [line.split() for line in TAGGED.splitlines()]
    output = tmp_path / "out.txt"
    code, out, err = run("tag", folder / "pos", folder / "gold.txt", "-o", output, "--json")
    assert set(json.loads(out)) == {"tokens", "seconds", "tokens_per_second"}
    assert json.loads(out)["tokens"] == 6
    assert output.read_text(encoding="utf-8") == TAGGED


def test_tag_segments_raw_text(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("tag", folder / "seg", folder / "raw.txt")[1].split() == ["我", "爱", "上海", "。"]
    assert run("tag", folder / "segpos", folder / "raw.txt")[1].split() == ["我/r", "爱/v", "上海/ns", "。/w"]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("他好\n".encode()), encoding="utf-8"))
    assert run("tag", folder / "seg", "-")[1].split() == ["他", "好"]


def test_threads_do_not_change_the_answer(run: Run, folder: Path, tmp_path: Path) -> None:
    many = tmp_path / "many.txt"
    many.write_text(WORDS * 500, encoding="utf-8")
    answers = [
        run("tag", folder / "pos", many, "--input-format", "segmented", "--threads", threads)[1] for threads in (1, 2)
    ]
    assert answers[0] == answers[1]
    assert answers[0].count("\n") == 1000


def test_constrained_tagging_keeps_what_is_there(run: Run, folder: Path, tmp_path: Path) -> None:
    given = tmp_path / "given.conllu"
    line = "{}\t{}\t_\t_\t{}\t_\t_\t_\t_\t_\n"
    given.write_text(line.format(1, "我", "_") + line.format(2, "爱", "ns") + "\n", encoding="utf-8")
    free = run("tag", folder / "pos", given)[1]
    bound = run("tag", folder / "pos", given, "--constrain")[1]
    assert [row.split("\t")[4] for row in free.splitlines() if row] == ["r", "v"]
    assert [row.split("\t")[4] for row in bound.splitlines() if row][1] == "ns"


def test_confidence_has_its_place_or_is_refused(run: Run, folder: Path) -> None:
    rows = run("tag", folder / "pos", folder / "gold.txt", "--format", "tsv", "--confidence")[1].splitlines()
    assert all(0 < float(row.split("\t")[-1]) <= 1 for row in rows if row)
    code, out, err = run("tag", folder / "pos", folder / "gold.txt", "--confidence")
    assert (code, out) == (2, "")
    assert "jsonl" in err


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["pos", "raw.txt"], "segment"),
        (["pos", "gold.txt", "--side", "other"], "mine"),
        (["pos", "gold.txt", "--side", "all"], "jsonl"),
        (["pos", "gold.txt", "--nbest", "2"], "jsonl"),
        (["pos", "gold.txt", "--format", "segmented"], "tags"),
        (["pos", "gold.txt", "--format", "nonsense"], "conllu"),
        (["pos", "gold.txt", "--json"], "-o"),
    ],
)
def test_what_tag_cannot_do_exits_2_and_names_what_it_can(
    run: Run, folder: Path, arguments: list[str], names: str
) -> None:
    code, out, err = run("tag", *(folder / text if (folder / text).is_file() else text for text in arguments))
    assert (code, out) == (2, ""), err
    assert names in err


def test_n_best_answers(run: Run, folder: Path) -> None:
    code, out, err = run("tag", folder / "pos", folder / "gold.txt", "--format", "jsonl", "--nbest", 3)
    assert code == 0, err
    sentences = [json.loads(line) for line in out.splitlines()]
    assert len(sentences) == 2
    assert "nbest" in json.dumps(sentences[0])


def test_every_side_in_jsonl(run: Run, folder: Path) -> None:
    code, out, err = run("tag", folder / "segpos", folder / "raw.txt", "--format", "jsonl", "--side", "all")
    assert code == 0, err
    assert "mine" in out


@pytest.mark.parametrize(
    ("task", "keys"),
    [("pos", {"accuracy", "oov_recall"}), ("seg", {"ws", "oov_recall"}), ("segpos", {"ws", "joint", "oov_recall"})],
)
def test_evaluate_a_model(run: Run, folder: Path, task: str, keys: set[str]) -> None:
    code, out, _ = run("evaluate", folder / task, folder / "train.txt", "--json")
    found = json.loads(out)
    assert code == 0
    assert set(found) & {"accuracy", "ws", "joint", "oov_recall"} == keys
    best = found["accuracy"] if task == "pos" else found["joint" if task == "segpos" else "ws"]["f"]
    assert best == 100
    assert found["oov_recall"] is None, "all words were seen in training"
    assert run("evaluate", folder / task, folder / "train.txt", "--side", "mine", "--json")[1] == out
    assert run("evaluate", folder / task, folder / "train.txt", "--side", "other")[0] == 2


def test_inspect_shows_what_a_model_holds(run: Run, folder: Path) -> None:
    found = json.loads(run("inspect", folder / "pos", "--strongest", 2, "--json")[1])["models"][str(folder / "pos")]
    assert (found["method"], found["task"]) == ("perceptron", "pos")
    assert found["sides"]["mine"]["tags"] == ["a", "ns", "r", "v", "w"]
    assert found["sides"]["mine"]["words"] == 7
    assert found["settings"]["epochs"] == 10
    assert all(len(entries) == 2 for entries in found["strongest_transitions"].values())
    weights = [entry["weight"] for entry in found["strongest_transitions"]["r"]]
    assert weights == sorted(weights, reverse=True)
    out = run("inspect", folder / "pos", folder / "gold.txt")[1]
    assert "side mine: 5 tags, 7 words of training" in out
    assert "sentences" in out


def test_the_demonstration_goes_all_the_way(
    run: Run, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [
        "他/r  爱/v  新/a  书/n  。/w",
        "我/r  爱/v  北京/ns  的/u  书/n",
        "书/n  好/a  。/w",
        "三/m  个/q  书/n  好/a",
    ]
    text = "\n".join([*lines, *lines[1:], lines[0]] * 4) + "\n"
    for part in ("train", "dev"):
        (tmp_path / f"{part}.txt").write_text(text, encoding="utf-8")
    parts = {"all": tmp_path / "train.txt", "train": tmp_path / "train.txt", "dev": tmp_path / "dev.txt"}
    monkeypatch.setattr(duilian.cli.demo, "get_dataset", lambda *_, **__: parts)
    monkeypatch.setattr(duilian.cli.demo, "SHORT", (3, 18))
    code, out, err = run("demo", "--out", tmp_path / "demo", "--lines", 32, "--quiet", "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert "made by rules" in found["rule_made"]
    assert set(found["scores"]) == {"as_is", "map", "crf", "coupled", "converted"}
    assert found["scores"]["map"]["joint"]["f"] == found["best_map"]
    assert found["scores"]["converted"]["joint"]["f"] == 100
    assert found["train"]["coupled"]["dev"]["rule-made"] == 100
    assert all(0 < pair["p_value"] <= 1 for pair in found["compare"].values())
    assert len(found["sentences"]) == duilian.cli.demo.SHOWN
    assert all(
        "".join(w for w, _ in one["pku"]) == "".join(w for w, _ in one["converted"]) for one in found["sentences"]
    )
    study = tmp_path / "demo" / "study"
    assert found["report"] == str(study / "report.html")
    page = Page((study / "report.html").read_text(encoding="utf-8"))
    assert (page.complaints, page.foreign, untraceable(page, study)) == ([], [], [])
    results = load(study)
    (table,) = results.plan.tables
    for name, scores in found["scores"].items():
        cell = results.cells[name].data["scores"]["rule-made"]
        assert cell["ws"] == scores["ws"]
        assert name == "as_is" or cell["joint"] == scores["joint"]
    assert {(a, b): one.p_value for (a, b, _), one in results.comparisons.items()} == {
        tuple(reversed(pair.split(" - "))): one["p_value"] for pair, one in found["compare"].items()
    }
    assert [row.id for row in table.rows] == list(found["scores"])
    assert len(page.drawings) in (5, 6)  # tags are drawn only if one of ten words or more changes
    files = {path.name for path in (tmp_path / "demo").iterdir()}
    assert {"rule-made-train.txt", "rule-made-converted.txt", "pku-train.txt"} <= files
    note = (tmp_path / "demo" / "rule-made-train.txt.source.txt").read_text(encoding="utf-8")
    assert "made by rules" in note
    train = {
        name: (tmp_path / "demo" / f"{name}-train.txt").read_text(encoding="utf-8") for name in ("pku", "rule-made")
    }
    assert [text.count("\n") for text in train.values()] == [24, 8]
    monkeypatch.setattr(duilian.report, "NEEDED", ("no_such_library",))
    code, out, err = run("demo", "--out", tmp_path / "demo", "--lines", 32)
    assert code == 0
    assert "pip install 'duilian[report]'" in err
    assert "as a page" not in out
    commands = [line.split()[2] for line in out.splitlines() if line.startswith("$ duilian")]
    assert set(commands) == {"data", "train", "tag", "convert", "compare"}
    assert "rule-made, converted" in out


def test_a_damaged_model_is_a_clear_error(run: Run, folder: Path, tmp_path: Path) -> None:
    whole = (folder / "pos").read_bytes()
    for cut in (9, 100, len(whole) - 1):
        (tmp_path / "m").write_bytes(whole[:cut])
        code, out, err = run("tag", tmp_path / "m", folder / "gold.txt")
        assert (code, out) == (1, "")
        assert "Traceback" not in err
    assert run("tag", folder / "gold.txt", folder / "gold.txt")[0] == 1


def test_confidences_in_a_file_are_measured_like_those_of_a_model(run: Run, folder: Path, tmp_path: Path) -> None:
    answer = tmp_path / "answer.tsv"
    assert run("tag", folder / "pos", folder / "gold.txt", "--format", "tsv", "--confidence", "-o", answer)[0] == 0
    jsonl = tmp_path / "answer.jsonl"
    assert run("tag", folder / "pos", folder / "gold.txt", "--format", "jsonl", "--confidence", "-o", jsonl)[0] == 0
    file = json.loads(run("evaluate", folder / "gold.txt", jsonl, "--calibration", "--json")[1])["calibration"]
    model = json.loads(run("evaluate", folder / "pos", folder / "gold.txt", "--calibration", "--json")[1])[
        "calibration"
    ]
    assert file["ece"] == pytest.approx(model["ece"], abs=1e-5)
    assert file["errors_in_least_confident_tenth"] == model["errors_in_least_confident_tenth"]
    code, _, err = run("evaluate", folder / "gold.txt", folder / "gold.txt", "--calibration")
    assert code == 2
    assert "--confidence" in err
