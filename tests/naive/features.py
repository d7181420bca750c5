"""Features as tuples of readable values, from the definition of the template language, by plain Python over strings."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence

Feature = tuple[object, ...]
BEFORE, BEHIND = ("before",), ("behind",)
NUMERALS = "0123456789零〇一二三四五六七八九十百千万亿两０１２３４５６７８９○．.％%"
DATES = "年月日时分秒時"


def half_width(character: str) -> str:
    """The ASCII twin of a full-width character."""
    return unicodedata.normalize("NFKC", character) if 0xFF01 <= ord(character) <= 0xFF5E else character


def kind(character: str) -> str:
    """digit, date, letter, mark or other."""
    category = unicodedata.category(character)
    if character in NUMERALS:
        return "digit"
    if character in DATES:
        return "date"
    if category.startswith(("P", "S")):
        return "mark"
    if category == "Nd":
        return "digit"
    return "letter" if category in ("Lu", "Ll") else "other"


def lower(word: str) -> str:
    """Lower case, one character for one."""
    return "".join(c.lower() if len(c.lower()) == 1 else c for c in word)


def shape(word: str) -> tuple[str, ...]:
    """Kinds of characters, a run of the same kind once; capitals are a kind."""
    kinds = ["capital" if kind(c) == "letter" and lower(c) != c else kind(c) for c in word]
    return tuple(one for at, one in enumerate(kinds) if at == 0 or kinds[at - 1] != one)


def reach(sentence: Sequence[str], at: int, which: str, words: set[str], longest: int) -> int:
    """Characters in the longest word of two or more that begins, ends or goes on at a place; 0 for none."""
    best = 0
    for begin in range(len(sentence)):
        for end in range(begin + 2, min(begin + longest, len(sentence)) + 1):
            place = {"begin": at == begin, "end": at == end - 1, "mid": begin < at < end - 1}[which]
            if place and "".join(sentence[begin:end]) in words:
                best = max(best, end - begin)
    return best


def atom(
    name: str,
    sentence: Sequence[str],
    at: int,
    guide: Sequence[int] | None,
    words: set[str] | None,
    longest: int,
    more: Sequence[Sequence[int]] = (),
) -> object:
    """The value of an atom at a unit inside the sentence; None where it has none."""
    unit = sentence[at]
    if name in ("begin", "end", "mid"):
        return None if words is None else reach(sentence, at, name, words, longest)
    if name == "g":
        return None if guide is None else guide[at]
    if name[0] == "g":
        number = "bcdefgh".index(name[1])
        return more[number][at] if number < len(more) else None
    values: Mapping[str, object] = {
        "bias": True,
        "w": unit,
        "first": unit[:1] or None,
        "last": unit[-1:] or None,
        "single": unit if len(unit) == 1 else None,
        "lower": lower(unit),
        "shape": shape(unit),
        "n": min(len(unit), 7),
        "c": unit,
        "pu": kind(unit) == "mark" if len(unit) == 1 else None,
        "t": kind(unit).replace("mark", "other") if len(unit) == 1 else None,
        "same": at >= 2 and sentence[at - 2] == unit,
    }
    return values[name]


def expand(name: str, word: str) -> list[str]:
    """The values of an atom that stands for several."""
    if name == "inner":
        return list(word[1:-1])
    if name == "repeat":
        return [word[k] for k in range(len(word) - 1) if word[k] == word[k + 1]]
    ends = [word[:n] if name == "prefix" else word[len(word) - n :] for n in range(1, 5)]
    return [end for n, end in enumerate(ends, 1) if n <= len(word)]


def features(
    sentence: Sequence[str], templates: Sequence[str], *, fold: bool = True, guide: Sequence[int] | None = None,
    words: set[str] | None = None, longest: int = 6, more: Sequence[Sequence[int]] = (),
) -> Iterator[list[Feature]]:  # fmt: skip
    """For each unit of a sentence its features, template after template: the template, the values of its atoms.

    more: guides beside the first
    """
    units = ["".join(map(half_width, unit)) if fold else unit for unit in sentence]
    for at in range(len(units)):
        found: list[Feature] = []
        for template in templates:
            several: str | None = None
            values: list[object] = []
            for part in template.split():
                name, offset = re.findall(r"^([a-z]+)([+-]?\d*)$", part)[0]
                there = at + int(offset or 0)
                if name in ("inner", "repeat", "prefix", "suffix"):
                    several = name
                elif there < 0:
                    values.append(BEFORE)
                elif there >= len(units):
                    values.append(BEHIND)
                else:
                    values.append(atom(name, units, there, guide, words, longest, more))
            if None in values:
                continue
            if several is None:
                found.append((template, *values))
            else:
                found += [(template, *values, several, value) for value in expand(several, units[at])]
        yield found


def fold_of(sentence: int, n_sentences: int, n_folds: int) -> int:
    """Which of so many runs of neighbouring sentences a sentence is in."""
    return next(k for k in range(n_folds) if sentence * n_folds < (k + 1) * n_sentences)


def words_known_in(sentences: Sequence[Sequence[str]], here: int | None, n_folds: int, longest: int = 6) -> set[str]:
    """Words of two characters or more that some other fold has (here None: that any fold has), as they are."""
    found = set()
    for number, words in enumerate(sentences):
        if here is None or fold_of(number, len(sentences), n_folds) != here:
            found |= {word for word in words if 2 <= len(word) <= longest}
    return found
