"""Sums and maxima over bundles: candidates at every unit, one label per side in each (li2015 Eq. 2-6, li2016 Eq. 1-4).

    score(path) = sum_t node[bundle_t] + sum_t sum_s transitions_s[label_s of t - 1, label_s of t]
                  + sum_t joint[bundle_(t-1), bundle_t]                                     (joint: optional)

A score for how a sentence starts or ends belongs into the nodes of its first or last token. The
log-likelihood of a sentence with some labels given is log Z(allowed) - log Z: the same lattice with fewer candidates,
two calls or ``gradient``.

float32 nodes take the fast road (scaled exponentials; log space where they underflow), float64 nodes the precise one.
Kernels: ``bundle_sums.py``, ``bundle_maxima.py``, ``steps.py``; twins by enumeration: ``tests/naive/bundles.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duilian.inference.blocks import run_blocks, sentence_blocks
from duilian.inference.bundle_logs import block_logs
from duilian.inference.bundle_maxima import nbest_sentence, sample_sentence, span_sentence, viterbi_block
from duilian.inference.bundle_room import Results, Room, Weights, room_sizes
from duilian.inference.bundle_sums import block_sums
from duilian.inference.lattice import Lattice, Pairs, index_pairs, room_for_token
from duilian.inference.steps import exponentials32, exponentials64
from duilian.ragged import Ragged, offsets_of

Floats = NDArray[Any]

# Below LEAST a token's scaled sum, or farther than SLACK from one its marginals, and the sentence goes to log space.
LEAST = {"float32": 1e-12, "float64": 1e-150}
SLACK = {"float32": 2e-3, "float64": 1e-7}
N_BLOCKS = 8

_NO_FLOATS = np.zeros(0)
_NO_INTS = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Sums:
    """What forward-backward finds.

    log_z:        (n_sentences,) float64, -inf where no path is possible
    marginals:    (n_bundles,) P(bundle); zeros where no path is possible
    counts:       per side (L, L) float64, expected number of times a label follows another, over all sentences
    joint_counts: (n_pairs,) float64, expected number of times a pair of bundles occurs; () without joint weights
    """

    log_z: NDArray[np.float64]
    marginals: Floats
    counts: tuple[NDArray[np.float64], ...]
    joint_counts: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Paths:
    """One path per sentence.

    bundles: (T,) int64, number of the bundle in the lattice, -1 where no path is possible
    labels:  (T, S) int32, its label on each side, -1 likewise
    scores:  (n_sentences,) float64
    """

    bundles: NDArray[np.int64]
    labels: NDArray[np.int32]
    scores: NDArray[np.float64]


def weights_of(transitions: Sequence[Any], joint: Any = None, dtype: Any = np.float64) -> Weights:
    """The weights as kernels want them; compute once for many calls with the same weights.

    transitions: per side (L, L), from row to column; joint: (n_pairs,) or None
    """
    log_tables = [np.asarray(table, dtype=np.float64) for table in transitions]
    tops = [_finite_max(table) for table in log_tables]
    log_joint = _NO_FLOATS if joint is None else np.ascontiguousarray(joint, dtype=np.float64).ravel()
    joint_top = max(0.0, _finite_max(log_joint)) if len(log_joint) else 0.0
    flat = [np.exp(table - top).astype(dtype).ravel() for table, top in zip(log_tables, tops, strict=True)]
    return Weights(
        np.concatenate(flat),
        np.exp(log_joint - joint_top).astype(dtype),
        np.array([np.exp(-joint_top)], dtype=dtype),
        np.array([sum(tops) + joint_top]),
        np.concatenate([table.ravel() for table in log_tables]),
        log_joint,
    )


def sums(
    lattice: Lattice,
    node: Floats,
    transitions: Sequence[Any] | Weights,
    joint: Any = None,
    pairs: Pairs | None = None,
    *,
    marginals: bool = True,
    counts: bool = True,
    threads: int = 1,
) -> Sums:
    """log Z of every sentence, and on request marginals and expected transitions.

    node: (n_bundles,) float32 or float64; transitions: per side (L, L), or what ``weights_of`` made of them
    joint: (n_pairs,) weights of the pairs that ``pairs`` numbers; pairs None: every pair of bundles has one
    """
    run = _Run(lattice, node, transitions, joint, pairs)
    out = np.zeros(lattice.n_bundles if marginals else 0, dtype=run.node.dtype)
    log_z, flat, joint_counts = run.add(1.0, _NO_INTS, out, counts, threads)
    return Sums(log_z, out, split_counts(flat, lattice) if counts else (), joint_counts)


def log_partition(
    lattice: Lattice, node: Floats, transitions: Sequence[Any] | Weights, joint: Any = None, pairs: Pairs | None = None
) -> NDArray[np.float64]:
    """(n_sentences,) log Z."""
    return sums(lattice, node, transitions, joint, pairs, marginals=False, counts=False).log_z


def gradient(
    whole: Lattice,
    allowed: Lattice,
    node: Floats,
    transitions: Sequence[Any] | Weights,
    joint: Any = None,
    pairs: Pairs | None = None,
    *,
    threads: int = 1,
) -> Sums:
    """log-likelihoods and their gradient: log Z(allowed) - log Z, and expectations under allowed less those under all.

    allowed: a restriction of whole (``restrict``, ``restrict_sides``); node and marginals: over the bundles of whole.
    A sentence whose log-likelihood is not finite adds nothing.  (li2015 Eq. 5-6)
    """
    if allowed.origin is None:
        raise ValueError("the allowed lattice must come from restrict or restrict_sides of the whole one")
    run = _Run(whole, node, transitions, joint, pairs)
    inner = _Run(allowed, run.node[allowed.origin], run.weights, joint, pairs)
    out = np.zeros(whole.n_bundles, dtype=run.node.dtype)
    log_allowed, flat, joint_counts = inner.add(1.0, allowed.origin, out, True, threads)
    possible = log_allowed > -np.inf
    log_all, flat_all, joint_all = run.add(-1.0, _NO_INTS, out, True, threads, skip=~possible)
    log_z = np.where(possible, log_allowed - np.where(possible, log_all, 0.0), -np.inf)
    return Sums(log_z, out, split_counts(flat + flat_all, whole), joint_counts + joint_all)


def viterbi(
    lattice: Lattice,
    node: Floats,
    transitions: Sequence[Any] | Weights,
    joint: Any = None,
    pairs: Pairs | None = None,
    *,
    threads: int = 1,
) -> Paths:
    """The best path of every sentence; the first in the order of bundles where several are best."""
    run = _Run(lattice, node, transitions, joint, pairs, exponentials=False)
    path = np.empty(lattice.n_tokens, dtype=np.int64)
    score = np.empty(lattice.n_sentences)

    def work(first: int, last: int) -> None:
        room, _ = run.room(first, last, np.float64)
        back = np.empty(len(room.forth), dtype=np.int32)
        viterbi_block(lattice.space, run.pairs, run.weights, first, last, run.node, room, back, path, score)

    run_blocks(work, sentence_blocks(lattice.space.starts[lattice.space.offsets], N_BLOCKS), threads)
    return Paths(path, labels_on(lattice, path), score)


def nbest(
    lattice: Lattice,
    node: Floats,
    transitions: Sequence[Any] | Weights,
    n: int,
    joint: Any = None,
    pairs: Pairs | None = None,
) -> list[list[tuple[float, NDArray[np.int64]]]]:
    """The n best paths of every sentence, best first, as (score, bundle numbers); fewer where there are fewer."""
    run = _Run(lattice, node, transitions, joint, pairs, exponentials=False)
    before, here = room_for_token(lattice.space), room_for_token(lattice.space)
    found = []
    for i in range(lattice.n_sentences):
        paths = np.empty((n, lattice.space.offsets[i + 1] - lattice.space.offsets[i]), dtype=np.int64)
        scores = np.empty(n)
        m = nbest_sentence(lattice.space, run.pairs, run.weights, i, run.node, n, before, here, paths, scores)
        found.append([(float(scores[k]), paths[k].copy()) for k in range(m)])
    return found


def sample(
    lattice: Lattice,
    node: Floats,
    transitions: Sequence[Any] | Weights,
    n: int,
    rng: np.random.Generator,
    joint: Any = None,
    pairs: Pairs | None = None,
) -> NDArray[np.int64]:
    """(n, T) n paths of every sentence drawn from P(path), as bundle numbers; -1 where no path is possible."""
    run = _Run(lattice, node, transitions, joint, pairs, exponentials=False)
    out = np.full((n, lattice.n_tokens), -1, dtype=np.int64)
    room, _ = run.room(0, lattice.n_sentences, np.float64)
    for i in range(lattice.n_sentences):
        begin, end = lattice.space.offsets[i], lattice.space.offsets[i + 1]
        if begin == end:
            continue
        paths = np.full((n, end - begin), -1, dtype=np.int64)
        uniform = rng.random((n, end - begin))
        sample_sentence(lattice.space, run.pairs, run.weights, i, run.node, room, uniform, paths)
        out[:, begin:end] = paths
    return out


def span_probabilities(
    lattice: Lattice,
    node: Floats,
    transitions: Sequence[Any] | Weights,
    side: int,
    labels: NDArray[np.int32],
    spans: NDArray[np.int64],
    joint: Any = None,
    pairs: Pairs | None = None,
    *,
    threads: int = 1,
) -> NDArray[np.float64]:
    """P(one side carries these labels all over a span): the confidence of a decoded word.

    labels: (T,) on that side; spans: (n_spans + 1,) token numbers, spans one after the other over the whole batch, none
    across two sentences
    """
    run = _Run(lattice, node, transitions, joint, pairs, exponentials=False)
    spans, offsets = np.ascontiguousarray(spans, dtype=np.int64), lattice.space.offsets
    firsts = np.searchsorted(spans, offsets)
    if spans[0] != 0 or spans[-1] != lattice.n_tokens or np.any(np.diff(spans) <= 0):
        raise ValueError(f"spans must rise from 0 to {lattice.n_tokens}")
    if not np.array_equal(spans[firsts], offsets):
        raise ValueError("a span crosses the end of a sentence")
    labels = np.ascontiguousarray(labels, dtype=np.int32)
    out = np.zeros(len(spans) - 1)

    def work(first: int, last: int) -> None:
        room, _ = run.room(first, last, np.float64)
        for i in range(first, last):
            if offsets[i] < offsets[i + 1]:
                a, b = firsts[i], firsts[i + 1]
                span_sentence(lattice.space, run.pairs, run.weights, i, run.node, room, side, labels, spans, a, b, out)

    run_blocks(work, sentence_blocks(lattice.space.starts[offsets], N_BLOCKS), threads)
    return out


def side_marginals(lattice: Lattice, marginals: Floats) -> tuple[NDArray[np.float64], ...]:
    """Per side (T, L) the probability of each label: bundles summed over the other sides."""
    labels = lattice.labels
    token = np.repeat(np.arange(lattice.n_tokens), np.diff(lattice.space.starts))
    found: list[NDArray[np.float64]] = []
    for s, size in enumerate(lattice.space.sizes):
        flat = np.bincount(token * size + labels[:, s], weights=marginals, minlength=lattice.n_tokens * size)
        found.append(flat.astype(np.float64, copy=False).reshape(lattice.n_tokens, size))
    return tuple(found)


def labels_on(lattice: Lattice, bundles: NDArray[np.int64]) -> NDArray[np.int32]:
    """(..., S) the labels of bundles, -1 for bundle -1."""
    if lattice.n_bundles == 0:
        return np.full((*bundles.shape, lattice.n_sides), -1, dtype=np.int32)
    return np.where((bundles < 0)[..., None], np.int32(-1), lattice.labels[np.maximum(bundles, 0)])


def split_counts(flat: NDArray[np.float64], lattice: Lattice) -> tuple[NDArray[np.float64], ...]:
    """The flat tables of all sides -> per side (L, L), as views."""
    edges, sizes = lattice.space.tables, lattice.space.sizes
    return tuple(flat[edges[s] : edges[s + 1]].reshape(size, size) for s, size in enumerate(sizes))


class _Run:
    """One lattice with its scores, checked and converted at the door."""

    def __init__(
        self,
        lattice: Lattice,
        node: Floats,
        transitions: Any,
        joint: Any,
        pairs: Pairs | None,
        exponentials: bool = True,
    ) -> None:
        node = np.ascontiguousarray(node)
        if node.dtype != np.float32 or not exponentials:
            node = node.astype(np.float64, copy=False)
        if node.shape != (lattice.n_bundles,):
            raise ValueError(f"{lattice.n_bundles} node scores were expected, found an array of shape {node.shape}")
        self.lattice, self.node = lattice, node
        if isinstance(transitions, Weights):
            self.weights = transitions
        else:
            self.weights = weights_of(transitions, joint, node.dtype)
        if len(self.weights.tables) != lattice.space.tables[-1]:
            raise ValueError(f"transition tables must be square, of sizes {lattice.space.sizes.tolist()}")
        n_codes = int(np.prod(lattice.space.sizes))
        self.pairs = index_pairs(n_codes) if pairs is None else pairs
        if pairs is None and len(self.weights.joint) not in (0, n_codes**2):
            raise ValueError(
                f"{len(self.weights.joint)} joint weights for {n_codes**2} pairs: give their numbers in pairs"
            )
        if exponentials and self.weights.tables.dtype != node.dtype:
            raise ValueError(f"nodes are {node.dtype}, the weights were prepared as {self.weights.tables.dtype}")

    def room(self, first: int, last: int, dtype: Any) -> tuple[Room, Any]:
        """Working memory for a block, and the buffer for the scale of each token."""
        weigh = len(self.weights.log_joint) > 0
        tokens, bundles, states, block, width = room_sizes(self.lattice.space, first, last, weigh)
        forth, back, post, table = (np.empty(size, dtype=dtype) for size in (states, states, bundles, block))
        before, here = (np.empty((self.lattice.n_sides + 1, width), dtype=np.int64) for _ in range(2))
        at = np.empty(tokens + 1, dtype=np.int64)
        return Room(forth, back, post, table, before, here, at), np.empty(tokens + 1)

    def add(
        self,
        weight: float,
        origin: NDArray[np.int64],
        out: Floats,
        counts: bool,
        threads: int,
        skip: NDArray[np.bool_] | None = None,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Add weight * marginals to out; returns log Z, flat counts and joint counts, both times weight."""
        space, node, weights = self.lattice.space, self.node, self.weights
        phi, top = np.empty_like(node), np.empty(self.lattice.n_tokens, dtype=node.dtype)
        log_z = np.zeros(self.lattice.n_sentences)
        least, slack = LEAST[node.dtype.name], SLACK[node.dtype.name]
        n_counts = int(space.tables[-1]) if counts else 0
        n_joint = len(weights.joint) if counts else 0
        exponentials = exponentials32 if node.dtype == np.float32 else exponentials64

        def work(first: int, last: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
            exponentials(node, space.starts, space.offsets[first], space.offsets[last], phi, top)
            room, norm = self.room(first, last, node.dtype)
            results = Results(log_z, out, origin, np.zeros(n_counts), np.zeros(n_joint))
            runs = [(first, last)] if skip is None else _runs(skip, first, last)
            for a, b in runs:
                block_sums(space, self.pairs, weights, a, b, phi, top, least, slack, room, norm, weight, results)
                if np.isnan(log_z[a:b]).any():
                    log_room, _ = self.room(a, b, np.float64)
                    block_logs(space, self.pairs, weights, a, b, node, log_room, weight, results)
            return results.counts, results.joint_counts

        blocks = sentence_blocks(space.starts[space.offsets], N_BLOCKS if n_joint < 1 << 20 else 1)
        parts = run_blocks(work, blocks, threads)
        if len(parts) == 1:
            return log_z, *parts[0]
        flat, joint_flat = np.zeros(n_counts), np.zeros(n_joint)
        for table, joint_table in parts:
            flat += table
            joint_flat += joint_table
        return log_z, flat, joint_flat


def _runs(skip: NDArray[np.bool_], first: int, last: int) -> list[tuple[int, int]]:
    """Runs of sentences of first:last that are not skipped."""
    edges = np.flatnonzero(np.diff(np.concatenate([[True], skip[first:last], [True]]))) + first
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def _finite_max(table: Any) -> float:
    finite = table[np.isfinite(table)]
    return float(finite.max()) if finite.size else 0.0


def full_lists(n_tokens: int, size: int) -> Ragged:
    """Every label of a side at every token."""
    return Ragged(np.tile(np.arange(size, dtype=np.int32), n_tokens), offsets_of(np.full(n_tokens, size)))
