"""The second-order HMM against its definition, and the relations that must hold whatever the numbers are."""

from __future__ import annotations

import itertools
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzz import models as fuzz
from hypothesis import given
from hypothesis import strategies as st
from naive import hmm as naive

from duilian import storage
from duilian.corpus import Label, build
from duilian.errors import DataError, ModelFileError
from duilian.lifting import Units, word_units
from duilian.models import hmm
from duilian.models.hmm import Hmm
from duilian.ragged import Ragged
from duilian.training.counts import Counting, allowed_labels, fit

TOLERANCE = 2e-4
"""Absolute, on log scores of at most 5 tokens: ten float32 numbers of size up to 20, rounded to 1e-6 each, and room."""

TAGS = ("a", "n", "v")
Sentences = list[tuple[list[str], list[Label]]]


def parts(sentences: Sentences) -> tuple[Units, Any, Ragged]:
    """Sentences as one part for ``fit``, labels numbered as in TAGS."""
    corpus = build([*sentences, (list("xyz"), list(TAGS))])  # the last one so that every tag has its number
    layer = corpus.layer()
    assert layer.tags == TAGS
    kept = corpus.select(slice(len(sentences)))
    return word_units(kept, kept.layer()), kept.layer().labels, layer.sets


def units_of(sentences: list[list[str]]) -> Units:
    corpus = build([(words, None) for words in sentences])
    return word_units(corpus, corpus.layer())


def one_hot(labels: list[int]) -> Any:
    return np.eye(len(TAGS), dtype=np.bool_)[labels]


WORDS = st.text("cde", min_size=1, max_size=3)
ONE = st.sampled_from(TAGS)
SOME = ONE | st.none() | st.frozensets(ONE, min_size=2, max_size=2)


@st.composite
def corpora(draw: st.DrawFn, labels: st.SearchStrategy[Any] = ONE) -> Sentences:
    sizes = draw(st.lists(st.integers(0, 4), min_size=1, max_size=5))
    first = ([draw(WORDS)], [draw(ONE)])  # at least one label
    return [first] + [([draw(WORDS) for _ in range(n)], [draw(labels) for _ in range(n)]) for n in sizes]


SETTINGS = st.builds(Counting, longest=st.integers(1, 3), rare=st.integers(1, 4), rounds=st.just(0))
TEXTS = st.lists(st.lists(WORDS, max_size=2), min_size=1, max_size=2)

# Against the definition ---------------------------------------------------------------------------------------------


@given(corpora(SOME), SETTINGS, TEXTS)
def test_every_labelling_has_the_score_of_the_definition(
    sentences: Sentences, settings: Counting, texts: list[list[str]]
) -> None:
    model = fit([parts(sentences)], len(TAGS), settings)
    twin = naive.Hmm(sentences, TAGS, settings.longest, settings.rare)
    units = units_of(texts)
    n = len(units)
    for labels in itertools.islice(itertools.product(range(len(TAGS)), repeat=n), 27):
        found = model.log_partition(units, allowed=one_hot(list(labels)))
        names = iter([TAGS[label] for label in labels])
        expected = [twin.score(words, [next(names) for _ in words]) for words in texts]
        assert found == pytest.approx(expected, rel=0, abs=TOLERANCE)


@given(corpora(), SETTINGS, TEXTS)
def test_tagging_finds_the_best_of_the_candidates(
    sentences: Sentences, settings: Counting, texts: list[list[str]]
) -> None:
    model = fit([parts(sentences)], len(TAGS), settings)
    twin = naive.Hmm(sentences, TAGS, settings.longest, settings.rare)
    units = units_of(texts)
    labels = model.tag(units)
    best = model.nbest(units, 2)
    assert np.array_equal(labels, np.concatenate([np.zeros(0, np.int32), *(rows[0][1] for rows in best)]))
    for words, rows in zip(texts, best, strict=True):
        every = [twin.score(words, t) for t in itertools.product(*(twin.candidates(w, hmm.BEAM) for w in words))]
        expected = sorted(every, reverse=True)[:2]
        assert [score for score, _ in rows] == pytest.approx(expected, rel=0, abs=TOLERANCE)


@given(corpora(), TEXTS)
def test_marginals_add_up_and_confidence_is_one_of_them(sentences: Sentences, texts: list[list[str]]) -> None:
    model = fit([parts(sentences)], len(TAGS))
    units = units_of(texts)
    probabilities = model.marginals(units)
    assert probabilities.sum(axis=1) == pytest.approx(np.ones(len(units)), rel=0, abs=1e-9)
    labels, confidence = model.tag_with_confidence(units)
    assert np.array_equal(labels, model.tag(units))
    assert np.array_equal(confidence, probabilities[np.arange(len(units)), labels])


def test_the_trigram_rows_are_distributions() -> None:
    model = fit([parts([(list("cde"), ["n", "v", "n"]), (["c"], ["a"])])], len(TAGS))
    assert np.exp(model.trigrams.astype(float)).sum(axis=2) == pytest.approx(np.ones((4, 4)), rel=0, abs=1e-5)


# Given labels -------------------------------------------------------------------------------------------------------

TOY: Sentences = [
    (["the", "dog", "barks"], ["a", "n", "v"]),
    (["the", "barks", "end"], ["a", "n", "v"]),
    (["a", "cat", "walks"], ["a", "n", "v"]),
    (["dogs", "walk"], ["n", "v"]),
    (["walks", "end"], ["n", "v"]),
] * 3


def test_a_separable_toy_is_learnt() -> None:
    units, labels, sets = parts(TOY)
    model = fit([(units, labels, sets)], len(TAGS))
    assert np.array_equal(model.tag(units), labels)
    assert model.tag(units_of([["the", "cow", "barks"], []])).tolist() == [0, 1, 2]


def test_only_allowed_labels_are_given_even_those_a_word_was_never_seen_with() -> None:
    model = fit([parts(TOY)], len(TAGS))
    units = units_of([["the", "dog", "barks"], ["newt"]])
    allowed = np.array([[0, 0, 1], [1, 0, 1], [1, 1, 1], [1, 0, 0]], np.bool_)
    assert allowed[np.arange(4), model.tag(units, allowed=allowed)].all()
    drawn = model.sample(units, 20, np.random.default_rng(1), allowed=allowed)
    assert all(allowed[np.arange(4), row].all() for row in drawn)
    assert model.marginals(units, allowed=allowed)[~allowed].max() == 0
    assert len(model.nbest(units, 100, allowed=allowed)[1]) == 1


@given(corpora(), st.integers(0, 2**32 - 1))
def test_extra_scores_are_added(sentences: Sentences, seed: int) -> None:
    model = fit([parts(sentences)], len(TAGS))
    rng = np.random.default_rng(seed)
    units = units_of([["c", "new"], ["de"]])
    extra, rows = rng.normal(size=(2, len(TAGS))), np.array([1, -1, 0], np.int32)
    labels = rng.integers(0, len(TAGS), 3).tolist()
    plain = model.log_partition(units, allowed=one_hot(labels))
    raised = model.log_partition(units, allowed=one_hot(labels), extra=(extra, rows))
    assert raised - plain == pytest.approx([extra[1, labels[0]], extra[0, labels[2]]], rel=0, abs=1e-9)


def test_extra_scores_decide_what_an_unknown_word_may_be() -> None:
    model = fit([parts(TOY)], len(TAGS))
    units = units_of([["newt"]])
    for label in range(len(TAGS)):
        extra = np.full((1, len(TAGS)), -40.0)
        extra[0, label] = 0
        assert model.tag(units, extra=(extra, np.zeros(1, np.int32))).tolist() == [label]


# Partial labels -----------------------------------------------------------------------------------------------------


def same(one: Hmm, two: Hmm) -> bool:
    left, right = one.to_tensors(), two.to_tensors()
    return all(np.array_equal(left[name], right[name]) for name in left)


@given(corpora())
def test_labels_given_as_sets_of_one_are_ordinary_labels(sentences: Sentences) -> None:
    units, labels, sets = parts(sentences)
    singles = Ragged(np.arange(len(TAGS), dtype=np.int32), np.arange(len(TAGS) + 1))
    assert same(fit([(units, labels, sets)], len(TAGS)), fit([(units, -2 - labels, singles)], len(TAGS)))


@given(corpora())
def test_sentences_without_labels_change_nothing(sentences: Sentences) -> None:
    more = [*sentences, (["c", "new"], [None, None]), ([], [])]
    assert same(fit([parts(sentences)], len(TAGS)), fit([parts(more)], len(TAGS)))


@given(corpora(SOME), st.integers(1, 3))
def test_each_round_counts_the_best_allowed_labels_of_the_round_before(sentences: Sentences, rounds: int) -> None:
    sentences = [(words, labels) for words, labels in sentences if any(label is not None for label in labels)]
    units, labels, sets = parts(sentences)
    found = fit([(units, labels, sets)], len(TAGS), Counting(rounds=rounds))
    if (labels >= 0).all():
        return
    allowed = allowed_labels(labels, sets, len(TAGS))
    for token, label in enumerate(labels.tolist()):
        expected = set(sets[-2 - label].tolist()) if label <= -2 else {label} if label >= 0 else {0, 1, 2}
        assert set(np.flatnonzero(allowed[token]).tolist()) == expected
    model = fit([(units, labels, sets)], len(TAGS), Counting(rounds=0))
    for _ in range(rounds):
        model = fit([(units, model.tag(units, allowed=allowed), sets)], len(TAGS))
    assert same(found, model)


def test_three_quarters_of_the_labels_are_enough_for_the_toy() -> None:
    units, labels, sets = parts(TOY)
    partial = labels.copy()
    partial[::4] = -1
    assert np.array_equal(fit([(units, partial, sets)], len(TAGS)).tag(units), labels)


def test_several_corpora_count_as_one() -> None:
    sentences: Sentences = [
        (["c", "d"], ["n", frozenset("av")]),
        (["e"], ["v"]),
        (["c", "c"], [frozenset("nv"), frozenset("an")]),
        ([], []),
        (["d"], ["a"]),
    ]
    whole = fit([parts(sentences)], len(TAGS))
    for cut in (1, 2, 4):
        assert same(whole, fit([parts(sentences[:cut]), parts(sentences[cut:])], len(TAGS)))


def test_nothing_to_learn_from() -> None:
    with pytest.raises(DataError, match="no label to learn from"):
        fit([parts([(["c"], [None])])], len(TAGS))


# Relations ----------------------------------------------------------------------------------------------------------


def test_full_width_words_are_known_by_their_half_width_twins() -> None:
    units = units_of([["ＣＤ"], ["ＣＥ"]])
    sentences: Sentences = [(["CD", "c"], ["n", "v"])]
    folding = fit([parts(sentences)], len(TAGS))
    assert folding.knows(units).tolist() == [True, False]
    assert fit([parts(sentences)], len(TAGS), Counting(fold=False)).knows(units).tolist() == [False, False]


def test_threads_and_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    units, labels, sets = parts(TOY)
    model = fit([(units, labels, sets)], len(TAGS))
    whole = model.tag_with_confidence(units)
    monkeypatch.setattr(hmm, "BLOCK", 4)
    for threads in (1, 2):
        assert all(
            np.array_equal(a, b) for a, b in zip(model.tag_with_confidence(units, threads=threads), whole, strict=True)
        )
        assert len(model.nbest(units, 2, threads=threads)) == len(TOY)
    assert model.log_partition(units).shape == (len(TOY),)


def test_other_numbers_for_the_labels_give_the_same_labelling() -> None:
    units, labels, sets = parts(TOY)
    renamed = np.array([2, 0, 1])[labels]
    model, other = fit([(units, labels, sets)], 3), fit([(units, renamed, sets)], 3)
    text = units_of([["the", "barks", "walk"], ["cow", "dog"]])
    assert np.array_equal(np.array([2, 0, 1])[model.tag(text)], other.tag(text))


def test_inputs_stay_as_they_are() -> None:
    units, labels, sets = parts([(["c", "d"], ["n", frozenset("av")])])
    before = [array.copy() for array in (units.text, units.starts, units.ends, units.sentences, labels, sets.data)]
    fit([(units, labels, sets)], len(TAGS))
    after = (units.text, units.starts, units.ends, units.sentences, labels, sets.data)
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))


def test_no_text_at_all() -> None:
    model = fit([parts(TOY)], len(TAGS))
    units = units_of([])
    assert len(model.tag(units)) == len(model.log_partition(units)) == 0
    assert model.marginals(units).shape == (0, 3)


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"allowed": np.ones((3, 3), bool)}, "shape \\(3, 3\\)"),
        ({"allowed": np.zeros((2, 3), bool)}, "token 0 has no allowed label"),
        ({"extra": (np.zeros((1, 2)), np.zeros(2, np.int32))}, "3 columns"),
        ({"extra": (np.zeros((1, 3)), np.zeros(1, np.int32))}, "each of 2 tokens"),
        ({"extra": (np.zeros((1, 3)), np.array([0, 1], np.int32))}, "one row number"),
    ],
)
def test_wrong_calls_are_refused(options: Any, found: str) -> None:
    model = fit([parts(TOY)], len(TAGS))
    with pytest.raises(ValueError, match=found):
        model.tag(units_of([["c", "d"]]), **options)


# The model file -----------------------------------------------------------------------------------------------------


def load(path: Path) -> Hmm:
    header, tensors = storage.load(path)
    names = header.get("tags")
    if not isinstance(names, list) or not 1 <= len(names) < 10:
        raise ModelFileError(f"{path}: no tags")
    return Hmm.from_tensors(tensors, len(names))


def test_a_saved_model_is_the_same_model(tmp_path: Path) -> None:
    units, labels, sets = parts(TOY)
    model = fit([(units, labels, sets)], len(TAGS), Counting(longest=3, fold=False))
    storage.save(tmp_path / "model", {"tags": TAGS}, model.to_tensors())
    again = load(tmp_path / "model")
    assert same(model, again)
    assert (again.longest, again.fold) == (3, False)
    assert np.array_equal(again.log_partition(units), model.log_partition(units))


@pytest.mark.fuzz
def test_a_damaged_model_tags_or_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model"
    storage.save(path, {"tags": TAGS}, fit([parts(TOY)], len(TAGS)).to_tensors())
    units = units_of([["the", "newt", "barks"], ["walks"], []])

    def load_and_use(path: Path) -> None:
        labels, confidence = load(path).tag_with_confidence(units)
        assert ((labels >= 0) & (labels < 10)).all()
        assert not np.isnan(confidence).any()

    n = 1000 if os.environ.get("DUILIAN_FUZZ") == "full" else 60
    outcomes = fuzz.run(n, seed=7, load=load_and_use, originals=[path.read_bytes()])
    assert outcomes["refused"] > n / 3


def broken(name: str, values: Any) -> dict[str, Any]:
    tensors = fit([parts(TOY)], len(TAGS)).to_tensors()
    return {**tensors, name: np.asarray(values, tensors[name].dtype)}


def test_tensors_that_would_lead_a_kernel_astray_are_refused() -> None:
    good = fit([parts(TOY)], len(TAGS)).to_tensors()
    assert same(Hmm.from_tensors(good, 3), fit([parts(TOY)], len(TAGS)))
    n = len(good["hmm.labels"])
    for name, values, found in (
        ("hmm.labels", np.full(n, 3), "outside 0 to 2"),
        ("hmm.labels", np.zeros(n), "do not rise"),
        ("hmm.previous", good["hmm.previous"] + 1, "outside 0 to 3"),
        ("hmm.entries", good["hmm.entries"][::-1], "without falling"),
        ("hmm.pairs", good["hmm.pairs"] + 1, "without falling"),
        ("hmm.word_offsets", good["hmm.word_offsets"][:-1], "without falling"),
        ("hmm.words", np.full(len(good["hmm.words"]), 65), "stands twice"),
        ("hmm.affix_keys", np.zeros(len(good["hmm.affix_keys"])), "stands twice"),
        ("hmm.affixes", good["hmm.affixes"][:-1], "was expected"),
        ("hmm.rest", np.array([0, math.nan, 0]), "NaN"),
        ("hmm.settings", np.array([17, 0]), "outside 0 to 16"),
    ):
        with pytest.raises(ModelFileError, match=found):
            Hmm.from_tensors(broken(name, values), 3)
    for n_labels in (0, 2, 4):
        with pytest.raises(ModelFileError, match=r"."):
            Hmm.from_tensors(good, n_labels)
