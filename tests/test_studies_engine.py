"""Studies as they run: cells in processes of their own, interruptions, failures, what is kept and what is told."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from commands import Run
from study_toys import asked, files, options, write
from toys import toy_sentences

from duilian import formats
from duilian.corpus import build
from duilian.errors import DuilianError, UsageError
from duilian.studies import engine
from duilian.studies.cell import CountingStages, Surroundings, finite, over_words
from duilian.studies.cell import run as run_cell
from duilian.studies.corpora import Corpora, Piece, SideData
from duilian.studies.engine import Prepared, Study, child, locked
from duilian.studies.forecast import Forecast, spoken
from duilian.studies.job import CORRECTED, Conversion, Job, Text
from duilian.studies.prepare import prepare
from duilian.studies.recipe import Kind, Recipe, scored
from duilian.studies.results import Results, Row, load

FACTS: dict[str, Any] = {"versions": {"duilian": "x"}, "commit": None, "machine": {"cores": 2}}


def toy_sides(folder: Path, task: str = "pos") -> list[SideData]:
    """a and b with their parts."""
    found = files(folder)
    return [
        SideData(name, role, *((Piece(found[f"{name}-{part}"]),) for part in ("train", "dev", "test")))
        for name, role in (("a", "target"), ("b", "source"))
    ]


def small(folder: Path, methods: Sequence[str] = ("hmm", "perceptron"), seeds: int = 1, name: str = "toy") -> Prepared:
    """A study of a few quick cells: one table, each row against the first."""
    sides = toy_sides(folder / "toys")

    def build(recipe: Recipe, pairs: Sequence[Corpora | None]) -> None:
        rows = []
        for method in methods:
            short = {} if method == "hmm" else {"epochs": 3}
            cells = recipe.run(method, sides[:1], **short)
            rows.append(Row(method, method, cells, methods[0] if rows else None))
        recipe.table("one", "One", "c", scored("pos", "a"), rows, "a")

    kind = Kind(name, "toy", ("pos",), {"pos": ("",)}, build)
    recipe = Recipe("pos", range(1, seeds + 1), False)
    corpora = [Corpora(tuple(sides))]
    kind.build(recipe, corpora)
    return recipe.prepared(kind, corpora, "duilian study toy", FACTS)


def numbers(results: Results) -> dict[str, Any]:
    """Everything in the cells but times, sizes in memory and speeds."""
    found = {}
    for id, cell in results.cells.items():
        data = {key: cell.data[key] for key in ("scores", "conversions", "inputs", "status")}
        data["dev"] = [entry["dev"] for entry in cell.data["history"]]
        found[id] = json.loads(json.dumps(data))
    return found


def test_a_study_that_was_interrupted_ends_with_the_same_numbers(tmp_path: Path) -> None:
    whole = Study(small(tmp_path), tmp_path / "whole").run()
    done: list[str] = []

    def stop(text: str) -> None:
        done.append(text)
        if text.startswith("cell 2"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Study(small(tmp_path), tmp_path / "parts", report=stop).run()
    first = load(tmp_path / "parts")
    assert list(first.cells) == [first.plan.cells[0]]
    stamp = (tmp_path / "parts" / "cells" / f"{first.plan.cells[0]}.json").stat().st_mtime_ns
    said: list[str] = []
    parts = Study(small(tmp_path), tmp_path / "parts", report=said.append).run()
    assert said[0].startswith("1 cells to run, 1 finished before")
    assert (tmp_path / "parts" / "cells" / f"{first.plan.cells[0]}.json").stat().st_mtime_ns == stamp
    assert numbers(parts) == numbers(whole)
    assert len(parts.comparisons) == 1
    assert parts.comparisons == whole.comparisons
    assert parts.plan == whole.plan
    table = parts.plan.tables[0]
    value = parts.figure(table.rows[1], table.columns[0])
    assert value.mean == parts.cells[table.rows[1].cells[0]].data["scores"]["a"]["accuracy"]
    cell = parts.cells[parts.plan.cells[1]]
    assert cell.data["peak_bytes"] > 10**7
    assert cell.data["seconds"] > 0
    assert cell.data["train"]["model_bytes"] > 0
    assert parts.answer(cell.id, "a") is not None
    assert not (tmp_path / "parts" / "work").exists()
    again: list[str] = []
    Study(small(tmp_path), tmp_path / "parts", report=again.append).run()
    assert again[0].startswith("0 cells to run, 2 finished")


def test_a_process_in_the_middle_of_a_cell_ends_with_the_study(tmp_path: Path) -> None:
    """Killed without a word: the child ends by itself, and no half a file is left."""
    code = (
        "import sys\nfrom pathlib import Path\nfrom duilian.studies.engine import child\n"
        f"child([sys.executable, '-c', {SLEEPER!r}, sys.argv[1]], print)"
    )
    mark = tmp_path / "pid"
    home = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = os.posix_spawn(sys.executable, [sys.executable, "-c", code, str(mark)], home)
    assert wait_for(lambda: mark.is_file() and mark.read_text().strip() != "")
    inner = int(mark.read_text())
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    assert wait_for(lambda: not alive(inner))


SLEEPER = """
import os, sys, threading, time
from pathlib import Path
from duilian.studies.cell import end_with_parent
threading.Thread(target=end_with_parent, daemon=True).start()
Path(sys.argv[1]).write_text(str(os.getpid()))
time.sleep(120)
"""


def wait_for(what: Any, seconds: float = 60.0) -> bool:
    """Whether something comes true in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if what():
            return True
        time.sleep(0.05)
    return False


def alive(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return status != "Z"


def test_a_failed_cell_is_told_and_never_filled(tmp_path: Path) -> None:
    prepared = small(tmp_path)
    bad = replace(prepared.jobs[0], sides=(replace(prepared.jobs[0].sides[0], name="a", standard="pku"),))
    bad_side = write(tmp_path / "strange.txt", [(["书"], ["no-such-tag"]), *toy_sentences(3)])
    bad = replace(bad, sides=(replace(bad.sides[0], train=(Piece(bad_side),)),))
    broken = Prepared(prepared.plan, (bad, *prepared.jobs[1:]))
    said: list[str] = []
    results = Study(broken, tmp_path / "out", report=said.append).run()
    failed, done = (results.cells[id] for id in results.plan.cells)
    assert failed.status == "failed"
    assert failed.error is not None
    assert "no-such-tag" in failed.error
    assert done.done
    assert any("failed after" in text and "no-such-tag" in text for text in said)
    assert results.comparisons == {}
    table = results.plan.tables[0]
    assert results.figure(table.rows[0], table.columns[0]).values == (None,)
    assert results.figure(table.rows[1], table.columns[0]).mean is not None
    mended = Study(prepared, tmp_path / "out").run()  # tried again, and compared now
    assert all(cell.done for cell in mended.cells.values())
    assert len(mended.comparisons) == 1


def test_what_needs_a_failed_cell_fails(tmp_path: Path) -> None:
    sides = toy_sides(tmp_path / "toys")
    first = Job("guide", "guide", "pos", 1, tuple(sides), {"epochs": 2}, keep=True)
    made = replace(sides[1].train[0], made_by=("guide", "b", "a"))
    second = Job("more", "hmm", "pos", 1, (replace(sides[0], train=(*sides[0].train, made)),))
    strange = write(tmp_path / "x.txt", [(["书"], ["zz"])])
    first = replace(first, sides=(replace(sides[0], standard="pku", train=(Piece(strange),)), sides[1]))
    study = Study(
        Prepared(replace(small(tmp_path).plan, cells=("guide", "more"), tables=()), (first, second)), tmp_path / "o"
    )
    results = study.run()
    assert results.cells["more"].error == "it needs the model of guide, which failed"


def test_converted_files_are_read_through_the_other_cells_model(tmp_path: Path) -> None:
    sides = toy_sides(tmp_path / "toys")
    first = Job("guide", "guide", "pos", 1, tuple(sides), {"epochs": 4}, keep=True)
    made = replace(sides[1].train[0], made_by=("guide", "b", "a"))
    more = replace(sides[0], train=(*sides[0].train, made))
    second = Job("more", "hmm", "pos", 1, (more,), tests=(Text("a", "a", sides[0].test),))
    plan = replace(small(tmp_path).plan, cells=("guide", "more"), tables=())
    study = Study(Prepared(plan, (first, second)), tmp_path / "out")
    results = study.run()
    assert results.cells["more"].done, results.cells["more"].error
    assert results.cells["more"].data["scores"]["a"]["accuracy"] == 100.0
    assert not (tmp_path / "out" / "work").exists()
    # The model is gone: a study in which the second cell is to be run again runs the first again, too.
    (tmp_path / "out" / "cells" / "more.json").unlink()
    again = Study(Prepared(plan, (first, second)), tmp_path / "out")
    again.begin()
    assert [job.id for job in again.waiting()] == ["guide", "more"]
    assert second.inputs({"guide": "x"}) != second.inputs({"guide": "y"})


def test_a_cell_that_is_asked_for_otherwise_is_run_again(tmp_path: Path) -> None:
    prepared = small(tmp_path, ["hmm"])
    Study(prepared, tmp_path / "out").run()
    (job,) = prepared.jobs
    for changed in (replace(job, settings={"fold": "no"}), replace(job, extras=("ranks",))):
        study = Study(Prepared(prepared.plan, (changed,)), tmp_path / "out")
        study.begin()
        assert study.waiting() == [changed]
    same = Study(prepared, tmp_path / "out")
    same.begin()
    assert same.waiting() == []
    next((tmp_path / "out" / "answers").iterdir()).unlink()
    assert same.waiting() == [job]
    (tmp_path / "out" / "cells" / f"{job.id}.json").write_text("{")
    assert same.waiting() == [job]


def test_a_folder_holds_one_study(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    first = small(tmp_path, ["hmm"])
    Study(first, out).begin()
    with pytest.raises(UsageError, match="holds the study toy"):
        Study(small(tmp_path, ["hmm"], name="other"), out).begin()
    with locked(out), pytest.raises(DuilianError, match="another study is running"):
        Study(first, out).run()


def test_a_child_tells_its_end_memory_and_last_word() -> None:
    heard: list[str] = []
    code = "import sys; x = bytearray(300_000_000); sys.stderr.write('one\\ntwo\\n'); sys.exit(3)"
    status, used, last = child([sys.executable, "-c", code], heard.append)
    assert (status, last, heard) == (3, "two", ["one", "two"])
    assert used["peak_bytes"] >= 300_000_000
    assert 0 < used["cpu_seconds"] < 60
    status, _, _ = child(
        [sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"], heard.append
    )
    assert status == -signal.SIGKILL


def test_an_interruption_ends_the_child(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []
    real = engine.subprocess.Popen

    def popen(*given: Any, **more: Any) -> Any:
        process = real(*given, **more)
        started.append(process.pid)
        return process

    monkeypatch.setattr(engine.subprocess, "Popen", popen)
    code = "import sys, time; sys.stderr.write('here\\n'); sys.stderr.flush(); time.sleep(600)"
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a background shell has it ignored
    try:
        with pytest.raises(KeyboardInterrupt):
            child([sys.executable, "-c", code], lambda text: os.kill(os.getpid(), signal.SIGINT))
    finally:
        signal.signal(signal.SIGINT, before)
    assert not alive(started[0])


def test_a_cell_says_all_that_its_extras_ask_for(tmp_path: Path) -> None:
    sides = toy_sides(tmp_path)
    job = Job(
        "coupled", "coupled", "pos", 1, tuple(sides), {"epochs": 3, "pruning_epochs": 2, "folds": 2},
        tests=tuple(Text(side.name, side.name, side.test) for side in sides),
        conversions=(Conversion("b", "a", sides[1].test, sides[0].test),),
        extras=("ranks", "mapping", "samples"),
    )  # fmt: skip
    found = finite(run_cell(job, Surroundings(tmp_path / "out")))
    json.dumps(found, allow_nan=False)
    assert set(found["scores"]) == {"a", "b"}
    one = found["scores"]["a"]
    assert {"accuracy", "oov_recall", "tokens", "per_tag", "confusion", "calibration", "risk"} <= set(one)
    assert sum(row[4] for row in one["calibration"]["bins"]) == one["tokens"]
    assert one["risk"][-1][0] == 1.0
    assert one["risk"][-1][1] == pytest.approx(100.0 - one["accuracy"], abs=1e-9)
    assert sum(tag["gold"] for tag in one["per_tag"].values()) == one["tokens"]
    assert sum(tag["right"] for tag in one["per_tag"].values()) * 100 / one["tokens"] == pytest.approx(one["accuracy"])
    assert found["conversions"]["b->a"]["accuracy"] > 50
    assert {entry["epoch"] for entry in found["history"]} == {1, 2, 3}
    assert set(found["tag"]) == {"a", "b", "b->a"}
    for side in ("a", "b"):
        ranks = found["ranks"][side]
        assert sum(ranks["kth_best"]) == pytest.approx(1.0, abs=1e-3)
        assert ranks["kth_best"] == sorted(ranks["kth_best"], reverse=True)
        assert 0 <= ranks["entropy"] < 2
        assert 1 <= ranks["mean_candidates"] <= 5
    assert found["mapping"]["sides"] == ["a", "b"]
    assert all(len(row) == 4 and row[3] for row in found["mapping"]["relations"])
    (sample, *_) = found["samples"]["b->a"]
    assert [word for word, _ in sample["given"]] == [word for word, _, _ in sample["answer"]]
    assert [word for word, _ in sample["gold"]] == [word for word, _ in sample["given"]]
    assert (tmp_path / "out" / "answers" / "coupled.b-to-a.jsonl").is_file()
    assert not list((tmp_path / "out" / "work").glob("*.model"))


def test_samples_without_gold_and_text_tagged_instead_of_converted(tmp_path: Path) -> None:
    sides = toy_sides(tmp_path)
    job = Job(
        "guide", "guide", "pos", 1, tuple(sides), {"epochs": 3},
        tests=(Text("b->a", "a", sides[0].test),), conversions=(Conversion("b", "a", sides[1].test),),
        extras=("samples",),
    )  # fmt: skip
    found = run_cell(job, Surroundings(tmp_path / "out"))
    assert found["scores"] == {}
    assert set(found["conversions"]) == {"b->a"}  # from the tagged text: there is no gold for what was converted
    assert found["samples"]["b->a"][0]["gold"] is None


def test_conversion_over_corrected_words(tmp_path: Path) -> None:
    given = write(tmp_path / "given.txt", [(["图书", "馆", "大"], ["N", "N", "A"])])
    gold = write(tmp_path / "gold.txt", [(["图书馆", "大"], ["n", "a"])])
    one, other = formats.read(given), formats.read(gold)
    both = over_words(one, other, "a")
    assert both.words("a") == [["图书馆", "大"]]
    assert both.tags("a") == [[None, None]]
    sides = toy_sides(tmp_path)
    job = Job(
        "c", "correspondence", "pos", 1, tuple(sides), {"estimator": "hmm-s"},
        conversions=(Conversion("b", "a", (Piece(given),), (Piece(gold),), True),),
    )  # fmt: skip
    found = run_cell(job, Surroundings(tmp_path / "out"))
    assert found["conversions"][f"b->a{CORRECTED}"]["accuracy"] == 100.0
    spaced = build([(["图 书", "馆", "大"], ["N", "N", "A"])])
    assert over_words(spaced, other, "a").words("a") == [["图书馆", "大"]]
    assert over_words(spaced, other, "a").words(spaced.layer().name) == [["图书", "馆", "大"]]
    with pytest.raises(DuilianError, match="same sentences"):
        over_words(one, formats.read(write(tmp_path / "x.txt", [(["大"], ["a"])])), "a")


def test_text_of_another_standard_is_scored_by_its_words(tmp_path: Path) -> None:
    sides = toy_sides(tmp_path)
    job = Job(
        "p", "perceptron", "seg", 1, (sides[0],), {"epochs": 4},
        tests=(Text("a", "a", sides[0].test), Text("b", "a", sides[1].test)),
    )  # fmt: skip
    found = run_cell(job, Surroundings(tmp_path / "out"))
    assert found["scores"]["a"]["ws"]["f"] == found["scores"]["b"]["ws"]["f"]


def test_stages_that_were_there_are_counted(tmp_path: Path) -> None:
    stages = CountingStages(tmp_path)
    assert stages.find("x") is None
    stages.keep("x", {"a": 1}, {})
    assert stages.find("x") is not None
    assert stages.hits == ["x"]


def test_a_forecast_learns_from_what_was_run(tmp_path: Path) -> None:
    jobs = list(small(tmp_path).jobs)
    forecast = Forecast.of(jobs)
    second = forecast.left[jobs[1].id]
    assert forecast.seconds == pytest.approx(sum(forecast.left.values()))
    forecast.done(jobs[0], 10 * forecast.left[jobs[0].id])
    assert second < forecast.seconds < 10 * second
    assert [spoken(value) for value in (3.2, 600, 9000)] == ["3 s", "10 min", "2.5 h"]


def test_the_command_prints_tables_and_json(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = Kind("all", "toy", ("pos",), {"pos": ("zh",)}, build_small)
    monkeypatch.setattr("duilian.studies.all_methods.KIND", kind)
    words = ("study", "all", *options(tmp_path), "--out", tmp_path / "out")
    code, out, said = run(*words, "--seeds", "2")
    assert code == 0, said
    assert "cell 1 of 4: hmm" in said
    assert "hmm, alone" in out
    assert "±" in out
    code, out, said = run(*words, "--seeds", "2", "--json")
    assert code == 0
    found = json.loads(out)
    assert "4 finished before" in said
    results = load(tmp_path / "out")
    row = found["tables"][0]["rows"][1]
    column = results.plan.tables[0].columns[0]
    assert row["values"]["a.accuracy"]["values"] == list(results.figure(results.plan.tables[0].rows[1], column).values)
    assert row["p_value"] == [one.p_value for one in results.comparisons.values()]
    assert str(tmp_path) not in results.plan.command
    assert "--target a=a-train.txt" in results.plan.command


def build_small(recipe: Recipe, pairs: Sequence[Corpora | None]) -> None:
    """A recipe of two rows."""
    assert pairs[0] is not None
    side = pairs[0].target
    rows = [
        Row("hmm", "hmm, alone", recipe.run("hmm", [side])),
        Row("perceptron", "perceptron", recipe.run("perceptron", [side], epochs=2), "hmm"),
    ]
    recipe.table("t", "Title", "Caption.", scored("pos", side.name), rows, side.name)


def test_the_command_ends_with_1_where_a_cell_failed(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = Kind("all", "toy", ("pos",), {"pos": ("zh",)}, build_small)
    monkeypatch.setattr("duilian.studies.all_methods.KIND", kind)

    def fails(command: Sequence[str], live: Any) -> tuple[int, dict[str, Any], str]:
        return -9, {"peak_bytes": 0, "cpu_seconds": 0.0}, "training"

    monkeypatch.setattr(engine, "child", fails)
    code, out, said = run("study", "all", *options(tmp_path), "--out", tmp_path / "out")
    assert code == 1
    assert "failed" in out
    assert "ended by signal 9 (out of memory?): training" in out
    assert "2 of 2 cells failed" in said


@pytest.mark.slow
def test_all_methods_run_on_toys(tmp_path: Path) -> None:
    prepared = prepare(replace(asked("all", tmp_path), quick=True))
    results = Study(prepared, tmp_path / "out").run()
    assert {id: cell.error for id, cell in results.cells.items() if not cell.done} == {}
    for table in results.plan.tables:
        for row in table.rows:
            assert any(results.figure(row, column).mean is not None for column in table.columns)
            if row.against is not None:
                assert None not in results.comparisons_of(table, row)


def test_a_cells_memory_is_its_own() -> None:
    code = (
        "import sys\nfrom duilian.studies.engine import child\nx = bytearray(600_000_000)\n"
        "inner = 'import sys; from duilian.studies.cell import peak_memory; sys.stderr.write(str(peak_memory()))'\n"
        "print(child([sys.executable, '-c', inner], lambda text: None)[2])"
    )
    home = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=home)
    assert 20_000_000 < int(done.stdout) < 500_000_000
