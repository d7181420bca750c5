"""The kernels of formats, and whole readers, against their slow twins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import JIT
from format_strategies import conllu_texts, lines, row_texts, slash_texts
from format_tools import pairs, places, points, read, spans, written
from fuzz import corpora as fuzz
from hypothesis import example, given
from hypothesis import strategies as st
from naive import formats as naive

from duilian import formats
from duilian.corpus import decode
from duilian.errors import FormatError
from duilian.formats import compound_kernels, scan_kernels, weave_kernels
from duilian.formats.base import fixed

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
