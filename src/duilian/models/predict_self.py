"""Predict-self reestimation: a transformation is good if it also transforms back (jiang2012 Eq. 2), decoded exactly.

    S+(y) = (1 - lambda) S(y | forward, x) + lambda S(x | backward, y)

x the labels that are given, y those that are sought. A feature of the backward chain looks at one guide, of its own
unit or of one near it; so given x the second term is a sum over units of a number for y_t. Its transitions are between
labels of x and the same for all y. What is left is a chain over y. Twin: ``tests/naive/predict_self.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from duilian.errors import DuilianError
from duilian.features.templates import guide_offsets
from duilian.inference.chain import viterbi
from duilian.kernels import kernel
from duilian.lifting import Units
from duilian.models.chain import Chain
from duilian.models.weights import Features, entry
from duilian.ragged import Ragged


class BothWays(NamedTuple):
    """What S+ needs of some units.

    forward: feature rows of the forward chain, the given labels being its guides
    back:    (U, L) float32 by how much the backward chain wants the given label, were y the guide
    """

    forward: Features
    back: NDArray[np.float32]


@kernel
def add_given(sparse: Any, features: Any, begin: Any, given: Any, places: Any, y: Any, back: Any) -> None:
    """back[places[u], y] += the weights of the given label of unit u in its rows; nothing where none is given.

    sparse: Sparse; features: Features of units begin.. ; given (U,) int32; places (U,) int64 whose guide a unit looks
    at, -1 beyond its sentence; back (U, L) float32 in and out
    """
    for u in range(len(features.offsets) - 1):
        x, v = given[begin + u], places[begin + u]
        if x >= 0 and v >= 0:
            total = np.float32(0)
            for k in range(features.offsets[u], features.offsets[u + 1]):
                e = entry(sparse, features.data[k], x)
                if e >= 0:
                    total += sparse.weights[e]
            back[v, y] += total


@kernel
def paths_of(node: Any, trans: Any, start: Any, end: Any, runs: Any, sentences: Any, out: Any) -> Any:
    """Best labels of every sentence by its nodes; returns the first sentence that has none, or -1.

    node (U, L) float32, -inf where not allowed; sentences (S + 1,) int64; out (U,) int32
    """
    longest = 1
    for s in range(len(sentences) - 1):
        longest = max(longest, sentences[s + 1] - sentences[s])
    best = np.empty((longest, trans.shape[0]), np.float32)
    for s in range(len(sentences) - 1):
        first, last = sentences[s], sentences[s + 1]
        if (
            last > first
            and viterbi(node[first:last], last - first, trans, start, end, runs, best, out[first:last]) == -np.inf
        ):
            return s
    return -1


def back_scores(backward: Chain, units: Units, given: NDArray[np.int32], n_labels: int) -> NDArray[np.float32]:
    """(U, n_labels) how much the backward chain wants the given labels for each label that a unit's guide may be.

    Features that do not look at a guide, or beyond the sentence, are the same for all and left out.
    """
    back = np.zeros((len(units), n_labels), np.float32)
    sparse, featurizer = backward.rows.sparse(), backward.featurizer
    number = np.repeat(np.arange(len(units.sentences) - 1), np.diff(units.sentences))
    for offset in guide_offsets(featurizer.table.texts) or ():
        places = np.arange(len(units)) + offset
        inside = (places >= 0) & (places < len(units))
        inside[inside] = number[places[inside]] == number[inside]
        places = np.where(inside, places, -1)
        for begin, label, rows in featurizer.under_each_guide(units, n_labels, offset):
            add_given(sparse, Features(rows.data, rows.offsets), begin, given, places, label, back)
    return back


@dataclass(frozen=True, eq=False)
class PredictSelf(Chain):
    """S+ as a chain over y: answers all that a chain answers, from ``both_ways`` instead of feature rows.

    backward: the chain that predicts x with y as its guide; ratio: lambda
    """

    backward: Chain | None = None
    ratio: float = 0.0

    @classmethod
    def of(cls, forward: Chain, backward: Chain, ratio: float, temperature: float = 1.0) -> PredictSelf:
        """Two transformation chains, weighed."""
        share = np.float32(1 - ratio)

        def scaled(table: NDArray[np.float32]) -> NDArray[np.float32]:
            out = np.full_like(table, -np.inf)
            return np.multiply(table, share, out=out, where=table > -np.inf)

        return cls(
            forward.names, forward.task, forward.featurizer, forward.rows, scaled(forward.trans),
            scaled(forward.start), scaled(forward.end), forward.scheme, temperature, backward=backward, ratio=ratio,
        )  # fmt: skip

    def both_ways(self, units: Units, given: NDArray[np.int32]) -> BothWays:
        """What is asked of units with given labels: (U,) int32, of the backward chain's."""
        assert self.backward is not None
        back = np.zeros((len(units), len(self.names)), np.float32)
        if self.ratio > 0:
            back = back_scores(self.backward, units, given, len(self.names))
        return BothWays(self.features(units, given), back)

    def node(self, features: Any, begin: int, end: int) -> NDArray[np.float32]:
        """(end - begin, L) S+ of the labels of units begin..end."""
        node = super().node(features.forward, begin, end)
        if self.ratio > 0:
            node *= np.float32(1 - self.ratio)
            node += np.float32(self.ratio) * features.back[begin:end]
        return node

    def decode(
        self, features: Any, sentences: Any, allowed: Any = None, sets: Ragged | None = None
    ) -> NDArray[np.int32]:
        """(U,) the labels with the highest S+, among those allowed."""
        n = int(sentences[-1])
        node = self.node(features, 0, n)
        if allowed is not None:
            self._constrain(node, allowed, sets)
        out = np.zeros(n, np.int32)
        stuck = paths_of(node, self.trans, self.start, self.end, self.runs, sentences, out)
        if stuck >= 0:
            raise DuilianError(
                f"sentence {stuck + 1}: the model has no sequence of labels among those that are allowed."
            )
        return out
