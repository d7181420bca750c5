"""The values that templates are made of, computed once per unit: one row of 64-bit numbers for each atom."""

from __future__ import annotations

from typing import Any

import numpy as np

from duilian.features.extract import mix
from duilian.features.index import may_have, place
from duilian.kernels import kernel

SHAPE = np.uint64(0x5851F42D4C957F2D)
"""Where the hash of a shape begins, far from the numbers of kinds: ``mix`` forgets a state equal to its value."""


@kernel
def word_atoms(text: Any, classes: Any, lower: Any, starts: Any, ends: Any, atoms: Any) -> None:
    """Atoms of words, in the order of templates.ATOMS up to ``n``; 0 is absent.

    text (n,) uint32; classes, lower tables over code points; starts, ends (U,) int64; atoms (>= 8, U) uint64 out
    """
    one = np.uint64(1)
    for u in range(len(starts)):
        begin, end = starts[u], ends[u]
        word = one
        small = np.uint64(2)
        shape = SHAPE
        previous = np.int64(-1)
        for k in range(begin, end):
            point = text[k]
            word = mix(word, np.uint64(point))
            small = mix(small, np.uint64(lower[point]))
            kind = np.int64(classes[point])
            if kind == 3 and lower[point] != point:
                kind = np.int64(5)
            if kind != previous:
                shape = mix(shape, np.uint64(kind))
            previous = kind
        atoms[0, u] = one
        atoms[1, u] = word
        if end > begin:
            atoms[2, u] = np.uint64(text[begin]) + one
            atoms[3, u] = np.uint64(text[end - 1]) + one
        atoms[4, u] = word if end - begin == 1 else np.uint64(0)
        atoms[5, u] = small
        atoms[6, u] = shape
        atoms[7, u] = np.uint64(min(end - begin, 7)) + one


@kernel
def character_atoms(text: Any, classes: Any, starts: Any, sentences: Any, atoms: Any) -> None:
    """Atoms of characters, in the order of templates.ATOMS from ``c`` to ``same``.

    text (n,) uint32; classes a table over code points; starts (U,) int64; sentences (S + 1,) int64;
    atoms (>= 12, U) uint64 out
    """
    one = np.uint64(1)
    for s in range(len(sentences) - 1):
        for u in range(sentences[s], sentences[s + 1]):
            point = text[starts[u]]
            kind = classes[point]
            atoms[0, u] = one
            atoms[8, u] = np.uint64(point) + one
            atoms[9, u] = np.uint64(2) if kind == 4 else one
            atoms[10, u] = one if kind == 4 else np.uint64(kind) + one
            atoms[11, u] = one
            if u - 2 >= sentences[s] and text[starts[u - 2]] == point:
                atoms[11, u] = np.uint64(2)


@kernel
def dictionary_atoms(
    text: Any, starts: Any, sentences: Any, folds: Any, table: Any, bits: Any, sieve: Any, sieve_bits: Any, only: Any,
    longest: Any, begin: Any, end: Any, mid: Any,
) -> None:  # fmt: skip
    """Length of the longest known word that begins, ends or goes on at each character, plus 2; 1 is none.

    A word that training saw in one fold alone is unknown there: the lists that training and tagging see then miss words
    about equally often. text (n,) uint32; starts (U,) int64; sentences (S + 1,) int64; folds (S,) int64, -1 for none;
    table (2 ** bits,) SLOT of word hashes, and their sieve; only (n_words,) int8 the word's one fold, -1 for several;
    begin, end, mid (U,) uint64 out
    """
    mask = len(table) - 1
    for s in range(len(sentences) - 1):
        first, last = sentences[s], sentences[s + 1]
        for u in range(first, last):
            begin[u] = 1
            end[u] = 1
            mid[u] = 1
        for u in range(first, last):
            h = np.uint64(1)
            for v in range(u, min(u + longest, last)):
                h = mix(h, np.uint64(text[starts[v]]))
                length = v - u + 1
                if length == 1 or not may_have(sieve, sieve_bits, h):
                    continue
                at = place(h, bits)
                while table[at]["count"] != 0 and table[at]["key"] != h:
                    at = (at + 1) & mask
                if table[at]["count"] == 0 or (folds[s] >= 0 and only[table[at]["row"]] == folds[s]):
                    continue
                value = np.uint64(length + 2)
                begin[u] = max(begin[u], value)
                end[v] = max(end[v], value)
                for m in range(u + 1, v):
                    mid[m] = max(mid[m], value)
