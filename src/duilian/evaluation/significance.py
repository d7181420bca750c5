"""Is one annotation better than another by more than chance? Randomization test and bootstrap over sentences.

Both work on three counts of each sentence, from which every score is F = 2 correct / (pred + gold); token accuracy is
the case pred = gold = words.

Randomization (Noreen 1989; stratified shuffling as in Bikel's comparator): under the null hypothesis the two outputs of
a sentence may be exchanged. R times, each sentence is exchanged with probability 1/2;
p = (n + 1) / (R + 1), n the number of times that |difference| is at least the one observed.
Bootstrap: R times, as many sentences are drawn with replacement; the interval is between quantiles of the differences.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

TIE = 1e-9
"""Differences of F (0 to 100) that are closer than this are the same."""
_BLOCK = 1 << 22
"""Random draws are held in memory this many at a time; results do not depend on it."""
_EXACT_FLOAT32 = 1 << 24


@dataclass(frozen=True, eq=False)
class SentenceCounts:
    """correct, pred, gold: (S,) int64 each."""

    correct: NDArray[np.int64]
    pred: NDArray[np.int64]
    gold: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.correct)

    def f(self) -> float:
        """F over all sentences, 0 to 100."""
        return float(f_of(self.correct.sum(), self.pred.sum(), self.gold.sum()))


def f_of(correct: ArrayLike, pred: ArrayLike, gold: ArrayLike) -> NDArray[np.float64]:
    """F, 0 to 100, elementwise; of nothing it is 0."""
    total = np.asarray(pred, dtype=np.float64) + np.asarray(gold, dtype=np.float64)
    return np.asarray(200.0 * np.asarray(correct) / np.where(total > 0, total, 1.0))


def randomization(first: SentenceCounts, second: SentenceCounts, samples: int = 10_000, seed: int = 0) -> float:
    """Two-sided p-value of F(second) - F(first)."""
    _check(first, second, samples)
    swap = np.stack([second.correct - first.correct, second.pred - first.pred], axis=1)
    swap = swap[np.any(swap != 0, axis=1)]
    gold = first.gold.sum()
    observed = abs(second.f() - first.f())
    n_extreme = 0
    for moved in _random_sums(swap, samples, np.random.default_rng(seed)):
        one = f_of(first.correct.sum() + moved[:, 0], first.pred.sum() + moved[:, 1], gold)
        other = f_of(second.correct.sum() - moved[:, 0], second.pred.sum() - moved[:, 1], gold)
        n_extreme += int(np.count_nonzero(np.abs(other - one) >= observed - TIE))
    return (n_extreme + 1) / (samples + 1)


def bootstrap(
    first: SentenceCounts, second: SentenceCounts, samples: int = 10_000, seed: int = 0, level: float = 0.95
) -> tuple[float, float]:
    """The interval of F(second) - F(first) that holds ``level`` of the resampled differences; (0, 0) of nothing."""
    _check(first, second, samples)
    if not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1, found {level}")
    n = len(first)
    if n == 0:
        return 0.0, 0.0
    rng = np.random.default_rng(seed)
    columns = np.stack([first.correct, first.pred, second.correct, second.pred, first.gold], axis=1).astype(np.float64)
    differences = np.empty(samples)
    rows = max(1, _BLOCK // n)
    for begin in range(0, samples, rows):
        size = min(rows, samples - begin)
        drawn = np.empty((size, n))
        for row in range(size):
            drawn[row] = np.bincount(rng.integers(0, n, size=n), minlength=n)
        sums = drawn @ columns
        correct_1, pred_1, correct_2, pred_2, gold = sums.T
        differences[begin : begin + size] = f_of(correct_2, pred_2, gold) - f_of(correct_1, pred_1, gold)
    tail = (1 - level) / 2
    low, high = np.quantile(differences, [tail, 1 - tail])
    return float(low), float(high)


def _random_sums(values: NDArray[np.int64], samples: int, rng: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    """Blocks of (rows, k) int64: sums of the rows of values (S, k) that a fair coin picks, for each sample."""
    n = len(values)
    exact = np.abs(values).sum() < _EXACT_FLOAT32
    factors = values.astype(np.float32 if exact else np.float64)
    n_bytes = 8 * ((n + 63) // 64)
    rows = max(1, _BLOCK // max(n, 1))
    for begin in range(0, samples, rows):
        size = min(rows, samples - begin)
        coins = np.frombuffer(rng.bytes(size * n_bytes), np.uint8).reshape(size, n_bytes)
        picked = np.unpackbits(coins, axis=1, count=n).astype(factors.dtype)
        yield np.rint(picked @ factors).astype(np.int64)


def _check(first: SentenceCounts, second: SentenceCounts, samples: int) -> None:
    if samples < 1:
        raise ValueError(f"samples must be at least 1, found {samples}")
    if not np.array_equal(first.gold, second.gold):
        raise ValueError("the two are not scored against the same gold: their gold counts differ")
