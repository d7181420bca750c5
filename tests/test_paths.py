"""Posteriors and paths against enumeration: log Z, marginals, spans, n best, samples; with -inf, ties and length 1."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import chain as naive
from strategies import ChainProblem, chain_problems

from duilian.inference.chain import constrain, runs_of
from duilian.inference.paths import Posteriors, n_best
from duilian.ragged import Ragged

TOLERANCE = 1e-9
"""Absolute on probabilities, relative on log Z: float64."""


def posteriors(problem: ChainProblem, constrained: bool = False) -> Posteriors:
    node = problem.node.astype(np.float64)
    if constrained:
        sets = Ragged.from_rows(problem.sets, np.int32)
        constrain(node, 0, len(node), problem.labels, sets.data, sets.offsets)
    return Posteriors(node, problem.sentences, problem.trans, problem.start, problem.end)


@given(chain_problems(), st.booleans())
def test_log_z_and_marginals(problem: ChainProblem, constrained: bool) -> None:
    found = posteriors(problem, constrained)
    assert len(found.log_z) == len(problem.edges())
    for s, (first, last) in enumerate(problem.edges()):
        scores = problem.scores(first, last, constrained)
        assert found.log_z[s] == pytest.approx(naive.log_partition(scores), rel=TOLERANCE, abs=TOLERANCE)
        for t in range(last - first):
            for label in range(problem.n_labels):
                expected = naive.marginal(scores, t, label)
                assert found.marginals[first + t, label] == pytest.approx(expected, abs=TOLERANCE)


@given(chain_problems(), st.data())
def test_marginals_of_labels_and_spans(problem: ChainProblem, data: st.DataObject) -> None:
    found = posteriors(problem)
    labels = np.array(data.draw(st.lists(st.integers(0, problem.n_labels - 1), min_size=len(problem.node),
                                         max_size=len(problem.node))), np.int32)  # fmt: skip
    of_labels = found.of_labels(labels)
    begins, ends, expected = [], [], []
    for first, last in problem.edges():
        scores = problem.scores(first, last)
        for t in range(first, last):
            assert of_labels[t] == pytest.approx(naive.marginal(scores, t - first, labels[t]), abs=TOLERANCE)
            for end in range(t + 1, last + 1):
                begins.append(t)
                ends.append(end)
                expected.append(naive.span(scores, t - first, labels[t:end].tolist()))
    spans = found.of_spans(labels, np.array(begins, np.int64), np.array(ends, np.int64))
    np.testing.assert_allclose(spans, expected, rtol=0, atol=TOLERANCE)


@given(chain_problems())
def test_marginals_sum_to_one_where_a_labelling_is_possible(problem: ChainProblem) -> None:
    found = posteriors(problem)
    for s, (first, last) in enumerate(problem.edges()):
        total = 1.0 if found.log_z[s] > -np.inf else 0.0
        np.testing.assert_allclose(found.marginals[first:last].sum(axis=1), total, rtol=0, atol=TOLERANCE)


@given(chain_problems(whole=True), st.integers(1, 12))
def test_n_best_lists_the_best_in_order(problem: ChainProblem, k: int) -> None:
    """Ties included: whole numbers add up exactly."""
    for first, last in problem.edges():
        paths, scores = n_best(problem.node[first:last], problem.trans, problem.start, problem.end, k)
        expected = naive.ranked(problem.scores(first, last))[:k]
        assert scores.tolist() == [value for value, _ in expected]
        assert [tuple(path) for path in paths.tolist()] == [labels for _, labels in expected]


@given(chain_problems(), st.integers(1, 12))
def test_n_best_of_real_scores(problem: ChainProblem, k: int) -> None:
    for first, last in problem.edges():
        paths, scores = n_best(problem.node[first:last], problem.trans, problem.start, problem.end, k)
        every = problem.scores(first, last)
        expected = [value for value, _ in naive.ranked(every)[:k]]
        np.testing.assert_allclose(scores, expected, rtol=1e-9, atol=1e-9)
        found = [tuple(path) for path in paths.tolist()]
        assert len(set(found)) == len(found)
        np.testing.assert_allclose(scores, [every[path] for path in found], rtol=1e-9, atol=1e-9)


def test_none_of_the_best_is_an_error() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        n_best(np.zeros((1, 2)), np.zeros((2, 2)), np.zeros(2), np.zeros(2), 0)


def test_samples_come_as_often_as_they_are_likely() -> None:
    rng = np.random.default_rng(3)
    n_labels, lengths, draws = 2, (3, 0, 1, 2), 1500
    node, trans = rng.normal(size=(sum(lengths), n_labels)), rng.normal(size=(n_labels, n_labels))
    start, end = np.array([0.0, -np.inf]), rng.normal(size=n_labels)
    trans[0, 0] = -np.inf
    sentences = np.cumsum([0, *lengths])
    found = Posteriors(node, sentences, trans, start, end)
    counts: list[Counter[tuple[int, ...]]] = [Counter() for _ in lengths]
    for _ in range(draws):
        path = found.sample(rng).tolist()
        for s, count in enumerate(counts):
            count[tuple(path[sentences[s] : sentences[s + 1]])] += 1
    for s, count in enumerate(counts):
        scores = naive.all_scores(node[sentences[s] : sentences[s + 1]], trans, start, end)
        shares = naive.probabilities(scores)
        assert set(count) <= set(shares), "an impossible labelling was drawn"
        for labels, p in shares.items():
            # Five standard errors of a share of that many draws.
            assert count[labels] / draws == pytest.approx(p, abs=5 * np.sqrt(p * (1 - p) / draws) + 1e-9)


def test_the_same_seed_draws_the_same() -> None:
    rng = np.random.default_rng(4)
    found = Posteriors(rng.normal(size=(5, 3)), np.array([0, 2, 5]), np.zeros((3, 3)), np.zeros(3), np.zeros(3))
    first, second = (found.sample(np.random.default_rng(9)) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    others = [tuple(found.sample(np.random.default_rng(seed)).tolist()) for seed in range(20)]
    assert len(set(others)) > 1


@given(chain_problems())
def test_runs_given_or_found_make_no_difference(problem: ChainProblem) -> None:
    """Where the table has -inf inside a run, and where runs leave the -inf out."""
    every = runs_of(np.ones_like(problem.trans, np.bool_))
    one = posteriors(problem)
    two = Posteriors(problem.node, problem.sentences, problem.trans, problem.start, problem.end, every)
    np.testing.assert_allclose(one.log_z, two.log_z, rtol=TOLERANCE, atol=TOLERANCE)
    np.testing.assert_allclose(one.marginals, two.marginals, rtol=0, atol=TOLERANCE)
