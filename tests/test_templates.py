"""Template lines: what they parse into, and what each wrong line is told."""

from __future__ import annotations

import numpy as np
import pytest

from duilian.errors import SettingError
from duilian.features.templates import (
    ATOMS,
    CHARACTER_ATOMS,
    EXPANSIONS,
    MAX_OFFSET,
    TEMPLATES,
    WORD_ATOMS,
    guided,
    parse,
)


def test_a_line_becomes_rows_of_numbers() -> None:
    table = parse(["w0 last-1", "prefix0", "first0 inner0 n+2"], "word")
    assert len(table) == 3
    assert table.offsets.tolist() == [0, 2, 2, 4]
    assert table.atoms.tolist() == [[ATOMS["w"], 0], [ATOMS["last"], -1], [ATOMS["first"], 0], [ATOMS["n"], 2]]
    assert table.expansions.tolist() == [0, EXPANSIONS["prefix"], EXPANSIONS["inner"]]
    assert table.texts == ("w0 last-1", "prefix0", "first0 inner0 n+2")


def test_an_offset_may_be_left_out_when_it_is_zero() -> None:
    np.testing.assert_array_equal(parse(["w bias"], "word").atoms, parse(["w0 bias0"], "word").atoms)


UNITS = [("li2015", "word"), ("alphabetic", "word"), ("jiang2012", "character"), ("lexicon", "character")]


@pytest.mark.parametrize(("name", "unit"), UNITS)
def test_every_set_of_templates_parses(name: str, unit: str) -> None:
    assert len(parse(TEMPLATES[name], unit)) == len(TEMPLATES[name])
    assert len(parse(guided(TEMPLATES[name]), unit)) == 2 * len(TEMPLATES[name]) + 1
    other = "character" if unit == "word" else "word"
    with pytest.raises(SettingError, match=f"over {other}s"):
        parse(TEMPLATES[name], other)


def test_the_papers_templates_are_as_many_as_in_their_tables() -> None:
    """li2015 Table 1 has 15 with the label bigram; jiang2012 Table 1 has 12."""
    assert len(TEMPLATES["li2015"]) == 14
    assert len(TEMPLATES["jiang2012"]) == 12
    assert set(TEMPLATES["jiang2012"]) < set(TEMPLATES["lexicon"])


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["w0", "x0"], "template 'x0': no atom 'x0' over words"),
        (["c0"], "no atom 'c0' over words.*Possible: .*first"),
        (["w0 +1"], r"no atom '\+1'"),
        (["w--1"], "no atom 'w--1'"),
        (["W0"], "no atom 'W0'"),
        ([f"w+{MAX_OFFSET + 1}"], f"offset {MAX_OFFSET + 1} of 'w' is beyond {MAX_OFFSET}"),
        ([f"w-{MAX_OFFSET + 1}"], "is beyond"),
        (["inner0 prefix0"], "at offset 0 is the most"),
        (["inner-1"], "at offset 0 is the most"),
        (["w0", ""], "an empty template"),
        (["w0", "   "], "an empty template"),
        (["w0", "w-1", "w0"], "template 'w0' stands twice"),
    ],
)
def test_wrong_lines(lines: list[str], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        parse(lines, "word")


def test_every_atom_is_over_words_or_characters() -> None:
    assert set(ATOMS) == WORD_ATOMS | CHARACTER_ATOMS
    assert not set(EXPANSIONS) & set(ATOMS)


def test_guided_templates_are_those_of_jiang2012_table_2() -> None:
    assert guided(["c0", "c-1 c0"]) == ("c0", "c-1 c0", "g0", "c0 g0", "c-1 c0 g0")
    near = ("g-1", "g+1", "w0 g-1", "w0 g+1", "suffix0 g-1", "suffix0 g+1", "w-1 g-1", "w+1 g+1", "g-2", "g+2")
    assert guided(["w0"], unit="word") == ("w0", "g0", "w0 g0", *near)
