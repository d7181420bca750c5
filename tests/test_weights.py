"""Sparse weights against dictionaries: which pairs have one, sums over rows, changes to rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import chain as naive_chain
from naive import weights as naive
from problems import LearningProblem, random_problem

from duilian.models.weights import Features, add, build_rows, entry, is_whole, occurrences, score
from duilian.ragged import Ragged

SINGLE = 1e-5
"""Absolute: float32 sums of a few terms of size one."""

problems = st.builds(
    random_problem,
    st.integers(0, 10**6),
    n_labels=st.integers(1, 4),
    known=st.sampled_from([0.0, 0.7, 1.0]),
    full=st.sampled_from([0.01, 0.5, 1.0]),
)


def as_dictionary(problem: LearningProblem, weights: Any) -> naive.Weights:
    table = problem.table
    return {
        (row, int(table.labels[at])): float(weights[at])
        for row in range(len(table))
        for at in range(table.offsets[row], table.offsets[row + 1])
    }


@given(st.integers(0, 10**6), st.integers(1, 4), st.sampled_from([0.0, 0.7]), st.sampled_from([0.01, 0.3, 0.5, 1.0]))
def test_rows_hold_the_labels_that_their_units_allow(seed: int, n_labels: int, known: float, full: float) -> None:
    problem = random_problem(seed, n_labels=n_labels, known=known, full=full)
    sets = [row.tolist() for row in problem.sets]
    allowed = [naive_chain.allowed_labels(label, sets, n_labels) for label in problem.labels.tolist()]
    units = [row.tolist() for row in problem.rows]
    expected = naive.allowed_pairs(units, allowed, n_labels, full * n_labels)
    assert set(as_dictionary(problem, problem.table.weights)) == expected
    for row in range(len(problem.table)):
        labels = problem.table.labels[problem.table.offsets[row] : problem.table.offsets[row + 1]].astype(int)
        assert np.all(np.diff(labels) > 0), "labels rise within a row"


@given(problems, st.sampled_from([1.0, 0.5]))
def test_scores_are_sums_over_rows(problem: LearningProblem, scale: float) -> None:
    weights = as_dictionary(problem, problem.table.weights)
    n = len(problem.rows)
    for begin, end in ((0, n), (1, n - 1)):
        node = np.full((end - begin, problem.n_labels), 9, np.float32)
        score(problem.table.sparse(), problem.features, begin, end, np.float32(scale), node)
        for unit in range(begin, end):
            expected = naive.score(problem.rows[unit].tolist(), weights, problem.n_labels)
            np.testing.assert_allclose(node[unit - begin], np.array(expected) * scale, rtol=0, atol=SINGLE)


def test_rows_that_all_hold_the_same_four_labels_are_summed_without_looking_them_up() -> None:
    problem = random_problem(3, n_labels=4, known=0.0, full=0.01, lengths=(3, 0, 6, 2))
    assert is_whole(problem.table.sparse(), 4)
    weights, n = as_dictionary(problem, problem.table.weights), len(problem.rows)
    node = np.empty((n, 4), np.float32)
    score(problem.table.sparse(), problem.features, 0, n, np.float32(0.5), node)
    expected = [naive.score(problem.rows[unit].tolist(), weights, 4) for unit in range(n)]
    np.testing.assert_allclose(node, np.array(expected) * 0.5, rtol=0, atol=SINGLE)


@given(problems)
def test_changes_reach_the_pairs_that_have_a_weight(problem: LearningProblem) -> None:
    rng = np.random.default_rng(len(problem.rows.data))
    rates = rng.uniform(0.1, 1, len(problem.table)).astype(np.float32)
    n = len(problem.rows)
    delta = rng.normal(size=(n, problem.n_labels)).astype(np.float32)
    weights = problem.table.weights.copy()
    add(problem.table.sparse(weights), rates, problem.features, 1, n, delta[1:])
    expected = as_dictionary(problem, problem.table.weights)
    for unit in range(1, n):
        expected = naive.add(problem.rows[unit].tolist(), expected, delta[unit].tolist(), rates.tolist())
    found = as_dictionary(problem, weights)
    assert set(found) == set(expected)
    for pair, value in expected.items():
        assert found[pair] == pytest.approx(value, abs=SINGLE)


@given(problems)
def test_entry_finds_the_place_of_a_pair(problem: LearningProblem) -> None:
    table = problem.table
    have = as_dictionary(problem, np.arange(len(table.weights)))
    for row in range(len(table)):
        for label in range(problem.n_labels):
            assert entry(table.sparse(), row, label) == have.get((row, label), -1)


def test_more_than_64_labels() -> None:
    """The marks of a row are bits of several words."""
    n_labels = 130
    rows = Ragged.from_rows([[0], [0], [0], [1], [2]], np.int32)
    sets = Ragged.from_rows([[1, 63, 64, 129]], np.int32)
    labels = np.array([0, 65, 128, -1, -2], np.int32)
    found = build_rows(3, n_labels, [(rows, labels, sets)], full_share=0.1)
    assert [found.labels[found.offsets[k] : found.offsets[k + 1]].tolist() for k in range(3)] == [
        [0, 65, 128],
        list(range(130)),
        [1, 63, 64, 129],
    ]


def test_rows_of_several_corpora_are_marked_together() -> None:
    none = Ragged.from_rows([], np.int32)
    one = (Ragged.from_rows([[0]], np.int32), np.array([1], np.int32), none)
    two = (Ragged.from_rows([[0], [1]], np.int32), np.array([3, 0], np.int32), none)
    found = build_rows(3, 8, [one, two], full_share=1.0)
    assert found.labels.tolist() == [1, 3, 0]
    assert found.offsets.tolist() == [0, 2, 3, 3]
    assert len(found) == 3


@given(problems)
def test_rows_are_counted(problem: LearningProblem) -> None:
    expected = naive.occurrences([row.tolist() for row in problem.rows], len(problem.table))
    assert occurrences(Features(problem.rows.data, problem.rows.offsets), len(problem.table)).tolist() == expected
