"""Sums and maxima over label sequences of a second-order chain: candidate labels at every token, one trigram table.

    score(y) = sum_t table[y_(t-2), y_(t-1), y_t] + pair_t[y_(t-1), y_t]   + table[y_(T-2), y_(T-1), END]

Before the first token stands the boundary label L, twice; as a third index L means the end. In Thede & Harper (1999)
P(t_i | t_(i-2), t_(i-1)) is the table and P(o_i | t_i, t_(i-1)) the pair score. The state at token t is the pair
(candidate at t - 1, candidate at t), numbered with the last one fastest. Everything is a logarithm in float64; -inf is
an impossible step. Twins by enumeration: ``tests/naive/trigram.py``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from duilian.kernels import kernel


class Trellis(NamedTuple):
    """The candidates of each token of a block of sentences.

    offsets: (S + 1,) int64, tokens of each sentence
    starts:  (T + 1,) int64, candidates of each token; at least one
    labels:  (n_candidates,) int32
    pairs:   (T + 1,) int64, where the pair scores of each token begin: candidates before it times its own (before the
             first token of a sentence there is one, the boundary)
    """

    offsets: Any
    starts: Any
    labels: Any
    pairs: Any


def trellis_of(offsets: Any, starts: Any, labels: Any) -> Trellis:
    """A trellis with its pairs laid out; checks what the kernels trust."""
    offsets = np.ascontiguousarray(offsets, np.int64)
    starts = np.ascontiguousarray(starts, np.int64)
    sizes = np.diff(starts)
    if offsets[-1] != len(sizes) or starts[-1] != len(labels) or np.any(sizes < 1):
        raise ValueError("a trellis needs at least one candidate for each token of each sentence")
    before = np.concatenate([np.ones(1, np.int64), sizes])[: len(sizes)]
    before[offsets[:-1][offsets[:-1] < len(sizes)]] = 1
    pairs = np.zeros(len(starts), np.int64)
    np.cumsum(before * sizes, out=pairs[1:])
    return Trellis(offsets, starts, np.ascontiguousarray(labels, np.int32), pairs)


# Doors --------------------------------------------------------------------------------------------------------------


def viterbi(trellis: Trellis, pair: Any, table: Any) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """The best labels (T,) and their score for each sentence (S,); a score of -inf means that none was possible."""
    pair, table = _checked(trellis, pair, table)
    labels = np.empty(len(trellis.starts) - 1, np.int32)
    scores = np.empty(len(trellis.offsets) - 1)
    _viterbi_all(trellis, pair, table, np.empty_like(pair), labels, scores)
    return labels, scores


def log_partition(trellis: Trellis, pair: Any, table: Any) -> NDArray[np.float64]:
    """log Z of each sentence (S,)."""
    pair, table = _checked(trellis, pair, table)
    log_z = np.empty(len(trellis.offsets) - 1)
    _forward_all(trellis, pair, table, np.empty_like(pair), log_z)
    return log_z


def marginals(trellis: Trellis, pair: Any, table: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The probability of each candidate (n_candidates,), and log Z (S,); all 0 where a sentence is impossible."""
    pair, table = _checked(trellis, pair, table)
    probabilities = np.zeros(len(trellis.labels))
    log_z = np.empty(len(trellis.offsets) - 1)
    alpha, beta = np.empty_like(pair), np.empty_like(pair)
    _forward_all(trellis, pair, table, alpha, log_z)
    _marginals_all(trellis, pair, table, alpha, beta, log_z, probabilities)
    return probabilities, log_z


def nbest(trellis: Trellis, pair: Any, table: Any, n: int) -> list[list[tuple[float, NDArray[np.int32]]]]:
    """The n best (score, labels) of each sentence, best first; fewer where fewer are possible."""
    pair, table = _checked(trellis, pair, table)
    if n < 1:
        raise ValueError(f"n must be at least 1, not {n}")
    found = []
    for s in range(len(trellis.offsets) - 1):
        first, last = int(trellis.offsets[s]), int(trellis.offsets[s + 1])
        n_pairs = int(trellis.pairs[last] - trellis.pairs[first])
        scores = np.empty((n_pairs, n))
        back = np.empty((n_pairs, n, 2), np.int64)
        paths = np.empty((n, last - first), np.int32)
        tops = np.empty(n)
        count = _nbest_one(trellis, pair, table, s, scores, back, paths, tops)
        found.append([(float(tops[k]), paths[k].copy()) for k in range(count)])
    return found


def sample(trellis: Trellis, pair: Any, table: Any, uniform: Any) -> NDArray[np.int32]:
    """Labels drawn by their probability: uniform (n, T) in [0, 1) -> (n, T); -1 where a sentence is impossible."""
    pair, table = _checked(trellis, pair, table)
    uniform = np.ascontiguousarray(uniform, np.float64)
    labels = np.empty(uniform.shape, np.int32)
    alpha, log_z = np.empty_like(pair), np.empty(len(trellis.offsets) - 1)
    _forward_all(trellis, pair, table, alpha, log_z)
    _sample_all(trellis, table, alpha, log_z, uniform, labels)
    return labels


def _checked(trellis: Trellis, pair: Any, table: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    pair = np.require(pair, np.float64, ["C", "W"])
    table = np.require(table, np.float64, ["C", "W"])
    if pair.shape != (trellis.pairs[-1],):
        raise ValueError(f"{trellis.pairs[-1]} pair scores were expected, found an array of shape {pair.shape}")
    if table.ndim != 3 or len(set(table.shape)) != 1:
        raise ValueError(f"the trigram table must be a cube, not {table.shape}")
    if len(trellis.labels) and not 0 <= trellis.labels.min() <= trellis.labels.max() < len(table) - 1:
        raise ValueError(f"candidates must be numbers from 0 to {len(table) - 2}")
    return pair, table


# Kernels ------------------------------------------------------------------------------------------------------------


@kernel
def label_at(trellis: Any, first: Any, t: Any, k: Any, boundary: Any) -> Any:
    """Label of candidate k at token t; the boundary before the first token of the sentence."""
    return trellis.labels[trellis.starts[t] + k] if t >= first else boundary


@kernel
def width(trellis: Any, first: Any, t: Any) -> Any:
    """How many candidates there are at token t: one before the first token of the sentence."""
    return trellis.starts[t + 1] - trellis.starts[t] if t >= first else 1


@kernel
def _viterbi_all(trellis: Any, pair: Any, table: Any, best: Any, labels: Any, scores: Any) -> None:
    """Best labels of all sentences. pair, best (n_pairs,); table (L+1, L+1, L+1); labels (T,) out, scores (S,) out.

    No back pointers are stored: the way back looks each maximum up again.
    """
    end = len(table) - 1
    for s in range(len(scores)):
        first, last = trellis.offsets[s], trellis.offsets[s + 1]
        if first == last:
            scores[s] = table[end, end, end]
            continue
        for t in range(first, last):
            n_i, n_j, n_k = width(trellis, first, t - 2), width(trellis, first, t - 1), width(trellis, first, t)
            own = trellis.labels[trellis.starts[t] : trellis.starts[t + 1]]
            for j in range(n_j):
                here = trellis.pairs[t] + j * n_k
                now = best[here : here + n_k]
                middle = label_at(trellis, first, t - 1, j, end)
                for k in range(n_k):
                    now[k] = -np.inf
                for i in range(n_i):
                    before = best[trellis.pairs[t - 1] + i * n_j + j] if t > first else 0.0
                    row = table[label_at(trellis, first, t - 2, i, end), middle]
                    for k in range(n_k):
                        value = before + row[own[k]]
                        if value > now[k]:
                            now[k] = value
                for k in range(n_k):
                    now[k] += pair[here + k]
        t = last - 1
        n_j, n_k = width(trellis, first, t - 1), width(trellis, first, t)
        top, at_j, at_k = -np.inf, 0, 0
        for j in range(n_j):
            for k in range(n_k):
                row = table[label_at(trellis, first, t - 1, j, end), label_at(trellis, first, t, k, end)]
                value = best[trellis.pairs[t] + j * n_k + k] + row[end]
                if value > top:
                    top, at_j, at_k = value, j, k
        scores[s] = top
        for t in range(last - 1, first - 1, -1):
            label = label_at(trellis, first, t, at_k, end)
            labels[t] = label
            if t == first:
                break
            middle = label_at(trellis, first, t - 1, at_j, end)
            n_i, n_j = width(trellis, first, t - 2), width(trellis, first, t - 1)
            high, at_i = -np.inf, 0
            for i in range(n_i):
                value = best[trellis.pairs[t - 1] + i * n_j + at_j]
                value += table[label_at(trellis, first, t - 2, i, end), middle, label]
                if value > high:
                    high, at_i = value, i
            at_j, at_k = at_i, at_j


@kernel
def _forward_all(trellis: Any, pair: Any, table: Any, alpha: Any, log_z: Any) -> None:
    """alpha[p] = log of the sum over all beginnings that end in pair p, its own score included; log_z (S,) out."""
    end = len(table) - 1
    for s in range(len(log_z)):
        first, last = trellis.offsets[s], trellis.offsets[s + 1]
        if first == last:
            log_z[s] = table[end, end, end]
            continue
        for t in range(first, last):
            n_i, n_j, n_k = width(trellis, first, t - 2), width(trellis, first, t - 1), width(trellis, first, t)
            for j in range(n_j):
                middle = label_at(trellis, first, t - 1, j, end)
                for k in range(n_k):
                    here = trellis.pairs[t] + j * n_k + k
                    label = label_at(trellis, first, t, k, end)
                    if t == first:
                        alpha[here] = table[end, end, label] + pair[here]
                        continue
                    top = -np.inf
                    for i in range(n_i):
                        value = alpha[trellis.pairs[t - 1] + i * n_j + j]
                        value += table[label_at(trellis, first, t - 2, i, end), middle, label]
                        top = max(top, value)
                    total = 0.0
                    if top > -np.inf:
                        for i in range(n_i):
                            value = alpha[trellis.pairs[t - 1] + i * n_j + j]
                            value += table[label_at(trellis, first, t - 2, i, end), middle, label]
                            total += np.exp(value - top)
                    alpha[here] = top + np.log(total) + pair[here] if top > -np.inf else -np.inf
        t = last - 1
        n_j, n_k = width(trellis, first, t - 1), width(trellis, first, t)
        top = -np.inf
        for j in range(n_j):
            for k in range(n_k):
                row = table[label_at(trellis, first, t - 1, j, end), label_at(trellis, first, t, k, end)]
                top = max(top, alpha[trellis.pairs[t] + j * n_k + k] + row[end])
        total = 0.0
        if top > -np.inf:
            for j in range(n_j):
                for k in range(n_k):
                    row = table[label_at(trellis, first, t - 1, j, end), label_at(trellis, first, t, k, end)]
                    total += np.exp(alpha[trellis.pairs[t] + j * n_k + k] + row[end] - top)
        log_z[s] = top + np.log(total) if top > -np.inf else -np.inf


@kernel
def _marginals_all(trellis: Any, pair: Any, table: Any, alpha: Any, beta: Any, log_z: Any, probabilities: Any) -> None:
    """beta[p] = log of the sum over all endings after pair p; probabilities (n_candidates,) from zeros to marginals."""
    end = len(table) - 1
    for s in range(len(log_z)):
        first, last = trellis.offsets[s], trellis.offsets[s + 1]
        if log_z[s] == -np.inf:
            continue
        for t in range(last - 1, first - 1, -1):
            n_j, n_k = width(trellis, first, t - 1), width(trellis, first, t)
            n_l = width(trellis, first, t + 1) if t + 1 < last else 0
            for j in range(n_j):
                for k in range(n_k):
                    row = table[label_at(trellis, first, t - 1, j, end), label_at(trellis, first, t, k, end)]
                    here = trellis.pairs[t] + j * n_k + k
                    if n_l == 0:
                        beta[here] = row[end]
                    else:
                        next_ = trellis.pairs[t + 1] + k * n_l
                        top = -np.inf
                        for m in range(n_l):
                            value = row[trellis.labels[trellis.starts[t + 1] + m]] + pair[next_ + m] + beta[next_ + m]
                            top = max(top, value)
                        total = 0.0
                        if top > -np.inf:
                            for m in range(n_l):
                                value = (
                                    row[trellis.labels[trellis.starts[t + 1] + m]] + pair[next_ + m] + beta[next_ + m]
                                )
                                total += np.exp(value - top)
                        beta[here] = top + np.log(total) if top > -np.inf else -np.inf
                    probabilities[trellis.starts[t] + k] += np.exp(alpha[here] + beta[here] - log_z[s])


@kernel
def _nbest_one(trellis: Any, pair: Any, table: Any, s: Any, scores: Any, back: Any, paths: Any, tops: Any) -> Any:
    """The best sequences of one sentence; returns how many there are.

    scores (n_pairs, N), back (n_pairs, N, 2) scratch, of this sentence's pairs; paths (N, T), tops (N,) out
    """
    end = len(table) - 1
    first, last = trellis.offsets[s], trellis.offsets[s + 1]
    n_best = len(tops)
    if first == last:
        tops[0] = table[end, end, end]
        return 1 if tops[0] > -np.inf else 0
    base = trellis.pairs[first]
    scores[:] = -np.inf
    for t in range(first, last):
        n_i, n_j, n_k = width(trellis, first, t - 2), width(trellis, first, t - 1), width(trellis, first, t)
        for j in range(n_j):
            middle = label_at(trellis, first, t - 1, j, end)
            for k in range(n_k):
                here = trellis.pairs[t] - base + j * n_k + k
                label = label_at(trellis, first, t, k, end)
                if t == first:
                    scores[here, 0] = table[end, end, label] + pair[base + here]
                    continue
                for i in range(n_i):
                    step = table[label_at(trellis, first, t - 2, i, end), middle, label] + pair[base + here]
                    source = trellis.pairs[t - 1] - base + i * n_j + j
                    for r in range(n_best):
                        value = scores[source, r] + step
                        if not value > scores[here, n_best - 1]:
                            break
                        place = n_best - 1
                        while place > 0 and value > scores[here, place - 1]:
                            scores[here, place] = scores[here, place - 1]
                            back[here, place] = back[here, place - 1]
                            place -= 1
                        scores[here, place] = value
                        back[here, place, 0], back[here, place, 1] = i, r
    t = last - 1
    n_j, n_k = width(trellis, first, t - 1), width(trellis, first, t)
    ends = np.empty((n_best, 3), np.int64)
    tops[:] = -np.inf
    for j in range(n_j):
        for k in range(n_k):
            step = table[label_at(trellis, first, t - 1, j, end), label_at(trellis, first, t, k, end), end]
            for r in range(n_best):
                value = scores[trellis.pairs[t] - base + j * n_k + k, r] + step
                if not value > tops[n_best - 1]:
                    break
                place = n_best - 1
                while place > 0 and value > tops[place - 1]:
                    tops[place] = tops[place - 1]
                    ends[place] = ends[place - 1]
                    place -= 1
                tops[place] = value
                ends[place, 0], ends[place, 1], ends[place, 2] = j, k, r
    count = 0
    while count < n_best and tops[count] > -np.inf:
        j, k, r = ends[count, 0], ends[count, 1], ends[count, 2]
        for t in range(last - 1, first - 1, -1):
            paths[count, t - first] = label_at(trellis, first, t, k, end)
            here = trellis.pairs[t] - base + j * width(trellis, first, t) + k
            i, r = back[here, r, 0], back[here, r, 1]
            j, k = i, j
        count += 1
    return count


@kernel
def _sample_all(trellis: Any, table: Any, alpha: Any, log_z: Any, uniform: Any, labels: Any) -> None:
    """Draw from the last token to the first; uniform, labels (n, T)."""
    end = len(table) - 1
    for s in range(len(log_z)):
        first, last = trellis.offsets[s], trellis.offsets[s + 1]
        for draw in range(len(labels)):
            if log_z[s] == -np.inf:
                labels[draw, first:last] = -1
                continue
            at_j, at_k = 0, 0
            for t in range(last, first, -1):
                # At t the labels at t - 1 (and, at the end, t - 1 and t) are drawn: pair (i, j) ends at token t - 1.
                n_i, n_j = width(trellis, first, t - 2), width(trellis, first, t - 1)
                label = label_at(trellis, first, t, at_k, end) if t < last else end
                fixed = -1 if t == last else at_j
                left = uniform[draw, t - 1]
                top = -np.inf
                for i in range(n_i):
                    for j in range(n_j):
                        if fixed < 0 or j == fixed:
                            row = table[
                                label_at(trellis, first, t - 2, i, end), label_at(trellis, first, t - 1, j, end)
                            ]
                            top = max(top, alpha[trellis.pairs[t - 1] + i * n_j + j] + row[label])
                total = 0.0
                for i in range(n_i):
                    for j in range(n_j):
                        if fixed < 0 or j == fixed:
                            row = table[
                                label_at(trellis, first, t - 2, i, end), label_at(trellis, first, t - 1, j, end)
                            ]
                            total += np.exp(alpha[trellis.pairs[t - 1] + i * n_j + j] + row[label] - top)
                left *= total
                chosen_i, chosen_j = 0, 0
                found = False
                for i in range(n_i):
                    for j in range(n_j):
                        if (fixed < 0 or j == fixed) and not found:
                            row = table[
                                label_at(trellis, first, t - 2, i, end), label_at(trellis, first, t - 1, j, end)
                            ]
                            weight = np.exp(alpha[trellis.pairs[t - 1] + i * n_j + j] + row[label] - top)
                            if weight > 0:
                                chosen_i, chosen_j = i, j
                                found = left < weight
                                left -= weight
                labels[draw, t - 1] = label_at(trellis, first, t - 1, chosen_j, end)
                at_j, at_k = chosen_i, chosen_j
