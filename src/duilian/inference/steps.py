"""One step between two tokens of a lattice: tables cut to the candidates, and tensors moved along one side at a time.

    alpha'[a, b] = sum over a', b' of alpha[a', b'] E_a[a', a] E_b[b', b]

is done side by side: first a' becomes a, then b' becomes b. A tensor that is partly moved has the new labels of the
first sides and the old labels of the others; seen from one side it is (left, k, right). A lattice that lists its
bundles, or has weights on pairs of bundles, takes the same steps with all sides as one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from duilian.inference.lattice import is_product, slot_of, write_token
from duilian.kernels import fast_kernel, kernel

_LOG2E = 1.4426950408889634


@kernel
def n_axes(space: Any, pairs_weigh: Any) -> Any:
    """In how many moves a step is done: one per side, or one for all."""
    return len(space.sizes) if is_product(space) and not pairs_weigh else 1


@kernel
def axis_size(space: Any, t: Any, axis: Any, axes: Any) -> Any:
    """Number of candidates of token t on one axis."""
    if axes == 1 and not (len(space.sizes) == 1 and is_product(space)):
        return space.starts[t + 1] - space.starts[t]
    row = t * len(space.sizes) + axis
    return space.lists[row + 1] - space.lists[row]


@kernel
def partial_sizes(space: Any, begin: Any, end: Any, axes: Any, at: Any) -> None:
    """at[i]: where the partly moved tensors of the step into token begin + i start in a buffer; at[n] is its size."""
    at[0] = 0
    for t in range(begin, end):
        at[t - begin + 1] = at[t - begin]
        if t == begin:
            continue
        size = space.starts[t] - space.starts[t - 1]
        for axis in range(axes - 1):
            size = size // max(1, axis_size(space, t - 1, axis, axes)) * axis_size(space, t, axis, axes)
            at[t - begin + 1] += size


@fast_kernel
def side_block(space: Any, table: Any, t: Any, side: Any, block: Any) -> None:
    """block[i * k + j] = table of one side from label i of token t - 1 to label j of token t."""
    n_sides = len(space.sizes)
    size = space.sizes[side]
    here, before = t * n_sides + side, (t - 1) * n_sides + side
    begin, k = space.lists[here], space.lists[here + 1] - space.lists[here]
    first = space.lists[before]
    for i in range(space.lists[before + 1] - first):
        row = space.tables[side] + space.kept[first + i] * size
        if k == size:
            # all labels, which are in ascending order
            at, to = np.uint64(row), np.uint64(i * k)
            for j in range(np.uint64(k)):
                block[to + j] = table[at + j]
        else:
            for j in range(k):
                block[i * k + j] = table[row + space.kept[begin + j]]


@fast_kernel
def add_side_block(space: Any, table: Any, t: Any, side: Any, weight: Any, block: Any, counts: Any) -> None:
    """counts of one side += weight * block * table, at the places where ``side_block`` reads."""
    n_sides = len(space.sizes)
    size = space.sizes[side]
    here, before = t * n_sides + side, (t - 1) * n_sides + side
    begin, k = space.lists[here], space.lists[here + 1] - space.lists[here]
    first = space.lists[before]
    for i in range(space.lists[before + 1] - first):
        row = space.tables[side] + space.kept[first + i] * size
        if k == size:
            at, source = np.uint64(row), np.uint64(i * k)
            for j in range(np.uint64(k)):
                counts[at + j] += weight * (block[source + j] * table[at + j])
        else:
            for j in range(k):
                p = row + space.kept[begin + j]
                counts[p] += weight * (block[i * k + j] * table[p])


@kernel
def pair_block(
    space: Any, pairs: Any, table: Any, weight: Any, absent: Any, t: Any, before: Any, here: Any, block: Any
) -> None:
    """block[i * k + j] = product of all sides' tables and of the pair's weight, from bundle i of t - 1 to j of t.

    weight: (n_pairs,) exponentials, () for none; absent: what a pair without a weight counts
    before, here: scratch for ``write_token``
    """
    n_before, n_here = write_token(space, t - 1, before), write_token(space, t, here)
    n_sides = len(space.sizes)
    for i in range(n_before):
        at = i * n_here
        row = before[0, i] * space.sizes[0]
        for j in range(n_here):
            block[at + j] = table[row + here[0, j]]
        for s in range(1, n_sides):
            row = space.tables[s] + before[s, i] * space.sizes[s]
            for j in range(n_here):
                block[at + j] *= table[row + here[s, j]]
        if len(weight):
            for j in range(n_here):
                slot = slot_of(pairs, before[n_sides, i], here[n_sides, j])
                block[at + j] *= weight[slot] if slot >= 0 else absent


@kernel
def log_pair_block(space: Any, pairs: Any, table: Any, weight: Any, t: Any, before: Any, here: Any, block: Any) -> None:
    """As ``pair_block`` in log space: sums, and a pair without a weight adds nothing."""
    n_before, n_here = write_token(space, t - 1, before), write_token(space, t, here)
    n_sides = len(space.sizes)
    for i in range(n_before):
        at = i * n_here
        row = before[0, i] * space.sizes[0]
        for j in range(n_here):
            block[at + j] = table[row + here[0, j]]
        for s in range(1, n_sides):
            row = space.tables[s] + before[s, i] * space.sizes[s]
            for j in range(n_here):
                block[at + j] += table[row + here[s, j]]
        if len(weight):
            for j in range(n_here):
                slot = slot_of(pairs, before[n_sides, i], here[n_sides, j])
                if slot >= 0:
                    block[at + j] += weight[slot]


# Indices that are offset + counter compile to vector code only where they cannot be negative: hence np.uint64.


@fast_kernel
def move(x: Any, at: Any, block: Any, left: Any, k_from: Any, k_to: Any, right: Any, out: Any, to: Any) -> None:
    """out[m, j, r] = sum_i x[m, i, r] block[i, j]; x starts at x[at], out at out[to]."""
    at, to, left = np.uint64(at), np.uint64(to), np.uint64(left)
    k_from, k_to, right = np.uint64(k_from), np.uint64(k_to), np.uint64(right)
    for p in range(to, to + left * k_to * right):
        out[p] = 0
    for m in range(left):
        for i in range(k_from):
            source, row = at + (m * k_from + i) * right, i * k_to
            if right == np.uint64(1):
                value = x[source]
                target = to + m * k_to
                for j in range(k_to):
                    out[target + j] += value * block[row + j]
            else:
                for j in range(k_to):
                    e = block[row + j]
                    target = to + (m * k_to + j) * right
                    for r in range(right):
                        out[target + r] += e * x[source + r]


@fast_kernel
def move_back(x: Any, at: Any, block: Any, left: Any, k_from: Any, k_to: Any, right: Any, out: Any, to: Any) -> None:
    """out[m, i, r] = sum_j x[m, j, r] block[i, j]; x starts at x[at], out at out[to]."""
    at, to, left = np.uint64(at), np.uint64(to), np.uint64(left)
    k_from, k_to, right = np.uint64(k_from), np.uint64(k_to), np.uint64(right)
    for m in range(left):
        for i in range(k_from):
            target, row = to + (m * k_from + i) * right, i * k_to
            if right == np.uint64(1):
                source = at + m * k_to
                total = x.dtype.type(0)
                for j in range(k_to):
                    total += x[source + j] * block[row + j]
                out[target] = total
            else:
                for r in range(right):
                    out[target + r] = 0
                for j in range(k_to):
                    e = block[row + j]
                    source = at + (m * k_to + j) * right
                    for r in range(right):
                        out[target + r] += e * x[source + r]


@fast_kernel
def outer(x: Any, at: Any, y: Any, by: Any, left: Any, k_from: Any, k_to: Any, right: Any, out: Any) -> None:
    """out[i, j] = sum over m, r of x[m, i, r] y[m, j, r]."""
    at, by, left = np.uint64(at), np.uint64(by), np.uint64(left)
    k_from, k_to, right = np.uint64(k_from), np.uint64(k_to), np.uint64(right)
    for p in range(k_from * k_to):
        out[p] = 0
    for m in range(left):
        for i in range(k_from):
            source, row = at + (m * k_from + i) * right, i * k_to
            if right == np.uint64(1):
                value = x[source]
                other = by + m * k_to
                for j in range(k_to):
                    out[row + j] += value * y[other + j]
            else:
                for j in range(k_to):
                    other = by + (m * k_to + j) * right
                    total = x.dtype.type(0)
                    for r in range(right):
                        total += x[source + r] * y[other + r]
                    out[row + j] += total


@kernel
def log_move(x: Any, at: Any, block: Any, left: Any, k_from: Any, k_to: Any, right: Any, out: Any, to: Any) -> None:
    """out[m, j, r] = log sum_i exp(x[m, i, r] + block[i, j])."""
    for m in range(left):
        for j in range(k_to):
            for r in range(right):
                top = -np.inf
                for i in range(k_from):
                    top = max(top, x[at + (m * k_from + i) * right + r] + block[i * k_to + j])
                total = 0.0
                if top > -np.inf:
                    for i in range(k_from):
                        total += np.exp(x[at + (m * k_from + i) * right + r] + block[i * k_to + j] - top)
                    top += np.log(total)
                out[to + (m * k_to + j) * right + r] = top


@kernel
def log_move_back(
    x: Any, at: Any, block: Any, left: Any, k_from: Any, k_to: Any, right: Any, out: Any, to: Any
) -> None:
    """out[m, i, r] = log sum_j exp(x[m, j, r] + block[i, j])."""
    for m in range(left):
        for i in range(k_from):
            for r in range(right):
                top = -np.inf
                for j in range(k_to):
                    top = max(top, x[at + (m * k_to + j) * right + r] + block[i * k_to + j])
                total = 0.0
                if top > -np.inf:
                    for j in range(k_to):
                        total += np.exp(x[at + (m * k_to + j) * right + r] + block[i * k_to + j] - top)
                    top += np.log(total)
                out[to + (m * k_from + i) * right + r] = top


@kernel
def log_outer(
    x: Any, at: Any, y: Any, by: Any, left: Any, k_from: Any, k_to: Any, right: Any, log_z: Any, block: Any
) -> None:
    """block[i, j] becomes the sum over m, r of exp(x[m, i, r] + block[i, j] + y[m, j, r] - log_z)."""
    for i in range(k_from):
        for j in range(k_to):
            total = 0.0
            for m in range(left):
                for r in range(right):
                    value = x[at + (m * k_from + i) * right + r] + y[by + (m * k_to + j) * right + r]
                    total += np.exp(value + block[i * k_to + j] - log_z)
            block[i * k_to + j] = total


@fast_kernel
def max_move(
    x: Any, at: Any, block: Any, left: Any, k_from: Any, k_to: Any, right: Any, out: Any, to: Any, best: Any, by: Any
) -> None:
    """out[m, j, r] = max_i x[m, i, r] + block[i, j], and best[by + ...] the first i that reaches it."""
    at, to, by, left = np.uint64(at), np.uint64(to), np.uint64(by), np.uint64(left)
    k_from, k_to, right = np.uint64(k_from), np.uint64(k_to), np.uint64(right)
    for m in range(left):
        for j in range(k_to):
            shift = (m * k_to + j) * right
            source, e = at + m * k_from * right, block[j]
            for r in range(right):
                out[to + shift + r] = x[source + r] + e
                best[by + shift + r] = 0
            for i in range(np.uint64(1), k_from):
                source, e, who = at + (m * k_from + i) * right, block[i * k_to + j], np.int32(i)
                for r in range(right):
                    value = x[source + r] + e
                    better = value > out[to + shift + r]
                    out[to + shift + r] = value if better else out[to + shift + r]
                    best[by + shift + r] = who if better else best[by + shift + r]


@fast_kernel
def exponentials32(node: Any, starts: Any, begin: Any, end: Any, phi: Any, top: Any) -> None:
    """phi = exp(node - top) with top[t] the token's largest node, in float32; relative error below 2e-7.

    node, phi (n_bundles,) float32; starts (T + 1,); top (T,) float32; a token of -inf throughout gets zeros
    """
    low = np.float32(-np.inf)
    for t in range(begin, end):
        first, last = np.uint64(starts[t]), np.uint64(starts[t + 1])
        high = low
        for j in range(first, last):
            high = node[j] if node[j] > high else high
        top[t] = high
        if high > low:
            for j in range(first, last):
                phi[j] = exp32(node[j] - high)
        else:
            for j in range(first, last):
                phi[j] = 0


@fast_kernel
def exp32(x: Any) -> Any:
    """exp of a float32 that is at most 80, as a polynomial that compiles to vector code; 0 below -87."""
    y = x if x > np.float32(-87.0) else np.float32(-87.0)
    n = np.int32(y * np.float32(_LOG2E) + np.float32(126.5))
    k = np.float32(n - np.int32(126))
    r = y - k * np.float32(0.693359375) + k * np.float32(2.12194440e-4)
    p = np.float32(1.9875691500e-4)
    p = p * r + np.float32(1.3981999507e-3)
    p = p * r + np.float32(8.3334519073e-3)
    p = p * r + np.float32(4.1665795894e-2)
    p = p * r + np.float32(1.6666665459e-1)
    p = p * r + np.float32(5.0000001201e-1)
    p = p * r * r + r + np.float32(1.0)
    value = p * np.int32((n + np.int32(1)) << np.int32(23)).view(np.float32)
    return value if x > np.float32(-87.0) else np.float32(0.0)


@kernel
def exponentials64(node: Any, starts: Any, begin: Any, end: Any, phi: Any, top: Any) -> None:
    """As ``exponentials32`` in float64."""
    for t in range(begin, end):
        high = -np.inf
        for j in range(starts[t], starts[t + 1]):
            high = max(high, node[j])
        top[t] = high
        for j in range(starts[t], starts[t + 1]):
            phi[j] = np.exp(node[j] - high) if high > -np.inf else 0.0
