"""Features: templates, their hashed extraction, and the index from hash to row.

templates.py   lines of text -> tables          atoms.py    the values templates are made of, per unit
extract.py     tables and atoms -> hashes       index.py    hash -> row
dictionary.py  the words of training
names.py       readable names, the slow twin    characters.py   classes of characters
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duilian.features.dictionary import FOLDS, Dictionary, fold_numbers
from duilian.features.templates import ATOMS, GUIDES, TEMPLATES, TemplateTable, guides_in, parse
from duilian.lifting import Units
from duilian.ragged import Ragged, offsets_of

__all__ = ["TEMPLATES", "Dictionary", "Featurizer", "TemplateTable", "parse"]

BLOCK = 1 << 12
"""Units are hashed in blocks of about this many, whose hashes stay in the cache until they are looked up."""


class Featurizer:
    """Units -> rows of feature numbers. ``fit`` grows the index, ``transform`` uses it as it is.

    guide: labels that other standards give the units, (U,) of one standard or (G, U) of several
    """

    def __init__(
        self,
        templates: Sequence[str],
        unit: str,
        *,
        fold: bool = True,
        dictionary: Dictionary | None = None,
        keys: NDArray[np.uint64] | None = None,
    ) -> None:
        from duilian.features.index import Index

        self.table = parse(templates, unit)
        self.unit, self.fold, self.dictionary = unit, fold, dictionary
        self._words = Index(dictionary.words) if dictionary is not None else None
        self._sieve = self._words.sieve() if self._words is not None else None
        self.index = Index(keys)
        self.seeds = _seeds(self.table.texts)

    def __len__(self) -> int:
        return len(self.index)

    def fit(self, units: Sequence[Units], guides: Sequence[Any] | None = None, cutoff: int = 1) -> list[Ragged]:
        """Rows for each unit of each corpus; new features get new rows, those seen fewer than cutoff times none."""
        from duilian.features.index import keep_frequent

        found = []
        for number, part in enumerate(units):
            rows, offsets = [], []
            for hashes, block_offsets in self._hashes(part, None if guides is None else guides[number], FOLDS):
                rows.append(self.index.add(hashes))
                offsets.append(np.diff(block_offsets))
            found.append((rows, offsets))
        renumber = self.index.freeze(cutoff)
        kept = []
        for rows, offsets in found:
            flat = np.concatenate([*rows, np.zeros(0, np.int32)])
            rows.clear()
            starts = np.concatenate(
                [np.zeros(1, np.int64), np.cumsum(np.concatenate([*offsets, np.zeros(0, np.int64)]))]
            )
            n = keep_frequent(flat, starts, renumber)
            kept.append(Ragged(flat[:n] if n == len(flat) else flat[:n].copy(), starts))
        return kept

    def transform(self, units: Units, guide: Any = None) -> Ragged:
        """Rows of the known features of each unit."""
        rows, counts = [np.zeros(0, np.int32)], [np.zeros(0, np.int64)]
        for hashes, offsets in self._hashes(units, guide):
            block, block_offsets = self.index.find(hashes, offsets)
            rows.append(block)
            counts.append(np.diff(block_offsets))
        return Ragged(np.concatenate(rows), offsets_of(np.concatenate(counts)))

    def under_each_guide(self, units: Units, n_labels: int, offset: int = 0) -> Iterator[tuple[int, int, Ragged]]:
        """(begin, label, rows): of units from ``begin`` on the features that look at the guide, were it that label.

        Each run of units comes n_labels times. Of the templates those that look at one guide, the first, at the offset.
        """
        from duilian.features.extract import extract

        guided = parse([text for text in self.table.texts if guides_in(text) == [(0, offset)]], self.unit)
        seeds = _seeds(guided.texts)
        begin = 0
        for text, starts, ends, sentences, atoms in self._blocks(units, None, 0):
            out = np.empty(self._most(starts, ends), np.uint64)
            offsets = np.empty(len(starts) + 1, np.int64)
            for label in range(n_labels):
                atoms[ATOMS["g"]] = label + 2
                n = extract(
                    atoms, guided.atoms, guided.offsets, guided.expansions, seeds,
                    text, starts, ends, sentences, out, offsets,
                )  # fmt: skip
                yield begin, label, Ragged(*self.index.find(out[:n], offsets))
            begin += len(starts)

    def hashes(self, units: Units, guide: Any = None) -> Ragged:
        """The hashes themselves, for measuring collisions and for tests."""
        data, counts = [np.zeros(0, np.uint64)], [np.zeros(0, np.int64)]
        for block, offsets in self._hashes(units, guide):
            data.append(block.copy())
            counts.append(np.diff(offsets))
        return Ragged(np.concatenate(data), offsets_of(np.concatenate(counts)))

    def _hashes(self, units: Units, guide: Any, n_folds: int = 0) -> Any:
        """Hashes and offsets of blocks of units, in arrays that the next block overwrites."""
        from duilian.features.extract import extract

        out = np.empty(0, np.uint64)
        for text, starts, ends, sentences, atoms in self._blocks(units, guide, n_folds):
            size = self._most(starts, ends)
            if len(out) < size:
                out = np.empty(size, np.uint64)
            offsets = np.empty(len(starts) + 1, np.int64)
            n = extract(
                atoms, self.table.atoms, self.table.offsets, self.table.expansions, self.seeds,
                text, starts, ends, sentences, out, offsets,
            )  # fmt: skip
            yield out[:n], offsets

    def _most(self, starts: Any, ends: Any) -> int:
        """A bound on the number of features: each expansion gives at most so many."""
        kinds = np.bincount(self.table.expansions, minlength=5)
        length = int((ends - starts).sum())
        return int((kinds[0] + 4 * (kinds[3] + kinds[4])) * len(starts) + (kinds[1] + kinds[2]) * length)

    def _blocks(self, units: Units, guide: Any, n_folds: int) -> Any:
        from duilian.features.atoms import character_atoms, dictionary_atoms, word_atoms
        from duilian.features.characters import tables

        classes, folded, lower = tables(units.text)
        if self.fold:
            _, _, lower = tables(folded[units.text])
        folds = fold_numbers(len(units.sentences) - 1, n_folds)
        begin = 0
        while begin < len(units.sentences) - 1:
            end = int(np.searchsorted(units.sentences, units.sentences[begin] + BLOCK, side="right")) - 1
            end = min(max(end, begin + 1), len(units.sentences) - 1)
            first, last = units.sentences[begin], units.sentences[end]
            if last > first:
                at, to = units.starts[first:last].min(), units.ends[first:last].max()
                text = units.text[at:to]
                text = folded[text] if self.fold else np.ascontiguousarray(text)
                starts, ends = units.starts[first:last] - at, units.ends[first:last] - at
                sentences = units.sentences[begin : end + 1] - first
                atoms = np.zeros((len(ATOMS), last - first), np.uint64)
                if self.unit == "word":
                    word_atoms(text, classes, lower, starts, ends, atoms)
                else:
                    character_atoms(text, classes, starts, sentences, atoms)
                    if self.dictionary is not None and self._words is not None and self._sieve is not None:
                        dictionary_atoms(
                            text, starts, sentences, folds[begin:end], self._words.table, self._words.bits,
                            self._sieve[0], self._sieve[1], self.dictionary.only, self.dictionary.longest,
                            atoms[ATOMS["begin"]], atoms[ATOMS["end"]], atoms[ATOMS["mid"]],
                        )  # fmt: skip
                if guide is not None:
                    for name, labels in zip(GUIDES, np.atleast_2d(guide), strict=False):
                        atoms[ATOMS[name]] = (labels[first:last] + 2).astype(np.uint64)
                yield text, starts, ends, sentences, atoms
            begin = end


def _seeds(texts: Sequence[str]) -> NDArray[np.uint64]:
    """One hash seed for each template, from its text alone: a hash does not depend on the other templates."""
    import hashlib

    digests = [hashlib.blake2b(text.encode(), digest_size=8).digest() for text in texts]
    return np.array([int.from_bytes(digest, "little") for digest in digests], dtype=np.uint64)
