"""Label correspondence: an HMM of the target, and P(s | t), what another standard's label says of its label.

    t* = argmax_t P(t) P(o | t) prod_i P(s_i | t_i)                                       (correspondence, Eq. 1 to 4)

P(t) P(o | t) is ``models.hmm``; log P(s | t) are scores added to the labels of each word. In the interpolated form a
word has its own counts n(s, t, o): P(s | t, o) = k n(s,t,o) / n(t,o) + (1 - k) P(s | t), k = n(t,o) / (n(t,o) + 5).
Where the other label is given, a known word may have labels it was not seen with: P(t | o) = (n(t,o) + open P(t | ends
of the word)) / (n(o) + open). What the tables are counted from is in ``training/correspondence.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duilian.lifting import Units
from duilian.models.hmm import Extra, Hmm, plain_text, word_hashes
from duilian.models.lexicon import find_all
from duilian.ragged import Ragged, ranges
from duilian.tensors import reject, require, require_ids, require_offsets, require_scores

BELIEF = 5.0
"""A word seen 5 times with a label believes its own counts and those of all words by halves."""


@dataclass(frozen=True, eq=False)
class WordCounts:
    """n(s, t, o): how often each pair of labels was seen, or supposed, at a word.

    keys:    (W,) uint64 hashes of words, rising
    offsets: (W + 1,) int64 into codes (n,) int32, s * L + t, rising within a word, and counts (n,) float32
    """

    keys: NDArray[np.uint64]
    offsets: NDArray[np.int64]
    codes: NDArray[np.int32]
    counts: NDArray[np.float32]

    def mixed(self, keys: Any, source: Any, table: NDArray[np.float64]) -> tuple[Any, NDArray[np.float64]]:
        """P(s | t, o) of words that are listed: which tokens (n,) they are, and the probabilities (n, L).

        keys: (T,) uint64 hashes of words; source: (T,) labels s; table: (S, L) P(s | t)
        """
        n_labels = table.shape[1]
        rows = np.minimum(np.searchsorted(self.keys, keys), max(len(self.keys) - 1, 0))
        found = np.flatnonzero((source >= 0) & (self.keys[rows] == keys) if len(self.keys) else np.zeros(0, np.bool_))
        rows = rows[found]
        begins, ends = self.offsets[rows], self.offsets[rows + 1]
        at, token = ranges(begins, ends), np.repeat(np.arange(len(rows)), ends - begins)
        s, t = np.divmod(self.codes[at], n_labels)
        total, own = np.zeros((2, len(rows), n_labels))
        np.add.at(total, (token, t), self.counts[at])
        mine = s == source[found][token]
        own[token[mine], t[mine]] = self.counts[at][mine]
        return found, (own + BELIEF * table[source[found]]) / (total + BELIEF)


@dataclass(frozen=True, eq=False)
class Correspondence:
    """S labels of the source, L of the target.

    hmm:    of the target
    seen:   (W,) float32, how often each word of the hmm was seen
    table:  (S, L) float32 log P(s | t), or None: the source's labels say nothing
    words:  counts by word, or None
    open:   how much a known word is believed to have other labels
    """

    hmm: Hmm
    seen: NDArray[np.float32]
    table: NDArray[np.float32] | None
    words: WordCounts | None
    open: float

    def extra(self, units: Units, source: NDArray[np.int32], sets: Ragged) -> Extra | None:
        """What the source's labels add to the scores of the target's.

        source: (T,) int32, -1 where unknown, -2 - k for one of the labels sets[k]
        """
        if self.table is None:
            return None
        table = np.exp(self.table.astype(np.float64))
        given = np.array([table[row].sum(axis=0) for row in sets]).reshape(-1, table.shape[1])
        scores = np.concatenate([table, given])
        rows = np.where(source <= -2, len(table) - 2 - source, source).astype(np.int32)
        keys = word_hashes(plain_text(units, self.hmm.fold), units.starts, units.ends)
        if self.words is not None:
            pairs, back = np.unique(np.stack([keys, source.astype(np.uint64)], axis=1), axis=0, return_inverse=True)
            kinds, own = self.words.mixed(pairs[:, 0], pairs[:, 1].astype(np.int64), table)
            place = np.full(len(pairs), -1, np.int32)
            place[kinds] = len(scores) + np.arange(len(kinds), dtype=np.int32)
            scores = np.concatenate([scores, own])
            at = place[back.ravel()]
            rows = np.where(at >= 0, at, rows)
        return Extra(np.log(scores), rows, self._opening(keys, source))

    def _opening(self, keys: NDArray[np.uint64], source: NDArray[np.int32]) -> NDArray[np.float64]:
        """log of open / n(o), halved as the lexicon halves labels whose neighbour was not seen with the word."""
        rows = np.empty(len(keys), np.int64)
        find_all(keys, self.hmm.lexicon.table, self.hmm.lexicon.bits, rows)
        opening = np.full(len(keys), -np.inf)
        known = (rows >= 0) & (source != -1)
        if self.open > 0:
            opening[known] = np.log(self.open / 2 / self.seen[rows[known]])
        return opening

    def numbers(self) -> dict[str, NDArray[Any]]:
        """Everything that training changes: all of it."""
        return self.to_tensors()

    def with_numbers(self, numbers: dict[str, NDArray[Any]]) -> Correspondence:
        """The model of these tables."""
        return Correspondence.from_tensors(
            dict(numbers), 0 if self.table is None else len(self.table), self.hmm.n_labels
        )

    def to_tensors(self) -> dict[str, NDArray[Any]]:
        """What a model file keeps of it."""
        tensors = {**self.hmm.to_tensors(), "seen": self.seen, "open": np.array([self.open], np.float64)}
        if self.table is not None:
            tensors["correspondence"] = self.table
        if self.words is not None:
            tensors |= {
                "words.keys": self.words.keys, "words.offsets": self.words.offsets,
                "words.codes": self.words.codes, "words.counts": self.words.counts,
            }  # fmt: skip
        return tensors

    @classmethod
    def from_tensors(cls, tensors: dict[str, NDArray[Any]], n_source: int, n_target: int) -> Correspondence:
        """The reverse of ``to_tensors``; whatever would be trusted is checked here."""
        hmm = Hmm.from_tensors(tensors, n_target)
        seen = require_scores(tensors, "seen", np.float32, (len(hmm.words),))
        (open_,) = require_scores(tensors, "open", np.float64, (1,)).tolist()
        if open_ < 0 or (len(seen) and not seen.min() > 0):
            reject(tensors, "it has words that were never seen")
        table = words = None
        if "correspondence" in tensors:
            table = require_scores(tensors, "correspondence", np.float32, (n_source, n_target))
        if "words.keys" in tensors:
            keys = require(tensors, "words.keys", np.uint64, (None,))
            codes = require_ids(tensors, "words.codes", np.int32, n_source * n_target)
            offsets = require_offsets(tensors, "words.offsets", len(codes), len(keys))
            counts = require_scores(tensors, "words.counts", np.float32, (len(codes),))
            if table is None or np.any(keys[1:] <= keys[:-1]) or (len(counts) and not counts.min() >= 0):
                reject(tensors, "its counts by word are not in order")
            words = WordCounts(keys, offsets, codes, counts)
        return cls(hmm, seen, table, words, open_)
