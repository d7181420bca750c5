"""Context-aware pruning: which labels of one side survive at each token (li2016, section 3).

    r' = the fewest most probable labels whose cumulated probability exceeds lambda;   min(r', r) labels survive

Among equally probable labels the lower number comes first. lambda >= 1 is never exceeded: r labels survive. Labels
that are given (the gold label, or the whole given set) always survive: our rule, the paper is silent.
Twin: ``tests/naive/pruning.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duilian.kernels import kernel
from duilian.ragged import Ragged, offsets_of


@dataclass(frozen=True, eq=False)
class Statistics:
    """What pruning does to one side.

    n_tokens, n_given:  tokens, and those with a given label or set
    mean_candidates:    labels that survive per token, before given labels are put back
    n_lost:             tokens of whose given labels none would survive
    kth_best:           (L,) mean probability of the k-th best label
    entropy:            mean entropy of a token's labels, in nats
    """

    n_tokens: int
    n_given: int
    mean_candidates: float
    n_lost: int
    kth_best: NDArray[np.float64]
    entropy: float


def prune(marginals: NDArray[Any], r: int, lambda_: float, keep: NDArray[np.bool_] | None = None) -> Ragged:
    """The labels that survive at each token, in ascending order.

    marginals: (T, L) float32 or float64;  keep: (T, L) labels that survive in any case, see ``given_mask``
    """
    marginals = _checked(marginals, r, lambda_)
    n_tokens, n_labels = marginals.shape
    if keep is not None and keep.shape != marginals.shape:
        raise ValueError(f"a mask of shape {marginals.shape} was expected, found {keep.shape}")
    chosen = np.zeros((n_tokens, n_labels), dtype=np.bool_)
    if n_tokens:
        _choose(marginals, min(r, n_labels), lambda_ if lambda_ < 1 else np.inf, chosen)
    if keep is not None:
        chosen |= keep
    return Ragged(np.nonzero(chosen)[1].astype(np.int32), offsets_of(chosen.sum(axis=1)))


def given_mask(labels: NDArray[np.int32], sets: Ragged, n_labels: int) -> NDArray[np.bool_]:
    """(T, L) which labels are given, from labels as a layer holds them: >= 0 one, -1 none, -2 - k the set k."""
    mask = np.zeros((len(labels), n_labels), dtype=np.bool_)
    known = np.flatnonzero(labels >= 0)
    mask[known, labels[known]] = True
    several = np.flatnonzero(labels <= -2)
    if len(several):
        rows = sets.select(-2 - labels[several])
        mask[np.repeat(several, rows.lengths), rows.data] = True
    return mask


def statistics(marginals: NDArray[Any], r: int, lambda_: float, keep: NDArray[np.bool_] | None = None) -> Statistics:
    """What ``prune`` with the same arguments does; keep: the given labels, to see how often they would be lost."""
    marginals = _checked(marginals, r, lambda_)
    n_tokens, n_labels = marginals.shape
    kept = prune(marginals, r, lambda_)
    n_given = n_lost = 0
    if keep is not None:
        survives = np.zeros((n_tokens, n_labels), dtype=np.bool_)
        survives[np.repeat(np.arange(n_tokens), kept.lengths), kept.data] = True
        given = keep.any(axis=1)
        n_given = int(given.sum())
        n_lost = int((given & ~(keep & survives).any(axis=1)).sum())
    kth = np.zeros(n_labels)
    entropy = 0.0
    for first in range(0, n_tokens, 1 << 16):
        part = marginals[first : first + (1 << 16)].astype(np.float64)
        kth += np.sort(part, axis=1)[:, ::-1].sum(axis=0)
        entropy -= float((part * np.log(np.where(part > 0, part, 1.0))).sum())
    n = max(1, n_tokens)
    return Statistics(n_tokens, n_given, len(kept.data) / n, n_lost, kth / n, entropy / n)


def _checked(marginals: NDArray[Any], r: int, lambda_: float) -> NDArray[Any]:
    if marginals.ndim != 2:
        raise ValueError(f"marginals (tokens, labels) were expected, found shape {marginals.shape}")
    if r < 1:
        raise ValueError(f"at least one label must survive: r is {r}")
    if not lambda_ > 0:
        raise ValueError(f"lambda must be above 0, found {lambda_}")
    dtype = np.float32 if marginals.dtype == np.float32 else np.float64
    return np.ascontiguousarray(marginals, dtype=dtype)


@kernel
def _choose(marginals: Any, r: Any, lambda_: Any, chosen: Any) -> None:
    """chosen[t, label] for the most probable labels, until their sum exceeds lambda or there are r."""
    n_labels = marginals.shape[1]
    for t in range(marginals.shape[0]):
        total = 0.0
        for _ in range(r):
            best = -1
            for label in range(n_labels):
                if not chosen[t, label] and (best < 0 or marginals[t, label] > marginals[t, best]):
                    best = label
            chosen[t, best] = True
            total += marginals[t, best]
            if total > lambda_:
                break
