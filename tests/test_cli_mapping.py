"""duilian mapping as a user meets it: induced, written, edited, shown, used for training."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import Run

from duilian.cli import main

ONE = "我/r  爱/v  北京/ns\n他/r  爱/v  上海/ns  。/w\n好/a\n我/r  好/a  。/w\n"
TWO = "我/PN  爱/VV  北京/NR\n他/PN  好/VA  。/PU\n上海/NR  好/VA  。/PU\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two corpora, a model of one, and a coupled one."""
    folder = tmp_path_factory.mktemp("mapping")
    (folder / "one.txt").write_text(ONE, encoding="utf-8")
    (folder / "two.txt").write_text(TWO, encoding="utf-8")
    sides = ["--side", f"one={folder / 'one.txt'}", "--side", f"two={folder / 'two.txt'}"]
    for method, given, more in (
        ("perceptron", sides[:2], ["dropout=0", "epochs=10"]),
        ("coupled", sides, ["pruning=none", "epochs=6", "eta=0.5"]),
    ):
        settings = [text for setting in more for text in ("--set", setting)]
        with pytest.raises(SystemExit) as exit:
            main(["train", method, *given, "--quiet", "-o", str(folder / method), *settings])
        assert exit.value.code == 0
    return folder


def sides(folder: Path) -> list[str]:
    return ["--side", f"two={folder / 'two.txt'}", "--side", f"one={folder / 'one.txt'}"]


def test_an_automatic_mapping_goes_into_a_file_and_trains(run: Run, folder: Path, tmp_path: Path) -> None:
    rules = tmp_path / "two-one.rules"
    model = f"one={folder / 'perceptron'}"
    code, out, err = run("mapping", "automatic", *sides(folder), "--model", model, "-o", rules)
    assert (code, out) == (0, "")
    assert "relations in" in err
    text = rules.read_text(encoding="utf-8")
    assert "# sides: two | one" in text
    assert "PN r  # 2" in text
    more = ("--set", "pruning=none", "--set", "epochs=2", "--set", "eta=0.5", "--quiet")
    trained = run("train", "coupled", *sides(folder), "--set", f"mapping={rules}", *more, "-o", tmp_path / "m")
    assert trained[0] == 0, trained[2]
    code, out, _ = run("mapping", "automatic", *sides(folder), "--model", model, "--examples", 1)
    assert code == 0
    assert "1: [我]爱北京" in out


def test_json_tells_every_relation(run: Run, folder: Path) -> None:
    code, out, _ = run(
        "mapping", "automatic", *sides(folder), "--model", f"one={folder / 'perceptron'}", "--examples", 2, "--json"
    )
    found = json.loads(out)
    assert code == 0
    assert set(found) == {"sides", "relations", "without_relation"}
    assert found["sides"]["two"] == ["NR", "PN", "PU", "VA", "VV"]
    (pair,) = [one for one in found["relations"] if one["labels"] == ["NR", "ns"]]
    assert (pair["count"], pair["weak"]) == (2, False)
    assert [place["words"] for place in pair["examples"]] == [["北京", "北京"], ["上海", "上海"]]


def test_common_words_need_no_model(run: Run, folder: Path) -> None:
    found = json.loads(run("mapping", "words", *sides(folder), "--json")[1])
    counts = {tuple(one["labels"]): one["count"] for one in found["relations"]}
    assert counts == {("PN", "r"): 2, ("VV", "v"): 1, ("NR", "ns"): 2, ("VA", "a"): 1, ("PU", "w"): 1}
    assert run("mapping", "words", *sides(folder)[:2])[0] == 2


def test_a_coupled_model_shows_its_bundles(run: Run, folder: Path) -> None:
    side = ["--side", f"one={folder / 'one.txt'}"]
    code, out, err = run("mapping", "model", folder / "coupled", *side, "--json")
    assert code == 0, err
    found = json.loads(out)
    assert sum(one["count"] for one in found["relations"]) == 11
    assert list(found["sides"]) == ["one", "two"]
    code, out, _ = run("mapping", "model", folder / "coupled", *side, "--heat", "--sure", 0.01)
    assert code == 0
    assert "one down, two across: tenths of the row" in out
    assert run("mapping", "model", folder / "perceptron", *side)[0] == 2


def test_a_linguist_edits_the_file(run: Run, folder: Path, tmp_path: Path) -> None:
    rules, again, turned = tmp_path / "a.rules", tmp_path / "b.rules", tmp_path / "c.rules"
    run("mapping", "words", *sides(folder), "-o", rules)
    assert run("mapping", "export", rules, "-o", again)[0] == 0
    assert again.read_text(encoding="utf-8") == rules.read_text(encoding="utf-8")
    rules.write_text(rules.read_text(encoding="utf-8") + "VA v?  # by hand\n", encoding="utf-8")
    code, out, _ = run("mapping", "show", rules)
    assert code == 0
    assert "VA" in out
    assert "weak" in out
    assert "two down, one across" in out
    assert run("mapping", "export", rules, again, "--tight", "--least", 3, "-o", again)[0] == 0
    shown = json.loads(run("mapping", "show", again, "--json")[1])
    assert {tuple(one["labels"]): one["count"] for one in shown["relations"]} == {("PN", "r"): 4, ("NR", "ns"): 4}
    assert run("mapping", "export", rules, "--only", "one,two", "-o", turned)[0] == 0
    assert "a VA  # 1" in turned.read_text(encoding="utf-8")
    assert run("mapping", "export", rules, "--only", "one,three", "-o", turned)[0] == 2
    assert run("mapping", "export", rules, "--loose", "-o", turned)[0] == 2
    rules.write_text("N* ns\nPN r\n", encoding="utf-8")
    assert run("mapping", "show", rules)[0] == 1
    assert run("mapping", "export", rules, *sides(folder), "--loose", "-o", turned)[0] == 0
    assert "NR ns" in turned.read_text(encoding="utf-8")


def test_tables_and_pictures(run: Run, folder: Path, tmp_path: Path) -> None:
    rules = tmp_path / "a.rules"
    page, drawn = tmp_path / "a.html", tmp_path / "a.svg"
    assert run("mapping", "words", *sides(folder), "-o", rules, "--picture", page)[0] == 0
    assert "<svg" in page.read_text(encoding="utf-8")
    assert run("mapping", "show", rules, "--picture", drawn, "--no-heat")[0] == 0
    assert drawn.read_text(encoding="utf-8").startswith("<svg")
    assert run("mapping", "show", rules, "--picture", tmp_path / "a.png")[0] == 2
    run("mapping", "export", rules, "-o", tmp_path / "a.tsv")
    lines = (tmp_path / "a.tsv").read_text(encoding="utf-8").splitlines()
    assert lines[0].split("\t") == ["two", "one", "count", "weak"]
    assert "PN\tr\t2\t" in lines
    run("mapping", "export", rules, "-o", tmp_path / "a.json")
    assert len(json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))["relations"]) == 5


def test_examples_of_a_file_from_text_that_has_both_sides(run: Run, folder: Path, tmp_path: Path) -> None:
    rules, both = tmp_path / "a.rules", tmp_path / "both.jsonl"
    run("mapping", "words", *sides(folder), "-o", rules)
    run("tag", folder / "coupled", folder / "one.txt", "--side", "all", "--format", "jsonl", "-o", both, "--quiet")
    code, out, err = run("mapping", "show", rules, "--in", both, "--examples", 1, "--no-heat")
    assert code == 0, err
    assert "[" in out
    assert run("mapping", "show", rules, "--in", folder / "one.txt")[0] == 2


def test_three_sides(run: Run, folder: Path, tmp_path: Path) -> None:
    rules, pair = tmp_path / "a.rules", tmp_path / "b.rules"
    three = [*sides(folder), "--side", f"three={folder / 'two.txt'}"]
    assert run("mapping", "words", *three, "-o", rules)[0] == 0
    assert "PN | r | PN  # 2" in rules.read_text(encoding="utf-8")
    code, out, _ = run("mapping", "show", rules)
    assert code == 0
    assert "across" not in out
    assert run("mapping", "show", rules, "--picture", tmp_path / "a.svg")[0] == 2
    assert run("mapping", "export", rules, "--only", "three,one", "-o", pair)[0] == 0
    assert "three down, one across" in run("mapping", "show", pair)[1]
