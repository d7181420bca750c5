"""Chain kernels against enumeration: sums in float32 and float64, Viterbi, constraints; -inf, ties, length 1."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import chain as naive
from strategies import ChainProblem, chain_problems

from duilian.inference import chain
from duilian.ragged import Ragged

SINGLE = 2e-5
"""Absolute on probabilities and relative on log Z (plus one): float32 sums over at most five units and labels."""
DOUBLE = 1e-9
"""The same in float64."""


def sums(problem: ChainProblem, first: int, last: int, dtype: Any, node: Any = None) -> tuple[float, Any, Any]:
    """(log Z, marginals, expected pairs) of one sentence by the scaled forward and backward pass."""
    n, n_labels = last - first, problem.n_labels
    node = problem.node[first:last] if node is None else node
    runs = chain.runs_of(problem.trans > -np.inf)
    width = int(chain.room_for(n_labels, runs)) if dtype == np.float32 else n_labels

    def wide(part: Any) -> Any:
        """Exponentials with zeros behind them."""
        with np.errstate(over="ignore"):
            wider = np.pad(np.exp(part.astype(dtype)), [(0, 0)] * (part.ndim - 1) + [(0, width - n_labels)])
        return np.ascontiguousarray(wider)

    table, turned, start, end = map(wide, (problem.trans, problem.trans.T, problem.start, problem.end))
    psi, alpha, norm = np.zeros((n, width), dtype), np.zeros((n, width), dtype), np.empty(n + 1, dtype)
    if dtype == np.float32:
        bits = np.empty(n_labels, np.int32)
        top = chain.exponentials(node, n, psi, bits, bits.view(np.float32))
    else:
        top = chain.exponentials64(node.astype(np.float64), n, psi)
    log_z = top + chain.forward(psi, n, table, start, end, runs, alpha, norm)
    pairs = np.zeros((n_labels, width), dtype)
    if np.isfinite(log_z):
        back = chain.runs_of((problem.trans > -np.inf).T)
        chain.backward(psi, n, turned, end, runs, back, alpha, norm, np.zeros_like(psi), pairs, dtype(0))
        assert not alpha[:, n_labels:].any()
    return float(log_z), alpha[:, :n_labels], (pairs * table)[:, :n_labels]


def check_sums(problem: ChainProblem, dtype: Any, tolerance: float) -> None:
    for first, last in problem.edges():
        scores = problem.scores(first, last)
        if first == last:
            continue
        log_z, marginals, pairs = sums(problem, first, last, dtype)
        if not scores:
            assert not np.isfinite(log_z)
            continue
        assert log_z == pytest.approx(naive.log_partition(scores), rel=tolerance, abs=tolerance)
        expected = [
            [naive.marginal(scores, t, label) for label in range(problem.n_labels)] for t in range(last - first)
        ]
        np.testing.assert_allclose(marginals, expected, rtol=0, atol=tolerance)
        np.testing.assert_allclose(pairs, naive.expected_pairs(scores, problem.n_labels), rtol=0, atol=4 * tolerance)


@given(chain_problems())
def test_sums_in_float64_agree_with_enumeration(problem: ChainProblem) -> None:
    check_sums(problem, np.float64, DOUBLE)


@given(chain_problems())
def test_sums_in_float32_agree_with_enumeration(problem: ChainProblem) -> None:
    """Of moderate scores; what float32 cannot hold is left to ``training.sgd.careful``."""
    parts = np.concatenate([problem.node.ravel(), problem.trans.ravel(), problem.start, problem.end])
    if np.abs(parts[parts > -np.inf]).max(initial=0) < 15:
        check_sums(problem, np.float32, SINGLE)


def test_a_label_that_must_be_taken_against_all_scores_is_not_rounded_away() -> None:
    """Only the label that the node scores 200 lower may start: float32 must notice that it cannot hold that."""
    inf = np.inf
    problem = ChainProblem(
        np.array([[200, 0], [0, 1]], np.float32), np.zeros((2, 2), np.float32), np.array([-inf, 0], np.float32),
        np.zeros(2, np.float32), np.array([0, 2]), np.array([-1, -1], np.int32), [],
    )  # fmt: skip
    log_z, _, _ = sums(problem, 0, 2, np.float32)
    assert not np.isfinite(log_z) or log_z == pytest.approx(np.log1p(np.e), rel=1e-4)
    assert sums(problem, 0, 2, np.float64)[0] == pytest.approx(np.log1p(np.e), rel=1e-9)


@given(st.lists(st.floats(-80, 80, width=32) | st.just(-np.inf), min_size=1, max_size=5))
def test_exponentials_in_float32(row: list[float]) -> None:
    node = np.array([row, row[::-1]], np.float32)
    psi, bits = np.empty_like(node), np.empty(node.shape[1], np.int32)
    total = chain.exponentials(node, 2, psi, bits, bits.view(np.float32))
    top = max(row)
    assert total == 2 * top
    if top > -np.inf:
        gap = node.astype(np.float64) - top
        expected = np.exp(gap)
        # Float32 cannot hold x log2(e) better than one part in 2 ** 24, and the exponential of that error is its size.
        close = np.where(gap > -np.inf, 3e-7 * (1 + np.abs(np.where(gap > -np.inf, gap, 0))), 0) * expected
        assert np.all((np.abs(psi - expected) <= close) | (expected < 2e-38) & (psi <= 2e-38))
    assert np.all(psi[node == -np.inf] == 0)


@given(chain_problems(whole=True), st.booleans())
def test_viterbi_is_the_best_labelling(problem: ChainProblem, constrained: bool) -> None:
    """Ties included: of equal labellings the one whose last differing label is smaller."""
    runs = chain.runs_of(problem.trans > -np.inf)
    sets = Ragged.from_rows(problem.sets, np.int32)
    for first, last in problem.edges():
        if first == last:
            continue
        node = problem.node[first:last].copy()
        if constrained:
            chain.constrain(node, first, last, problem.labels, sets.data, sets.offsets)
        scores = problem.scores(first, last, constrained)
        best, path = np.empty_like(node), np.full(last - first, -9, np.int32)
        top = chain.viterbi(node, last - first, problem.trans, problem.start, problem.end, runs, best, path)
        if not scores:
            assert top == -np.inf
            assert np.all((path >= 0) & (path < problem.n_labels)), "even an impossible path must index arrays"
        else:
            assert tuple(path.tolist()) == naive.best(scores)
            assert top == scores[naive.best(scores)]


@given(chain_problems())
def test_viterbi_of_real_scores(problem: ChainProblem) -> None:
    runs = chain.runs_of(problem.trans > -np.inf)
    for first, last in problem.edges():
        scores = problem.scores(first, last)
        if not scores or first == last:
            continue
        node = problem.node[first:last]
        best, path = np.empty_like(node), np.empty(last - first, np.int32)
        top = chain.viterbi(node, last - first, problem.trans, problem.start, problem.end, runs, best, path)
        high = max(scores.values())
        assert top == pytest.approx(high, rel=1e-5, abs=1e-5)
        assert scores[tuple(path.tolist())] == pytest.approx(high, rel=1e-5, abs=1e-5)


@given(chain_problems())
def test_constrain_leaves_what_each_unit_allows(problem: ChainProblem) -> None:
    sets = Ragged.from_rows(problem.sets, np.int32)
    for first, last in problem.edges():
        node = problem.node[first:last].copy()
        some = chain.constrain(node, first, last, problem.labels, sets.data, sets.offsets)
        allowed = problem.allowed(first, last)
        assert some == bool(np.any(problem.labels[first:last] != -1))
        for t, fine in enumerate(allowed):
            for label in range(problem.n_labels):
                assert node[t, label] == (problem.node[first + t, label] if label in fine else -np.inf)


@given(chain_problems())
def test_reversing_the_chain_changes_nothing(problem: ChainProblem) -> None:
    back = ChainProblem(
        np.ascontiguousarray(problem.node[::-1]), np.ascontiguousarray(problem.trans.T), problem.end, problem.start,
        problem.sentences, problem.labels, problem.sets,
    )  # fmt: skip
    n = len(problem.node)
    if n == 0:
        return
    one, two = sums(problem, 0, n, np.float64), sums(back, 0, n, np.float64)
    if np.isfinite(one[0]):
        assert one[0] == pytest.approx(two[0], rel=DOUBLE, abs=DOUBLE)
        np.testing.assert_allclose(one[1], two[1][::-1], rtol=0, atol=DOUBLE)
        np.testing.assert_allclose(one[2], two[2].T, rtol=0, atol=DOUBLE)
    else:
        assert not np.isfinite(two[0])


@given(st.integers(1, 5), st.integers(1, 5))
def test_without_scores_the_sum_counts_labellings(n: int, n_labels: int) -> None:
    zeros = np.zeros(n_labels, np.float32)
    problem = ChainProblem(
        np.zeros((n, n_labels), np.float32), np.zeros((n_labels, n_labels), np.float32), zeros, zeros,
        np.array([0, n]), np.full(n, -1, np.int32), [],
    )  # fmt: skip
    assert sums(problem, 0, n, np.float64)[0] == pytest.approx(n * np.log(n_labels), abs=DOUBLE)


def test_runs_list_every_allowed_pair_once() -> None:
    rng = np.random.default_rng(5)
    for size, share, equal in itertools.product((1, 2, 4, 5, 9), (0.0, 0.3, 1.0), (1, 3, 9)):
        allowed = (rng.random((size, size)) < share)[np.arange(size) // equal]
        runs = chain.runs_of(allowed)
        found = [
            (i, j)
            for b, first in enumerate(runs.firsts)
            for i in range(first, first + runs.sizes[b])
            for r in range(runs.offsets[b], runs.offsets[b + 1])
            for j in range(int(runs.begins[r]), int(runs.ends[r]))
        ]
        assert len(found) == len(set(found))
        assert sorted(found) == [(int(i), int(j)) for i, j in zip(*np.nonzero(allowed), strict=True)]


@given(chain_problems())
def test_transitions_outside_the_runs_are_not_taken(problem: ChainProblem) -> None:
    """A grammar given by runs alone is the same as -inf in the table, for sums and for the way there of Viterbi."""
    rng = np.random.default_rng(len(problem.node))
    follows = rng.random(problem.trans.shape) < 0.7
    cut = np.where(follows, problem.trans, -np.inf).astype(np.float32)
    for first, last in problem.edges():
        if first == last:
            continue
        node = problem.node[first:last]
        one, two = np.empty_like(node), np.empty_like(node)
        path = np.empty(last - first, np.int32)
        args = node, last - first, cut, problem.start, problem.end
        chain.viterbi(*args, chain.runs_of(follows), one, path)
        chain.viterbi(*args, chain.runs_of(np.ones_like(follows)), two, path)
        np.testing.assert_array_equal(one, two)
