"""Expanded scores against enumeration: best paths, best right and wrong paths, escapes, one step and a pass of PA."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import expansion as naive
from problems import LearningProblem, random_problem

from duilian.inference import expansion
from duilian.lifting import grammar_of
from duilian.training import multitask as training

SINGLE = 2e-4
"""Absolute, on scores and weights of a few units in float32."""


@dataclass(frozen=True, eq=False)
class Two:
    """Two sides over the same units: features, weights, grammar of each; pairs of labels with none where needed."""

    own: LearningProblem
    other: LearningProblem
    pairs: Any
    help: float = 1.0

    @property
    def links(self) -> expansion.Links:
        return expansion.links_of(self.pairs, self.own.trans > -np.inf, self.other.trans > -np.inf)

    @property
    def phi(self) -> naive.Phi:
        m = self.other.n_labels
        found: dict[int, list[int | None]] = {}
        for own, other in self.pairs.tolist():
            found.setdefault(own, []).append(None if other == m else other)
        return found

    def weights(self, which: LearningProblem) -> naive.Weights:
        return which.naive_weights(which.table.weights, which.trans, which.start, which.end)

    def task(self, sentence: int = 0) -> naive.Task:
        mine, theirs = self.own.naive_sentences()[sentence], self.other.naive_sentences()[sentence]
        return naive.Task(
            mine.rows, theirs.rows, mine.allowed, self.weights(self.own), self.weights(self.other),
            self.own.n_labels, self.phi, self.help,
        )  # fmt: skip


def two_sides(
    seed: int, lengths: tuple[int, ...] = (3,), holes: float = 0.3, known: float = 1.0, help: float = 1.0
) -> Two:
    rng = np.random.default_rng(seed)
    own = random_problem(seed, lengths=lengths, n_labels=3, holes=holes, known=known)
    other = random_problem(seed + 1, lengths=lengths, n_labels=2, holes=holes)
    table = rng.random((3, 3)) < 0.6
    table[~table.any(axis=1), 2] = True
    return Two(own, other, np.argwhere(table), help)


def nodes(problem: LearningProblem, none: bool) -> Any:
    from duilian.models.weights import score

    n = int(problem.sentences[-1])
    node = np.zeros((n, problem.n_labels), np.float32)
    score(problem.table.sparse(problem.table.weights), problem.features, 0, n, np.float32(1), node)
    return np.concatenate([node, np.zeros((n, 1), np.float32)], axis=1) if none else node


def tables(problem: LearningProblem) -> expansion.Tables:
    return expansion.tables_of(problem.trans, problem.start, problem.end)


def steps(links: expansion.Links, own: expansion.Tables, other: expansion.Tables) -> expansion.Steps:
    found = expansion.room_for_steps(links)
    expansion.fill_steps(links, own, other, found)
    return found


SEEDS = st.integers(0, 10**6)


@given(SEEDS, st.integers(1, 3), st.sampled_from([0.0, 0.3, 0.6]))
def test_the_best_path_with_its_expansion(seed: int, n: int, holes: float) -> None:
    two = two_sides(seed, (n,), holes)
    links, k = two.links, len(two.pairs)
    path, other_path = np.full(n, -1, np.int32), np.full(n, -1, np.int32)
    both = tables(two.own), tables(two.other)
    score = expansion.best_pairs(
        nodes(two.own, False), nodes(two.other, True), n, links, *both, steps(links, *both),
        np.empty((n, k), np.float32), path, other_path,
    )  # fmt: skip
    scores = two.task().scores()
    if not scores:
        assert score == -np.inf
        return
    assert score == pytest.approx(max(scores.values()), abs=SINGLE)
    found = tuple(path.tolist()), tuple(None if z == 2 else z for z in other_path.tolist())
    assert scores[found] == pytest.approx(max(scores.values()), abs=SINGLE)


@given(SEEDS, st.integers(1, 3), st.sampled_from([0.0, 0.3]), st.sampled_from([0.0, 0.5, 1.0]))
def test_the_best_right_and_the_best_wrong_path(seed: int, n: int, holes: float, known: float) -> None:
    two = two_sides(seed, (n,), holes, known)
    links, k, task = two.links, len(two.pairs), two.task()
    fine = np.zeros((n, 3), np.bool_)
    for t, labels in enumerate(task.allowed):
        fine[t, list(labels)] = True
    paths = [np.full(n, -1, np.int32) for _ in range(4)]
    room = [np.empty((n, k), np.float32), np.empty((n, k), np.float32), np.empty(k, np.float32)]
    both = tables(two.own), tables(two.other)
    goal, high = expansion.best_right_and_wrong(
        nodes(two.own, False), nodes(two.other, True), n, links, *both, steps(links, *both), fine, *room, *paths,
    )  # fmt: skip
    scores = task.scores()
    for right, score, own, other in ((True, goal, *paths[:2]), (False, high, *paths[2:])):
        best = task.best(right)
        if best is None:
            assert score == -np.inf
            continue
        assert score == pytest.approx(best[1], abs=SINGLE)
        found = tuple(own.tolist()), tuple(None if z == 2 else z for z in other.tolist())
        assert task.is_right(found[0]) == right
        assert scores[found] == pytest.approx(best[1], abs=SINGLE)


def test_many_right_labels_take_the_other_road() -> None:
    """More than four right labels at a unit: the whole step is taken twice instead of a few single ones."""
    rng = np.random.default_rng(5)
    n, size = 3, 7
    node = rng.normal(size=(n, size)).astype(np.float32)
    other = np.concatenate([rng.normal(size=(n, 2)), np.zeros((n, 1))], axis=1).astype(np.float32)
    pairs = np.argwhere(np.ones((size, 3), np.bool_))
    links = expansion.links_of(pairs, np.ones((size, size), np.bool_), np.ones((2, 2), np.bool_))
    one = expansion.tables_of(rng.normal(size=(size, size)), rng.normal(size=size), rng.normal(size=size))
    two = expansion.tables_of(rng.normal(size=(2, 2)), rng.normal(size=2), rng.normal(size=2))
    fine = rng.random((n, size)) < 0.8
    fine[:, :5] = True
    k = len(pairs)
    paths = [np.empty(n, np.int32) for _ in range(4)]
    goal, high = expansion.best_right_and_wrong(
        node, other, n, links, one, two, steps(links, one, two), fine, np.empty((n, k), np.float32),
        np.empty((n, k), np.float32), np.empty(k, np.float32), *paths,
    )  # fmt: skip
    best = {True: -np.inf, False: -np.inf}
    for labels in itertools.product(range(size), repeat=n):
        right = all(fine[t, label] for t, label in enumerate(labels))
        for z in itertools.product(range(3), repeat=n):
            score = one.start[labels[0]] + two.start[z[0]] + one.end[labels[-1]] + two.end[z[-1]]
            score += sum(node[t, y] + other[t, w] for t, (y, w) in enumerate(zip(labels, z, strict=True)))
            score += sum(one.trans[a, b] for a, b in itertools.pairwise(labels))
            score += sum(two.trans[a, b] for a, b in itertools.pairwise(z))
            best[right] = max(best[right], score)
    assert goal == pytest.approx(best[True], abs=SINGLE)
    assert high == pytest.approx(best[False], abs=SINGLE)


# Escapes ------------------------------------------------------------------------------------------------------------


@given(SEEDS, st.integers(1, 4), st.integers(1, 3), st.sampled_from([0.2, 0.5, 0.9]))
def test_with_escapes_every_label_sequence_has_an_expansion(seed: int, n: int, m: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    rules, others = [
        (rng.random(size) < 0.7, rng.random(size) < 0.7, rng.random((size, size)) < 0.6) for size in (n, m)
    ]
    pairs = np.argwhere(rng.random((n, m)) < share)
    found = expansion.with_escapes(pairs, rules, others)
    assert {tuple(row) for row in pairs.tolist()} <= {tuple(row) for row in found.tolist()}
    phi: dict[int, list[int]] = {y: [] for y in range(n)}
    for y, z in found.tolist():
        phi[y].append(z)

    def may(table: Any, *place: int) -> bool:
        return any(z == m for z in place) or bool(table[place])

    for length in (1, 2, 3):
        for y in itertools.product(range(n), repeat=length):
            legal = rules[0][y[0]] and rules[1][y[-1]] and all(rules[2][a, b] for a, b in itertools.pairwise(y))
            if legal:
                assert any(
                    may(others[0], z[0]) and may(others[1], z[-1])
                    and all(may(others[2], a, b) for a, b in itertools.pairwise(z))
                    for z in itertools.product(*(phi[label] for label in y))
                ), y  # fmt: skip


def test_no_escape_where_none_is_needed() -> None:
    names = tuple(f"{p}@{t}" for p in "BEIS" for t in ("a", "b"))
    rules = grammar_of(names, "segpos")
    one = rules.starts, rules.ends, rules.follows
    same = np.array([(k, k) for k in range(len(names))])
    assert expansion.with_escapes(same, one, one).tolist() == same.tolist()
    # Without I@a on the other side, words of three that are tagged a have no way on.
    fewer = same[[k for k, name in enumerate(names) if name != "I@a"]]
    found = expansion.with_escapes(fewer, one, one)
    none = {names[y] for y, z in found.tolist() if z == len(names)}
    assert none == {"I@a"}


def test_links_want_a_pair_for_every_label() -> None:
    with pytest.raises(ValueError, match="every label needs a pair"):
        expansion.links_of([(0, 0)], np.ones((2, 2), np.bool_), np.ones((1, 1), np.bool_))
    with pytest.raises(ValueError, match="every label needs a pair"):
        expansion.links_of([(0, 2)], np.ones((1, 1), np.bool_), np.ones((1, 1), np.bool_))


# A step of PA -------------------------------------------------------------------------------------------------------


class Pass:
    """One pass over a problem of one side, on copies of all weights."""

    def __init__(self, two: Two, c: float, by_errors: bool = False, one_way: bool = False, home: int = 0) -> None:
        sides = (two.own, two.other) if home == 0 else (two.other, two.own)
        self.numbers = [self._numbers(side) for side in sides]
        longest = int(np.diff(two.own.sentences).max(initial=1))
        nothing = expansion.tables_of(np.zeros((0, 0)), np.zeros(0), np.zeros(0))
        m = 0 if one_way and home == 1 else two.other.n_labels
        links = two.links
        if m == 0:
            n = two.own.n_labels
            alone = np.stack([np.arange(n), np.zeros(n, np.int64)], axis=1)
            links = expansion.links_of(alone, two.own.trans > -np.inf, np.zeros((0, 0), np.bool_))
        room = training.room_for(longest, two.own.n_labels, m, links)
        n_sentences = len(two.own.sentences) - 1
        sets = two.own.sets.data.astype(np.int32), two.own.sets.offsets
        self.wrong = training.expanded_pass(
            *self.numbers, links, links, nothing, one_way, sides[0].features, sides[1].features, two.own.labels, sets,
            two.own.labels, sets, two.own.sentences, np.full(n_sentences, home, np.int8), room, room, 1,
            np.float32(two.help), c, by_errors,
        )  # fmt: skip
        self.own, self.other = [self._named(side, one) for side, one in zip(sides, self.numbers, strict=True)][
            :: 1 - 2 * home
        ]

    @staticmethod
    def _numbers(problem: LearningProblem) -> training.Numbers:
        weights, wide = problem.table.weights.copy(), tables(problem)
        flat = np.concatenate([wide.trans.reshape(-1), wide.start, wide.end])
        sparse = problem.table.sparse(weights)
        return training.Numbers(
            sparse, np.zeros_like(weights), flat, np.zeros_like(flat), expansion.tables_over(flat, wide.turned.copy())
        )

    @staticmethod
    def _named(problem: LearningProblem, numbers: training.Numbers) -> naive.Weights:
        n = problem.n_labels
        size = n + 1
        trans = numbers.table[: size * size].reshape(size, size)
        np.testing.assert_array_equal(trans.T, numbers.views.turned)
        assert not trans[n].any()
        assert not trans[:, n].any()
        start, end = numbers.table[size * size :].reshape(2, size)
        return problem.naive_weights(numbers.sparse.weights, trans[:n, :n], start[:n], end[:n])


def margin(task: naive.Task, gold: Any, wrong: Any) -> float:
    total = 0.0
    for k, (rows, weights) in enumerate(((task.rows, task.own), (task.other_rows, task.other))):
        factor = task.help if k else 1.0
        for path, sign in ((gold, 1), (wrong, -1)):
            total += factor * sign * naive.value(weights, naive.features(rows, path[k]))
    return total


def assert_close(found: naive.Weights, expected: naive.Weights) -> None:
    assert set(found) == set(expected)
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, abs=SINGLE), name


@given(
    SEEDS, st.sampled_from([0.01, 0.3, 10.0]), st.booleans(), st.sampled_from([0.5, 1.0]), st.sampled_from([0, 1]),
    st.sampled_from([0.4, 1.0]),
)  # fmt: skip
def test_a_step_is_the_one_of_the_definition(
    seed: int, c: float, by_errors: bool, known: float, home: int, help: float
) -> None:
    two = two_sides(seed, known=known, help=help)
    task = two.task()
    found = Pass(two, c, by_errors, home=home)
    gold, wrong = task.best(True), task.best(False)
    own, other = task.own, task.other
    if gold is not None and wrong is not None:
        asked = task.n_wrong(wrong[0][0]) if by_errors else 1
        loss = asked - (gold[1] - wrong[1])
        e = task.change(gold[0], wrong[0])
        if loss > 0 and naive.norm(e) > 0:
            tau = min(c, loss / naive.norm(e))
            own, other = naive.move(own, e[0], tau), naive.move(other, e[1], tau)
    assert_close(found.own, own)
    assert_close(found.other, other)


@given(SEEDS, st.sampled_from([0.01, 0.1, 0.3, 10.0]), st.sampled_from([0.4, 1.0]))
def test_the_step_solves_its_quadratic_program(seed: int, c: float, help: float) -> None:
    """Eq. 14: the change of all weights is the solution of the program, found without the closed form of tau."""
    two = two_sides(seed, help=help)
    task = two.task()
    gold, wrong = task.best(True), task.best(False)
    if gold is None or wrong is None:
        return
    e = task.change(gold[0], wrong[0])
    loss = max(0.0, 1 - (gold[1] - wrong[1]))
    names = [(k, name) for k in (0, 1) for name in e[k]]
    step, _ = naive.quadratic_program([e[k][name] for k, name in names], loss, c)
    found = Pass(two, c)
    after = (found.own, found.other)
    for (k, name), moved in zip(names, step, strict=True):
        before = (task.own, task.other)[k][name]
        assert after[k][name] - before == pytest.approx(moved, abs=SINGLE)


def test_a_step_leaves_the_margin_at_one_with_the_expansions_held_fixed() -> None:
    """Eq. 14, unless C cuts the step short; both cases occur, and steps that change the other side's weights."""
    reached = bounded = crossed = 0
    for seed in range(60):
        two = two_sides(seed, help=1.0 if seed % 2 else 0.5)
        task = two.task()
        gold, wrong = task.best(True), task.best(False)
        if gold is None or wrong is None or gold[1] - wrong[1] >= 1:
            continue
        e = task.change(gold[0], wrong[0])
        if naive.norm(e) == 0:
            continue
        for c in (0.01, 1e6):
            found = Pass(two, c)
            now = replace(task, own=found.own, other=found.other)
            left = margin(now, gold[0], wrong[0])
            if (1 - (gold[1] - wrong[1])) / naive.norm(e) <= c:
                assert left == pytest.approx(1, abs=1e-3)
                reached += 1
                crossed += bool(e[1])
            else:
                assert left < 1
                bounded += 1
    assert min(reached, bounded, crossed) > 5


@given(SEEDS)
def test_one_way_sentences_of_the_second_side_leave_the_first_alone(seed: int) -> None:
    two = two_sides(seed, lengths=(3, 2))
    found = Pass(two, 10.0, one_way=True, home=1)
    assert found.other == two.weights(two.other)
    plain = [replace(two.task(k), phi={y: [None] for y in range(3)}) for k in (0, 1)]
    own = plain[0].own
    for task in plain:
        task = replace(task, own=own)
        gold, wrong = task.best(True), task.best(False)
        if gold is None or wrong is None:
            continue
        e = task.change(gold[0], wrong[0])
        loss = 1 - (gold[1] - wrong[1])
        if loss > 0 and naive.norm(e) > 0:
            own = naive.move(own, e[0], min(10.0, loss / naive.norm(e)))
    assert_close(found.own, own)


def test_sums_are_what_the_average_over_steps_needs() -> None:
    two = two_sides(3, lengths=(3, 2, 3))
    found = Pass(two, 0.1)
    history = [two.weights(two.own)]
    own, other = two.task().own, two.task().other
    for k in range(3):
        task = replace(two.task(k), own=own, other=other)
        gold, wrong = task.best(True), task.best(False)
        if gold is not None and wrong is not None and gold[1] - wrong[1] < 1:
            e = task.change(gold[0], wrong[0])
            tau = min(0.1, (1 - (gold[1] - wrong[1])) / naive.norm(e)) if naive.norm(e) else 0.0
            own, other = naive.move(own, e[0], tau), naive.move(other, e[1], tau)
        history.append(own)
    numbers = found.numbers[0]
    mean = numbers.sparse.weights - numbers.sums / np.float32(4)
    expected = {name: sum(w[name] for w in history) / 4 for name in history[0] if name[0] == "row"}
    named = two.own.naive_weights(mean, two.own.trans, two.own.start, two.own.end)
    for name, weight in expected.items():
        assert named[name] == pytest.approx(weight, abs=SINGLE)
    assert len(history) == 4
    assert history[-1] != history[0]
