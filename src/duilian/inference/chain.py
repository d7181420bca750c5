"""Sums and maxima over label sequences of a linear chain: all labels at every unit, one transition table.

    score(y) = sum_t node[t, y_t] + start[y_0] + sum_t trans[y_(t-1), y_t] + end[y_(T-1)]           (li2015 Eq. 1)

Most transitions between character labels are impossible; ``runs`` says which next labels each label may have, as a few
ranges, and the loops visit only those. Twins by enumeration: ``tests/naive/chain.py``.

The recursions work on exponentials scaled to sum to one at each unit, so that one pass gives log Z and the marginals.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from duilian.kernels import fast_kernel, kernel
from duilian.vectors import LANES, multiply


class Runs(NamedTuple):
    """Allowed next labels of each label, as ranges; four neighbours with the same ranges form one block.

    firsts:  (n_blocks,) int64, first label of a block; sizes: (n_blocks,) int64, 4 or 1 labels
    offsets: (n_blocks + 1,) int64; the ranges of block b are offsets[b]:offsets[b + 1]
    begins:  (n_ranges,) uint64; ends: (n_ranges,) uint64
    whole:   bool, whether every label may follow every other
    """

    firsts: Any
    sizes: Any
    offsets: Any
    begins: Any
    ends: Any
    whole: Any


def runs_of(allowed: Any) -> Runs:
    """Runs of a table of allowed transitions (L, L) bool."""
    allowed = np.asarray(allowed, np.bool_)
    firsts: list[int] = []
    sizes: list[int] = []
    counts: list[int] = []
    begins: list[Any] = []
    ends: list[Any] = []
    label = 0
    while label < len(allowed):
        size = 4 if label + 4 <= len(allowed) and (allowed[label : label + 4] == allowed[label]).all() else 1
        edges = np.diff(np.pad(allowed[label].astype(np.int8), 1))
        firsts.append(label)
        sizes.append(size)
        begins.extend(np.flatnonzero(edges == 1))
        ends.extend(np.flatnonzero(edges == -1))
        counts.append(len(begins))
        label += size
    return Runs(
        np.array(firsts, np.int64),
        np.array(sizes, np.int64),
        np.array([0, *counts], np.int64),
        np.array(begins, np.uint64),
        np.array(ends, np.uint64),
        np.bool_(allowed.all()),
    )


@kernel
def room_for(n_labels: Any, runs: Any) -> Any:
    """Columns that arrays of labels should have: n_labels, or a few more, all 0, so that products are fast."""
    return -(-n_labels // LANES) * LANES if runs.whole else n_labels


@fast_kernel
def exponentials(node: Any, n: Any, psi: Any, bits: Any, power: Any) -> Any:
    """psi[t, j] = exp(node[t, j] - max_j node[t, j]); returns the sum of the maxima.

    node (>= n, L) float32; psi (>= n, L) float32 out; bits (L,) int32 and power (L,) float32 the same memory: 2**k is
    written as the bits of a float and read back as one. Relative error below 3e-7 (1 + x) for a label x below the
    best; what float32 cannot hold becomes 0, so that a sentence that hangs on it is seen to fail, not misjudged.
    """
    n_labels = node.shape[1]
    total = 0.0
    log2e = np.float32(1.4426950408889634)
    for t in range(n):
        row, out = node[t], psi[t]
        top = row[0]
        for j in range(1, n_labels):
            if row[j] > top:
                top = row[j]
        total += top
        for j in range(n_labels):
            y = (row[j] - top) * log2e
            y = y if y > np.float32(-126.0) else np.float32(-126.0)
            k = np.floor(y)
            f = y - k
            p = np.float32(1.8775767e-3)
            p = p * f + np.float32(8.9893397e-3)
            p = p * f + np.float32(5.5826318e-2)
            p = p * f + np.float32(2.4015361e-1)
            p = p * f + np.float32(6.9315308e-1)
            p = p * f + np.float32(9.9999994e-1)
            bits[j] = (np.int32(k) + np.int32(127)) << np.int32(23)
            out[j] = p if y > np.float32(-126.0) else np.float32(0)
        for j in range(n_labels):
            out[j] *= power[j]
    return total


@kernel
def exponentials64(node: Any, n: Any, psi: Any) -> Any:
    """``exponentials`` in float64: node (>= n, L) -> psi (>= n, L); returns the sum of the maxima."""
    total = 0.0
    for t in range(n):
        top = node[t].max()
        if top == -np.inf:
            psi[t] = 0
            total = -np.inf
            continue
        total += top
        for j in range(node.shape[1]):
            psi[t, j] = np.exp(node[t, j] - top)
    return total


@kernel
def constrain(node: Any, begin: Any, end: Any, labels: Any, set_data: Any, set_offsets: Any) -> Any:
    """Set node to -inf wherever a unit does not allow the label; returns whether any unit allows only some.

    node (>= end - begin, L) in and out, for units begin..end; labels (U,) int32: -1 all, >= 0 that one,
    -2 - k the labels set_data[set_offsets[k]:set_offsets[k + 1]], which rise
    """
    n_labels = node.shape[1]
    some = False
    for u in range(begin, end):
        label = labels[u]
        if label == -1:
            continue
        some = True
        row = node[u - begin]
        if label >= 0:
            keep = row[label]
            row[:] = -np.inf
            row[label] = keep
        else:
            at = set_offsets[-2 - label]
            stop = set_offsets[-1 - label]
            for j in range(n_labels):
                if at < stop and set_data[at] == j:
                    at += 1
                else:
                    row[j] = -np.inf
    return some


@fast_kernel
def spread(table: Any, values: Any, runs: Any, out: Any) -> None:
    """out[j] += sum_i values[i] * table[i, j] over the labels j that may follow i. table (L, L), values, out (L,)."""
    for block in range(len(runs.firsts)):
        i = runs.firsts[block]
        a, row = values[i], table[i]
        if runs.sizes[block] == 4:
            b, c, d = values[i + 1], values[i + 2], values[i + 3]
            row_b, row_c, row_d = table[i + 1], table[i + 2], table[i + 3]
            for r in range(runs.offsets[block], runs.offsets[block + 1]):
                for j in range(runs.begins[r], runs.ends[r]):
                    out[j] += a * row[j] + b * row_b[j] + c * row_c[j] + d * row_d[j]
        else:
            for r in range(runs.offsets[block], runs.offsets[block + 1]):
                for j in range(runs.begins[r], runs.ends[r]):
                    out[j] += a * row[j]


@fast_kernel
def total_of(values: Any) -> Any:
    """Sum of values (L,), in four running sums so that additions need not wait for each other."""
    w = x = y = z = values[0] * 0
    n = len(values)
    for j in range(0, n - 3, 4):
        w += values[j]
        x += values[j + 1]
        y += values[j + 2]
        z += values[j + 3]
    for j in range(n - n % 4, n):
        w += values[j]
    return (w + x) + (y + z)


@fast_kernel
def forward(psi: Any, n: Any, table: Any, start: Any, end: Any, runs: Any, alpha: Any, norm: Any) -> Any:
    """Scaled forward pass: alpha[t] sums to one, norm[t] is what it summed to; returns log of the sum over all paths.

    psi (>= n, W), table (L, W), start (W,), end (W,) exponentials; alpha (>= n, W), norm (>= n + 1,) out. W is L, or
    more (``room_for``) with zeros behind L
    """
    n_labels = psi.shape[1]
    real = table.shape[0]
    total = 0.0
    for t in range(n):
        now = alpha[t]
        if t == 0:
            for j in range(n_labels):
                now[j] = start[j]
        else:
            for j in range(n_labels):
                now[j] = 0
            if runs.whole:
                multiply(alpha[t - 1 : t, :real], table, alpha[t : t + 1])
            else:
                spread(table, alpha[t - 1], runs, now)
        here = psi[t]
        for j in range(n_labels):
            now[j] *= here[j]
        z = total_of(now)
        norm[t] = z
        scale = 1 / z
        for j in range(n_labels):
            now[j] *= scale
        total += np.log(z)
    last = alpha[n - 1]
    z = last[0] * 0
    for j in range(n_labels):
        z += last[j] * end[j]
    norm[n] = z
    return total + np.log(z)


@fast_kernel
def backward(
    psi: Any, n: Any, turned: Any, end: Any, runs: Any, back: Any, alpha: Any, norm: Any, beta: Any, pairs: Any,
    eps: Any,
) -> None:  # fmt: skip
    """Scaled backward pass; alpha becomes the marginals, and expected transitions are added to pairs.

    shapes as in ``forward``; psi is spoilt; turned (L, W) the table with rows and columns exchanged, and back its runs;
    beta (>= n, W) scratch; pairs (L, W) in and out: the expected number of times i is followed by j is
    pairs[i, j] * table[i, j]. No pairs with an eps above 1; where not every label may follow every other, labels with
    a marginal of at most eps are left out of pairs.
    """
    n_labels = psi.shape[1]
    real = turned.shape[0]
    scale = 1 / norm[n]
    for j in range(n_labels):
        beta[n - 1, j] = end[j] * scale
    for t in range(n - 2, -1, -1):
        scale = 1 / norm[t + 1]
        next_, after, before = psi[t + 1], beta[t + 1], beta[t]
        for j in range(n_labels):
            next_[j] = after[j] * next_[j] * scale
            before[j] = 0
        if runs.whole:
            multiply(psi[t + 1 : t + 2, :real], turned, beta[t : t + 1])
        else:
            spread(turned, next_, back, before)
    if runs.whole:
        if n > 1 and eps <= 1:
            multiply(alpha[: n - 1, :real].T, psi[1:n], pairs)
        for t in range(n):
            for j in range(n_labels):
                alpha[t, j] *= beta[t, j]
        return
    for j in range(n_labels):
        alpha[n - 1, j] *= beta[n - 1, j]
    for t in range(n - 1):
        now, after, next_ = alpha[t], beta[t], psi[t + 1]
        for block in range(len(runs.firsts)):
            for i in range(runs.firsts[block], runs.firsts[block] + runs.sizes[block]):
                a = now[i]
                p = a * after[i]
                now[i] = p
                if p > eps:
                    out = pairs[i]
                    for r in range(runs.offsets[block], runs.offsets[block + 1]):
                        for j in range(runs.begins[r], runs.ends[r]):
                            out[j] += a * next_[j]


@kernel
def viterbi(node: Any, n: Any, trans: Any, start: Any, end: Any, runs: Any, best: Any, path: Any) -> Any:
    """Best labels and their score. node (>= n, L), trans (L, L), start, end (L,); best scratch as node; path (n,) out.

    No back pointers are stored: the way back looks each step up again, L operations instead of L * L writes.
    """
    n_labels = node.shape[1]
    for t in range(n):
        now, here = best[t], node[t]
        if t == 0:
            for j in range(n_labels):
                now[j] = start[j] + here[j]
            continue
        for j in range(n_labels):
            now[j] = -np.inf
        before = best[t - 1]
        for block in range(len(runs.firsts)):
            i = runs.firsts[block]
            a, row = before[i], trans[i]
            if runs.sizes[block] == 4:
                b, c, d = before[i + 1], before[i + 2], before[i + 3]
                row_b, row_c, row_d = trans[i + 1], trans[i + 2], trans[i + 3]
                for r in range(runs.offsets[block], runs.offsets[block + 1]):
                    for j in range(runs.begins[r], runs.ends[r]):
                        w, x, y, z = a + row[j], b + row_b[j], c + row_c[j], d + row_d[j]
                        w = w if w > x else x
                        y = y if y > z else z
                        w = w if w > y else y
                        now[j] = w if w > now[j] else now[j]
            else:
                for r in range(runs.offsets[block], runs.offsets[block + 1]):
                    for j in range(runs.begins[r], runs.ends[r]):
                        w = a + row[j]
                        now[j] = w if w > now[j] else now[j]
        for j in range(n_labels):
            now[j] += here[j]
    label = 0
    last = best[n - 1]
    top = last[0] + end[0]
    for j in range(1, n_labels):
        s = last[j] + end[j]
        if s > top:
            top = s
            label = j
    path[n - 1] = label
    for t in range(n - 2, -1, -1):
        before = best[t]
        choice = 0
        high = before[0] + trans[0, label]
        for i in range(1, n_labels):
            s = before[i] + trans[i, label]
            if s > high:
                high = s
                choice = i
        label = choice
        path[t] = label
    return top


@kernel
def is_wrong(label: Any, t: Any, gold: Any, allowed: Any) -> Any:
    """Whether a label is not allowed at unit t. gold (n,) int32; allowed (n, L), -inf for no, or (0, L): gold alone."""
    return label != gold[t] if len(allowed) == 0 else allowed[t, label] == -np.inf


@kernel
def best_wrong(
    node: Any, n: Any, trans: Any, start: Any, end: Any, runs: Any, gold: Any, allowed: Any, best: Any, rest: Any,
    path: Any,
) -> Any:  # fmt: skip
    """Best label sequence that is wrong at some unit, and its score (-inf when there is none).

    Shapes as in ``viterbi`` and ``is_wrong``; rest (>= n, L) scratch. When the best of all is right, the best wrong
    sequence is the best one through a wrong label of any unit.
    """
    n_labels = node.shape[1]
    top = viterbi(node, n, trans, start, end, runs, best, path)
    for t in range(n):
        if is_wrong(path[t], t, gold, allowed):
            return top
    for j in range(n_labels):
        rest[n - 1, j] = end[j]
    for t in range(n - 2, -1, -1):
        for block in range(len(runs.firsts)):
            for i in range(runs.firsts[block], runs.firsts[block] + runs.sizes[block]):
                s = trans[i, 0] - np.float32(np.inf)
                row = trans[i]
                for r in range(runs.offsets[block], runs.offsets[block + 1]):
                    for j in range(runs.begins[r], runs.ends[r]):
                        x = row[j] + node[t + 1, j] + rest[t + 1, j]
                        s = x if x > s else s
                rest[t, i] = s
    high = best[0, 0] - np.float32(np.inf)
    at, label = -1, -1
    for t in range(n):
        for j in range(n_labels):
            x = best[t, j] + rest[t, j]
            if x > high and is_wrong(j, t, gold, allowed):
                high, at, label = x, t, j
    if at < 0:
        return high
    path[at] = label
    for t in range(at - 1, -1, -1):
        choice, x = 0, best[t, 0] + trans[0, path[t + 1]]
        for i in range(1, n_labels):
            if best[t, i] + trans[i, path[t + 1]] > x:
                choice, x = i, best[t, i] + trans[i, path[t + 1]]
        path[t] = choice
    for t in range(at + 1, n):
        choice, x = 0, trans[path[t - 1], 0] + node[t, 0] + rest[t, 0]
        for j in range(1, n_labels):
            y = trans[path[t - 1], j] + node[t, j] + rest[t, j]
            if y > x:
                choice, x = j, y
        path[t] = choice
    return high
