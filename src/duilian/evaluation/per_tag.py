"""Scores of each tag, and which tags are taken for which.

Gold words without a tag are left out with the predicted words that match them. A gold set that holds the predicted tag
counts as that tag; one that does not counts as the first of its tags by name.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from duilian.evaluation.alignment import Alignment
from duilian.evaluation.words import Found


@dataclass(frozen=True, eq=False)
class Confusion:
    """Counts of words.

    tags:   L names
    counts: (L, L) int64, words that both sides have, by gold tag (row) and predicted tag (column)
    missed: (L,) int64, gold words of each tag that no predicted word matches, or only one without a tag
    extra:  (L,) int64, predicted words of each tag that match no gold word
    """

    tags: tuple[str, ...]
    counts: NDArray[np.int64]
    missed: NDArray[np.int64]
    extra: NDArray[np.int64]

    def per_tag(self) -> dict[str, Found]:
        """Precision, recall and F of each tag that occurs on either side, by name."""
        correct = np.diagonal(self.counts)
        pred = self.counts.sum(axis=0) + self.extra
        gold = self.counts.sum(axis=1) + self.missed
        found = {
            tag: Found(int(correct[k]), int(pred[k]), int(gold[k]))
            for k, tag in enumerate(self.tags)
            if pred[k] + gold[k]
        }
        return {tag: found[tag] for tag in sorted(found)}

    def most_confused(self, n: int = 20) -> list[tuple[str, str, int]]:
        """The n most frequent (gold tag, predicted tag, words), most frequent first, then by name."""
        wrong = self.counts.copy()
        np.fill_diagonal(wrong, 0)
        rows, columns = np.nonzero(wrong)
        cells = [
            (self.tags[row], self.tags[column], int(wrong[row, column]))
            for row, column in zip(rows, columns, strict=True)
        ]
        return sorted(cells, key=lambda cell: (-cell[2], cell[0], cell[1]))[:n]


def confusion(alignment: Alignment) -> Confusion:
    """Count the words of an alignment by gold and predicted tag."""
    n = len(alignment.tags)
    gold, pred = _one_gold_tag(alignment), alignment.matched_labels()
    both = (gold >= 0) & (pred >= 0)
    cells = np.bincount(gold[both].astype(np.int64) * n + pred[both], minlength=n * n)
    missed = np.bincount(gold[(gold >= 0) & (pred < 0)], minlength=n)
    unmatched = np.ones(len(alignment.pred), np.bool_)
    unmatched[alignment.match[alignment.match >= 0]] = False
    labels = alignment.pred.labels
    extra = np.bincount(labels[unmatched & (labels >= 0)], minlength=n)
    return Confusion(alignment.tags, cells.reshape(n, n), missed, extra)


def _one_gold_tag(alignment: Alignment) -> NDArray[np.int32]:
    """(gold words,) gold labels in which each set has become one tag."""
    gold = alignment.gold.labels.copy()
    sets = gold <= -2
    if sets.any():
        rank = np.argsort(np.argsort(np.array(alignment.tags)))
        first = [min(row.tolist(), key=lambda k: rank[k], default=-1) for row in alignment.sets]
        gold[sets] = np.array(first, dtype=np.int32)[-2 - gold[sets]]
        agreed = sets & alignment.right
        gold[agreed] = alignment.matched_labels()[agreed]
    return gold
