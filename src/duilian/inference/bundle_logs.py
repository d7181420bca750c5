"""Forward-backward over a lattice in logarithms: the road for sentences whose exponentials underflow.

    alpha_t = node_t + log of exp(alpha_(t-1)) moved          beta_(t-1) = log of exp(node_t + beta_t) moved back

Slower than ``bundle_sums.py``, and used for what that leaves over; tied to it by the tests.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from duilian.inference.bundle_room import add_marginals, add_pairs, log_fill
from duilian.inference.lattice import is_product
from duilian.inference.steps import axis_size, log_move, log_move_back, log_outer, n_axes, partial_sizes
from duilian.kernels import kernel


@kernel
def log_forward(space: Any, pairs: Any, weights: Any, sentence: Any, node: Any, room: Any) -> Any:
    """log alpha (not scaled) into room.forth, partly moved tensors into room.forth; returns log Z."""
    begin, end = space.offsets[sentence], space.offsets[sentence + 1]
    axes = n_axes(space, len(weights.log_joint) > 0)
    partial_sizes(space, begin, end, axes, room.at)
    origin = space.starts[begin]
    behind = space.starts[end] - origin
    alpha = room.forth
    for t in range(begin, end):
        now, n = space.starts[t] - origin, space.starts[t + 1] - space.starts[t]
        if n == 0:
            return -np.inf
        if t == begin:
            for j in range(n):
                alpha[now + j] = 0
        else:
            left, right = 1, space.starts[t] - space.starts[t - 1]
            source, target = space.starts[t - 1] - origin, behind + room.at[t - begin]
            for axis in range(axes):
                k_from, k_to = axis_size(space, t - 1, axis, axes), axis_size(space, t, axis, axes)
                right //= max(1, k_from)
                log_fill(space, pairs, weights, t, axis, axes, room)
                to = now if axis == axes - 1 else target
                log_move(alpha, source, room.block, left, k_from, k_to, right, alpha, to)
                left *= k_to
                source = to
                target += left * right
        for j in range(n):
            alpha[now + j] += node[space.starts[t] + j]
    return log_sum(alpha, space.starts[end - 1] - origin, space.starts[end] - origin)


@kernel
def log_sum(x: Any, begin: Any, end: Any) -> Any:
    """log of the sum of exp(x[begin:end])."""
    top = -np.inf
    for j in range(begin, end):
        top = max(top, x[j])
    if top == -np.inf:
        return top
    total = 0.0
    for j in range(begin, end):
        total += np.exp(x[j] - top)
    return top + np.log(total)


@kernel
def log_backward(space: Any, pairs: Any, weights: Any, sentence: Any, node: Any, room: Any) -> None:
    """log of beta * exp(node) into room.back (of the first token too), partly moved tensors into room.back."""
    begin, end = space.offsets[sentence], space.offsets[sentence + 1]
    axes = n_axes(space, len(weights.log_joint) > 0)
    origin = space.starts[begin]
    behind = space.starts[end] - origin
    beta = room.back
    for j in range(space.starts[end - 1] - origin, space.starts[end] - origin):
        beta[j] = 0
    for t in range(end - 1, begin - 1, -1):
        now, n = space.starts[t] - origin, space.starts[t + 1] - space.starts[t]
        for j in range(n):
            beta[now + j] += node[space.starts[t] + j]
        if t == begin:
            return
        left, right = n, 1
        source, target = now, behind + room.at[t - begin + 1]
        before = space.starts[t - 1] - origin
        for axis in range(axes - 1, -1, -1):
            k_from, k_to = axis_size(space, t - 1, axis, axes), axis_size(space, t, axis, axes)
            left //= max(1, k_to)
            target -= left * k_from * right
            log_fill(space, pairs, weights, t, axis, axes, room)
            to = before if axis == 0 else target
            log_move_back(beta, source, room.block, left, k_from, k_to, right, beta, to)
            right *= k_from
            source = to


@kernel
def log_marginals(space: Any, sentence: Any, node: Any, log_z: Any, room: Any) -> None:
    """Marginals into room.post, after both passes in log space."""
    begin, end = space.offsets[sentence], space.offsets[sentence + 1]
    origin = space.starts[begin]
    for j in range(space.starts[begin], space.starts[end]):
        value = room.forth[j - origin] + room.back[j - origin] - node[j]
        room.post[j - origin] = np.exp(value - log_z) if node[j] > -np.inf else 0.0


@kernel
def log_counts(
    space: Any,
    pairs: Any,
    weights: Any,
    sentence: Any,
    log_z: Any,
    room: Any,
    weight: Any,
    counts: Any,
    joint_counts: Any,
) -> None:
    """As ``scaled_counts``, after both passes in log space."""
    begin, end = space.offsets[sentence], space.offsets[sentence + 1]
    axes = n_axes(space, len(weights.log_joint) > 0)
    origin = space.starts[begin]
    behind = space.starts[end] - origin
    n_sides = len(space.sizes)
    sided = is_product(space) and (axes > 1 or (n_sides == 1 and len(weights.log_joint) == 0))
    for t in range(begin + 1, end):
        before, now = space.starts[t - 1] - origin, space.starts[t] - origin
        if not sided:
            log_fill(space, pairs, weights, t, 0, axes, room)
            n_before, n_here = now - before, space.starts[t + 1] - space.starts[t]
            for i in range(n_before):
                for j in range(n_here):
                    value = room.forth[before + i] + room.block[i * n_here + j] + room.back[now + j] - log_z
                    room.block[i * n_here + j] = np.exp(value)
            add_pairs(space, pairs, n_before, n_here, room, weight, counts, joint_counts)
            continue
        left, right = 1, now - before
        f, partial = before, behind + room.at[t - begin]
        for axis in range(axes):
            k_from, k_to = axis_size(space, t - 1, axis, axes), axis_size(space, t, axis, axes)
            right //= max(1, k_from)
            g = now if axis == axes - 1 else partial
            log_fill(space, pairs, weights, t, axis, axes, room)
            log_outer(room.forth, f, room.back, g, left, k_from, k_to, right, log_z, room.block)
            left *= k_to
            f = partial
            partial += left * right
            begin_to, begin_from = space.lists[t * n_sides + axis], space.lists[(t - 1) * n_sides + axis]
            for i in range(k_from):
                row = space.tables[axis] + space.kept[begin_from + i] * space.sizes[axis]
                for j in range(k_to):
                    counts[row + space.kept[begin_to + j]] += weight * room.block[i * k_to + j]


@kernel
def block_logs(
    space: Any, pairs: Any, weights: Any, first: Any, last: Any, node: Any, room: Any, weight: Any, results: Any
) -> None:
    """As ``block_sums``, for those sentences of first:last whose log Z it left at NaN; room in float64."""
    for i in range(first, last):
        if results.log_z[i] == results.log_z[i]:
            continue
        log_z = log_forward(space, pairs, weights, i, node, room)
        results.log_z[i] = log_z
        if log_z == -np.inf or not (len(results.marginals) or len(results.counts)):
            continue
        log_backward(space, pairs, weights, i, node, room)
        if len(results.marginals):
            log_marginals(space, i, node, log_z, room)
            add_marginals(space, i, room, weight, results)
        if len(results.counts):
            log_counts(space, pairs, weights, i, log_z, room, weight, results.counts, results.joint_counts)
