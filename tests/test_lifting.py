"""Units and labels: words and characters, whitespace, tags lifted to characters and back, the grammar of labels."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import lifting as naive

from duilian.corpus import Corpus, Label, Layer, build, decode
from duilian.lifting import (
    Labelled,
    boundary_sets,
    character_units,
    grammar_of,
    is_space,
    label_units,
    layer_from,
    relabel,
    units_of,
    word_units,
)
from duilian.ragged import Ragged

TAGS = ("n", "v", "r@x")
labels = st.none() | st.sampled_from(TAGS) | st.frozensets(st.sampled_from(TAGS), min_size=1)
forms = st.text("新年ab \u3000", min_size=1, max_size=4).filter(str.strip)
tagged_words = st.lists(st.tuples(forms, labels), max_size=4)
corpora = st.lists(tagged_words, min_size=1, max_size=4)


def corpus_of(sentences: list[list[tuple[str, Label]]]) -> Corpus:
    return build([([word for word, _ in sentence], [tag for _, tag in sentence]) for sentence in sentences])


def allowed_names(labelled: Labelled, unit: int) -> set[str]:
    """The label names that a unit allows; none for anything."""
    label = int(labelled.labels[unit])
    if label == -1:
        return set()
    return {labelled.names[k] for k in ([label] if label >= 0 else labelled.sets[-2 - label].tolist())}


@given(corpora)
def test_units_are_words_or_characters_without_whitespace(sentences: Any) -> None:
    corpus = corpus_of(sentences)
    for unit, expected in (
        (word_units(corpus, corpus.layer()), [["".join(naive.characters(w)) for w, _ in s] for s in sentences]),
        (character_units(corpus), [naive.characters("".join(w for w, _ in s)) for s in sentences]),
    ):
        text = decode(unit.text)
        found = [text[a:b] for a, b in zip(unit.starts, unit.ends, strict=True)]
        edges = itertools.pairwise(unit.sentences.tolist())
        assert [found[a:b] for a, b in edges] == expected


def test_whitespace_is_what_python_calls_so() -> None:
    points = [*range(0x3010), 0xFEFF, 0x1F600, 0x10FFFF]
    assert is_space(np.array(points, np.uint32)).tolist() == [chr(point).isspace() for point in points]


@given(corpora, st.sampled_from(["seg", "segpos"]))
def test_labels_of_characters(sentences: Any, task: str) -> None:
    """Known, unknown and ambiguous tags; names are those that occur."""
    corpus = corpus_of(sentences)
    labelled = label_units(corpus, corpus.layer(), task)
    named = [tag for sentence in sentences for _, tag in sentence if tag is not None]
    tags = sorted({one for tag in named for one in ([tag] if isinstance(tag, str) else tag)})
    expected = [
        one
        for sentence in sentences
        for one in naive.labels_allowed(([w for w, _ in sentence], [t for _, t in sentence]), tags, task)
    ]
    assert len(labelled.units) == len(labelled.labels) == len(expected)
    assert list(labelled.names) == sorted(labelled.names)
    for unit, names in enumerate(expected):
        # A word without a tag may have what occurs elsewhere, and no more.
        assert allowed_names(labelled, unit) == names & set(labelled.names)
    certain = {name for names, known in zip(expected, _given(sentences, task), strict=True) if known for name in names}
    assert certain <= set(labelled.names)
    assert not labelled.names or any(name[0] == "S" for name in labelled.names)


def _given(sentences: Any, task: str) -> list[bool]:
    """Whether each character's word has a tag, or a set of them."""
    return [
        task == "seg" or tag is not None for sentence in sentences for word, tag in sentence for _ in naive.roles(word)
    ]


@given(corpora, st.sampled_from(["seg", "segpos"]), st.data())
def test_labels_of_characters_by_a_models_names(sentences: Any, task: str, data: st.DataObject) -> None:
    """What a model cannot write keeps its boundaries with another tag, or is left open altogether."""
    corpus = corpus_of(sentences)
    tags = [*TAGS, "zz"] if task == "segpos" else [None]
    every = sorted(role if tag is None else f"{role}@{tag}" for tag in tags for role in "BIES")
    known = sorted(data.draw(st.sets(st.sampled_from(every), min_size=1)))
    labelled = label_units(corpus, corpus.layer(), task, known=known)
    assert labelled.names == tuple(known)
    model_tags = sorted({name.partition("@")[2] for name in known})
    expected = [
        one
        for sentence in sentences
        for one in naive.labels_allowed(([w for w, _ in sentence], [t for _, t in sentence]), model_tags, task, known)
    ]
    assert [allowed_names(labelled, unit) for unit in range(len(labelled.units))] == expected


@given(corpora)
def test_labels_of_words(sentences: Any) -> None:
    corpus = corpus_of(sentences)
    labelled = label_units(corpus, corpus.layer(), "pos")
    for unit, tag in enumerate(tag for sentence in sentences for _, tag in sentence):
        assert allowed_names(labelled, unit) == (set() if tag is None else {tag} if isinstance(tag, str) else set(tag))
    known = label_units(corpus, corpus.layer(), "pos", known=("n", "zz"))
    for unit, tag in enumerate(tag for sentence in sentences for _, tag in sentence):
        wanted = set() if tag is None else {tag} if isinstance(tag, str) else set(tag)
        assert allowed_names(known, unit) == wanted & {"n"}


@given(corpora, st.sampled_from(["pos", "seg", "segpos"]), st.sampled_from(["BIES", "BMES", "BILOU", "BIO"]))
def test_lifted_and_back_it_is_the_same(sentences: Any, task: str, scheme: str) -> None:
    plain = [
        [(word, "n" if tag is None or not isinstance(tag, str) else tag) for word, tag in one] for one in sentences
    ]
    corpus = build([([word for word, _ in one], [tag for _, tag in one]) for one in plain])
    labelled = label_units(corpus, corpus.layer(), task, scheme)
    new = layer_from(corpus, labelled.labels, labelled.names, task, corpus.layer(), "new", scheme)
    back = corpus.with_layer(new)
    bare = [[("".join(naive.characters(word)), tag) for word, tag in sentence] for sentence in plain]
    found = [
        [("".join(naive.characters(word)), tag) for word, tag in zip(words, tags, strict=True)]
        for words, tags in zip(back.words("new"), back.tags("new"), strict=True)
    ]
    assert found == [[(word, None if task == "seg" else tag) for word, tag in sentence] for sentence in bare]


@given(st.lists(st.sampled_from([f"{role}@{tag}" for role in "BIES" for tag in "nv"]), min_size=1, max_size=4))
def test_the_grammar_allows_what_words_can_be_written_as(sequence: list[str]) -> None:
    names = sorted({f"{role}@{tag}" for role in "BIES" for tag in "nv"})
    rules = grammar_of(names, "segpos")
    numbers = [names.index(name) for name in sequence]
    allowed = bool(rules.starts[numbers[0]] and rules.ends[numbers[-1]])
    allowed = allowed and all(rules.follows[i, j] for i, j in itertools.pairwise(numbers))
    assert allowed == naive.is_legal(sequence)


@given(st.lists(st.integers(1, 3), min_size=1, max_size=4))
def test_legal_labels_become_their_words(lengths: list[int]) -> None:
    words = ["新年人"[:length] for length in lengths]
    text = "".join(words)
    sequence = [f"{role}@{'nv'[k % 2]}" for k, word in enumerate(words) for role in naive.roles(word)]
    names = sorted(set(sequence))
    corpus = build([([text], None)])
    numbers = np.array([names.index(name) for name in sequence], np.int32)
    new = corpus.with_layer(layer_from(corpus, numbers, names, "segpos", None, "new"))
    assert list(zip(new.words("new")[0], new.tags("new")[0], strict=True)) == naive.words(text, sequence)


def test_words_may_be_anything_for_pos() -> None:
    rules = grammar_of(("a", "b"), "pos")
    assert rules.starts.all()
    assert rules.ends.all()
    assert rules.follows.all()


def test_whitespace_leaves_labels_that_end_and_begin_words() -> None:
    texts = ["新年 人", " ab ", "a\u3000b c", "新"]
    corpus = build([([text], None) for text in texts])
    units = character_units(corpus)
    names = ("B", "E", "I", "S")
    numbers, sets = boundary_sets(corpus, units, names)
    labelled = Labelled(units, names, numbers, sets)
    ends, begins, both = {"E", "S"}, {"B", "S"}, {"S"}
    assert [allowed_names(labelled, unit) for unit in range(len(units))] == [
        set(), ends, begins, set(), set(), ends, both, begins, set(),
    ]  # fmt: skip


def test_words_that_share_characters_or_have_none_are_left_out() -> None:
    """As in CoNLL-U, where the words of a multi-word token share its span."""
    text = np.array([ord(character) for character in "ab c"], np.uint32)
    layer = Layer(
        "x",
        ("p", "q"),
        np.array([0, 4]),
        np.array([0, 0, 2, 3]),
        np.array([2, 2, 3, 4]),
        np.array([0, 1, 1, 1], np.int32),
    )
    corpus = Corpus(text, np.array([0, 4]), (layer,))
    labelled = label_units(corpus, layer, "segpos")
    assert [allowed_names(labelled, unit) for unit in range(3)] == [{"B@p"}, {"E@p"}, {"S@q"}]


def test_characters_that_no_word_has_are_unknown() -> None:
    text = np.array([ord(character) for character in "abc"], np.uint32)
    layer = Layer("x", ("p",), np.array([0, 1]), np.array([1]), np.array([2]), np.zeros(1, np.int32))
    labelled = label_units(Corpus(text, np.array([0, 3]), (layer,)), layer, "seg")
    assert labelled.labels.tolist() == [-1, labelled.names.index("S"), -1]


def test_sets_stay_sorted_when_names_change_their_order() -> None:
    """Kernels walk sets in rising order: tags that are not sorted in the corpus are in the model."""
    layer = Layer(
        "x", ("z", "a", "m"), np.array([0, 2]), np.array([0, 1]), np.array([1, 2]), np.array([-2, -3], np.int32),
        Ragged.from_rows([[0, 1, 2], [1, 0]], np.int32),
    )  # fmt: skip
    corpus = Corpus(np.array([ord("x")] * 2, np.uint32), np.array([0, 2]), (layer,))
    for task, expected in (("pos", [["a", "m", "z"], ["a", "z"]]), ("segpos", [["S@a", "S@m", "S@z"], ["S@a", "S@z"]])):
        labelled = label_units(corpus, layer, task)
        rows = [labelled.sets[-2 - label] for label in labelled.labels.tolist()]
        assert [[labelled.names[k] for k in row] for row in rows] == expected
        assert all(np.all(np.diff(row) > 0) for row in rows)


def test_a_name_that_is_gone_leaves_unknown() -> None:
    corpus = corpus_of([[("a", "n"), ("b", frozenset(["n", "v"])), ("c", frozenset(["v"])), ("d", None)]])
    labelled = relabel(label_units(corpus, corpus.layer(), "pos"), ("n", "x"))
    assert [allowed_names(labelled, unit) for unit in range(4)] == [{"n"}, {"n"}, set(), set()]


def test_words_are_needed_for_tags() -> None:
    corpus = build([(["a"], None)])
    assert len(units_of(corpus, None, "seg")) == 1
    with pytest.raises(ValueError, match="needs words"):
        units_of(corpus, None, "pos")
