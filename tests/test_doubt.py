"""Training on text that is not to be trusted: what low confidences leave out, and how much a sentence counts."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from toys import answers, expected, toy_sentences

from duilian.cli import main
from duilian.corpus import UNKNOWN, Corpus, build, concatenate
from duilian.errors import DataError
from duilian.lifting import label_units
from duilian.methods import Side, train
from duilian.methods.base import stamp_of
from duilian.methods.single import METHODS, prepare
from duilian.settings import resolve
from duilian.training import doubt

SETTINGS = {method.name: resolve(method.settings, {}, method.name) for method in METHODS}
NAN = float("nan")


def unsure(sentences: Any, confidence: list[float]) -> Corpus:
    """A corpus whose words have these confidences."""
    corpus = build(sentences)
    layer = replace(corpus.layer(), confidence=np.array(confidence, np.float32))
    return Corpus(corpus.text, corpus.offsets, (layer,))


def small() -> Corpus:
    return unsure([(["北京", "好"], ["ns", "a"]), (["他", "爱", "北京"], ["r", "v", "ns"])], [0.9, 0.3, NAN, 0.5, 1.0])


def test_a_label_without_a_confidence_is_gold() -> None:
    np.testing.assert_allclose(doubt.certainty(small().layer()), [0.9, 0.3, 1, 0.5, 1])
    np.testing.assert_allclose(doubt.certainty(build(toy_sentences(2)).layer()), 1)
    np.testing.assert_allclose(doubt.of_units(small(), small().layer(), "segpos"), [0.9, 0.9, 0.3, 1, 0.5, 1, 1])


@given(st.lists(st.lists(st.floats(0, 1, width=32), max_size=5), min_size=1, max_size=5))
def test_means_equal_the_definition(runs: list[list[float]]) -> None:
    flat = np.array([value for run in runs for value in run], np.float32)
    offsets = np.cumsum([0, *(len(run) for run in runs)])
    wanted = [sum(run) / len(run) if run else 1.0 for run in runs]
    np.testing.assert_allclose(doubt.means(flat, offsets), wanted, rtol=1e-6, atol=1e-7)


def test_labels_below_the_threshold_are_unknown() -> None:
    side = Side("a", small())
    chain, data = prepare(side, "pos", SETTINGS["crf"] | {"sure": 0.6})
    assert [chain.names[k] if k >= 0 else None for k in data.labels.tolist()] == ["ns", None, "r", None, "ns"]
    assert len(data.gains) == 0
    chain, data = prepare(side, "segpos", SETTINGS["perceptron"] | {"sure": 0.6})
    assert [chain.names[k] if k >= 0 else None for k in data.labels.tolist()] == [
        "B@ns", "E@ns", None, "S@r", None, "B@ns", "E@ns",
    ]  # fmt: skip
    assert np.all(data.labels != UNKNOWN) == np.all(data.labels >= 0)


def test_sentences_below_the_threshold_are_left_out() -> None:
    settings = SETTINGS["crf"] | {"sure": 0.7, "unsure": "sentence"}
    _, data = prepare(Side("a", small()), "pos", settings)
    assert len(data) == 1
    assert len(data.labels) == 3
    assert np.all(data.labels >= 0), "what stays is learnt whole"
    with pytest.raises(DataError, match="sure="):
        prepare(Side("a", small()), "pos", settings | {"sure": 0.9})


def test_sentences_are_weighed_by_their_mean() -> None:
    settings = SETTINGS["crf"] | {"weigh": True}
    _, data = prepare(Side("a", small()), "pos", settings)
    np.testing.assert_allclose(data.gains, [0.6, 2.5 / 3], rtol=1e-6)
    _, cut = prepare(Side("a", small()), "pos", settings | {"split": "他"})
    np.testing.assert_allclose(cut.gains, [0.6, 1.0, 0.75], rtol=1e-6)
    _, characters = prepare(Side("a", small()), "segpos", settings)
    np.testing.assert_allclose(characters.gains, [(0.9 + 0.9 + 0.3) / 3, 3.5 / 4], rtol=1e-6)


def test_without_the_settings_confidences_change_nothing() -> None:
    plain = Corpus(small().text, small().offsets, (replace(small().layer(), confidence=None),))
    for task in ("pos", "segpos"):
        one, two = (prepare(Side("a", corpus), task, SETTINGS["crf"])[1] for corpus in (small(), plain))
        np.testing.assert_array_equal(one.labels, two.labels)
        np.testing.assert_array_equal(one.gains, two.gains)
        assert len(one.labels) == len(label_units(plain, plain.layer(), task).labels)


def test_gold_and_converted_text_of_one_side_are_put_together() -> None:
    whole = concatenate([build([(["好"], ["a"])], "tags"), small()])
    assert whole.layer().confidence is not None
    np.testing.assert_allclose(doubt.certainty(whole.layer()), [1, 0.9, 0.3, 1, 0.5, 1])
    assert concatenate([build([(["好"], ["a"])])] * 2).layer().confidence is None


def test_other_confidences_are_another_training_run() -> None:
    other = unsure([(["北京", "好"], ["ns", "a"]), (["他", "爱", "北京"], ["r", "v", "ns"])], [0.9, 0.3, NAN, 0.5, 0.9])
    stamps = {stamp_of("crf", [Side("a", corpus)], "pos", SETTINGS["crf"], 1) for corpus in (small(), other)}
    assert len(stamps) == 2


@pytest.mark.parametrize("task", ["pos", "segpos"])
@pytest.mark.parametrize("method", ["crf", "perceptron", "pa", "merge"])
@pytest.mark.parametrize("way", [{"sure": 0.5}, {"sure": 0.5, "unsure": "sentence"}, {"weigh": True}])
def test_wrong_labels_that_are_unsure_do_no_harm(method: str, task: str, way: dict[str, Any]) -> None:
    """Three times as much text is wrong as is right, and says so by its confidences."""
    right = toy_sentences(12)
    wrong = [(words, ["n" if tag != "n" else "v" for tag in tags]) for words, tags in toy_sentences(36)]
    n = sum(len(words) for words, _ in wrong)
    converted = unsure(wrong, [0.01] * n)
    gold = build(right)
    if method == "merge":
        sides = [Side("a", gold), Side("b", converted)]
    else:
        sides = [Side("a", concatenate([gold, converted]))]
    settings = {"epochs": 10, "dropout": 0.0, "hide": 0.0} | ({"eta": 0.5} if method in ("crf", "merge") else {})
    found = {}
    for name, more in (("careless", {}), ("careful", way)):
        run = train(method, sides, task, settings | more)
        for _ in run:
            pass
        same = zip(answers(run.tagger, gold), expected(right, task), strict=True)
        found[name] = sum(one == two for one, two in same)
    assert found["careless"] < 6
    assert found["careful"] == len(right)


def test_from_conversion_to_training(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The whole way on the command line: convert with confidences, then train on gold and converted text."""
    (tmp_path / "one.txt").write_text("我/r  爱/v  北京/ns\n好/a\n我/r  好/a  。/w\n" * 3, encoding="utf-8")
    (tmp_path / "two.txt").write_text("他/PN  爱/VV  上海/NR\n他/PN  好/VA  。/PU\n" * 3, encoding="utf-8")

    def run(*arguments: object) -> None:
        with pytest.raises(SystemExit) as exit:
            main([str(argument) for argument in arguments])
        assert exit.value.code == 0, capsys.readouterr().err

    sides = ["--side", f"two={tmp_path}/two.txt", "--side", f"one={tmp_path}/one.txt"]
    more = ["--set", "pruning=none", "--set", "eta=0.5", "--set", "epochs=8", "--quiet"]
    run("train", "coupled", *sides, *more, "-o", tmp_path / "coupled")
    converted = tmp_path / "converted.jsonl"
    way = ("--from", "one", "--to", "two", "--confidence", "--format", "jsonl")
    run("convert", tmp_path / "coupled", tmp_path / "one.txt", *way, "-o", converted)
    files = ["--side", f"two={tmp_path}/two.txt", "--side", f"two={converted}"]
    run(
        "train",
        "crf",
        *files,
        "--set",
        "weigh=yes",
        "--set",
        "sure=0.2",
        "--set",
        "epochs=4",
        "-o",
        tmp_path / "m",
        "-q",
    )
    merge = ["--side", f"two={tmp_path}/two.txt", "--side", f"converted={converted}", "--set", "sure=0.2"]
    run("train", "merge", *merge, "--set", "epochs=4", "-o", tmp_path / "m", "--quiet")
    capsys.readouterr()
    run("inspect", tmp_path / "m", "--json")
    model = json.loads(capsys.readouterr().out)["models"][str(tmp_path / "m")]
    assert model["settings"]["sure"] == 0.2
    assert "北京" in capsys.readouterr().out or model["sides"]["two"]["words"] > 5
