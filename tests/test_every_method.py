"""One battery over all methods and their tasks: adding a row to METHODS adds its tests."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from toys import (
    CASES,
    LEXICON,
    Sentences,
    answers,
    arrays_of,
    begin,
    expected,
    raw,
    rename,
    settings_of,
    sides_of,
    text_of,
    toy_sentences,
    trained,
    without_tags,
)

import duilian.methods
from duilian.corpus import Label, build
from duilian.errors import DataError, SettingError, TaskError, UsageError
from duilian.methods import METHODS, Side, Training, load, train
from duilian.tagger import Tagger

every = pytest.mark.parametrize(("name", "task"), CASES)
TOY = toy_sentences(12)
CONFIDENCE = 1e-3
"""Absolute on probabilities of models that should be the same but were summed in another order, in float32."""


@cache
def toy_tagger(name: str, task: str) -> Tagger:
    return trained(name, task, dev=TOY, epochs=15)


def bytes_of(tagger: Tagger, path: Path) -> bytes:
    tagger.save(path)
    return path.read_bytes()


def probabilities(tagger: Tagger, sentences: Sentences) -> Any:
    new = tagger.tag(without_tags(sentences), confidence=True).layer()
    assert new.confidence is not None
    return new.confidence


# Learning -----------------------------------------------------------------------------------------------------------


@every
def test_learns_a_separable_toy(name: str, task: str) -> None:
    assert answers(toy_tagger(name, task), without_tags(TOY)) == expected(TOY, task)


@every
def test_knows_no_more_of_the_text_than_the_labels_it_is_asked_for(name: str, task: str) -> None:
    """Labels in the input are ignored: tagging gold and tagging bare words is the same."""
    wrong = build(rename(TOY, lambda tag: "n"))
    assert answers(toy_tagger(name, task), wrong) == expected(TOY, task)


@every
def test_progress_tells_epochs_units_and_dev(name: str, task: str) -> None:
    run = begin(name, task, dev=toy_sentences(5))
    seen = list(run)
    assert [progress.epoch for progress in seen] == list(range(1, len(seen) + 1))
    assert all(set(progress.dev) >= {"a"} and 0 <= progress.dev["a"] <= 100 for progress in seen)
    assert seen[0].best
    assert all(late.tokens > early.tokens for early, late in itertools.pairwise(seen))
    assert max(progress.dev["a"] for progress in seen) == next(p.dev["a"] for p in reversed(seen) if p.best)


@every
def test_dev_decides_which_model_is_kept(name: str, task: str) -> None:
    """The tagger scores on dev what the best epoch reported."""
    from duilian.evaluation import evaluate
    from duilian.methods.base import main_score

    dev = rename(toy_sentences(6, 2), lambda tag: "r" if tag == "a" else tag)
    run = begin(name, task, dev=dev, epochs=3)
    seen = list(run)
    gold = build(dev)
    scores = evaluate(gold, run.tagger.tag(without_tags(dev)), task=task)
    assert main_score(scores, task) == pytest.approx(max(progress.dev["a"] for progress in seen), abs=1e-9)


@every
def test_inputs_are_left_as_they_are(name: str, task: str) -> None:
    sides = sides_of(METHODS[name], TOY, toy_sentences(4))
    corpora = [corpus for side in sides for corpus in (side.corpus, side.dev) if corpus is not None]
    settings = settings_of(METHODS[name], epochs=2)
    before, given = [arrays_of(corpus) for corpus in corpora], dict(settings)
    run = train(name, sides, task, settings)
    for _ in run:
        pass
    one = without_tags(TOY)
    corpora.append(one)
    before.append(arrays_of(one))
    run.tagger.tag(one, confidence=True)
    assert settings == given
    for corpus, old in zip(corpora, before, strict=True):
        new = arrays_of(corpus)
        assert new.keys() == old.keys()
        for key, array in old.items():
            np.testing.assert_array_equal(new[key], array, err_msg=key)


# The same again -----------------------------------------------------------------------------------------------------


@every
def test_same_seed_same_bytes_also_with_other_threads_at_work(name: str, task: str, tmp_path: Path) -> None:
    alone = bytes_of(trained(name, task, dev=toy_sentences(5), epochs=3), tmp_path / "alone")
    with ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(trained, name, task, dev=toy_sentences(5), epochs=3) for _ in range(2)]
    for number, run in enumerate(runs):
        assert bytes_of(run.result(), tmp_path / f"thread{number}") == alone


@every
def test_renaming_the_tags_renames_the_output(name: str, task: str) -> None:
    """In an order that stays: every number is the same, to the bit."""
    one, two = trained(name, task, TOY, epochs=3), trained(name, task, rename(TOY, lambda tag: "x" + tag), epochs=3)
    renamed = [
        [(word, None if tag is None else "x" + str(tag)) for word, tag in sentence]
        for sentence in answers(one, without_tags(TOY))
    ]
    assert answers(two, without_tags(TOY)) == renamed
    np.testing.assert_array_equal(probabilities(one, TOY), probabilities(two, TOY))


@every
def test_the_order_of_the_tags_names_does_not_matter(name: str, task: str) -> None:
    turned = rename(TOY, dict(zip("adnrv", "vrnda", strict=True)).__getitem__)
    tagger = trained(name, task, turned, dev=turned, epochs=15)
    assert answers(tagger, without_tags(TOY)) == expected(turned, task)


@every
def test_a_set_of_one_label_is_that_label(name: str, task: str) -> None:
    """For all tags, and for one tag that occurs in sets alone."""
    plain = trained(name, task, TOY, epochs=3)
    for some in (set("rvnda"), {"a"}):
        labels = {tag: frozenset([tag]) if tag in some else tag for tag in "rvnda"}
        sets = trained(name, task, rename(TOY, labels.__getitem__), epochs=3)
        assert sets.side().tags == plain.side().tags
        assert answers(sets, without_tags(TOY)) == answers(plain, without_tags(TOY))
        np.testing.assert_allclose(probabilities(sets, TOY), probabilities(plain, TOY), rtol=0, atol=CONFIDENCE)


# Labels and sentences of all kinds ----------------------------------------------------------------------------------


@every
def test_unknown_and_ambiguous_labels_are_ordinary_input(name: str, task: str) -> None:
    """Every fourth word without a label, and one label of "a or d" in each sentence that has one."""
    places = iter(range(10**6))

    def loosen(tag: str) -> Label:
        at = next(places)
        if at % 4 == 3:
            return None
        return frozenset(["a", "d"]) if tag == "d" and at % 2 else tag

    partial = trained(name, task, rename(toy_sentences(20), loosen), epochs=10)
    found = [pair for sentence in answers(partial, without_tags(TOY)) for pair in sentence]
    gold = [pair for sentence in expected(TOY, task) for pair in sentence]
    right = len(set(enumerate(found)) & set(enumerate(gold))) if len(found) == len(gold) else 0
    assert right >= 0.8 * len(gold), found


@every
def test_empty_sentences_and_sentences_of_one_character(name: str, task: str) -> None:
    blank: tuple[list[str], list[Label]] = ([], [])
    odd: Sentences = [blank, (["书"], ["n"]), *TOY, blank, blank, (["大"], ["a"]), blank]
    tagger = trained(name, task, odd, dev=[blank, *toy_sentences(3), blank], epochs=3)
    found = answers(tagger, without_tags(odd))
    assert len(found) == len(odd)
    assert [bool(words) for words, _ in odd] == [bool(sentence) for sentence in found]
    assert answers(tagger, without_tags([blank])) == [[]]
    assert answers(tagger, build([])) == []


@every
def test_unseen_words_and_characters_get_an_answer(name: str, task: str) -> None:
    strange: Sentences = [(["𠮷野家", "ａｂｃ", "1998年", "\ud800", "é"], [None] * 5)]
    corpus = without_tags(strange)
    new = toy_tagger(name, task).tag(corpus)
    assert text_of(new) == text_of(corpus)
    assert "".join(new.words()[0]) == text_of(corpus)
    if task != "seg":
        assert set(new.tags()[0]) <= set("rvnda")


@pytest.mark.parametrize(("name", "task"), [case for case in CASES if case[1] != "pos"])
def test_text_of_any_length_can_be_segmented_after_training_on_words_of_two(name: str, task: str) -> None:
    """No single-character word in training, and yet a text of one character, or of three, has words."""
    twos = [(["我们", "学习"], ["r", "v"]), (["北京", "学习"], ["n", "v"])] * 3
    tagger = trained(name, task, [(words, list(tags)) for words, tags in twos], epochs=2)
    for text in ("我", "我们学", "学 习"):
        new = tagger.tag(raw([text]))
        assert "".join(new.words()[0]) == text.replace(" ", "")


# Conversion ---------------------------------------------------------------------------------------------------------

CONVERTERS = [case for case in CASES if METHODS[case[0]].converts]
converters = pytest.mark.parametrize(("name", "task"), CONVERTERS)
SOURCE = rename(TOY, lambda tag: f"{tag.upper()}1")
"""The toy as its second side annotates it."""


def ways(name: str) -> list[tuple[str, str, Sentences, Sentences]]:
    """(from, to, what is given, what is expected) of each way that a method converts."""
    both = [("b1", "a", SOURCE, TOY), ("a", "b1", TOY, SOURCE)]
    return both[:1] if METHODS[name].converts in ("others -> first", "second -> first") else both


def pairs_of(corpus: Any, task: str) -> list[list[tuple[str, Label]]]:
    found = [list(zip(*pair, strict=True)) for pair in zip(corpus.words(), corpus.tags(), strict=True)]
    return [[(word, None if task == "seg" else tag) for word, tag in sentence] for sentence in found]


@cache
def converter(name: str, task: str) -> Tagger:
    """Both sides know every word and have sentences in common."""
    other = rename(toy_sentences(30, 15), lambda tag: f"{tag.upper()}1")
    sides = [Side("a", build(toy_sentences(30)), build(TOY)), Side("b1", build(other), build(SOURCE))]
    return finished(train(name, sides, task, settings_of(METHODS[name], epochs=15)))


@converters
def test_converts_the_toy_as_it_should(name: str, task: str) -> None:
    for source, target, given, wanted in ways(name):
        new = converter(name, task).convert(build(given), source, target)
        assert pairs_of(new, task) == expected(wanted, task), (source, target)


@converters
def test_confidences_and_n_best_of_conversions(name: str, task: str) -> None:
    for source, target, given, _ in ways(name):
        tagger, corpus = converter(name, task), build(given)
        sure = tagger.convert(corpus, source, target, confidence=True)
        assert np.all((sure.layer().confidence >= 0) & (sure.layer().confidence <= 1))
        info, other = tagger.side(source), tagger.side(target)
        lists = tagger.convert_n_best(corpus, corpus.layer(), info, other, 3)
        assert len(lists) == len(corpus)
        for number, found in enumerate(lists):
            shares = [share for _, share in found]
            assert 1 <= len(found) <= 3
            assert shares == sorted(shares, reverse=True)
            assert sum(shares) <= 1 + CONFIDENCE
            one = corpus.select([number]).with_layer(found[0][0])
            best = one.layer(found[0][0].name)
            assert (one.words(best.name)[0], one.tags(best.name)[0]) == (sure.words()[number], sure.tags()[number])


@converters
def test_gaps_and_foreign_tags_leave_their_units_free(name: str, task: str) -> None:
    """Unknown, foreign and ambiguous tags in the source; empty sentences; and the target's tags alone come out."""
    for source, target, given, _ in ways(name):
        places = itertools.cycle([None, "??", *[frozenset({"R1", "V1", "r", "v"})]])
        holes = [(words, [next(places) for _ in words]) for words, _ in given]
        corpus = build([([], []), *holes, ([], [])])
        tagger = converter(name, task)
        new = tagger.convert(corpus, source, target, confidence=True)
        assert text_of(new) == text_of(corpus)
        assert [bool(words) for words in new.words()] == [False, *[True] * len(holes), False]
        if task != "seg":
            assert {tag for tags in new.tags() for tag in tags} <= set(tagger.side(target).tags)
            assert tagger.unknown_source_tags(corpus.layer(), source)["??"] > 0


@converters
def test_labels_of_the_target_that_are_there_are_kept(name: str, task: str) -> None:
    if task == "seg":
        return
    for source, target, given, wanted in ways(name):
        strange = wanted[0][1][-1]
        kept = [(words, [strange, *[None] * (len(words) - 1)]) for words, _ in given]
        corpus = build(given).with_layer(build(kept, name=target).layer())
        new = converter(name, task).convert(corpus, source, target, corpus.layers[0].name)
        answer = new.layer(corpus.layers[0].name)
        for number, words in enumerate(new.words(answer.name)):
            if words[0] == given[number][0][0]:
                assert new.tags(answer.name)[number][0] == strange


@converters
def test_ways_that_cannot_be_gone(name: str, task: str) -> None:
    tagger = converter(name, task)
    with pytest.raises(TaskError, match="nothing to convert"):
        tagger.convert(build(TOY), "a", "a")
    with pytest.raises(TaskError, match="no side 'zz'"):
        tagger.convert(build(TOY), "zz", "a")
    if len(ways(name)) == 1:
        with pytest.raises(TaskError, match="to a alone"):
            tagger.convert(build(TOY), "a", "b1")
    if METHODS[name].answers == "the first side":
        with pytest.raises(TaskError, match="tags in a alone"):
            tagger.tag(build(TOY), "b1")
        with pytest.raises(TaskError, match="tags in a alone"):
            tagger.n_best(build(TOY), "b1", None, 2)
        assert [info.name for info in tagger.answers] == ["a"]


@converters
def test_saved_and_loaded_it_converts_the_same(name: str, task: str, tmp_path: Path) -> None:
    tagger = converter(name, task)
    tagger.save(tmp_path / "model")
    again = load(tmp_path / "model")
    for source, target, given, _ in ways(name):
        one, two = (each.convert(build(given), source, target, confidence=True) for each in (tagger, again))
        assert pairs_of(one, task) == pairs_of(two, task)
        np.testing.assert_array_equal(one.layer().confidence, two.layer().confidence)


@pytest.mark.parametrize(("name", "task"), [case for case in CASES if METHODS[case[0]].sides[1] not in (1, 2)])
def test_three_sides_are_learnt_from(name: str, task: str, tmp_path: Path) -> None:
    method = METHODS[name]
    sides = sides_of(method, toy_sentences(30), TOY)
    third = rename(toy_sentences(9, 7), lambda tag: f"{tag}3")
    run = train(name, [*sides[:2], Side("c", build(third), build(third[:3]))], task, settings_of(method, epochs=15))
    tagger = finished(run)
    assert answers(tagger, without_tags(TOY)) == expected(TOY, task)
    bytes_of(tagger, tmp_path / "model")
    assert answers(load(tmp_path / "model"), without_tags(TOY)) == expected(TOY, task)
    if method.converts:
        for source, given in (("b1", SOURCE), ("c", rename(TOY, lambda tag: f"{tag}3"))):
            assert pairs_of(tagger.convert(build(given), source, "a"), task) == expected(TOY, task)


# Files --------------------------------------------------------------------------------------------------------------


@every
def test_saved_and_loaded_it_answers_the_same(name: str, task: str, tmp_path: Path) -> None:
    tagger = toy_tagger(name, task)
    written = bytes_of(tagger, tmp_path / "model")
    again = load(tmp_path / "model")
    assert (again.method, again.task) == (name, task)
    assert again.sides == tagger.sides
    for corpus in (without_tags(TOY), without_tags(toy_sentences(3, 40))):
        assert answers(again, corpus) == answers(tagger, corpus)
    np.testing.assert_array_equal(probabilities(again, TOY), probabilities(tagger, TOY))
    assert bytes_of(again, tmp_path / "again") == written


def finished(run: Training) -> Tagger:
    for _ in run:
        pass
    return run.tagger


@every
@pytest.mark.parametrize("with_dev", [True, False])
def test_resumed_from_a_checkpoint_it_ends_the_same(name: str, task: str, with_dev: bool, tmp_path: Path) -> None:
    """To the bit, from before the first epoch and from between any two."""

    def run() -> Training:
        return begin(name, task, dev=toy_sentences(5) if with_dev else None, epochs=3, patience=2)

    whole = run()
    whole.save_checkpoint(tmp_path / "checkpoint0")
    for number, _ in enumerate(whole, 1):
        whole.save_checkpoint(tmp_path / f"checkpoint{number}")
    uninterrupted = bytes_of(whole.tagger, tmp_path / "whole")
    checkpoints = sorted(tmp_path.glob("checkpoint*"))
    assert len(checkpoints) >= 2
    for checkpoint in checkpoints:
        later = run()
        later.resume(checkpoint)
        assert bytes_of(finished(later), tmp_path / "resumed") == uninterrupted, checkpoint.name


@every
def test_a_checkpoint_of_something_else_is_refused(name: str, task: str, tmp_path: Path) -> None:
    run = begin(name, task, epochs=1)
    next(iter(run))
    run.save_checkpoint(tmp_path / "checkpoint")
    other = begin(name, task, toy_sentences(11), epochs=1)
    with pytest.raises(UsageError, match="other data"):
        other.resume(tmp_path / "checkpoint")
    with pytest.raises(UsageError, match="checkpoint of an unfinished training"):
        load(tmp_path / "checkpoint")


# What cannot be done ------------------------------------------------------------------------------------------------


@every
def test_too_few_and_too_many_sides(name: str, task: str) -> None:
    method = METHODS[name]
    sides = sides_of(method, TOY)
    wrong: list[Sequence[Any]] = [sides[:-1]]
    if method.sides[1] is not None:
        wrong.append(sides * (method.sides[1] + 1))
    for some in wrong:
        with pytest.raises(UsageError, match="takes"):
            train(name, some, task)


@every
@pytest.mark.parametrize("on_dev", [False, True])
def test_a_side_without_words_or_without_tags(name: str, task: str, on_dev: bool) -> None:
    bare = [(words, [None] * len(words)) for words, _ in TOY]
    cases: list[Sentences] = [[], [([], [])]]
    if task != "seg":
        cases.append([(words, list(tags)) for words, tags in bare])
    for case in cases:
        with pytest.raises(DataError, match="side a"):
            begin(name, task, TOY if on_dev else case, case if on_dev else None)


@every
def test_an_unknown_setting_and_a_wrong_value(name: str, task: str) -> None:
    sides = sides_of(METHODS[name], TOY)
    with pytest.raises(SettingError, match="no setting 'epochz'"):
        train(name, sides, task, {"epochz": 3})
    number = next(setting.name for setting in METHODS[name].settings if setting.name in ("epochs", "rounds"))
    with pytest.raises(SettingError, match=number):
        train(name, sides, task, {number: "many"})


@pytest.mark.parametrize("name", METHODS)
def test_a_task_it_does_not_do(name: str) -> None:
    for task in {"pos", "seg", "segpos", "parse"} - set(METHODS[name].tasks):
        with pytest.raises(TaskError, match=task):
            train(name, sides_of(METHODS[name], TOY), task)


def test_a_method_that_does_not_exist() -> None:
    with pytest.raises(UsageError, match="perceptron"):
        train("percepton", [], "pos")


@every
def test_nothing_is_there_before_the_first_epoch(name: str, task: str) -> None:
    with pytest.raises(Exception, match="nothing is trained yet"):
        _ = begin(name, task).tagger


def test_the_toy_has_every_word() -> None:
    assert {word for words, _ in TOY for word in words} == set(LEXICON)


def test_the_table_has_every_method_that_there_is() -> None:
    folder = Path(duilian.methods.__file__).parent
    found = set()
    for path in folder.glob("*.py"):
        module = importlib.import_module(f"duilian.methods.{path.stem}")
        own = [getattr(module, name) for name in ("METHOD", "METHODS") if hasattr(module, name)]
        for rows in own if path.stem != "__init__" else []:
            found |= {method.name for method in (rows if isinstance(rows, tuple) else (rows,))}
    assert found == set(METHODS)
    assert all(METHODS[name].name == name for name in METHODS)
