"""Online learners over sequences: averaged perceptron and PA-I. One sentence, one prediction, one update.

    perceptron  w += Phi(x, gold) - Phi(x, pred)                              jiang2012 Algorithm 1, Collins 2002
    PA-I        w += tau (Phi(x, gold) - Phi(x, wrong)), wrong the best wrong sequence,
                tau = min(C, max(0, 1 - margin) / |e|^2)                      qiu2013 Eq. 11-15, Crammer et al. 2006

A sentence that counts g times as much takes a step of g, and of at most g C. Where labels are partly known, gold is
the best sequence among those allowed, and a sequence is wrong if some label is not allowed. The average over all steps
is kept as w - sums / n: each change also goes into sums, times the step it came at.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from duilian.inference.chain import best_wrong, constrain, is_wrong, viterbi
from duilian.kernels import kernel
from duilian.models.weights import entry, score


@kernel
def list_changes(sparse: Any, features: Any, first: Any, gold: Any, pred: Any, n: Any, entries: Any, signs: Any) -> Any:
    """Weights in which gold and pred differ, +1 and -1, into entries and signs; returns how many."""
    found = 0
    for t in range(n):
        if gold[t] != pred[t]:
            for k in range(features.offsets[first + t], features.offsets[first + t + 1]):
                e = entry(sparse, features.data[k], gold[t])
                if e >= 0:
                    entries[found], signs[found] = e, 1
                    found += 1
                e = entry(sparse, features.data[k], pred[t])
                if e >= 0:
                    entries[found], signs[found] = e, -1
                    found += 1
    return found


@kernel
def list_steps(gold: Any, pred: Any, n: Any, n_labels: Any, codes: Any, signs: Any) -> Any:
    """The same for transitions: code i * L + j, start L * L + j, end L * L + L + i; returns how many."""
    found = 0
    for t in range(n + 1):
        if t == 0:
            a, b = n_labels * n_labels + gold[0], n_labels * n_labels + pred[0]
        elif t == n:
            a = n_labels * n_labels + n_labels + gold[n - 1]
            b = n_labels * n_labels + n_labels + pred[n - 1]
        else:
            a, b = np.int64(gold[t - 1]) * n_labels + gold[t], np.int64(pred[t - 1]) * n_labels + pred[t]
        if a != b:
            codes[found], signs[found] = a, 1
            codes[found + 1], signs[found + 1] = b, -1
            found += 2
    return found


@kernel
def squared_norm(numbers: Any, signs: Any, n: Any) -> Any:
    """|e|^2 of a sparse vector given as +1 and -1 at numbers, which may repeat."""
    order = np.argsort(numbers[:n])
    total = 0.0
    k = 0
    while k < n:
        number = numbers[order[k]]
        value = 0
        while k < n and numbers[order[k]] == number:
            value += signs[order[k]]
            k += 1
        total += value * value
    return total


@kernel
def online_pass(
    sparse: Any, sums: Any, table: Any, table_sums: Any, runs: Any, features: Any, labels: Any, set_data: Any,
    set_offsets: Any, sentences: Any, order: Any, now: Any, aggressiveness: Any, by_errors: Any, gains: Any,
) -> Any:  # fmt: skip
    """One pass over sentences in the given order; returns how many units were wrong.

    sparse: Sparse and sums (n_entries,) float32; table (L * L + 2 * L,) float32: transitions, starts, ends, -inf where
    the grammar forbids, and its sums; labels (U,) int32 as in ``constrain``; now: number of the first step, from 1;
    aggressiveness: C of PA-I, or 0 for the perceptron; by_errors: the margin asked for is the number of wrong labels;
    gains (S,) float32: how much each sentence counts, or () where all count 1
    """
    n_labels = np.int64(np.sqrt(len(table) + 1.0)) - 1
    square = n_labels * n_labels
    trans = table[:square].reshape(n_labels, n_labels)
    start, end = table[square : square + n_labels], table[square + n_labels :]
    longest, most = 1, 1
    for k in range(len(order)):
        first, last = sentences[order[k]], sentences[order[k] + 1]
        longest = max(longest, last - first)
        most = max(most, features.offsets[last] - features.offsets[first])
    node = np.empty((longest, n_labels), np.float32)
    best = np.empty((longest, n_labels), np.float32)
    rest = np.empty((longest if aggressiveness > 0 else 1, n_labels), np.float32)
    path = np.empty(longest, np.int32)
    gold = np.empty(longest, np.int32)
    entries, signs = np.empty(2 * most, np.int64), np.empty(2 * most, np.int8)
    codes, ways = np.empty(2 * longest + 2, np.int64), np.empty(2 * longest + 2, np.int8)
    wrong = 0
    for k in range(len(order)):
        first, last = sentences[order[k]], sentences[order[k] + 1]
        n = last - first
        if n == 0:
            continue
        score(sparse, features, first, last, np.float32(1), node)
        known = True
        for t in range(n):
            gold[t] = labels[first + t]
            known = known and gold[t] >= 0
        allowed = node[:0]
        if not known:
            allowed = node[:n].copy()
            constrain(allowed, first, last, labels, set_data, set_offsets)
            viterbi(allowed, n, trans, start, end, runs, best, gold)
        goal = np.float64(start[gold[0]]) + end[gold[n - 1]]
        for t in range(n):
            goal += node[t, gold[t]] if known else allowed[t, gold[t]]
            if t > 0:
                goal += trans[gold[t - 1], gold[t]]
        if goal == -np.inf:  # labels that the grammar forbids: nothing to learn
            continue
        gain = gains[order[k]] if len(gains) else np.float32(1)
        step = gain
        if aggressiveness > 0:
            high = best_wrong(node, n, trans, start, end, runs, gold, allowed, best, rest, path)
            if high == -np.inf:
                continue
            errors = 0
            for t in range(n):
                errors += is_wrong(path[t], t, gold, allowed)
            if high >= goal:
                wrong += errors
            loss = (errors if by_errors else 1) - (goal - high)
            if loss <= 0:
                continue
            n_entries = list_changes(sparse, features, first, gold, path, n, entries, signs)
            n_codes = list_steps(gold, path, n, n_labels, codes, ways)
            norm = squared_norm(entries, signs, n_entries) + squared_norm(codes, ways, n_codes)
            if norm == 0:
                continue
            step = np.float32(min(gain * aggressiveness, loss / norm))
        else:
            viterbi(node, n, trans, start, end, runs, best, path)
            errors = 0
            for t in range(n):
                errors += gold[t] != path[t]
            if errors == 0:
                continue
            wrong += errors
            n_entries = list_changes(sparse, features, first, gold, path, n, entries, signs)
            n_codes = list_steps(gold, path, n, n_labels, codes, ways)
        c = np.float32(now + k) * step
        for e in range(n_entries):
            sparse.weights[entries[e]] += step * signs[e]
            sums[entries[e]] += c * signs[e]
        for e in range(n_codes):
            table[codes[e]] += step * ways[e]
            table_sums[codes[e]] += c * ways[e]
    return wrong
