"""One battery over every format: a new row of FORMATS gets all of it for a sample in tests/golden/formats/.

NAME.*        a file of the format NAME (NAME-anything.* for more of them); the first one is what detection must know
NAME.*.json   what it holds: layer -> sentences -> [word, label]
"""

from __future__ import annotations

import gzip
import io
import json
import lzma
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import JIT, ROOT
from format_strategies import sentences
from hypothesis import given
from hypothesis import strategies as st

from duilian import formats
from duilian.corpus import Corpus, Layer, build, concatenate
from duilian.errors import DataError, DuilianError, FormatError, UsageError
from duilian.formats import FORMATS

GOLDEN = Path(__file__).parent / "golden" / "formats"
SAMPLES = [
    path
    for path in sorted(GOLDEN.iterdir())
    if path.suffix != ".json" and path.name.split(".")[0].split("-")[0] in FORMATS
]
WRITABLE = [name for name, format in FORMATS.items() if format.write is not None]
BOM = b"\xef\xbb\xbf"
SIZES = (1, 7, 64, 1 << 20)


def format_of(path: Path) -> str:
    return path.name.split(".")[0].split("-")[0]


def sample(name: str) -> bytes:
    return next(path for path in SAMPLES if path.stem == name).read_bytes()


def read(data: bytes, name: str, **options: Any) -> Corpus:
    return formats.read(stream(data), format=name, **options)


def blocks(data: bytes, name: str, size: int, **options: Any) -> list[Corpus]:
    return list(formats.read_blocks(stream(data), format=name, block_chars=size, **options))


def stream(data: bytes) -> io.BytesIO:
    file = io.BytesIO(data)
    file.name = "FILE"
    return file


def written(corpora: list[Corpus], name: str, layer: str | None = None, **options: Any) -> bytes:
    out = io.BytesIO()
    with formats.open_writer(out, name, layer, **options) as writer:
        for corpus in corpora:
            writer.write(corpus)
    return out.getvalue()


def content(corpus: Corpus) -> dict[str, Any]:
    """layer -> sentences -> (word, label)."""
    return {
        layer.name: [
            list(zip(words, tags, strict=True))
            for words, tags in zip(corpus.words(layer.name), corpus.tags(layer.name), strict=True)
        ]
        for layer in corpus.layers
    }


def has_words(corpus: Corpus) -> dict[str, Any]:
    """The content without the layers that have no unit."""
    return {name: value for name, value in content(corpus).items() if any(value)}


each = pytest.mark.parametrize("name", list(FORMATS))
each_writable = pytest.mark.parametrize("name", WRITABLE)
each_sample = pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)


def test_every_format_has_a_sample() -> None:
    assert {format_of(path) for path in SAMPLES} == set(FORMATS)


@each
def test_the_table(name: str) -> None:
    format = FORMATS[name]
    assert format.name == name
    assert formats.find(name) is format
    assert format.cut in ("line", "blank", "tree")
    assert format.about
    assert format.layers
    assert all(suffix.startswith(".") for suffix in format.suffixes)


@each
def test_the_format_is_documented(name: str) -> None:
    text = (ROOT / "docs" / "formats.md").read_text()
    assert f"| `{name}` |" in text
    assert FORMATS[name].layers in text
    assert FORMATS[name].about in text


# Reading ------------------------------------------------------------------------------------------------------------


@each
def test_detection_knows_the_sample(name: str) -> None:
    data = sample(name)
    for variant in (
        data,
        BOM + data,
        data.replace(b"\n", b"\r\n"),
        data.rstrip(b"\n"),
        gzip.compress(data),
    ):
        assert formats.detect(stream(variant)) == name
    assert formats.detect(stream(data * (1 + 200_000 // len(data)))) == name


@each_sample
def test_the_sample_holds_what_is_expected(path: Path) -> None:
    expected = json.loads(path.with_name(path.name + ".json").read_text())
    corpus = formats.read(path, format=format_of(path), compounds="keep" if "compounds" in path.name else "flatten")
    found = {
        layer: [[[word, sorted(tag) if isinstance(tag, frozenset) else tag] for word, tag in line] for line in lines]
        for layer, lines in content(corpus).items()
    }
    assert list(found) == list(expected)
    assert found == expected


@each_sample
def test_variants_of_the_file_hold_the_same(path: Path) -> None:
    name, data = format_of(path), path.read_bytes().removeprefix(BOM).replace(b"\r\n", b"\n")
    expected = content(read(data, name))
    assert content(read(BOM + data, name)) == expected
    assert content(read(data.replace(b"\n", b"\r\n"), name)) == expected
    assert content(read(gzip.compress(data), name)) == expected
    assert content(read(lzma.compress(data), name)) == expected
    assert content(read(data.decode().encode("gb18030"), name, encoding="gb18030")) == expected
    assert content(read(data.decode().encode("utf-16"), name, encoding="utf-16")) == expected
    if not data.endswith(b"\n\n"):
        assert content(read(data.removesuffix(b"\n"), name)) == expected


@each_sample
@pytest.mark.parametrize("size", SIZES)
def test_blocks_hold_what_the_file_holds(path: Path, size: int) -> None:
    name = format_of(path)
    whole = formats.read(path, format=name)
    parts = blocks(path.read_bytes(), name, size)
    names = {layer.name for layer in whole.layers}
    full = [part for part in parts if {layer.name for layer in part.layers} == names]
    assert sum(len(part) for part in parts) == len(whole)
    if len(full) == len(parts):
        assert content(concatenate(parts)) == content(whole)
    assert "".join(part.sentence_text(k) for part in parts for k in range(len(part))) == "".join(
        whole.sentence_text(k) for k in range(len(whole))
    )
    if size == 1 and len(whole) > 2:
        assert len(parts) > 1


@each
def test_words_alone_can_be_read(name: str) -> None:
    data = sample(name)
    bare, full = read(data, name, labels=False), read(data, name)
    assert [layer.name for layer in bare.layers] == [layer.name for layer in full.layers]
    for layer in full.layers:
        assert bare.words(layer.name) == full.words(layer.name)
        assert not bare.layer(layer.name).has_tags


@each
def test_an_empty_file_is_an_empty_corpus(name: str) -> None:
    for data in (b"", BOM):
        assert len(read(data, name)) == 0
        (block,) = blocks(data, name, 10, keep_source=True)
        assert len(block) == 0
        if name in WRITABLE:
            assert written([block], name) == data
            assert written([replace(block, source=None)], name) == b""


@each
def test_a_layer_that_is_not_there_is_a_wrong_call(name: str) -> None:
    with pytest.raises(UsageError):
        read(sample(name), name, layer="no such layer")


@each
def test_a_missing_file(name: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        formats.read(tmp_path / "missing", format=name)


BROKEN = {
    "slash": (b"word\n", 1, "segmented"),
    "underscore": (b"a_b c\n", 1, "segmented"),
    "tsv": (b"a\tb\tc\tX\n\n", 1, "columns"),
    "conllu": (b"# c\n1\ta\tb\n\n", 2, "ten columns"),
    "brackets": (b"(A (B c) d)\n", 1, "TAG word"),
    "coupled10": (b"1\ta\t_\tx\t_\t_\t_\t_\t_\t_\n\n", 1, "TAG\\^TAG"),
    "jsonl": (b'{"text": 3}\n', 1, "schema"),
}
"""What breaks a file of each format when it stands after a sentence: bytes, the line in them, a word of the message."""


@pytest.mark.parametrize("name", list(BROKEN))
@pytest.mark.parametrize("size", [None, 1, 30])
def test_a_broken_place_is_named_and_can_be_skipped(name: str, size: int | None) -> None:
    broken, at, words = BROKEN[name]
    good = sample(name)
    good += b"\n" if not good.endswith(b"\n") else b""
    good += b"\n" if FORMATS[name].cut == "blank" and not good.endswith(b"\n\n") else b""
    data = good + broken + good + broken + good
    lines = [good.count(b"\n") + at, 2 * good.count(b"\n") + broken.count(b"\n") + at]

    def every(**options: Any) -> list[Corpus]:
        return [read(data, name, **options)] if size is None else blocks(data, name, size, **options)

    with pytest.raises(FormatError, match=words) as caught:
        every()
    assert (caught.value.where, caught.value.line) == ("FILE", lines[0])
    assert str(caught.value).startswith(f"FILE:{lines[0]}: ")
    assert caught.value.exit_code == 1
    skipped: list[FormatError] = []
    found = every(on_error="skip", on_skip=skipped.append, keep_source=True)
    assert [error.line for error in skipped] == lines
    rest = read(good * 3, name)
    assert sum(map(len, found)) == len(rest)
    full = [part for part in found if len(part)]
    assert [line for part in full for line in part.words(rest.layer().name)] == rest.words()
    if name in WRITABLE:
        assert written(found, name) == good * 3


def test_the_formats_that_cannot_be_broken() -> None:
    assert set(FORMATS) - set(BROKEN) == {"segmented", "raw"}


@each
def test_lines_of_a_hundred_thousand_characters(name: str) -> None:
    """As one long word, and as many short ones."""
    if name in ("slash", "underscore", "segmented", "tsv", "conllu", "coupled10", "jsonl"):
        n = 100_000 if JIT else 1000
        for words in (["长" * n], ["长", "a"] * (n // 2)):
            corpus = build([(words, ["N"] * len(words)), (["b"], ["N"])])
            data = written([corpus], name)
            assert read(data, name).words() == corpus.words()
            assert [line for part in blocks(data, name, 1000) for line in part.words()] == corpus.words()
    else:
        n = 100_000
        word = "长" * n
        text = word if name == "raw" else f"(A (B {word}))"
        assert read(text.encode(), name).words() == [[word]]


# Writing ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [path for path in SAMPLES if format_of(path) in WRITABLE], ids=lambda path: path.name)
@pytest.mark.parametrize("size", [None, *SIZES])
def test_what_was_read_is_written_back_byte_for_byte(path: Path, size: int | None) -> None:
    name, plain = format_of(path), path.read_bytes().removeprefix(BOM)
    mixed = plain.replace(b"\n", b"\r\n", 1)
    for data in (
        plain,
        BOM + plain,
        plain.replace(b"\n", b"\r\n"),
        mixed,
        plain.rstrip(b"\n"),
        plain + b"\n\n\n",
    ):
        parts = [read(data, name, keep_source=True)] if size is None else blocks(data, name, size, keep_source=True)
        assert written(parts, name) == data


@each_writable
def test_new_labels_change_the_labels_alone(name: str) -> None:
    if not FORMATS[name].keeps_tags:
        return
    data = sample(name).removeprefix(BOM)
    corpus = read(data, name, keep_source=True)
    layer = corpus.layer()
    known = layer.labels >= 0
    new = replace(
        layer, tags=(*layer.tags, "新标"), labels=np.where(known, len(layer.tags), layer.labels).astype(np.int32)
    )
    out = written([corpus.with_layer(new)], name)
    before, after = data.decode().split("\n"), out.decode().split("\n")
    assert len(before) == len(after)
    assert sum(a != b for a, b in zip(before, after, strict=True)) > 0
    assert out.decode().count("新标") == int(known.sum()) or name == "coupled10"  # there also in the bundles
    again = read(out, name)
    assert again.words() == corpus.words()
    assert [[tag for tag in line if isinstance(tag, str)] for line in again.tags()] == [
        ["新标"] * sum(isinstance(tag, str) for tag in line) for line in corpus.tags()
    ]
    if name in ("slash", "underscore"):
        tags = "|".join(sorted(layer.tags, key=len, reverse=True))
        bare = [re.sub(rf"(?<=[^\s\]][/_])({tags})(?=[\s\]]|$)", "", line) for line in before]
        kept = [k for k, line in enumerate(before) if "]/" not in line]  # where a tag is not the label of a compound
        assert len(kept) > len(before) / 2
        assert [after[k].replace("新标", "") for k in kept] == [bare[k] for k in kept]


@each_writable
def test_sentences_segmented_anew_are_written_anew_and_the_others_kept(name: str) -> None:
    if name == "raw":
        return
    data = sample(name).removeprefix(BOM)
    for newline in (b"\n", b"\r\n"):
        corpus = read(data.replace(b"\n", newline), name, keep_source=True)
        whole = corpus.layer()
        halves = split_first(corpus, whole)
        out = written([corpus.with_layer(halves)], name, whole.name)
        again = read(out, name, layer=whole.name if name != "slash" else None)
        assert again.words()[1:] == corpus.words()[1:]
        assert again.words()[0] == corpus.with_layer(halves).words()[0]
        assert again.tags() == corpus.with_layer(halves).tags()
        assert out.count(b"\r\n") in (0, out.count(b"\n"))
        assert (b"\r\n" in out) == (newline == b"\r\n")
        last = corpus.source.raw[corpus.source.offsets[1] :] if corpus.source is not None else np.zeros(0)
        assert out.decode().endswith("".join(map(chr, last.tolist()))) or name in ("coupled10", "jsonl")


def split_first(corpus: Corpus, layer: Layer) -> Layer:
    """The layer with its first word of two characters or more cut in two, in the first sentence."""
    unit = int(np.argmax(layer.ends - layer.starts > 1))
    assert unit < layer.offsets[1]
    middle = layer.starts[unit] + 1
    offsets = layer.offsets + (np.arange(len(layer.offsets)) > 0)
    return replace(
        layer,
        offsets=offsets,
        starts=np.insert(layer.starts, unit + 1, middle),
        ends=np.insert(layer.ends, unit, middle),
        labels=np.insert(layer.labels, unit, layer.labels[unit]),
        confidence=None if layer.confidence is None else np.insert(layer.confidence, unit, layer.confidence[unit]),
    )


@each_writable
@given(st.data())
def test_random_sentences_come_back(name: str, data: st.DataObject) -> None:
    corpus = build(data.draw(sentences(plain=True)))
    if not FORMATS[name].keeps_tags:
        corpus = build([(words, None) for words in corpus.words()])
    try:
        out = written([corpus], name)
    except UsageError as error:
        assert name == "slash"
        assert "compound" in str(error)  # noqa: PT017
        return
    again = read(out, name)
    if name == "raw":
        assert [again.sentence_text(k) for k in range(len(again))] == ["".join(words) for words in corpus.words()]
        return
    expected = corpus.words()
    assert again.words() == expected
    assert again.tags() == corpus.tags()
    assert written([read(out, name, keep_source=True)], name) == out
    for size in (1, 5):
        assert [line for part in blocks(out, name, size) for line in part.words()] == expected


@each_writable
@given(st.data())
def test_anything_is_written_so_that_it_comes_back_or_refused(name: str, data: st.DataObject) -> None:
    corpus = build(data.draw(sentences(plain=False)))
    try:
        out = written([corpus], name)
    except UsageError as error:
        assert "Use " in str(error) or "Formats " in str(error)  # noqa: PT017
        return
    again = read(out, name)
    if name == "raw":
        assert [again.sentence_text(k) for k in range(len(again))] == ["".join(words) for words in corpus.words()]
        return
    assert again.words() == corpus.words()
    if FORMATS[name].keeps_tags:
        assert again.tags() == corpus.tags()


@each_writable
def test_labels_that_a_format_cannot_hold_are_a_wrong_call(name: str) -> None:
    format = FORMATS[name]
    if not format.keeps_tags:
        return
    for label, need in ((None, "unknown"), (frozenset({"A", "B"}), "sets")):
        corpus = build([(["a", "b"], ["N", label])])
        if name == "coupled10":
            continue  # one side alone cannot have sets: tests/test_formats.py has both
        if need in format.holds:
            assert read(written([corpus], name), name).tags() == corpus.tags()
        else:
            with pytest.raises(UsageError, match=r"word 2 of sentence 1, 'b'.*Formats that can: .*jsonl"):
                written([corpus], name)


@each_writable
def test_confidence_is_written_or_a_wrong_call(name: str) -> None:
    corpus = build([(["a", "b"], ["N", "V"])])
    corpus = corpus.with_layer(replace(corpus.layer(), confidence=np.array([0.5, 0.125], np.float32)))
    if "confidence" in FORMATS[name].holds:
        out = written([corpus], name, confidence=True).decode()
        assert "0.5" in out
        assert "0.125" in out
        with pytest.raises(UsageError, match="no confidences"):
            written([build([(["a"], ["N"])])], name, confidence=True)
    else:
        with pytest.raises(UsageError, match=r"Formats that can: jsonl, conllu, tsv\."):
            written([corpus], name, confidence=True)


@each
def test_what_goes_in_is_not_changed(name: str) -> None:
    data = sample(name)
    corpus = read(data, name, keep_source=True)
    before = content(corpus), corpus.text.copy()
    if name in WRITABLE:
        written([corpus], name)
        written([corpus.with_layer(replace(corpus.layer(), tags=corpus.layer().tags))], name)
    assert content(corpus) == before[0]
    np.testing.assert_array_equal(corpus.text, before[1])


@each_writable
def test_other_formats_take_it_or_say_why_not(name: str) -> None:
    for path in SAMPLES:
        corpus = formats.read(path, format=format_of(path), keep_source=True)
        try:
            out = written([corpus], name)
        except DuilianError as error:
            assert str(error).startswith((name, "<"))  # noqa: PT017
            continue
        again = read(out, name)
        assert len(again) == len(corpus)
        if name not in ("raw", "conllu") and has_words(again):
            assert again.words() == corpus.words()
