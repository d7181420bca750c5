"""Sums over all paths of a lattice, one sentence at a time: log Z, marginals, expected transitions.

    alpha_t = phi_t * (alpha_(t-1) moved) / c_t          log Z = sum_t log c_t + top_t + shift
    w_t     = phi_t * beta_t / c_t                        beta_(t-1) = w_t moved back
    P(bundle j at t) = alpha_t[j] beta_t[j]               (li2015 Eq. 4-6, li2016 Eq. 3-4)

``scaled_sums`` works on exponentials (float32 or float64) and says when they underflow; ``log_sums`` is the float64
road for those sentences. Both add to the same outputs, times ``weight``: +1 for the allowed lattice and -1 for the
whole one give a gradient.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from duilian.inference.lattice import is_product, slot_of
from duilian.inference.steps import (
    axis_size,
    log_move,
    log_move_back,
    log_outer,
    log_pair_block,
    move,
    move_back,
    n_axes,
    outer,
    pair_block,
    partial_sizes,
    side_block,
)
from duilian.kernels import fast_kernel, kernel


class Weights(NamedTuple):
    """What a step scores, as logarithms and as exponentials.

    tables:     (sum of sizes**2,) float32 or float64, exponentials of each side's table less the side's maximum
    joint:      (n_pairs,) same dtype, exponentials of the pairs' weights less joint_top; () for none
    absent:     (1,) same dtype, exp(-joint_top)
    shift:      (1,) float64, what every step lost: the sides' maxima and joint_top
    log_tables: (sum of sizes**2,) float64
    log_joint:  (n_pairs,) float64; () for none
    """

    tables: Any
    joint: Any
    absent: Any
    shift: Any
    log_tables: Any
    log_joint: Any


class Room(NamedTuple):
    """Working memory for one sentence at a time; a block of sentences uses the same room for all of them.

    alpha, beta, post: (bundles of a sentence,); forth, back: partly moved tensors; block: one cut table
    before, here: (S + 1, bundles of a token) int64; at: (tokens of a sentence + 1,) int64
    """

    alpha: Any
    beta: Any
    post: Any
    forth: Any
    back: Any
    block: Any
    before: Any
    here: Any
    at: Any


@kernel
def room_sizes(space: Any, first: Any, last: Any, pairs_weigh: Any) -> Any:
    """Sizes that a Room needs for sentences first:last: tokens, bundles, partial tensors, block, bundles of a token."""
    axes = n_axes(space, pairs_weigh)
    tokens, bundles, partials, block, width = np.int64(0), np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    for i in range(first, last):
        begin, end = space.offsets[i], space.offsets[i + 1]
        if end == begin:
            continue
        tokens = max(tokens, end - begin)
        bundles = max(bundles, space.starts[end] - space.starts[begin])
        at = np.zeros(end - begin + 1, np.int64)
        partial_sizes(space, begin, end, axes, at)
        partials = max(partials, at[end - begin])
        for t in range(begin, end):
            width = max(width, space.starts[t + 1] - space.starts[t])
            if t > begin:
                for axis in range(axes):
                    block = max(block, axis_size(space, t - 1, axis, axes) * axis_size(space, t, axis, axes))
    return tokens, bundles, partials, block, width


@kernel
def fill(space: Any, pairs: Any, weights: Any, t: Any, axis: Any, axes: Any, room: Any) -> None:
    if is_product(space) and (axes > 1 or (len(space.sizes) == 1 and len(weights.joint) == 0)):
        side_block(space, weights.tables, t, axis, room.block)
    else:
        pair_block(
            space, pairs, weights.tables, weights.joint, weights.absent[0], t, room.before, room.here, room.block
        )


@kernel
def log_fill(space: Any, pairs: Any, weights: Any, t: Any, axis: Any, axes: Any, room: Any) -> None:
    if is_product(space) and (axes > 1 or (len(space.sizes) == 1 and len(weights.log_joint) == 0)):
        side_block(space, weights.log_tables, t, axis, room.block)
    else:
        log_pair_block(space, pairs, weights.log_tables, weights.log_joint, t, room.before, room.here, room.block)


@fast_kernel
def scaled_forward(
    space: Any, pairs: Any, weights: Any, sentence: Any, phi: Any, top: Any, least: Any, room: Any, norm: Any
) -> Any:
    """alpha into room.alpha (each token sums to one), norm[t] = c_t; returns log Z, or NaN where c_t fell below least.

    phi (n_bundles,) exp(node - top), top (T,): see ``exponentials32``
    """
    begin, end = space.offsets[sentence], space.offsets[sentence + 1]
    axes = n_axes(space, len(weights.joint) > 0)
    partial_sizes(space, begin, end, axes, room.at)
    origin = space.starts[begin]
    log_z = weights.shift[0] * (end - begin - 1)
    alpha = room.alpha
    for t in range(begin, end):
        now = space.starts[t] - origin
        n = space.starts[t + 1] - space.starts[t]
        if t == begin:
            for j in range(n):
                alpha[now + j] = 1
        else:
            left, right = 1, space.starts[t] - space.starts[t - 1]
            source = space.starts[t - 1] - origin
            target = room.at[t - begin]
            for axis in range(axes):
                k_from, k_to = axis_size(space, t - 1, axis, axes), axis_size(space, t, axis, axes)
                right //= max(1, k_from)
                fill(space, pairs, weights, t, axis, axes, room)
                if axes == 1:
                    move(alpha, source, room.block, left, k_from, k_to, right, alpha, now)
                elif axis == 0:
                    move(alpha, source, room.block, left, k_from, k_to, right, room.forth, target)
                elif axis < axes - 1:
                    move(room.forth, source, room.block, left, k_from, k_to, right, room.forth, target)
                else:
                    move(room.forth, source, room.block, left, k_from, k_to, right, alpha, now)
                left *= k_to
                source = target
                target += left * right
        total = 0.0
        here = space.starts[t]
        for j in range(n):
            alpha[now + j] *= phi[here + j]
            total += alpha[now + j]
        if not total > least:
            return np.nan
        scale = alpha.dtype.type(1 / total)
        for j in range(n):
            alpha[now + j] *= scale
        norm[t - begin] = total
        log_z += np.log(total) + top[t]
    return log_z


@fast_kernel
def scaled_backward(
    space: Any, pairs: Any, weights: Any, sentence: Any, phi: Any, slack: Any, room: Any, norm: Any
) -> Any:
    """Marginals into room.post, w into room.beta (the first token's has no use), partly moved tensors into room.back.

    False where the marginals of some token do not sum to one within slack: the range of floats was exceeded.
    """
    begin, end = space.offsets[sentence], space.offsets[sentence + 1]
    axes = n_axes(space, len(weights.joint) > 0)
    origin = space.starts[begin]
    alpha, beta = room.alpha, room.beta
    for j in range(space.starts[end - 1] - origin, space.starts[end] - origin):
        beta[j] = 1
    for t in range(end - 1, begin - 1, -1):
        now, n = space.starts[t] - origin, space.starts[t + 1] - space.starts[t]
        total = 0.0
        for j in range(now, now + n):
            room.post[j] = alpha[j] * beta[j]
            total += room.post[j]
        if not abs(total - 1.0) < slack:
            return False
        if t == begin:
            return True
        scale = alpha.dtype.type(1 / norm[t - begin])
        for j in range(n):
            beta[now + j] *= phi[space.starts[t] + j] * scale
        left, right = n, 1
        source, target = now, room.at[t - begin + 1]
        before = space.starts[t - 1] - origin
        for axis in range(axes - 1, -1, -1):
            k_from, k_to = axis_size(space, t - 1, axis, axes), axis_size(space, t, axis, axes)
            left //= max(1, k_to)
            target -= left * k_from * right
            fill(space, pairs, weights, t, axis, axes, room)
            if axes == 1:
                move_back(beta, source, room.block, left, k_from, k_to, right, beta, before)
            elif axis == axes - 1:
                move_back(beta, source, room.block, left, k_from, k_to, right, room.back, target)
            elif axis > 0:
                move_back(room.back, source, room.block, left, k_from, k_to, right, room.back, target)
            else:
                move_back(room.back, source, room.block, left, k_from, k_to, right, beta, before)
            right *= k_from
            source = target
    return True


@fast_kernel
def scaled_counts(
    space: Any, pairs: Any, weights: Any, sentence: Any, room: Any, weight: Any, counts: Any, joint_counts: Any
) -> None:
    """counts[tables of each side] += weight * expected transitions, joint_counts[pairs] likewise; after both passes."""
    begin, end = space.offsets[sentence], space.offsets[sentence + 1]
    axes = n_axes(space, len(weights.joint) > 0)
    origin = space.starts[begin]
    n_sides = len(space.sizes)
    sided = is_product(space) and (axes > 1 or (n_sides == 1 and len(weights.joint) == 0))
    for t in range(begin + 1, end):
        before, now = space.starts[t - 1] - origin, space.starts[t] - origin
        if not sided:
            _pair_counts(space, pairs, weights, t, before, now, room, weight, counts, joint_counts)
            continue
        # F_s is alpha moved along the first s sides, G_s is w moved back along the others
        left, right = 1, now - before
        f, g = before, room.at[t - begin]
        for axis in range(axes):
            k_from, k_to = axis_size(space, t - 1, axis, axes), axis_size(space, t, axis, axes)
            right //= max(1, k_from)
            if axes == 1:
                outer(room.alpha, f, room.beta, now, left, k_from, k_to, right, room.block)
            elif axis == 0:
                outer(room.alpha, f, room.back, g, left, k_from, k_to, right, room.block)
            elif axis < axes - 1:
                outer(room.forth, f, room.back, g, left, k_from, k_to, right, room.block)
            else:
                outer(room.forth, f, room.beta, now, left, k_from, k_to, right, room.block)
            left *= k_to
            f = g
            g += left * right
            begin_to, begin_from = space.lists[t * n_sides + axis], space.lists[(t - 1) * n_sides + axis]
            for i in range(k_from):
                row = space.tables[axis] + space.kept[begin_from + i] * space.sizes[axis]
                for j in range(k_to):
                    p = row + space.kept[begin_to + j]
                    counts[p] += weight * room.block[i * k_to + j] * weights.tables[p]


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
        value = room.alpha[before + i]
        for j in range(n_here):
            room.block[i * n_here + j] *= value * room.beta[now + j]
    _add_pairs(space, pairs, n_before, n_here, room, weight, counts, joint_counts)


@kernel
def _add_pairs(
    space: Any, pairs: Any, n_before: Any, n_here: Any, room: Any, weight: Any, counts: Any, joint_counts: Any
) -> None:
    """Add weight * room.block to the counts of each side and of each pair of bundles."""
    n_sides = len(space.sizes)
    for i in range(n_before):
        at = i * n_here
        for s in range(n_sides):
            row = space.tables[s] + room.before[s, i] * space.sizes[s]
            for j in range(n_here):
                counts[row + room.here[s, j]] += weight * room.block[at + j]
        if len(joint_counts):
            for j in range(n_here):
                slot = slot_of(pairs, room.before[n_sides, i], room.here[n_sides, j])
                if slot >= 0:
                    joint_counts[slot] += weight * room.block[at + j]


@kernel
def log_forward(space: Any, pairs: Any, weights: Any, sentence: Any, node: Any, room: Any) -> Any:
    """log alpha (not scaled) into room.alpha, partly moved tensors into room.forth; returns log Z."""
    begin, end = space.offsets[sentence], space.offsets[sentence + 1]
    axes = n_axes(space, len(weights.log_joint) > 0)
    partial_sizes(space, begin, end, axes, room.at)
    origin = space.starts[begin]
    alpha = room.alpha
    for t in range(begin, end):
        now, n = space.starts[t] - origin, space.starts[t + 1] - space.starts[t]
        if n == 0:
            return -np.inf
        if t == begin:
            for j in range(n):
                alpha[now + j] = 0
        else:
            left, right = 1, space.starts[t] - space.starts[t - 1]
            source, target = space.starts[t - 1] - origin, room.at[t - begin]
            for axis in range(axes):
                k_from, k_to = axis_size(space, t - 1, axis, axes), axis_size(space, t, axis, axes)
                right //= max(1, k_from)
                log_fill(space, pairs, weights, t, axis, axes, room)
                if axes == 1:
                    log_move(alpha, source, room.block, left, k_from, k_to, right, alpha, now)
                elif axis == 0:
                    log_move(alpha, source, room.block, left, k_from, k_to, right, room.forth, target)
                elif axis < axes - 1:
                    log_move(room.forth, source, room.block, left, k_from, k_to, right, room.forth, target)
                else:
                    log_move(room.forth, source, room.block, left, k_from, k_to, right, alpha, now)
                left *= k_to
                source = target
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
    """log of beta * exp(node) into room.beta (of the first token too), partly moved tensors into room.back."""
    begin, end = space.offsets[sentence], space.offsets[sentence + 1]
    axes = n_axes(space, len(weights.log_joint) > 0)
    origin = space.starts[begin]
    beta = room.beta
    for j in range(space.starts[end - 1] - origin, space.starts[end] - origin):
        beta[j] = 0
    for t in range(end - 1, begin - 1, -1):
        now, n = space.starts[t] - origin, space.starts[t + 1] - space.starts[t]
        for j in range(n):
            beta[now + j] += node[space.starts[t] + j]
        if t == begin:
            return
        left, right = n, 1
        source, target = now, room.at[t - begin + 1]
        before = space.starts[t - 1] - origin
        for axis in range(axes - 1, -1, -1):
            k_from, k_to = axis_size(space, t - 1, axis, axes), axis_size(space, t, axis, axes)
            left //= max(1, k_to)
            target -= left * k_from * right
            log_fill(space, pairs, weights, t, axis, axes, room)
            if axes == 1:
                log_move_back(beta, source, room.block, left, k_from, k_to, right, beta, before)
            elif axis == axes - 1:
                log_move_back(beta, source, room.block, left, k_from, k_to, right, room.back, target)
            elif axis > 0:
                log_move_back(room.back, source, room.block, left, k_from, k_to, right, room.back, target)
            else:
                log_move_back(room.back, source, room.block, left, k_from, k_to, right, beta, before)
            right *= k_from
            source = target


@kernel
def log_marginals(space: Any, sentence: Any, node: Any, log_z: Any, room: Any) -> None:
    """Marginals into room.post, after both passes in log space."""
    begin, end = space.offsets[sentence], space.offsets[sentence + 1]
    origin = space.starts[begin]
    for j in range(space.starts[begin], space.starts[end]):
        value = room.alpha[j - origin] + room.beta[j - origin] - node[j]
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
    n_sides = len(space.sizes)
    sided = is_product(space) and (axes > 1 or (n_sides == 1 and len(weights.log_joint) == 0))
    for t in range(begin + 1, end):
        before, now = space.starts[t - 1] - origin, space.starts[t] - origin
        if not sided:
            log_fill(space, pairs, weights, t, 0, axes, room)
            n_before, n_here = now - before, space.starts[t + 1] - space.starts[t]
            for i in range(n_before):
                for j in range(n_here):
                    value = room.alpha[before + i] + room.block[i * n_here + j] + room.beta[now + j] - log_z
                    room.block[i * n_here + j] = np.exp(value)
            _add_pairs(space, pairs, n_before, n_here, room, weight, counts, joint_counts)
            continue
        left, right = 1, now - before
        f, g = before, room.at[t - begin]
        for axis in range(axes):
            k_from, k_to = axis_size(space, t - 1, axis, axes), axis_size(space, t, axis, axes)
            right //= max(1, k_from)
            log_fill(space, pairs, weights, t, axis, axes, room)
            if axes == 1:
                log_outer(room.alpha, f, room.beta, now, left, k_from, k_to, right, log_z, room.block)
            elif axis == 0:
                log_outer(room.alpha, f, room.back, g, left, k_from, k_to, right, log_z, room.block)
            elif axis < axes - 1:
                log_outer(room.forth, f, room.back, g, left, k_from, k_to, right, log_z, room.block)
            else:
                log_outer(room.forth, f, room.beta, now, left, k_from, k_to, right, log_z, room.block)
            left *= k_to
            f = g
            g += left * right
            begin_to, begin_from = space.lists[t * n_sides + axis], space.lists[(t - 1) * n_sides + axis]
            for i in range(k_from):
                row = space.tables[axis] + space.kept[begin_from + i] * space.sizes[axis]
                for j in range(k_to):
                    counts[row + space.kept[begin_to + j]] += weight * room.block[i * k_to + j]


@kernel
def add_marginals(space: Any, sentence: Any, room: Any, weight: Any, origin: Any, out: Any) -> None:
    """out[origin[bundle]] += weight * P(bundle) for one sentence; origin () stands for the bundle itself."""
    first = space.starts[space.offsets[sentence]]
    for j in range(first, space.starts[space.offsets[sentence + 1]]):
        out[origin[j] if len(origin) else j] += weight * room.post[j - first]


@kernel
def sentence_sums(
    space: Any,
    pairs: Any,
    weights: Any,
    sentence: Any,
    node: Any,
    phi: Any,
    top: Any,
    least: Any,
    slack: Any,
    room: Any,
    norm: Any,
    log_room: Any,
    weight: Any,
    origin: Any,
    marginals: Any,
    counts: Any,
    joint_counts: Any,
) -> Any:
    """Everything for one sentence: returns log Z; adds weight * marginals and weight * expected transitions.

    marginals (n_bundles of the origin,), counts (sum of sizes**2,) float64, joint_counts (n_pairs,) float64: () to leave
    out; a sentence whose Z is 0 adds nothing. log_room: a Room in float64, used where the exponentials underflow.
    """
    begin, end = space.offsets[sentence], space.offsets[sentence + 1]
    if end == begin:
        return 0.0
    log_z = scaled_forward(space, pairs, weights, sentence, phi, top, least, room, norm)
    wanted = len(marginals) > 0 or len(counts) > 0
    if log_z == log_z and not wanted:
        return log_z
    if log_z == log_z and scaled_backward(space, pairs, weights, sentence, phi, slack, room, norm):
        if len(marginals):
            add_marginals(space, sentence, room, weight, origin, marginals)
        if len(counts):
            scaled_counts(space, pairs, weights, sentence, room, weight, counts, joint_counts)
        return log_z
    log_z = log_forward(space, pairs, weights, sentence, node, log_room)
    if log_z == -np.inf or not wanted:
        return log_z
    log_backward(space, pairs, weights, sentence, node, log_room)
    if len(marginals):
        log_marginals(space, sentence, node, log_z, log_room)
        add_marginals(space, sentence, log_room, weight, origin, marginals)
    if len(counts):
        log_counts(space, pairs, weights, sentence, log_z, log_room, weight, counts, joint_counts)
    return log_z


@kernel
def block_sums(
    space: Any,
    pairs: Any,
    weights: Any,
    first: Any,
    last: Any,
    node: Any,
    phi: Any,
    top: Any,
    least: Any,
    slack: Any,
    room: Any,
    norm: Any,
    log_room: Any,
    weight: Any,
    origin: Any,
    log_z: Any,
    marginals: Any,
    counts: Any,
    joint_counts: Any,
) -> None:
    """``sentence_sums`` for sentences first:last, log_z[i] out."""
    for i in range(first, last):
        log_z[i] = sentence_sums(
            space,
            pairs,
            weights,
            i,
            node,
            phi,
            top,
            least,
            slack,
            room,
            norm,
            log_room,
            weight,
            origin,
            marginals,
            counts,
            joint_counts,
        )
