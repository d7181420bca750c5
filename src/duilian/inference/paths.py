"""Posteriors and paths of a linear chain in float64: marginals, spans, n best, random. Batches of sentences.

Arrays: node (U, L) scores, -inf where a label is not allowed; trans (L, L), start (L,), end (L,) scores, -inf where not
possible; sentences (S + 1,) int64 into the units. Scores as in ``inference.chain``. Twins: ``tests/naive/chain.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from duilian.inference.chain import Runs, exponentials64, forward, runs_of, spread
from duilian.kernels import kernel

Floats = NDArray[np.float64]


@kernel
def _posteriors(
    node: Any, sentences: Any, trans: Any, start: Any, end: Any, runs: Any, back: Any, log_z: Any, alpha: Any,
    beta: Any, steps: Any,
) -> None:  # fmt: skip
    """alpha * beta are the marginals; steps[t] is the factor of unit t: psi[t] / norm[t]; both (U, L) out."""
    n_labels = node.shape[1]
    table, e_start, e_end = np.exp(trans), np.exp(start), np.exp(end)
    turned = table.T.copy()
    for s in range(len(sentences) - 1):
        first, last = sentences[s], sentences[s + 1]
        n = last - first
        if n == 0:
            continue
        psi = np.empty((n, n_labels))
        norm = np.empty(n + 1)
        top = exponentials64(node[first:last], n, psi)
        a, b, f = alpha[first:last], beta[first:last], steps[first:last]
        log_z[s] = top + forward(psi, n, table, e_start, e_end, runs, a, norm)
        if not log_z[s] > -np.inf:
            log_z[s] = -np.inf
            a[:] = 0
            b[:] = 0
            f[:] = 0
            continue
        for t in range(n):
            f[t] = psi[t] / norm[t]
        b[n - 1] = e_end / norm[n]
        for t in range(n - 2, -1, -1):
            b[t] = 0
            spread(turned, f[t + 1] * b[t + 1], back, b[t])


@kernel
def _spans(alpha: Any, beta: Any, steps: Any, trans: Any, labels: Any, begins: Any, ends: Any, out: Any) -> None:
    """Probability that units begins[k]..ends[k] carry exactly labels[begins[k]:ends[k]]."""
    for k in range(len(begins)):
        p = alpha[begins[k], labels[begins[k]]]
        for t in range(begins[k] + 1, ends[k]):
            p *= np.exp(trans[labels[t - 1], labels[t]]) * steps[t, labels[t]]
        out[k] = min(1.0, p * beta[ends[k] - 1, labels[ends[k] - 1]])


@kernel
def _n_best(node: Any, n: Any, trans: Any, start: Any, end: Any, k_best: Any, paths: Any, scores: Any) -> Any:
    """The k best label sequences of one sentence, best first; returns how many there are.

    node (n, L); paths (k, n) int32, scores (k,) out. Equal scores: the one whose last differing label is smaller first.
    """
    n_labels = node.shape[1]
    score = np.full((n, n_labels, k_best), -np.inf)
    back = np.zeros((n, n_labels, k_best), np.int64)
    for j in range(n_labels):
        score[0, j, 0] = start[j] + node[0, j]
    for t in range(1, n):
        for j in range(n_labels):
            here = node[t, j]
            if here == -np.inf:
                continue
            for i in range(n_labels):
                for r in range(k_best):
                    s = score[t - 1, i, r] + trans[i, j] + here
                    if not s > score[t, j, k_best - 1]:
                        break
                    at = k_best - 1
                    while at > 0 and s > score[t, j, at - 1]:
                        score[t, j, at] = score[t, j, at - 1]
                        back[t, j, at] = back[t, j, at - 1]
                        at -= 1
                    score[t, j, at] = s
                    back[t, j, at] = i * k_best + r
    top = np.full(k_best, -np.inf)
    ends = np.zeros(k_best, np.int64)
    for j in range(n_labels):
        for r in range(k_best):
            s = score[n - 1, j, r] + end[j]
            if not s > top[k_best - 1]:
                break
            at = k_best - 1
            while at > 0 and s > top[at - 1]:
                top[at] = top[at - 1]
                ends[at] = ends[at - 1]
                at -= 1
            top[at] = s
            ends[at] = j * k_best + r
    found = 0
    for r in range(k_best):
        if top[r] == -np.inf:
            break
        scores[r] = top[r]
        code = ends[r]
        for t in range(n - 1, -1, -1):
            paths[r, t] = code // k_best
            code = back[t, code // k_best, code % k_best]
        found += 1
    return found


@kernel
def _draw(alpha: Any, trans: Any, end: Any, n: Any, uniform: Any, path: Any) -> None:
    """One random label sequence, from the last unit back; uniform (n,) numbers in [0, 1)."""
    n_labels = alpha.shape[1]
    weight = np.empty(n_labels)
    for t in range(n - 1, -1, -1):
        total = 0.0
        for i in range(n_labels):
            weight[i] = alpha[t, i] * (np.exp(end[i]) if t == n - 1 else np.exp(trans[i, path[t + 1]]))
            total += weight[i]
        left = uniform[t] * total
        choice = -1
        for i in range(n_labels):
            if weight[i] > 0:
                choice = i
                left -= weight[i]
                if left < 0:
                    break
        path[t] = choice


class Posteriors:
    """Forward and backward over a batch, kept for questions.

    log_z:     (S,) log of the sum over all label sequences, -inf where none is possible
    marginals: (U, L) probability of each label at each unit
    """

    def __init__(self, node: Any, sentences: Any, trans: Any, start: Any, end: Any, runs: Runs | None = None) -> None:
        self.node, self.trans, self.start, self.end = (
            np.ascontiguousarray(array, np.float64) for array in (node, trans, start, end)
        )
        self.sentences = np.ascontiguousarray(sentences, np.int64)
        self.log_z: Floats = np.zeros(len(self.sentences) - 1)
        self.alpha, self.beta, self.steps = (np.zeros(self.node.shape) for _ in range(3))
        allowed = self.trans > -np.inf
        _posteriors(
            self.node, self.sentences, self.trans, self.start, self.end, runs or runs_of(allowed), runs_of(allowed.T),
            self.log_z, self.alpha, self.beta, self.steps,
        )  # fmt: skip

    @property
    def marginals(self) -> Floats:
        return np.asarray(self.alpha * self.beta)

    def of_labels(self, labels: Any) -> Floats:
        """(U,) marginal of the given label at each unit."""
        at = np.arange(len(labels))
        return np.asarray(np.minimum(1.0, self.alpha[at, labels] * self.beta[at, labels]))

    def of_spans(self, labels: Any, begins: Any, ends: Any) -> Floats:
        """(N,) probability that each span, inside one sentence and not empty, carries exactly the given labels."""
        out = np.empty(len(begins))
        _spans(self.alpha, self.beta, self.steps, self.trans, np.asarray(labels, np.int32), begins, ends, out)
        return out

    def sample(self, rng: np.random.Generator) -> NDArray[np.int32]:
        """(U,) one random labelling of each sentence, drawn from the model."""
        path = np.zeros(len(self.node), np.int32)
        uniform = rng.random(len(self.node))
        for first, last in zip(self.sentences[:-1], self.sentences[1:], strict=True):
            if last > first:
                _draw(self.alpha[first:last], self.trans, self.end, last - first, uniform[first:last], path[first:last])
        return path


def n_best(node: Any, trans: Any, start: Any, end: Any, k: int) -> tuple[NDArray[np.int32], Floats]:
    """The k best label sequences of one sentence (fewer where there are fewer) and their scores, best first."""
    if k < 1:
        raise ValueError(f"n best needs at least 1, found {k}")
    node, trans, start, end = (np.ascontiguousarray(array, np.float64) for array in (node, trans, start, end))
    paths, scores = np.zeros((k, len(node)), np.int32), np.zeros(k)
    if len(node) == 0:
        return paths[:1], scores[:1]
    found = _n_best(node, len(node), trans, start, end, k, paths, scores)
    return paths[:found], scores[:found]
