"""Transformation: a round is Algorithm 2 by hand; filtration, lambda, what both corpora have, rounds that resume."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from toys import Sentences, answers, expected, rename, settings_of, toy_sentences, without_tags

from duilian import storage
from duilian.corpus import build
from duilian.errors import ModelFileError, SettingError
from duilian.lifting import label_units, layer_from
from duilian.methods import METHODS, Side, Training, load, train
from duilian.methods.guides import annotate, trained_chain
from duilian.methods.merge import merged
from duilian.methods.transform import WITHOUT_DEV, without
from duilian.settings import resolve
from duilian.stages import Context, Stages
from duilian.tagger import Tagger

CRF = METHODS["crf"]
TARGET = toy_sentences(20)
SOURCE = rename(toy_sentences(40, 20), lambda tag: f"{tag.upper()}1")
"""Other sentences for the most part: some of the toy's are short and come again."""


def sides_with(dev: bool = True) -> list[Side]:
    return [
        Side("a", build(TARGET), build(toy_sentences(6, 3)) if dev else None),
        Side("b", build(SOURCE), build(SOURCE[:5]) if dev else None),
    ]


def run_of(task: str = "pos", dev: bool = True, sides: list[Side] | None = None, **given: Any) -> Training:
    learner = {name: given[name] for name in given if name == "learner"}
    settings = settings_of(METHODS["transform"], epochs=4, **learner) | given
    return train("transform", sides or sides_with(dev), task, settings)


def finished(run: Training) -> Any:
    for _ in run:
        pass
    return run.tagger


def assert_same(one: Any, two: Any) -> None:
    for name, array in one.numbers().items():
        np.testing.assert_array_equal(array, two.numbers()[name], err_msg=name)


# Rounds -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", ["pos", "segpos"])
def test_a_round_is_algorithm_2(task: str) -> None:
    """Put together by hand from other parts, on corpora without a sentence in common."""
    target, source = ([("".join(words), (words, tags)) for words, tags in sentences] for sentences in (TARGET, SOURCE))
    seen = {text for text, _ in target}
    sides = [
        Side("a", build([one for _, one in target])),
        Side("b", build([one for text, one in source if text not in seen])),
    ]
    tagger = finished(run_of(task, sides=sides, rounds=1, reestimation=False))
    settings = resolve(CRF.settings, settings_of(CRF, epochs=4), "crf")
    gold = [label_units(side.corpus, side.gold, task) for side in sides]

    def chain(side: Side, guide: Any = None) -> Any:
        return trained_chain("", CRF, side, task, settings, 1, Context(), None if guide is None else guide[None])[0]

    ms = chain(sides[1])
    forward = chain(sides[0], annotate(ms, gold[0].units))
    assert_same(tagger.model.forward, forward)
    labels = annotate(forward, gold[1].units, gold[1].labels[None])
    layer = layer_from(sides[1].corpus, labels, gold[0].names, task, sides[1].gold, "b")
    both = merged([sides[0], replace(sides[1], corpus=replace(sides[1].corpus, layers=(layer,)))])
    assert_same(tagger.chain, chain(both))


@pytest.mark.parametrize("learner", ["crf", "perceptron", "pa"])
def test_every_learner_transforms(learner: str) -> None:
    tagger = finished(run_of(learner=learner, rounds=2))
    assert answers(tagger, without_tags(TARGET)) == expected(TARGET, "pos")


def test_rounds_stop_when_dev_does_and_the_best_is_kept() -> None:
    run = run_of(rounds=9, round_patience=2)
    seen = list(run)
    assert len(seen) < 9
    assert seen[-1].epoch - next(p.epoch for p in reversed(seen) if p.best) == 2
    assert run.tagger.about["lambda"] in (0.0, 0.2, 0.4, 0.6)
    run = run_of(rounds=2, dev=False)
    assert len(list(run)) == 2
    assert run.tagger.about["lambda"] == WITHOUT_DEV


def test_the_best_classifier_is_kept_and_the_last_chains() -> None:
    run = run_of(rounds=3, round_patience=9)
    models = {}
    for progress in run:
        models[progress.epoch] = run.loop.learner.model  # type: ignore[attr-defined]
        best = run.loop.best
        assert best is not None
        tagger: Any = run.tagger
        assert_same(tagger.chain, models[best.epoch].classifier)
        assert_same(tagger.model.forward, models[progress.epoch].forward)
        assert_same(tagger.model.backward, models[progress.epoch].backward)


def test_lambda_is_tried_in_the_first_round_alone() -> None:
    said: list[str] = []
    run = run_of(rounds=2, round_patience=2, grid="0,0.5,1")
    run.context = Context(said.append)
    tagger = finished(run)
    tried = [text for text in said if "classifier" in text]
    assert [text.split(",")[:2] for text in tried[:3]] == [
        ["round 1", f" lambda {value}"] for value in ("0", "0.5", "1")
    ]
    assert [text.split(",")[0] for text in tried[3:]] == ["round 2"]
    assert "lambda" not in tried[3]
    assert tagger.model.ratio in (0.0, 0.5, 1.0)
    assert finished(run_of(rounds=1, **{"lambda": "0.7"})).model.ratio == 0.7
    assert finished(run_of(rounds=1, reestimation=False)).model.ratio == 0.0


def test_an_interrupted_run_finds_what_was_finished(tmp_path: Path) -> None:
    """Stopped in the middle of a round: with its stages the next run trains only what is missing, to the same bytes."""
    whole = finished(run_of(rounds=2))
    whole.save(tmp_path / "whole")

    class Stop(Exception):
        pass

    said: list[str] = []

    def report(text: str) -> None:
        said.append(text)
        if "round 1, a -> b" in text:
            raise Stop

    run = run_of(rounds=2)
    run.context = Context(report, 1, Stages(tmp_path / "stages"))
    with pytest.raises(Stop):
        finished(run)
    before = list(said)
    said.clear()
    again = run_of(rounds=2)
    again.context = Context(said.append, 1, Stages(tmp_path / "stages"))
    finished(again).save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "whole").read_bytes()
    assert not set(before[:-1]) & set(said)


def test_threads_change_no_bit(tmp_path: Path) -> None:
    found = []
    for threads in (1, 2):
        run = run_of(rounds=2, filtration=True)
        run.context = Context(threads=threads)
        finished(run).save(tmp_path / f"{threads}")
        found.append((tmp_path / f"{threads}").read_bytes())
    assert found[0] == found[1]


# What goes into the classifier --------------------------------------------------------------------------------------


def test_what_both_corpora_have_is_neither_guessed_nor_learnt_twice() -> None:
    """All sentences in common: the guides are gold, and nothing is left to transform."""
    source = rename(TARGET, lambda tag: f"{tag.upper()}1")
    sides = [Side("a", build(TARGET)), Side("b", build(source))]
    run = run_of(sides=sides, rounds=1)
    tagger = finished(run)
    target, other = run.loop.learner.halves  # type: ignore[attr-defined]
    np.testing.assert_array_equal(target.other, other.gold.labels)
    np.testing.assert_array_equal(other.other, target.gold.labels)
    assert not run.loop.learner.new.any()  # type: ignore[attr-defined]
    settings = resolve(CRF.settings, settings_of(CRF, epochs=4), "crf")
    alone, _ = trained_chain("", CRF, sides[0], "pos", settings, 1, Context())
    assert_same(tagger.chain, alone)


pieces = st.lists(st.lists(st.sampled_from(["a", "b。", "。", "；"]), max_size=5), min_size=1, max_size=5)


@given(pieces, st.sets(st.integers(0, 20)), st.sampled_from(["", "。", "。；"]), st.sampled_from(["pos", "seg"]))
def test_pieces_with_something_wrong_are_dropped(text: Any, places: set[int], marks: str, task: str) -> None:
    corpus = build([(words, ["x"] * len(words)) for words in text])
    units = label_units(corpus, corpus.layer(), task).units
    wrong = np.array([k in places for k in range(len(units))], np.bool_)
    wanted, at = [], 0
    for words in text:
        cut: list[list[str]] = [[]]
        bad = [False]
        for word in words:
            width = 1 if task == "pos" else len(word)
            cut[-1].append(word)
            bad[-1] |= any(k in places for k in range(at, at + width))
            at += width
            if word in set(marks):
                cut.append([])
                bad.append(False)
        wanted += [piece for piece, no in zip(cut, bad, strict=True) if piece and not no]
    found = without(corpus, wrong, marks, task)
    assert [words for words in found.words() if words] == wanted
    assert [tags for tags in found.tags() if tags] == [["x"] * len(words) for words in wanted]


def test_filtration_drops_what_does_not_transform_back() -> None:
    run = run_of(rounds=1, reestimation=False, filtration=True)
    finished(run)
    rounds: Any = run.loop.learner
    model = rounds.model
    source = rounds.halves[1]
    back = annotate(model.backward, source.gold.units, source.other[None])
    edges = source.gold.units.sentences
    fine = [(back[a:b] == source.x[a:b]).all() for a, b in itertools.pairwise(edges.tolist())]
    kept = rounds._corpus(source.other, model.backward).corpus
    text = ["".join(words) for words, _ in SOURCE]
    wanted = [t for t, good, new in zip(text, fine, rounds.new, strict=True) if good and new]
    assert ["".join(words) for words in kept.words()] == wanted


# Settings and files -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"lambda": "much"}, "lambda=much"),
        ({"lambda": "1.5"}, "from 0 to 1"),
        ({"grid": "0,-1"}, "from 0 to 1"),
        ({"grid": ""}, "lambda="),
        ({"templates": "w0; g-1 g0"}, "one guide at a time"),
        ({"templates": "w0; gb0"}, "one guide at a time"),
        ({"rounds": 0}, "rounds=0"),
        ({"rondes": 1}, "Did you mean rounds"),
        ({"learner": "perceptron", "batch": 3}, "learner perceptron has no setting"),
    ],
)
def test_settings_that_make_no_sense(given: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        train("transform", sides_with(), "pos", given)


def model_file(tmp_path: Path) -> tuple[Path, Any, Any]:
    finished(run_of(rounds=1)).save(tmp_path / "model")
    header, tensors = storage.load(tmp_path / "model")
    return tmp_path / "model", header, tensors


def test_files_that_no_transformation_has(tmp_path: Path) -> None:
    path, header, tensors = model_file(tmp_path)
    fields = header["model"]
    backward = fields["backward"]
    cases: list[tuple[dict[str, Any], str]] = [
        ({"lambda": 2.0}, "its lambda is 2"),
        ({"lambda": "auto"}, "'lambda' in its header"),
        ({"temperatures": [1.0]}, "its temperatures"),
        ({"temperatures": [1.0, -1.0]}, "its temperatures"),
        ({"temperatures": [1.0, None]}, "its temperatures"),
        ({"forward": {}}, "no 'labels'"),
        ({"backward": {**backward, "templates": ["w0", "g+1 g0"]}}, "more than one guide"),
        ({"backward": {**backward, "task": "seg", "templates": ["c0"]}}, "chains are for|label"),
    ]
    for change, message in cases:
        storage.save(path, {**header, "model": {**fields, **change}}, tensors)
        with pytest.raises(ModelFileError, match=message):
            load(path)
    storage.save(
        path, {**header, "sides": [*header["sides"], header["sides"][0]]}, {**tensors, "words.2": tensors["words.0"]}
    )
    with pytest.raises(ModelFileError, match="3 sides where 2"):
        load(path)
    storage.save(path, header, tensors)
    assert isinstance(load(path), Tagger)


def test_the_source_is_converted_with_its_gaps_filled() -> None:
    tagger = finished(run_of(rounds=2, round_patience=2))
    holes: Sentences = [(words, [None if k == 1 else tag for k, tag in enumerate(tags)]) for words, tags in SOURCE[:10]]
    new = tagger.convert(build(holes), "b", "a")
    right = [tag.lower()[0] for _, tags in SOURCE[:10] for tag in tags]  # type: ignore[union-attr]
    found = [tag for tags in new.tags() for tag in tags]
    assert sum(a == b for a, b in zip(found, right, strict=True)) >= 0.9 * len(right)
