"""The complete space against enumeration, and against the lattice of all bundles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import grid as naive

from duilian.inference import bundles, grid
from duilian.inference.grid_run import blas, single
from duilian.inference.grid_tables import Table, dense_block
from duilian.inference.lattice import Lattice, product
from duilian.ragged import offsets_of

EXACT = 1e-9  # absolute, float64 against enumeration
FAST = 2e-5  # absolute, float32 probabilities of short sentences
FAST_LOG = 1e-4


@dataclass
class Problem:
    offsets: Any
    nodes: list[Any]
    tables: list[Any]
    node_joint: Any
    joint: Any

    @property
    def sizes(self) -> list[int]:
        return [len(table) for table in self.tables]

    def lattice(self) -> tuple[Lattice, Any]:
        n = int(self.offsets[-1])
        lattice = product(self.offsets, [bundles.full_lists(n, size) for size in self.sizes], self.sizes)
        node = sum(
            node[np.arange(n).repeat(np.diff(lattice.space.starts)), lattice.labels[:, s]]
            for s, node in enumerate(self.nodes)
        )
        return lattice, node if self.node_joint is None else node + self.node_joint.ravel()


def bies(n_tags: int) -> Any:
    """Which character labels may follow which: B, I, E, S of each tag, in that order."""
    possible = np.zeros((4 * n_tags, 4 * n_tags), dtype=bool)
    for i in range(4 * n_tags):
        for j in range(4 * n_tags):
            inside = i // n_tags in (0, 1)
            possible[i, j] = (j // n_tags in (1, 2) and i % n_tags == j % n_tags) if inside else j // n_tags in (0, 3)
    return possible


@st.composite
def problems(draw: Any, joint: bool | None = None, spread: float = 2.0) -> Problem:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(["plain", "plain", "holes", "characters"]))
    n_sides = 2 if kind == "characters" else draw(st.integers(1, 3))
    sizes = [4 * draw(st.integers(1, 2)) for _ in range(2)] if kind == "characters" else []
    sizes = sizes or [draw(st.integers(1, 3)) for _ in range(n_sides)]
    longest = 3 if kind == "characters" or n_sides == 3 else 4
    offsets = offsets_of(draw(st.lists(st.integers(0, longest), min_size=1, max_size=4)))
    n = int(offsets[-1])
    nodes = [rng.normal(size=(n, size)) * spread for size in sizes]
    tables = [rng.normal(size=(size, size)) * spread for size in sizes]
    if kind == "characters":
        for table in tables:
            order = rng.permutation(len(table))
            table[~bies(len(table) // 4)[np.ix_(order, order)]] = -np.inf
    if kind == "holes":
        for array in [*nodes, *tables]:
            array[rng.random(array.shape) < 0.2] = -np.inf
    n_bundles = int(np.prod(sizes))
    node_joint = rng.normal(size=(n, n_bundles)) if draw(st.booleans()) else None
    with_joint = draw(st.booleans()) if joint is None else joint
    weights = rng.normal(size=(n_bundles, n_bundles)) if with_joint and n_bundles <= 32 else None
    return Problem(offsets, nodes, tables, node_joint, weights)


def compare(found: grid.GridSums, problem: Problem, other: bundles.Sums, lattice: Lattice, close: float) -> None:
    n = len(problem.nodes[0])
    for mine, theirs in zip(found.marginals, bundles.side_marginals(lattice, other.marginals), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=close)
    for mine, theirs in zip(found.counts, other.counts, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=4 * close)
    if found.joint is not None:
        flat = np.zeros((n, int(np.prod(problem.sizes))))
        token = np.repeat(np.arange(n), np.diff(lattice.space.starts))
        codes = np.zeros(lattice.n_bundles, dtype=np.int64)
        for s, size in enumerate(problem.sizes):
            codes = codes * size + lattice.labels[:, s]
        np.add.at(flat, (token, codes), other.marginals)
        np.testing.assert_allclose(found.joint, flat, rtol=0, atol=close)
    if found.joint_counts is not None:
        np.testing.assert_allclose(found.joint_counts.ravel(), other.joint_counts, rtol=0, atol=4 * close)


@given(problems(), st.sampled_from([np.float32, np.float64]))
def test_grid_equals_the_lattice_of_all_bundles(problem: Problem, dtype: Any) -> None:
    lattice, node = problem.lattice()
    joint = None if problem.joint is None else problem.joint.ravel()
    other = bundles.sums(lattice, node, problem.tables, joint)
    nodes = [array.astype(dtype) for array in problem.nodes]
    node_joint = None if problem.node_joint is None else problem.node_joint.astype(dtype)
    found = grid.sums(problem.offsets, nodes, problem.tables, node_joint, problem.joint, bundles_too=True)
    single = dtype == np.float32
    assert found.marginals[0].dtype == dtype
    np.testing.assert_allclose(found.log_z, other.log_z, rtol=0, atol=FAST_LOG if single else EXACT)
    compare(found, problem, other, lattice, FAST if single else EXACT)


@given(problems())
def test_grid_equals_enumeration(problem: Problem) -> None:
    """Directly, not by way of the lattice: log Z, marginals of every side and of bundles, expected transitions."""
    found = grid.sums(
        problem.offsets, problem.nodes, problem.tables, problem.node_joint, problem.joint, bundles_too=True
    )
    sizes, n_bundles = problem.sizes, int(np.prod(problem.sizes))
    if n_bundles ** int(np.diff(problem.offsets).max(initial=0)) > 3000:
        return
    marginals = [np.zeros_like(node) for node in problem.nodes]
    joint_marginals = np.zeros((len(problem.nodes[0]), n_bundles))
    counts = [np.zeros_like(table) for table in problem.tables]
    joint_counts = np.zeros((n_bundles, n_bundles))

    def code(bundle: Any) -> int:
        return int(np.ravel_multi_index(bundle, sizes))

    def joint(a: Any, b: Any) -> float:
        return 0.0 if problem.joint is None else float(problem.joint[code(a), code(b)])

    for i in range(len(problem.offsets) - 1):
        begin, end = int(problem.offsets[i]), int(problem.offsets[i + 1])

        def node_joint(t: int, bundle: Any, begin: int = begin) -> float:
            return 0.0 if problem.node_joint is None else float(problem.node_joint[begin + t, code(bundle)])

        ways = naive.every(sizes, end - begin)
        nodes = [node[begin:end].tolist() for node in problem.nodes]
        log_z, chances = naive.probabilities(
            [naive.score(way, nodes, problem.tables, node_joint, joint) for way in ways]
        )
        assert found.log_z[i] == pytest.approx(log_z, abs=EXACT)
        for way, p in zip(ways, chances, strict=True):
            codes = [code(bundle) for bundle in zip(*way, strict=True)]
            for t in range(end - begin):
                joint_marginals[begin + t, codes[t]] += p
                for s, labels in enumerate(way):
                    marginals[s][begin + t, labels[t]] += p
                    if t:
                        counts[s][labels[t - 1], labels[t]] += p
                if t:
                    joint_counts[codes[t - 1], codes[t]] += p
    assert found.joint is not None
    np.testing.assert_allclose(found.joint, joint_marginals, rtol=0, atol=EXACT)
    for mine, theirs in zip((*found.marginals, *found.counts), (*marginals, *counts), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=EXACT)
    if found.joint_counts is not None:
        np.testing.assert_allclose(found.joint_counts, joint_counts, rtol=0, atol=EXACT)


@given(problems(), st.randoms(use_true_random=False), st.sampled_from([np.float32, np.float64]))
def test_gradient_with_labels_given_on_any_side(problem: Problem, random: Any, dtype: Any) -> None:
    masks: list[Any] = []
    for node in problem.nodes:
        kind = random.choice(["free", "gold", "sets"])
        mask = np.zeros(node.shape, dtype=bool)
        for row in mask:
            row[random.randrange(len(row))] = True
            if kind == "sets":
                row |= np.array([random.random() < 0.5 for _ in row])
        masks.append(None if kind == "free" else mask)
    allowed = grid.lattice(problem.offsets, problem.sizes, masks)
    lattice, node = problem.lattice()
    keep = np.ones(lattice.n_bundles, dtype=bool)
    token = np.repeat(np.arange(len(problem.nodes[0])), np.diff(lattice.space.starts))
    for s, mask in enumerate(masks):
        if mask is not None:
            keep &= mask[token, lattice.labels[:, s]]
    joint = None if problem.joint is None else problem.joint.ravel()
    other = bundles.gradient(lattice, lattice.restrict(keep), node, problem.tables, joint)
    nodes = [array.astype(dtype) for array in problem.nodes]
    node_joint = None if problem.node_joint is None else problem.node_joint.astype(dtype)
    found = grid.gradient(problem.offsets, nodes, problem.tables, allowed, node_joint, problem.joint)
    single = dtype == np.float32
    np.testing.assert_allclose(found.log_z, other.log_z, rtol=0, atol=2 * FAST_LOG if single else EXACT)
    compare(found, problem, other, lattice, 2 * FAST if single else EXACT)
    assert (found.joint is None) == (problem.node_joint is None)


@given(problems(spread=200.0))
def test_sentences_out_of_range_go_through_log_space(problem: Problem) -> None:
    lattice, node = problem.lattice()
    joint = None if problem.joint is None else problem.joint.ravel()
    other = bundles.sums(lattice, node, problem.tables, joint)
    nodes = [array.astype(np.float32) for array in problem.nodes]
    node_joint = None if problem.node_joint is None else problem.node_joint.astype(np.float32)
    found = grid.sums(problem.offsets, nodes, problem.tables, node_joint, problem.joint, bundles_too=True)
    np.testing.assert_allclose(found.log_z, other.log_z, rtol=1e-6, atol=FAST_LOG)
    compare(found, problem, other, lattice, 1e-3)  # float32 scores of hundreds


def test_one_sentence_in_log_space_does_not_touch_the_others() -> None:
    rng = np.random.default_rng(2)
    offsets = np.array([0, 3, 6, 9])
    nodes = [rng.normal(size=(9, 2)).astype(np.float32), rng.normal(size=(9, 3)).astype(np.float32)]
    tables = [rng.normal(size=(2, 2)), rng.normal(size=(3, 3))]
    tables[0][0, :] = -np.inf
    nodes[0][3:5] = [[0, -500], [0, -500]]  # label 0 is likely and a dead end
    found = grid.sums(offsets, nodes, tables, bundles_too=True)
    for i in range(3):
        part = [node[offsets[i] : offsets[i + 1]] for node in nodes]
        alone = grid.sums(np.array([0, 3]), part, tables, bundles_too=True)
        assert found.log_z[i] == pytest.approx(alone.log_z[0], abs=FAST_LOG)
        for a, b in zip(found.marginals, alone.marginals, strict=True):
            np.testing.assert_allclose(a[offsets[i] : offsets[i + 1]], b, rtol=0, atol=FAST)
    assert found.log_z[1] < -900


def test_character_tables_are_cut_into_a_block_and_entries() -> None:
    possible = bies(8)
    rows, cols = dense_block(possible)
    assert rows.tolist() == [i // 8 in (2, 3) for i in range(32)]
    assert cols.tolist() == [i // 8 in (0, 3) for i in range(32)]
    log_table = np.where(possible, np.random.default_rng(0).normal(size=(32, 32)), -np.inf)
    table = Table(log_table, np.float64)
    assert not table.whole
    np.testing.assert_allclose(np.exp(log_table - table.top)[np.ix_(table.order, table.order)], table.exp, rtol=1e-12)
    assert Table(np.zeros((5, 5)), np.float64).whole


@given(problems(), st.sampled_from([np.float32, np.float64]))
def test_viterbi(problem: Problem, dtype: Any) -> None:
    lattice, node = problem.lattice()
    joint = None if problem.joint is None else problem.joint.ravel()
    best = bundles.viterbi(lattice, node, problem.tables, joint)
    nodes = [array.astype(dtype) for array in problem.nodes]
    node_joint = None if problem.node_joint is None else problem.node_joint.astype(dtype)
    labels, scores = grid.viterbi(problem.offsets, nodes, problem.tables, node_joint, problem.joint)
    np.testing.assert_allclose(scores, best.scores, rtol=0, atol=FAST_LOG if dtype == np.float32 else EXACT)
    for i in range(lattice.n_sentences):
        tokens = np.arange(problem.offsets[i], problem.offsets[i + 1])
        if scores[i] == -np.inf:
            assert np.all(labels[tokens] == -1)
            continue
        codes = [int(np.ravel_multi_index(row, problem.sizes)) for row in labels[tokens].tolist()]
        total = sum(float(node[lattice.space.starts[t] + code]) for t, code in zip(tokens, codes, strict=True))
        for a, b, c, d in zip(labels[tokens][:-1], labels[tokens][1:], codes[:-1], codes[1:], strict=True):
            total += sum(table[a[s], b[s]] for s, table in enumerate(problem.tables))
            total += 0 if problem.joint is None else problem.joint[c, d]
        assert total == pytest.approx(best.scores[i], abs=1e-3 if dtype == np.float32 else EXACT)


def test_one_and_two_threads_give_the_same_bits() -> None:
    rng = np.random.default_rng(1)
    offsets = offsets_of(rng.integers(0, 6, size=60))
    n = int(offsets[-1])
    nodes = [rng.normal(size=(n, size)).astype(np.float32) for size in (3, 4)]
    tables = [rng.normal(size=(size, size)) for size in (3, 4)]
    mask = np.zeros((n, 3), dtype=bool)
    mask[np.arange(n), rng.integers(0, 3, n)] = True
    allowed = grid.lattice(offsets, [3, 4], [mask, None])
    one, two = (grid.gradient(offsets, nodes, tables, allowed, threads=k) for k in (1, 2))
    np.testing.assert_array_equal(one.log_z, two.log_z)
    for a, b in zip((*one.marginals, *one.counts), (*two.marginals, *two.counts), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.slow
def test_large_tables_are_shared_by_threads_without_changing_a_bit() -> None:
    rng = np.random.default_rng(4)
    sizes, offsets = [23, 24], np.array([0, 2, 3, 5])
    nodes = [rng.normal(size=(5, size)).astype(np.float32) for size in sizes]
    tables = [rng.normal(size=(size, size)) for size in sizes]
    joint = 0.1 * rng.normal(size=(552, 552)).astype(np.float32)
    weights = grid.GridWeights(tables, joint)
    assert len(weights.tables[0].parts) == 2
    one, two = (grid.sums(offsets, nodes, weights, threads=k) for k in (1, 2))
    assert one.joint_counts is not None
    assert two.joint_counts is not None
    np.testing.assert_array_equal(one.joint_counts, two.joint_counts)
    for a, b in zip((one.log_z, *one.marginals), (two.log_z, *two.marginals), strict=True):
        np.testing.assert_array_equal(a, b)
    lattice = grid.lattice(offsets, sizes, [None, None])
    other = bundles.sums(lattice, grid.scores_of(lattice, nodes), tables, joint.ravel())
    np.testing.assert_allclose(one.log_z, other.log_z, rtol=0, atol=FAST_LOG)
    np.testing.assert_allclose(one.joint_counts.ravel(), other.joint_counts, rtol=0, atol=FAST)


def test_shapes_are_checked() -> None:
    offsets, nodes, tables = (
        np.array([0, 2]),
        [np.zeros((2, 3)), np.zeros((2, 2))],
        [np.zeros((3, 3)), np.zeros((2, 2))],
    )
    assert grid.sums(offsets, nodes, tables).log_z[0] == pytest.approx(2 * np.log(6), abs=EXACT)
    with pytest.raises(ValueError, match="expected, found"):
        grid.sums(offsets, [nodes[0], np.zeros((2, 4))], tables)
    with pytest.raises(ValueError, match="joint transitions of 6 bundles"):
        grid.sums(offsets, nodes, tables, joint=np.zeros((3, 3)))
    with pytest.raises(ValueError, match="joint node scores"):
        grid.sums(offsets, nodes, tables, np.zeros((2, 5)))
    with pytest.raises(ValueError, match="must be square"):
        grid.sums(offsets, nodes, [np.zeros((3, 2)), tables[1]])


def test_products_stay_on_one_thread_while_anybody_is_at_work() -> None:
    def threads() -> set[int]:
        return {library["num_threads"] for library in blas().info() if library["user_api"] == "blas"}

    with blas().limit(limits=2, user_api="blas"):
        before = threads()
        with single:
            with single:
                assert threads() <= {1}
            assert threads() <= {1}, "one of two has left"
        assert threads() == before
