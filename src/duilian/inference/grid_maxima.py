"""Viterbi over the complete space: maxima taken side by side, and a way back that looks each step up again.

    delta_t[a, b] = node_t[a, b] + max_b' (E_b[b', b] + max_a' (E_a[a', a] + delta_(t-1)[a', b']))

A step's score is a sum over the sides, so the maximum over a' and then over b' is the maximum over both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from duilian.kernels import fast_kernel, kernel
from duilian.ragged import offsets_of


class Steps(NamedTuple):
    """Which steps are possible on each side, all sides one after the other.

    first:                (S + 1,) number of labels before each side; label k of side s is number first[s] + k here
    at, sources:          label n is reached from the labels sources[at[n]:at[n + 1]]
    run_at, begins, ends: label n reaches the ranges begins[r]:ends[r] for r in run_at[n]:run_at[n + 1]
    """

    at: Any
    sources: Any
    run_at: Any
    begins: Any
    ends: Any
    first: Any


def steps_of(tables: Sequence[Any]) -> Steps:
    """The possible steps of each side's table in log space."""
    n_sources, sources, n_runs, begins, ends = [], [], [], [], []
    for table in tables:
        possible = np.asarray(table) > -np.inf
        n_sources.append(possible.sum(axis=0))
        sources.append(np.nonzero(possible.T)[1])
        edges = np.diff(np.pad(possible.astype(np.int8), ((0, 0), (1, 1))), axis=1)
        n_runs.append((edges == 1).sum(axis=1))
        begins.append(np.nonzero(edges == 1)[1])
        ends.append(np.nonzero(edges == -1)[1])
    return Steps(
        offsets_of(np.concatenate(n_sources)),
        np.concatenate(sources).astype(np.int64),
        offsets_of(np.concatenate(n_runs)),
        np.concatenate(begins).astype(np.int64),
        np.concatenate(ends).astype(np.int64),
        offsets_of([len(table) for table in tables]),
    )


@fast_kernel
def max_side(
    x: Any, table: Any, table_at: Any, size: Any, left: Any, right: Any, steps: Any, side: Any, out: Any
) -> None:
    """out[m, k, r] = max_i x[m, i, r] + table[i, k] over the possible steps; x, out (left, size, right) flat."""
    first = steps.first[side]
    low = out.dtype.type(-np.inf)
    # indices that cannot be negative compile to vector code
    size, right, table_at = np.uint64(size), np.uint64(right), np.uint64(table_at)
    for m in range(np.uint64(left)):
        base = m * size * right
        if right == np.uint64(1):
            for k in range(size):
                out[base + k] = low
            for i in range(size):
                value = x[base + i]
                if value == low:
                    continue
                row, label = table_at + i * size, first + np.int64(i)
                for run in range(steps.run_at[label], steps.run_at[label + 1]):
                    for k in range(np.uint64(steps.begins[run]), np.uint64(steps.ends[run])):
                        u, w = value + table[row + k], out[base + k]
                        out[base + k] = u if u > w else w
            continue
        for k in range(size):
            to, label = base + k * right, first + np.int64(k)
            for r in range(right):
                out[to + r] = low
            s, end = steps.at[label], steps.at[label + 1]
            while s + 4 <= end:
                i0, i1 = np.uint64(steps.sources[s]), np.uint64(steps.sources[s + 1])
                i2, i3 = np.uint64(steps.sources[s + 2]), np.uint64(steps.sources[s + 3])
                e0, e1 = table[table_at + i0 * size + k], table[table_at + i1 * size + k]
                e2, e3 = table[table_at + i2 * size + k], table[table_at + i3 * size + k]
                b0, b1, b2, b3 = base + i0 * right, base + i1 * right, base + i2 * right, base + i3 * right
                for r in range(right):
                    u0, u1, u2, u3 = x[b0 + r] + e0, x[b1 + r] + e1, x[b2 + r] + e2, x[b3 + r] + e3
                    u = u0 if u0 > u1 else u1
                    v = u2 if u2 > u3 else u3
                    u = u if u > v else v
                    w = out[to + r]
                    out[to + r] = u if u > w else w
                s += 4
            while s < end:
                i0 = np.uint64(steps.sources[s])
                e0, b0 = table[table_at + i0 * size + k], base + i0 * right
                for r in range(right):
                    u, w = x[b0 + r] + e0, out[to + r]
                    out[to + r] = u if u > w else w
                s += 1


@fast_kernel
def max_joint(x: Any, table: Any, top: Any, out: Any) -> None:
    """out[j] = max_i x[i] + table[i, j]; good sources first, so that most of the others can be left out.

    x is at most 0; top: max of the table. A source whose best step stays below all that is reached already is left out.
    """
    n = len(x)
    low = out.dtype.type(-np.inf)
    out[:] = low
    ceiling, reached = out.dtype.type(np.inf), low
    for tier in range(4):
        floor = out.dtype.type(-2.0 * 3.0**tier) if tier < 3 else low
        for i in range(n):
            value = x[i]
            if value > floor and value <= ceiling and value + top > reached:
                row = table[i]
                for j in range(n):
                    u, w = value + row[j], out[j]
                    out[j] = u if u > w else w
        ceiling = floor
        reached = np.min(out)


@kernel
def outer_sum(values: Any, begin: Any, sizes: Any, out: Any) -> None:
    """out[code] = sum over sides s of values[begin of s + label on s]; sides one after the other from values[begin]."""
    n = 1
    out[0] = 0
    at = begin
    for s in range(len(sizes)):
        # from the back, so that no value is overwritten before it is used
        for p in range(n - 1, -1, -1):
            value = out[p]
            for k in range(sizes[s] - 1, -1, -1):
                out[p * sizes[s] + k] = value + values[at + k]
        n *= sizes[s]
        at += sizes[s]


@kernel
def best_paths(
    offsets: Any,
    first: Any,
    last: Any,
    sizes: Any,
    nodes: Any,
    node_joint: Any,
    tables: Any,
    whole: Any,
    steps: Any,
    delta: Any,
    room: Any,
    labels: Any,
    scores: Any,
) -> None:
    """The best path of sentences first:last into labels (T, S) and scores.

    nodes (T, sum of sizes), node_joint (T, N) or (T, 0); tables: each side's log table, flat; whole (N, N) scores of
    all steps between bundles, or (0, 0); delta (longest sentence, N), room (2, N) scratch of the same type
    """
    n = delta.shape[1]
    column = np.empty(sizes.sum(), delta.dtype)
    top = whole.max() if len(whole) else delta.dtype.type(0)
    for sentence in range(first, last):
        begin, end = offsets[sentence], offsets[sentence + 1]
        scores[sentence] = 0.0
        total = 0.0
        for t in range(begin, end):
            now = delta[t - begin]
            if t == begin:
                now[:] = 0
            elif len(whole):
                max_joint(delta[t - begin - 1], whole, top, now)
            else:
                _max_sides(delta[t - begin - 1], sizes, tables, steps, room, now)
            outer_sum(nodes[t], 0, sizes, room[0])
            high = delta.dtype.type(-np.inf)
            for p in range(n):
                value = now[p] + room[0, p]
                if node_joint.shape[1]:
                    value += node_joint[t, p]
                now[p] = value
                high = max(high, value)
            if high == -np.inf:
                total = -np.inf
                break
            total += high
            for p in range(n):
                now[p] -= high
        scores[sentence] = total
        best = 0
        for t in range(end - 1, begin - 1, -1):
            if total == -np.inf:
                labels[t, :] = -1
                continue
            if t == end - 1:
                best = int(np.argmax(delta[t - begin]))
            else:
                if len(whole):
                    room[0] = whole[:, best]
                else:
                    at = 0
                    table_at = 0
                    for s in range(len(sizes)):
                        for i in range(sizes[s]):
                            column[at + i] = tables[table_at + i * sizes[s] + labels[t + 1, s]]
                        at += sizes[s]
                        table_at += sizes[s] * sizes[s]
                    outer_sum(column, 0, sizes, room[0])
                high = delta.dtype.type(-np.inf)
                for p in range(n):
                    value = delta[t - begin, p] + room[0, p]
                    if value > high:
                        high = value
                        best = p
            rest = best
            for s in range(len(sizes) - 1, -1, -1):
                labels[t, s] = rest % sizes[s]
                rest //= sizes[s]


@kernel
def _max_sides(x: Any, sizes: Any, tables: Any, steps: Any, room: Any, out: Any) -> None:
    n = len(x)
    n_sides = len(sizes)
    left, right, table_at = 1, n, 0
    for s in range(n_sides):
        right //= sizes[s]
        source = x if s == 0 else room[(s - 1) % 2]
        target = out if s == n_sides - 1 else room[s % 2]
        max_side(source, tables, table_at, sizes[s], left, right, steps, s, target)
        left *= sizes[s]
        table_at += sizes[s] * sizes[s]
