"""Units: what is labelled, words or characters, as one flat list over a corpus; and labels lifted between the two.

Whitespace is never part of a unit. In the character view a word's tag becomes one label for each of its characters,
a position of a scheme (B, I, E, S) joined with the tag: ``B@NN``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duilian.corpus import UNKNOWN, Corpus, Layer, with_tags
from duilian.ragged import Ragged, offsets_of, ranges
from duilian.standards.schemes import (
    BEGIN,
    DEFAULT,
    END,
    MIDDLE,
    SINGLE,
    Scheme,
    grammar,
    join_label,
    parse_labels,
    prefixes_of,
    scheme,
    words_of,
)

TASKS = ("pos", "seg", "segpos")
"""pos: tags over given words. seg: where words begin and end. segpos: both at once, as labels of characters."""

_SPACES = np.array([ord(c) for c in map(chr, range(0x3001)) if c.isspace()], dtype=np.uint32)


@dataclass(frozen=True, eq=False)
class Units:
    """Flat units over a text.

    text:      (n,) uint32
    starts:    (U,) int64, ends: (U,) int64 into text
    sentences: (S + 1,) int64 into the units
    """

    text: NDArray[np.uint32]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    sentences: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.starts)


def is_space(text: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """(n,) whether each code point is whitespace."""
    table = np.zeros(0x3001, np.bool_)
    table[_SPACES] = True
    return table[np.minimum(text, 0x3000)] & (text <= 0x3000)


def word_units(corpus: Corpus, layer: Layer) -> Units:
    """The words of a layer; whitespace inside a word is left out."""
    space = is_space(corpus.text)
    if not space.any():
        return Units(corpus.text, layer.starts, layer.ends, layer.offsets)
    shift = offsets_of(~space)
    return Units(corpus.text[~space], shift[layer.starts], shift[layer.ends], layer.offsets)


def character_units(corpus: Corpus) -> Units:
    """Every character of the text that is not whitespace."""
    starts = np.flatnonzero(~is_space(corpus.text)).astype(np.int64)
    sentences = np.searchsorted(starts, corpus.offsets).astype(np.int64)
    return Units(corpus.text, starts, starts + 1, sentences)


@dataclass(frozen=True, eq=False)
class Labelled:
    """Units with their labels.

    names:  L label names, sorted
    labels: (U,) int32 into names; -1 unknown, -2 - k the allowed labels sets[k]
    """

    units: Units
    names: tuple[str, ...]
    labels: NDArray[np.int32]
    sets: Ragged


@dataclass(frozen=True, eq=False)
class Grammar:
    """Which labels may start a sentence, end it, and follow each other.

    starts, ends: (L,) bool; follows: (L, L) bool
    """

    starts: NDArray[np.bool_]
    ends: NDArray[np.bool_]
    follows: NDArray[np.bool_]


def blocks(units: Units, size: int) -> Iterator[tuple[int, int, Units]]:
    """(begin, end, units begin..end): whole sentences, about so many units at a time."""
    at, sentences = 0, units.sentences
    while at < len(sentences) - 1:
        to = max(at + 1, int(np.searchsorted(sentences, sentences[at] + size, side="right")) - 1)
        begin, end = int(sentences[at]), int(sentences[to])
        part = replace(
            units, starts=units.starts[begin:end], ends=units.ends[begin:end], sentences=sentences[at : to + 1] - begin
        )
        yield begin, end, part
        at = to


def units_of(corpus: Corpus, layer: Layer | None, task: str) -> Units:
    """What the task labels: the words of the layer, or the characters of the text."""
    if task == "pos":
        if layer is None:
            raise ValueError("tagging words needs words")
        return word_units(corpus, layer)
    return character_units(corpus)


def label_units(
    corpus: Corpus, layer: Layer, task: str, scheme_name: str = DEFAULT, known: Sequence[str] | None = None
) -> Labelled:
    """Units and labels of a layer, as the task sees them.

    known: the names of the labels, as of a trained model; a word whose tag they lack keeps its boundaries. None: those
    that occur, and the single character if it does not, without which some texts could not be cut at all. A word
    without a tag may have all of them; where no tag is known, all that the layer lists.
    """
    if task == "pos":
        used = np.union1d(layer.labels[layer.labels >= 0], layer.sets.data).astype(np.int64)
        names = sorted(layer.tags[k] for k in used) if known is None else known
        return relabel(Labelled(word_units(corpus, layer), layer.tags, layer.labels, layer.sets), names)
    units = character_units(corpus)
    way = scheme(scheme_name)
    if known is not None and task == "segpos":
        layer = with_tags(layer, [tag for tag in parse_labels(way, known)[2] if tag is not None])
    tags: tuple[str | None, ...] = (None,) if task == "seg" else layer.tags
    names = [join_label(prefix, tag) for tag in tags for prefix in way.prefixes]
    words, begins, ends = _covering(corpus, layer, len(units))
    joint, rows, given = _joint_labels(
        way, ends - begins, np.zeros_like(words) if task == "seg" else layer.labels[words], layer.sets,
        _writable(way, names, names if known is None else known),
    )  # fmt: skip
    labels = np.full(len(units), UNKNOWN, np.int32)
    labels[ranges(begins, ends)] = joint
    whole = Labelled(units, tuple(names), labels, Ragged.from_rows(rows, np.int32))
    if known is not None:
        return relabel(whole, known)
    used = np.unique(np.concatenate([labels[labels >= 0], *given]))
    if not len(used):
        used = np.unique(whole.sets.data)
    single = int(way.roles[SINGLE])
    if not np.any(used % len(way) == single):
        used = np.union1d(used, (used // len(way) if len(used) else np.arange(len(tags))) * len(way) + single)
    return relabel(whole, sorted(names[k] for k in used))


def _writable(way: Scheme, names: Sequence[str], known: Sequence[str]) -> NDArray[np.bool_]:
    """(3, n_tags) whether a word of one, two, or more characters with a tag can be written with the known labels."""
    have = np.isin(np.array(names, object), np.array([*known, ""], object)).reshape(-1, len(way))
    lengths = ([SINGLE], [BEGIN, END], [BEGIN, MIDDLE, END])
    return np.array([have[:, way.roles[roles]].all(axis=1) for roles in lengths])


def _joint_labels(
    way: Scheme, lengths: NDArray[np.int64], tags: NDArray[Any], sets: Ragged, writable: NDArray[np.bool_]
) -> tuple[NDArray[np.int32], list[NDArray[np.int32]], list[NDArray[np.int32]]]:
    """Lengths and tags of words -> labels of their characters, sets that these point to, and which of them were given.

    A word whose tag cannot be written may have any tag that can; if none can, its characters may be anything.
    """
    kinds = np.minimum(lengths, 3) - 1
    tags = np.where((tags >= 0) & ~writable[kinds, np.maximum(tags, 0)], UNKNOWN, tags) if writable.size else tags
    prefix = prefixes_of(way, lengths).astype(np.int32)
    tag, kind = np.repeat(tags, lengths), np.repeat(kinds, lengths)
    joint = np.where(tag >= 0, tag * len(way) + prefix, UNKNOWN).astype(np.int32)
    rows: list[NDArray[np.int32]] = []
    given: list[NDArray[np.int32]] = []
    numbers: dict[tuple[int, int, int], int] = {}
    for at in np.flatnonzero(tag < 0).tolist():
        key = (int(tag[at]), int(kind[at]), int(prefix[at]))
        if key not in numbers:
            can = np.flatnonzero(writable[key[1]])
            some = can if key[0] == UNKNOWN else np.intersect1d(sets[-2 - key[0]], can)
            row = ((some if len(some) else can) * len(way) + key[2]).astype(np.int32)
            numbers[key] = -2 - len(rows) if len(row) else UNKNOWN
            rows += [row] if len(row) else []
            given += [row] if len(some) and key[0] != UNKNOWN else []
        joint[at] = numbers[key]
    return joint, rows, given


def relabel(labelled: Labelled, names: Sequence[str]) -> Labelled:
    """The same labels over another list of names; a label that the list lacks becomes unknown."""
    n = len(labelled.labels)
    edges = np.array([0, n], np.int64)
    zeros = np.zeros(n, np.int64)
    layer = with_tags(Layer("", labelled.names, edges, zeros, zeros, labelled.labels, labelled.sets), names)
    return replace(labelled, names=layer.tags, labels=layer.labels, sets=layer.sets)


def grammar_of(names: Sequence[str], task: str, scheme_name: str = DEFAULT) -> Grammar:
    """What may start, end and follow among the labels of a task."""
    n = len(names)
    if task == "pos":
        return Grammar(np.ones(n, np.bool_), np.ones(n, np.bool_), np.ones((n, n), np.bool_))
    prefixes, tags, _ = parse_labels(scheme(scheme_name), names)
    return Grammar(*grammar(scheme(scheme_name), prefixes, tags))


def layer_from(
    corpus: Corpus, labels: NDArray[np.int32], names: Sequence[str], task: str, like: Layer | None, name: str,
    scheme_name: str = DEFAULT,
) -> Layer:  # fmt: skip
    """Labels of units -> a layer: the words of ``like`` with new tags, or new words.

    labels: (U,) int32, all known
    """
    if task == "pos":
        assert like is not None
        return replace(
            like, name=name, tags=tuple(names), labels=labels, sets=Ragged.from_rows([], np.int32), confidence=None
        )
    units = character_units(corpus)
    prefixes, tags, tag_names = parse_labels(scheme(scheme_name), names)
    starts, ends, offsets = words_of(scheme(scheme_name), prefixes[labels], units.sentences)
    known = tuple(tag for tag in tag_names if tag is not None)
    return Layer(
        name=name,
        tags=known,
        offsets=offsets,
        starts=units.starts[starts],
        ends=units.ends[ends - 1] if len(ends) else ends,
        labels=(tags[labels[starts]] if known else np.full(len(starts), UNKNOWN)).astype(np.int32),
    )


def boundary_sets(
    corpus: Corpus, units: Units, names: Sequence[str], scheme_name: str = DEFAULT
) -> tuple[NDArray[np.int32], Ragged]:
    """Labels that whitespace in the text leaves possible: a word ends before it and begins after it.

    returns labels (U,) int32, -1 where anything goes, and the sets they point to
    """
    way = scheme(scheme_name)
    prefixes, _, _ = parse_labels(way, names)
    begins, ends = way.starts[prefixes], way.ends[prefixes]
    rows = [np.flatnonzero(mask).astype(np.int32) for mask in (begins, ends, begins & ends)]
    gap = np.zeros(len(units) + 1, np.bool_)
    gap[1:-1] = units.starts[1:] != units.ends[:-1]
    gap[units.sentences] = False
    after, before = gap[:-1], gap[1:]
    labels = np.full(len(units), UNKNOWN, np.int32)
    labels[after] = -2
    labels[before] = -3
    labels[after & before] = -4
    return labels, Ragged.from_rows(rows, np.int32)


def _covering(
    corpus: Corpus, layer: Layer, n_units: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Words that have characters of their own, as ranges of character units: (words, begins, ends)."""
    shift = offsets_of(~is_space(corpus.text))
    begins, ends = shift[layer.starts], shift[layer.ends]
    reached = np.concatenate([np.zeros(1, np.int64), np.maximum.accumulate(ends)[:-1]]) if len(ends) else ends
    words = np.flatnonzero((ends > begins) & (begins >= reached)).astype(np.int64)
    return words, begins[words], ends[words]


def carry_labels(layer: Layer, onto: Layer) -> Layer:
    """The words of ``onto`` with the labels of the words of ``layer`` over the same text.

    A word that lies in another has its label; one that lies across several may have each of theirs, and is unknown if
    one of them is.
    """
    firsts = np.searchsorted(layer.ends, onto.starts, side="right")
    lasts = np.searchsorted(layer.starts, onto.ends, side="left")
    labels = np.full(len(onto), UNKNOWN, np.int32)
    single = lasts - firsts == 1
    labels[single] = layer.labels[firsts[single]]
    rows = list(layer.sets)
    for word in np.flatnonzero(lasts - firsts > 1).tolist():
        parts = layer.labels[firsts[word] : lasts[word]].tolist()
        if UNKNOWN in parts:
            continue
        together = np.unique(np.concatenate([layer.sets[-2 - part] if part < 0 else [part] for part in parts]))
        if len(together) == 1:
            labels[word] = together[0]
        else:
            labels[word] = -2 - len(rows)
            rows.append(together)
    sets = Ragged.from_rows(rows, np.int32)
    return replace(onto, tags=layer.tags, labels=labels, sets=sets, standard=layer.standard, confidence=None)
