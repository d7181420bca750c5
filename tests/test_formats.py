"""Formats one by one: kernels and readers against their slow twins, examples by hand, files, detection, writing."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import stat
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import JIT
from format_strategies import conllu_texts, lines, row_texts, slash_texts
from fuzz import corpora as fuzz
from hypothesis import example, given
from hypothesis import strategies as st
from naive import formats as naive

from duilian import formats
from duilian.corpus import Corpus, build, decode, encode
from duilian.errors import DataError, DuilianError, FormatError, UsageError
from duilian.formats import compound_kernels, files, scan_kernels, weave_kernels
from duilian.formats.base import fixed

Sentences = list[list[tuple[str, Any]]]


def read(text: str | bytes, format: str = "auto", **options: Any) -> Corpus:
    data = text.encode() if isinstance(text, str) else text
    stream = io.BytesIO(data)
    stream.name = "FILE"
    return formats.read(stream, format=format, **options)


def written(corpus: Corpus, format: str, layer: str | None = None, **options: Any) -> str:
    out = io.BytesIO()
    with formats.open_writer(out, format, layer, **options) as writer:
        writer.write(corpus)
    return out.getvalue().decode()


def pairs(corpus: Corpus, layer: str | None = None) -> Sentences:
    return [
        list(zip(words, tags, strict=True)) for words, tags in zip(corpus.words(layer), corpus.tags(layer), strict=True)
    ]


def spans(starts: Any, ends: Any) -> list[tuple[int, int]]:
    return list(zip(starts.tolist(), ends.tolist(), strict=True))


def points(text: str) -> Any:
    return fixed(encode(text), np.uint32)


def places(*values: int) -> Any:
    return fixed(np.array(values, np.int64), np.int64)


# Kernels ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wide", [False, True])
def test_white_space_is_that_of_python(wide: bool) -> None:
    for c in [*range(0x3002), 0xFEFF, 0x200B, 0x10FFFF]:
        assert bool(scan_kernels.is_space(np.uint32(c), wide)) == naive.is_space(chr(c), wide), hex(c)


@given(lines, st.booleans())
@example("", False)
@example("\n", False)
@example("a\n\n b", True)
def test_tokens_and_lines(text: str, wide: bool) -> None:
    begins, offsets, starts, ends = scan_kernels.scan_tokens(points(text), wide)
    expected = naive.tokens(text, wide)
    assert np.diff(offsets).tolist() == [len(line) for line in expected]
    assert spans(starts, ends) == [token for line in expected for token in line]
    whole = naive.lines_of(text)
    assert [text[a:b] for a, b in pairwise(begins)] == whole
    stops = scan_kernels.trim_lines(points(text), fixed(begins, np.int64))
    assert [text[a:b] for a, b in zip(begins[:-1], stops, strict=True)] == [naive.content(line) for line in whole]


@given(lines, st.sampled_from("/_[]"))
def test_last_mark_and_brackets(text: str, mark: str) -> None:
    _, _, starts, ends = scan_kernels.scan_tokens(points(text), False)
    starts, ends = fixed(starts, np.int64), fixed(ends, np.int64)
    tokens = [text[a:b] for a, b in spans(starts, ends)]
    marks = scan_kernels.last_mark(points(text), starts, ends, np.uint32(ord(mark)))
    found = [token.rfind(mark) for token in tokens]
    assert marks.tolist() == [at if at < 0 else begin + at for at, begin in zip(found, starts.tolist(), strict=True)]
    flagged = scan_kernels.bracketed(points(text), starts, ends)
    assert flagged.tolist() == [k for k, token in enumerate(tokens) if token.startswith("[") or "]" in token]
    assert decode(scan_kernels.gather(points(text), starts, ends)) == "".join(tokens)


@given(st.lists(st.text(alphabet="ab", max_size=3), max_size=30))
@example([""])
def test_numbers_of_strings(strings: list[str]) -> None:
    text = "".join(strings)
    edges = np.cumsum([0, *map(len, strings)])
    numbers, firsts = scan_kernels.number_strings(points(text), places(*edges[:-1]), places(*edges[1:]))
    assert numbers.tolist() == naive.numbers(strings)
    assert [strings[k] for k in firsts] == list(dict.fromkeys(strings))


def test_numbers_of_many_strings_whose_hashes_collide() -> None:
    """More strings than the table begins with, and single letters of which 2^8 share their last bits at the start."""
    strings = [chr(0x4E00 + k) for k in range(700)] + [chr(0x4E00 + k) for k in range(0, 700, 7)]
    text = "".join(strings)
    starts = np.arange(len(strings))
    numbers, firsts = scan_kernels.number_strings(points(text), fixed(starts, np.int64), fixed(starts + 1, np.int64))
    assert numbers.tolist() == naive.numbers(strings)
    assert firsts.tolist() == list(range(700))


@given(row_texts)
def test_lines_and_fields(text: str) -> None:
    starts, ends, n_tabs = scan_kernels.scan_lines(points(text))
    expected = [naive.content(line) for line in naive.lines_of(text)]
    assert [text[a:b] for a, b in spans(starts, ends)] == expected
    assert n_tabs.tolist() == [line.count("\t") for line in expected]
    for columns in ([0], [1], [0, 2]):
        wide = n_tabs >= columns[-1]
        begins, stops = scan_kernels.scan_fields(
            points(text), fixed(starts[wide], np.int64), fixed(ends[wide], np.int64), places(*columns)
        )
        rows = [line.split("\t") for line in expected if line.count("\t") >= columns[-1]]
        for k, column in enumerate(columns):
            assert [text[a:b] for a, b in spans(begins[k], stops[k])] == [row[column] for row in rows]


@given(st.lists(st.text(alphabet="0123-.a", max_size=5), max_size=8))
@example(["999999999", "1000000000", "1-999999999", "1-", "-1", "1--2", "1.2-3", ""])
def test_first_column_of_conllu(ids: list[str]) -> None:
    text = "".join(ids)
    edges = np.cumsum([0, *map(len, ids)])
    kinds, first, second = scan_kernels.scan_ids(points(text), places(*edges[:-1]), places(*edges[1:]))
    for k, written_id in enumerate(ids):
        kind, one, two = naive.id_of(written_id)
        assert kinds[k] == kind, written_id
        if kind >= 0:
            assert (first[k], second[k]) == (one, two)


@given(row_texts, st.integers(0, 2))
def test_ends_of_rows(text: str, n_tabs: int) -> None:
    starts, ends, _ = scan_kernels.scan_lines(points(text))
    begins, stops = scan_kernels.row_tails(points(text), fixed(starts, np.int64), n_tabs)
    assert stops.tolist() == ends.tolist()
    for begin, stop, line in zip(begins.tolist(), stops.tolist(), naive.lines_of(text), strict=True):
        assert text[begin:stop] == "\t".join(naive.content(line).split("\t")[n_tabs:]) or line.count("\t") < n_tabs


@given(st.lists(st.text(alphabet="C=|a", max_size=8), max_size=5))
@example(["C=1", "a|C=1", "aC=1", "a|aC="])
def test_patterns_in_fields(fields: list[str]) -> None:
    text = "".join(fields)
    edges = np.cumsum([0, *map(len, fields)])
    found = scan_kernels.find_pattern(points(text), places(*edges[:-1]), places(*edges[1:]), points("C="))
    for k, field in enumerate(fields):
        at, expected = 0, -1
        for part in field.split("|"):
            if part.startswith("C=") and expected < 0:
                expected = at
            at += len(part) + 1
        assert found[k] == (-1 if expected < 0 else edges[k] + expected)


@given(st.lists(st.text(alphabet="ab \u3000\t", max_size=3), max_size=5), st.integers(0, 2))
def test_words_that_a_format_cannot_hold(words: list[str], rule: int) -> None:
    text = "".join(words)
    edges = np.cumsum([0, *map(len, words)])
    found = scan_kernels.first_unfit(points(text), places(*edges[:-1]), places(*edges[1:]), rule)
    bad = (" \t", " \t\u3000", "\t")[rule]
    expected = [k for k, word in enumerate(words) if not word or any(c in bad for c in word)]
    assert found == (expected[0] if expected else -1)


@given(st.lists(st.tuples(st.text(alphabet="ab", max_size=3), st.integers(0, 2)), max_size=6))
def test_weaving(pieces: list[tuple[str, int]]) -> None:
    text = "".join(word for word, _ in pieces)
    table = ["", "x", "yz"]
    edges = np.cumsum([0, *(len(word) for word, _ in pieces)])
    which = places(*(k for _, k in pieces))
    found = weave_kernels.weave(
        points(text), places(*edges[:-1]), places(*edges[1:]), points("".join(table)), places(0, 0, 1, 3), which
    )
    assert decode(found) == "".join(word + table[k] for word, k in pieces)


@pytest.mark.compiled
@pytest.mark.skipif(not JIT, reason="the compiler is off")
def test_each_kernel_is_compiled_once(tmp_path: Path) -> None:
    for name, data in fuzz.SAMPLES:
        corpus = read(data, name, keep_source=True, compounds="keep")
        if formats.FORMATS[name].write is not None:
            written(corpus, name)
            written(replace(corpus, source=None), name)
    for module in (scan_kernels, weave_kernels, compound_kernels):
        for kernel in vars(module).values():
            assert len(getattr(kernel, "signatures", ())) <= 1, kernel.__name__


# Readers ------------------------------------------------------------------------------------------------------------


def same_as_naive(text: str, format: str, twin: Callable[[str], Any], **options: Any) -> None:
    """Either both give the same sentences, or both say that the file is broken."""
    try:
        expected = twin(text)
    except naive.Broken:
        with pytest.raises(FormatError):
            read(text, format, **options)
        return
    assert pairs(read(text, format, **options)) == expected


@given(lines)
@example("a_b\r\n\r\na__b c_d")
def test_underscore_against_its_twin(text: str) -> None:
    same_as_naive(text, "underscore", lambda text: naive.joined(text, "_"))


@given(st.one_of(slash_texts, lines))
@example("[a/n]x")
@example("[ a/n ]x")
@example("[[a/n]x b/n]y")
@example("]/w [/w")
@example("[a/n ]/x b/n]y")
@example("a]/n]x")
def test_slash_against_its_twin(text: str) -> None:
    same_as_naive(text, "slash", lambda text: naive.slash(text)[0])


@given(slash_texts)
@example("[[a/n a/n]x]y [b/n]z")
def test_compounds_against_their_twin(text: str) -> None:
    try:
        _, expected = naive.slash(text)
    except naive.Broken:
        return
    corpus = read(text, "slash", compounds="keep")
    assert [[(word, tag or "") for word, tag in line] for line in pairs(corpus, "compounds")] == expected


@given(row_texts, st.sampled_from([2, 3]))
def test_columns_against_their_twin(text: str, column: int) -> None:
    try:
        expected = naive.rows(text, column)
    except naive.Broken:
        with pytest.raises(FormatError):
            read(text, "tsv", layer=str(column))
        return
    if any(line.strip("\r") for line in text.split("\n")) and all(tag is None for s in expected for _, tag in s):
        with pytest.raises(FormatError):  # asked for, and not there
            read(text, "tsv", layer=str(column))
        column = 2
        assert pairs(read(text, "tsv")) == expected
    else:
        assert pairs(read(text, "tsv", layer=str(column))) == expected


@given(conllu_texts, st.sampled_from(["upos", "xpos"]))
def test_conllu_against_its_twin(text: str, layer: str) -> None:
    column = 4 if layer == "upos" else 5
    try:
        expected = naive.conllu(text, column)
    except naive.Broken:
        with pytest.raises(FormatError):
            read(text, "conllu")
        return
    corpus = read(text, "conllu", layer=layer)
    assert corpus.tags() == [[tag for _, tag in sentence] for sentence in expected]
    if not any("-" in line.split("\t")[0] for line in text.split("\n")):
        assert corpus.words() == [[word for word, _ in sentence] for sentence in expected]


# Single formats -----------------------------------------------------------------------------------------------------


def test_words_of_a_multi_word_token_share_its_span_unless_they_make_it_up() -> None:
    corpus = read((fuzz.GOLDEN / "conllu.conllu").read_bytes())
    assert corpus.sentence_text(0) == "Theydon'tknow上海"
    assert corpus.words()[0][1:3] == ["do", "n't"]
    assert corpus.sentence_text(1) == "auNew York"
    layer = corpus.layer()
    assert spans(layer.starts[5:7], layer.ends[5:7]) == [(15, 17), (15, 17)]


def test_the_layer_of_conllu_is_xpos_where_it_is_filled() -> None:
    row = "1\ta\t_\t{}\t{}\t_\t_\t_\t_\t_\n\n"
    assert read(row.format("U", "X"), "conllu").layer().name == "xpos"
    assert read(row.format("U", "_"), "conllu").layer().name == "upos"
    assert read(row.format("_", "_"), "conllu").layer().name == "xpos"
    assert read(row.format("U", "X"), "conllu", layer="upos").tags() == [["U"]]
    later = row.format("U", "X") + row.format("U", "_")
    blocks = list(formats.read_blocks(io.BytesIO(later.encode()), format="conllu", block_chars=10))
    assert [block.layer().name for block in blocks] == ["xpos", "xpos"]
    with pytest.raises(UsageError, match="only xpos and upos"):
        read(row, "conllu", layer="deps")


def test_confidence_of_conllu_is_read_and_replaced() -> None:
    corpus = read((fuzz.GOLDEN / "conllu.conllu").read_bytes(), keep_source=True)
    confidence = corpus.layer().confidence
    assert confidence is not None
    np.testing.assert_array_equal(confidence[:5], np.array([np.nan, np.nan, 0.75, 0.5, np.nan], np.float32))
    values = np.linspace(0, 1, len(corpus.layer()), dtype=np.float32)
    values[0] = np.nan
    scored = corpus.with_layer(replace(corpus.layer(), confidence=values))
    text = written(scored, "conllu", confidence=True)
    assert "\tSpaceAfter=No|Conf=0.428571\n" in text  # behind what was there
    assert "\tConf=0.285714\n" in text  # in place of the old one
    assert "\tLang=zh|Conf=0.571429\n" in text
    again = read(text).layer().confidence
    assert again is not None
    np.testing.assert_allclose(again, values, rtol=0, atol=5e-7)
    for line, old in zip(text.split("\n"), (fuzz.GOLDEN / "conllu.conllu").read_text().split("\n"), strict=True):
        assert line.split("\t")[:9] == old.split("\t")[:9]


def test_conllu_segmented_anew_keeps_comments_and_renumbers() -> None:
    text = (
        "# sent_id = 1\n1\tab\tab\tX\tN\t_\t0\troot\t_\tSpaceAfter=No\n2\tc\tc\tX\tV\t_\t1\tobj\t_\t_\n\n"
        "# sent_id = 2\n1\td\td\tX\tN\t_\t0\troot\t_\tGloss=d\n\n"
    )
    corpus = read(text, keep_source=True)
    new = build([(["a", "bc"], ["P", "Q"]), (["d"], ["R"])], name="xpos").layer()
    assert written(corpus.with_layer(new), "conllu") == (
        "# sent_id = 1\n1\ta\t_\t_\tP\t_\t_\t_\t_\tSpaceAfter=No\n2\tbc\t_\t_\tQ\t_\t_\t_\t_\t_\n\n"
        "# sent_id = 2\n1\td\td\tX\tR\t_\t0\troot\t_\tGloss=d\n\n"
    )


def test_both_layers_of_conllu_are_written() -> None:
    corpus = read("1\ta\t_\tU\tX\t_\t_\t_\t_\t_\n\n", keep_source=True)
    upos = replace(corpus.layer("upos"), tags=("V",))
    assert written(corpus.with_layer(upos), "conllu", "xpos") == "1\ta\t_\tV\tX\t_\t_\t_\t_\t_\n\n"
    fresh = replace(corpus.with_layer(upos), source=None)
    assert written(fresh, "conllu", "xpos") == "1\ta\t_\tV\tX\t_\t_\t_\t_\t_\n\n"


def test_compounds_are_written_back_and_left_out_of_new_lines() -> None:
    text = "[中央/n  电视台/n]nt  播/v\n[长江/ns  三峡/ns]ns\n"
    corpus = read(text, keep_source=True)
    relabelled = build([(["中央", "电视台", "播"], ["A", "B", "C"]), (["长江三峡"], ["D"])]).layer()
    assert written(corpus.with_layer(relabelled), "slash") == "[中央/A  电视台/B]nt  播/C\n长江三峡/D\n"


def test_a_word_that_would_be_read_as_a_compound_is_not_written_with_slashes() -> None:
    for word, fine in (("[a", False), ("[", True), ("]", True), ("[1]", True), ("a]", True), ("[http://a]", False)):
        corpus = build([([word], ["x"])])
        if fine:
            assert pairs(read(written(corpus, "slash"), "slash")) == [[(word, "x")]]
        else:
            with pytest.raises(UsageError, match=r"beginning of a compound.*tsv"):
                written(corpus, "slash")


def test_columns_have_numbers() -> None:
    text = "上海\tNR\tB\n好\tVA\tO\n"
    assert read(text, layer="3").tags() == [["B", "O"]]
    assert read(text).layer().name == "2"
    for layer, message in (("x", "number of a column"), ("1", "has the words"), ("0", "number of a column")):
        with pytest.raises(UsageError, match=message):
            read(text, "tsv", layer=layer)
    with pytest.raises(FormatError, match="FILE:1: expected at least 4 columns, found 3"):
        read(text, "tsv", layer="4")


def test_a_column_of_tags_is_added_to_words_alone() -> None:
    corpus = read("上海\r\n好", "tsv", keep_source=True)
    tagged = corpus.with_layer(build([(["上海", "好"], ["NR", "VA"])], name="2").layer())
    assert written(tagged, "tsv") == "上海\tNR\r\n好\tVA"


def test_confidence_is_a_last_column() -> None:
    corpus = read("上海\tNR\tB\n好\tVA\tO\n\n", keep_source=True)
    layer = replace(corpus.layer(), confidence=np.array([0.25, 1], np.float32))
    assert written(corpus.with_layer(layer), "tsv", confidence=True) == "上海\tNR\tB\t0.250000\n好\tVA\tO\t1.000000\n\n"
    fresh = replace(corpus.with_layer(layer), source=None)
    assert written(fresh, "tsv", confidence=True) == "上海\tNR\t0.250000\n好\tVA\t1.000000\n\n"


def test_trees_of_all_shapes() -> None:
    text = (
        "(A (B c)) ( (D\n (E f)\n(-NONE- *) (G-SHORT h)) )\n\n((I j))((-LRB- -LRB-))\n"
        "<S ID=3>\n(X (-NONE- *T*))\n</S>\n"
    )
    found = [[("c", "B")], [("f", "E"), ("h", "G")], [("j", "I")], [("-LRB-", "-LRB-")], []]
    assert pairs(read(text, "brackets")) == found
    with pytest.raises(UsageError, match="can be read but not written"):
        written(read(text, "brackets"), "brackets")


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ("(A (B))", "label and no word"),
        ("(A ())", "nothing in it"),
        ("(A (B c d))", "more than one word"),
        ("(A (B c) d)", "a word beside"),
        ("(A d (B c) e)", "a word beside"),
        ("x (A (B c))", "outside of any tree"),
        ("(A (B c)))", "nothing opened"),
        ("(A (B c)", "never closes"),
    ],
)
def test_broken_trees(tree: str, message: str) -> None:
    text = f"(T (W one))\n\n{tree}\n(T (W two))\n"
    with pytest.raises(FormatError, match=message) as caught:
        read(text, "brackets")
    assert caught.value.line == 3
    skipped: list[FormatError] = []
    corpus = read(text, "brackets", on_error="skip", on_skip=skipped.append)
    assert [error.line for error in skipped] == [3]
    kept = [["c"]] if tree.startswith("x") or tree.endswith(")))") else []
    assert corpus.words() == [["one"], *kept, ["two"]]


def test_both_sides_of_coupled_columns() -> None:
    text = (
        "1\ta\t_\tNR^*\t_\t_\t_\t_\t_\tNR^Ng_NR^nr_VV^v\n"
        "2\tb\t_\t*^*\t_\t_\t_\t_\t_\tA^x_B^x\n3\tc\t_\t_\t_\t_\t_\t_\t_\t_\n"
    )
    corpus = read(text, keep_source=True)
    assert corpus.tags("1") == [["NR", frozenset("AB"), None]]
    assert corpus.tags("2") == [[frozenset({"Ng", "nr"}), frozenset("x"), None]]
    assert [layer.name for layer in read(text, layer="2").layers] == ["2", "1"]
    new = build([(["a", "b", "c"], [frozenset({"Ng", "nr"}), "x", None])], name="2").layer()
    lines_before, lines_after = text.split("\n"), written(corpus.with_layer(new), "coupled10").split("\n")
    assert lines_after[0] == lines_before[0]  # the same labels: the same bytes
    assert lines_after[1].split("\t")[3:] == ["*^x", "_", "_", "_", "_", "_", "A^x_B^x"]
    assert lines_after[2:] == lines_before[2:]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (("NR", "_"), "TAG\\^TAG"),
        (("^a", "_"), "TAG\\^TAG"),
        (("NR^*", "NR"), "bundles"),
        (("NR^*", "NR^*"), "bundles"),
        (("NR^*", "VV^v"), "allows no bundle"),
    ],
)
def test_broken_bundles(columns: tuple[str, str], message: str) -> None:
    text = f"1\ta\t_\tNR^nr\t_\t_\t_\t_\t_\t_\n2\ta\t_\t{columns[0]}\t_\t_\t_\t_\t_\t{columns[1]}\n"
    with pytest.raises(FormatError, match=message) as caught:
        read(text, "coupled10")
    assert caught.value.line == 2


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[1]", "expected an object"),
        ('{"sides": {}}', "key 'text'"),
        ('{"text": 1}', "expected a string"),
        ('{"text": "\\ud800"}', "surrogate"),
        ('{"text": "a\\u0000"}', "NUL"),
        ('{"text": "a", "sides": []}', "sides: expected an object"),
        ('{"text": "a", "sides": {"x": 1}}', "side 'x': expected an object"),
        ('{"text": "a", "sides": {"x": {}}}', "no list of units"),
        ('{"text": "a", "sides": {"x": {"units": [[0, 2]]}}}', "outside of a text of 1"),
        ('{"text": "a", "sides": {"x": {"units": [[0, 0]]}}}', "is empty"),
        ('{"text": "ab", "sides": {"x": {"units": [[1, 2], [0, 1]]}}}', "out of order"),
        ('{"text": "a", "sides": {"x": {"units": [[false, true]]}}}', "expected units"),
        ('{"text": "a", "sides": {"x": {"units": [[0, 1]], "labels": []}}}', "expected 1 labels"),
        ('{"text": "a", "sides": {"x": {"units": [[0, 1]], "labels": [""]}}}', "empty label"),
        ('{"text": "a", "sides": {"x": {"units": [[0, 1]], "labels": [[]]}}}', "empty list"),
        ('{"text": "a", "sides": {"x": {"units": [[0, 1]], "labels": [3]}}}', "expected a string"),
        ('{"text": "a", "sides": {"x": {"units": [[0, 1]], "confidence": [2]}}}', "from 0 to 1"),
        ('{"text": "a", "sides": {"x": {"units": [[0, 1]], "confidence": [NaN]}}}', "NaN"),
        ('{"text": "a"', "no JSON"),
        ('{"text": ' + "9" * 5000 + "}", "no JSON"),
        ('{"text": ' + "[" * 100_000 + "}", "deep"),
    ],
)
def test_broken_json_lines(line: str, message: str) -> None:
    with pytest.raises(FormatError, match=message) as caught:
        read('{"text": "fine"}\n\n' + line + "\n", "jsonl")
    assert caught.value.line == 3


def test_json_lines_keep_what_they_do_not_know() -> None:
    corpus = read((fuzz.GOLDEN / "jsonl.jsonl").read_bytes(), keep_source=True)
    pku = corpus.layer("pku")
    renamed = replace(pku, tags=tuple("x" + tag for tag in pku.tags))
    before = (fuzz.GOLDEN / "jsonl.jsonl").read_text().split("\n")
    after = written(corpus.with_layer(renamed), "jsonl").split("\n")
    assert after[0] == before[0]
    assert '"meta": {"source": "somewhere"}' in after[1]
    assert '"labels": ["xns", "xns"]' in after[1]
    assert '"standard": "ctb"' in after[1]
    assert "nbest" not in after[3]  # they were answers to the labels that are gone
    assert after[4] == before[4]


def test_json_lines_hold_the_n_best() -> None:
    corpus = build([(["ab", "c"], ["X", "Y"])], name="ctb")
    one, two = corpus.layer(), build([(["a", "bc"], ["X", "Z"])]).layer()
    out = io.BytesIO()
    with formats.open_writer(out, "jsonl") as writer:
        writer.write(corpus, nbest={"ctb": [[(0.75, one), (0.25, two)]]})
    answers = (
        '[{"score": 0.75, "labels": ["X", "Y"]}, {"score": 0.25, "units": [[0, 1], [1, 3]], "labels": ["X", "Z"]}]'
    )
    assert f'"nbest": {answers}' in out.getvalue().decode()
    with pytest.raises(UsageError, match="jsonl"), formats.open_writer(io.BytesIO(), "slash") as writer:
        writer.write(corpus, nbest={"ctb": [[(0.75, one)]]})


def test_sides_that_come_late_and_sides_that_are_asked_for() -> None:
    side = '{"x": {"units": [[0, 1]], "labels": ["N"], "confidence": [0.5]}}'
    text = f'{{"text": "a"}}\n{{"text": "b", "sides": {side}}}\n{{"text": "c"}}\n'
    corpus = read(text)
    assert pairs(corpus) == [[], [("b", "N")], []]
    assert corpus.layer().confidence is not None
    with pytest.raises(UsageError, match=r"no side 'y'; it has 'x'"):
        read(text, layer="y")
    blocks = list(formats.read_blocks(io.BytesIO(text.encode()), block_chars=20))
    assert [block.layer().name for block in blocks] == ["tags", "x"]


@pytest.mark.parametrize("text", ["a\nb", "a\r", "\n"])
def test_raw_text_with_a_line_end_inside_is_not_written(text: str) -> None:
    corpus = build([(["fine"], None), ([text], None)])
    with pytest.raises(UsageError, match="sentence 2: there is a line end in it"):
        written(corpus, "raw")
    assert written(build([(["a\rb"], None)]), "raw") == "a\rb\n"


def test_raw_text_keeps_its_spaces() -> None:
    corpus = read(" 上海\u3000好 \r\n\n x", "raw")
    assert [corpus.sentence_text(k) for k in range(3)] == [" 上海\u3000好 ", "", " x"]
    assert corpus.words() == [["上海", "好"], [], ["x"]]
    assert spans(corpus.layer().starts, corpus.layer().ends) == [(1, 3), (4, 5), (7, 8)]


# Detection ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("我/r 爱/v 你/r\n", "slash"),
        ("我_PN 爱_VV 你_PN\n", "underscore"),
        ("我 爱 北京 天安门\n", "segmented"),
        ("我爱北京天安门。\n今天天气很好，我们去公园。\n", "raw"),
        ("我爱北京 今天天气很好我们去公园\n", "raw"),
        ("The cat sat on the mat .\nIt was , as they say , warm .\n", "segmented"),
        ("The cat sat on the mat.\nIt was, as they say, warm.\n", "raw"),
        ("24/7 is a lot\nand/or not\n", "raw"),
        ("我\tPN\n爱\tVV\n\n", "tsv"),
        ("1\ta\t_\tX\tY\t_\t_\t_\t_\t_\n\n", "conllu"),
        ("# text = a\n1\ta\t_\tX\tY\t_\t_\t_\t_\t_\n\n", "conllu"),
        ("1\ta\t_\tX^Y\t_\t_\t_\t_\t_\t_\n\n", "coupled10"),
        ("(IP (NN a))\n", "brackets"),
        ("<DOC>\n<S ID=1>\n( (IP (NN a)))\n", "brackets"),
        ("(a remark in brackets)\n", "raw"),
        ('{"text": "a"}\n', "jsonl"),
        ("我/r 爱/v 你\n" * 9, "slash"),  # broken, and still what it is
    ],
)
def test_detection(text: str, expected: str) -> None:
    assert formats.detect(io.BytesIO(text.encode())) == expected


def test_a_file_without_content_is_what_its_name_says(tmp_path: Path) -> None:
    for name, expected in (("a.conllu", "conllu"), ("a.jsonl.gz", "jsonl"), ("a.unknown", "raw"), ("b.tsv", "tsv")):
        path = tmp_path / name
        path.write_bytes(gzip.compress(b"\n") if name.endswith(".gz") else b"\n")
        assert formats.detect(path) == expected


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
