"""What the writers share: which sentences are still as they were read, pieces to write, and the checks before.

A piece is a span of code points followed by a string of a table. A sentence whose segmentation is as it was read
gives pieces of the source with new labels between them; any other gives its words with what the format puts around
them. One kernel then writes all pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from duilian.corpus import UNKNOWN, Corpus, Layer, Source, decode, encode, with_tags
from duilian.errors import UsageError
from duilian.formats.base import Ints, Points, fixed, short
from duilian.ragged import offsets_of, ranges

ASCII_SPACE, ANY_SPACE, TAB_OR_LINE_END = 0, 1, 2


class Pieces(NamedTuple):
    """Piece k is ``text[starts[k]:ends[k]]`` and then ``strings[which[k]]``; it belongs to ``sentence[k]``."""

    text: Points
    starts: Ints
    ends: Ints
    which: Ints
    sentence: Ints
    strings: list[str]


def render(pieces: Pieces) -> str:
    """Write all pieces in turn."""
    from duilian.formats.weave_kernels import weave

    table = encode("".join(pieces.strings))
    offsets = offsets_of([len(string) for string in pieces.strings])
    return decode(
        weave(
            fixed(pieces.text, np.uint32),
            fixed(pieces.starts, np.int64),
            fixed(pieces.ends, np.int64),
            fixed(table, np.uint32),
            fixed(offsets, np.int64),
            fixed(pieces.which, np.int64),
        )
    )


def merge(kept: Pieces, fresh: Pieces, same: NDArray[np.bool_]) -> Pieces:
    """Sentences that are the same from ``kept``, the others from ``fresh``."""
    if same.all():
        return kept
    if not same.any():
        return fresh
    left, right = same[kept.sentence], ~same[fresh.sentence]
    sentence = np.concatenate([kept.sentence[left], fresh.sentence[right]])
    order = np.argsort(sentence, kind="stable")
    shift, more = len(kept.text), len(kept.strings)
    return Pieces(
        np.concatenate([kept.text, fresh.text]),
        np.concatenate([kept.starts[left], fresh.starts[right] + shift])[order],
        np.concatenate([kept.ends[left], fresh.ends[right] + shift])[order],
        np.concatenate([kept.which[left], fresh.which[right] + more])[order],
        sentence[order],
        kept.strings + fresh.strings,
    )


def patches(
    source: Source, offsets: Ints, starts: Ints, ends: Ints, which: NDArray[Any], strings: Sequence[str]
) -> Pieces:
    """The source with ``strings[which[k]]`` in place of ``raw[starts[k]:ends[k]]``, ``offsets`` slots per sentence."""
    begins = np.insert(ends, offsets[:-1], source.offsets[:-1])
    stops = np.insert(starts, offsets[1:], source.offsets[1:])
    nothing = len(strings)
    return Pieces(
        source.raw,
        begins,
        stops,
        np.insert(which.astype(np.int64), offsets[1:], nothing),
        np.repeat(np.arange(len(offsets) - 1), np.diff(offsets) + 1),
        [*strings, ""],
    )


def unchanged(corpus: Corpus, layer: Layer, format: str) -> NDArray[np.bool_]:
    """(n_sentences,) whether a sentence's units are where they were when it was read; all False without a source."""
    n = len(corpus)
    source = corpus.source
    nothing = np.zeros(n, bool)
    if source is None or source.format != format or len(source.offsets) != n + 1:
        return nothing
    old = original(source, layer.name)
    if old is None:
        return nothing
    if not (source.style["text"] is corpus.text or np.array_equal(source.style["text"], corpus.text)):
        return nothing
    if old.starts is layer.starts and old.ends is layer.ends and old.offsets is layer.offsets:
        return np.ones(n, bool)
    counts = np.diff(layer.offsets)
    same = counts == np.diff(old.offsets)
    here = ranges(layer.offsets[:-1][same], layer.offsets[1:][same])
    there = ranges(old.offsets[:-1][same], old.offsets[1:][same])
    moved = (layer.starts[here] != old.starts[there]) | (layer.ends[here] != old.ends[there])
    same[np.repeat(np.flatnonzero(same), counts[same])[moved]] = False
    return np.asarray(same)


def original(source: Source, name: str) -> Layer | None:
    """The layer as it was read."""
    for layer in source.style["layers"]:
        if layer.name == name:
            found: Layer = layer
            return found
    return None


def other_labels(left: Layer, here: Ints, right: Layer, there: Ints) -> NDArray[np.bool_]:
    """(n,) whether unit here[k] of one layer and unit there[k] of another have different labels; sets by content."""
    if left is right:
        return np.zeros(len(here), bool)
    tags = tuple(sorted({*left.tags, *right.tags}))
    a, b = with_tags(left, tags), with_tags(right, tags)
    number: dict[frozenset[int], int] = {}
    tables = [
        np.array([0, -1, *(number.setdefault(frozenset(row.tolist()), -2 - len(number)) for row in layer.sets)])
        for layer in (a, b)
    ]
    labels = [
        np.where(layer.labels[at] >= 0, layer.labels[at], table[np.maximum(-layer.labels[at], 0)])
        for layer, at, table in ((a, here, tables[0]), (b, there, tables[1]))
    ]
    return np.asarray(labels[0] != labels[1])


def spread(values: NDArray[Any], layer: Layer, source: Source, same: NDArray[np.bool_], fill: int) -> NDArray[Any]:
    """Values of a layer's units on the units as read: equal where sentences are the same, ``fill`` elsewhere."""
    old = original(source, layer.name)
    assert old is not None
    if same.all():
        return values
    out = np.full(len(old), fill, dtype=values.dtype)
    out[ranges(old.offsets[:-1][same], old.offsets[1:][same])] = values[
        ranges(layer.offsets[:-1][same], layer.offsets[1:][same])
    ]
    return out


def interleave(*columns: NDArray[Any]) -> NDArray[Any]:
    """(n,) arrays -> (k n,): the first of each, the second of each, ..."""
    return np.stack(columns, axis=1).ravel()


def with_ends(offsets: Ints, values: NDArray[Any], last: Any) -> NDArray[Any]:
    """One more value behind those of each sentence."""
    return np.insert(values, offsets[1:], last)


def pick(corpus: Corpus, layer: str | None, format: str) -> Layer:
    """The layer to write: the one named, else the one that was read, else the only or first one."""
    try:
        return corpus.layer(layer)
    except KeyError as error:
        raise UsageError(f"cannot write {format}: {error.args[0]}") from None


def others(need: str) -> str:
    """The formats that can hold something, for a hint."""
    from duilian.formats import FORMATS

    names = [name for name, format in FORMATS.items() if format.write and need in format.holds]
    return f"Formats that can: {', '.join(names)}."


def check_labels(corpus: Corpus, layer: Layer, format: str, unknown: bool = False, sets: bool = False) -> None:
    """A format that holds neither unknown labels nor sets must get none of them."""
    if not unknown and (layer.labels == UNKNOWN).any():
        unit = int(np.argmax(layer.labels == UNKNOWN))
        raise UsageError(
            f"{format} cannot leave a label open, and {place(corpus, layer, unit)} has none. {others('unknown')}"
        )
    if not sets and (layer.labels < UNKNOWN).any():
        unit = int(np.argmax(layer.labels < UNKNOWN))
        label = layer.label(unit)
        assert isinstance(label, frozenset)
        raise UsageError(
            f"{format} cannot hold several allowed labels, and {place(corpus, layer, unit)} has "
            f"{short(' '.join(sorted(label)))}. {others('sets')}"
        )


def check_words(corpus: Corpus, layer: Layer, format: str, rule: int) -> None:
    """No word may hold what would end it."""
    from duilian.formats.scan_kernels import first_unfit

    unit = int(
        first_unfit(fixed(corpus.text, np.uint32), fixed(layer.starts, np.int64), fixed(layer.ends, np.int64), rule)
    )
    if unit >= 0:
        what = "white space" if rule != TAB_OR_LINE_END else "a tab or a line end"
        raise UsageError(
            f"{format} cannot hold a word that is empty or has {what} in it: {place(corpus, layer, unit)}. "
            "Formats that hold any word: jsonl (tsv and conllu hold spaces)."
        )


def check_tags(layer: Layer, format: str, wrong: Callable[[str], bool]) -> None:
    """No tag in use may hold what would end it."""
    for k in np.unique(layer.labels[layer.labels >= 0]).tolist():
        tag = layer.tags[k]
        if not tag or wrong(tag):
            raise UsageError(
                f"{format} cannot hold the tag {short(tag)}: it would be read back as something else. Use jsonl."
            )


def check_confidence(layer: Layer, wanted: bool, format: str, holds: bool) -> NDArray[np.float32] | None:
    """The confidences to write, if they are wanted, there, and the format has a place for them."""
    if not wanted:
        return None
    if not holds:
        raise UsageError(f"{format} has no place for confidences. {others('confidence')}")
    if layer.confidence is None:
        raise UsageError(f"layer {short(layer.name)} has no confidences to write")
    return layer.confidence


def place(corpus: Corpus, layer: Layer, unit: int) -> str:
    """A unit as a message shows it."""
    sentence = int(np.searchsorted(layer.offsets, unit, side="right")) - 1
    word = decode(corpus.text[layer.starts[unit] : layer.ends[unit]])
    return f"word {unit - int(layer.offsets[sentence]) + 1} of sentence {sentence + 1}, {short(word)},"


def confidences(values: NDArray[np.float32]) -> tuple[list[str], Ints]:
    """Confidences as texts of six decimals: (distinct texts, which one each unit has); unknown ones are ""."""
    rounded = np.round(values.astype(np.float64), 6)
    distinct, which = np.unique(rounded, return_inverse=True, equal_nan=True)
    return ["" if np.isnan(value) else f"{value:.6f}" for value in distinct.tolist()], which.astype(np.int64)
