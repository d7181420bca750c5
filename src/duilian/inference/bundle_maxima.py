"""Best paths of a lattice, and paths drawn at random: Viterbi, n-best, sampling, probabilities of spans.

Kernels for one block of sentences; everything in float64 logarithms. ``bundles.py`` is the door.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from duilian.inference.bundle_logs import log_backward, log_forward
from duilian.inference.bundle_room import log_fill
from duilian.inference.lattice import slot_of, write_token
from duilian.inference.steps import axis_size, max_move, n_axes, partial_sizes
from duilian.kernels import kernel


@kernel
def viterbi_block(
    space: Any, pairs: Any, weights: Any, first: Any, last: Any, node: Any, room: Any, back: Any, path: Any, score: Any
) -> None:
    """The best path of each sentence of first:last; path[t] a bundle number, -1 where no path is possible.

    max over a' then over b' is max over both, since a step's score is a sum over the sides.
    room: a Room; back: as long as room.forth, int32 scratch
    """
    axes = n_axes(space, len(weights.log_joint) > 0)
    for sentence in range(first, last):
        begin, end = space.offsets[sentence], space.offsets[sentence + 1]
        score[sentence] = 0.0
        if begin == end:
            continue
        partial_sizes(space, begin, end, axes, room.at)
        origin = space.starts[begin]
        behind = space.starts[end] - origin
        delta = room.forth
        possible = True
        for t in range(begin, end):
            now, n = space.starts[t] - origin, space.starts[t + 1] - space.starts[t]
            if n == 0:
                possible = False
                break
            if t == begin:
                for j in range(n):
                    delta[now + j] = 0
            else:
                left, right = 1, space.starts[t] - space.starts[t - 1]
                source, target = space.starts[t - 1] - origin, behind + room.at[t - begin]
                for axis in range(axes):
                    k_from, k_to = axis_size(space, t - 1, axis, axes), axis_size(space, t, axis, axes)
                    right //= k_from
                    log_fill(space, pairs, weights, t, axis, axes, room)
                    to = now if axis == axes - 1 else target
                    max_move(delta, source, room.block, left, k_from, k_to, right, delta, to, back, to)
                    left *= k_to
                    source = to
                    target += left * right
            for j in range(n):
                delta[now + j] += node[space.starts[t] + j]
        best = -1
        if possible:
            high = -np.inf
            for j in range(space.starts[end - 1] - origin, space.starts[end] - origin):
                if delta[j] > high:
                    high, best = delta[j], j
        if best < 0:
            score[sentence] = -np.inf
            for t in range(begin, end):
                path[t] = -1
            continue
        score[sentence] = delta[best]
        for t in range(end - 1, begin - 1, -1):
            path[t] = best + origin
            if t > begin:
                best = _step_back(space, t, begin, best, axes, room, back, origin, behind)


@kernel
def _step_back(
    space: Any, t: Any, begin: Any, best: Any, axes: Any, room: Any, back: Any, origin: Any, behind: Any
) -> Any:
    """Undo the moves of one step: the bundle of t - 1 (counted from the sentence's first) that led to ``best``."""
    position = best - (space.starts[t] - origin)
    if axes == 1:
        return space.starts[t - 1] - origin + back[best]
    # (m, j, r) -> (m, i, r) for the last axis, then for the one before it; r grows by the old axes
    left, right = space.starts[t + 1] - space.starts[t], 1
    at = behind + room.at[t - begin + 1]
    who = back[best]
    for axis in range(axes - 1, -1, -1):
        k_from, k_to = axis_size(space, t - 1, axis, axes), axis_size(space, t, axis, axes)
        left //= k_to
        m, r = position // (k_to * right), position % right
        position = (m * k_from + who) * right + r
        right *= k_from
        if axis > 0:
            at -= left * right
            who = back[at + position]
    return space.starts[t - 1] - origin + position


@kernel
def edge_score(space: Any, pairs: Any, weights: Any, before: Any, i: Any, here: Any, j: Any) -> Any:
    """Score of the step from bundle i to bundle j, of the tokens that ``write_token`` wrote into before and here."""
    value = 0.0
    for s in range(len(space.sizes)):
        value += weights.log_tables[space.tables[s] + before[s, i] * space.sizes[s] + here[s, j]]
    if len(weights.log_joint):
        slot = slot_of(pairs, before[-1, i], here[-1, j])
        if slot >= 0:
            value += weights.log_joint[slot]
    return value


@kernel
def nbest_sentence(
    space: Any,
    pairs: Any,
    weights: Any,
    sentence: Any,
    node: Any,
    n: Any,
    before: Any,
    here: Any,
    paths: Any,
    scores: Any,
) -> Any:
    """The n best paths of one sentence, best first; returns how many there are.

    Every bundle keeps its n best beginnings, merged from those of all bundles before it.
    paths (n, length) int64 bundle numbers, scores (n,) out
    """
    begin, end = space.offsets[sentence], space.offsets[sentence + 1]
    if begin == end:
        scores[0] = 0.0
        return 1
    origin, total = space.starts[begin], space.starts[end] - space.starts[begin]
    best = np.full((total, n), -np.inf)
    came = np.full((total, n), -1, np.int64)
    width = before.shape[1]
    edge = np.empty(width)
    rank = np.empty(width, np.int64)
    for t in range(begin, end):
        now, n_here = space.starts[t] - origin, write_token(space, t, here)
        if t == begin:
            for j in range(n_here):
                best[now + j, 0] = node[origin + j]
            continue
        last, n_before = space.starts[t - 1] - origin, write_token(space, t - 1, before)
        for j in range(n_here):
            if node[origin + now + j] == -np.inf:
                continue
            for i in range(n_before):
                edge[i] = edge_score(space, pairs, weights, before, i, here, j)
                rank[i] = 0
            for m in range(n):
                high, who = -np.inf, -1
                for i in range(n_before):
                    if rank[i] < n and best[last + i, rank[i]] + edge[i] > high:
                        high, who = best[last + i, rank[i]] + edge[i], i
                if who < 0:
                    break
                best[now + j, m] = high + node[origin + now + j]
                came[now + j, m] = (last + who) * n + rank[who]
                rank[who] += 1
    last, n_last = space.starts[end - 1] - origin, space.starts[end] - space.starts[end - 1]
    rank[:] = 0
    for m in range(n):
        high, who = -np.inf, -1
        for i in range(n_last):
            if rank[i] < n and best[last + i, rank[i]] > high:
                high, who = best[last + i, rank[i]], i
        if who < 0:
            return m
        scores[m] = high
        at = (last + who) * n + rank[who]
        rank[who] += 1
        for t in range(end - 1, begin - 1, -1):
            paths[m, t - begin] = at // n + origin
            at = came[at // n, at % n]
    return n


@kernel
def sample_sentence(
    space: Any, pairs: Any, weights: Any, sentence: Any, node: Any, room: Any, uniform: Any, paths: Any
) -> Any:
    """Paths drawn from P(path), from the last token back; returns log Z, -inf where there is nothing to draw.

    uniform (n, length) in [0, 1); paths (n, length) int64 bundle numbers out
    """
    begin, end = space.offsets[sentence], space.offsets[sentence + 1]
    log_z = log_forward(space, pairs, weights, sentence, node, room)
    if log_z == -np.inf:
        return log_z
    origin = space.starts[begin]
    chance = np.empty(room.before.shape[1])
    for m in range(len(uniform)):
        chosen = 0
        for t in range(end - 1, begin - 1, -1):
            now, n = space.starts[t] - origin, write_token(space, t, room.before)
            high = -np.inf
            for i in range(n):
                chance[i] = room.forth[now + i]
                if t < end - 1:
                    chance[i] += edge_score(space, pairs, weights, room.before, i, room.here, chosen)
                high = max(high, chance[i])
            total = 0.0
            for i in range(n):
                chance[i] = np.exp(chance[i] - high)
                total += chance[i]
            rest = uniform[m, t - begin] * total
            chosen = -1
            for i in range(n):
                if chance[i] > 0:
                    chosen = i
                    rest -= chance[i]
                    if rest < 0:
                        break
            paths[m, t - begin] = space.starts[t] + chosen
            room.here[:, :n] = room.before[:, :n]
    return log_z


@kernel
def span_sentence(
    space: Any,
    pairs: Any,
    weights: Any,
    sentence: Any,
    node: Any,
    room: Any,
    side: Any,
    labels: Any,
    edges: Any,
    first: Any,
    last: Any,
    out: Any,
) -> None:
    """out[k] = P(side carries labels[edges[k]:edges[k + 1]] there) for the spans first:last of one sentence.

    labels (T,) int32 on that side; edges: token numbers, the spans of the sentence one after the other
    """
    log_z = log_forward(space, pairs, weights, sentence, node, room)
    if log_z == -np.inf:
        out[first:last] = 0
        return
    log_backward(space, pairs, weights, sentence, node, room)
    origin = space.starts[space.offsets[sentence]]
    width = room.before.shape[1]
    mass, fresh = np.empty(width), np.empty(width)
    for k in range(first, last):
        n_before = 0
        for t in range(edges[k], edges[k + 1]):
            n_here = write_token(space, t, room.here)
            for j in range(n_here):
                at = space.starts[t] + j
                fresh[j] = -np.inf
                if room.here[side, j] != labels[t]:
                    continue
                if t == edges[k]:
                    fresh[j] = room.forth[at - origin]
                    continue
                high = -np.inf
                for i in range(n_before):
                    if mass[i] > -np.inf:
                        high = max(high, mass[i] + edge_score(space, pairs, weights, room.before, i, room.here, j))
                total = 0.0
                if high > -np.inf:
                    for i in range(n_before):
                        if mass[i] > -np.inf:
                            value = mass[i] + edge_score(space, pairs, weights, room.before, i, room.here, j)
                            total += np.exp(value - high)
                    fresh[j] = high + np.log(total) + node[at]
            mass[:n_here] = fresh[:n_here]
            room.before[:, :n_here] = room.here[:, :n_here]
            n_before = n_here
        total = 0.0
        for j in range(n_before):
            at = space.starts[edges[k + 1] - 1] + j
            if mass[j] > -np.inf:
                total += np.exp(mass[j] + room.back[at - origin] - node[at] - log_z)
        out[k] = min(total, 1.0)
