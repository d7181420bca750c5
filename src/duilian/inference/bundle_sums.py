"""Sums over all paths of a lattice, one sentence at a time: log Z, marginals, expected transitions.

    alpha_t = phi_t * (alpha_(t-1) moved) / c_t          log Z = sum_t log c_t + top_t + shift
    w_t     = phi_t * beta_t / c_t                        beta_(t-1) = w_t moved back
    P(bundle j at t) = alpha_t[j] beta_t[j]               (li2015 Eq. 4-6, li2016 Eq. 3-4)

The passes work on exponentials, float32 or float64, and say when they underflow; ``bundle_logs.py`` is the road for
those sentences. Both add to the same outputs, times ``weight``: +1 for the allowed lattice and -1 for the whole one
give a gradient.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from duilian.inference.bundle_room import add_marginals, add_pairs, fill
from duilian.inference.lattice import is_product
from duilian.inference.steps import add_side_block, axis_size, move, move_back, n_axes, outer, pair_block, partial_sizes
from duilian.kernels import fast_kernel, kernel


@fast_kernel
def scaled_forward(
    space: Any, pairs: Any, weights: Any, sentence: Any, phi: Any, top: Any, least: Any, room: Any, norm: Any
) -> Any:
    """alpha into room.forth (each token sums to one), norm[t] = c_t; returns log Z, or NaN where c_t fell below least.

    phi (n_bundles,) exp(node - top), top (T,): see ``exponentials32``
    """
    begin, end = space.offsets[sentence], space.offsets[sentence + 1]
    axes = n_axes(space, len(weights.joint) > 0)
    partial_sizes(space, begin, end, axes, room.at)
    origin = space.starts[begin]
    behind = space.starts[end] - origin
    log_z = weights.shift[0] * (end - begin - 1)
    alpha = room.forth
    for t in range(begin, end):
        now = space.starts[t] - origin
        n = space.starts[t + 1] - space.starts[t]
        if t == begin:
            for j in range(n):
                alpha[now + j] = 1
        else:
            left, right = 1, space.starts[t] - space.starts[t - 1]
            source, target = space.starts[t - 1] - origin, behind + room.at[t - begin]
            for axis in range(axes):
                k_from, k_to = axis_size(space, t - 1, axis, axes), axis_size(space, t, axis, axes)
                right //= max(1, k_from)
                fill(space, pairs, weights, t, axis, axes, room)
                to = now if axis == axes - 1 else target
                move(alpha, source, room.block, left, k_from, k_to, right, alpha, to)
                left *= k_to
                source = to
                target += left * right
        total = alpha.dtype.type(0)
        first, last, back = np.uint64(now), np.uint64(now + n), np.uint64(origin)
        for j in range(first, last):
            alpha[j] *= phi[back + j]
            total += alpha[j]
        if not total > least:
            return np.nan
        scale = alpha.dtype.type(1 / total)
        for j in range(first, last):
            alpha[j] *= scale
        norm[t - begin] = total
        log_z += np.log(total) + top[t]
    return log_z


@fast_kernel
def scaled_backward(
    space: Any, pairs: Any, weights: Any, sentence: Any, phi: Any, slack: Any, room: Any, norm: Any
) -> Any:
    """Marginals into room.post, w into room.back (the first token's has no use), partly moved tensors into room.back.

    False where the marginals of some token do not sum to one within slack: the range of floats was exceeded.
    """
    begin, end = space.offsets[sentence], space.offsets[sentence + 1]
    axes = n_axes(space, len(weights.joint) > 0)
    origin = space.starts[begin]
    behind = space.starts[end] - origin
    alpha, beta = room.forth, room.back
    for j in range(space.starts[end - 1] - origin, space.starts[end] - origin):
        beta[j] = 1
    for t in range(end - 1, begin - 1, -1):
        now, n = space.starts[t] - origin, space.starts[t + 1] - space.starts[t]
        total = alpha.dtype.type(0)
        first, last, shift = np.uint64(now), np.uint64(now + n), np.uint64(origin)
        for j in range(first, last):
            value = alpha[j] * beta[j]
            room.post[j] = value
            total += value
        if not abs(total - 1.0) < slack:
            return False
        if t == begin:
            return True
        scale = alpha.dtype.type(1 / norm[t - begin])
        for j in range(first, last):
            beta[j] *= phi[shift + j] * scale
        left, right = n, 1
        source, target = now, behind + room.at[t - begin + 1]
        before = space.starts[t - 1] - origin
        for axis in range(axes - 1, -1, -1):
            k_from, k_to = axis_size(space, t - 1, axis, axes), axis_size(space, t, axis, axes)
            left //= max(1, k_to)
            target -= left * k_from * right
            fill(space, pairs, weights, t, axis, axes, room)
            to = before if axis == 0 else target
            move_back(beta, source, room.block, left, k_from, k_to, right, beta, to)
            right *= k_from
            source = to
    return True


@fast_kernel
def scaled_counts(
    space: Any, pairs: Any, weights: Any, sentence: Any, room: Any, weight: Any, counts: Any, joint_counts: Any
) -> None:
    """counts[tables of each side] += weight * expected transitions, joint_counts[pairs] likewise; after both passes."""
    begin, end = space.offsets[sentence], space.offsets[sentence + 1]
    axes = n_axes(space, len(weights.joint) > 0)
    origin = space.starts[begin]
    behind = space.starts[end] - origin
    n_sides = len(space.sizes)
    sided = is_product(space) and (axes > 1 or (n_sides == 1 and len(weights.joint) == 0))
    for t in range(begin + 1, end):
        before, now = space.starts[t - 1] - origin, space.starts[t] - origin
        if not sided:
            _pair_counts(space, pairs, weights, t, before, now, room, weight, counts, joint_counts)
            continue
        # F_s is alpha moved along the first s sides, G_s is w moved back along the others
        left, right = 1, now - before
        f, partial = before, behind + room.at[t - begin]
        for axis in range(axes):
            k_from, k_to = axis_size(space, t - 1, axis, axes), axis_size(space, t, axis, axes)
            right //= max(1, k_from)
            g = now if axis == axes - 1 else partial
            outer(room.forth, f, room.back, g, left, k_from, k_to, right, room.block)
            add_side_block(space, weights.tables, t, axis, weight, room.block, counts)
            left *= k_to
            f = partial
            partial += left * right


@fast_kernel
def _pair_counts(
    space: Any,
    pairs: Any,
    weights: Any,
    t: Any,
    before: Any,
    now: Any,
    room: Any,
    weight: Any,
    counts: Any,
    joint_counts: Any,
) -> None:
    pair_block(space, pairs, weights.tables, weights.joint, weights.absent[0], t, room.before, room.here, room.block)
    n_before, n_here = space.starts[t] - space.starts[t - 1], space.starts[t + 1] - space.starts[t]
    for i in range(n_before):
        value = room.forth[before + i]
        for j in range(n_here):
            room.block[i * n_here + j] *= value * room.back[now + j]
    add_pairs(space, pairs, n_before, n_here, room, weight, counts, joint_counts)


@kernel
def block_sums(
    space: Any,
    pairs: Any,
    weights: Any,
    first: Any,
    last: Any,
    phi: Any,
    top: Any,
    least: Any,
    slack: Any,
    room: Any,
    norm: Any,
    weight: Any,
    results: Any,
) -> None:
    """log Z of sentences first:last, and weight * marginals and expected transitions added to what results wants.

    A sentence whose exponentials leave the range of floats gets NaN and adds nothing: ``block_logs`` is for those.
    """
    for i in range(first, last):
        results.log_z[i] = 0.0
        if space.offsets[i] == space.offsets[i + 1]:
            continue
        log_z = scaled_forward(space, pairs, weights, i, phi, top, least, room, norm)
        if log_z == log_z and (len(results.marginals) or len(results.counts)):
            if not scaled_backward(space, pairs, weights, i, phi, slack, room, norm):
                log_z = np.nan
            else:
                if len(results.marginals):
                    add_marginals(space, i, room, weight, results)
                if len(results.counts):
                    scaled_counts(space, pairs, weights, i, room, weight, results.counts, results.joint_counts)
        results.log_z[i] = log_z
