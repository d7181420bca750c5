"""Other programs beside ours: they get the same features, wait for their turn, and end in the same tables."""

from __future__ import annotations

import csv
import json
import os
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import comparisons
import contest
import peer_crfsuite
import peer_ltp
import peers
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duilian.corpus import build
from duilian.errors import DuilianError
from duilian.features import TEMPLATES, Featurizer
from duilian.lifting import units_of

words = st.text(alphabet="上海北12年ab，。", min_size=1, max_size=6)
sentences = st.lists(st.lists(words, min_size=1, max_size=5), min_size=1, max_size=3)


# python-crfsuite


def occurrences(rows: Sequence[Sequence[Any]]) -> list[tuple[int, ...]]:
    """For each distinct feature the units that have it, sorted: equal for two ways to name the same features."""
    places: dict[Any, list[int]] = {}
    for unit, row in enumerate(rows):
        for feature in row:
            places.setdefault(feature, []).append(unit)
    return sorted(map(tuple, places.values()))


@given(sentences)
def test_strings_are_the_features_that_we_hash(sentences: list[list[str]]) -> None:
    corpus = build([(sentence, ["x"] * len(sentence)) for sentence in sentences])
    for templates, task in (("li2015", "pos"), ("jiang2012", "seg")):
        units = units_of(corpus, corpus.layer(), task)
        unit = "word" if task == "pos" else "character"
        hashes = Featurizer(TEMPLATES[templates], unit, fold=False).hashes(units)
        if task == "pos":
            strings = [row for sentence in sentences for row in peer_crfsuite.li2015(sentence)]
        else:
            strings = [row for sentence in sentences for row in peer_crfsuite.jiang2012("".join(sentence))]
        assert [len(row) for row in strings] == hashes.lengths.tolist()
        assert occurrences(strings) == occurrences([row.tolist() for row in hashes])


def test_occurrences_tell_other_features_apart() -> None:
    assert occurrences([["a", "b"], ["a"]]) == occurrences([[1, 2], [1]])
    assert occurrences([["a", "b"], ["a"]]) != occurrences([["a", "b"], ["c"]])
    assert occurrences([["a", "a"]]) != occurrences([["a"]])


@pytest.mark.parametrize("algorithm", ["l2sgd", "ap"])
def test_the_peer_waits_between_epochs(algorithm: str) -> None:
    pytest.importorskip("pycrfsuite")
    before = threading.active_count()
    walk = peer_crfsuite.epochs(algorithm, [["我", "爱"], ["好"]], [["r", "v"], ["a"]], peer_crfsuite.li2015, 3)
    seconds = [next(walk)]
    assert threading.active_count() == before + 1
    seconds.extend(walk)
    assert len(seconds) == 3
    assert min(seconds) >= 0
    assert threading.active_count() == before


def test_the_peer_hands_over_its_errors() -> None:
    pytest.importorskip("pycrfsuite")
    with pytest.raises(IndexError):
        list(peer_crfsuite.epochs("ap", [[""]], [["x"]], peer_crfsuite.li2015, 2))


@pytest.mark.parametrize(
    ("task", "text", "answer"),
    [
        ("pos", "我 爱 北京 。\n", "我/r  爱/v  北京/ns  。/w\n"),
        ("seg", "我爱北京。\n", "我  爱  北京  。\n"),
        ("segpos", "我爱北京。\n", "我/r  爱/v  北京/ns  。/w\n"),
    ],
)
def test_crfsuite_trains_and_tags_files(corpus_file: Path, tmp_path: Path, task: str, text: str, answer: str) -> None:
    pytest.importorskip("pycrfsuite")
    (tmp_path / "text").write_text(text, encoding="utf-8")
    peer_crfsuite.main(["train", "ap", task, str(corpus_file), str(tmp_path / "model"), "10"])
    peer_crfsuite.main(["tag", task, str(tmp_path / "model"), str(tmp_path / "text"), str(tmp_path / "out")])
    found = (tmp_path / "out").read_text(encoding="utf-8")
    # The peer shuffles by the random numbers of the process: which tag it learns for 爱 is its own affair.
    assert [word.partition("/")[0] for word in found.split()] == [word.partition("/")[0] for word in answer.split()]
    assert {word.partition("/")[2] for word in found.split()} <= {"", "r", "v", "a", "ns", "w"}
    assert ("/" in found) == ("/" in answer)
    assert found.endswith("\n")


def test_labels_of_characters_and_back() -> None:
    pairs = [("我", "r"), ("北京", "ns"), ("天安门", "ns")]
    assert peer_crfsuite.units("seg", pairs) == ("我北京天安门", list("SBEBME"))
    given, labels = peer_crfsuite.units("segpos", pairs)
    assert labels == ["S@r", "B@ns", "E@ns", "B@ns", "M@ns", "E@ns"]
    assert peer_crfsuite.answer("segpos", given, labels) == "我/r  北京/ns  天安门/ns"
    assert peer_crfsuite.answer("seg", "北京人", ["E", "M", "B"]) == "北京  人"


# ltp-extension


@pytest.mark.parametrize(("task", "text"), [("pos", "我 爱 北京 。\n"), ("seg", "我爱北京。\n")])
@pytest.mark.parametrize("threads", [1, 2])
def test_ltp_trains_and_tags_files(corpus_file: Path, tmp_path: Path, task: str, text: str, threads: int) -> None:
    pytest.importorskip("ltp_extension")
    train = annotated(corpus_file, tmp_path / "train", task)
    (tmp_path / "text").write_text(text, encoding="utf-8")
    model, out = str(tmp_path / "model"), tmp_path / "out"
    peer_ltp.main(["train", task, str(train), str(train), model, "10"])
    peer_ltp.main(["tag", task, model, str(tmp_path / "text"), str(out), str(threads)])
    expected = "我/r  爱/v  北京/ns  。/w\n" if task == "pos" else "我  爱  北京  。\n"
    assert out.read_text(encoding="utf-8") == expected


def annotated(corpus: Path, path: Path, task: str) -> Path:
    """Words with tags, or words alone."""
    text = corpus.read_text(encoding="utf-8")
    if task == "seg":
        text = "\n".join(" ".join(token.rpartition("/")[0] for token in line.split()) for line in text.splitlines())
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def long_walk(corpus_file: Path, tmp_path: Path) -> Iterator[float]:
    """Three epochs of ltp on the corpus a thousand times over."""
    pytest.importorskip("ltp_extension")
    file = annotated(corpus_file, tmp_path / "train", "pos")
    file.write_text(file.read_text(encoding="utf-8") * 1000, encoding="utf-8")
    return peer_ltp.epochs("pos", file, 3)


def test_ltp_waits_between_epochs(long_walk: Iterator[float]) -> None:
    seconds = [next(long_walk)]
    if Path("/proc").is_dir():
        (child,) = children_of_this_process()
        deadline = time.monotonic() + 10
        while status(child, "State:") != "T":
            assert time.monotonic() < deadline
        before = peer_ltp.clock_of(child)()
        time.sleep(0.1)
        assert peer_ltp.clock_of(child)() == before
    seconds.extend(long_walk)
    assert len(seconds) == 3
    assert 0 < min(seconds) <= max(seconds) < 10
    assert children_of_this_process() == []


@pytest.mark.parametrize("taken", [1, 3])
def test_ltp_ends_with_those_who_asked(long_walk: Iterator[float], taken: int) -> None:
    for _ in range(taken):
        next(long_walk)
    long_walk.close()  # type: ignore[attr-defined]
    assert children_of_this_process() == []


def children_of_this_process() -> list[int]:
    """Processes that train for us; none where the system does not tell."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if status(int(path.name), "PPid:") == str(os.getpid()) and b"epochs" in (path / "cmdline").read_bytes():
                found.append(int(path.name))
        except OSError:  # it ended meanwhile
            continue
    return found


def status(process: int, field: str) -> str:
    """A field of what the system knows of a process: State is R, S, T, Z."""
    lines = Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines()
    return next(line.split()[1] for line in lines if line.startswith(field))


def test_ltp_that_fails_is_an_error(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("ltp_extension")
    with pytest.raises(DuilianError, match="0 of 2 epochs"):
        list(peer_ltp.epochs("seg", tmp_path / "missing", 2))


# Comparisons


def compare(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[str, str]:
    peers.main([*map(str, arguments)])
    captured = capsys.readouterr()
    return captured.out, captured.err


def installed(task: str = "seg") -> set[str]:
    """Names of the peers that are here and know the task."""
    programs = [peer for _, group in contest.CONTESTS for peer in group]
    return {one.name for one in programs if one.installed and one.can(contest.TASKS[task])}


def test_every_target_is_of_something_that_is_compared() -> None:
    ours = {own.name for group, _ in contest.CONTESTS for own in group}
    theirs = {(own.name, peer.name) for group, peers in contest.CONTESTS for own in group for peer in peers}
    for what, own, peer in comparisons.TARGETS:
        step, _, task = what.rpartition(" ")
        assert step in ("epochs", "file to model", "score", "tagging")
        assert task in contest.TASKS
        assert own in ours
        assert (own, peer) in theirs


@pytest.mark.slow
def test_epochs_of_all_take_turns(capsys: pytest.CaptureFixture[str], corpus_file: Path, tmp_path: Path) -> None:
    history = tmp_path / "history.csv"
    arguments = ("pos", "seg", "segpos", "--steps", "epochs", "--quick", "--data", corpus_file, "--record", history)
    out, err = compare(capsys, *arguments, "--json")
    found = json.loads(out)
    assert list(found["tables"]) == ["pos", "seg", "segpos"]
    for task, rows in found["tables"].items():
        assert installed(task) <= set(rows)
        assert all(row["epoch_per_second"] > 0 for name, row in rows.items() if "ltp" not in name)
        assert all(row["score"] is None for row in rows.values())
    for one in found["measurements"]:
        assert one["name"].startswith("epochs ")
        assert (one["ratio"] is None) == (not one["peer_runs"])
    assert f"seg, epochs: {', '.join(one.name for one in contest.CONTESTS[0][0])}" in err
    rows = list(csv.DictReader(history.read_text(encoding="utf-8").splitlines()))
    assert [row["name"] for row in rows] == [one["name"] for one in found["measurements"]]


@pytest.mark.slow
def test_whole_commands_are_compared(capsys: pytest.CaptureFixture[str], corpus_file: Path) -> None:
    out, _ = compare(capsys, "seg", "--steps", "trainings,tagging", "--quick", "--data", corpus_file, "--json", "-q")
    found = json.loads(out)
    rows = found["tables"]["seg"]
    assert installed() <= set(rows)
    for row in rows.values():
        figures = {key: row[key] for key in row if key != "epoch_per_second"}
        assert min(figures.values()) > 0
        assert 50 < row["score"] <= 100
        assert row["epoch_per_second"] is None
    steps = {one["name"].rpartition(" seg")[0] for one in found["measurements"]}
    assert steps == {"file to model", "score", "tagging"}


@pytest.mark.slow
def test_the_coupled_model_is_compared(capsys: pytest.CaptureFixture[str], corpus_file: Path) -> None:
    out, _ = compare(capsys, "coupled", "--quick", "--data", corpus_file, "--json", "-q")
    found = json.loads(out)["measurements"]
    assert [one["name"] for one in found] == [f"coupled {name}" for name in comparisons.COUPLED]
    assert all(one["best"] > 0 for one in found)
    assert all(one["ratio"] is not None for one in found if installed() & {"crfsuite l2sgd"})


def test_missing_peers_are_named(
    capsys: pytest.CaptureFixture[str], corpus_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contest, "find_spec", lambda name: None)
    arguments = ("segpos", "--steps", "epochs", "--quick", "--data", corpus_file)
    out, err = compare(capsys, *arguments)
    for package in ("python-crfsuite", "ltp-extension"):
        assert f"{package} is not installed" in out
        assert f"{package} is not installed" in err
    assert "duilian perceptron, plain features" in out
    found = json.loads(compare(capsys, *arguments, "--json", "--quiet")[0])
    assert found["missing"] == ["python-crfsuite", "ltp-extension"]
    assert all(one["peer"] is None and one["ratio"] is None for one in found["measurements"])


def test_strange_names_are_errors(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for arguments in (["frobnicate"], ["pos", "--steps", "epochs,frobnicate"], ["--beside", "frobnicate"]):
        with pytest.raises(SystemExit) as exit:
            peers.main(arguments)
        assert exit.value.code == 2
        assert "'frobnicate'; there are" in capsys.readouterr().err
    (tmp_path / "raw.txt").write_text("没有标注\n", encoding="utf-8")
    with pytest.raises(SystemExit, match="ten sentences"):
        peers.main(["pos", "--data", str(tmp_path / "raw.txt"), "-q"])


def test_peers_can_be_left_out(capsys: pytest.CaptureFixture[str], corpus_file: Path) -> None:
    pytest.importorskip("pycrfsuite")
    arguments = ("seg", "--steps", "epochs", "--quick", "--data", corpus_file, "--json", "--quiet")
    found = json.loads(compare(capsys, *arguments, "--beside", "crfsuite ap")[0])
    assert {one["peer"] for one in found["measurements"]} == {"crfsuite ap"}
    assert all("perceptron" in one["name"] for one in found["measurements"]), "whom nobody is beside does not run"


def test_runs_alternate(corpus_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[str] = []

    class Counted(contest.Own):
        def epochs(self, arena: contest.Arena, n: int) -> Iterator[float]:
            for number in range(n):
                heard.append(self.name)
                yield 1.0 + number

    group = (Counted("crf", True), Counted("perceptron", True))
    bench = contest.Bench(corpus_file, tmp_path, peers.QUICK)
    comparison = comparisons.Comparison(contest.Arena(bench, contest.TASKS["pos"]), lambda text: None, group)
    found = list(comparison.epochs(group))
    names = [one.name for one in group]
    assert heard == names * (peers.QUICK.epochs + 1)
    n_words = len(bench.parts[0].layer())
    assert [one.runs for one in found] == [(n_words / 2.0,)] * 2
