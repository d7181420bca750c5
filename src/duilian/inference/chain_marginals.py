"""Marginals and best paths of a chain in float32, many sentences at a time: what pruning asks for.

Scores of how sentences start and end belong into the nodes. Twin: ``tests/naive/chain.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from duilian.inference.chain import Runs, backward, exponentials, forward, runs_of, viterbi
from duilian.inference.paths import Posteriors
from duilian.kernels import fast_kernel, kernel

ALL = 2.0
"""No marginal is larger: ``backward`` then leaves all expected transitions out."""


@fast_kernel
def _marginals(node: Any, sentences: Any, table: Any, turned: Any, runs: Any, back: Any, out: Any, good: Any) -> None:
    """out (T, L) float32 the marginals; good (S,) bool, False for a sentence that float32 cannot hold."""
    n_labels = node.shape[1]
    longest = 1
    for s in range(len(sentences) - 1):
        longest = max(longest, sentences[s + 1] - sentences[s])
    f = np.float32
    psi, norm, beta = np.empty((longest, n_labels), f), np.empty(longest + 1, f), np.empty((longest, n_labels), f)
    bits = np.empty(n_labels, np.int32)
    power = bits.view(np.float32)
    ones = np.ones(n_labels, f)
    pairs = np.zeros((1, n_labels), f)
    for s in range(len(sentences) - 1):
        first, last = sentences[s], sentences[s + 1]
        n = last - first
        good[s] = True
        if n == 0:
            continue
        exponentials(node[first:last], n, psi, bits, power)
        alpha = out[first:last]
        log_z = forward(psi, n, table, ones, ones, runs, alpha, norm)
        if not -np.inf < log_z < np.inf:
            good[s] = False
            continue
        backward(psi, n, turned, ones, runs, back, alpha, norm, beta, pairs, f(ALL))


@kernel
def _paths(node: Any, sentences: Any, trans: Any, runs: Any, out: Any) -> None:
    """out (T,) int32 the best labels of every sentence."""
    n_labels = node.shape[1]
    longest = 1
    for s in range(len(sentences) - 1):
        longest = max(longest, sentences[s + 1] - sentences[s])
    best, zeros = np.empty((longest, n_labels), np.float32), np.zeros(n_labels, np.float32)
    for s in range(len(sentences) - 1):
        first, last = sentences[s], sentences[s + 1]
        if last > first:
            viterbi(node[first:last], last - first, trans, zeros, zeros, runs, best, out[first:last])


def best_paths(node: NDArray[np.float32], sentences: NDArray[np.int64], trans: NDArray[np.float32]) -> Any:
    """(T,) int32 the best labels; any where a sentence has no possible path. node, trans as in ``marginals``."""
    out = np.zeros(len(node), np.int32)
    _paths(np.ascontiguousarray(node), sentences, trans, runs_of(trans > -np.inf), out)
    return out


def marginals(node: NDArray[np.float32], sentences: NDArray[np.int64], trans: NDArray[np.float32]) -> Any:
    """(T, L) float32 P(label at unit); zeros where a sentence has no possible path.

    node: (T, L) scores with those of how sentences start and end; trans: (L, L); -inf where impossible
    """
    allowed = trans > -np.inf
    runs, back = runs_of(allowed), runs_of(allowed.T)
    top = float(trans[allowed].max()) if allowed.any() else 0.0
    table = np.exp(trans - np.float32(top)).astype(np.float32)
    out, good = np.zeros(node.shape, np.float32), np.ones(len(sentences) - 1, np.bool_)
    _marginals(np.ascontiguousarray(node), sentences, table, np.ascontiguousarray(table.T), runs, back, out, good)
    for s in np.flatnonzero(~good).tolist():
        first, last = int(sentences[s]), int(sentences[s + 1])
        out[first:last] = careful_marginals(node[first:last], trans, runs)
    return out


def careful_marginals(node: Any, trans: Any, runs: Runs | None = None) -> Any:
    """The same of one sentence in float64."""
    none = np.zeros(trans.shape[0])
    return Posteriors(node, np.array([0, len(node)]), trans, none, none, runs).marginals
