"""States of the complete space: sentences side by side, unit by unit, side after side; ``grid.py`` is the door.

The state of a unit is (A, n, R): labels of the first side, sentences that are still going, labels of all other sides
together. Its two large products are BLAS calls over all sentences at once; what lies between them is in
``grid_kernels.py``. Sentences whose exponentials underflow go through the lattice of all bundles in log space.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from duilian.inference import bundles
from duilian.inference.blocks import run_blocks, sentence_blocks
from duilian.inference.bundle_room import Weights
from duilian.inference.grid_kernels import (
    fill32,
    fill64,
    finish_backward,
    finish_forward,
    give_bundles,
    give_side,
    take_side,
)
from duilian.inference.grid_tables import Table
from duilian.inference.lattice import Lattice, product, room_for_token
from duilian.ragged import offsets_of, ranges

Floats = NDArray[Any]

MEMORY = 192 << 20  # bytes that the states of one block may take; a longer sentence takes what it needs
TOGETHER = 8  # sentences in a block, where there are enough: products become efficient


@dataclass(frozen=True, eq=False)
class GridSums:
    """What forward-backward finds over the complete space.

    log_z:        (n_sentences,) float64; from ``gradient``: log-likelihoods
    marginals:    per side (T, L) P(label)
    joint:        (T, product of L) P(bundle), bundles numbered with the last side fastest, or None where not asked for
    counts:       per side (L, L) float64, expected transitions
    joint_counts: (N, N) in the type of the nodes, expected transitions of bundles, or None without joint transitions
    """

    log_z: NDArray[np.float64]
    marginals: tuple[Floats, ...]
    joint: Floats | None
    counts: tuple[NDArray[np.float64], ...]
    joint_counts: NDArray[np.float64] | None


class GridWeights:
    """Transition tables made ready for many calls; joint: (N, N) scores of pairs of bundles on top, or None."""

    def __init__(self, transitions: Sequence[Floats], joint: Floats | None = None, dtype: Any = np.float32) -> None:
        self.transitions, self.dtype = [np.asarray(table, dtype=np.float64) for table in transitions], np.dtype(dtype)
        self.sizes = [len(table) for table in transitions]
        self.n_bundles = int(np.prod(self.sizes))
        self.joint = joint
        if joint is not None and joint.shape != (self.n_bundles, self.n_bundles):
            raise ValueError(f"joint transitions of {self.n_bundles} bundles must be square, found shape {joint.shape}")
        if joint is None and len(self.sizes) > 1:
            last = len(self.sizes) - 1
            self.tables = [Table(t, dtype, reorder=s in (0, last)) for s, t in enumerate(self.transitions)]
            self.n_first = self.sizes[0]
        else:
            self.tables = [Table(joint_table(self.transitions, joint), dtype, reorder=False)]
            self.n_first = 1
        self.n_rest = self.n_bundles // self.n_first
        self.shift = sum(table.top for table in self.tables)
        self.orders = [table.order for table in self.tables] if self.n_first > 1 else [np.arange(s) for s in self.sizes]
        reordered = any(np.any(order != np.arange(len(order))) for order in self.orders)
        self.order = self._order() if reordered else np.zeros(0, dtype=np.int64)

    @cached_property
    def flat(self) -> Weights:
        """The same for lattices."""
        return bundles.weights_of(self.transitions, self.joint, self.dtype)

    def _order(self) -> NDArray[np.int64]:
        """Where the bundle (a, r) of the tables stands among all bundles: order[a] * R + order[A + r]."""
        rest = np.zeros(1, dtype=np.int64)
        for order in self.orders[1:]:
            rest = (rest[:, None] * len(order) + order[None, :]).ravel()
        return np.concatenate([self.orders[0], rest])


def joint_table(transitions: Sequence[Floats], joint: Floats | None = None) -> Floats:
    """(N, N) log scores of a step between bundles: the sides' tables added up, and the joint scores."""
    total = np.zeros((1, 1))
    for table in transitions:
        size = len(total) * len(table)
        total = (total[:, None, :, None] + np.asarray(table)[None, :, None, :]).reshape(size, size)
    return total if joint is None else total + joint


def scores_of(space: Lattice, nodes: Sequence[Floats], node_joint: Floats | None = None) -> Floats:
    """(n_bundles,) the node score of each bundle of a lattice, from scores for all labels of all sides."""
    out = np.zeros(space.n_bundles, dtype=nodes[0].dtype)
    rows = room_for_token(space.space)
    for s, node in enumerate(nodes):
        take_side(space.space, s, node, rows, out)
    if node_joint is not None:
        flat = node_joint.reshape(-1, int(np.prod(space.space.sizes)))
        take_side(space.space, len(nodes), flat, rows, out)
    return out


@cache
def blas() -> ThreadpoolController:
    """The BLAS libraries of this process; looking for them takes milliseconds, so once."""
    return ThreadpoolController()


class _Single:
    """BLAS on one thread for as long as anybody is inside: its setting is one for all threads of the process, so that
    the first who comes changes it, and only the last who leaves puts it back."""

    def __init__(self) -> None:
        self.lock, self.inside = Lock(), 0
        self.limit: Any = None

    def __enter__(self) -> None:
        with self.lock:
            if self.inside == 0:
                self.limit = blas().limit(limits=1, user_api="blas")
                self.limit.__enter__()
            self.inside += 1

    def __exit__(self, *problem: Any) -> None:
        with self.lock:
            self.inside -= 1
            if self.inside == 0:
                self.limit.__exit__(*problem)


single = _Single()


class Run:
    """One batch: what came in, checked, and what has been added up so far."""

    def __init__(
        self,
        offsets: NDArray[np.int64],
        nodes: Sequence[Floats],
        transitions: Sequence[Floats] | GridWeights,
        node_joint: Floats | None,
        joint: Floats | None,
        bundles_too: bool,
        counts: bool,
    ) -> None:
        self.offsets = np.asarray(offsets, dtype=np.int64)
        single = all(node.dtype == np.float32 for node in nodes)
        self.dtype = np.dtype(np.float32 if single else np.float64)
        if isinstance(transitions, GridWeights):
            self.weights = transitions
        else:
            self.weights = GridWeights(transitions, joint, self.dtype)
        weights = self.weights
        if weights.dtype != self.dtype:
            raise ValueError(f"nodes are {self.dtype}, the weights were prepared as {weights.dtype}")
        self.n_sentences, self.n_tokens = len(self.offsets) - 1, int(self.offsets[-1])
        for node, size in zip(nodes, weights.sizes, strict=True):
            if node.shape != (self.n_tokens, size):
                raise ValueError(f"nodes of shape {(self.n_tokens, size)} were expected, found {node.shape}")
        self.nodes = [np.ascontiguousarray(node, dtype=self.dtype) for node in nodes]
        self.sorted_nodes = self.nodes
        if len(weights.order):
            self.sorted_nodes = [np.ascontiguousarray(n[:, o]) for n, o in zip(self.nodes, weights.orders, strict=True)]
        self.node_joint = None
        if node_joint is not None:
            shape = (self.n_tokens, *weights.sizes)
            if node_joint.shape not in (shape, (self.n_tokens, weights.n_bundles)):
                raise ValueError(f"joint node scores of shape {shape} were expected, found {node_joint.shape}")
            self.node_joint = np.ascontiguousarray(node_joint, dtype=self.dtype).reshape(-1, weights.n_bundles)
        self.log_z = np.zeros(self.n_sentences)
        self.marginals = [np.zeros_like(node) for node in self.nodes]
        self.joint = np.zeros((self.n_tokens, weights.n_bundles), dtype=self.dtype) if bundles_too else None
        self.want_counts = counts
        self.counts = [np.zeros((size, size)) for size in weights.sizes]
        shape = (weights.n_bundles, weights.n_bundles)
        self.joint_counts = np.zeros(shape, dtype=self.dtype) if weights.joint is not None and counts else None

    def result(self) -> GridSums:
        counts = tuple(self.counts) if self.want_counts else ()
        return GridSums(self.log_z, tuple(self.marginals), self.joint, counts, self.joint_counts)

    def add(self, weight: float, sentences: NDArray[np.int64], threads: int) -> None:
        """Add weight * expectations of the given sentences, and set their log Z."""
        lengths = np.diff(self.offsets)[sentences]
        sentences = sentences[lengths > 0]
        work = offsets_of(lengths[lengths > 0])
        states = self.weights.n_bundles * self.dtype.itemsize * (len(self.weights.tables) + 1)
        fitting = -(-int(work[-1]) * states // MEMORY)
        n_blocks = max(1, 2 * max(len(sentences) // (2 * TOGETHER), -(-fitting // 2)))
        # where one table is large, many rows in one product matter more: threads share the table instead
        together = len(self.weights.tables[0].parts) > 1
        if together:
            n_blocks = max(1, fitting)

        def one(first: int, last: int) -> tuple[NDArray[np.int64], list[Any]]:
            return self._block(weight, sentences[first:last], threads if together else 1)

        with single:
            parts = run_blocks(one, sentence_blocks(work, n_blocks), 1 if together else threads)
        lost = []
        for lost_here, tables in parts:
            lost.append(lost_here)
            self._add_counts(weight, tables)
        self._add_lost(weight, np.concatenate([np.zeros(0, np.int64), *lost]), threads)

    def _add_counts(self, weight: float, tables: list[Any]) -> None:
        if not self.want_counts:
            return
        if len(self.weights.tables) == len(self.counts) and self.joint_counts is None:
            for total, table in zip(self.counts, tables, strict=True):
                total += weight * table
            return
        for whole in tables:
            for s, size in enumerate(self.weights.sizes):
                left, right = int(np.prod(self.weights.sizes[:s])), int(np.prod(self.weights.sizes[s + 1 :]))
                half = whole.reshape(left, size, right, -1).sum(axis=(0, 2), dtype=np.float64)
                self.counts[s] += weight * half.reshape(size, left, size, right).sum(axis=(1, 3))
            if self.joint_counts is not None:
                self.joint_counts += self.dtype.type(weight) * whole

    def add_lattice(self, weight: float, space: Lattice, threads: int) -> NDArray[np.bool_]:
        """Add weight * expectations under a smaller lattice; which sentences have any path in it."""
        if space.space.sizes.tolist() != self.weights.sizes or space.n_tokens != self.n_tokens:
            raise ValueError("the allowed lattice must be over the same units and sides as the nodes")
        node = scores_of(space, self.nodes, self.node_joint)
        found = bundles.sums(space, node, self.weights.flat, counts=self.want_counts, threads=threads)
        self.log_z = found.log_z.copy()
        self._give(weight, space, found)
        return found.log_z > -np.inf

    def _add_lost(self, weight: float, sentences: NDArray[np.int64], threads: int) -> None:
        """Sentences that float range is too small for: through the lattice of all bundles, in log space."""
        if len(sentences) == 0:
            return
        begins, ends = self.offsets[sentences], self.offsets[sentences + 1]
        tokens = ranges(begins, ends)
        sizes = self.weights.sizes
        lists = [bundles.full_lists(len(tokens), size) for size in sizes]
        space = product(offsets_of(ends - begins), lists, sizes)
        node = scores_of(
            space, [n[tokens] for n in self.nodes], None if self.node_joint is None else self.node_joint[tokens]
        )
        found = bundles.sums(
            space,
            node.astype(np.float64),
            self.weights.transitions,
            self.weights.joint,
            counts=self.want_counts,
            threads=threads,
        )
        self.log_z[sentences] = found.log_z
        self._give(weight, space, found, tokens)

    def _give(self, weight: float, space: Lattice, found: bundles.Sums, tokens: Any = ()) -> None:
        value = (found.marginals * weight).astype(self.dtype)
        rows, where = room_for_token(space.space), np.asarray(tokens, dtype=np.int64)
        for s, out in enumerate([*self.marginals, *([] if self.joint is None else [self.joint])]):
            give_side(space.space, s, value, where, rows, out)
        if self.want_counts:
            for total, table in zip(self.counts, found.counts, strict=True):
                total += weight * table
            if self.joint_counts is not None:
                self.joint_counts += (weight * found.joint_counts).reshape(self.joint_counts.shape).astype(self.dtype)

    def _block(self, weight: float, sentences: NDArray[np.int64], threads: int) -> tuple[NDArray[np.int64], list[Any]]:
        """One block of sentences: writes log Z and marginals; returns the lost ones and the expected transitions."""
        lost = np.zeros(0, np.int64)
        while len(sentences):
            block = Block(self, sentences, threads)
            block.forward()
            fell = block.backward()
            lost_here = sentences[np.isin(sentences, block.sentences[~block.good])]
            lost = np.concatenate([lost, lost_here])
            if not fell:
                block.give(weight)
                return lost, block.tables()
            # some sentence fell after its first transitions had been counted: the others once more, without it
            sentences = sentences[~np.isin(sentences, lost_here)]
        return lost, []


class Block:
    """The states of some sentences, unit by unit, sentences that end early last."""

    def __init__(self, run: Run, sentences: NDArray[np.int64], threads: int = 1) -> None:
        self.threads = threads
        lengths = run.offsets[sentences + 1] - run.offsets[sentences]
        self.sentences = sentences[np.argsort(-lengths, kind="stable")]
        self.run, self.weights = run, run.weights
        begins = run.offsets[self.sentences]
        lengths = run.offsets[self.sentences + 1] - begins
        self.active = [int(np.searchsorted(-lengths, -t, side="left")) for t in range(int(lengths[0]))]
        self.tokens = [begins[:n] + t for t, n in enumerate(self.active)]
        shape = (self.weights.n_first, -1, self.weights.n_rest)
        self.phi = [np.empty((shape[0], n, shape[2]), dtype=run.dtype) for n in self.active]
        self.alpha = [np.empty_like(phi) for phi in self.phi]
        self.forth: list[list[Floats]] = [[] for _ in self.active]
        self.norm = [np.empty(n) for n in self.active]
        self.log_z = np.zeros(len(sentences))
        self.at = offsets_of(self.active)
        self.sum_first = np.empty((self.at[-1], self.weights.n_first), dtype=run.dtype)
        self.sum_rest = np.empty((self.at[-1], self.weights.n_rest), dtype=run.dtype)
        self.counts: list[Any] = [table.new_counts() for table in self.weights.tables]
        self.least, self.slack = bundles.LEAST[run.dtype.name], bundles.SLACK[run.dtype.name]

    def rest(self, t: int) -> Floats:
        """(n, R) the scores of all sides but the first, added up, in the tables' order of labels."""
        tokens = self.tokens[t]
        start = 1 if self.weights.n_first > 1 else 0
        total = self.run.sorted_nodes[start][tokens]
        for node in self.run.sorted_nodes[start + 1 :]:
            total = (total[:, :, None] + node[tokens][:, None, :]).reshape(len(tokens), -1)
        return total

    def fill(self, t: int, first: Floats, joint: Floats, top: Floats) -> None:
        """phi of unit t."""
        fill = fill32 if self.run.dtype == np.float32 else fill64
        fill(self.tokens[t], first, self.rest(t), joint, self.weights.order, self.phi[t], top)

    def forward(self) -> None:
        run, weights = self.run, self.weights
        if weights.n_first > 1:
            first = run.sorted_nodes[0]
        else:
            first = np.zeros((run.n_tokens, 1), dtype=run.dtype)
        joint = np.zeros((0, 0), dtype=run.dtype) if run.node_joint is None else run.node_joint
        for t, n in enumerate(self.active):
            top = np.empty(n, dtype=run.dtype)
            self.fill(t, first, joint, top)
            if t == 0:
                self.alpha[t][:] = 1
            else:
                self.forth[t] = self.move(np.ascontiguousarray(self.alpha[t - 1][:, :n]), self.alpha[t])
            finish_forward(self.alpha[t], self.phi[t], self.least, self.norm[t])
            with np.errstate(divide="ignore", invalid="ignore"):
                self.log_z[:n] += np.log(self.norm[t]) + top + (weights.shift if t else 0.0)

    def move(self, x: Floats, out: Floats) -> list[Floats]:
        """One step forward, one side after the other; returns what lies between the sides."""
        tables = self.weights.tables
        if len(tables) == 1:
            tables[0].move_last(x.reshape(-1, self.weights.n_rest), out.reshape(-1, self.weights.n_rest), self.threads)
            return [x.copy()]  # alpha itself becomes the marginals before the counts are taken
        states = [x, np.empty_like(x)]
        tables[0].move_first(x.reshape(len(x), -1), states[1].reshape(len(x), -1))
        for table, (left, size, right) in zip(tables[1:-1], self._middle(x), strict=True):
            states.append(np.matmul(table.exp.T, states[-1].reshape(left, size, right)).reshape(x.shape))
        size = len(tables[-1].exp)
        tables[-1].move_last(states[-1].reshape(-1, size), out.reshape(-1, size))
        return states

    def _middle(self, x: Floats) -> list[tuple[int, int, int]]:
        sizes = self.weights.sizes
        n = x.shape[1]
        return [(n * int(np.prod(sizes[:s])), sizes[s], int(np.prod(sizes[s + 1 :]))) for s in range(1, len(sizes) - 1)]

    def move_back(self, w: Floats, states: list[Floats], beta: Floats) -> None:
        """One step backward into beta, and the expected transitions of that step; states: what ``move`` returned."""
        tables, count = self.weights.tables, self.run.want_counts
        size = len(tables[-1].exp)
        flat = w.reshape(-1, size)
        if len(tables) == 1:
            tables[0].back_last(flat, beta.reshape(-1, size), self.threads)
            return
        if count:
            self.counts[-1].add_last(states[-1].reshape(-1, size), flat)
        y = np.empty_like(w)
        tables[-1].back_last(flat, y.reshape(-1, size))
        for k in range(len(tables) - 2, 0, -1):
            left, size, right = self._middle(w)[k - 1]
            if count:
                x, z = (a.reshape(left, size, right).transpose(1, 0, 2).reshape(size, -1) for a in (states[k], y))
                self.counts[k].add_first(x, z)
            y = np.matmul(tables[k].exp, y.reshape(left, size, right)).reshape(w.shape)
        if count:
            self.counts[0].add_first(states[0].reshape(len(w), -1), y.reshape(len(w), -1))
        tables[0].back_first(y.reshape(len(w), -1), beta.reshape(len(w), -1))

    def backward(self) -> bool:
        """Marginals over alpha, and counts; whether a sentence left the range of floats only now."""
        run, weights = self.run, self.weights
        self.good = np.ones(len(self.sentences), dtype=bool)
        for norm in self.norm:
            self.good[: len(norm)] &= norm > 0
        before = self.good.copy()
        beta = np.ones((weights.n_first, self.active[-1], weights.n_rest), dtype=run.dtype)
        for t in range(len(self.active) - 1, -1, -1):
            n = self.active[t]
            if beta.shape[1] < n:
                longer = np.ones((weights.n_first, n, weights.n_rest), dtype=run.dtype)
                longer[:, : beta.shape[1]] = beta
                beta = longer
            sums = self.sum_first[self.at[t] : self.at[t + 1]], self.sum_rest[self.at[t] : self.at[t + 1]]
            finish_backward(self.alpha[t], beta, self.phi[t], self.norm[t], self.slack, *sums)
            self.good[:n] &= self.norm[t] > 0
            if t:
                beta = np.empty((weights.n_first, n, weights.n_rest), dtype=run.dtype)
                self.move_back(self.phi[t], self.forth[t], beta)
        return bool(np.any(before & ~self.good))

    def give(self, weight: float) -> None:
        """Write log Z, and add the marginals, of the sentences that stayed in range."""
        run, weights = self.run, self.weights
        run.log_z[self.sentences[self.good]] = self.log_z[self.good]
        start = 1 if weights.n_first > 1 else 0
        sizes, scale = weights.sizes[start:], run.dtype.type(weight)
        good = np.concatenate([self.good[:n] for n in self.active])
        tokens = np.concatenate(self.tokens)[good]
        if start:
            run.marginals[0][tokens[:, None], weights.orders[0]] += self.sum_first[good] * scale
        whole = self.sum_rest[good].reshape(-1, *sizes)
        for k in range(len(sizes)):
            others = tuple(1 + j for j in range(len(sizes)) if j != k)
            here = whole.sum(axis=others) if others else whole
            run.marginals[start + k][tokens[:, None], weights.orders[start + k]] += here * scale
        if run.joint is not None:
            for t, n in enumerate(self.active):
                give_bundles(self.tokens[t], self.good[:n], self.alpha[t], weights.order, scale, run.joint)

    def tables(self) -> list[Any]:
        """Expected transitions, per side or, where there is one table for all sides, of bundles."""
        if not self.run.want_counts:
            return []
        if len(self.weights.tables) > 1:
            return [counts.result() for counts in self.counts]
        # one large product over all units instead of a large table for every unit
        size, (table,) = self.weights.n_rest, self.weights.tables
        if len(self.active) == 1:
            return [np.zeros((size, size), dtype=self.run.dtype)]
        x = np.concatenate([states[0].reshape(-1, size) for states in self.forth[1:]])
        w = np.concatenate([phi.reshape(-1, size) for phi in self.phi[1:]])
        return [table.steps(x, w, self.threads)]
