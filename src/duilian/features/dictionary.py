"""The list of training words that character templates may ask (``begin``, ``end``, ``mid``), kept as hashes.

A list made from the training text knows every word of it, and a model trained on that trusts the list too much. So the
text is cut into folds of neighbouring sentences, and a word seen in one fold alone does not count there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from duilian.lifting import Units

FOLDS = 10
LONGEST = 6


@dataclass(frozen=True, eq=False)
class Dictionary:
    """Words of two characters and more.

    words: (W,) uint64 hashes, rising; only: (W,) int8 the one fold that has the word, -1 for several
    longest: characters in the longest word that is looked for
    """

    words: NDArray[np.uint64]
    only: NDArray[np.int8]
    longest: int = LONGEST


def fold_numbers(n_sentences: int, n_folds: int) -> NDArray[np.int64]:
    """(S,) the fold of each sentence, in runs of neighbours; -1 everywhere without folds."""
    if n_folds == 0:
        return np.full(n_sentences, -1, np.int64)
    return np.arange(n_sentences, dtype=np.int64) * n_folds // max(n_sentences, 1)


def build(words: Units | Sequence[Units], fold: bool, longest: int = LONGEST) -> Dictionary:
    """The words of a training corpus, or of several; each is cut into folds of its own."""
    from duilian.features.characters import tables
    from duilian.features.extract import hash_spans

    found, folds = [np.zeros(0, np.uint64)], [np.zeros(0, np.int64)]
    for part in [words] if isinstance(words, Units) else words:
        _, folded, _ = tables(part.text)
        text = folded[part.text] if fold else part.text
        lengths = part.ends - part.starts
        numbers = np.repeat(fold_numbers(len(part.sentences) - 1, FOLDS), np.diff(part.sentences))
        keep = (lengths > 1) & (lengths <= longest)
        hashes = np.empty(int(keep.sum()), np.uint64)
        hash_spans(text, part.starts[keep], part.ends[keep], hashes)
        found.append(hashes)
        folds.append(numbers[keep])
    known, inverse = np.unique(np.concatenate(found), return_inverse=True)
    low, high = np.full(len(known), FOLDS), np.full(len(known), -1)
    np.minimum.at(low, inverse, np.concatenate(folds))
    np.maximum.at(high, inverse, np.concatenate(folds))
    return Dictionary(known, np.where(low == high, low, -1).astype(np.int8), longest)
