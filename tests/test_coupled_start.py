"""The start of a coupled model against meetings counted one by one, over every path that a side's model could take."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_coupled import N_ROWS, Problem, random_problem

from duilian.methods.coupled_start import FAINT, FARTHEST, associations, begin_with_associations, meetings
from duilian.models.joint_rows import build_joint_rows
from duilian.training.parts import Parts

SINGLE = 1e-4
"""Absolute on counts of a few float32 probabilities."""


def parts_of(problem: Problem) -> Parts:
    homes = np.zeros(len(problem.batch.sentences) - 1, np.int8)
    return Parts(problem.batch.features[0], problem.batch.sentences, problem.batch.given, homes)


def counted(problem: Problem, one: int, other: int) -> list[list[float]]:
    """Twin of ``meetings``: probabilities of the other side's labels by all of its paths."""
    weights, sizes = problem.weights(), problem.sizes
    found = [[0.0] * sizes[other] for _ in range(sizes[one])]
    for begin, end in problem.sentences():
        labels = problem.batch.given[one].labels[begin:end].tolist()
        total, by_label = 0.0, [[0.0] * sizes[other] for _ in range(end - begin)]
        for path in itertools.product(range(sizes[other]), repeat=end - begin):
            score = 0.0
            for t, label in enumerate(path):
                score += sum(weights.get(("separate", other, row, label), 0.0) for row in problem.rows[begin + t])
                score += weights["start", other, label] if t == 0 else weights["trans", other, path[t - 1], label]
                score += weights["end", other, label] if t == end - begin - 1 else 0.0
            total += math.exp(score)
            for t, label in enumerate(path):
                by_label[t][label] += math.exp(score)
        for t, label in enumerate(labels):
            if label < 0:
                continue
            certain = int(problem.batch.given[other].labels[begin + t])
            for b in range(sizes[other]):
                found[label][b] += by_label[t][b] / total if certain < 0 else float(b == certain)
    return found


@given(st.integers(0, 10**6), st.sampled_from([0.3, 0.7]))
def test_meetings_are_what_every_path_says(seed: int, known: float) -> None:
    problem = random_problem(seed, known=known)
    for one, other in ((0, 1), (1, 0)):
        found = meetings(parts_of(problem), problem.model.sides, one, other)
        np.testing.assert_allclose(found, counted(problem, one, other), rtol=0, atol=SINGLE)


def test_associations_are_above_0_for_labels_that_meet_and_below_for_those_that_do_not() -> None:
    problem = random_problem(5, known=1.0, lengths=(40,))
    labels = np.tile(np.array([0, 1], np.int32), 20)
    given_ = (replace(problem.batch.given[0], labels=labels), replace(problem.batch.given[1], labels=labels))
    parts = Parts(problem.batch.features[0], problem.batch.sentences, given_, np.zeros(1, np.int8))
    found = associations(parts, problem.model.sides, 0, 1)
    # each unit counts once from either side; the third label is never there and keeps what all pairs are given
    counts = np.array([[40.0, 0.0], [0.0, 40.0], [0.0, 0.0]]) + FAINT / 6
    rows, columns = counts.sum(axis=1), counts.sum(axis=0)
    logs = [[math.log(counts[a, b] * counts.sum() / rows[a] / columns[b]) for b in range(2)] for a in range(3)]
    expected = np.clip(logs, -FARTHEST, FARTHEST)
    assert expected[0, 0] > 0.6
    assert expected[0, 1] == -FARTHEST
    assert expected[2, 0] == pytest.approx(0, abs=1e-9)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
    np.testing.assert_allclose(associations(parts, problem.model.sides, 1, 0), found.T, rtol=0, atol=1e-9)
    assert np.abs(found).max() <= FARTHEST


@pytest.mark.parametrize("n_sides", [2, 3])
def test_only_the_row_of_every_unit_begins_with_associations(n_sides: int) -> None:
    problem = random_problem(9, n_sides=n_sides, lengths=(3, 2))
    n_codes = problem.model.n_codes
    rows = np.zeros(problem.batch.n_units, np.int32)
    kinds = np.zeros(problem.batch.n_units, np.int32)
    every = np.arange(n_codes, dtype=np.int32)
    joint = build_joint_rows(
        N_ROWS, n_codes, rows, np.arange(len(rows) + 1), kinds, np.array([0, n_codes]), every
    )  # fmt: skip
    joint = joint.with_weights(np.full(len(joint.codes), 0.25, np.float32))
    parts, chains = parts_of(problem), problem.model.sides
    begun = begin_with_associations(joint, 0, parts, chains, 2.0)
    for code in range(n_codes):
        bundle = problem.bundle(code)
        expected = sum(
            associations(parts, chains, one, other)[bundle[one], bundle[other]]
            for one, other in itertools.combinations(range(n_sides), 2)
        )
        assert begun.weights[code] == pytest.approx(0.25 + 2 * expected, abs=1e-5)
    assert set(joint.weights.tolist()) == {0.25}, "the argument stays as it was"
