"""Words found: precision, recall and F of the segmentation, and of words with their tags; the SIGHAN bakeoff's rules.

    recall     gold words that were found      / gold words
    precision  gold words that were found      / predicted words          (no words: 0)
    F          2 * found / (predicted + gold)

A word is found if a predicted word covers exactly the same characters; with tags, if the tag is right too. With tags,
gold words without a tag and the predicted words that match them are left out.
OOV recall is the recall over gold words that training did not see, IV recall that over the others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from duilian.evaluation.accuracy import Share
from duilian.evaluation.alignment import Alignment


@dataclass(frozen=True)
class Found:
    """Counts, and the three scores 0 to 100 that follow from them; a share of nothing is 0."""

    correct: int
    pred: int
    gold: int

    @property
    def p(self) -> float:
        """Precision."""
        return 100.0 * self.correct / self.pred if self.pred else 0.0

    @property
    def r(self) -> float:
        """Recall."""
        return 100.0 * self.correct / self.gold if self.gold else 0.0

    @property
    def f(self) -> float:
        """F: the harmonic mean of precision and recall."""
        return 200.0 * self.correct / (self.pred + self.gold) if self.pred + self.gold else 0.0

    def scores(self) -> dict[str, float]:
        """p, r and f."""
        return {"p": self.p, "r": self.r, "f": self.f}


def segmentation(alignment: Alignment) -> Found:
    """Words by their characters alone."""
    return Found(int(np.count_nonzero(alignment.match >= 0)), len(alignment.pred), len(alignment.gold))


def joint(alignment: Alignment) -> Found:
    """Words with their tags."""
    counts = (alignment.right, alignment.free, alignment.scored)
    correct, pred, gold = (int(np.count_nonzero(mask)) for mask in counts)
    return Found(correct, pred, gold)


def recall(alignment: Alignment, among: NDArray[np.bool_], with_tags: bool = False) -> Share:
    """The share found of the gold words in ``among``, for instance those that training did not see.

    among: (gold words,) bool
    """
    if with_tags:
        among = among & alignment.scored
    found = alignment.right if with_tags else alignment.match >= 0
    return Share(int(np.count_nonzero(found & among)), int(np.count_nonzero(among)))
