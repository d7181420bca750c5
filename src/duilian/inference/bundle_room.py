"""What the passes over a lattice share: prepared weights, working memory, cut tables, and where results go."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from duilian.inference.lattice import is_product, slot_of
from duilian.inference.steps import axis_size, log_pair_block, n_axes, pair_block, partial_sizes, side_block
from duilian.kernels import kernel


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

    forth: alpha of the sentence's bundles, behind it the partly moved tensors of the forward pass
    back:  beta or w of its bundles, behind it the partly moved tensors of the backward pass
    post:  marginals of its bundles; block: one cut table
    before, here: (S + 1, bundles of a token) int64; at: (tokens of a sentence + 1,) int64
    """

    forth: Any
    back: Any
    post: Any
    block: Any
    before: Any
    here: Any
    at: Any


class Results(NamedTuple):
    """Where the passes write; () for what is not wanted.

    log_z:        (n_sentences,) float64
    marginals:    (bundles,) float32 or float64, added to
    origin:       (n_bundles,) int64, which of those each bundle of the lattice is; () for the same numbers
    counts:       (sum of sizes**2,) float64, added to; joint_counts: (n_pairs,) float64, added to
    """

    log_z: Any
    marginals: Any
    origin: Any
    counts: Any
    joint_counts: Any


@kernel
def room_sizes(space: Any, first: Any, last: Any, pairs_weigh: Any) -> Any:
    """What a Room needs for sentences first:last: tokens, bundles, bundles and tensors, block, bundles of a token."""
    axes = n_axes(space, pairs_weigh)
    tokens, bundles, states, block, width = np.int64(0), np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    for i in range(first, last):
        begin, end = space.offsets[i], space.offsets[i + 1]
        if end == begin:
            continue
        tokens = max(tokens, end - begin)
        at = np.zeros(end - begin + 1, np.int64)
        partial_sizes(space, begin, end, axes, at)
        n = space.starts[end] - space.starts[begin]
        bundles = max(bundles, n)
        states = max(states, n + at[end - begin])
        for t in range(begin, end):
            width = max(width, space.starts[t + 1] - space.starts[t])
            if t > begin:
                for axis in range(axes):
                    block = max(block, axis_size(space, t - 1, axis, axes) * axis_size(space, t, axis, axes))
    return tokens, bundles, states, block, width


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


@kernel
def add_pairs(
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
def add_marginals(space: Any, sentence: Any, room: Any, weight: Any, results: Any) -> None:
    """Add weight * P(bundle) of one sentence to the marginals."""
    first = space.starts[space.offsets[sentence]]
    origin = results.origin
    for j in range(first, space.starts[space.offsets[sentence + 1]]):
        results.marginals[origin[j] if len(origin) else j] += weight * room.post[j - first]
