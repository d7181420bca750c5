"""Schemes: how a word is written as one label for each of its characters (BIES, BMES, BIO, BILOU), and read back.

A character has a role in its word: single, begin, middle or end. A scheme is a table from roles to prefixes; what may
start, end and follow is worked out from the table. Adding a scheme is adding a line to SCHEMES.

Labels of words that have tags are written ``B@NN``: prefix, ``@``, tag. Every character belongs to a word, so the O of
BIO and BILOU never occurs; IOB1, whose B depends on the word before, is no such table and is not here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from duilian.errors import StandardError
from duilian.ragged import offsets_of

SINGLE, BEGIN, MIDDLE, END = range(4)
_STARTS, _INSIDE, _ENDS = (SINGLE, BEGIN), (MIDDLE, END), (SINGLE, END)
_FOLLOWS = np.array([[role in (_STARTS if last in _ENDS else _INSIDE) for role in range(4)] for last in range(4)])
"""(4, 4) whether the second role may follow the first: a closed word is followed by a new one, an open one goes on."""


@dataclass(frozen=True, eq=False)
class Scheme:
    """Prefixes and their grammar.

    prefixes: P names
    roles:    (4,) int8, the prefix of a single, a begin, a middle and an end character
    starts:   (P,) bool, opens a word; the others continue one
    ends:     (P,) bool, may be the last of a word
    follows:  (P, P) bool, [p, q] whether q may come right after p, in the same word or in the next
    """

    name: str
    prefixes: tuple[str, ...]
    roles: NDArray[np.int8]
    starts: NDArray[np.bool_] = field(init=False)
    ends: NDArray[np.bool_] = field(init=False)
    follows: NDArray[np.bool_] = field(init=False)

    def __post_init__(self) -> None:
        plays = np.zeros((len(self.prefixes), 4), np.bool_)
        plays[self.roles, np.arange(4)] = True
        starts, ends = plays[:, _STARTS].any(axis=1), plays[:, _ENDS].any(axis=1)
        if np.any(starts & plays[:, _INSIDE].any(axis=1)):
            raise ValueError(f"scheme {self.name}: a prefix that both opens and continues words cannot be read back")
        follows = (plays.astype(np.int64) @ _FOLLOWS @ plays.T) > 0
        for name, value in (("starts", starts), ("ends", ends), ("follows", follows)):
            value.flags.writeable = False
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self.prefixes)


def _scheme(name: str, *, single: str, begin: str, middle: str, end: str) -> Scheme:
    prefixes = tuple(dict.fromkeys((begin, middle, end, single)))
    return Scheme(name, prefixes, np.array([prefixes.index(p) for p in (single, begin, middle, end)], dtype=np.int8))


SCHEMES: dict[str, Scheme] = {
    scheme.name: scheme
    for scheme in (
        _scheme("BIES", single="S", begin="B", middle="I", end="E"),
        _scheme("BMES", single="S", begin="B", middle="M", end="E"),
        _scheme("BILOU", single="U", begin="B", middle="I", end="L"),
        _scheme("BIO", single="B", begin="B", middle="I", end="I"),
    )
}
DEFAULT = "BIES"


def scheme(name: str = DEFAULT) -> Scheme:
    """The scheme of that name."""
    if name not in SCHEMES:
        raise StandardError(f"no scheme {name!r}; there are {', '.join(SCHEMES)}")
    return SCHEMES[name]


def prefixes_of(scheme: Scheme, lengths: NDArray[np.int64]) -> NDArray[np.int8]:
    """Word lengths -> the prefix of each character.

    lengths: (W,) int64, characters in each word; a word of length 0 has none
    returns: (sum of lengths,) int8 into scheme.prefixes
    """
    lengths = np.asarray(lengths, dtype=np.int64)
    lengths = lengths[lengths > 0]
    edges = offsets_of(lengths)
    roles = np.full(edges[-1], MIDDLE, np.int8)
    roles[edges[:-1]] = BEGIN
    last = edges[1:] - 1
    roles[last] = np.where(lengths == 1, SINGLE, END)
    return scheme.roles[roles]


def words_of(
    scheme: Scheme, prefixes: NDArray[np.int8], offsets: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Prefixes of characters -> words: the inverse of prefixes_of, which also reads sequences that no word would give.

    A word begins at the first character of a sentence, at every prefix that opens a word, and after every prefix that
    can only be the last of its word. For legal sequences that is the only reading; in illegal ones (I after E, B after
    B, a sentence that begins inside a word) it is the repair: a cut that either neighbour asks for is made.
    A joint label's word takes the tag of its first character: ``tags[starts]``.

    prefixes: (C,) int8 into scheme.prefixes; offsets: (S + 1,) int64, sentences as ranges of characters
    returns:  starts (W,), ends (W,) int64 into the characters, and (S + 1,) int64, sentences as ranges of words
    """
    prefixes = np.asarray(prefixes)
    offsets = np.asarray(offsets, dtype=np.int64)
    n = len(prefixes)
    if offsets[-1] != n:
        raise ValueError(f"sentence offsets end at {offsets[-1]}, there are {n} labels")
    if n and (prefixes.min() < 0 or prefixes.max() >= len(scheme)):
        raise ValueError(f"prefixes of {scheme.name} are 0 to {len(scheme) - 1}, found {set(np.unique(prefixes))}")
    opens = scheme.starts[prefixes]
    closes = (scheme.ends & ~scheme.follows[:, ~scheme.starts].any(axis=1))[prefixes]
    opens[1:] |= closes[:-1]
    opens[offsets[:-1][offsets[:-1] < n]] = True
    starts = np.flatnonzero(opens).astype(np.int64)
    ends = np.append(starts[1:], np.int64(n)) if n else starts
    return starts, ends, np.searchsorted(starts, offsets).astype(np.int64)


def is_legal(
    scheme: Scheme,
    prefixes: NDArray[np.int8],
    offsets: NDArray[np.int64],
    tags: NDArray[np.int32] | None = None,
) -> NDArray[np.bool_]:
    """(S,) whether each sentence could have been written by prefixes_of (and keeps to one tag inside each word)."""
    prefixes = np.asarray(prefixes)
    offsets = np.asarray(offsets, dtype=np.int64)
    wrong = np.zeros(len(prefixes), np.int64)
    wrong[1:] = ~scheme.follows[prefixes[:-1], prefixes[1:]]
    if tags is not None:
        wrong[1:] |= ~scheme.starts[prefixes[1:]] & (np.asarray(tags)[1:] != np.asarray(tags)[:-1])
    full = offsets[1:] > offsets[:-1]
    first, last = offsets[:-1][full], offsets[1:][full] - 1
    wrong[first] = ~scheme.starts[prefixes[first]]
    wrong[last] |= ~scheme.ends[prefixes[last]]
    sums = offsets_of(wrong)
    return np.asarray(sums[offsets[1:]] == sums[offsets[:-1]])


def grammar(
    scheme: Scheme, prefixes: NDArray[np.int8], tags: NDArray[np.int32]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
    """What may start, end and follow among L labels, each a prefix with a tag: a word keeps its tag to its end.

    prefixes: (L,) into scheme.prefixes; tags: (L,), all equal for plain segmentation
    returns:  starts (L,), ends (L,), follows (L, L) bool
    """
    prefixes, tags = np.asarray(prefixes), np.asarray(tags)
    starts = scheme.starts[prefixes]
    follows = scheme.follows[prefixes[:, None], prefixes[None, :]]
    follows = follows & (starts[None, :] | (tags[:, None] == tags[None, :]))
    return starts, scheme.ends[prefixes], follows


def join_label(prefix: str, tag: str | None) -> str:
    """``B``, ``NN`` -> ``B@NN``; without a tag the prefix alone."""
    return prefix if tag is None else f"{prefix}@{tag}"


def split_label(label: str) -> tuple[str, str | None]:
    """``B@NN`` -> ``B``, ``NN``; ``B`` -> ``B``, None. No prefix holds an ``@``, a tag may."""
    prefix, mark, tag = label.partition("@")
    return prefix, tag if mark else None


def parse_labels(
    scheme: Scheme, labels: Sequence[str]
) -> tuple[NDArray[np.int8], NDArray[np.int32], tuple[str | None, ...]]:
    """Names of L labels -> their prefixes (L,), their tags (L,), and the tags' names, sorted (None for no tag)."""
    parts = [split_label(label) for label in labels]
    for label, (prefix, _) in zip(labels, parts, strict=True):
        if prefix not in scheme.prefixes:
            raise StandardError(
                f"label {label!r} does not begin with a prefix of {scheme.name} ({', '.join(scheme.prefixes)}); "
                f"the schemes are {', '.join(SCHEMES)}"
            )
    names = tuple(sorted({tag for _, tag in parts}, key=lambda tag: (tag is not None, tag or "")))
    prefixes = np.array([scheme.prefixes.index(prefix) for prefix, _ in parts], dtype=np.int8)
    return prefixes, np.array([names.index(tag) for _, tag in parts], dtype=np.int32), names
