"""Token accuracy: the share of words whose tag is right, where both sides have the same words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from duilian.corpus import UNKNOWN
from duilian.evaluation.alignment import Alignment, right_labels
from duilian.ragged import Ragged

_NO_SETS = Ragged(np.zeros(0, np.int32), np.zeros(1, np.int64))


@dataclass(frozen=True)
class Share:
    """So many of so many."""

    correct: int
    total: int

    @property
    def value(self) -> float | None:
        """The share, 0 to 100; None of nothing."""
        return 100.0 * self.correct / self.total if self.total else None


def token_accuracy(gold: NDArray[np.int32], pred: NDArray[np.int32], sets: Ragged = _NO_SETS) -> Share:
    """Accuracy of label arrays over the same units in the same numbering: what training asks after each epoch.

    gold: (n,) int32, -1 is not scored, -2 - k is right if pred is in sets[k]; pred: (n,) int32
    """
    right = right_labels(gold, pred, sets)
    return Share(int(right.sum()), int(np.count_nonzero(gold != UNKNOWN)))


def tag_accuracy(alignment: Alignment, among: NDArray[np.bool_] | None = None) -> Share | None:
    """Accuracy over the words that have a gold tag, or over those of them in ``among``.

    None if the words are not the same on both sides, or one side has no tags at all.
    among: (gold words,) bool, for instance the words that training did not see
    """
    if not (alignment.tagged and alignment.same_words):
        return None
    scored = alignment.scored if among is None else alignment.scored & among
    return Share(int(np.count_nonzero(alignment.right & scored)), int(np.count_nonzero(scored)))
