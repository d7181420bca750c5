"""Mappings counted: words that overlap, common words, examples, weak relations; taggers; files; pictures."""

from __future__ import annotations

import xml.etree.ElementTree as Tree
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import mapping as naive
from pages import Page
from toys import toy_sentences, trained

from duilian import induction, mapping
from duilian.corpus import Corpus, Layer, build
from duilian.errors import DataError, FormatError, TaskError, UsageError
from duilian.mapping.drawing import colour

LENGTH = 6
cuts = st.lists(st.tuples(st.integers(1, 3), st.booleans()), max_size=LENGTH)


def layer_of(drawn: list[tuple[int, bool]], name: str = "a") -> Layer:
    """Words of the drawn lengths from the left, those that are not wanted left out."""
    spans, at = [], 0
    for length, wanted in drawn:
        if wanted and at + length <= LENGTH:
            spans.append((at, at + length))
        at += length
    starts, ends = (np.array([span[k] for span in spans], np.int64) for k in (0, 1))
    n = len(spans)
    return Layer(name, ("x",), np.array([0, n]), starts, ends, np.zeros(n, np.int32))


@given(st.lists(cuts, min_size=2, max_size=3))
def test_overlaps_equal_the_definition(drawn: Any) -> None:
    layers = [layer_of(one) for one in drawn]
    spans = [[*zip(layer.starts.tolist(), layer.ends.tolist(), strict=True)] for layer in layers]
    found = mapping.overlaps(*layers, length=LENGTH)
    rows = [tuple(row) for row in found.tolist()]
    assert len(set(rows)) == len(rows)
    assert set(rows) == naive.overlaps(spans)


def both() -> tuple[Corpus, tuple[Layer, Layer]]:
    """北京人 好, cut in two ways."""
    one = build([(["北京", "人"], ["ns", "n"]), (["好"], ["a"])], "one")
    two = build([(["北京人"], ["NN"]), (["好"], [None])], "two")
    return Corpus(one.text, one.offsets, (one.layer(), two.layer())), (one.layer(), two.layer())


def test_labels_of_overlapping_words_are_counted_over_corpora_with_other_lists_of_tags() -> None:
    corpus, layers = both()
    other = build([(["人", "好"], ["n", "a"])], "one")
    named = (other.layer(), replace(other.layer(), tags=("JJ", "NN")))
    found = mapping.from_overlaps([(corpus, layers), (other, named)])
    counted = dict(zip(found.names(), found.counts.tolist(), strict=True))
    assert counted == {("ns", "NN"): 1, ("n", "NN"): 2, ("a", "JJ"): 1}
    assert len(mapping.from_overlaps([(corpus, layers), (other, named)], min_count=2)) == 1


words = st.lists(st.tuples(st.sampled_from("书好人"), st.sampled_from("nva")), min_size=1, max_size=12)


@given(words, words, st.sampled_from([0.1, 0.3, 0.5, 1.0]))
def test_common_words_equal_the_definition(one: Any, two: Any, share: float) -> None:
    corpora = [build([([w for w, _ in side], [t for _, t in side])]) for side in (one, two)]
    found = mapping.common_words([(corpus, corpus.layer()) for corpus in corpora], share)
    assert dict(zip(found.names(), found.counts.tolist(), strict=True)) == naive.common_words([one, two], share)


def test_examples_show_different_words_first() -> None:
    corpus = build([(["书", "书", "人", "书"], ["n"] * 4), (["大", "好", "书"], ["a", "a", "n"])])
    layers = (corpus.layer(), replace(corpus.layer(), name="b", tags=("A", "N")))
    found = mapping.examples([(corpus, layers)], [("n", "N"), ("a", "A"), ("a", "N")], n=3)
    assert [one.words for one in found["n", "N"]] == [("书", "书"), ("人", "人"), ("书", "书")]
    assert found["a", "N"] == []
    last = found["a", "A"][1]
    assert (last.left, last.right, last.sentence) == ("大", "书", 2)
    cut, pair = both()
    (seen,) = mapping.examples([(cut, pair)], [("n", "NN")], n=2)["n", "NN"]
    assert (seen.left, seen.words, seen.right) == ("", ("人", "北京人"), "")


def test_what_is_seldom_on_both_sides_is_weak() -> None:
    sides = [("a", "b"), ("x", "y")]
    counted = mapping.make(sides, [[0, 0], [0, 1], [1, 1]], np.zeros(3, bool), [98, 2, 20])
    assert mapping.mark_weak(counted, 0.15).weak.tolist() == [False, True, False]
    assert mapping.mark_weak(counted, 0.05).weak.tolist() == [False, False, False], "2 of the 22 y are no trifle"
    assert mapping.mark_weak(mapping.mark_weak(counted, 0.15), 0.0).weak.tolist() == [False, True, False]


# Files ---------------------------------------------------------------------------------------------------------------

TRICKY = st.text(alphabet="ab*?#|\\@", min_size=1, max_size=3)


@given(
    st.lists(st.lists(TRICKY, min_size=1, max_size=4, unique=True), min_size=2, max_size=3), st.integers(0, 2**32 - 1)
)
def test_counts_and_names_survive_a_file(tmp_path_factory: pytest.TempPathFactory, sides: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    whole = mapping.complete(sides)
    kept = rng.random(len(whole)) < 0.7
    some = mapping.make(sides, whole.bundles[kept], rng.random(kept.sum()) < 0.5, rng.integers(0, 50, kept.sum()))
    names = ("ctb", "pku", "ud")[: len(sides)]
    path = tmp_path_factory.mktemp("rules") / "x.rules"
    path.write_text(mapping.to_rules(some, names=names), encoding="utf-8")
    found = mapping.read_rules(path, sides)
    assert found.names == names
    assert found.mapping.names() == some.names()
    np.testing.assert_array_equal(found.mapping.counts, some.counts)
    np.testing.assert_array_equal(found.mapping.weak, some.weak)
    alone = mapping.read_rules(path).mapping
    assert alone.names() == sorted(some.names())
    assert mapping.to_rules(alone.with_sides(some.sides), names=names) == path.read_text(encoding="utf-8")


def test_counts_of_an_edited_line_are_gone() -> None:
    sides = [("NN", "VV"), ("n", "v", "vn")]
    text = "# sides: ctb | pku\nNN n vn?  # 7 3\nVV v n  # 5\nNN VV | v  # 4 4\n"
    found = mapping.parse_rules(text, sides)
    counts = dict(zip(found.names(), found.counts.tolist(), strict=True))
    assert counts == {("NN", "n"): 7, ("NN", "vn"): 3, ("VV", "v"): 0, ("VV", "n"): 0, ("NN", "v"): 0}
    assert mapping.parse_rules("N* n  # 4\n", [("NN", "NR"), ("n",)]).counts.tolist() == [0, 0]


def test_a_pattern_needs_to_know_the_labels(tmp_path: Path) -> None:
    path = tmp_path / "x.rules"
    path.write_text("N* n\n", encoding="utf-8")
    with pytest.raises(FormatError, match="--side"):
        mapping.read_rules(path)
    assert len(mapping.read_rules(path, [("NN", "NR"), ("n",)]).mapping) == 2
    with pytest.raises(DataError, match="no such file"):
        mapping.read_rules(tmp_path / "y")


def test_a_file_says_which_labels_have_no_relation() -> None:
    text = mapping.to_rules(mapping.make([("a", "b"), ("x",)], [[0, 0]], [False], [3]), names=("one", "two"))
    assert "# no relation on side one: b" in text
    assert "a x  # 3" in text


# Taggers -------------------------------------------------------------------------------------------------------------


def upper() -> Corpus:
    """Toy sentences with the tags of another standard: adverbs and adjectives are one."""
    new = {"r": "R", "v": "V", "n": "N", "d": "AD", "a": "AD"}
    return build([(words, [new[str(tag)] for tag in tags]) for words, tags in toy_sentences(9, 2)])


def test_taggers_induce_what_they_answer() -> None:
    tagger = trained("perceptron", "pos", dropout=0.0)
    found = induction.by_taggers({"big": upper(), "a": build(toy_sentences(9))}, {"a": tagger})
    assert found.names == ("big", "a")
    assert set(found.mapping.names()) == {("R", "r"), ("V", "v"), ("N", "n"), ("AD", "d"), ("AD", "a")}
    assert found.mapping.counts.sum() == len(upper().layer())
    tags = Counter(tag for sentence in upper().tags() for tag in sentence)
    assert found.mapping.counts[[one == ("N", "n") for one in found.mapping.names()]] == tags["N"]
    segmenter = trained("perceptron", "segpos", dropout=0.0)
    again = induction.by_taggers({"big": upper(), "a": build(toy_sentences(9))}, {"a": segmenter})
    assert set(again.mapping.names()) == set(found.mapping.names())
    with pytest.raises(UsageError, match="no corpus can be tagged"):
        induction.by_taggers({"big": upper(), "a": upper()}, {})


def test_a_coupled_model_pairs_what_it_has_learnt() -> None:
    tagger = trained("coupled", "pos", dropout=0.0)
    given = build(toy_sentences(5))
    found = induction.by_model(tagger, {"a": given})
    assert found.names == ("a", "b1")
    converted = tagger.convert(given, "a", "b1")
    flat = [[tag for sentence in one.tags() for tag in sentence] for one in (given, converted)]
    pairs = Counter(zip(*flat, strict=True))
    assert dict(zip(found.mapping.names(), found.mapping.counts.tolist(), strict=True)) == dict(pairs)
    assert len(induction.by_model(tagger, {"a": given}, sure=1.1).mapping) == 0
    with pytest.raises(TaskError, match="one standard"):
        induction.by_model(trained("perceptron", "pos"), {"a": given})


# Pictures ------------------------------------------------------------------------------------------------------------


def test_shares_go_from_the_commonest_row_down() -> None:
    counted = mapping.make([("a", "b", "c"), ("x", "y")], [[0, 0], [1, 0], [1, 1]], np.zeros(3, bool), [2, 1, 9])
    rows, columns, share = mapping.shares(counted)
    assert rows == [1, 0, 2]
    assert columns == [1, 0]
    np.testing.assert_allclose(share, [[0.9, 0.1], [0, 1], [0, 0]])
    three = mapping.complete([("a",), ("b",), ("c",)])
    with pytest.raises(UsageError, match="--only"):
        mapping.shares(three)


def test_pictures_are_well_formed_and_say_what_is_there() -> None:
    sides = [("<a&>", "b"), ("x", '"y"')]
    counted = mapping.make(sides, [[0, 0], [1, 1]], [False, True], [3, 1])
    drawn = mapping.picture(counted, ("one", "<two>"))
    root = Tree.fromstring(drawn)
    titles = [element.text for element in root.iter() if element.tag.endswith("title")]
    assert titles == ["<a&> x: 3 (100.0 %)", 'b "y": 1 (100.0 %)']
    cells = [element for element in root.iter() if "cell" in element.get("class", "").split()]
    assert [cell.get("class") for cell in cells] == ["cell", "cell weak"]
    assert [float(cell.get("fill-opacity", "")) for cell in cells] == [1.0, 1.0]
    assert root.get("role") == "img"
    assert "2 relations" in root.get("aria-label", "")
    assert "<a&> goes with x (3, 100.0 % of the row)" in root.get("aria-label", "")
    assert "prefers-color-scheme:dark" in drawn
    corpus, layers = both()
    counted = mapping.from_overlaps([(corpus, layers)])
    places = mapping.examples([(corpus, layers)], counted.names(), 1)
    page = mapping.page(counted, ("one", "two"), places)
    assert "<mark>人 / 北京人</mark>" in page
    assert page.count("<tr id=") == page.count('<a href="#r') == len(counted)
    assert Page(page).complaints == []
    assert colour(0.0) != colour(0.1) != colour(1.0)
