"""The treebank as it comes: bracketed files in the real layout, cut by file number, counts checked."""

from __future__ import annotations

from pathlib import Path

import pytest

from duilian.errors import DataError
from duilian.studies import ctb

HEAD = "<DOC>\n<DOCID> CTB/chtb_{number:03d}.fid </DOCID>\n<BODY>\n<TEXT>\n"
TREE = "<S ID={id}>\n( (IP-HLN (NP-SBJ (-NONE- *pro*) (NR 上海)) (VP (VV 开发{word})) (PU 。)) )\n</S>\n"
FOOT = "</TEXT>\n</BODY>\n</DOC>\n"


def write_file(folder: Path, number: int, sentences: int, encoding: str = "gb18030", suffix: str = ".fid") -> Path:
    """A file as the release has it: SGML around trees that take several lines' worth of brackets."""
    folder.mkdir(parents=True, exist_ok=True)
    trees = "".join(TREE.format(id=k, word="了" * (number % 3)) for k in range(sentences))
    name = f"chtb_{number:04d}{suffix}" if suffix != ".fid" or number > 999 else f"chtb_{number:03d}{suffix}"
    path = folder / name
    path.write_bytes((HEAD.format(number=number) + trees + FOOT).encode(encoding))
    return path


def tiny(monkeypatch: pytest.MonkeyPatch, train: int, dev: int, test: int) -> None:
    """Expect so many sentences of the joint split."""
    old = ctb.SPLITS["joint"]
    new = ctb.Split(old.train, old.dev, old.test, (train, dev, test), old.source)
    monkeypatch.setitem(ctb.SPLITS, "joint", new)


@pytest.mark.parametrize("inside", ["", "bracketed", "data/bracketed"])
def test_parts_are_cut_by_file_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inside: str) -> None:
    folder = tmp_path / inside
    for number, sentences in ((1, 2), (270, 1), (271, 3), (300, 1), (301, 2), (325, 2), (400, 1), (1001, 4), (1151, 1)):
        write_file(folder, number, sentences)
    (folder / "chtb_readme.txt").write_text("no treebank")
    tiny(monkeypatch, 9, 4, 4)
    said: list[str] = []
    found = ctb.parts(tmp_path, "joint", said.append)
    assert {name: len(corpus) for name, corpus in found.items()} == {"train": 9, "dev": 4, "test": 4}
    assert found["train"].words()[0] == ["上海", "开发了", "。"]  # the trace is no word
    assert found["train"].tags()[0] == ["NR", "VV", "PU"]
    assert found["test"].words()[0] == ["上海", "开发了", "。"]
    assert said == []


def test_later_releases_have_other_names_and_utf_8(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in (1, 271, 301):
        write_file(tmp_path, number, 1, "utf-8", ".mrg")
    tiny(monkeypatch, 1, 1, 1)
    assert ctb.parts(tmp_path, "joint")["train"].words() == [["上海", "开发了", "。"]]


def test_the_two_splits_do_not_overlap() -> None:
    for split in ctb.SPLITS.values():
        numbers = [k for part in (split.train, split.dev, split.test) for a, b in part for k in range(a, b + 1)]
        assert len(numbers) == len(set(numbers))
        assert max(numbers) == 1151


def test_a_few_sentences_more_are_told_and_many_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, sentences in ((1, 202), (271, 2), (301, 2)):
        write_file(tmp_path, number, sentences)
    tiny(monkeypatch, 201, 2, 2)
    said: list[str] = []
    ctb.parts(tmp_path, "joint", said.append)
    assert len(said) == 1
    assert "train has 202 sentences, expected 201" in said[0]
    tiny(monkeypatch, 300, 2, 2)
    with pytest.raises(DataError, match=r"train has 202 sentences, expected 300.*--target ctb=FILE"):
        ctb.parts(tmp_path, "joint")


def test_missing_files_are_named(tmp_path: Path) -> None:
    write_file(tmp_path, 1, 1)
    write_file(tmp_path, 2, 1)
    with pytest.raises(DataError, match=r"files for dev, test are missing.*numbers 1-2; expected dev: 301-325"):
        ctb.parts(tmp_path, "joint")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="no bracketed files"):
        ctb.parts(tmp_path / "empty", "joint")
    with pytest.raises(DataError, match="no such folder"):
        ctb.parts(tmp_path / "nowhere", "joint")


def test_a_number_that_is_there_twice_is_an_error(tmp_path: Path) -> None:
    write_file(tmp_path, 1, 1)
    write_file(tmp_path, 1, 1, "utf-8", ".mrg")
    with pytest.raises(DataError, match="there twice"):
        ctb.found_files(tmp_path)


def test_parts_are_written_as_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in (1, 271, 301):
        write_file(tmp_path / "ctb", number, 2)
    tiny(monkeypatch, 2, 2, 2)
    paths = ctb.write_parts(tmp_path / "ctb", "joint", tmp_path / "out")
    from duilian import formats

    assert formats.read(paths["dev"]).tags() == [["NR", "VV", "PU"]] * 2
