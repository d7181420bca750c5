"""Are confidences worth something? Calibration error, risk and coverage, and the temperature that mends overconfidence.

All functions take two arrays over the same tokens: confidence (n,), 0 to 1, and right (n,), bool. Results are 0 to 1.
Tokens of equal confidence have no order: where a cut falls among them, their errors are taken to be spread evenly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from duilian.ragged import Ragged

N_BINS = 15
_GOLDEN = (np.sqrt(5.0) - 1) / 2


@dataclass(frozen=True, eq=False)
class Bins:
    """A reliability table: n tokens in each bin, their mean confidence and the share that is right (0 where n is 0).

    edges: (bins + 1,); bin k holds the confidences in (edges[k], edges[k + 1]], the first also 0
    """

    edges: NDArray[np.float64]
    n: NDArray[np.int64]
    confidence: NDArray[np.float64]
    right: NDArray[np.float64]

    @property
    def error(self) -> float:
        """Expected calibration error: sum over bins of n / N * |share right - mean confidence|; 0 of nothing."""
        total = int(self.n.sum())
        return float(np.sum(self.n * np.abs(self.right - self.confidence)) / total) if total else 0.0


def reliability(confidence: ArrayLike, right: ArrayLike, n_bins: int = N_BINS) -> Bins:
    """Tokens in bins of equal width by their confidence."""
    sure, good = _checked(confidence, right)
    which = np.clip(np.ceil(sure * n_bins).astype(np.int64) - 1, 0, n_bins - 1)
    n = np.bincount(which, minlength=n_bins)
    some = np.maximum(n, 1)
    return Bins(
        np.linspace(0.0, 1.0, n_bins + 1),
        n,
        np.bincount(which, weights=sure, minlength=n_bins) / some,
        np.bincount(which, weights=good, minlength=n_bins) / some,
    )


def calibration_error(confidence: ArrayLike, right: ArrayLike, n_bins: int = N_BINS) -> float:
    """ECE over bins of equal width."""
    return reliability(confidence, right, n_bins).error


@dataclass(frozen=True, eq=False)
class RiskCoverage:
    """What is kept and what it costs when only the most confident tokens are kept.

    threshold: (m,) each confidence that occurs, falling
    coverage:  (m,) share of the tokens at or above it
    risk:      (m,) share of errors among those
    area:      mean risk over all numbers of kept tokens, 1 to n; smaller is better; 0 of nothing
    """

    threshold: NDArray[np.float64]
    coverage: NDArray[np.float64]
    risk: NDArray[np.float64]
    area: float


def risk_coverage(confidence: ArrayLike, right: ArrayLike) -> RiskCoverage:
    """The risk-coverage curve, from the most confident token down."""
    sure, good = _checked(confidence, right)
    threshold, n, wrong = _groups(-sure, 1.0 - good)
    kept, errors = np.cumsum(n), np.cumsum(wrong)
    counts = np.arange(1, len(sure) + 1)
    area = float(np.mean(_spread(kept, errors, counts) / counts)) if len(sure) else 0.0
    return RiskCoverage(-threshold, kept / max(len(sure), 1), errors / np.maximum(kept, 1), area)


def errors_found(confidence: ArrayLike, right: ArrayLike, share: float) -> float:
    """The share of all errors that is among the given share of the least confident tokens; 0 if there are no errors."""
    if not 0 <= share <= 1:
        raise ValueError(f"share must be between 0 and 1, found {share}")
    sure, good = _checked(confidence, right)
    _, n, wrong = _groups(sure, 1.0 - good)
    total = wrong.sum()
    if not total:
        return 0.0
    return float(_spread(np.cumsum(n), np.cumsum(wrong), share * len(sure)) / total)


def best_temperature(
    loss: Callable[[float], float], low: float = 1e-3, high: float = 1e6, tolerance: float = 1e-4
) -> float:
    """The temperature at which ``loss`` is least, by golden section in its logarithm.

    A mean negative log-likelihood of softmax(scores / T), over tokens or over chains, is convex in 1/T, so has one
    minimum only. The result is within the relative tolerance of it, or of an end of [low, high] where the loss falls
    towards that end: low if every token is right, high if the scores tell nothing.
    """
    a, b = np.log(low), np.log(high)
    c, d = b - _GOLDEN * (b - a), a + _GOLDEN * (b - a)
    at_c, at_d = loss(float(np.exp(c))), loss(float(np.exp(d)))
    while b - a > tolerance:
        if at_c <= at_d:
            b, d, at_d = d, c, at_c
            c = b - _GOLDEN * (b - a)
            at_c = loss(float(np.exp(c)))
        else:
            a, c, at_c = c, d, at_d
            d = a + _GOLDEN * (b - a)
            at_d = loss(float(np.exp(d)))
    return float(np.exp((a + b) / 2))


def fit_temperature(scores: NDArray[np.float64] | Ragged, gold: ArrayLike) -> float:
    """The temperature that makes softmax(scores / T) likeliest to give the gold labels of a dev set; 1 of nothing.

    scores: (n, L), or Ragged of n rows of candidates' scores; gold: (n,) the column of the gold label, -1 is left out
    """
    wanted = np.asarray(gold, dtype=np.int64)
    if isinstance(scores, Ragged):
        rows = scores.select(np.flatnonzero(wanted >= 0))
        flat, starts, lengths = rows.data.astype(np.float64), rows.offsets[:-1], rows.lengths
    else:
        table = np.asarray(scores, dtype=np.float64)[wanted >= 0]
        flat, lengths = table.ravel(), np.full(len(table), table.shape[1])
        starts = np.arange(len(table)) * table.shape[1]
    wanted = wanted[wanted >= 0]
    if np.any(wanted >= lengths):
        raise ValueError("a gold label is not among the scores of its row")
    if len(wanted) == 0:
        return 1.0
    below_best = flat - np.repeat(np.maximum.reduceat(flat, starts), lengths)
    gold_below = below_best[starts + wanted]

    def loss(temperature: float) -> float:
        log_z = np.log(np.add.reduceat(np.exp(below_best / temperature), starts))
        return float(np.mean(log_z - gold_below / temperature))

    scale = float(np.abs(below_best).max())
    if scale == 0:
        return 1.0
    return best_temperature(loss, low=1e-3 * scale / np.log(len(flat) + 2), high=1e3 * scale)


def _checked(confidence: ArrayLike, right: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    sure, good = np.asarray(confidence, dtype=np.float64), np.asarray(right, dtype=np.float64)
    if sure.shape != good.shape or sure.ndim != 1:
        raise ValueError(f"confidence and right must be two arrays of one length, found {sure.shape} and {good.shape}")
    if len(sure) and not (sure.min() >= 0 and sure.max() <= 1 + 1e-6):
        raise ValueError("confidences must be between 0 and 1")
    return sure, good


def _groups(
    keys: NDArray[np.float64], values: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]]:
    """Distinct keys, rising, with the number of tokens and the sum of values of each."""
    distinct, which, n = np.unique(keys, return_inverse=True, return_counts=True)
    return distinct, n.astype(np.int64), np.bincount(which, weights=values, minlength=len(distinct)).astype(np.float64)


def _spread(kept: NDArray[np.int64], errors: NDArray[np.float64], at: ArrayLike) -> NDArray[np.float64]:
    """Errors among the first ``at`` tokens, evenly spread inside each group of equals."""
    return np.asarray(
        np.interp(np.asarray(at, dtype=np.float64), np.concatenate([[0], kept]), np.concatenate([[0.0], errors]))
    )
