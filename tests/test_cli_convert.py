"""duilian convert as a user meets it: formats, labels that are kept, confidences, review list, provenance, sizes."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from commands import Run

import duilian
from duilian import formats
from duilian.cli import main

ONE = "我/r  爱/v  北京/ns\n他/r  爱/v  上海/ns  。/w\n好/a\n我/r  好/a  。/w\n"
TWO = "我/PN  爱/VV  北京/NR\n他/PN  好/VA  。/PU\n上海/NR  好/VA  。/PU\n"
GIVEN = "他/r  爱/v  北京/ns  。/w\n我/r  好/a\n"
WANTED = "他/PN  爱/VV  北京/NR  。/PU\n我/PN  好/VA\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Coupled models of words and of characters that know these few sentences by heart, and a corpus to convert."""
    folder = tmp_path_factory.mktemp("convert")
    for name, text in (("one", ONE), ("two", TWO), ("given", GIVEN)):
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")
    sides = [text for name in ("one", "two") for text in ("--side", f"{name}={folder / name}.txt")]
    known = ("pruning=none", "epochs=12", "eta=0.5", "hide=0", "side_dropout=0.3", "joint_cutoff=1", "associations=0")
    settings = [text for one in known for text in ("--set", one)]
    settings += ["--licence", "one=CC BY-SA 4.0"]
    for task in ("pos", "segpos"):
        with pytest.raises(SystemExit) as exit:
            main(["train", "coupled", "--task", task, *sides, *settings, "--quiet", "-o", str(folder / task)])
        assert exit.value.code == 0
    return folder


WAY = ("--from", "one", "--to", "two")


@pytest.mark.parametrize("task", ["pos", "segpos"])
def test_convert_answers_in_the_other_standard(run: Run, folder: Path, task: str) -> None:
    code, out, err = run("convert", folder / task, folder / "given.txt", *WAY, "--quiet")
    assert (code, err) == (0, "")
    assert out.split() == WANTED.split()


@pytest.mark.parametrize("name", [name for name, one in formats.FORMATS.items() if one.write and one.keeps_tags])
def test_every_format_that_holds_tags_can_be_converted(run: Run, folder: Path, tmp_path: Path, name: str) -> None:
    if name == "coupled10":
        pytest.skip("holds labels of two sides at once")
    given, output = tmp_path / "given", tmp_path / "out"
    formats.write(given, formats.read(folder / "given.txt"), name)
    more = ("--input-format", name, "--format", name, "-o", output)
    code, out, err = run("convert", folder / "pos", given, *WAY, *more)
    assert (code, out) == (0, ""), err
    found = formats.read(output, format=name)
    assert found.words() == formats.read(folder / "given.txt").words()
    assert [tag for sentence in found.tags() for tag in sentence] == [word.split("/")[1] for word in WANTED.split()]


def test_convert_reads_standard_input(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(GIVEN.encode()), encoding="utf-8"))
    assert run("convert", folder / "segpos", "-", *WAY)[1].split() == WANTED.split()


def test_json_says_how_it_went(run: Run, folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    more = ("--format", "jsonl", "--confidence", "-o", output, "--json")
    found = json.loads(run("convert", folder / "segpos", folder / "given.txt", *WAY, *more)[1])
    assert set(found) == {"tokens", "seconds", "tokens_per_second", "unknown_tags", "confidence"}
    assert (found["tokens"], found["unknown_tags"]) == (6, {})
    sure = formats.read(output).layer().confidence
    assert sure is not None
    assert found["confidence"] == pytest.approx(sum(sure.tolist()) / 6, rel=1e-5)
    assert all(0.5 < value <= 1 for value in sure.tolist())
    assert run("convert", folder / "pos", folder / "given.txt", *WAY, "--json")[0] == 2
    plain = json.loads(run("convert", folder / "pos", folder / "given.txt", *WAY, "-o", output, "--json")[1])
    assert plain["confidence"] is None


def test_the_score_of_one_answer_is_the_probability_of_the_sentence(run: Run, folder: Path, tmp_path: Path) -> None:
    single = tmp_path / "single.txt"
    single.write_text("好/a\n", encoding="utf-8")
    more = ("--format", "jsonl", "--confidence", "--nbest", 4)
    lines = run("convert", folder / "pos", single, *WAY, *more)[1].splitlines()
    side = json.loads(lines[-1])["sides"]["tags"]
    scores = [answer["score"] for answer in side["nbest"]]
    assert scores == sorted(scores, reverse=True)
    assert side["confidence"][0] == pytest.approx(scores[0], rel=1e-4), "of one word, the word's"
    assert side["nbest"][0]["labels"] == ["VA"]
    assert len({tuple(answer["labels"]) for answer in side["nbest"]}) == len(scores) == 4
    assert 0.9 < sum(scores) <= 1 + 1e-5


@pytest.mark.parametrize("keep", [(), ("--keep", "two")])
def test_labels_of_the_target_that_are_there_are_kept(run: Run, folder: Path, tmp_path: Path, keep: tuple[str]) -> None:
    both = tmp_path / "both.jsonl"
    units = [[0, 1], [1, 2]]
    sides = {"one": {"units": units, "labels": ["r", "a"]}, "two": {"units": units, "labels": ["NR", None]}}
    both.write_text(json.dumps({"text": "我好", "sides": sides}) + "\n", encoding="utf-8")
    code, out, err = run("convert", folder / "pos", f"{both}#one", *WAY, "--nbest", 2, *keep)
    assert code == 0, err
    side = json.loads(out.splitlines()[-1])["sides"]["one"]
    assert side["labels"] == ["NR", "VA"], "what stood there, and what the model says of the rest"
    assert all(answer["labels"][0] == "NR" for answer in side["nbest"])
    code, _, err = run("convert", folder / "pos", f"{both}#one", *WAY, "--keep", "three")
    assert code == 2
    assert "beside one there are two" in err


def test_a_column_of_a_table_keeps_what_another_has(run: Run, folder: Path, tmp_path: Path) -> None:
    rows = "1\t我\t_\tr\tNR\t_\t_\t_\t_\t_\n2\t好\t_\ta\t_\t_\t_\t_\t_\t_\n\n"
    given = tmp_path / "half.conllu"
    given.write_text(rows, encoding="utf-8")
    code, out, err = run("convert", folder / "pos", f"{given}#upos", *WAY, "--keep", "xpos")
    assert code == 0, err
    assert [line.split("\t")[3] for line in out.splitlines() if line[:1].isdigit()] == ["NR", "VA"]


def test_unknown_tags_are_counted_and_leave_their_words_free(run: Run, folder: Path, tmp_path: Path) -> None:
    given = tmp_path / "given.txt"
    given.write_text("我/r  爱/strange  北京/ns  爱/strange\n", encoding="utf-8")
    code, out, err = run("convert", folder / "pos", given, *WAY)
    assert code == 0
    assert out.split()[0] == "我/PN"
    assert "2 words have a tag that one does not know: strange 2" in err
    found = json.loads(run("convert", folder / "pos", given, *WAY, "-o", tmp_path / "o", "--json")[1])
    assert found["unknown_tags"] == {"strange": 2}


@pytest.mark.parametrize("task", ["pos", "segpos"])
def test_the_review_list_has_the_least_certain_words_first(run: Run, folder: Path, tmp_path: Path, task: str) -> None:
    review, given = tmp_path / "review.tsv", tmp_path / "given.txt"
    given.write_text(GIVEN * 3, encoding="utf-8")
    output = tmp_path / "out.jsonl"
    more = ("--review", review, "--review-tokens", 4, "--format", "jsonl", "--confidence", "-o", output)
    assert run("convert", folder / task, given, *WAY, *more)[0] == 0
    title, *lines = [line.split("\t") for line in review.read_text(encoding="utf-8").splitlines()]
    assert title[:3] == ["confidence", "sentence", "word number"]
    found = formats.read(output)
    sure = found.layer().confidence
    assert sure is not None
    assert [float(line[0]) for line in lines] == pytest.approx(sorted(sure.tolist())[:4], abs=1e-4)
    for line in lines:
        sentence, number = int(line[1]) - 1, int(line[2]) - 1
        assert line[4] == found.words()[sentence][number]
        assert line[5] == found.tags()[sentence][number]
        assert line[4] in line[7], "what the word was made from"
    assert run("convert", folder / task, given, *WAY, "--review", review, "-o", output)[0] == 0, "without --confidence"


def test_the_answer_says_where_it_came_from(run: Run, folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.txt"
    run("convert", folder / "pos", folder / "given.txt", *WAY, "-o", output)
    note = (tmp_path / "out.txt.source.txt").read_text(encoding="utf-8")
    assert f"converted from one to two by duilian {duilian.__version__}, coupled" in note
    assert "given.txt" in note
    assert "CC BY-SA 4.0" in note
    out = run("convert", folder / "pos", folder / "given.txt", *WAY, "--format", "conllu")[1]
    assert out.startswith("# converted from one to two")


def test_threads_and_blocks_change_nothing(
    run: Run, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = tmp_path / "given.txt"
    given.write_text(GIVEN * 200, encoding="utf-8")
    whole = run("convert", folder / "segpos", given, *WAY, "--quiet")[1]
    plain = formats.read_blocks
    monkeypatch.setattr(formats, "read_blocks", lambda *a, **options: plain(*a, **options | {"block_chars": 300}))
    assert run("convert", folder / "segpos", given, *WAY, "--quiet", "--threads", 2)[1] == whole
    assert whole == WANTED * 200 or whole.split() == WANTED.split() * 200


def test_a_line_of_a_hundred_thousand_characters(run: Run, folder: Path, tmp_path: Path) -> None:
    given, output = tmp_path / "long.txt", tmp_path / "out.txt"
    sentence = GIVEN.split("\n")[0] + "  "
    given.write_text(sentence * 20_000 + "\n", encoding="utf-8")
    for task in ("pos", "segpos"):
        code, _, err = run("convert", folder / task, given, *WAY, "-o", output, "--quiet")
        assert code == 0, err
        tokens = output.read_text(encoding="utf-8").split()
        assert len(tokens) == 80_000
        assert tokens[4:8] == WANTED.split()[:4]


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["--from", "one", "--to", "three"], "two"),
        (["--from", "one", "--to", "one"], "nothing to convert"),
        (["--from", "one", "--to", "two", "--format", "segmented"], "tags"),
        (["--from", "one", "--to", "two", "--nbest", "2"], "jsonl"),
        (["--from", "one", "--to", "two", "--confidence"], "confidences"),
        (["--from", "one", "--to", "two", "--input-format", "raw"], "raw text"),
    ],
)
def test_what_convert_cannot_do_exits_2(run: Run, folder: Path, arguments: list[str], names: str) -> None:
    code, out, err = run("convert", folder / "pos", folder / "given.txt", *arguments)
    assert (code, out) == (2, ""), err
    assert names in err
