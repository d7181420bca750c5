"""The complete space, exact: every bundle at every unit, without building the product of the tables.

    node[t, a, b] = node_a[t, a] + node_b[t, b] + node_joint[t, a, b]
    alpha_t = (E_a^T alpha_(t-1) E_b) * exp(node_t) / c_t            without joint transitions: two matrix products
    alpha_t = (alpha_(t-1) E) * exp(node_t) / c_t                    with them: one, over all bundles

Cost per unit O(|Ta|^2 |Tb| + |Ta| |Tb|^2) instead of O(|Ta|^2 |Tb|^2); any number of sides. Sentences go side by side,
longest first, so that each product is large enough for BLAS, which runs on one thread; blocks of sentences run in
parallel. Start and end scores belong into the nodes. Given labels make a small lattice: ``gradient``, ``lattice``.

li2015 Eq. 2-6 with the complete mapping. States and products: ``grid_run.py``, ``grid_tables.py``; kernels:
``grid_kernels.py``, ``grid_maxima.py``; twins by enumeration: ``tests/naive/grid.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duilian.inference import bundles
from duilian.inference.blocks import run_blocks, sentence_blocks
from duilian.inference.grid_maxima import best_paths, steps_of
from duilian.inference.grid_run import GridSums, GridWeights, Run, joint_table, scores_of
from duilian.inference.lattice import Lattice, product
from duilian.ragged import Ragged, offsets_of

Floats = NDArray[Any]

__all__ = ["GridSums", "GridWeights", "gradient", "joint_table", "lattice", "scores_of", "sums", "viterbi"]


def sums(
    offsets: NDArray[np.int64],
    nodes: Sequence[Floats],
    transitions: Sequence[Floats] | GridWeights,
    node_joint: Floats | None = None,
    joint: Floats | None = None,
    *,
    bundles_too: bool = False,
    counts: bool = True,
    threads: int = 1,
) -> GridSums:
    """log Z, marginals and expected transitions over every bundle at every unit.

    offsets: (n_sentences + 1,);  nodes: per side (T, L), float32 or all float64;  node_joint: (T, N) or None
    joint: (N, N) joint transition scores or None;  bundles_too: also the marginals of bundles
    """
    run = Run(offsets, nodes, transitions, node_joint, joint, bundles_too, counts)
    run.add(1.0, np.arange(run.n_sentences), threads)
    return run.result()


def gradient(
    offsets: NDArray[np.int64],
    nodes: Sequence[Floats],
    transitions: Sequence[Floats] | GridWeights,
    allowed: Lattice,
    node_joint: Floats | None = None,
    joint: Floats | None = None,
    *,
    threads: int = 1,
) -> GridSums:
    """log Z(allowed) - log Z per sentence, and expectations under allowed less those under all bundles.

    allowed: what the given labels leave, from ``lattice``. Marginals of bundles come along when node_joint is given.
    A sentence whose allowed paths are all impossible adds nothing. (li2015 Eq. 5-6)
    """
    run = Run(offsets, nodes, transitions, node_joint, joint, node_joint is not None, True)
    possible = run.add_lattice(1.0, allowed, threads)
    inner = run.log_z.copy()
    run.add(-1.0, np.flatnonzero(possible), threads)
    run.log_z = inner - np.where(possible, run.log_z, 0.0)
    return run.result()


def lattice(offsets: NDArray[np.int64], sizes: Sequence[int], allowed: Sequence[Any]) -> Lattice:
    """The bundles that given labels leave; allowed: per side a mask (T, L), or None for a side that is free."""
    n_tokens = int(offsets[-1])
    lists = []
    for size, mask in zip(sizes, allowed, strict=True):
        if mask is None:
            lists.append(bundles.full_lists(n_tokens, size))
        else:
            token, label = np.nonzero(mask)
            lists.append(Ragged(label.astype(np.int32), offsets_of(np.bincount(token, minlength=n_tokens))))
    return product(offsets, lists, sizes)


def viterbi(
    offsets: NDArray[np.int64],
    nodes: Sequence[Floats],
    transitions: Sequence[Floats] | GridWeights,
    node_joint: Floats | None = None,
    joint: Floats | None = None,
    *,
    threads: int = 1,
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """The best bundles of every sentence: labels (T, S) int32, -1 where no path is possible, and scores (n_sentences,).

    Maxima are taken side by side as sums are; nothing is stored on the way but the maxima, the way back looks again.
    """
    run = Run(offsets, nodes, transitions, node_joint, joint, False, False)
    weights = run.weights
    logs = [np.ascontiguousarray(table, dtype=run.dtype) for table in weights.transitions]
    tables = np.concatenate([table.ravel() for table in logs])
    whole = np.zeros((0, 0), run.dtype) if weights.joint is None else joint_table(logs, weights.joint).astype(run.dtype)
    flat = np.concatenate(run.nodes, axis=1)
    none = np.zeros((run.n_tokens, 0), dtype=run.dtype)
    sizes = np.array(weights.sizes, dtype=np.int64)
    steps = steps_of(logs)
    labels = np.empty((run.n_tokens, len(sizes)), dtype=np.int32)
    scores = np.empty(run.n_sentences)

    def work(first: int, last: int) -> None:
        longest = int(np.diff(run.offsets[first : last + 1]).max())
        delta = np.empty((longest, weights.n_bundles), dtype=run.dtype)
        room = np.empty((2, weights.n_bundles), dtype=run.dtype)
        extra = none if run.node_joint is None else run.node_joint
        best_paths(run.offsets, first, last, sizes, flat, extra, tables, whole, steps, delta, room, labels, scores)

    run_blocks(work, sentence_blocks(run.offsets, bundles.N_BLOCKS), threads)
    return labels, scores
