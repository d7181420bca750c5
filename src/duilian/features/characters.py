"""What kind of character a code point is: class, punctuation, full-width twin. Tables grow with the text they meet."""

from __future__ import annotations

import threading
import unicodedata
from functools import cache

import numpy as np
from numpy.typing import NDArray

N_CODE_POINTS = 0x110000
OTHER, DIGIT, DATE, LETTER, PUNCTUATION = range(5)
_NUMBERS = frozenset("0123456789零〇一二三四五六七八九十百千万亿两０１２３４５６７８９○．.％%")
_DATES = frozenset("年月日时分秒時")
_ONE_AT_A_TIME = threading.Lock()
"""``cache`` lets two threads make a set of tables each; what one fills, the other would miss."""


@cache
def _tables() -> tuple[NDArray[np.bool_], NDArray[np.uint8], NDArray[np.uint32], NDArray[np.uint32]]:
    points = np.arange(N_CODE_POINTS, dtype=np.uint32)
    return np.zeros(N_CODE_POINTS, np.bool_), np.zeros(N_CODE_POINTS, np.uint8), points.copy(), points.copy()


def character_class(character: str) -> int:
    """OTHER, DIGIT, DATE, LETTER or PUNCTUATION."""
    if character in _NUMBERS:
        return DIGIT
    if character in _DATES:
        return DATE
    category = unicodedata.category(character)
    if category[0] in "PS":
        return PUNCTUATION
    if category == "Nd":
        return DIGIT
    if category in ("Lu", "Ll") or "\uff21" <= character <= "\uff5a":
        return LETTER
    return OTHER


def fold(character: str) -> str:
    """The half-width twin of a full-width character, else the character."""
    if "\uff01" <= character <= "\uff5e":
        return chr(ord(character) - 0xFEE0)
    return " " if character == "\u3000" else character


def _lower(character: str) -> str:
    lower = character.lower()
    return lower if len(lower) == 1 else character


def tables(text: NDArray[np.uint32]) -> tuple[NDArray[np.uint8], NDArray[np.uint32], NDArray[np.uint32]]:
    """(classes, folded, lower): tables over all code points, right for those in the text."""
    present = np.zeros(N_CODE_POINTS, np.bool_)
    present[text] = True
    with _ONE_AT_A_TIME:
        known, classes, folded, lower = _tables()
        for point in np.flatnonzero(present & ~known).tolist():
            character = chr(point)
            classes[point] = character_class(character)
            folded[point] = ord(fold(character))
            lower[point] = ord(_lower(character))
            known[point] = True
    return classes, folded, lower
