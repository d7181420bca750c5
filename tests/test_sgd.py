"""SGD steps of the chain CRF against finite differences of the enumerated log-likelihood."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import chain as naive_chain
from naive import learners as naive
from problems import LearningProblem, random_problem

from duilian.inference.chain import runs_of
from duilian.training.sgd import Steps, blend, crf_steps

SINGLE = 2e-5
"""Absolute, per unit of weight and of gradient: float32 sums of a few terms, and finite differences."""


class Walk:
    """One walk over a problem: what the kernel made of copies of its weights."""

    def __init__(
        self, problem: LearningProblem, *, eta: float = 0.5, decay: float = 0.0, batch: int = 9, scale: float = 1.0,
        taken: int = 0, order: Any = None, rates: Any = None, table_rate: float = 1.0, gains: Any = (),
    ) -> None:  # fmt: skip
        self.weights = problem.table.weights.copy()
        self.trans, self.start, self.end = problem.trans.copy(), problem.start.copy(), problem.end.copy()
        self.steps = Steps(np.array([taken]), np.array([scale]), np.zeros(1, np.int64))
        order = np.arange(len(problem.sentences) - 1) if order is None else np.array(order)
        rates = np.ones(len(problem.table), np.float32) if rates is None else rates
        self.total = crf_steps(
            problem.table.sparse(self.weights), self.trans, self.start, self.end, problem.runs,
            runs_of((problem.trans > -np.inf).T), problem.features,
            problem.labels, problem.sets.data, problem.sets.offsets, problem.sentences, order.astype(np.int64), batch,
            self.steps, eta, decay, rates, table_rate, np.array(gains, np.float32),
        )  # fmt: skip
        self.after = _scaled(problem.naive_weights(*self.parts()), float(self.steps.scale[0]))

    def parts(self) -> tuple[Any, Any, Any, Any]:
        return self.weights, self.trans, self.start, self.end


def _scaled(weights: naive.Weights, scale: float) -> naive.Weights:
    return {name: weight * scale for name, weight in weights.items()}


def before(problem: LearningProblem, scale: float = 1.0) -> naive.Weights:
    return _scaled(problem.naive_weights(problem.table.weights, problem.trans, problem.start, problem.end), scale)


def possible(problem: LearningProblem, weights: naive.Weights) -> list[naive.Sentence]:
    """The sentences that have units, and a labelling among those they allow."""
    return [
        sentence
        for sentence in problem.naive_sentences()
        if sentence.rows and naive.all_scores(sentence, weights, problem.n_labels, constrained=True)
    ]


def assert_close(found: naive.Weights, expected: naive.Weights, tolerance: float = SINGLE) -> None:
    assert set(found) == set(expected)
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, rel=tolerance, abs=tolerance), name


@given(
    st.integers(0, 10**6),
    st.integers(1, 3),
    st.sampled_from([0.0, 0.1, 0.7]),
    st.sampled_from([0.0, 0.0, 0.3]),
    st.sampled_from([0.0, 0.5, 1.0]),
    st.sampled_from([1.0, 0.25]),
)
def test_one_step_goes_along_the_gradient(
    seed: int, n_labels: int, decay: float, holes: float, known: float, scale: float
) -> None:
    """All sentences in one batch: w + eta times the gradient of the log-likelihood with its L2 term."""
    problem = random_problem(seed, n_labels=n_labels, holes=holes, known=known)
    eta, taken = 0.5, 7
    start = before(problem, scale)
    sentences = possible(problem, start)
    walk = Walk(problem, eta=eta, decay=decay, scale=scale, taken=taken)
    rate = eta / (1 + eta * decay * taken)
    slopes = naive.gradient(sentences, start, n_labels, decay)
    assert_close(walk.after, {name: start[name] + rate * slopes[name] for name in start})
    expected = sum(naive.log_likelihood(sentence, start, n_labels) for sentence in sentences)
    assert walk.total == pytest.approx(expected, rel=SINGLE, abs=10 * SINGLE)
    assert int(walk.steps.taken[0]) == taken + 1


@given(st.integers(0, 10**6), st.integers(1, 3))
def test_rates_scale_the_step_of_each_row_and_of_the_tables(seed: int, n_labels: int) -> None:
    problem = random_problem(seed, n_labels=n_labels)
    rates = np.random.default_rng(seed).uniform(0.1, 1, len(problem.table)).astype(np.float32)
    eta, decay, table_rate = 0.5, 0.2, 0.3
    start = before(problem)
    slopes = naive.gradient(possible(problem, start), start, n_labels, 0.0)
    walk = Walk(problem, eta=eta, decay=decay, rates=rates, table_rate=table_rate)
    expected = {}
    for name, weight in start.items():
        own = float(rates[int(name[1])]) if name[0] == "row" else table_rate
        expected[name] = (1 - eta * decay) * weight + eta * own * slopes[name]
    assert_close(walk.after, expected)


@given(st.integers(0, 10**6), st.integers(1, 3), st.sampled_from([0.0, 0.5, 1.0]))
def test_a_sentence_counts_as_much_as_its_gain(seed: int, n_labels: int, known: float) -> None:
    """The objective is the sum of log-likelihoods times gains; the L2 term is what it was."""
    problem = random_problem(seed, n_labels=n_labels, known=known)
    gains = np.random.default_rng(seed).choice([0.0, 0.25, 1.0, 2.0], len(problem.sentences) - 1).astype(np.float32)
    eta, decay, start = 0.5, 0.2, before(problem)
    walk = Walk(problem, eta=eta, decay=decay, gains=gains)
    expected = {name: (1 - eta * decay) * weight for name, weight in start.items()}
    total = 0.0
    for sentence, gain in zip(problem.naive_sentences(), gains.tolist(), strict=True):
        if sentence.rows and naive.all_scores(sentence, start, n_labels, constrained=True):
            total += gain * naive.log_likelihood(sentence, start, n_labels)
            for name, slope in naive.gradient([sentence], start, n_labels, 0.0).items():
                expected[name] += eta * gain * slope
    assert_close(walk.after, expected)
    assert walk.total == pytest.approx(total, rel=SINGLE, abs=10 * SINGLE)
    even = Walk(problem, eta=eta, decay=decay, gains=np.ones(len(gains)))
    plain = Walk(problem, eta=eta, decay=decay)
    for one, other in zip(even.parts(), plain.parts(), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("batch", [1, 2, 3])
def test_batches_are_steps_one_after_the_other(batch: int) -> None:
    problem = random_problem(11, lengths=(2, 1, 3, 0, 2), known=0.7)
    order, eta, decay = [4, 0, 2, 3, 1], 0.3, 0.2
    sentences = problem.naive_sentences()
    weights = before(problem)
    total = 0.0
    for taken, at in enumerate(range(0, len(order), batch)):
        rate = eta / (1 + eta * decay * taken)
        some = [sentences[k] for k in order[at : at + batch] if sentences[k].rows]
        total += sum(naive.log_likelihood(sentence, weights, problem.n_labels) for sentence in some)
        slopes = naive.gradient(some, weights, problem.n_labels, decay)
        weights = {name: weight + rate * slopes[name] for name, weight in weights.items()}
    walk = Walk(problem, order=order, batch=batch, eta=eta, decay=decay)
    assert_close(walk.after, weights, 5 * SINGLE)
    assert walk.total == pytest.approx(total, rel=SINGLE, abs=10 * SINGLE)


def test_a_rate_of_zero_measures_without_learning() -> None:
    problem = random_problem(3)
    walk = Walk(problem, eta=0.0, decay=0.5, batch=2)
    for found, given_ in zip(
        walk.parts(), (problem.table.weights, problem.trans, problem.start, problem.end), strict=True
    ):
        np.testing.assert_array_equal(found, given_)
    start = before(problem)
    expected = sum(naive.log_likelihood(one, start, problem.n_labels) for one in possible(problem, start))
    assert walk.total == pytest.approx(expected, rel=SINGLE, abs=SINGLE)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("spread", "table_spread"), [(60.0, 1.0), (1.0, 100.0), (200.0, 1.0), (30.0, 30.0)])
def test_weights_beyond_float32_are_still_right(seed: int, spread: float, table_spread: float) -> None:
    """Exponentials overflow or vanish: the careful way in float64 takes over, or the fast one is right."""
    problem = random_problem(seed, spread=spread, table_spread=table_spread, known=0.6)
    start = before(problem)
    sentences = possible(problem, start)
    walk = Walk(problem, eta=1.0)
    slopes = naive.gradient(sentences, start, problem.n_labels, 0.0)
    for name, weight in start.items():
        assert walk.after[name] - weight == pytest.approx(slopes[name], abs=1e-3), name
    assert int(walk.steps.skipped[0]) == 0
    expected = sum(naive.log_likelihood(sentence, start, problem.n_labels) for sentence in sentences)
    assert walk.total == pytest.approx(expected, rel=1e-4, abs=1e-2)


def impossible_sentence(known: bool) -> LearningProblem:
    """Two sentences; the labels given to the first are forbidden by the grammar, with one label each or with sets."""
    problem = random_problem(5, lengths=(2, 3), known=1.0)
    trans = problem.trans.copy()
    trans[0, 1] = -np.inf
    labels = problem.labels.copy()
    labels[:2] = [0, 1] if known else [-2, -3]
    sets = type(problem.sets).from_rows([[0], [1]], np.int32)
    labels[2:] = 2
    return LearningProblem(
        problem.rows, labels, sets, problem.sentences, problem.table, trans, problem.start, problem.end
    )


@pytest.mark.parametrize("known", [True, False])
def test_a_sentence_whose_labels_are_impossible_changes_nothing(known: bool) -> None:
    problem = impossible_sentence(known)
    start = before(problem)
    assert len(possible(problem, start)) == 1
    both, second = Walk(problem), Walk(problem, order=[1])
    assert both.after == second.after
    assert both.total == pytest.approx(second.total, abs=1e-9)
    assert np.isfinite(both.total)


def test_a_runaway_sentence_is_counted_and_changes_nothing() -> None:
    problem = random_problem(5, lengths=(2, 3), known=1.0)
    only = set(problem.rows[0].tolist()) - {row for unit in range(2, 5) for row in problem.rows[unit].tolist()}
    assert only, "the seed must give the first sentence a row of its own"
    weights = problem.table.weights.copy()
    for row in only:
        weights[problem.table.offsets[row] : problem.table.offsets[row + 1]] = np.inf
    problem.table.weights[:] = weights
    both, second = Walk(problem), Walk(problem, order=[1])
    np.testing.assert_array_equal(both.trans, second.trans)
    assert int(both.steps.skipped[0]) == 1
    assert both.total == second.total


def test_many_small_steps_climb() -> None:
    problem = random_problem(21, lengths=(3, 2, 3), known=0.8)
    totals = []
    for _ in range(12):
        walk = Walk(problem, eta=0.2, batch=1)
        totals.append(walk.total)
        problem = LearningProblem(
            problem.rows, problem.labels, problem.sets, problem.sentences,
            type(problem.table)(3, problem.table.offsets, problem.table.labels, walk.weights),
            walk.trans, walk.start, walk.end,
        )  # fmt: skip
    assert totals[-1] > totals[0] + 1
    assert all(late > early - 0.05 for early, late in itertools.pairwise(totals))


def test_unlabelled_sentences_teach_nothing() -> None:
    problem = random_problem(2, lengths=(3, 2))
    blank = LearningProblem(
        problem.rows, np.full_like(problem.labels, -1), problem.sets, problem.sentences, problem.table,
        problem.trans, problem.start, problem.end,
    )  # fmt: skip
    walk = Walk(blank)
    assert walk.total == pytest.approx(0, abs=SINGLE)
    assert_close(walk.after, before(blank))


def test_blend_is_a_running_average_that_keeps_minus_infinity() -> None:
    rng = np.random.default_rng(1)
    mean = np.zeros(4)
    history = []
    for n in range(1, 6):
        weights = rng.normal(size=4).astype(np.float32)
        weights[2] = -np.inf
        scale = 0.5 + n / 8
        blend(mean, weights, scale, 1 / n)
        history.append(scale * weights.astype(np.float64))
    np.testing.assert_allclose(mean[[0, 1, 3]], np.mean(history, axis=0)[[0, 1, 3]], rtol=1e-6)
    assert mean[2] == -np.inf


def test_the_twin_knows_a_hand_computed_case() -> None:
    """One unit, two labels, no weights: log(1/2), and a gradient of +1/2 and -1/2."""
    sentence = naive.Sentence(((0,),), ((1,),))
    weights: naive.Weights = {("row", 0, k): 0.0 for k in (0, 1)} | {
        (w, k): 0.0 for w in ("start", "end") for k in (0, 1)
    }
    assert naive.log_likelihood(sentence, weights, 2) == pytest.approx(np.log(0.5))
    slopes = naive.gradient([sentence], weights, 2, 0.0)
    assert slopes["row", 0, 1] == pytest.approx(0.5, abs=1e-8)
    assert slopes["end", 0] == pytest.approx(-0.5, abs=1e-8)
    assert naive_chain.log_sum([]) == -np.inf
