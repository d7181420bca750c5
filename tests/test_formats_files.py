"""From bytes to text and back: encodings, compression, blocks, whole files, provenance; damaged files of all kinds."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import stat
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import JIT
from format_tools import pairs, read, written
from fuzz import corpora as fuzz
from hypothesis import given
from hypothesis import strategies as st

from duilian import formats
from duilian.corpus import build, decode
from duilian.errors import DataError, DuilianError, FormatError, UsageError
from duilian.formats import files

# Files --------------------------------------------------------------------------------------------------------------


def test_a_wrong_encoding_is_named_with_its_place() -> None:
    text = "上海/ns\n充满/v\n" * 3
    with pytest.raises(FormatError, match=r"FILE:1: byte c9 at offset 0 is not utf-8\. Try --encoding gb18030\."):
        read(text.encode("gb18030"))
    assert pairs(read(text.encode("gb18030"), encoding="gb18030")) == pairs(read(text))
    with pytest.raises(FormatError, match=r"FILE:3: byte ff at offset 24"):
        read(b"a/b\n" * 2 + b"a/bcdefghijklmno" + b"\xff/x\n")
    with pytest.raises(FormatError, match=r"UTF-16.*--encoding utf-16"):
        read(text.encode("utf-16"))
    with pytest.raises(FormatError, match=r"NUL.*--encoding utf-16"):
        read("ab/n".encode("utf-16-le"))
    with pytest.raises(UsageError, match="no text encoding 'klingon'"):
        read(text, encoding="klingon")
    with pytest.raises(UsageError, match="no text encoding 'hex'"):
        read(text, encoding="hex")


def test_the_place_of_a_wrong_byte_in_a_later_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "CHUNK", 5)
    data = "上海/ns\n充满/v\n希望/n\n".encode()
    at = data.index("希".encode())
    broken = data[: at + 1] + b"\xff" + data[at + 2 :]
    with pytest.raises(FormatError, match=rf"FILE:3: byte e5 at offset {at} is not utf-8"):
        read(broken, "slash")
    assert pairs(read(data, "slash"))[2] == [("希望", "n")]
    with pytest.raises(FormatError, match=rf"FILE:4: byte e6 at offset {len(data)} "):  # it ends within a character
        read(data + "望".encode()[:2], "slash")


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        formats.read(tmp_path / "none")
    with pytest.raises(DataError, match="folder"):
        formats.read(tmp_path)
    with pytest.raises(DataError, match="cannot be opened"):
        formats.read("a\0b")
    with pytest.raises(UsageError, match="no format 'x'"):
        read("", "x")


def test_standard_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("上海/ns\n".encode())))
    out = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr(sys, "stdout", out)
    corpus = formats.read("-", keep_source=True)
    formats.write("-", corpus, "slash")
    assert out.buffer.getvalue() == "上海/ns\n".encode()  # type: ignore[attr-defined]


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_compressed_files(tmp_path: Path, pack: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    data = "上海/ns 好/a\n".encode() * 50
    monkeypatch.setattr(files, "CHUNK", 17)
    assert read(pack(data), keep_source=True).words() == [["上海", "好"]] * 50
    assert len(read(pack(data) + pack(data))) == 100
    for damaged in (pack(data)[:-9], pack(data)[:30], pack(data)[:20] + b"x" + pack(data)[21:]):
        with pytest.raises(FormatError, match=r"FILE: the compressed data are damaged"):
            read(damaged)
    suffix = ".gz" if pack is gzip.compress else ".xz"
    for name in ("one", "two"):
        formats.write(tmp_path / (name + suffix), read(data), "slash")
    assert (tmp_path / f"one{suffix}").read_bytes() == (tmp_path / f"two{suffix}").read_bytes()
    assert read((tmp_path / f"one{suffix}").read_bytes()).words() == [["上海", "好"]] * 50


def test_a_bomb_is_not_expanded_to_its_end() -> None:
    bomb = lzma.compress(b"a/n " * (6 << 20), preset=0)
    with pytest.raises(FormatError, match="expands to more than 250 times its size"):
        read(bomb)
    with pytest.raises(FormatError, match="a line of more than 4,194,304 characters"):
        list(formats.read_blocks(io.BytesIO(bomb), format="slash"))


def test_a_file_is_there_only_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text("old")

    def fail() -> None:
        with formats.open_writer(path, "slash") as writer:
            writer.write(read("a/b\n" * 100_000))
            writer.write(read("no tags", "segmented"))

    with pytest.raises(UsageError):
        fail()
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.txt"]
    formats.write(path, read("a/b\n"), "slash")
    assert path.read_text() == "a/b\n"
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(_touch(tmp_path / "other").stat().st_mode)
    with pytest.raises(DataError, match="cannot be written"):
        formats.write(tmp_path / "no" / "where", read("a/b\n"), "slash")


def _touch(path: Path) -> Path:
    path.touch()
    return path


def test_the_target_of_a_link_is_replaced_and_the_link_stays(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    formats.write(tmp_path / "link", read("a/b\n"), "slash")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "a/b\n"


def test_a_file_of_another_encoding_is_written_back_in_it() -> None:
    data = "上海/ns\r\n好/a".encode("gb18030")
    corpus = read(data, keep_source=True, encoding="gb18030")
    out = io.BytesIO()
    with formats.open_writer(out, "slash") as writer:
        writer.write(corpus)
    assert out.getvalue() == data
    with pytest.raises(FormatError, match=r"ascii has no U\+4E0A\. Write with --encoding utf-8"):
        written(corpus, "slash", encoding="ascii")


def test_provenance_stands_in_comments_or_beside_the_file(tmp_path: Path) -> None:
    corpus = build([(["好"], ["VA"])])
    lines_ = ["converted from pku to ctb", "licence: CC BY-SA 4.0\nsecond line"]
    formats.write(tmp_path / "a.conllu", corpus, "conllu", provenance=lines_)
    text = (tmp_path / "a.conllu").read_text()
    assert text.startswith("# converted from pku to ctb\n# licence: CC BY-SA 4.0 second line\n1\t好\t")
    assert read(text).words() == [["好"]]
    formats.write(tmp_path / "a.jsonl", corpus, "jsonl", provenance=lines_)
    first = (tmp_path / "a.jsonl").read_text().split("\n")[0]
    assert first == '{"duilian": {"provenance": "converted from pku to ctb"}}'
    assert formats.read(tmp_path / "a.jsonl").words() == [["好"]]
    formats.write(tmp_path / "a.txt", corpus, "slash", provenance=lines_)
    assert (tmp_path / "a.txt").read_text() == "好/VA\n"
    assert (tmp_path / "a.txt.source.txt").read_text() == (
        "converted from pku to ctb\nlicence: CC BY-SA 4.0 second line\n"
    )


def test_layers_behind_a_mark(tmp_path: Path) -> None:
    assert formats.split_layer("a.conllu#upos") == ("a.conllu", "upos")
    assert formats.split_layer("a.conllu") == ("a.conllu", None)
    assert formats.split_layer("-#2") == ("-", "2")
    assert formats.split_layer("#2") == ("#2", None)
    odd = tmp_path / "a#b"
    odd.write_text("")
    assert formats.split_layer(str(odd)) == (str(odd), None)
    assert formats.split_layer(f"{odd}#c") == (str(odd), "c")
    with pytest.raises(UsageError, match="name of a layer"):
        formats.split_layer("a.conllu#")


@given(st.text(alphabet="a\n\r(", max_size=30), st.integers(1, 9), st.sampled_from(["line", "blank", "tree"]))
def test_blocks_put_together_are_the_text(text: str, size: int, kind: Any) -> None:
    parts = list(files.blocks(iter([text[:7], text[7:]]), kind, size, "FILE"))
    assert "".join(decode(part) for part, _ in parts) == text
    line = 1
    for k, (part, first_line) in enumerate(parts):
        assert first_line == line
        line += decode(part).count("\n")
        if k < len(parts) - 1:
            ending = {"line": ("\n",), "blank": ("\n\n", "\n\r\n"), "tree": ("\n",)}[kind]
            assert "".join(decode(one) for one, _ in parts[: k + 1]).endswith(ending)


# Fuzz ---------------------------------------------------------------------------------------------------------------


@pytest.mark.fuzz
@pytest.mark.skipif(not JIT, reason="files of 100,000 characters take long without the compiler")
def test_damaged_files_are_read_or_refused() -> None:
    n = 10_000 if os.environ.get("DUILIAN_FUZZ") == "full" else 100
    outcomes = fuzz.run(n, seed=3)
    assert outcomes["refused"] > n / 3
    assert outcomes["read"] > n / 10


@pytest.mark.parametrize(
    ("misread", "complaint"),
    [
        (lambda corpus: 1 / 0, "ZeroDivisionError instead of DuilianError"),
        (
            lambda corpus: replace(corpus, layers=(replace(corpus.layers[0], labels=corpus.layers[0].labels + 9),)),
            "Assert",
        ),
        (lambda corpus: np.zeros(200_000_000, np.uint8) + 1 and corpus, "ValueError instead|bytes of memory"),
    ],
)
def test_the_fuzzer_finds_readers_that_misbehave(misread: Any, complaint: str) -> None:
    def reader(*arguments: Any, **options: Any) -> Any:
        try:
            corpus = formats.read(*arguments, **options)
        except DuilianError:
            corpus = read("a/b\n")
        return misread(corpus) if len(corpus) and len(corpus.layers[0]) else misread(read("a/b\n"))

    with pytest.raises(AssertionError, match=complaint):
        fuzz.run(3, read=reader)
