"""Best paths where each label brings one of its mapped labels along: two chains whose labels are tied by a mapping.

    score(y) = own(y) + max over z, z_t in phi(y_t), of other(z)                                  (qiu2013 Eq. 6 to 9)
    own(y) = start[y_0] + sum_t node[t, y_t] + trans[y_(t-1), y_t] + end[y_(T-1)], other(z) the same with its tables

"Only the highest-scoring mapped label is expanded": all z are chosen together and exactly, by Viterbi over pairs
(y_t, z_t). The last label of the other side is none: it scores nothing anywhere and goes before and behind every label.
A step takes two maxima, over z' for each y' and then over y', so that transitions cost less than pairs squared.
Twins by enumeration: ``tests/naive/expansion.py``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from duilian.kernels import fast_kernel, kernel

DIRECT = 24
"""A label with at most so many pairs that may stand before it asks each of them."""


class Links(NamedTuple):
    """Which labels go together, K pairs in the order of the own labels, and which may follow each other.

    own, other: (K,) int32; other is M for none.  firsts: (L + 1,) int64, pairs of each own label
    before:     (L + 1,) int64, and begins, ends: ranges of own labels that may stand before each own label
    narrow:     (N,) pairs behind few others, which are before_narrow[starts[i]:starts[i + 1]], legal ones alone
    wide:       (J,) int64, the other pairs;  feeds: own labels that may stand before one of them
    """

    own: Any
    other: Any
    firsts: Any
    before: Any
    begins: Any
    ends: Any
    narrow: Any
    starts: Any
    before_narrow: Any
    wide: Any
    feeds: Any


class Tables(NamedTuple):
    """Scores of one chain: trans (L + 1, L + 1), turned its transpose, start, end (L + 1,); 0 for none, float32."""

    trans: Any
    turned: Any
    start: Any
    end: Any


def links_of(pairs: Any, follows: Any, other_follows: Any) -> Links:
    """Links from rows (own, other); follows (L, L), other_follows (M, M) bool, what may follow what on each side.

    An other label of M is none. Every own label needs a pair at least.
    """
    pairs = np.unique(np.asarray(pairs, np.int32).reshape(-1, 2), axis=0)
    n, m = len(follows), len(other_follows)
    firsts = np.searchsorted(pairs[:, 0], np.arange(n + 1)).astype(np.int64)
    if np.any(np.diff(firsts) < 1) or np.any(pairs[:, 1] > m):
        raise ValueError("every label needs a pair, and no pair may name a label that is not there")
    may = np.ones((m + 1, m + 1), np.bool_)
    may[:m, :m] = other_follows
    follows = np.asarray(follows, np.bool_)
    before, begins, ends = _ranges(follows.T)
    own, other = np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])
    is_wide = (follows.astype(np.int64).T @ np.diff(firsts) > DIRECT)[own]
    narrow, wide = np.flatnonzero(~is_wide), np.flatnonzero(is_wide)
    rows = [np.flatnonzero(follows[own, own[k]] & may[other, other[k]]) for k in narrow.tolist()]
    starts = np.cumsum([0, *(len(row) for row in rows)])
    before_narrow = np.concatenate([np.zeros(0, np.int64), *rows])
    feeds = np.flatnonzero(follows[:, np.unique(own[wide])].any(axis=1))
    return Links(own, other, firsts, before, begins, ends, narrow, starts, before_narrow, wide, feeds)


def _ranges(allowed: Any) -> tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.uint64]]:
    """The runs of True in each row: offsets, first columns, columns behind the last; unsigned, for vector loops."""
    edges = np.diff(np.pad(np.asarray(allowed, np.int8), ((0, 0), (1, 1))), axis=1)
    rows, begins = np.nonzero(edges == 1)
    _, ends = np.nonzero(edges == -1)
    offsets = np.searchsorted(rows, np.arange(len(edges) + 1))
    return offsets.astype(np.int64), begins.astype(np.uint64), ends.astype(np.uint64)


def tables_of(trans: Any, start: Any, end: Any) -> Tables:
    """Tables with none as a further label."""
    n = len(start)
    wide = np.zeros((n + 1, n + 1), np.float32)
    wide[:n, :n] = trans
    first, last = np.zeros((2, n + 1), np.float32)
    first[:n], last[:n] = start, end
    return Tables(wide, np.ascontiguousarray(wide.T), first, last)


def tables_over(flat: NDArray[np.float32], turned: NDArray[np.float32]) -> Tables:
    """Tables that are views of one array: transitions, starts, ends, ((L + 1) * (L + 3),); turned is taken as it is."""
    size = len(turned)
    square = size * size
    return Tables(flat[:square].reshape(size, size), turned, flat[square : square + size], flat[square + size :])


def empty_tables(n: int) -> Tables:
    """Tables of n labels and none, all 0."""
    return tables_of(np.zeros((n, n)), np.zeros(n), np.zeros(n))


@kernel
def scale_tables(tables: Any, factor: Any, out: Any) -> None:
    """Write factor * tables into out; factor above 0, float32."""
    out.trans[:] = factor * tables.trans
    out.turned[:] = factor * tables.turned
    out.start[:] = factor * tables.start
    out.end[:] = factor * tables.end


def with_escapes(pairs: Any, rules: Any, other_rules: Any) -> NDArray[np.int32]:
    """Pairs, and none for each own label that could otherwise be left without a way on.

    pairs: (n, 2) of L and M labels; rules, other_rules: starts (L,), ends (L,), follows (L, L) bool. A pair is safe if
    whatever own label follows it has a safe pair that follows. Pairs that are not are crossed out round by round; a
    label that loses its last one gets none, and so does a label that may begin a sentence if no safe pair of it may.
    """
    starts, ends, follows = rules
    m = len(other_rules[0])
    may_start, may_end = np.append(other_rules[0], True), np.append(other_rules[1], True)
    wide = np.ones((m + 1, m + 1), np.bool_)
    wide[:m, :m] = other_rules[2]
    table = np.zeros((len(starts), m + 1), np.bool_)
    rows = np.asarray(pairs, np.int64).reshape(-1, 2)
    table[rows[:, 0], rows[:, 1]] = True
    safe = table.copy()
    safe[:, m] |= ~safe.any(axis=1)
    while True:
        # reach[y, z]: some safe pair of y may follow z; stuck[y, z]: of some label that follows y none may
        reach = (safe.astype(np.int64) @ wide.T.astype(np.int64)) > 0
        stuck = (follows.astype(np.int64) @ ~reach) > 0
        stuck |= ends[:, None] & ~may_end[None, :]
        fewer = safe & ~stuck
        fewer[:, m] |= ~fewer.any(axis=1) | (starts & ~(fewer & may_start).any(axis=1))
        if np.array_equal(fewer, safe):
            break
        safe = fewer
    table[:, m] |= safe[:, m]
    return np.argwhere(table).astype(np.int32)


class Steps(NamedTuple):
    """Scores of the steps to each wide pair: own (L, J), other (M + 1, J); row, best (J,) scratch; all float32."""

    own: Any
    other: Any
    row: Any
    best: Any


def room_for_steps(links: Links) -> Steps:
    """Steps without their scores."""
    n, m, j = len(links.firsts) - 1, int(links.other.max(initial=0)) + 1, len(links.wide)
    shapes: tuple[Any, ...] = ((n, j), (m, j), j, j)
    one, two, three, four = (np.zeros(shape, np.float32) for shape in shapes)
    return Steps(one, two, three, four)


@kernel
def fill_steps(links: Any, own: Any, other: Any, steps: Any) -> None:
    """Write the scores of the tables into steps."""
    for j in range(len(links.wide)):
        k = links.wide[j]
        for a in range(len(steps.own)):
            steps.own[a, j] = own.trans[a, links.own[k]]
        for z in range(len(steps.other)):
            steps.other[z, j] = other.trans[z, links.other[k]]


@fast_kernel
def advance(before: Any, links: Any, own: Any, other: Any, steps: Any, out: Any) -> None:
    """out[k] = max over pairs k' that may stand before k of before[k'] + both steps.

    before, out (K,) float32; own, other Tables; steps: Steps of these tables
    """
    low = np.float32(-np.inf)
    n_wide = len(links.wide)
    row, best = steps.row, steps.best
    for j in range(n_wide):
        best[j] = low
    for f in range(len(links.feeds)):
        a = links.feeds[f]
        for j in range(n_wide):
            row[j] = low
        for k in range(links.firsts[a], links.firsts[a + 1]):
            value = before[k]
            if value > low:
                step = steps.other[links.other[k]]
                for j in range(n_wide):
                    s = value + step[j]
                    row[j] = s if s > row[j] else row[j]
        step = steps.own[a]
        for j in range(n_wide):
            s = row[j] + step[j]
            best[j] = s if s > best[j] else best[j]
    for j in range(n_wide):
        out[links.wide[j]] = best[j]
    for i in range(len(links.narrow)):
        k = links.narrow[i]
        own_step, other_step = own.turned[links.own[k]], other.turned[links.other[k]]
        high = low
        for at in range(links.starts[i], links.starts[i + 1]):
            c = links.before_narrow[at]
            s = before[c] + own_step[links.own[c]] + other_step[links.other[c]]
            high = s if s > high else high
        out[k] = high


@kernel
def best_before(before: Any, links: Any, own: Any, other: Any, k: Any, fine: Any) -> Any:
    """(pair that stands best before pair k, its value with both steps); (-1, -inf) if there is none.

    before (K,); fine (L,) bool: only pairs of these own labels, or (0,) for all
    """
    at, high = -1, np.float32(-np.inf)
    b, new = links.own[k], links.other[k]
    for r in range(links.before[b], links.before[b + 1]):
        for a in range(links.begins[r], links.ends[r]):
            if len(fine) and not fine[a]:
                continue
            step = own.trans[a, b]
            for c in range(links.firsts[a], links.firsts[a + 1]):
                s = before[c] + step + other.trans[links.other[c], new]
                if s > high:
                    at, high = c, s
    return at, high


@kernel
def emit(node: Any, other_node: Any, t: Any, links: Any, values: Any) -> None:
    """values[k] += node[t, own] + other_node[t, other]; other_node has a column for none."""
    for k in range(len(values)):
        values[k] += node[t, links.own[k]] + other_node[t, links.other[k]]


@kernel
def begin(links: Any, own: Any, other: Any, values: Any) -> None:
    """values[k] = how a sentence starts with pair k."""
    for k in range(len(values)):
        values[k] = own.start[links.own[k]] + other.start[links.other[k]]


@kernel
def best_end(values: Any, links: Any, own: Any, other: Any) -> Any:
    """(pair that ends the sentence best, score); (-1, -inf) if none can."""
    at, high = -1, np.float32(-np.inf)
    for k in range(len(values)):
        s = values[k] + own.end[links.own[k]] + other.end[links.other[k]]
        if s > high:
            at, high = k, s
    return at, high


@kernel
def best_pairs(
    node: Any, other_node: Any, n: Any, links: Any, own: Any, other: Any, steps: Any, best: Any, path: Any,
    other_path: Any,
) -> Any:  # fmt: skip
    """Best labels with their expansion, and the score; -inf if nothing is possible.

    node (>= n, L), other_node (>= n, M + 1) float32, -inf where a label is not allowed; steps: Steps, filled;
    best (>= n, K) scratch; path, other_path (n,) int32 out, M for none. No back pointers are stored.
    """
    begin(links, own, other, best[0])
    emit(node, other_node, 0, links, best[0])
    for t in range(1, n):
        advance(best[t - 1], links, own, other, steps, best[t])
        emit(node, other_node, t, links, best[t])
    k, high = best_end(best[n - 1], links, own, other)
    if k < 0:
        return high
    all_ = np.zeros(0, np.bool_)
    for t in range(n - 1, -1, -1):
        path[t], other_path[t] = links.own[k], links.other[k]
        if t > 0:
            k, _ = best_before(best[t - 1], links, own, other, k, all_)
    return high


@kernel
def best_right_and_wrong(
    node: Any, other_node: Any, n: Any, links: Any, own: Any, other: Any, steps: Any, fine: Any, right: Any,
    wrong: Any, both: Any, gold: Any, other_gold: Any, path: Any, other_path: Any,
) -> Any:  # fmt: skip
    """The best labels that are right everywhere, the best that are wrong somewhere, each expanded; both scores.

    fine (>= n, L) bool: right labels of each unit; right, wrong (>= n, K), both (K,) scratch; gold, other_gold, path,
    other_path (n,) int32 out; the others as in ``best_pairs``. A path is followed in two states: right so far, or wrong
    already; so that the best wrong one (qiu2013 Eq. 11) takes one walk even where the best of all is right.
    """
    low = np.float32(-np.inf)
    n_pairs = len(links.own)
    all_ = np.zeros(0, np.bool_)
    for t in range(n):
        r, w = right[t], wrong[t]
        if t == 0:
            begin(links, own, other, r)
            for k in range(n_pairs):
                w[k] = low if fine[0, links.own[k]] else r[k]
                r[k] = r[k] if fine[0, links.own[k]] else low
        else:
            r0, w0 = right[t - 1], wrong[t - 1]
            few = 0
            for a in range(fine.shape[1]):
                few += fine[t, a]
            if few <= 4:
                for k in range(n_pairs):
                    both[k] = r0[k] if r0[k] > w0[k] else w0[k]
                advance(both, links, own, other, steps, w)
                for k in range(n_pairs):
                    if fine[t, links.own[k]]:
                        _, r[k] = best_before(r0, links, own, other, k, fine[t - 1])
                        _, w[k] = best_before(w0, links, own, other, k, all_)
                    else:
                        r[k] = low
            else:
                advance(w0, links, own, other, steps, w)
                advance(r0, links, own, other, steps, r)
                for k in range(n_pairs):
                    if not fine[t, links.own[k]]:
                        w[k] = r[k] if r[k] > w[k] else w[k]
                        r[k] = low
        emit(node, other_node, t, links, r)
        emit(node, other_node, t, links, w)
    k, goal = best_end(right[n - 1], links, own, other)
    if k >= 0:
        for t in range(n - 1, -1, -1):
            gold[t], other_gold[t] = links.own[k], links.other[k]
            if t > 0:
                k, _ = best_before(right[t - 1], links, own, other, k, fine[t - 1])
    k, high = best_end(wrong[n - 1], links, own, other)
    is_wrong = True
    if k >= 0:
        for t in range(n - 1, -1, -1):
            path[t], other_path[t] = links.own[k], links.other[k]
            if t == 0:
                break
            if not is_wrong:
                k, _ = best_before(right[t - 1], links, own, other, k, fine[t - 1])
                continue
            i, x = best_before(wrong[t - 1], links, own, other, k, all_)
            if not fine[t, links.own[k]]:
                j, y = best_before(right[t - 1], links, own, other, k, fine[t - 1])
                if j >= 0 and (i < 0 or y > x):
                    i, is_wrong = j, False
            k = i
    return goal, high
