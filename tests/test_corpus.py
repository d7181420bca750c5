"""Corpora against lists of words and labels: building, selecting, joining, other tags; frozen arrays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duilian.corpus import (
    Corpus,
    Label,
    Layer,
    build,
    concatenate,
    decode,
    encode,
    number_labels,
    with_tags,
)
from duilian.ragged import Ragged

words = st.text(st.characters(), min_size=1, max_size=3)
labels = st.none() | st.sampled_from("abc") | st.frozensets(st.sampled_from("abcd"), min_size=1)
sentences = st.lists(st.lists(st.tuples(words, labels), max_size=4), max_size=4)
Pairs = list[list[tuple[str, Label]]]


def corpus_of(pairs: Pairs, name: str = "tags") -> Corpus:
    return build([([word for word, _ in one], [label for _, label in one]) for one in pairs], name)


def pairs_of(corpus: Corpus, name: str | None = None) -> Pairs:
    both = zip(corpus.words(name), corpus.tags(name), strict=True)
    return [list(zip(one, tags, strict=True)) for one, tags in both]


@given(sentences)
def test_what_is_built_is_read_back(pairs: Pairs) -> None:
    corpus = corpus_of(pairs)
    assert pairs_of(corpus) == pairs
    assert len(corpus) == len(pairs)
    assert [corpus.sentence_text(k) for k in range(len(pairs))] == ["".join(w for w, _ in one) for one in pairs]
    assert list(corpus.layer().tags) == sorted(corpus.layer().tags)
    assert len(corpus.layer()) == sum(map(len, pairs))


@given(st.text(st.characters(codec=None) | st.sampled_from("\ud800𠮷\x00"), max_size=8))
def test_text_is_code_points_and_back(text: str) -> None:
    points = encode(text)
    assert points.dtype == np.uint32
    assert points.tolist() == [ord(character) for character in text]
    assert decode(points) == text


@given(sentences.filter(bool), st.data())
def test_select_keeps_the_chosen_sentences(pairs: Pairs, data: st.DataObject) -> None:
    corpus = corpus_of(pairs)
    chosen = data.draw(st.lists(st.integers(0, len(pairs) - 1), max_size=5))
    assert pairs_of(corpus.select(chosen)) == [pairs[k] for k in chosen]
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(pairs), max_size=len(pairs))), np.bool_)
    assert pairs_of(corpus.select(mask)) == [one for one, keep in zip(pairs, mask, strict=True) if keep]
    assert pairs_of(corpus.select(slice(1, None))) == pairs[1:]


@given(sentences, sentences, sentences)
def test_corpora_one_after_the_other(one: Pairs, two: Pairs, three: Pairs) -> None:
    """Their tags are merged, their sets renumbered."""
    corpora = [corpus_of(pairs) for pairs in (one, two, three)]
    assert pairs_of(concatenate(corpora)) == one + two + three
    assert pairs_of(concatenate(corpora[:1])) == one
    assert len(concatenate([])) == 0


@given(sentences, st.permutations(["a", "b", "c", "d", "e"]), st.integers(0, 5))
def test_labels_over_another_list_of_tags(pairs: Pairs, tags: list[str], n: int) -> None:
    """A tag that the list lacks becomes unknown, and leaves the sets it is in."""
    kept = tags[:n]
    layer = with_tags(corpus_of(pairs).layer(), kept)
    expected: list[Label] = []
    for label in (label for one in pairs for _, label in one):
        if isinstance(label, frozenset):
            expected.append(label & set(kept) or None)
        else:
            expected.append(label if label in kept else None)
    assert [layer.label(unit) for unit in range(len(layer))] == expected
    assert layer.tags == tuple(kept)
    assert all(np.all(np.diff(row) > 0) for row in layer.sets), "sets rise, whatever the order of the tags"


@given(st.lists(labels))
def test_labels_are_numbered(items: list[Label]) -> None:
    tags, numbers, sets = number_labels(items)
    assert list(tags) == sorted(set(tags))
    for label, number in zip(items, numbers.tolist(), strict=True):
        if label is None:
            assert number == -1
        elif isinstance(label, str):
            assert tags[number] == label
        else:
            assert [tags[k] for k in sets[-2 - number]] == sorted(label)


def test_two_segmentations_of_one_text_are_two_layers() -> None:
    corpus = corpus_of([[("北京", "n"), ("人", "n")]], "long")
    short = Layer("short", (), np.array([0, 3]), np.arange(3), np.arange(3) + 1, np.full(3, -1, np.int32))
    both = corpus.with_layer(short)
    assert both.words("short") == [["北", "京", "人"]]
    assert both.words("long") == both.words() == [["北京", "人"]]
    assert not short.has_tags
    assert both.layer("long").has_tags
    assert [layer.name for layer in corpus.layers] == ["long"]
    none = np.zeros(0, np.int64)
    again = both.with_layer(Layer("short", (), np.array([0, 0]), none, none, np.zeros(0, np.int32)))
    assert [layer.name for layer in again.layers] == ["long", "short"]
    assert again.words("short") == [[]]


def test_confidences_are_selected_and_joined_with_their_units() -> None:
    def sure(pairs: Pairs, values: list[float]) -> Corpus:
        layer = corpus_of(pairs).layer()
        return corpus_of(pairs).with_layer(replace(layer, confidence=np.array(values, np.float32)))

    one, two = sure([[("a", "x")], [("b", "x"), ("c", "x")]], [0.5, 0.25, 0.75]), sure([[("d", "y")]], [1.0])
    found = one.select([1]).layer().confidence
    assert found is not None
    assert found.tolist() == [0.25, 0.75]
    found = concatenate([one, two]).layer().confidence
    assert found is not None
    assert found.tolist() == [0.5, 0.25, 0.75, 1.0]
    found = concatenate([one, corpus_of([[("e", "x")]])]).layer().confidence
    assert found is not None
    np.testing.assert_array_equal(found, np.array([0.5, 0.25, 0.75, np.nan], np.float32))
    assert concatenate([corpus_of([[("e", "x")]])] * 2).layer().confidence is None


def test_arrays_are_frozen() -> None:
    corpus = corpus_of([[("a", "x")]])
    for array in (corpus.text, corpus.offsets, corpus.layer().labels, corpus.layer().starts):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_a_layer_that_is_not_there() -> None:
    with pytest.raises(KeyError, match="no layer 'zz'; this corpus has tags"):
        corpus_of([]).layer("zz")
    with pytest.raises(KeyError, match="no layers at all"):
        Corpus(np.zeros(0, np.uint32), np.zeros(1, np.int64)).layer()


def test_what_does_not_fit_together() -> None:
    zeros: Any = np.zeros(1, np.int64)
    with pytest.raises(ValueError, match="sentence 2 has 1 words and 2 labels"):
        build([(["a"], ["x"]), (["a"], ["x", "y"])])
    with pytest.raises(ValueError, match="different numbers of units"):
        Layer("x", (), np.array([0, 1]), zeros, np.zeros(2, np.int64), np.zeros(1, np.int32))
    with pytest.raises(ValueError, match="2 confidences for 1 units"):
        Layer("x", ("a",), np.array([0, 1]), zeros, zeros, np.zeros(1, np.int32), confidence=np.ones(2, np.float32))
    with pytest.raises(ValueError, match="sentence offsets end at 2, the text at 1"):
        Corpus(np.zeros(1, np.uint32), np.array([0, 2]))
    layer = Layer("x", ("a",), np.array([0, 1]), zeros, zeros + 1, np.zeros(1, np.int32))
    with pytest.raises(ValueError, match="layer 'x' has 1 sentences, the text 2"):
        Corpus(np.zeros(1, np.uint32), np.array([0, 1, 1]), (layer,))


def test_joining_needs_the_same_layers() -> None:
    with pytest.raises(KeyError, match="no layer 'one'"):
        concatenate([corpus_of([[("a", "x")]], "one"), corpus_of([[("a", "x")]], "two")])


def test_a_set_of_a_layer_is_read_by_name() -> None:
    layer = Layer(
        "x", ("b", "a"), np.array([0, 1]), np.array([0]), np.array([1]), np.array([-2], np.int32),
        Ragged.from_rows([[0, 1]], np.int32),
    )  # fmt: skip
    assert layer.label(0) == frozenset("ab")
    assert layer.has_tags
