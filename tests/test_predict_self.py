"""S+ against enumeration: best labels, marginals, n best, with scores recomputed from features; its ends; gaps in x."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import chain as naive_chain
from naive import features as naive_features
from naive import predict_self as naive

from duilian.corpus import build
from duilian.features import Featurizer
from duilian.features.templates import guided
from duilian.lifting import Units, grammar_of, units_of
from duilian.models.chain import Chain
from duilian.models.predict_self import PredictSelf
from duilian.models.weights import build_rows
from duilian.ragged import Ragged

SINGLE = 1e-4
"""Absolute: sums of a few dozen float32 weights of size 1."""
WORDS = ("a", "bb", "abc", "年")
TEMPLATES = {"pos": ("w0", "w-1 w0", "prefix0", "inner0"), "seg": ("c0", "c-1 c0", "bias")}
NEAR = {"pos": ("g-1", "w0 g+1", "g-2 bias"), "seg": ("g-1", "c+1 g+1")}
NAMES = {"pos": (("n", "v", "x"), ("N", "V")), "seg": (("B", "E", "I", "S"), ("B", "E", "I", "S"))}


@dataclass
class Problem:
    """Two chains with random weights over each other's labels, and a sentence with given labels."""

    task: str
    sentence: list[str]
    units: Units
    x: Any
    forward: Chain
    backward: Chain
    slow: list[naive.Model]

    def scores(self, ratio: float) -> dict[tuple[int, ...], float]:
        return naive.plus_scores(*self.slow, ratio, self.sentence, self.x.tolist())


def chain_of(
    task: str, names: tuple[str, ...], sentence: list[str], units: Units, guides: list[Any], rng: np.random.Generator
) -> tuple[Chain, naive.Model]:
    """A chain that knows the features under these guides, and the same weights by feature."""
    lines = (*guided(TEMPLATES[task]), *NEAR[task])
    featurizer = Featurizer(lines, "word" if task == "pos" else "character")
    rows = featurizer.fit([units] * len(guides), guides)
    some = Ragged.from_rows(
        [rng.permutation(len(names))[: 1 + rng.integers(len(names))] for _ in units.starts], np.int32
    )
    some = Ragged.from_rows([sorted(row) for row in some], np.int32)
    sets = (-2 - np.arange(len(units))).astype(np.int32)
    sparse = build_rows(len(featurizer), len(names), [(one, sets, some) for one in rows], 0.9)
    rules = grammar_of(names, task)
    tables = [rng.normal(size=allowed.shape) for allowed in (rules.follows, rules.starts, rules.ends)]
    trans, start, end = (
        np.where(allowed, table, -np.inf).astype(np.float32)
        for allowed, table in zip((rules.follows, rules.starts, rules.ends), tables, strict=True)
    )
    chain = Chain(names, task, featurizer, sparse, trans, start, end)
    chain = chain.with_weights(rng.normal(size=len(sparse.labels)), trans, start, end)
    weights = {}
    for guide, part in zip(guides, rows, strict=True):
        for u, found in enumerate(naive_features.features(sentence, lines, guide=guide.tolist())):
            for feature, row in zip(found, part[u].tolist(), strict=True):
                for k in range(sparse.offsets[row], sparse.offsets[row + 1]):
                    weights[feature, int(sparse.labels[k])] = float(chain.rows.weights[k])
    return chain, naive.Model(lines, weights, trans.tolist(), start.tolist(), end.tolist())


def problem_of(task: str, n: int, seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    sentence = [WORDS[k] if task == "pos" else WORDS[k][0] for k in rng.integers(0, len(WORDS), n)]
    corpus = build([(sentence, None)])
    units = units_of(corpus, corpus.layer(), task)
    ours, theirs = NAMES[task]
    x = rng.integers(0, len(theirs), n).astype(np.int32)
    if task == "seg":
        x = np.array(
            [[theirs.index("S")] * n, [theirs.index(p) for p in ("B" + "I" * (n - 2) + "E" if n > 1 else "S")]]
        )[seed % 2].astype(np.int32)
    constant = [np.full(n, y, np.int32) for y in range(len(ours))]
    # Some features under some guides are unknown to the backward chain.
    known = [guide for guide in constant if rng.random() < 0.8] or constant[:1]
    forward, slow_forward = chain_of(task, ours, sentence, units, [x], rng)
    backward, slow_backward = chain_of(task, theirs, sentence, units, known, rng)
    return Problem(task, sentence, units, x, forward, backward, [slow_forward, slow_backward])


problems = st.builds(problem_of, st.sampled_from(["pos", "seg"]), st.integers(1, 4), st.integers(0, 2**32 - 1))


@given(problems, st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]))
def test_the_best_y_is_that_of_enumeration(problem: Problem, ratio: float) -> None:
    model = PredictSelf.of(problem.forward, problem.backward, ratio)
    asked = model.both_ways(problem.units, problem.x)
    best = tuple(model.decode(asked, problem.units.sentences).tolist())
    scores = problem.scores(ratio)
    assert scores[best] == pytest.approx(max(scores.values()), abs=SINGLE)


@given(problems, st.sampled_from([0.0, 0.3, 1.0]), st.sampled_from([1.0, 3.0]))
def test_marginals_and_n_best_are_those_of_enumeration(problem: Problem, ratio: float, heat: float) -> None:
    model = PredictSelf.of(problem.forward, problem.backward, ratio, heat)
    asked = model.both_ways(problem.units, problem.x)
    scores = {y: value / heat for y, value in problem.scores(ratio).items()}
    ((_, _, found),) = model.posteriors(asked, problem.units.sentences)
    for t, label in itertools.product(range(len(problem.sentence)), range(len(model.names))):
        assert found.marginals[t, label] == pytest.approx(naive_chain.marginal(scores, t, label), abs=SINGLE)
    paths, values = model.n_best(asked, 0, len(problem.units), 3)
    shares = np.exp(values / heat - found.log_z[0])
    expected = sorted(naive_chain.probabilities(scores).values(), reverse=True)[:3]
    assert shares == pytest.approx(expected, abs=SINGLE)
    assert len({tuple(path) for path in paths.tolist()}) == len(paths)


@given(problems)
def test_at_its_ends_it_is_one_way_alone(problem: Problem) -> None:
    """lambda = 0: the forward chain, to the bit; lambda = 1: no transition counts, each unit for itself where free."""
    there = PredictSelf.of(problem.forward, problem.backward, 0.0)
    asked = there.both_ways(problem.units, problem.x)
    plain = problem.forward.features(problem.units, problem.x)
    np.testing.assert_array_equal(
        there.decode(asked, problem.units.sentences), problem.forward.decode(plain, problem.units.sentences)
    )
    if problem.task == "pos":
        back = PredictSelf.of(problem.forward, problem.backward, 1.0)
        asked = back.both_ways(problem.units, problem.x)
        np.testing.assert_array_equal(back.decode(asked, problem.units.sentences), asked.back.argmax(axis=1))


@given(problems, st.data())
def test_where_x_is_unknown_the_way_back_says_nothing(problem: Problem, data: st.DataObject) -> None:
    """A gap has no weights; the transitions of x are the same for all y, also those that would lead into it."""
    if problem.task == "seg":
        return
    gaps = data.draw(st.sets(st.integers(0, len(problem.x) - 1)))
    problem.x[list(gaps)] = -1
    model = PredictSelf.of(problem.forward, problem.backward, 0.5)
    best = model.decode(model.both_ways(problem.units, problem.x), problem.units.sentences)
    scores = problem.scores(0.5)
    assert scores[tuple(best.tolist())] == pytest.approx(max(scores.values()), abs=SINGLE)


def test_guides_beyond_the_sentence_say_nothing() -> None:
    """Two sentences side by side are scored as each alone."""
    problem = problem_of("pos", 3, 8)
    model = PredictSelf.of(problem.forward, problem.backward, 0.5)
    alone = model.both_ways(problem.units, problem.x).back
    corpus = build([(problem.sentence, None)] * 2)
    both = model.both_ways(units_of(corpus, corpus.layer(), "pos"), np.concatenate([problem.x] * 2)).back
    assert alone.any()
    np.testing.assert_array_equal(both, np.concatenate([alone, alone]))


@given(problems, st.integers(0, 3))
def test_only_allowed_labels_are_answered(problem: Problem, wanted: int) -> None:
    if problem.task == "seg":
        return
    model = PredictSelf.of(problem.forward, problem.backward, 0.4)
    allowed = np.full(len(problem.units), -1, np.int32)
    allowed[0] = wanted % len(model.names)
    asked = model.both_ways(problem.units, problem.x)
    labels = model.decode(asked, problem.units.sentences, allowed, Ragged.from_rows([], np.int32))
    scores = {y: value for y, value in problem.scores(0.4).items() if y[0] == allowed[0]}
    assert scores[tuple(labels.tolist())] == pytest.approx(max(scores.values()), abs=SINGLE)


def test_a_y_that_no_path_allows_is_said() -> None:
    from duilian.errors import DuilianError

    problem = problem_of("seg", 2, 4)
    model = PredictSelf.of(problem.forward, problem.backward, 0.4)
    asked = model.both_ways(problem.units, problem.x)
    with pytest.raises(DuilianError, match="sentence 1"):
        model.decode(asked, problem.units.sentences, np.array([0, 0], np.int32), Ragged.from_rows([], np.int32))
