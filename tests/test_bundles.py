"""The lattice of bundles against enumeration: both layouts, one to three sides, pair weights, -inf, given labels."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import bundles as naive

from duilian.inference import bundles
from duilian.inference.lattice import Lattice, Pairs, allowed_pairs, index_pairs, listed, mapped, product
from duilian.ragged import Ragged, offsets_of

EXACT = 1e-9  # absolute, float64 against enumeration
FAST = 2e-5  # absolute, float32 probabilities of sentences of at most 4 tokens
FAST_LOG = 1e-4  # absolute, float32 log Z, scores within +-30


@dataclass
class Problem:
    lattice: Lattice
    node: Any
    tables: list[Any]
    joint: Any
    pairs: Pairs | None

    @property
    def arguments(self) -> tuple[Any, ...]:
        return (self.lattice, self.node, self.tables, self.joint, self.pairs)

    def step(self) -> Any:
        if self.joint is None:
            return naive.step_score(self.tables)
        sizes = self.lattice.space.sizes
        n_codes = int(np.prod(sizes))
        known = None
        if self.pairs is not None:
            known = {int(k): int(s) for k, s in zip(self.pairs.keys, self.pairs.slots, strict=True) if k >= 0}

        def joint(a: Any, b: Any) -> float:
            key = int(np.ravel_multi_index(a, sizes)) * n_codes + int(np.ravel_multi_index(b, sizes))
            slot = key if known is None else known.get(key)
            return 0.0 if slot is None else float(self.joint[slot])

        return naive.step_score(self.tables, joint)

    def sentences(self, lattice: Lattice | None = None, node: Any = None) -> list[tuple[Any, Any]]:
        lattice = self.lattice if lattice is None else lattice
        node = self.node if node is None else node
        rows, starts, offsets = lattice.labels.tolist(), lattice.space.starts, lattice.space.offsets
        found = []
        for i in range(lattice.n_sentences):
            spans = [(starts[t], starts[t + 1]) for t in range(offsets[i], offsets[i + 1])]
            found.append(
                ([[tuple(row) for row in rows[a:b]] for a, b in spans], [node[a:b].tolist() for a, b in spans])
            )
        return found


def scores(rng: np.random.Generator, shape: Any, holes: float, spread: float) -> Any:
    values = rng.normal(size=shape) * spread
    values[rng.random(shape) < holes] = -np.inf
    return values


@st.composite
def problems(draw: Any, joint: bool | None = None, spread: float = 2.0, layout: bool | None = None) -> Problem:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_sides = draw(st.integers(1, 3))
    sizes = [draw(st.integers(1, 3)) for _ in range(n_sides)]
    offsets = offsets_of(draw(st.lists(st.integers(0, 4 if n_sides < 3 else 3), min_size=1, max_size=3)))
    holes = draw(st.sampled_from([0.0, 0.0, 0.2]))
    n_tokens = int(offsets[-1])
    as_product = draw(st.booleans()) if layout is None else layout
    lists = []
    for size in sizes:
        rows = [np.sort(rng.permutation(size)[: rng.integers(1, size + 1)]) for _ in range(n_tokens)]
        lists.append(Ragged.from_rows(rows, np.int32))
    lattice = product(offsets, lists, sizes)
    if not as_product:
        mask = rng.random(lattice.n_bundles) < 0.7
        lattice = lattice.restrict(mask)
        lattice = listed(lattice.space.offsets, lattice.space.starts, lattice.space.labels, sizes)
    node = scores(rng, lattice.n_bundles, holes, spread)
    tables = [scores(rng, (size, size), holes, spread) for size in sizes]
    weights, pairs = None, None
    if draw(st.booleans()) if joint is None else joint:
        n_codes = int(np.prod(sizes))
        if draw(st.booleans()):
            weights = rng.normal(size=n_codes**2)
        else:
            keys = np.flatnonzero(rng.random(n_codes**2) < 0.5)
            keys = keys if len(keys) else np.array([0])
            pairs, weights = index_pairs(n_codes, keys), rng.normal(size=len(keys))
    return Problem(lattice, node, tables, weights, pairs)


def expected(problem: Problem, lattice: Lattice | None = None, node: Any = None) -> Any:
    lattice = problem.lattice if lattice is None else lattice
    step, sizes = problem.step(), lattice.space.sizes
    log_z, marginals = [], []
    counts = [np.zeros((size, size)) for size in sizes]
    pairs: dict[Any, float] = {}
    for candidates, scores_here in problem.sentences(lattice, node):
        z, chances = naive.distribution(candidates, scores_here, step)
        log_z.append(z)
        marginals += [naive.marginal(chances, t, k) for t, row in enumerate(candidates) for k in range(len(row))]
        for (a, b), p in naive.expected_steps(candidates, chances).items():
            pairs[a, b] = pairs.get((a, b), 0.0) + p
            for s in range(len(sizes)):
                counts[s][a[s], b[s]] += p
    return np.array(log_z), np.array(marginals), counts, pairs


def joint_vector(problem: Problem, pairs: dict[Any, float]) -> Any:
    sizes = problem.lattice.space.sizes
    n_codes = int(np.prod(sizes))
    out = np.zeros(0 if problem.joint is None else len(problem.joint))
    known = None
    if problem.pairs is not None:
        known = {int(k): int(s) for k, s in zip(problem.pairs.keys, problem.pairs.slots, strict=True) if k >= 0}
    for (a, b), p in pairs.items():
        key = int(np.ravel_multi_index(a, sizes)) * n_codes + int(np.ravel_multi_index(b, sizes))
        slot = key if known is None else known.get(key)
        if len(out) and slot is not None:
            out[slot] += p
    return out


@given(problems())
def test_sums_equal_enumeration(problem: Problem) -> None:
    log_z, marginals, counts, pairs = expected(problem)
    found = bundles.sums(*problem.arguments)
    np.testing.assert_allclose(found.log_z, log_z, rtol=0, atol=EXACT)
    np.testing.assert_allclose(found.marginals, marginals, rtol=0, atol=EXACT)
    for mine, theirs in zip(found.counts, counts, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=EXACT)
    np.testing.assert_allclose(found.joint_counts, joint_vector(problem, pairs), rtol=0, atol=EXACT)
    only = bundles.log_partition(*problem.arguments)
    np.testing.assert_array_equal(only, found.log_z)


@given(problems())
def test_float32_is_close(problem: Problem) -> None:
    log_z, marginals, counts, _ = expected(problem)
    found = bundles.sums(problem.lattice, problem.node.astype(np.float32), problem.tables, problem.joint, problem.pairs)
    assert found.marginals.dtype == np.float32
    np.testing.assert_allclose(found.log_z, log_z, rtol=0, atol=FAST_LOG)
    np.testing.assert_allclose(found.marginals, marginals, rtol=0, atol=FAST)
    for mine, theirs in zip(found.counts, counts, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=4 * FAST)


@given(problems(spread=300.0), st.sampled_from([np.float32, np.float64]))
def test_underflow_takes_the_road_through_log_space(problem: Problem, dtype: Any) -> None:
    log_z, marginals, counts, _ = expected(problem, node=problem.node.astype(dtype).astype(np.float64))
    found = bundles.sums(problem.lattice, problem.node.astype(dtype), problem.tables, problem.joint, problem.pairs)
    np.testing.assert_allclose(found.log_z, log_z, rtol=1e-6, atol=FAST_LOG)
    # float32 tables are rounded: 1e-7 of a score of a thousand
    np.testing.assert_allclose(found.marginals, marginals, rtol=0, atol=1e-3)
    for mine, theirs in zip(found.counts, counts, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_path_that_only_log_space_can_see(dtype: Any) -> None:
    """The likely label at the first token cannot be followed; the unlikely one is far below the range of floats."""
    lattice = product(np.array([0, 2]), [bundles.full_lists(2, 2)], [2])
    far = -2000.0
    node = np.array([0.0, far, 0.0, 0.0], dtype=dtype)
    table = np.array([[-np.inf, -np.inf], [0.0, np.log(3.0)]])
    found = bundles.sums(lattice, node, [table])
    assert found.log_z[0] == pytest.approx(far + np.log(4), abs=1e-3)
    np.testing.assert_allclose(found.marginals, [0, 1, 0.25, 0.75], rtol=0, atol=1e-6)
    np.testing.assert_allclose(found.counts[0], [[0, 0], [0.25, 0.75]], rtol=0, atol=1e-6)


@given(problems(), st.randoms(use_true_random=False), st.booleans())
def test_gradient_is_the_difference_of_two_sums(problem: Problem, random: Any, by_side: bool) -> None:
    """Ambiguous labels on any side, or on bundles: log Z(allowed) - log Z and its gradient."""
    lattice = problem.lattice
    if by_side and lattice.is_product:
        part = lattice.restrict_sides(np.array([random.random() < 0.7 for _ in lattice.space.kept], dtype=bool))
        assert part.is_product
    else:
        part = lattice.restrict(np.array([random.random() < 0.7 for _ in range(lattice.n_bundles)], dtype=bool))
    assert part.origin is not None
    np.testing.assert_array_equal(part.labels, lattice.labels[part.origin])
    some_z, some, some_counts, some_pairs = expected(problem, part, problem.node[part.origin])
    found = bundles.gradient(lattice, part, *problem.arguments[1:])
    node = np.zeros(lattice.n_bundles)
    counts = [np.zeros_like(table) for table in problem.tables]
    log_z, pairs = [], dict[Any, float]()
    np.add.at(node, part.origin, some)
    offsets = lattice.space.offsets
    for i, z in enumerate(some_z):
        if z == -np.inf:
            log_z.append(z)
            continue
        tokens = np.arange(offsets[i], offsets[i + 1])
        first, last = lattice.space.starts[offsets[i]], lattice.space.starts[offsets[i + 1]]
        one = listed(
            np.array([0, len(tokens)]),
            lattice.space.starts[offsets[i] : offsets[i + 1] + 1] - first,
            lattice.labels[first:last],
            lattice.space.sizes,
        )
        all_z, all_node, all_counts, all_pairs = expected(problem, one, problem.node[first:last])
        log_z.append(z - all_z[0])
        node[first:last] -= all_node
        for s in range(len(counts)):
            counts[s] -= all_counts[s]
        for pair, p in all_pairs.items():
            pairs[pair] = pairs.get(pair, 0.0) - p
    for pair, p in some_pairs.items():
        pairs[pair] = pairs.get(pair, 0.0) + p
    np.testing.assert_allclose(found.log_z, log_z, rtol=0, atol=EXACT)
    np.testing.assert_allclose(found.marginals, node, rtol=0, atol=EXACT)
    for s in range(len(counts)):
        np.testing.assert_allclose(found.counts[s], counts[s] + some_counts[s], rtol=0, atol=EXACT)
    np.testing.assert_allclose(found.joint_counts, joint_vector(problem, pairs), rtol=0, atol=EXACT)


def test_gradient_equals_finite_differences() -> None:
    rng = np.random.default_rng(5)
    lists = [bundles.full_lists(5, size) for size in (3, 2)]
    lattice = product(np.array([0, 3, 5]), lists, [3, 2])
    part = lattice.restrict_sides(np.where(np.arange(len(lattice.space.kept)) % 5 == 1, False, True))
    node, tables = rng.normal(size=lattice.n_bundles), [rng.normal(size=(3, 3)), rng.normal(size=(2, 2))]
    joint = rng.normal(size=36)
    found = bundles.gradient(lattice, part, node, tables, joint)

    def value(node: Any, tables: Any, joint: Any) -> float:
        return float(bundles.gradient(lattice, part, node, tables, joint).log_z.sum())

    h, tolerance = 1e-5, 1e-8
    for array, slope in ((node, found.marginals), *zip(tables, found.counts, strict=True), (joint, found.joint_counts)):
        for at in np.ndindex(array.shape):
            array[at] += h
            up = value(node, tables, joint)
            array[at] -= 2 * h
            down = value(node, tables, joint)
            array[at] += h
            assert slope[at] == pytest.approx((up - down) / (2 * h), abs=tolerance)


@given(problems())
def test_viterbi_is_the_best_of_all(problem: Problem) -> None:
    found = bundles.viterbi(*problem.arguments)
    _check_paths(problem, found.bundles, found.scores)
    labels = problem.lattice.labels
    for t, bundle in enumerate(found.bundles):
        assert found.labels[t].tolist() == (labels[bundle].tolist() if bundle >= 0 else [-1] * len(problem.tables))


def _check_paths(problem: Problem, path: Any, score: Any) -> None:
    step, offsets, starts = problem.step(), problem.lattice.space.offsets, problem.lattice.space.starts
    for i, (candidates, node) in enumerate(problem.sentences()):
        every = [naive.score(candidates, node, step, p) for p in naive.paths(candidates)]
        best = max(every, default=-np.inf)
        chosen = [int(path[t] - starts[t]) for t in range(offsets[i], offsets[i + 1])]
        if best == -np.inf:
            assert score[i] == -np.inf
            assert all(path[t] == -1 for t in range(offsets[i], offsets[i + 1]))
            continue
        assert score[i] == pytest.approx(best, abs=EXACT)
        assert naive.score(candidates, node, step, chosen) == pytest.approx(best, abs=EXACT)


@given(problems(), st.integers(1, 6))
def test_nbest_is_the_top_of_all(problem: Problem, n: int) -> None:
    found = bundles.nbest(problem.lattice, problem.node, problem.tables, n, problem.joint, problem.pairs)
    step, offsets, starts = problem.step(), problem.lattice.space.offsets, problem.lattice.space.starts
    for i, (candidates, node) in enumerate(problem.sentences()):
        every = [naive.score(candidates, node, step, p) for p in naive.paths(candidates)]
        best = sorted((s for s in every if s > -np.inf), reverse=True)[:n]
        assert [score for score, _ in found[i]] == pytest.approx(best, abs=EXACT)
        chosen = [tuple((path - starts[offsets[i] : offsets[i + 1]]).tolist()) for _, path in found[i]]
        assert len(set(chosen)) == len(chosen)
        for (score, _), path in zip(found[i], chosen, strict=True):
            assert naive.score(candidates, node, step, path) == pytest.approx(score, abs=EXACT)


@given(problems(), st.integers(0, 2))
def test_spans(problem: Problem, side: int) -> None:
    lattice = problem.lattice
    side %= lattice.n_sides
    labels = bundles.viterbi(*problem.arguments).labels[:, side]
    offsets = lattice.space.offsets
    inner = [t for t in range(lattice.n_tokens) if t % 2 == 0]
    spans = np.unique(np.concatenate([offsets, inner])).astype(np.int64)
    found = bundles.span_probabilities(
        lattice, problem.node, problem.tables, side, labels, spans, problem.joint, problem.pairs
    )
    step, k = problem.step(), 0
    for i, (candidates, node) in enumerate(problem.sentences()):
        _, chances = naive.distribution(candidates, node, step)
        while k < len(found) and spans[k] < offsets[i + 1]:
            begin, end = spans[k] - offsets[i], spans[k + 1] - offsets[i]
            here = labels[offsets[i] : offsets[i + 1]]
            assert found[k] == pytest.approx(naive.span(candidates, chances, side, here, begin, end), abs=EXACT)
            k += 1
    assert k == len(found)


def test_samples_follow_the_distribution() -> None:
    rng = np.random.default_rng(3)
    lattice = product(np.array([0, 2, 2, 3]), [bundles.full_lists(3, 2), bundles.full_lists(3, 2)], [2, 2])
    node, tables = rng.normal(size=12), [rng.normal(size=(2, 2)) for _ in range(2)]
    node[9] = -np.inf
    n = 4000
    drawn = bundles.sample(lattice, node, tables, n, rng)
    marginals = bundles.sums(lattice, node, tables).marginals
    shares = np.bincount(drawn.ravel(), minlength=12) / n
    # five standard deviations of a share
    assert np.all(np.abs(shares - marginals) <= 5 * np.sqrt(marginals * (1 - marginals) / n) + 1e-12)
    problem = Problem(lattice, node, tables, None, None)
    candidates, scores_here = problem.sentences()[0]
    _, chances = naive.distribution(candidates, scores_here, problem.step())
    pairs = drawn[:, 0] * 4 + drawn[:, 1] - 4
    share = np.bincount(pairs, minlength=16) / n
    for (a, b), p in chances.items():
        assert abs(share[a * 4 + b] - p) <= 5 * np.sqrt(p * (1 - p) / n) + 1e-12


@given(problems(layout=True))
def test_both_layouts_agree(problem: Problem) -> None:
    other = problem.lattice.restrict(np.ones(problem.lattice.n_bundles, dtype=bool))
    a = bundles.sums(*problem.arguments)
    b = bundles.sums(other, *problem.arguments[1:])
    np.testing.assert_allclose(a.log_z, b.log_z, rtol=0, atol=EXACT)
    np.testing.assert_allclose(a.marginals, b.marginals, rtol=0, atol=EXACT)
    for mine, theirs in zip(a.counts, b.counts, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=EXACT)


@given(problems(layout=True, joint=False))
def test_a_side_of_one_label_changes_nothing(problem: Problem) -> None:
    lattice = problem.lattice
    ones = bundles.full_lists(lattice.n_tokens, 1)
    sides = [lattice.side_lists(s) for s in range(lattice.n_sides)]
    wider = product(lattice.space.offsets, [*sides, ones], [*lattice.space.sizes, 1])
    a = bundles.sums(lattice, problem.node, problem.tables)
    b = bundles.sums(wider, problem.node, [*problem.tables, np.zeros((1, 1))])
    np.testing.assert_allclose(a.log_z, b.log_z, rtol=0, atol=EXACT)
    np.testing.assert_allclose(a.marginals, b.marginals, rtol=0, atol=EXACT)
    for mine, theirs in zip(a.counts, b.counts[:-1], strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=EXACT)


@given(problems())
def test_reversed_sentences_transpose_the_tables(problem: Problem) -> None:
    lattice = problem.lattice
    order = np.concatenate(
        [
            np.arange(b - 1, a - 1, -1)
            for a, b in zip(lattice.space.offsets[:-1], lattice.space.offsets[1:], strict=True)
        ]
        or [np.zeros(0, np.int64)]
    ).astype(np.int64)
    whole = Ragged(np.arange(lattice.n_bundles), lattice.space.starts).select(order)
    mirror = listed(lattice.space.offsets, whole.offsets, lattice.labels[whole.data], lattice.space.sizes)
    a = bundles.sums(lattice, problem.node, problem.tables)
    b = bundles.sums(mirror, problem.node[whole.data], [table.T for table in problem.tables])
    np.testing.assert_allclose(a.log_z, b.log_z, rtol=0, atol=EXACT)
    np.testing.assert_allclose(a.marginals[whole.data], b.marginals, rtol=0, atol=EXACT)
    for mine, theirs in zip(a.counts, b.counts, strict=True):
        np.testing.assert_allclose(mine, theirs.T, rtol=0, atol=EXACT)


@given(problems())
def test_side_marginals_sum_to_one(problem: Problem) -> None:
    found = bundles.sums(*problem.arguments)
    possible = np.repeat(found.log_z > -np.inf, np.diff(problem.lattice.space.offsets))
    for side in bundles.side_marginals(problem.lattice, found.marginals):
        np.testing.assert_allclose(side.sum(axis=1), possible.astype(float), rtol=0, atol=EXACT)


@given(problems(layout=True, joint=False), st.integers(0, 2**32 - 1))
def test_mapped_keeps_what_the_mapping_and_all_sides_allow(problem: Problem, seed: int) -> None:
    rng, sizes = np.random.default_rng(seed), problem.lattice.space.sizes.tolist()
    offsets, n_tokens = problem.lattice.space.offsets, problem.lattice.n_tokens
    every = np.indices(sizes).reshape(len(sizes), -1).T
    rows = every[rng.random(len(every)) < 0.7]
    masks: list[Any] = [None if rng.random() < 0.3 else rng.random((n_tokens, size)) < 0.6 for size in sizes]
    found = mapped(offsets, rows, sizes, masks)
    for t in range(n_tokens):
        wanted = [row for row in rows.tolist() if all(m is None or m[t, k] for m, k in zip(masks, row, strict=True))]
        assert found.labels[found.space.starts[t] : found.space.starts[t + 1]].tolist() == wanted


@given(problems())
def test_pairs_of_a_lattice(problem: Problem) -> None:
    lattice, sizes = problem.lattice, problem.lattice.space.sizes
    n_codes = int(np.prod(sizes))
    wanted = set()
    for candidates, _ in problem.sentences():
        for before, here in itertools.pairwise(candidates):
            for a in before:
                for b in here:
                    wanted.add(int(np.ravel_multi_index(a, sizes)) * n_codes + int(np.ravel_multi_index(b, sizes)))
    assert allowed_pairs(lattice).tolist() == sorted(wanted)


def test_one_and_two_threads_give_the_same_bits() -> None:
    rng = np.random.default_rng(1)
    offsets = offsets_of(rng.integers(0, 5, size=40))
    n_tokens = int(offsets[-1])
    lists = [bundles.full_lists(n_tokens, size) for size in (3, 2)]
    lattice = product(offsets, lists, [3, 2])
    node = rng.normal(size=lattice.n_bundles).astype(np.float32)
    tables = [rng.normal(size=(3, 3)), rng.normal(size=(2, 2))]
    part = lattice.restrict_sides(rng.random(len(lattice.space.kept)) < 0.8)
    one, two = (bundles.gradient(lattice, part, node, tables, threads=n) for n in (1, 2))
    np.testing.assert_array_equal(one.marginals, two.marginals)
    np.testing.assert_array_equal(one.log_z, two.log_z)
    for a, b in zip(one.counts, two.counts, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(
        bundles.viterbi(lattice, node, tables, threads=1).bundles,
        bundles.viterbi(lattice, node, tables, threads=2).bundles,
    )


def test_arguments_are_left_alone_and_checked() -> None:
    lattice = product(np.array([0, 2]), [bundles.full_lists(2, 2)], [2])
    node, table = np.zeros(4), np.zeros((2, 2))
    node.flags.writeable = table.flags.writeable = False
    assert bundles.sums(lattice, node, [table]).log_z[0] == pytest.approx(2 * np.log(2), abs=EXACT)
    with pytest.raises(ValueError, match="4 node scores were expected"):
        bundles.sums(lattice, np.zeros(3), [table])
    with pytest.raises(ValueError, match="of sizes"):
        bundles.sums(lattice, node, [np.zeros((3, 3))])
    with pytest.raises(ValueError, match="restrict"):
        bundles.gradient(lattice, lattice, node, [table])
    with pytest.raises(ValueError, match="joint weights"):
        bundles.sums(lattice, node, [table], np.zeros(3))
    with pytest.raises(ValueError, match="has 2 labels; found 0 to 2"):
        product(np.array([0, 2]), [bundles.full_lists(2, 3)], [2])
    with pytest.raises(ValueError, match="occurs twice"):
        index_pairs(2, np.array([1, 1]))
