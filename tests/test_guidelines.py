"""Guideline tables: every one of them is read, covers both standards, and says the same whichever side comes first."""

from __future__ import annotations

from pathlib import Path

import pytest

from duilian import guidelines, standards
from duilian.errors import FormatError

EVERY = sorted(guidelines.paths())
# What a table may leave out: marks that stand for nothing on the other side.
LEFT_OUT = {"ptb": 8, "ud": 1}


@pytest.mark.parametrize("pair", EVERY)
def test_every_table_covers_its_standards(pair: tuple[str, str]) -> None:
    table = guidelines.find(*pair)
    assert table is not None
    assert table.sides == pair
    assert len(table.source) > 10
    tags = [list(standards.get(name).tags) for name in pair]
    found = table.mapping(pair, tags)
    for name, missing in zip(pair, found.uncovered(), strict=True):
        assert len(missing) <= LEFT_OUT.get(name, 0), missing
    assert not found.is_complete
    turned = table.mapping(pair[::-1], tags[::-1])
    assert {(b, a) for a, b in turned.names()} == set(found.names())
    assert turned.sides == found.sides[::-1]
    assert table.turned(pair[::-1]) == tuple((b, a) for a, b in table.names)


def test_sub_categories_and_what_the_data_lacks() -> None:
    """nr brings nrf and nrg, and whatever else begins so in the data; tags that the data lacks are left out."""
    table = guidelines.find("pku", "ctb")
    assert table is not None
    found = set(table.mapping(("pku", "ctb"), [["n", "nr", "nrf", "vn"], ["NN", "NR"]]).names())
    assert found == {("n", "NN"), ("n", "NR"), ("nr", "NR"), ("nrf", "NR"), ("vn", "NN")}
    brown = guidelines.find("brown", "ptb")
    assert brown is not None
    assert ("NN-TL", "NN") in brown.mapping(("brown", "ptb"), [["NN", "NN-TL"], ["NN", "JJ"]]).names()


def test_the_same_name_stands_for_itself_where_the_table_says_so() -> None:
    table = guidelines.find("unidic-suw", "unidic-luw")
    assert table is not None
    tags = ["助詞-終助詞", "連体詞"]
    assert set(table.mapping(("unidic-suw", "unidic-luw"), [tags, tags]).names()) >= {(tag, tag) for tag in tags}


def test_standards_without_a_table() -> None:
    assert guidelines.find("brown", "pku") is None
    assert guidelines.find("pku", "pku") is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sides = [", "is not TOML"),
        ('sides = ["a", "b"]\n', "expected sides"),
        ('sides = ["b", "a"]\nrules = ""\n', "expected sides"),
        ('sides = ["a", "b"]\nrules = ""\nrule = 1\n', r"unknown keys: \['rule'\]"),
        ('sides = ["a", "b"]\nrules = ""\nnames = ["x"]\n', "is no pair of patterns"),
    ],
)
def test_a_broken_table(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "a+b.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FormatError, match=message):
        guidelines.read(path)
