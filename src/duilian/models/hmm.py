"""Second-order hidden Markov model (Thede & Harper 1999): what is scored, and the doors to tag with it.

    log P(t, o) = sum_i log P(t_i | t_(i-2), t_(i-1)) + log P(o_i | t_i, t_(i-1))      up to a constant for each word

The tables are counted in ``training/counts.py``, the words live in ``lexicon.py``, the sums and maxima in
``inference/trigram.py``. A word's labels are those it was seen with, so that a token costs few candidates cubed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from duilian.features.characters import tables
from duilian.features.extract import hash_spans
from duilian.inference import trigram
from duilian.lifting import Units
from duilian.models.lexicon import Lexicon, find_all, hash_table, list_candidates, score_pairs
from duilian.ragged import Ragged
from duilian.tensors import reject, require, require_ids, require_offsets, require_scores

BLOCK = 1 << 13
"""Sentences are tagged in blocks of about this many tokens, whatever the number of threads."""

BEAM = 10.0
"""Labels of an unknown word whose posterior is exp(10) times smaller than the best are no candidates."""

MAX_AFFIX = 16

_CLOSED = np.zeros(0)


class Extra(NamedTuple):
    """What else is known of the tokens.

    scores:  (R, L) float64 and rows (T,) int32: token t adds scores[rows[t]] to its labels; row -1 adds nothing
    opening: (T,) float64 or (0,): how much worse the labels are that a known word was not seen with, as a logarithm;
             -inf: it has no others
    """

    scores: NDArray[Any]
    rows: NDArray[Any]
    opening: NDArray[Any] = _CLOSED


@dataclass(frozen=True, eq=False)
class Hmm:
    """Parameters. L labels, numbers into the caller's list of tags; L is also the boundary and the end.

    trigrams: (L + 1, L + 1, L + 1) float32, log P(t_i | t_(i-2), t_(i-1))
    words:    Ragged of uint32, the code points of each known word
    the others as in ``Lexicon``; affix_keys: (A,) uint64, the hash of each affix
    fold:     whether full-width characters count as their half-width twins
    """

    trigrams: NDArray[np.float32]
    words: Ragged
    entries: NDArray[np.int64]
    labels: NDArray[np.int32]
    scores: NDArray[np.float32]
    pairs: NDArray[np.int64]
    previous: NDArray[np.int32]
    pair_scores: NDArray[np.float32]
    affix_keys: NDArray[np.uint64]
    affixes: NDArray[np.float32]
    rest: NDArray[np.float32]
    prior: NDArray[np.float32]
    longest: int = 2
    fold: bool = True

    @property
    def n_labels(self) -> int:
        return len(self.rest)

    @cached_property
    def table(self) -> NDArray[np.float64]:
        """The trigram table as the kernels want it."""
        return self.trigrams.astype(np.float64)

    @cached_property
    def keys(self) -> NDArray[np.uint64]:
        """(W,) the hash of each known word."""
        return word_hashes(self.words.data, self.words.offsets[:-1], self.words.offsets[1:])

    @cached_property
    def lexicon(self) -> Lexicon:
        """The lexicon as the kernels want it."""
        return Lexicon(
            *hash_table(self.keys), self.entries, self.labels, self.scores, self.pairs, self.previous, self.pair_scores,
            *hash_table(self.affix_keys), self.affixes, self.rest, self.prior, self.longest,
        )  # fmt: skip

    def tag(
        self, units: Units, *, allowed: Any = None, extra: Extra | None = None, threads: int = 1
    ) -> NDArray[np.int32]:
        """The best labels (T,). allowed: (T, L) bool, labels that may be chosen; each token needs one at least."""

        def best(trellis: trigram.Trellis, pair: Any) -> NDArray[np.int32]:
            return trigram.viterbi(trellis, pair, self.table)[0]

        return np.concatenate([np.zeros(0, np.int32), *self._map(units, allowed, extra, threads, best)])

    def tag_with_confidence(
        self, units: Units, *, allowed: Any = None, extra: Extra | None = None, threads: int = 1
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """The best labels (T,) and the marginal probability of each (T,)."""

        def both(trellis: trigram.Trellis, pair: Any) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
            labels, _ = trigram.viterbi(trellis, pair, self.table)
            probabilities, _ = trigram.marginals(trellis, pair, self.table)
            chosen = trellis.labels == np.repeat(labels, np.diff(trellis.starts))
            return labels, probabilities[chosen]

        blocks = self._map(units, allowed, extra, threads, both)
        labels = np.concatenate([np.zeros(0, np.int32), *(labels for labels, _ in blocks)])
        return labels, np.concatenate([np.zeros(0), *(confidence for _, confidence in blocks)])

    def marginals(
        self, units: Units, *, allowed: Any = None, extra: Extra | None = None, threads: int = 1
    ) -> NDArray[np.float64]:
        """The marginal probability (T, L) of every label."""

        def spread(trellis: trigram.Trellis, pair: Any) -> NDArray[np.float64]:
            full = np.zeros((len(trellis.starts) - 1, self.n_labels))
            tokens = np.repeat(np.arange(len(full)), np.diff(trellis.starts))
            full[tokens, trellis.labels] = trigram.marginals(trellis, pair, self.table)[0]
            return full

        return np.concatenate([np.zeros((0, self.n_labels)), *self._map(units, allowed, extra, threads, spread)])

    def log_partition(self, units: Units, *, allowed: Any = None, extra: Extra | None = None) -> NDArray[np.float64]:
        """log of the sum over all labellings (S,): the log likelihood up to a constant for each word."""

        def total(trellis: trigram.Trellis, pair: Any) -> NDArray[np.float64]:
            return trigram.log_partition(trellis, pair, self.table)

        return np.concatenate([np.zeros(0), *self._map(units, allowed, extra, 1, total)])

    def nbest(
        self, units: Units, n: int, *, allowed: Any = None, extra: Extra | None = None, threads: int = 1
    ) -> list[list[tuple[float, NDArray[np.int32]]]]:
        """The n best (score, labels) of each sentence."""

        def best(trellis: trigram.Trellis, pair: Any) -> list[list[tuple[float, NDArray[np.int32]]]]:
            return trigram.nbest(trellis, pair, self.table, n)

        return [sentence for block in self._map(units, allowed, extra, threads, best) for sentence in block]

    def sample(
        self, units: Units, n: int, rng: np.random.Generator, *, allowed: Any = None, extra: Extra | None = None
    ) -> NDArray[np.int32]:
        """n labellings (n, T), drawn by their probability."""

        def draw(trellis: trigram.Trellis, pair: Any) -> NDArray[np.int32]:
            return trigram.sample(trellis, pair, self.table, rng.random((n, len(trellis.starts) - 1)))

        return np.concatenate([np.zeros((n, 0), np.int32), *self._map(units, allowed, extra, 1, draw)], axis=1)

    def knows(self, units: Units) -> NDArray[np.bool_]:
        """Whether each word (T,) was seen in training."""
        keys = word_hashes(plain_text(units, self.fold), units.starts, units.ends)
        rows = np.empty(len(keys), np.int64)
        find_all(keys, self.lexicon.table, self.lexicon.bits, rows)
        return rows >= 0

    def _map(
        self, units: Units, allowed: Any, extra: Extra | None, threads: int, work: Callable[[trigram.Trellis, Any], Any]
    ) -> list[Any]:
        """work(trellis, pair scores) on each block of sentences, in order."""
        n = len(units)
        allowed = (
            np.zeros((0, self.n_labels), np.bool_) if allowed is None else np.require(allowed, np.bool_, ["C", "W"])
        )
        more = Extra(np.zeros((0, self.n_labels)), np.zeros(0, np.int32)) if extra is None else Extra(*extra)
        scores, rows = np.require(more.scores, np.float64, ["C", "W"]), np.require(more.rows, np.int32, ["C", "W"])
        opening = np.require(more.opening, np.float64, ["C", "W"])
        if allowed.shape not in ((0, self.n_labels), (n, self.n_labels)):
            raise ValueError(f"allowed has the shape {allowed.shape}; {(n, self.n_labels)} was expected")
        if len(allowed) and not allowed.any(axis=1).all():
            raise ValueError(f"token {int(np.argmin(allowed.any(axis=1)))} has no allowed label")
        if len(rows) not in (0, n) or scores.shape[1:] != (self.n_labels,) or np.any(rows >= len(scores)):
            raise ValueError(f"extra scores need one row number for each of {n} tokens and {self.n_labels} columns")
        if len(opening) not in (0, n):
            raise ValueError(f"there are {len(opening)} openings for {n} tokens")
        _ = self.lexicon, self.table  # built once, before the threads
        text = plain_text(units, self.fold)

        def one(block: tuple[int, int]) -> Any:
            begin, end = block
            here = slice(int(units.sentences[begin]), int(units.sentences[end]))
            part = Units(text, units.starts[here], units.ends[here], units.sentences[begin : end + 1] - here.start)
            return work(*self._potentials(part, allowed[here], Extra(scores, rows[here], opening[here])))

        blocks = list(_blocks(units.sentences))
        if threads == 1 or len(blocks) < 2:
            return [one(block) for block in blocks]
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(one, blocks))

    def _potentials(self, units: Units, allowed: Any, extra: Extra) -> tuple[trigram.Trellis, NDArray[np.float64]]:
        """The trellis of a few sentences and its pair scores."""
        n, size = len(units), len(units) * self.n_labels
        starts, ends = np.require(units.starts, np.int64, ["C", "W"]), np.require(units.ends, np.int64, ["C", "W"])
        sizes = np.empty(n + 1, np.int64)
        labels, base, added, entry = np.empty(size, np.int32), np.empty(size), np.empty(size), np.empty(size, np.int64)
        found = list_candidates(
            self.lexicon, units.text, starts, ends, word_hashes(units.text, starts, ends), allowed,
            extra.scores, extra.rows, extra.opening, BEAM, sizes, labels, base, added, entry,
        )  # fmt: skip
        trellis = trigram.trellis_of(units.sentences, sizes, labels[:found])
        pair = np.empty(trellis.pairs[-1])
        score_pairs(self.lexicon, trellis, base, added, entry, pair)
        return trellis, pair

    def to_tensors(self) -> dict[str, NDArray[Any]]:
        """The parameters for ``storage.save``; ``longest`` and ``fold`` are a tensor too."""
        return {
            "hmm.trigrams": self.trigrams,
            "hmm.words": self.words.data,
            "hmm.word_offsets": self.words.offsets,
            "hmm.entries": self.entries,
            "hmm.labels": self.labels,
            "hmm.scores": self.scores,
            "hmm.pairs": self.pairs,
            "hmm.previous": self.previous,
            "hmm.pair_scores": self.pair_scores,
            "hmm.affix_keys": self.affix_keys,
            "hmm.affixes": self.affixes,
            "hmm.rest": self.rest,
            "hmm.prior": self.prior,
            "hmm.settings": np.array([self.longest, self.fold], np.int32),
        }

    @classmethod
    def from_tensors(cls, tensors: dict[str, NDArray[Any]], n_labels: int) -> Hmm:
        """The model of a file, every tensor checked; ModelFileError otherwise."""
        side = n_labels + 1
        if n_labels < 1:
            reject(tensors, "it has no labels")
        text = require(tensors, "hmm.words", np.uint32, (None,))
        offsets = require_offsets(tensors, "hmm.word_offsets", len(text))
        labels = require_ids(tensors, "hmm.labels", np.int32, n_labels)
        previous = require_ids(tensors, "hmm.previous", np.int32, side)
        keys = require(tensors, "hmm.affix_keys", np.uint64, (None,))
        longest, fold = require_ids(tensors, "hmm.settings", np.int32, MAX_AFFIX + 1, shape=(2,)).tolist()
        model = cls(
            trigrams=require_scores(tensors, "hmm.trigrams", np.float32, (side, side, side)),
            words=Ragged(text, offsets),
            entries=require_offsets(tensors, "hmm.entries", len(labels), len(offsets) - 1),
            labels=labels,
            scores=require_scores(tensors, "hmm.scores", np.float32, (len(labels),)),
            pairs=require_offsets(tensors, "hmm.pairs", len(previous), len(labels)),
            previous=previous,
            pair_scores=require_scores(tensors, "hmm.pair_scores", np.float32, (len(previous),)),
            affix_keys=keys,
            affixes=require_scores(tensors, "hmm.affixes", np.float32, (len(keys), n_labels)),
            rest=require_scores(tensors, "hmm.rest", np.float32, (n_labels,)),
            prior=require_scores(tensors, "hmm.prior", np.float32, (n_labels,)),
            longest=longest,
            fold=bool(fold),
        )
        rising = np.diff(labels) > 0
        rising[model.entries[(model.entries > 0) & (model.entries < len(labels))] - 1] = True
        if not rising.all():
            reject(tensors, "the labels of a word in its lexicon do not rise")
        try:
            _ = model.lexicon
        except ValueError:
            reject(tensors, "a word or an affix stands twice in it")
        return model


def plain_text(units: Units, fold: bool) -> Any:
    """The text as the kernels want it, full-width characters as half-width ones if asked."""
    text = tables(units.text)[1][units.text] if fold else units.text
    return np.require(text, np.uint32, ["C", "W"])


def word_hashes(text: Any, starts: Any, ends: Any) -> NDArray[np.uint64]:
    """(n,) the hash of each span of a text."""
    keys = np.empty(len(starts), np.uint64)
    hash_spans(
        np.require(text, np.uint32, ["C", "W"]),
        np.require(starts, np.int64, ["C", "W"]),
        np.require(ends, np.int64, ["C", "W"]),
        keys,
    )
    return keys


def _blocks(offsets: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """(first, last) sentence of each block of about BLOCK tokens."""
    begin = 0
    while begin < len(offsets) - 1:
        end = int(np.searchsorted(offsets, offsets[begin] + BLOCK, side="right")) - 1
        end = min(max(end, begin + 1), len(offsets) - 1)
        yield begin, end
        begin = end
