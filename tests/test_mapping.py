"""Mapping functions: what is counted, what rule files say, how relations spread to sub-categories and characters."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import mapping as naive

from duilian import corpus, mapping
from duilian.errors import FormatError, MismatchError, SettingError

CTB = ("NN", "NR", "VA", "VC", "VV")
PKU = ("#", "Ng", "a", "n", "nr", "nrf", "nrg", "v", "vn", "z")
TRICKY = st.text(alphabet="ab*?#|\\@", min_size=1, max_size=3)


def names(found: mapping.Mapping) -> set[tuple[str, ...]]:
    assert len(set(found.names())) == len(found)
    return set(found.names())


def test_complete() -> None:
    found = mapping.complete([CTB, PKU])
    assert found.is_complete
    assert names(found) == naive.complete([CTB, PKU])
    assert found.table.all()
    three = mapping.complete([("a",), ("b", "c"), ("d", "e")])
    assert names(three) == naive.complete(three.sides)


@given(st.lists(st.tuples(st.integers(-3, 2), st.integers(-3, 1)), max_size=12), st.integers(1, 2))
def test_automatic_counts_what_occurs(units: Any, min_count: int) -> None:
    sides = [("a", "b", "c"), ("x", "y")]
    rows = np.array(units, dtype=np.int32).reshape(-1, 2)
    found = mapping.automatic(sides, rows[:, 0], rows[:, 1], min_count=min_count)
    spoken = [tuple(side[k] if k >= 0 else None for side, k in zip(sides, unit, strict=True)) for unit in units]
    wanted = {key: n for key, n in naive.automatic(spoken).items() if n >= min_count}
    assert dict(zip(found.names(), found.counts.tolist(), strict=True)) == wanted
    assert not found.weak.any()


def test_from_layers_wants_the_same_words() -> None:
    one = corpus.build([(["中国", "人"], ["NR", "NN"]), (["人"], ["NN"])]).layer()
    two = replace(one, tags=("n", "ns"), labels=np.array([1, 0, 0], dtype=np.int32))
    found = mapping.from_layers(one, two)
    assert dict(zip(found.names(), found.counts.tolist(), strict=True)) == {("NN", "n"): 2, ("NR", "ns"): 1}
    other = corpus.build([(["中", "国人"], ["NR", "NN"]), (["人"], ["NN"])]).layer()
    with pytest.raises(MismatchError, match="different words"):
        mapping.from_layers(one, other)


RULES = """\
# a comment
NN   n Ng vn?      # verbal nouns

V*   v a
NR NN | nr* \\#?
"""


def test_rules() -> None:
    found = mapping.parse_rules(RULES, [CTB, PKU])
    strong = {("NN", "n"), ("NN", "Ng")} | {(a, b) for a in ("VA", "VC", "VV") for b in ("v", "a")}
    strong |= {(a, b) for a in ("NN", "NR") for b in ("nr", "nrf", "nrg")}
    assert names(found.tight()) == strong
    assert names(found) == strong | {("NN", "vn"), ("NN", "#"), ("NR", "#")}
    assert found.uncovered() == [[], ["z"]]
    assert found.table[0, PKU.index("vn")]
    assert not found.table[1, PKU.index("vn")]


def test_a_relation_that_is_strong_somewhere_is_not_weak() -> None:
    found = mapping.parse_rules("NN n? n\nNR n?\nNR n\n", [CTB, PKU])
    assert not found.weak.any()


def test_three_sides() -> None:
    found = mapping.parse_rules("NN NR | n nr | NOUN PROPN?\n", [CTB, PKU, ("NOUN", "PROPN")])
    assert len(found) == 8
    assert len(found.tight()) == 4
    with pytest.raises(FormatError, match=r"rules:1: expected labels of 3 sides"):
        mapping.parse_rules("NN n\n", [CTB, PKU, ("NOUN",)])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("NN n\nNN\n", r"rules:2: expected labels of 2 sides, found 'NN'"),
        ("NN n | v | a\n", r"rules:1: expected labels of 2 sides"),
        ("NN |\n", r"rules:1: expected labels of 2 sides"),
        ("\n# x\nNX n\n", r"rules:3: side 1 has no label 'NX'. The nearest is 'N[NR]'"),
        ("NN q*\n", r"rules:1: side 2 has no label 'q\*'"),
    ],
)
def test_broken_rules_name_the_line(text: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        mapping.parse_rules(text, [CTB, PKU])


def test_a_file_that_is_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "rules.txt"
    path.write_bytes("NN 名".encode("gb18030"))
    with pytest.raises(FormatError, match="UTF-8"):
        mapping.from_rules(path, [CTB, PKU])
    path.write_bytes(b"\xef\xbb\xbfNN n\r\n")
    assert names(mapping.from_rules(path, [CTB, PKU])) == {("NN", "n")}


@given(
    st.lists(st.lists(TRICKY, min_size=1, max_size=4, unique=True), min_size=2, max_size=3), st.integers(0, 2**32 - 1)
)
def test_rules_written_and_read_again(sides: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    whole = mapping.complete(sides)
    kept = rng.random(len(whole)) < 0.7
    some = mapping.Mapping(
        whole.sides, whole.bundles[kept], rng.random(kept.sum()) < 0.3, rng.integers(0, 5, size=kept.sum())
    )
    again = mapping.parse_rules(mapping.to_rules(some), sides)
    np.testing.assert_array_equal(again.bundles, some.bundles)
    np.testing.assert_array_equal(again.weak, some.weak)


def test_sub_categories_follow_their_category() -> None:
    """qiu2013: NR <-> nr brings nrf and nrg; n has no part in them, for nr is a category of its own."""
    found = mapping.loose(mapping.parse_rules("NN n\nNR nr\nVV v?\n", [CTB, PKU]))
    assert names(found.tight()) == {("NN", "n"), ("NR", "nr"), ("NR", "nrf"), ("NR", "nrg")}
    assert names(found) == names(found.tight()) | {("VV", "v"), ("VV", "vn")}
    told = mapping.loose(mapping.parse_rules("NN n\n", [CTB, PKU]), [None, lambda tag: ["z"] if tag == "n" else []])
    assert names(told) == {("NN", "n"), ("NN", "z")}


CHARACTERS = [[f"{p}@{tag}" for p in "BIES" for tag in side] for side in (("NN", "NR"), ("nr", "nrf"), ("X",))]


@pytest.mark.parametrize("mode", sorted(mapping.LIFTS))
@pytest.mark.parametrize("n_sides", [2, 3])
def test_lift_equals_what_ways_to_cut_allow(mode: str, n_sides: int) -> None:
    tags = [("NN", "NR"), ("nr", "nrf"), ("X",)][:n_sides]
    whole = mapping.complete(tags)
    part = replace(whole, bundles=whole.bundles[1:], weak=np.arange(len(whole) - 1) == 0, counts=whole.counts[1:])
    labels = CHARACTERS[:n_sides]
    found = mapping.lift(part, labels, mode)
    assert names(found) == naive.lift(names(part), labels, mode)
    assert names(found.tight()) == naive.lift(names(part.tight()), labels, mode)


def test_special_alignments() -> None:
    """qiu2013, section 4: a name that is one word here and two words there."""
    tags = mapping.parse_rules("NN nr\nNR nr nrf\n", [("NN", "NR"), ("nr", "nrf")])
    found = names(mapping.lift(tags, CHARACTERS[:2], special=[("NR", "nr*")]))
    assert ("B@NR", "S@nrf") in found
    assert ("E@NR", "E@nrf") in found
    assert ("I@NR", "B@nr") in found
    assert ("B@NR", "E@nr") not in found
    assert ("B@NN", "S@nr") not in found
    assert ("B@NN", "B@nrf") not in found


def test_lift_of_labels_without_tags() -> None:
    tags = mapping.parse_rules("NN nr\n", [("NN", "NR"), ("nr", "nrf")])
    found = names(mapping.lift(tags, [["B", "E"], CHARACTERS[1]]))
    assert found == {("B", "B@nr"), ("E", "E@nr")}
    bmes = names(mapping.lift(tags, [["M@NN"], ["M@nr", "S@nr"]], scheme_name="BMES"))
    assert bmes == {("M@NN", "M@nr")}


def test_what_cannot_be_lifted() -> None:
    tags = mapping.complete([("NN",), ("n",)])
    with pytest.raises(SettingError, match="no way of lifting"):
        mapping.lift(tags, [["B@NN"], ["B@n"]], "sideways")
    with pytest.raises(SettingError, match="knows no tag 'NR' on side 1"):
        mapping.lift(tags, [["B@NR"], ["B@n"]])
    with pytest.raises(SettingError, match="prefix of BIES"):
        mapping.lift(tags, [["NN"], ["B@n"]])


def test_union_and_other_lists_of_labels() -> None:
    one = mapping.automatic([CTB, PKU], np.array([0, 0], np.int32), np.array([3, 3], np.int32))
    two = mapping.parse_rules("NN n? v?\n", [CTB, PKU])
    both = one.union(two)
    assert names(both.tight()) == {("NN", "n")}
    assert both.counts.tolist() == [2, 0]
    assert names(both.with_sides([("NN",), ("v", "x")])) == {("NN", "v")}
    assert names(both.at_least(1)) == {("NN", "n")}
    with pytest.raises(MismatchError):
        one.union(mapping.complete([("a",), ("b",)]))
    with pytest.raises(MismatchError, match="2 sides"):
        mapping.automatic([CTB, PKU], np.array([0], np.int32))
    with pytest.raises(ValueError, match="read-only"):
        both.bundles[0, 0] = 1
