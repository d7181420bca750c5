"""Feature templates as tables: a line of text such as ``w0 last-1`` becomes rows of numbers that a kernel walks.

A template is one or more atoms, each a name and the offset of the unit it looks at (``w0``, ``c-1``, ``t+2``):

    words       w the word   first, last its first and last character   single the word, if it is one character long
                lower the word in lower case   shape its character classes, runs shortened   n its length, up to 7
    characters  c the character   pu whether it is punctuation   t its class: digit, date, letter, other
                same whether it equals the character two before
                begin, end, mid   length of the longest training word that begins, ends, or goes on there
    either      g the guide: the label that another standard gives the unit, as an input; gb, gc, ... gh the guides of
                a second, third, ... eighth standard
                bias nothing: one feature that is always there

At most one atom of a template may stand for several values, each then a feature of its own (offset 0 only):

    inner       each character of the word but the first and the last
    repeat      each character that equals the one behind it
    prefix, suffix   the first and last 1 to 4 characters

Beside the sentence's ends stand values of their own, one for before and one for behind.

    ==============  ==========================================================================
    ``li2015``      Table 1 of li2015 (Zhang and Clark 2008), without the label bigram
    ``jiang2012``   Table 1 of jiang2012 (Ng and Low 2004)
    ``lexicon``     our own for characters: jiang2012 and the words of training (features/dictionary.py)
    ==============  ==========================================================================
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from duilian.errors import SettingError

GUIDES = ("g", "gb", "gc", "gd", "ge", "gf", "gg", "gh")
"""The guides of as many other standards."""
ATOMS = {
    name: number
    for number, name in enumerate(
        [
            "bias",
            "w",
            "first",
            "last",
            "single",
            "lower",
            "shape",
            "n",
            "c",
            "pu",
            "t",
            "same",
            "g",
            "begin",
            "end",
            "mid",
            *GUIDES[1:],
        ]
    )
}
EXPANSIONS = {"": 0, "inner": 1, "repeat": 2, "prefix": 3, "suffix": 4}
WORD_ATOMS = frozenset(["bias", "w", "first", "last", "single", "lower", "shape", "n", *GUIDES])
CHARACTER_ATOMS = frozenset(["bias", "c", "pu", "t", "same", "begin", "end", "mid", *GUIDES])
MAX_OFFSET = 4

TEMPLATES: dict[str, tuple[str, ...]] = {
    "li2015": (
        "w0",
        "w-1",
        "w+1",
        "w0 last-1",
        "w0 first+1",
        "first0",
        "last0",
        "inner0",
        "first0 inner0",
        "last0 inner0",
        "single0 last-1 first+1",
        "repeat0",
        "prefix0",
        "suffix0",
    ),
    "jiang2012": (
        "c-2",
        "c-1",
        "c0",
        "c+1",
        "c+2",
        "c-2 c-1",
        "c-1 c0",
        "c0 c+1",
        "c+1 c+2",
        "c-1 c+1",
        "pu0",
        "t-2 t-1 t0 t+1 t+2",
    ),
}
TEMPLATES["alphabetic"] = (
    *("w0", "w-1", "w+1", "lower0", "lower-1", "lower+1", "lower-2", "lower+2", "lower-1 lower0", "lower0 lower+1"),
    *("shape0", "shape-1 shape0", "prefix0", "suffix0", "lower-1 suffix0", "lower+1 suffix0", "shape0 suffix0"),
)
TEMPLATES["lexicon"] = (
    *TEMPLATES["jiang2012"],
    "begin0",
    "end0",
    "mid0",
    "begin0 end0 mid0",
    "begin+1",
    "end-1",
    "mid-1",
    "mid+1",
    "begin0 c0",
    "end0 c0",
    "mid0 c0",
)


@dataclass(frozen=True, eq=False)
class TemplateTable:
    """Templates as the kernel reads them.

    atoms:      (n_atoms, 2) int64, atom number and offset, template after template
    offsets:    (n_templates + 1,) int64 into atoms
    expansions: (n_templates,) int64, which atom stands for several values (EXPANSIONS), 0 for none
    """

    texts: tuple[str, ...]
    unit: str
    atoms: NDArray[np.int64]
    offsets: NDArray[np.int64]
    expansions: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.texts)


_ATOM = re.compile(r"([a-z]+)([+-]?[0-9]+)?$")


def parse(texts: Sequence[str], unit: str) -> TemplateTable:
    """Lines of text -> table; a word that is no atom is an error that names the line and what is possible."""
    known = WORD_ATOMS | set(EXPANSIONS) - {""} if unit == "word" else CHARACTER_ATOMS
    atoms: list[tuple[int, int]] = []
    offsets = [0]
    expansions = []
    for text in texts:
        expansion = 0
        for part in text.split():
            match = _ATOM.match(part)
            name, offset = (match[1], int(match[2] or 0)) if match else (part, 0)
            if match is None or name not in known:
                raise SettingError(
                    f"template {text!r}: no atom {part!r} over {unit}s. Possible: {', '.join(sorted(known))}, "
                    "each followed by an offset, as in w-1."
                )
            if abs(offset) > MAX_OFFSET:
                raise SettingError(f"template {text!r}: offset {offset} of {name!r} is beyond {MAX_OFFSET}.")
            if name in EXPANSIONS:
                if expansion or offset:
                    raise SettingError(
                        f"template {text!r}: one of {name!r} and the like at offset 0 is the most there can be."
                    )
                expansion = EXPANSIONS[name]
            else:
                atoms.append((ATOMS[name], offset))
        if not text.split():
            raise SettingError("an empty template says nothing: remove it, or write `bias`.")
        expansions.append(expansion)
        offsets.append(len(atoms))
    if len(set(texts)) != len(texts):
        twice = next(text for text in texts if list(texts).count(text) > 1)
        raise SettingError(f"template {twice!r} stands twice.")
    return TemplateTable(
        tuple(texts),
        unit,
        np.array(atoms, dtype=np.int64).reshape(-1, 2),
        np.array(offsets, dtype=np.int64),
        np.array(expansions, dtype=np.int64),
    )


NEAR = ("", "w0", "suffix0")
"""What guides of neighbouring words are joined with, the empty text for alone."""


def guided(texts: Sequence[str], n_guides: int = 1, unit: str = "character") -> tuple[str, ...]:
    """jiang2012 Table 2: the templates, and for each guide: it alone, and each template joined with it.

    A word's guide says less than a character's, which knows where its word begins and ends: of words, those of two
    neighbours on each side are added.
    """
    found = tuple(texts)
    for name in GUIDES[:n_guides]:
        found += (f"{name}0", *(f"{text} {name}0" for text in texts))
        if unit == "word":
            found += tuple(f"{text} {name}{at}".strip() for text in NEAR for at in ("-1", "+1"))
            found += (f"w-1 {name}-1", f"w+1 {name}+1", f"{name}-2", f"{name}+2")
    return found


def guides_in(text: str) -> list[tuple[int, int]]:
    """(number of the guide, offset) of each guide that a template looks at."""
    matches = [_ATOM.match(part) for part in text.split()]
    return [(GUIDES.index(match[1]), int(match[2] or 0)) for match in matches if match and match[1] in GUIDES]


def guide_offsets(texts: Sequence[str]) -> list[int] | None:
    """The offsets at which templates look at the first guide, or None where one looks at another or at several."""
    found = [guides_in(text) for text in texts]
    if any(len(guides) > 1 or any(number for number, _ in guides) for guides in found):
        return None
    return sorted({offset for guides in found for _, offset in guides})
