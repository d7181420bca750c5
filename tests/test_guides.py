"""Guides: who annotates what, and that no sentence is annotated by a chain that learnt it; cascades and their files."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from toys import Sentences, answers, expected, settings_of, toy_sentences, trained, without_tags

from duilian import storage
from duilian.corpus import build
from duilian.errors import ModelFileError, SettingError
from duilian.features.templates import guides_in
from duilian.lifting import blocks, label_units, units_of, word_units
from duilian.methods import METHODS, Side, guides, load, train
from duilian.methods.guides import annotate, fill, renumbered, source_labels, trained_chain, twins
from duilian.settings import resolve
from duilian.stages import Context, Stages

texts = st.lists(st.lists(st.text("ab ", max_size=3), max_size=3), max_size=6)
CRF = METHODS["crf"]
SETTINGS = resolve(CRF.settings, settings_of(CRF), "crf")


def units_from(sentences: Sequence[Sequence[str]], task: str = "pos") -> Any:
    corpus = build([(words, None) for words in sentences])
    return units_of(corpus, corpus.layer(), task)


@given(texts, texts, st.sampled_from(["pos", "seg"]))
def test_twins_are_the_first_sentences_of_the_same_characters(one: Any, other: Any, task: str) -> None:
    bare = [["".join("".join(words).split()) for words in text] for text in (one, other)]
    wanted = [bare[1].index(text) if text and text in bare[1] else -1 for text in bare[0]]
    assert twins(units_from(one, task), units_from(other, task)).tolist() == wanted


@given(texts, st.integers(1, 5))
def test_blocks_are_all_units_in_order(text: Any, size: int) -> None:
    units = units_from(text)
    words, at = [], 0
    for begin_, end, part in blocks(units, size):
        assert begin_ == at
        assert len(part) == end - begin_ == part.sentences[-1]
        assert len(part) <= size or len(part.sentences) == 2 or np.count_nonzero(np.diff(part.sentences)) <= 1
        words += list(zip(part.starts.tolist(), part.ends.tolist(), strict=True))
        at = end
    assert words == list(zip(units.starts.tolist(), units.ends.tolist(), strict=True))


def toy_chain(sentences: Sentences | None = None, task: str = "pos") -> Any:
    side = Side("b", build(toy_sentences(12) if sentences is None else sentences))
    return trained_chain("b", CRF, side, task, SETTINGS, 1, Context())[0]


def test_annotation_is_the_same_in_any_blocks_and_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    chain, units = toy_chain(), units_from([words for words, _ in toy_sentences(12)])
    whole = annotate(chain, units)
    assert [chain.names[label] for label in whole] == [tag for _, tags in toy_sentences(12) for tag in tags]
    monkeypatch.setattr(guides, "BLOCK", 4)
    for threads in (1, 2):
        np.testing.assert_array_equal(annotate(chain, units, threads=threads), whole)


def test_given_labels_are_kept_and_gaps_filled() -> None:
    chain = toy_chain()
    corpus = build([(["他", "爱", "书", "好"], ["n", None, frozenset(["a", "d"]), "??"])])
    labels = fill(chain, label_units(corpus, corpus.layer(), "pos", known=chain.names))
    names = [chain.names[label] for label in labels]
    assert names[:2] == ["n", "v"]
    assert names[2] in ("a", "d")
    assert names[3] == "a"


def test_labels_over_other_names() -> None:
    labels = np.array([0, 1, 2, 1], np.int32)
    otherwise = np.array([3, 3, 3, 0], np.int32)
    assert renumbered(labels, ("a", "b", "c"), ("b", "c", "d", "e"), otherwise).tolist() == [3, 0, 1, 0]
    assert renumbered(labels, ("a", "b", "c"), ("a", "b", "c"), otherwise) is labels


def test_no_sentence_is_annotated_by_a_chain_that_learnt_it() -> None:
    """A word whose tag only its own sentence tells: jack-knifed, the source's chain cannot know it."""
    odd: Sentences = [(["他", "爱", f"甲{character}"], ["r", "v", "z"]) for character in "子丑寅卯辰"]
    plain = toy_sentences(25)
    mixed = [
        *plain[:5],
        odd[0],
        *plain[5:10],
        odd[1],
        *plain[10:15],
        odd[2],
        *plain[15:20],
        odd[3],
        *plain[20:],
        odd[4],
    ]
    source = Side("b", build(mixed))
    target = units_from([words for words, _ in odd])
    chain = toy_chain(mixed)
    asked = (source, chain, target, CRF, "pos", {**SETTINGS, "templates": "w0"}, 1)
    knows = source_labels(*asked, 1, Context())
    assert [chain.names[label] for label in knows].count("z") == 5
    seen: list[str] = []
    fair = source_labels(*asked, 5, Context(seen.append))
    assert [chain.names[label] for label in fair].count("z") < 5
    assert len(seen) == 5
    strange = units_from([["大", "书"], *[words for words, _ in plain]])
    few = replace(source, corpus=build(odd))
    assert len(source_labels(few, chain, strange, *asked[3:], 5, Context(seen.append))) == len(strange)
    assert len(seen) == 5, "corpora that share nothing need no jack-knife"


def test_a_stage_is_found_again(tmp_path: Path) -> None:
    side = Side("b", build(toy_sentences(12)), build(toy_sentences(4)))
    said: list[str] = []
    context = Context(said.append, 1, Stages(tmp_path))
    asked = ("b", CRF, side, "pos", SETTINGS, 1, context)
    one, went = trained_chain(*asked)
    again, same = trained_chain(*asked)
    assert went == same
    assert len(said) == 1
    for name, array in one.numbers().items():
        np.testing.assert_array_equal(again.numbers()[name], array)
    units = word_units(side.corpus, side.corpus.layer())
    guide = np.zeros((1, len(units)), np.int32)
    trained_chain(*asked, guide, np.zeros((1, len(side.dev.layer())), np.int32))  # type: ignore[union-attr]
    trained_chain(*asked[:5], 2, context)
    assert len(said) == 3, "another guide or another seed is another stage"


# Cascades -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", ["crf", "perceptron", "pa"])
def test_every_learner_makes_a_cascade(learner: str) -> None:
    toy = toy_sentences(12)
    tagger = trained("guide", "pos", toy, dev=toy, epochs=15, learner=learner)
    assert answers(tagger, without_tags(toy)) == expected(toy, "pos")
    assert tagger.about["learner"] == learner


def test_adapt_is_guide_with_other_defaults(tmp_path: Path) -> None:
    found = []
    for name, options in (("adapt", {}), ("guide", {"learner": "perceptron"})):
        tagger: Any = trained(name, "segpos", dev=toy_sentences(5), epochs=3, **options)
        found.append(tagger)
    for one, two in itertools.pairwise(found):
        for name, array in one.chain.numbers().items():
            np.testing.assert_array_equal(array, two.chain.numbers()[name])
    lines = found[0].chain.featurizer.table.texts
    assert [line for line in lines if not guides_in(line)] == list(found[0].sources[0].featurizer.table.texts)
    assert "c-1 c0 g0" in lines
    assert "begin0 g0" in lines


def test_templates_with_guides_of_their_own_are_taken_as_they_are() -> None:
    tagger: Any = trained("guide", "pos", epochs=2, templates="w0; g0; g-1 g+1")
    assert tagger.chain.featurizer.table.texts == ("w0", "g0", "g-1 g+1")


def test_the_guide_is_what_the_source_says_and_in_conversion_what_the_file_says() -> None:
    """A target word that only its guide tells apart: free text follows the source's tagger, conversion the file."""
    source = [(["他", "爱", "书"], ["R", "V", kind]) for kind in ("N", "N", "N", "M")] * 4
    target = [(["我", "爱", "猫"], ["r", "v", "n"])] * 6
    both = [(["他", "爱", "书"], ["r", "v", "n"])] * 8
    sides = [Side("a", build([*target, *both])), Side("b", build(source))]
    settings = {"templates": "w0; g0", "epochs": 10, "eta": 0.5, "folds": 1, "dropout": 0.0, "hide": 0.0}
    run = train("guide", sides, "pos", settings)
    for _ in run:
        pass
    tagger: Any = run.tagger
    corpus = without_tags(source[:1])
    asked = tagger.ask(corpus, corpus.layer())
    plain = tagger.chain.features(asked.units, np.array([[2, 3, 1]], np.int32))
    assert tagger.sources[0].names == ("M", "N", "R", "V")
    np.testing.assert_array_equal(asked.features.data, plain.data)
    given = build([source[3]])
    told = tagger._given(given, given.layer(), tagger.sides[1], tagger.sides[0], None)
    other = tagger.chain.features(asked.units, np.array([[2, 3, 0]], np.int32))
    np.testing.assert_array_equal(told.features.data, other.data)
    assert not np.array_equal(plain.data, other.data) or len(plain.data) != len(other.data)


def test_a_setting_of_no_learner_is_refused() -> None:
    sides = [Side(name, build(toy_sentences(4))) for name in "ab"]
    with pytest.raises(SettingError, match="learner perceptron has no setting 'batch'"):
        train("adapt", sides, "seg", {"batch": 3})
    with pytest.raises(SettingError, match="learner=hmm"):
        train("guide", sides, "seg", {"learner": "hmm"})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sources": []}, "2 sides and chains for 0"),
        ({"sources": 3}, "'sources' in its header is 3"),
        ({"sources": [7]}, "'chain' in its header is 7"),
        ({"target": {}}, "no 'labels'"),
        ({"target": None}, "'target' in its header"),
    ],
)
def test_a_file_that_no_cascade_has(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    trained("guide", "pos", epochs=1).save(tmp_path / "model")
    header, tensors = storage.load(tmp_path / "model")
    storage.save(tmp_path / "model", {**header, "model": {**header["model"], **change}}, tensors)
    with pytest.raises(ModelFileError, match=message):
        load(tmp_path / "model")


def test_chains_of_different_tasks_in_one_file(tmp_path: Path) -> None:
    trained("guide", "pos", epochs=1).save(tmp_path / "model")
    header, tensors = storage.load(tmp_path / "model")
    (record,) = header["model"]["sources"]
    (line, *_) = record["templates"]
    record = {**record, "task": "segpos", "labels": [f"S@{name}" for name in record["labels"]], "templates": ["c0"]}
    storage.save(tmp_path / "model", {**header, "model": {**header["model"], "sources": [record]}}, tensors)
    with pytest.raises(ModelFileError, match="for pos and segpos"):
        load(tmp_path / "model")
    assert line == "w0"
