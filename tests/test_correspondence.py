"""Label correspondence: tables worked out by hand, estimators and decoding against the definition, word boundaries."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import correspondence as naive
from naive import hmm as naive_hmm

from duilian import storage
from duilian.corpus import Corpus, Label, build
from duilian.errors import ModelFileError, TaskError
from duilian.evaluation import evaluate
from duilian.lifting import Labelled, carry_labels, label_units, word_units
from duilian.methods import Side, load, train
from duilian.models.correspondence import Correspondence
from duilian.stages import Context, Stages
from duilian.training.correspondence import ESTIMATORS, common_words, estimate, paired

Sentences = list[tuple[list[str], list[Label]]]
TARGET, SOURCE = ("A", "N", "V"), ("a", "n")
TOLERANCE = 5e-4
"""Absolute, on log scores of at most 3 tokens: sums of float32 numbers of size up to 20."""


def labelled(sentences: Sentences, names: tuple[str, ...]) -> Labelled:
    corpus = build(sentences)
    return label_units(corpus, corpus.layer(), "pos", known=names)


def table(evidence: Any, names: tuple[tuple[str, ...], tuple[str, ...]] = (SOURCE, TARGET)) -> dict[Any, float]:
    matrix = evidence.matrix(*map(len, names))
    return {(s, t): matrix[i, j] for i, s in enumerate(names[0]) for j, t in enumerate(names[1]) if matrix[i, j]}


# By hand ------------------------------------------------------------------------------------------------------------

# w: a 3, n 1 in the source; A 1, N 1, V 2 in the target. x: n 2; N 4. y and z are on one side alone.
HAND_SOURCE: Sentences = [(["w", "w", "w", "w"], ["a", "a", "a", "n"]), (["x", "x", "y"], ["n", "n", "a"])]
HAND_TARGET: Sentences = [(["w", "w", "w", "w"], ["A", "N", "V", "V"]), (["x"] * 4 + ["z"], ["N"] * 4 + ["V"])]
CW_T = {
    ("a", "A"): 3 / 4, ("a", "N"): 3 / 4, ("a", "V"): 6 / 4,
    ("n", "A"): 1 / 4, ("n", "N"): 1 / 4 + 2, ("n", "V"): 2 / 4,
}  # fmt: skip
CW_S = {
    ("a", "A"): 3 / 4, ("a", "N"): 3 / 4, ("a", "V"): 6 / 4,
    ("n", "A"): 1 / 4, ("n", "N"): 1 / 4 + 4, ("n", "V"): 2 / 4,
}  # fmt: skip


@pytest.mark.parametrize(("prior", "expected"), [("target", CW_T), ("source", CW_S)])
def test_common_words_against_a_table_worked_out_by_hand(prior: str, expected: dict[Any, float]) -> None:
    found = common_words(labelled(HAND_SOURCE, SOURCE), labelled(HAND_TARGET, TARGET), True, prior)
    assert table(found) == pytest.approx(expected, rel=1e-12)


def test_probabilities_against_a_table_worked_out_by_hand() -> None:
    """P(a) = 4.5 / 8, P(n) = 3.5 / 8: a stands four times, n three times, each half a time more."""
    source, target = labelled(HAND_SOURCE, SOURCE), labelled(HAND_TARGET, TARGET)
    both = [common_words(source, target, True, prior) for prior in ("target", "source")]
    p_a, p_n = 4.5 / 8, 3.5 / 8
    weights = [(CW_T, (2, 4, 3)), (CW_S, (2, 6, 3))]
    cw_t, cw_s = (
        np.array([[(w[s, t] + p) / n for t, n in zip(TARGET, sums, strict=True)] for s, p in (("a", p_a), ("n", p_n))])
        for w, sums in weights
    )
    for evidence, expected in (
        (both[:1], cw_t),
        (both[1:], cw_s),
        (both, (cw_t + cw_s) / 2),
    ):
        found = np.exp(estimate(evidence, source, len(TARGET))[0].astype(float))
        np.testing.assert_allclose(found, expected, rtol=1e-6)
        np.testing.assert_allclose(found.sum(axis=0), 1, rtol=1e-6)


def test_pairs_of_a_given_and_a_predicted_label_by_hand() -> None:
    given = labelled([(["w", "x", "w", "y"], ["a", None, frozenset(["a", "n"]), "n"])], SOURCE)
    predicted = np.array([0, 1, 2, 2], np.int32)
    found = paired(given, predicted, True, given_is_source=True)
    assert table(found) == {("a", "A"): 1, ("a", "V"): 0.5, ("n", "V"): 1.5}
    turned = paired(given, predicted, True, given_is_source=False)
    assert table(turned, (TARGET, SOURCE)) == {("A", "a"): 1, ("V", "a"): 0.5, ("V", "n"): 1.5}


# Against the definition ---------------------------------------------------------------------------------------------

WORDS = st.text("cde", min_size=1, max_size=2)


@st.composite
def corpora(draw: st.DrawFn, names: tuple[str, ...]) -> Sentences:
    one = st.sampled_from(names)
    some = one | st.none() | st.frozensets(one, min_size=2, max_size=2)
    sizes = draw(st.lists(st.integers(0, 4), min_size=1, max_size=4))
    every: Sentences = [(["fgh"] * len(names), list(names))]
    return every + [([draw(WORDS) for _ in range(n)], [draw(some) for _ in range(n)]) for n in sizes]


@given(corpora(SOURCE), corpora(TARGET))
def test_common_words(source: Sentences, target: Sentences) -> None:
    one, other = naive.counts(source), naive.counts(target)
    words = sorted({*one, *other})
    for prior, twin in (("target", naive.spread_by_target), ("source", naive.spread_by_source)):
        found = common_words(labelled(source, SOURCE), labelled(target, TARGET), True, prior)
        assert table(found) == pytest.approx(twin(one, other, words), rel=1e-9)
        found_words = found.by_word(len(TARGET))
        for at, row in enumerate(zip(found_words.offsets[:-1], found_words.offsets[1:], strict=True)):
            total = sum(twin(one, other, [word]).get((s, t), 0) for word in words for s in SOURCE for t in TARGET)
            assert found_words.counts[slice(*row)].sum() <= total * (1 + 1e-6), at
        assert found_words.counts.sum() == pytest.approx(found.weights.sum(), rel=1e-5)


def fitted(source: Sentences, target: Sentences, **settings: Any) -> Any:
    run = train("correspondence", [Side("t", build(target)), Side("s", build(source))], "pos", settings)
    for _ in run:
        pass
    return run.tagger


@given(
    corpora(SOURCE),
    corpora(TARGET).filter(lambda one: all(isinstance(label, str) for _, labels in one for label in labels)),
    st.sampled_from(["cw-t", "cw-s", "cw-c"]),
    st.booleans(),
    st.sampled_from([0.0, 0.5, 3.0]),
    st.lists(WORDS, min_size=1, max_size=3),
    st.integers(0, 2**32 - 1),
)
def test_decoding_finds_the_best_of_all_labellings(
    source: Sentences, target: Sentences, estimator: str, words: bool, open_: float, text: list[str], seed: int
) -> None:
    """P(t) P(o | t) P(s | t, o) of every labelling, each probability from its definition."""
    rng = np.random.default_rng(seed)
    choices: list[Label] = [None, "a", "n", frozenset(SOURCE)]
    labels = [choices[k] for k in rng.integers(0, len(choices), len(text))]
    tagger = fitted(source, target, estimator=estimator, words=words, open=open_, fold=True)
    one, other = naive.counts(source), naive.counts(target)
    ways = {"cw-t": [naive.spread_by_target], "cw-s": [naive.spread_by_source]}
    used = ways.get(estimator, [naive.spread_by_target, naive.spread_by_source])
    prior, vocabulary = naive.share_of(one, SOURCE), sorted(one)
    tables = [naive.probabilities(way(one, other, vocabulary), prior, TARGET) for way in used]
    mean = {pair: sum(table[pair] for table in tables) / len(tables) for pair in tables[0]}
    by_word = {}
    if words:
        for word in set(one) & set(other):
            counted = [way(one, other, [word]) for way in used]
            by_word[word] = {pair: sum(n.get(pair, 0) for n in counted) / len(counted) for pair in mean}
    twin = naive.Transformation(naive_hmm.Hmm(target, TARGET, 2, 5), mean, by_word, open_)
    corpus = build([(text, labels)])
    model: Correspondence = tagger.model
    units = word_units(corpus, corpus.layer())
    here = label_units(corpus, corpus.layer(), "pos", known=SOURCE)
    ((score, best),) = model.hmm.nbest(units, 1, extra=model.extra(units, here.labels, here.sets))[0]
    assert score == pytest.approx(twin.best(text, labels), abs=TOLERANCE)
    assert score == pytest.approx(twin.score(text, [TARGET[k] for k in best], labels), abs=TOLERANCE)
    converted = tagger.convert(corpus, "s", "t")
    assert converted.tags() == [[TARGET[k] for k in best]]


# As a method --------------------------------------------------------------------------------------------------------

CLEAN_TARGET: Sentences = [
    (["the", "dog", "runs"], ["A", "N", "V"]), (["the", "runs", "end"], ["A", "N", "V"]), (["dogs", "end"], ["N", "V"]),
] * 4  # fmt: skip
CLEAN_SOURCE: Sentences = [
    (["the", "dog", "ends"], ["a", "n", "v"]), (["the", "dogs", "run"], ["a", "n", "v"]), (["runs", "end"], ["n", "v"]),
] * 4  # fmt: skip


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_estimator_converts_by_the_labels_given(estimator: str, tmp_path: Path) -> None:
    """ "runs" is a noun or a verb; what the source says decides, unless nobody asks for it."""
    tagger = fitted(CLEAN_SOURCE, CLEAN_TARGET, estimator=estimator)
    asked = build([(["runs"], ["n"]), (["runs"], ["v"]), (["runs"], [None]), ([], []), (["zzz"], ["v"])])
    found = tagger.convert(asked, "s", "t", confidence=True)
    plain = tagger.tag(asked)
    if estimator == "none":
        assert found.tags() == plain.tags()
    else:
        assert found.tags()[:2] == [["N"], ["V"]]
        assert found.tags()[2] == plain.tags()[2]
        assert found.tags()[4] == ["V"]
    assert found.layer().confidence.min() > 0.3
    best = tagger.convert_n_best(asked, asked.layer(), tagger.side("s"), tagger.side("t"), 2)
    for sentence, answer in enumerate(best):
        assert answer[0][0].labels.tolist() == [tagger.side("t").tags.index(t) for t in found.tags()[sentence]]
        assert sum(p for _, p in answer) <= 1 + 1e-9
    tagger.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.convert(asked, "s", "t").tags() == found.tags()


def test_labels_of_the_target_that_are_there_are_kept() -> None:
    tagger = fitted(CLEAN_SOURCE, CLEAN_TARGET)
    corpus = build([(["the", "runs"], ["a", "n"])], name="given")
    there = replace(build([(["the", "runs"], [None, "V"])], name="t").layer())
    found = tagger.convert(corpus.with_layer(there), "s", "t", "given")
    assert found.tags("given") == [["A", "V"]]


def test_words_of_the_target_are_taken_where_they_are_there() -> None:
    """TAWC: corrected boundaries; the source's labels go to the words that they overlap."""
    tagger = fitted(CLEAN_SOURCE, CLEAN_TARGET)
    corpus = build([(["thedog", "ru", "ns"], ["n", "v", "v"])], name="given")
    there = build([(["the", "dog", "runs"], [None] * 3)], name="t").layer()
    found = tagger.convert(corpus.with_layer(there), "s", "t", "given")
    assert found.words("given") == [["the", "dog", "runs"]]
    assert found.tags("given") == [["A", "N", "V"]]


def test_labels_carried_over_to_other_words() -> None:
    layer = build([(["ab", "c", "d", "e"], ["x", "y", frozenset("xz"), None]), (["fg"], ["z"])]).layer()
    words = build([(["a", "b", "cd", "e"], [None] * 4), (["fg"], [None])]).layer()
    found = carry_labels(layer, words)
    assert [found.label(k) for k in range(5)] == ["x", "x", frozenset("xyz"), None, "z"]
    other = carry_labels(layer, build([(["abc", "de"], [None] * 2), (["f", "g"], [None] * 2)]).layer())
    assert [other.label(k) for k in range(4)] == [frozenset("xy"), None, "z", "z"]
    same = carry_labels(layer, layer)
    assert [same.label(k) for k in range(5)] == [layer.label(k) for k in range(5)]


def test_it_answers_in_the_first_side_alone() -> None:
    tagger = fitted(CLEAN_SOURCE, CLEAN_TARGET)
    corpus = build([(["the"], ["a"])])
    for ask in (
        lambda: tagger.tag(corpus, "s"),
        lambda: tagger.convert(corpus, "t", "s"),
        lambda: tagger.n_best(corpus, "s", None, 2),
    ):
        with pytest.raises(TaskError, match=r"(in|to) t alone"):
            ask()


def test_what_a_crf_predicted_is_kept_as_a_stage(tmp_path: Path) -> None:
    said: list[str] = []

    def one() -> Any:
        sides = [Side("t", build(CLEAN_TARGET)), Side("s", build(CLEAN_SOURCE))]
        run = train("correspondence", sides, "pos", {"estimator": "crf-t", "tagger_epochs": 2})
        run.context = Context(said.append, 1, Stages(tmp_path))
        for _ in run:
            pass
        return run.tagger.model.table

    first = one()
    np.testing.assert_array_equal(one(), first)
    assert len(said) == 1


def test_a_damaged_model_is_refused(tmp_path: Path) -> None:
    tagger = fitted(CLEAN_SOURCE, CLEAN_TARGET, words=True)
    tagger.save(tmp_path / "model")
    header, tensors = storage.load(tmp_path / "model")
    for name, value in {
        "correspondence": np.zeros((1, 1), np.float32),
        "seen": -np.asarray(tensors["seen"]),
        "open": np.array([-1.0]),
        "words.codes": np.full_like(np.asarray(tensors["words.codes"]), 99),
        "words.counts": -np.asarray(tensors["words.counts"]),
    }.items():
        storage.save(tmp_path / "broken", dict(header), {**tensors, name: value})
        with pytest.raises(ModelFileError):
            load(tmp_path / "broken")


# On real corpora ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [one for one in ESTIMATORS if one != "none"])
def test_every_estimator_beats_the_plain_tagger_on_english_halves(estimator: str, data_folder: Path) -> None:
    from duilian import formats

    upos, xpos = (formats.read(data_folder / "en_ewt" / "en_ewt-train.conllu", layer=name) for name in ("upos", "xpos"))
    dev, gold = (formats.read(data_folder / "en_ewt" / "en_ewt-dev.conllu", layer=name) for name in ("upos", "xpos"))

    def accuracy(**settings: Any) -> float:
        sides = [Side("t", xpos.select(slice(3000))), Side("s", upos.select(slice(6272, 9272)))]
        run = train("correspondence", sides, "pos", {"tagger_epochs": 3, **settings})
        for _ in run:
            pass
        found: Corpus = run.tagger.convert(dev, "s", "t")
        return float(evaluate(gold, found, "xpos", found.layer().name, task="pos")["accuracy"])

    assert accuracy(estimator=estimator) >= accuracy(estimator="none") + 2.0
