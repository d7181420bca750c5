"""Second-order chains against enumeration: log Z, marginals, Viterbi, n-best, samples; -inf and short sentences."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import trigram as naive

from duilian.inference import trigram

TOLERANCE = 1e-9
"""Absolute, on log probabilities of a few units and on probabilities: float64 sums of at most 81 terms."""


@dataclass
class Problem:
    """A few sentences over few labels, in both forms."""

    trellis: trigram.Trellis
    pair: Any
    table: Any
    candidates: list[list[list[int]]]
    emissions: list[list[dict[tuple[int, int], float]]]

    @property
    def boundary(self) -> int:
        return len(self.table) - 1

    def sentences(self) -> list[dict[naive.Labelling, float]]:
        return [
            naive.all_scores(
                candidates, lambda t, u, v, emissions=emissions: emissions[t][u, v], self.table, self.boundary
            )
            for candidates, emissions in zip(self.candidates, self.emissions, strict=True)
        ]

    def edges(self) -> list[tuple[int, int]]:
        return list(itertools.pairwise(self.trellis.offsets.tolist()))


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    n_labels = draw(st.integers(1, 3))
    lengths = draw(st.lists(st.integers(0, 4), min_size=1, max_size=3))
    scores = st.floats(-5, 5, width=32) | st.sampled_from([-math.inf, 0.0, 0.0, -30.0])
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    table = rng.normal(size=(n_labels + 1,) * 3)
    table[rng.random(table.shape) < draw(st.sampled_from([0, 0, 0.2, 0.6]))] = -np.inf
    candidates: list[list[list[int]]] = []
    emissions: list[list[dict[tuple[int, int], float]]] = []
    flat: list[int] = []
    sizes: list[int] = []
    pair: list[float] = []
    for length in lengths:
        candidates.append([])
        emissions.append([])
        before = [n_labels]
        for _ in range(length):
            own = draw(st.lists(st.integers(0, n_labels - 1), min_size=1, unique=True))
            values = {(u, v): draw(scores) for u in before for v in own}
            candidates[-1].append(own)
            emissions[-1].append(values)
            flat += own
            sizes.append(len(own))
            pair += [values[u, v] for u in before for v in own]
            before = own
    offsets = np.cumsum([0, *lengths])
    trellis = trigram.trellis_of(offsets, np.cumsum([0, *sizes]), np.array(flat, np.int32))
    return Problem(trellis, np.array(pair), table, candidates, emissions)


@given(problems())
def test_log_partition_and_marginals(problem: Problem) -> None:
    log_z = trigram.log_partition(problem.trellis, problem.pair, problem.table)
    probabilities, again = trigram.marginals(problem.trellis, problem.pair, problem.table)
    assert np.array_equal(log_z, again)
    at = 0
    for scores, candidates, found in zip(problem.sentences(), problem.candidates, log_z, strict=True):
        expected = naive.log_partition(scores)
        assert found == expected or abs(found - expected) < TOLERANCE
        for t, own in enumerate(candidates):
            here = probabilities[at : at + len(own)]
            at += len(own)
            assert here == pytest.approx([naive.marginal(scores, t, label) for label in own], rel=0, abs=TOLERANCE)
            assert here.sum() == pytest.approx(float(expected > -math.inf), rel=0, abs=TOLERANCE)


@given(problems())
def test_viterbi(problem: Problem) -> None:
    labels, scores = trigram.viterbi(problem.trellis, problem.pair, problem.table)
    for every, (first, last), found in zip(problem.sentences(), problem.edges(), scores, strict=True):
        best = max(every.values())
        assert found == best or abs(found - best) < TOLERANCE
        claimed = every[tuple(labels[first:last].tolist())]  # also that every label is a candidate
        assert claimed == best or abs(claimed - best) < TOLERANCE


@given(problems(), st.integers(1, 5))
def test_nbest(problem: Problem, n: int) -> None:
    found = trigram.nbest(problem.trellis, problem.pair, problem.table, n)
    for every, rows in zip(problem.sentences(), found, strict=True):
        expected = naive.ranked(every)[:n]
        assert [score for score, _ in rows] == pytest.approx(expected, rel=0, abs=TOLERANCE)
        chosen = [tuple(labels.tolist()) for _, labels in rows]
        assert len(set(chosen)) == len(chosen)
        assert [every[labels] for labels in chosen] == pytest.approx(expected, rel=0, abs=TOLERANCE)


@given(problems())
def test_impossible_labellings_are_never_drawn(problem: Problem) -> None:
    n_tokens = len(problem.trellis.starts) - 1
    uniform = np.random.default_rng(1).random((3, n_tokens))
    uniform[0] = 0.0
    uniform[1] = np.nextafter(1.0, 0.0)
    drawn = trigram.sample(problem.trellis, problem.pair, problem.table, uniform)
    for every, (first, last) in zip(problem.sentences(), problem.edges(), strict=True):
        for labels in drawn[:, first:last].tolist():
            if max(every.values()) == -math.inf:
                assert labels == [-1] * len(labels)
            else:
                assert every[tuple(labels)] > -math.inf


def toy(n_labels: int = 2, lengths: tuple[int, ...] = (3, 2), seed: int = 5) -> Problem:
    """Every label at every token, two sentences."""
    rng = np.random.default_rng(seed)
    candidates = [[list(range(n_labels))] * length for length in lengths]
    emissions = []
    pair: list[float] = []
    for length in lengths:
        emissions.append([])
        for t in range(length):
            before = [n_labels] if t == 0 else list(range(n_labels))
            values = {(u, v): float(rng.normal()) for u in before for v in range(n_labels)}
            pair += values.values()
            emissions[-1].append(values)
    n = sum(lengths)
    trellis = trigram.trellis_of(
        np.cumsum([0, *lengths]), np.arange(n + 1) * n_labels, np.tile(np.arange(n_labels, dtype=np.int32), n)
    )
    return Problem(trellis, np.array(pair), rng.normal(size=(n_labels + 1,) * 3), candidates, emissions)


@pytest.mark.slow
def test_samples_have_the_probabilities_of_the_labellings() -> None:
    problem = toy()
    n = 20_000
    drawn = trigram.sample(problem.trellis, problem.pair, problem.table, np.random.default_rng(3).random((n, 5)))
    for every, (first, last) in zip(problem.sentences(), problem.edges(), strict=True):
        log_z = naive.log_partition(every)
        counts = Counter(map(tuple, drawn[:, first:last].tolist()))
        for labels, value in every.items():
            p = math.exp(value - log_z)
            # Five standard deviations; at most 12 comparisons, so that a sound sampler fails once in 150,000 seeds.
            assert abs(counts[labels] / n - p) < 5 * math.sqrt(p * (1 - p) / n)


def test_a_table_of_zeros_counts_labellings() -> None:
    problem = toy(n_labels=3, lengths=(4, 1))
    log_z = trigram.log_partition(problem.trellis, problem.pair * 0, problem.table * 0)
    assert np.exp(log_z) == pytest.approx([81, 3], rel=1e-12)


def test_a_constant_moves_log_z_and_nothing_else() -> None:
    problem = toy(n_labels=3, lengths=(4, 1))
    shifted = problem.pair + 700.0  # exp(700 * 4) is beyond float64: only a logarithm survives
    probabilities, log_z = trigram.marginals(problem.trellis, problem.pair, problem.table)
    same, higher = trigram.marginals(problem.trellis, shifted, problem.table)
    assert same == pytest.approx(probabilities, rel=0, abs=1e-9)
    assert higher - log_z == pytest.approx([2800, 700], rel=0, abs=1e-9)
    assert np.array_equal(
        trigram.viterbi(problem.trellis, problem.pair, problem.table)[0],
        trigram.viterbi(problem.trellis, shifted, problem.table)[0],
    )


def test_inputs_may_be_read_only_and_stay_as_they_are() -> None:
    problem = toy()
    pair, table = problem.pair.copy(), problem.table.copy()
    pair.flags.writeable = table.flags.writeable = False
    trigram.viterbi(problem.trellis, pair, table)
    trigram.marginals(problem.trellis, pair, table)
    assert np.array_equal(pair, problem.pair)
    assert np.array_equal(table, problem.table)


def test_no_sentences_at_all() -> None:
    trellis = trigram.trellis_of([0], [0], np.zeros(0, np.int32))
    labels, scores = trigram.viterbi(trellis, np.zeros(0), np.zeros((2, 2, 2)))
    assert len(labels) == len(scores) == 0


def test_the_door_refuses_what_the_kernels_trust() -> None:
    problem = toy()
    with pytest.raises(ValueError, match="16 pair scores were expected"):
        trigram.viterbi(problem.trellis, problem.pair[:-1], problem.table)
    with pytest.raises(ValueError, match="must be a cube"):
        trigram.viterbi(problem.trellis, problem.pair, problem.table[:2])
    with pytest.raises(ValueError, match="numbers from 0 to 0"):
        trigram.viterbi(problem.trellis, problem.pair, problem.table[:2, :2, :2])
    with pytest.raises(ValueError, match="at least one candidate"):
        trigram.trellis_of([0, 2], [0, 1, 1], np.zeros(1, np.int32))
    with pytest.raises(ValueError, match="n must be at least 1"):
        trigram.nbest(problem.trellis, problem.pair, problem.table, 0)
