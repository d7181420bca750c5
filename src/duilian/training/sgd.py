"""Stochastic gradient descent for the chain CRF: log-likelihood with L2, mini-batches, averaged weights.

    L = sum_s g_s (log Z(allowed_s) - log Z(all_s)) - (c2 / 2) |w|^2    gradient E_allowed[f] - E[f]  (li2015 Eq. 4-6)

g_s is 1 unless sentences are weighed (``training/doubt.py``). A sentence whose labels are all known is the case of one
allowed sequence. The L2 term shrinks a scalar beside the weights, so that a step touches only the rows of its batch;
the rate is eta / (1 + eta * lambda * steps), with lambda = c2 / N, as in CRFsuite's l2sgd, and eta is calibrated on a
sample unless it is given. A row's step is divided by the square root of how often its feature occurs
(``learners.row_rates``): a feature that is there at every unit sums up a batch of gradients, and without this the rate
that it bears is too small for all others.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from duilian.inference.chain import backward, constrain, exponentials, exponentials64, forward, room_for
from duilian.kernels import fast_kernel, kernel
from duilian.models.weights import add, score

EPSILON = 1e-9
"""Labels with a smaller marginal are left out of the expected transitions: less than float32 resolves."""

LIMIT = 80.0
"""Transitions of a larger size go to ``careful``: their exponentials come near the ends of float32."""


class Steps(NamedTuple):
    """Numbers that the walk carries along, as arrays of one: steps taken, scale of the weights, and
    how many sentences had no finite probability and were skipped."""

    taken: Any
    scale: Any
    skipped: Any


@fast_kernel
def careful(
    node: Any, n: Any, trans: Any, start: Any, end: Any, scale: Any, runs: Any, back: Any, alpha: Any, pairs: Any
) -> Any:
    """``forward`` and ``backward`` in float64, for sentences that float32 cannot hold.

    node (n, L); alpha (>= n, L) float32 marginals out; pairs (L, L) float32 expected transitions, added to.
    Returns log Z, not finite when there is no label sequence or a weight has run away.
    """
    n_labels = trans.shape[0]
    table = np.exp(trans.astype(np.float64) * scale)
    psi, wide = np.empty((n, n_labels)), np.empty((n, n_labels))
    norm, beta, sums = np.empty(n + 1), np.empty((n, n_labels)), np.zeros((n_labels, n_labels))
    top = exponentials64(node.astype(np.float64), n, psi)
    e_end = np.exp(end.astype(np.float64) * scale)
    log_z = top + forward(psi, n, table, np.exp(start.astype(np.float64) * scale), e_end, runs, wide, norm)
    if not -np.inf < log_z < np.inf:
        return log_z
    backward(psi, n, table.T.copy(), e_end, runs, back, wide, norm, beta, sums, 0.0)
    for t in range(n):
        for j in range(n_labels):
            alpha[t, j] = wide[t, j]
    for i in range(n_labels):
        for j in range(n_labels):
            pairs[i, j] += sums[i, j] * table[i, j]
    return log_z


@kernel
def any_beyond(values: Any, scale: Any) -> Any:
    """Whether scale times any of the values, other than -inf, is beyond LIMIT. values (n,)."""
    for k in range(len(values)):
        size = abs(values[k] * scale)
        if size > LIMIT and size < np.inf:
            return True
    return False


@kernel
def longest_of(sentences: Any, order: Any, batch: Any) -> Any:
    """Units in the longest sentence, and in the largest batch, of a walk in this order."""
    longest, most = 1, 1
    for b in range(0, len(order), batch):
        units = 0
        for k in range(b, min(b + batch, len(order))):
            n = sentences[order[k] + 1] - sentences[order[k]]
            units += n
            longest = max(longest, n)
        most = max(most, units)
    return longest, most


@fast_kernel
def crf_steps(
    sparse: Any, trans: Any, start: Any, end: Any, runs: Any, back: Any, features: Any, labels: Any, set_data: Any,
    set_offsets: Any, sentences: Any, order: Any, batch: Any, steps: Any, eta: Any, decay: Any, rates: Any,
    table_rate: Any, gains: Any,
) -> Any:  # fmt: skip
    """Walk sentences in the given order, a step for each batch; returns the sum of their log-likelihoods.

    sparse: Sparse; features: Features; labels (U,) int32 as in ``inference.chain.constrain``; order (n,) int64;
    trans (L, L), start, end (L,) float32 with -inf where the grammar forbids; steps: Steps; decay: lambda;
    rates (n_rows,) float32 and table_rate: what the step is multiplied by for a feature's row, and for the tables;
    gains (S,) float32: how much each sentence's log-likelihood counts, or () where all count 1
    eta 0 sums up log-likelihoods and changes nothing.
    """
    n_labels = trans.shape[0]
    longest, most = longest_of(sentences, order, batch)
    f = np.float32
    node = np.empty((most, n_labels), f)
    free = np.empty((longest, n_labels), f)
    width = room_for(n_labels, runs)
    psi, alpha, beta = np.zeros((longest, width), f), np.zeros((longest, width), f), np.zeros((longest, width), f)
    norm = np.empty(longest + 1, f)
    bits = np.empty(n_labels, np.int32)
    power = bits.view(np.float32)
    scaled = np.empty((1, n_labels), f)
    table, turned = np.zeros((n_labels, width), f), np.zeros((n_labels, width), f)
    e_start, e_end = np.zeros(width, f), np.zeros(width, f)
    pairs, all_pairs = np.zeros((n_labels, width), f), np.zeros((n_labels, width), f)
    more, counts = np.empty((n_labels, n_labels), f), np.empty((n_labels, n_labels), f)
    g_start, g_end = np.empty(n_labels, f), np.empty(n_labels, f)
    eps = f(EPSILON)
    total: Any = 0.0
    for b in range(0, len(order), batch):
        stop = min(b + batch, len(order))
        scale = f(steps.scale[0])
        wide = any_beyond(trans.reshape(-1), scale) or any_beyond(start, scale) or any_beyond(end, scale)
        for i in range(n_labels):
            for j in range(n_labels):
                scaled[0, j] = trans[i, j] * scale
            top = exponentials(scaled, 1, table[i : i + 1], bits, power)
            for j in range(n_labels):
                table[i, j] *= f(np.exp(top))
                turned[j, i] = table[i, j]
        for j in range(n_labels):
            e_start[j] = np.exp(start[j] * scale)
            e_end[j] = np.exp(end[j] * scale)
            g_start[j] = 0
            g_end[j] = 0
        all_pairs[:] = 0
        counts[:] = 0
        at = 0
        for k in range(b, stop):
            first, last = sentences[order[k]], sentences[order[k] + 1]
            n = last - first
            if n == 0:
                continue
            gain = gains[order[k]] if len(gains) else f(1)
            here = node[at : at + n]
            at += n
            score(sparse, features, first, last, scale, here)
            known = True
            for t in range(n):
                known = known and labels[first + t] >= 0
            goal = 0.0
            if known:
                goal = np.float64(start[labels[first]]) + end[labels[last - 1]]
                for t in range(n - 1):
                    goal += trans[labels[first + t], labels[first + t + 1]]
                goal *= scale
                for t in range(n):
                    goal += here[t, labels[first + t]]
                if goal == -np.inf:  # labels that the grammar forbids, as where a word was cut in two: nothing to learn
                    here[:] = 0
                    continue
            else:
                free[:n] = here
            pairs[:] = 0
            log_z = -np.inf
            if not wide:
                top = exponentials(here, n, psi, bits, power)
                log_z = forward(psi, n, table, e_start, e_end, runs, alpha, norm) + top
            if eta == 0 and known and -np.inf < log_z < np.inf:
                total += gain * (goal - log_z)
                continue
            if -np.inf < log_z < np.inf:
                backward(psi, n, turned, e_end, runs, back, alpha, norm, beta, pairs, eps)
                if n > 1:  # a single unit takes no step, and 0 times a table that overflowed is not 0
                    for i in range(n_labels):
                        for j in range(n_labels):
                            pairs[i, j] *= table[i, j]
            else:
                log_z = careful(here, n, trans, start, end, scale, runs, back, alpha, pairs)
            if not -np.inf < log_z < np.inf:
                here[:] = 0
                steps.skipped[0] += 1
                continue
            for t in range(n):
                for j in range(n_labels):
                    here[t, j] = -gain * alpha[t, j]
            if known:
                for t in range(n):
                    here[t, labels[first + t]] += gain
                for t in range(n - 1):
                    counts[labels[first + t], labels[first + t + 1]] += gain
            else:
                constrain(free, first, last, labels, set_data, set_offsets)
                more[:] = 0
                goal = careful(free[:n], n, trans, start, end, scale, runs, back, alpha, more)
                if not -np.inf < goal < np.inf:
                    here[:] = 0
                    continue
                counts += gain * more
                for t in range(n):
                    for j in range(n_labels):
                        here[t, j] += gain * alpha[t, j]
            all_pairs += gain * pairs
            total += gain * (goal - log_z)
            for j in range(n_labels):
                g_start[j] += here[0, j]
                g_end[j] += here[n - 1, j]
        if eta == 0:
            continue
        rate = eta / (1 + eta * decay * steps.taken[0])
        steps.taken[0] += 1
        steps.scale[0] *= 1 - rate * decay
        step = f(rate / steps.scale[0])
        at = 0
        for k in range(b, stop):
            first, last = sentences[order[k]], sentences[order[k] + 1]
            here = node[at : at + last - first]
            at += last - first
            for t in range(last - first):
                for j in range(n_labels):
                    here[t, j] *= step
            add(sparse, rates, features, first, last, here)
        step *= f(table_rate)
        for i in range(n_labels):
            start[i] += step * g_start[i]
            end[i] += step * g_end[i]
            for j in range(n_labels):
                trans[i, j] += step * (counts[i, j] - all_pairs[i, j])
    return total


@kernel
def blend(mean: Any, weights: Any, scale: Any, share: Any) -> None:
    """mean += share * (scale * weights - mean). mean (n,) float64, weights (n,) float32; -inf stays -inf."""
    for k in range(len(mean)):
        now = scale * weights[k]
        mean[k] = now if now == -np.inf else mean[k] + share * (now - mean[k])
