"""Readable names of features, built the slow way: what a row of a model is about, and whether two features share a row.

    w0=新年 last-1=前    c-1=中 c0=国    prefix0=新    t-2=<s> t-1=other t0=digit t+1=digit t+2=date

A model keeps hashes alone. Names are found by walking over a text and noting which feature each hash comes from, so
only features that occur there have one. ``one_sentence`` makes such a text of the words that a model knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duilian.corpus import encode
from duilian.features import Featurizer
from duilian.features.characters import LETTER, character_class, tables
from duilian.features.templates import ATOMS, EXPANSIONS
from duilian.lifting import Units
from duilian.ragged import offsets_of

BEFORE, BEHIND, NONE = "<s>", "</s>", "none"
CLASSES = ("other", "digit", "date", "letter", "other")
KINDS = ("other", "digit", "date", "letter", "mark", "capital")
_SECOND = np.uint64(0x5851F42D4C957F2D)


@dataclass(frozen=True)
class Collisions:
    """How many different features a text has, and how many different hashes they have."""

    n_features: int
    n_hashes: int

    @property
    def n_lost(self) -> int:
        """Features that share the row of another."""
        return self.n_features - self.n_hashes


def one_sentence(words: Iterable[str]) -> Units:
    """Words one after another, each of them also as its neighbours' neighbour."""
    known = [word for word in words if word]
    edges = offsets_of([len(word) for word in known])
    return Units(encode("".join(known)), edges[:-1], edges[1:], np.array([0, len(known)], np.int64))


def names_of(
    featurizer: Featurizer, units: Units, rows: Any = None, guide: Any = None, guide_names: Sequence[str] = ()
) -> dict[int, str]:
    """Row -> name, for those of the rows (None: all) whose feature occurs in the text."""
    wanted = np.arange(len(featurizer)) if rows is None else np.asarray(rows, np.int64)
    order = np.argsort(featurizer.index.keys[wanted])
    wanted, keys = wanted[order], featurizer.index.keys[wanted][order]
    found: dict[int, str] = {}
    for block, hashes, offsets in _walk(featurizer, units, guide, guide_names):
        at = np.searchsorted(keys, hashes)
        hits = np.flatnonzero(keys[np.minimum(at, len(keys) - 1)] == hashes) if len(keys) else at[:0]
        rows_hit, first = np.unique(wanted[at[hits]], return_index=True)
        for row, place in zip(rows_hit.tolist(), hits[first].tolist(), strict=True):
            if row not in found:
                unit = int(np.searchsorted(offsets, place, side="right")) - 1
                found[row] = block.spell(unit)[place - int(offsets[unit])]
    return found


def spelled(
    featurizer: Featurizer, units: Units, guide: Any = None, guide_names: Sequence[str] = ()
) -> Iterator[list[str]]:
    """The names of all features of each unit, in the order of its hashes."""
    for block, _, offsets in _walk(featurizer, units, guide, guide_names):
        yield from (block.spell(unit) for unit in range(len(offsets) - 1))


def collisions(featurizer: Featurizer, units: Units, guide: Any = None) -> Collisions:
    """Features are told apart by a second hash: made from exact numbers of words, with seeds of its own."""
    pairs = [np.zeros((0, 2), np.uint64)]
    for block, hashes, _ in _walk(featurizer, units, guide, ()):
        pairs.append(np.unique(np.stack([hashes, block.second_hashes()], axis=1), axis=0))
    every = np.unique(np.concatenate(pairs), axis=0)
    return Collisions(len(every), len(np.unique(every[:, 0])))


def _walk(
    featurizer: Featurizer, units: Units, guide: Any, guide_names: Sequence[str]
) -> Iterator[tuple[_Block, NDArray[np.uint64], NDArray[np.int64]]]:
    """Blocks of units with their hashes and the offsets of each unit's hashes."""
    numbers: dict[str, int] = {}
    for text, starts, ends, sentences, atoms in featurizer._blocks(units, guide, 0):
        block = _Block(featurizer, text, starts, ends, sentences, atoms, guide_names, numbers)
        yield block, *block.hashes(featurizer.seeds, atoms)


class _Block:
    """Some sentences: their text as the templates see it, and the values of atoms that only a kernel knows."""

    def __init__(
        self, featurizer: Featurizer, text: Any, starts: Any, ends: Any, sentences: Any, atoms: Any,
        guide_names: Sequence[str], numbers: dict[str, int],
    ) -> None:  # fmt: skip
        self.featurizer, self.atoms = featurizer, atoms
        self.text, self.starts, self.ends, self.sentences = text, starts, ends, sentences
        self.guide_names, self.numbers = guide_names, numbers
        self.lower = tables(text)[2]

    def word(self, unit: int) -> str:
        """The characters of a unit."""
        return "".join(map(chr, self.text[self.starts[unit] : self.ends[unit]].tolist()))

    def hashes(self, seeds: Any, atoms: Any) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """(hashes, offsets) of all units, from these seeds and atoms."""
        from duilian.features.extract import extract

        table = self.featurizer.table
        out = np.empty(self.featurizer._most(self.starts, self.ends), np.uint64)
        offsets = np.empty(len(self.starts) + 1, np.int64)
        n = extract(
            atoms, table.atoms, table.offsets, table.expansions, seeds,
            self.text, self.starts, self.ends, self.sentences, out, offsets,
        )  # fmt: skip
        return out[:n], offsets

    def second_hashes(self) -> NDArray[np.uint64]:
        """Hashes that have nothing in common with the first: words are numbers, not hashes, and seeds are others."""
        atoms = self.atoms.copy()
        if self.featurizer.unit == "word":
            for unit in range(len(self.starts)):
                for name in ("w", "lower", "shape"):
                    atoms[ATOMS[name], unit] = self._number(f"{name} {self._value(name, unit)}")
                if atoms[ATOMS["single"], unit]:
                    atoms[ATOMS["single"], unit] = atoms[ATOMS["w"], unit]
        seeds = np.arange(1, len(self.featurizer.table) + 1, dtype=np.uint64) * _SECOND
        return self.hashes(seeds, atoms)[0]

    def _number(self, value: str) -> int:
        return self.numbers.setdefault(value, len(self.numbers) + 1)

    def spell(self, unit: int) -> list[str]:
        """The names of the features of a unit, in the order of their hashes."""
        sentence = int(np.searchsorted(self.sentences, unit, side="right")) - 1
        first, last = int(self.sentences[sentence]), int(self.sentences[sentence + 1])
        table = self.featurizer.table
        names: list[str] = []
        for k, template in enumerate(table.texts):
            parts = template.split()
            atoms = [part for part in parts if part.rstrip("+-0123456789") not in EXPANSIONS]
            spelled: list[str] = []
            for part, (number, offset) in zip(atoms, table.atoms[table.offsets[k] : table.offsets[k + 1]], strict=True):
                there = unit + int(offset)
                if there < first or there >= last:
                    spelled.append(f"{part}={BEFORE if there < first else BEHIND}")
                elif self.atoms[number, there]:
                    spelled.append(f"{part}={self._value(part.rstrip('+-0123456789'), there)}")
            if len(spelled) < len(atoms):
                continue
            if table.expansions[k] == 0:
                names.append(" ".join(spelled))
            else:
                (part,) = (part for part in parts if part not in atoms)
                names += [" ".join([*spelled, f"{part}={value}"]) for value in self._values(part, unit)]
        return names

    def _values(self, part: str, unit: int) -> list[str]:
        """The values of an atom that stands for several."""
        word = self.word(unit)
        name = part.rstrip("+-0123456789")
        if name == "inner":
            return list(word[1:-1])
        if name == "repeat":
            return [one for one, two in pairwise(word) if one == two]
        lengths = range(1, min(4, len(word)) + 1)
        return [word[:n] if name == "prefix" else word[-n:] for n in lengths]

    def _value(self, name: str, unit: int) -> str:
        """The value of an atom at a unit where it has one."""
        number = int(self.atoms[ATOMS[name], unit])
        if name in ("w", "single", "c"):
            return self.word(unit)
        if name in ("first", "last"):
            return self.word(unit)[0 if name == "first" else -1]
        if name == "lower":
            return "".join(chr(self.lower[ord(character)]) for character in self.word(unit))
        if name == "shape":
            return self._shape(unit)
        if name in ("n", "bias"):
            return str(number - 1 if name == "n" else number)
        if name in ("pu", "same"):
            return "yes" if number == 2 else "no"
        if name == "t":
            return CLASSES[number - 1]
        if name == "g":
            label = number - 2
            return self.guide_names[label] if 0 <= label < len(self.guide_names) else str(label)
        return str(number - 2) if number > 1 else NONE

    def _shape(self, unit: int) -> str:
        """Kinds of characters, each as often as it comes anew."""
        kinds: list[str] = []
        for character in self.word(unit):
            kind = character_class(character)
            capital = kind == LETTER and chr(self.lower[ord(character)]) != character
            name = "capital" if capital else KINDS[kind]
            if not kinds or kinds[-1] != name:
                kinds.append(name)
        return "-".join(kinds)
