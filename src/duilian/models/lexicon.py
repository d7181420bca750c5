"""What an HMM knows of words: which labels a word was seen with, and what the ends of an unknown word say of its label.

Scores are log P(o | t, u) - log P(o), o the word, t its label, u the label before it: the lexical probabilities of
Thede & Harper (1999) over P(o), which is the same for every label. Twin: ``tests/naive/hmm.py``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from duilian.features.extract import mix
from duilian.features.index import SLOT, fill, place
from duilian.kernels import kernel

# ``mix`` sees state ^ value alone, so the two kinds must differ in bits that no code point has.
PREFIX = np.uint64(0x8CB92BA72F3D8DD7)
SUFFIX = np.uint64(0x5851F42D4C957F2D)


class Lexicon(NamedTuple):
    """Words with entries (word, label), entries with pairs (label before, score). L labels; L is also the boundary.

    table, bits:   hash of a word -> its number, an open-addressed table of features.index.SLOT
    entries:       (W + 1,) int64; entries of word w are entries[w]:entries[w + 1]
    labels:        (E,) int32, rising within a word
    scores:        (E,) float32, where the label before was never seen with this word and label
    pairs:         (E + 1,) int64; pairs of entry e are pairs[e]:pairs[e + 1]
    previous:      (P,) int32, the label before, 0..L
    pair_scores:   (P,) float32
    affix_table, affix_bits: hash of a prefix or suffix -> row of affixes
    affixes:       (A, L) float32, log P(t | affix) - log P(t | rare word)
    rest:          (L,) float32, log P(t | rare word) - log P(t)
    prior:         (L,) float32, log P(t)
    longest:       longest prefix and suffix
    """

    table: Any
    bits: Any
    entries: Any
    labels: Any
    scores: Any
    pairs: Any
    previous: Any
    pair_scores: Any
    affix_table: Any
    affix_bits: Any
    affixes: Any
    rest: Any
    prior: Any
    longest: Any


def hash_table(keys: Any) -> tuple[Any, int]:
    """(table, bits) of the map keys[row] -> row; ValueError where a key stands twice."""
    bits = max(4, int(2 * max(len(keys), 1) - 1).bit_length())
    table = np.zeros(1 << bits, SLOT)
    if fill(table, bits, np.require(keys, np.uint64, ["C", "W"])) >= 0:
        raise ValueError("a hash stands twice")
    return table, bits


@kernel
def find(key: Any, table: Any, bits: Any) -> Any:
    """Row of a key, or -1."""
    mask = len(table) - 1
    at = place(key, bits)
    while table[at]["count"] != 0:
        if table[at]["key"] == key:
            return np.int64(table[at]["row"])
        at = (at + 1) & mask
    return np.int64(-1)


@kernel
def find_all(keys: Any, table: Any, bits: Any, rows: Any) -> None:
    """Row of each key, or -1; keys (n,) uint64, rows (n,) int64 out."""
    for k in range(len(keys)):
        rows[k] = find(keys[k], table, bits)


@kernel
def affix_hashes(text: Any, begin: Any, end: Any, longest: Any, out: Any) -> Any:
    """Hashes of a word's prefixes (out[0]) and suffixes (out[1]) of 1, 2, ... characters; returns how many of each.

    An affix may be the whole word.

    text (n,) uint32; out (2, longest) uint64
    """
    n = min(longest, end - begin)
    prefix, suffix = PREFIX, SUFFIX
    for k in range(n):
        prefix = mix(prefix, np.uint64(text[begin + k]))
        suffix = mix(suffix, np.uint64(text[end - 1 - k]))
        out[0, k] = prefix
        out[1, k] = suffix
    return n


@kernel
def affix_hashes_of(text: Any, offsets: Any, longest: Any, out: Any, counts: Any) -> None:
    """``affix_hashes`` of many words; text, offsets: a Ragged; out (W, 2, longest) uint64, counts (W,) int64."""
    for w in range(len(counts)):
        counts[w] = affix_hashes(text, offsets[w], offsets[w + 1], longest, out[w])


@kernel
def guess(lexicon: Any, text: Any, begin: Any, end: Any, hashes: Any, out: Any) -> None:
    """Scores of every label for a word by its longest known prefix and its longest known suffix; out (L,) float64."""
    for label in range(len(out)):
        out[label] = lexicon.rest[label]
    n = affix_hashes(text, begin, end, lexicon.longest, hashes)
    for kind in range(2):
        for k in range(n - 1, -1, -1):
            row = find(hashes[kind, k], lexicon.affix_table, lexicon.affix_bits)
            if row >= 0:
                for label in range(len(out)):
                    out[label] += lexicon.affixes[row, label]
                break


@kernel
def open_word(
    lexicon: Any, text: Any, begin: Any, end: Any, word: Any, allowed: Any, t: Any, extra: Any, row: Any, opening: Any,
    beam: Any, hashes: Any, scores: Any, first: Any, n: Any, labels: Any, base: Any, added: Any, entry: Any,
) -> Any:  # fmt: skip
    """Further candidates of a known word, whose entries are candidates first..n; returns how many there are then.

    A label that the word was not seen with: its score is that of an unknown word, plus the opening. It has to be
    within beam of the best posterior. t: the token; row: of extra, or -1; hashes, scores scratch; the others as in
    ``list_candidates``
    """
    guess(lexicon, text, begin, end, hashes, scores)
    top = -np.inf
    for c in range(first, n):
        top = max(top, base[c] + added[c] + lexicon.prior[labels[c]])
    e, stop = lexicon.entries[word], lexicon.entries[word + 1]
    for label in range(len(scores)):
        while e < stop and lexicon.labels[e] < label:
            e += 1
        if (e < stop and lexicon.labels[e] == label) or (len(allowed) and not allowed[t, label]):
            continue
        more = extra[row, label] if row >= 0 else 0.0
        if opening + scores[label] + more + lexicon.prior[label] >= top - beam:
            labels[n] = label
            base[n] = opening + scores[label]
            added[n] = more
            entry[n] = -1
            n += 1
    return n


@kernel
def list_candidates(
    lexicon: Any,
    text: Any,
    begins: Any,
    ends: Any,
    keys: Any,
    allowed: Any,
    extra: Any,
    extra_rows: Any,
    opening: Any,
    beam: Any,
    starts: Any,
    labels: Any,
    base: Any,
    added: Any,
    entry: Any,
) -> Any:
    """Candidate labels of each token and their scores without the label before; returns how many there are.

    A known word has its entries, an unknown one the labels whose posterior is within beam of the best. What allowed
    forbids goes; where nothing is left, every allowed label is a candidate, scored as in an unknown word. Where
    opening is above -inf, a known word may have other labels too: scored as in an unknown word, plus the opening.

    text (n,) uint32; begins, ends (T,) int64; keys (T,) uint64 word hashes; allowed (T, L) or (0, L) bool;
    extra (R, L) float64, extra_rows (T,) int32 (-1 none) or (0,); opening (T,) float64 or (0,);
    starts (T + 1,) int64, labels (T * L,) int32,
    base, added (T * L,) float64 out: score by the word, and the extra one; entry (T * L,) int64 out, or -1
    """
    n_labels = len(lexicon.rest)
    scores = np.empty(n_labels)
    hashes = np.empty((2, lexicon.longest), np.uint64)
    n = 0
    starts[0] = 0
    for t in range(len(keys)):
        free = len(allowed) == 0
        row = extra_rows[t] if len(extra_rows) else -1
        word = find(keys[t], lexicon.table, lexicon.bits)
        if word >= 0:
            for e in range(lexicon.entries[word], lexicon.entries[word + 1]):
                label = lexicon.labels[e]
                if free or allowed[t, label]:
                    labels[n] = label
                    base[n] = lexicon.scores[e]
                    added[n] = extra[row, label] if row >= 0 else 0.0
                    entry[n] = e
                    n += 1
        if n > starts[t] and len(opening) and opening[t] > -np.inf:
            n = open_word(
                lexicon, text, begins[t], ends[t], word, allowed, t, extra, row, opening[t], beam, hashes, scores,
                starts[t], n, labels, base, added, entry,
            )  # fmt: skip
        if n == starts[t]:
            guess(lexicon, text, begins[t], ends[t], hashes, scores)
            top = -np.inf
            for label in range(n_labels):
                if free or allowed[t, label]:
                    posterior = scores[label] + lexicon.prior[label] + (extra[row, label] if row >= 0 else 0.0)
                    top = max(top, posterior)
            least = top - beam if word < 0 else -np.inf
            for label in range(n_labels):
                posterior = scores[label] + lexicon.prior[label] + (extra[row, label] if row >= 0 else 0.0)
                if (free or allowed[t, label]) and posterior >= least:
                    labels[n] = label
                    base[n] = scores[label]
                    added[n] = extra[row, label] if row >= 0 else 0.0
                    entry[n] = -1
                    n += 1
        starts[t + 1] = n
    return n


@kernel
def score_pairs(lexicon: Any, trellis: Any, base: Any, added: Any, entry: Any, pair: Any) -> None:
    """Pair scores of a trellis: base (for a pair that was seen with the word what the lexicon says instead) + added.

    trellis: inference.trigram.Trellis; base, added (n_candidates,) float64, entry (n_candidates,) int64;
    pair (n_pairs,) float64 out
    """
    boundary = len(lexicon.rest)
    place_of = np.full(boundary + 1, -1, np.int64)
    for s in range(len(trellis.offsets) - 1):
        first = trellis.offsets[s]
        for t in range(first, trellis.offsets[s + 1]):
            n_j = trellis.starts[t] - trellis.starts[t - 1] if t > first else 1
            n_k = trellis.starts[t + 1] - trellis.starts[t]
            for j in range(n_j):
                place_of[trellis.labels[trellis.starts[t - 1] + j] if t > first else boundary] = j
            for k in range(n_k):
                candidate = trellis.starts[t] + k
                for j in range(n_j):
                    pair[trellis.pairs[t] + j * n_k + k] = base[candidate] + added[candidate]
                e = entry[candidate]
                if e >= 0:
                    for p in range(lexicon.pairs[e], lexicon.pairs[e + 1]):
                        j = place_of[lexicon.previous[p]]
                        if j >= 0:
                            pair[trellis.pairs[t] + j * n_k + k] = lexicon.pair_scores[p] + added[candidate]
            for j in range(n_j):
                place_of[trellis.labels[trellis.starts[t - 1] + j] if t > first else boundary] = -1
