"""Perceptron and PA-I against dictionaries and enumeration: one step, a pass, the average; partial labels."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import chain as naive_chain
from naive import learners as naive
from problems import LearningProblem, random_problem
from strategies import ChainProblem, chain_problems

from duilian.inference import chain
from duilian.ragged import Ragged
from duilian.training.online import online_pass, squared_norm

SINGLE = 1e-4
"""Absolute on weights of a few units, after steps computed in float32."""


class Pass:
    """One pass over a problem, on copies of its weights."""

    def __init__(
        self, problem: LearningProblem, c: float = 0.0, by_errors: bool = False, order: Any = None, now: int = 1,
        gains: Any = (),
    ) -> None:  # fmt: skip
        self.weights = problem.table.weights.copy()
        self.sums = np.zeros_like(self.weights)
        self.table = np.concatenate([problem.trans.reshape(-1), problem.start, problem.end])
        self.table_sums = np.zeros_like(self.table)
        order = np.arange(len(problem.sentences) - 1) if order is None else np.array(order)
        self.wrong = online_pass(
            problem.table.sparse(self.weights), self.sums, self.table, self.table_sums, problem.runs, problem.features,
            problem.labels, problem.sets.data, problem.sets.offsets, problem.sentences, order.astype(np.int64), now, c,
            by_errors, np.array(gains, np.float32),
        )  # fmt: skip
        self.after = self._named(problem, self.weights, self.table)
        n = np.float32(now + len(order))
        table = np.where(self.table > -np.inf, self.table - self.table_sums / n, self.table)
        self.average = self._named(problem, self.weights - self.sums / n, table)

    @staticmethod
    def _named(problem: LearningProblem, weights: Any, table: Any) -> naive.Weights:
        size = problem.n_labels
        cut = size * size
        return problem.naive_weights(
            weights, table[:cut].reshape(size, size), table[cut : cut + size], table[cut + size :]
        )


def before(problem: LearningProblem) -> naive.Weights:
    return problem.naive_weights(problem.table.weights, problem.trans, problem.start, problem.end)


def assert_close(found: naive.Weights, expected: naive.Weights, tolerance: float) -> None:
    assert set(found) == set(expected)
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, abs=tolerance), name


@given(
    st.integers(0, 10**6), st.integers(1, 3), st.sampled_from([0.0, 0.3]), st.sampled_from([0.0, 0.6, 1.0])
)  # fmt: skip
def test_a_pass_of_the_perceptron(seed: int, n_labels: int, holes: float, known: float) -> None:
    """Whole numbers: ties are broken the same way and every sum is exact."""
    problem = random_problem(seed, n_labels=n_labels, holes=holes, known=known, whole=True, lengths=(3, 0, 1, 2, 3))
    order = [4, 2, 1, 0, 3]
    sentences = problem.naive_sentences()
    weights = before(problem)
    history = [weights]
    for k in order:
        change: Counter[naive.Parameter] = Counter()
        if sentences[k].rows:
            change = naive.perceptron_update(sentences[k], weights, n_labels)
        weights = naive.step(weights, change)
        history.append(weights)
    found = Pass(problem, order=order)
    assert found.after == weights
    assert_close(found.average, naive.average(history), 1e-5)


@given(
    st.integers(0, 10**6),
    st.integers(1, 3),
    st.sampled_from([0.0, 0.3]),
    st.sampled_from([0.0, 0.6, 1.0]),
    st.sampled_from([0.01, 0.3, 10.0]),
    st.booleans(),
)
def test_a_pass_of_pa(seed: int, n_labels: int, holes: float, known: float, c: float, by_errors: bool) -> None:
    problem = random_problem(seed, n_labels=n_labels, holes=holes, known=known, lengths=(3, 0, 1, 2))
    order = [2, 1, 0, 3]
    sentences = problem.naive_sentences()
    weights = before(problem)
    history = [weights]
    for k in order:
        if sentences[k].rows:
            mistake = naive.pa_mistake(sentences[k], weights, n_labels, by_errors)
            weights = naive.step(weights, mistake.change, mistake.tau(c))
        history.append(weights)
    found = Pass(problem, c, by_errors, order=order)
    assert_close(found.after, weights, SINGLE)
    assert_close(found.average, naive.average(history), SINGLE)


@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.3, 10.0]), st.sampled_from([0.0, 0.6, 1.0]))
def test_sentences_that_count_more_or_less(seed: int, c: float, known: float) -> None:
    """A perceptron's step is as long as the sentence counts; PA minimises |w' - w|^2 / 2 + gain C loss."""
    problem = random_problem(seed, known=known, whole=c == 0, lengths=(3, 0, 1, 2))
    order, gains = [2, 1, 0, 3], [0.5, 1.0, 0.25, 2.0]
    sentences = problem.naive_sentences()
    weights = before(problem)
    history = [weights]
    for k in order:
        if sentences[k].rows and c > 0:
            mistake = naive.pa_mistake(sentences[k], weights, problem.n_labels, False)
            weights = naive.step(weights, mistake.change, mistake.tau(gains[k] * c))
        elif sentences[k].rows:
            weights = naive.step(weights, naive.perceptron_update(sentences[k], weights, problem.n_labels), gains[k])
        history.append(weights)
    found = Pass(problem, c, order=order, gains=gains)
    assert_close(found.after, weights, SINGLE)
    assert_close(found.average, naive.average(history), SINGLE)
    assert Pass(problem, c, gains=[1.0] * 4).after == Pass(problem, c).after


@given(st.integers(0, 10**6), st.sampled_from([0.01, 0.3, 10.0]))
def test_the_step_of_pa_minimises_its_objective(seed: int, c: float) -> None:
    """Against a search over all lengths of the step: the twin's closed form is right."""
    problem = random_problem(seed, lengths=(3,), known=0.7)
    (sentence,) = problem.naive_sentences()
    mistake = naive.pa_mistake(sentence, before(problem), problem.n_labels, by_errors=False)
    least = min(mistake.objective(tau, c) for tau in np.linspace(0, c, 2001))
    assert mistake.objective(mistake.tau(c), c) <= least + 1e-12


def test_a_step_of_pa_reaches_the_margin_or_is_as_long_as_allowed() -> None:
    reached = bounded = 0
    for seed in range(12):
        problem = random_problem(seed, lengths=(3,), known=1.0)
        (sentence,) = problem.naive_sentences()
        mistake = naive.pa_mistake(sentence, before(problem), problem.n_labels, by_errors=False)
        if not mistake.change:
            continue
        for c in (0.01, 1e6):
            after = Pass(problem, c).after
            margin = naive.value(after, mistake.change)
            if mistake.loss / mistake.norm <= c:
                assert margin == pytest.approx(1, abs=SINGLE)
                reached += 1
            else:
                assert margin < 1
                bounded += 1
    assert reached
    assert bounded


@pytest.mark.parametrize("c", [0.0, 0.1])
def test_unlabelled_sentences_change_nothing(c: float) -> None:
    problem = random_problem(8)
    blank = LearningProblem(
        problem.rows, np.full_like(problem.labels, -1), problem.sets, problem.sentences, problem.table,
        problem.trans, problem.start, problem.end,
    )  # fmt: skip
    assert Pass(blank, c).after == before(problem)


@pytest.mark.parametrize("c", [0.0, 0.1])
@pytest.mark.parametrize("known", [True, False])
def test_labels_that_are_impossible_change_nothing(c: float, known: bool) -> None:
    problem = random_problem(8, lengths=(2,))
    trans = problem.trans.copy()
    trans[0, 1] = -np.inf
    labels = np.array([0, 1] if known else [-2, -3], np.int32)
    stuck = LearningProblem(
        problem.rows, labels, Ragged.from_rows([[0], [1]], np.int32), problem.sentences, problem.table, trans,
        problem.start, problem.end,
    )  # fmt: skip
    assert Pass(stuck, c).after == before(stuck)


@pytest.mark.parametrize("c", [0.0, 0.1])
def test_sets_of_one_label_are_labels(c: float) -> None:
    problem = random_problem(13, known=1.0)
    sets = Ragged.from_rows([[k] for k in range(problem.n_labels)], np.int32)
    same = LearningProblem(
        problem.rows, (-2 - problem.labels).astype(np.int32), sets, problem.sentences, problem.table, problem.trans,
        problem.start, problem.end,
    )  # fmt: skip
    assert Pass(problem, c).after == Pass(same, c).after
    assert Pass(problem, c).after != before(problem)


def test_the_number_of_wrong_units_is_returned() -> None:
    problem = random_problem(9, lengths=(3, 2), known=1.0, whole=True)
    sentences = problem.naive_sentences()
    expected = 0
    weights = before(problem)
    for sentence in sentences:
        pred = naive_chain.best(naive.all_scores(sentence, weights, problem.n_labels))
        expected += sum(label not in fine for label, fine in zip(pred, sentence.allowed, strict=True))
        weights = naive.step(weights, naive.perceptron_update(sentence, weights, problem.n_labels))
    assert expected > 0
    assert Pass(problem).wrong == expected


@given(chain_problems(), st.booleans())
def test_best_wrong(problem: ChainProblem, single: bool) -> None:
    """The best labelling that some unit does not allow, with one gold label at each unit or with sets."""
    runs = chain.runs_of(problem.trans > -np.inf)
    sets = Ragged.from_rows(problem.sets, np.int32)
    for first, last in problem.edges():
        n = last - first
        if n == 0:
            continue
        node = problem.node[first:last]
        held = node.copy()
        held[~np.isfinite(held)] = 0
        scores = problem.scores(first, last)
        gold = np.maximum(problem.labels[first:last], 0)
        if single:
            held, fine = held[:0], [[label] for label in gold.tolist()]
        else:
            chain.constrain(held, first, last, problem.labels, sets.data, sets.offsets)
            fine = problem.allowed(first, last)
        best, rest, path = np.empty_like(node), np.empty_like(node), np.empty(n, np.int32)
        high = chain.best_wrong(node, n, problem.trans, problem.start, problem.end, runs, gold, held, best, rest, path)
        expected = naive_chain.best_wrong(scores, fine)
        assert high == pytest.approx(expected, rel=1e-5, abs=1e-4)
        if expected > -np.inf:
            labels = tuple(path.tolist())
            assert scores[labels] == pytest.approx(expected, rel=1e-5, abs=1e-4)
            assert any(label not in one for label, one in zip(labels, fine, strict=True))


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from([-1, 1])), max_size=12))
def test_squared_norm_adds_up_what_repeats(items: list[tuple[int, int]]) -> None:
    total: Counter[int] = Counter()
    for number, sign in items:
        total[number] += sign
    numbers = np.array([number for number, _ in items] + [99], np.int64)
    signs = np.array([sign for _, sign in items] + [1], np.int8)
    assert squared_norm(numbers, signs, len(items)) == sum(value * value for value in total.values())
