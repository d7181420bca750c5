"""Kernels of the complete space: what happens between the matrix products of ``grid.py``.

A state is (A, n, R): labels of the first side, sentences that are still going, labels of all other sides together.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from duilian.inference.lattice import is_product, write_token
from duilian.inference.steps import exp32
from duilian.kernels import fast_kernel, kernel


@fast_kernel
def fill32(tokens: Any, first: Any, rest: Any, joint: Any, order: Any, phi: Any, top: Any) -> None:
    """phi[a, i, r] = exp(first[t, a] + rest[i, r] + joint of the bundle - top[i]) with t = tokens[i], float32.

    first (T, A), rest (n, R), both in the order of the tables; joint (T, A * R) or (0, 0) for none
    order: (A + R,) where bundle (a, r) stands in joint: order[a] * R + order[A + r]; () for as it is
    phi (A, n, R), top (n,) out
    """
    n_first, n, n_rest = phi.shape
    low = np.float32(-np.inf)
    scratch = np.empty(n_first + n_rest, np.float32)
    for i in range(n):
        t = tokens[i]
        high_a, high_r = low, low
        for a in range(n_first):
            high_a = max(high_a, first[t, a])
        for r in range(n_rest):
            high_r = max(high_r, rest[i, r])
        top[i] = high_a + high_r
        if top[i] == low:
            for a in range(n_first):
                phi[a, i, :] = 0
        elif len(joint) == 0:
            for a in range(n_first):
                scratch[a] = exp32(first[t, a] - high_a)
            for r in range(n_rest):
                scratch[n_first + r] = exp32(rest[i, r] - high_r)
            for a in range(n_first):
                value = scratch[a]
                for r in range(n_rest):
                    phi[a, i, r] = value * scratch[n_first + r]
        else:
            high = low
            for a in range(n_first):
                value = first[t, a]
                if len(order):
                    at = order[a] * n_rest
                    for r in range(n_rest):
                        phi[a, i, r] = value + rest[i, r] + joint[t, at + order[n_first + r]]
                else:
                    row = joint[t, a * n_rest : (a + 1) * n_rest]
                    for r in range(n_rest):
                        phi[a, i, r] = value + rest[i, r] + row[r]
                for r in range(n_rest):
                    high = phi[a, i, r] if phi[a, i, r] > high else high
            top[i] = high
            for a in range(n_first):
                for r in range(n_rest):
                    phi[a, i, r] = exp32(phi[a, i, r] - high) if high > low else np.float32(0)


@kernel
def fill64(tokens: Any, first: Any, rest: Any, joint: Any, order: Any, phi: Any, top: Any) -> None:
    """As ``fill32`` in float64."""
    n_first, n, n_rest = phi.shape
    for i in range(n):
        t = tokens[i]
        high = -np.inf
        for a in range(n_first):
            for r in range(n_rest):
                score = first[t, a] + rest[i, r]
                if len(joint) and len(order):
                    score += joint[t, order[a] * n_rest + order[n_first + r]]
                elif len(joint):
                    score += joint[t, a * n_rest + r]
                phi[a, i, r] = score
                high = max(high, score)
        top[i] = high
        for a in range(n_first):
            for r in range(n_rest):
                phi[a, i, r] = np.exp(phi[a, i, r] - high) if high > -np.inf else 0.0


@fast_kernel
def finish_forward(alpha: Any, phi: Any, least: Any, norm: Any) -> None:
    """alpha *= phi, then each sentence scaled to sum to one; norm[i] is the sum before, 0 where it fell below least.

    alpha, phi (A, n, R); norm (n,) float64
    """
    n_first, n, n_rest = alpha.shape
    for i in range(n):
        total = 0.0
        for a in range(n_first):
            part = alpha.dtype.type(0)
            for r in range(n_rest):
                value = alpha[a, i, r] * phi[a, i, r]
                alpha[a, i, r] = value
                part += value
            total += part
        norm[i] = total if total > least else 0.0
        scale = alpha.dtype.type(1 / total if total > least else 0.0)
        for a in range(n_first):
            for r in range(n_rest):
                alpha[a, i, r] *= scale


@fast_kernel
def finish_backward(alpha: Any, beta: Any, phi: Any, norm: Any, slack: Any, sum_first: Any, sum_rest: Any) -> None:
    """alpha becomes the marginals alpha beta, phi becomes w = phi beta / norm.

    alpha, beta, phi (A, n, R); sum_first (n, A), sum_rest (n, R) out: marginals summed over the other part
    norm[i] becomes -1, and w zero, where the marginals of a sentence do not sum to one within slack
    """
    n_first, n, n_rest = alpha.shape
    for i in range(n):
        total = 0.0
        scale = alpha.dtype.type(1 / norm[i] if norm[i] > 0 else 0.0)
        for r in range(n_rest):
            sum_rest[i, r] = 0
        for a in range(n_first):
            part = alpha.dtype.type(0)
            for r in range(n_rest):
                value = alpha[a, i, r] * beta[a, i, r]
                alpha[a, i, r] = value
                part += value
                sum_rest[i, r] += value
                phi[a, i, r] *= beta[a, i, r] * scale
            sum_first[i, a] = part
            total += part
        if not abs(total - 1) < slack:
            norm[i] = -1.0
            for a in range(n_first):
                for r in range(n_rest):
                    phi[a, i, r] = 0


@fast_kernel
def give_bundles(tokens: Any, good: Any, post: Any, order: Any, weight: Any, out: Any) -> None:
    """out[tokens[i], bundle (a, r)] += weight * post[a, i, r] where good[i]; order as for ``fill32``."""
    n_first, n, n_rest = post.shape
    for i in range(n):
        if not good[i]:
            continue
        t = tokens[i]
        for a in range(n_first):
            if len(order):
                for r in range(n_rest):
                    out[t, order[a] * n_rest + order[n_first + r]] += weight * post[a, i, r]
            else:
                row = out[t, a * n_rest : (a + 1) * n_rest]
                for r in range(n_rest):
                    row[r] += weight * post[a, i, r]


@fast_kernel
def entries_first(x: Any, rows: Any, cols: Any, values: Any, out: Any) -> None:
    """out[cols[e], :] += values[e] * x[rows[e], :]; x (K', M), out (K, M)."""
    for e in range(len(rows)):
        i, j, value = rows[e], cols[e], values[e]
        for m in range(x.shape[1]):
            out[j, m] += value * x[i, m]


@fast_kernel
def entries_last(x: Any, rows: Any, cols: Any, values: Any, out: Any) -> None:
    """out[:, cols[e]] += x[:, rows[e]] * values[e]; x (M, K'), out (M, K)."""
    for m in range(x.shape[0]):
        for e in range(len(rows)):
            out[m, cols[e]] += x[m, rows[e]] * values[e]


@fast_kernel
def entry_counts_first(x: Any, y: Any, rows: Any, cols: Any, out: Any) -> None:
    """out[e] += sum_m x[rows[e], m] y[cols[e], m]; x (K', M), y (K, M)."""
    for e in range(len(rows)):
        total = x.dtype.type(0)
        i, j = rows[e], cols[e]
        for m in range(x.shape[1]):
            total += x[i, m] * y[j, m]
        out[e] += total


@fast_kernel
def entry_counts_last(x: Any, y: Any, rows: Any, cols: Any, out: Any) -> None:
    """out[e] += sum_m x[m, rows[e]] y[m, cols[e]]; x (M, K'), y (M, K)."""
    for m in range(x.shape[0]):
        for e in range(len(rows)):
            out[e] += x[m, rows[e]] * y[m, cols[e]]


@kernel
def run_of(space: Any, t: Any, side: Any) -> Any:
    """How the bundles of token t of a product run through one side's labels: as an array (left, k, right),
    with the place of the first label and of the one behind the last for k."""
    row = t * len(space.sizes)
    left, right = np.int64(1), np.int64(1)
    for s in range(len(space.sizes)):
        k = space.lists[row + s + 1] - space.lists[row + s]
        if s < side:
            left *= k
        elif s > side:
            right *= k
    return left, space.lists[row + side], space.lists[row + side + 1], right


@kernel
def take_side(space: Any, side: Any, node: Any, rows: Any, out: Any) -> None:
    """out[bundle] += node[t, label of the bundle on one side].

    side S stands for the bundle's code; rows: scratch for ``write_token``
    """
    for t in range(len(space.starts) - 1):
        if side == len(space.sizes) or not is_product(space):
            for j in range(write_token(space, t, rows)):
                out[space.starts[t] + j] += node[t, rows[side, j]]
            continue
        left, first, last, right = run_of(space, t, side)
        at = np.uint64(space.starts[t])
        for _ in range(left):
            for i in range(first, last):
                value = node[t, space.kept[i]]
                for r in range(np.uint64(right)):
                    out[at + r] += value
                at += np.uint64(right)


@kernel
def give_side(space: Any, side: Any, value: Any, tokens: Any, rows: Any, out: Any) -> None:
    """out[tokens[t], label of the bundle on one side] += value[bundle]; tokens () for t itself.

    side and rows as in ``take_side``
    """
    for t in range(len(space.starts) - 1):
        row = out[tokens[t] if len(tokens) else t]
        if side == len(space.sizes) or not is_product(space):
            for j in range(write_token(space, t, rows)):
                row[rows[side, j]] += value[space.starts[t] + j]
            continue
        left, first, last, right = run_of(space, t, side)
        at = np.uint64(space.starts[t])
        for _ in range(left):
            for i in range(first, last):
                total = row[space.kept[i]]
                for r in range(np.uint64(right)):
                    total += value[at + r]
                row[space.kept[i]] = total
                at += np.uint64(right)
