"""Multitask as a method: mappings of all kinds, both directions, averages, confidences; what is added to a plain PA."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from naive import expansion as naive
from toys import expected, rename, settings_of, toy_sentences, trained, without_tags

from duilian import mapping, standards, storage
from duilian.corpus import build
from duilian.errors import ModelFileError, SettingError
from duilian.evaluation import evaluate
from duilian.lifting import units_of
from duilian.methods import METHODS, Side, load, train
from duilian.methods.multitask import MultiTaskTagger
from duilian.models.multitask import MultiTask
from duilian.stages import Context, Stages

TOY = toy_sentences(12)
UPPER = {tag: tag.upper() + "1" for tag in "rvnda"}


def sides() -> list[Side]:
    return [Side("a", build(TOY)), Side("b", build(rename(toy_sentences(8, 3), UPPER.__getitem__)))]


def run(task: str, seed: int = 1, **given: Any) -> Any:
    found = train("multitask", sides(), task, settings_of(METHODS["multitask"], **given), seed)
    for _ in found:
        pass
    return found


@pytest.mark.parametrize("task", ["pos", "seg", "segpos"])
@pytest.mark.parametrize("direction", ["both", "one-way"])
def test_it_answers_in_both_sides(task: str, direction: str) -> None:
    tagger = run(task, direction=direction, epochs=12).tagger
    own = rename(toy_sentences(8, 3), UPPER.__getitem__)
    # Both ways, side b also knows words that only the other side's corpus has.
    for side, sentences in (("a", TOY), ("b", own if direction == "one-way" else rename(TOY, UPPER.__getitem__))):
        found = tagger.tag(without_tags(sentences), side)
        pairs = [list(zip(*one, strict=True)) for one in zip(found.words(), found.tags(), strict=True)]
        assert pairs == expected(sentences, task)


def table(model: MultiTask) -> set[tuple[str, str]]:
    return {(model.sides[0].names[a], model.sides[1].names[b]) for a, b in model.pairs.tolist()}


def test_a_counted_mapping_is_what_taggers_of_the_other_side_say(tmp_path: Path) -> None:
    said: list[str] = []
    for times in (2, 2):
        found = train("multitask", sides(), "pos", {"epochs": 1, "mapping": "automatic", "share": 0.3}, 1)
        found.context = Context(said.append, 1, Stages(tmp_path))
        next(iter(found))
        assert {(tag, UPPER[tag]) for tag in "rvnda"} <= table(found.loop.model)
        assert len(said) == times  # the second time the stage is there


def test_a_rule_file_and_lifting(tmp_path: Path) -> None:
    rules = tmp_path / "rules.txt"
    rules.write_text("".join(f"{a} {b}\n" for a, b in UPPER.items()), encoding="utf-8")
    plain = table(run("pos", epochs=1, mapping=str(rules)).loop.model)
    assert plain == set(UPPER.items())
    found = run("segpos", epochs=1, mapping=str(rules), lift="same").loop.model
    assert {a.split("@")[0] for a, _ in table(found)} <= set("BIES")
    assert all(a.split("@")[0] == b.split("@")[0] and UPPER[a[2:]] == b[2:] for a, b in table(found))
    free = run("segpos", epochs=1, mapping=str(rules), lift="free").loop.model
    assert len(table(free)) > len(table(found))
    seg = run("seg", epochs=1).loop.model
    assert table(seg) == {(p, p) for p in seg.sides[0].names if p in seg.sides[1].names}


def test_a_guideline_between_registered_standards() -> None:
    """Persons' names, one word on one side and two on the other, meet across the boundary."""
    ctb = build([(["刘翔", "进入", "中国区"], ["NR", "VV", "NN"]), (["莫言", "写", "书"], ["NR", "VV", "NN"])] * 3)
    pku = build([(["刘", "翔", "进入", "中国", "区"], ["nrf", "nrg", "v", "ns", "n"]), (["写", "书"], ["v", "n"])] * 3)
    two = [
        Side("ctb", ctb, standard=standards.get("ctb")),
        Side("mine", pku, standard=standards.get("pku")),
    ]
    for order in (two, two[::-1]):
        training = train("multitask", order, "segpos", {"epochs": 2}, 1)
        next(iter(training))
        found = table(training.loop.model)
        if order is not two:
            found = {(b, a) for a, b in found}
        assert ("B@NR", "S@nrf") in found
        assert ("E@NR", "S@nrg") in found
        assert ("B@VV", "B@v") in found
        assert ("B@VV", "S@v") not in found
    one = train("multitask", two, "segpos", {"epochs": 1, "names": "same"}, 1)
    next(iter(one))
    assert ("B@NR", "S@nrf") not in table(one.loop.model)


@pytest.mark.parametrize("average", ["passes", "steps"])
def test_averages(average: str) -> None:
    """Means of passes: worked out again from runs of one and two passes."""
    whole = run("pos", epochs=2, average=average, dropout=0, hide=0).loop
    first = run("pos", epochs=1, average=average, dropout=0, hide=0).loop
    for name, array in whole.model.numbers().items():
        finite = np.isfinite(array)
        one = first.learner.now[0 if ".0." in name else 1]
        two = whole.learner.now[0 if ".0." in name else 1]
        if average == "passes" and name.endswith("weights"):
            mean = (one.sparse.weights + two.sparse.weights) / 2
            np.testing.assert_allclose(array[finite], mean[finite], rtol=0, atol=1e-6)
    assert any(np.abs(array[np.isfinite(array)]).max(initial=0) > 0 for array in whole.model.numbers().values())


def sentence_scores(tagger: MultiTaskTagger, side: int, text: list[str]) -> dict[Any, float]:
    """Every labelling of a sentence of words with every expansion, by enumeration."""
    model = tagger.model
    corpus = build([(text, None)])
    units = units_of(corpus, corpus.layer(), "pos")
    rows = [row.tolist() for row in model.featurizer.transform(units)]
    weights = []
    for one in model.sides:
        found: naive.Weights = {}
        for row in range(len(one.rows)):
            for at in range(one.rows.offsets[row], one.rows.offsets[row + 1]):
                found["row", row, int(one.rows.labels[at])] = float(one.rows.weights[at])
        for a in range(len(one.names)):
            found["start", a], found["end", a] = float(one.start[a]), float(one.end[a])
            found |= {("step", a, b): float(one.trans[a, b]) for b in range(len(one.names))}
        weights.append(found)
    phi: dict[int, list[int | None]] = {k: [] for k in range(len(model.sides[side].names))}
    none = len(model.sides[1 - side].names)
    for own, other in model.expanded[side].tolist():
        phi[own].append(None if other == none or not model.expands(side) else other)
    everything = tuple(range(len(phi)))
    rows_ = tuple(map(tuple, rows))
    task = naive.Task(
        rows_, rows_, (everything,) * len(text), weights[side], weights[1 - side], len(phi), phi, model.help
    )
    return task.scores()


@pytest.mark.parametrize("direction", ["both", "one-way"])
def test_answers_confidences_and_n_best_against_enumeration(direction: str) -> None:
    tagger = trained("multitask", "pos", dev=toy_sentences(4), epochs=3, direction=direction, help=0.6)
    text = ["书", "很", "大"]
    for side, info in enumerate(tagger.sides):
        scores = sentence_scores(tagger, side, text)
        best = max(scores, key=lambda pair: scores[pair])
        found = tagger.tag(build([(text, None)]), info.name, confidence=True).layer()
        assert found.labels.tolist() == list(best[0])
        heat = tagger.model.temperatures[side]
        top = max(scores.values())
        shares = {pair: math.exp((score - top) / heat) for pair, score in scores.items()}
        total = sum(shares.values())
        for t, label in enumerate(best[0]):
            mine = sum(share for pair, share in shares.items() if pair[0][t] == label)
            assert found.confidence[t] == pytest.approx(mine / total, abs=2e-3)
        ranked: dict[Any, float] = {}
        for pair, share in shares.items():
            ranked[pair[0]] = ranked.get(pair[0], 0.0) + share / total
        answers = tagger.n_best(build([(text, None)]), info.name, None, 3)[0]
        for layer, probability in answers[:1]:
            assert probability == pytest.approx(ranked[tuple(layer.labels.tolist())], abs=0.02)
        assert all(a[1] >= b[1] for a, b in itertools.pairwise(answers))


def test_confidences_of_words_found() -> None:
    tagger = trained("multitask", "segpos", dev=TOY, epochs=8)
    found = tagger.tag(without_tags(TOY), confidence=True).layer()
    assert len(found.confidence) == len(found)
    assert 0 <= found.confidence.min() <= found.confidence.max() <= 1 + 1e-6
    kept = tagger.tag(build(TOY), constrain=True)
    assert evaluate(build(TOY), kept, task="segpos")["joint"]["f"] == 100


def test_what_is_refused(tmp_path: Path) -> None:
    for settings, message in (
        ({"mapping": "nothing.txt"}, "no such file"),
        ({"sample": "1,2,3"}, "one or two numbers"),
        ({"sample": "-1"}, "one or two numbers"),
        ({"sample": "x"}, "one or two numbers"),
    ):
        with pytest.raises(SettingError, match=message):
            train("multitask", sides(), "pos", settings)
    with pytest.raises(SettingError, match="no table between no standard and no standard"):
        next(iter(train("multitask", sides(), "pos", {"mapping": "guideline"})))


def test_a_damaged_model_is_refused(tmp_path: Path) -> None:
    tagger = trained("multitask", "pos", epochs=1)
    tagger.save(tmp_path / "model")
    header, tensors = storage.load(tmp_path / "model")
    with pytest.raises(ModelFileError, match="labels that it does not have"):
        _broken(tmp_path, dict(header), {**tensors, "pairs": np.full((1, 2), 99, np.int32)})
    for field in ({"temperatures": [1.0]}, {"temperatures": [1.0, 0.0]}, {"labels": [["a"]]}):
        with pytest.raises(ModelFileError, match="two sides with a temperature each"):
            _broken(tmp_path, {**header, "model": {**header["model"], **field}}, dict(tensors))


def _broken(folder: Path, header: dict[str, Any], tensors: dict[str, Any]) -> None:
    storage.save(folder / "broken", header, tensors)
    load(folder / "broken")


def test_a_mapping_by_share_and_turned() -> None:
    one = mapping.automatic([("a", "b"), ("x", "y")], np.array([0] * 10 + [1]), np.array([0] * 9 + [1, 1]))
    assert dict(zip(one.names(), one.counts.tolist(), strict=True)) == {("a", "x"): 9, ("a", "y"): 1, ("b", "y"): 1}
    assert set(one.common(0.6).names()) == {("a", "x"), ("b", "y")}
    assert set(one.common(0.5).names()) == {("a", "x"), ("a", "y"), ("b", "y")}
    assert set(one.reversed().names()) == {("x", "a"), ("y", "a"), ("y", "b")}
    assert one.reversed().reversed().names() == one.names()
