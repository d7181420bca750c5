"""Lines of tokens with white space between them: what slash, underscore, segmented and raw share.

A line is a sentence; a blank line is an empty sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from duilian.corpus import Corpus, Layer, decode
from duilian.formats.base import Fault, Ints, Points, fixed, quote
from duilian.formats.weaving import Pieces, merge, patches, render, spread, unchanged, with_ends


class Tokens(NamedTuple):
    """Tokens of line i are offsets[i]:offsets[i + 1]; the line itself is points[lines[i]:lines[i + 1]]."""

    lines: Ints
    offsets: Ints
    starts: Ints
    ends: Ints


def scan(points: Points, wide: bool) -> Tokens:
    """Find lines and tokens; ``wide`` white space is all of Unicode's, else only ASCII's."""
    from duilian.formats.scan_kernels import scan_tokens

    return Tokens(*scan_tokens(fixed(points, np.uint32), wide))


def last(points: Points, tokens: Tokens, mark: str) -> Ints:
    """The place of the last such mark in each token, -1 if there is none."""
    from duilian.formats.scan_kernels import last_mark

    places: Ints = last_mark(
        fixed(points, np.uint32), fixed(tokens.starts, np.int64), fixed(tokens.ends, np.int64), np.uint32(ord(mark))
    )
    return places


def split_faults(points: Points, tokens: Tokens, marks: Ints, mark: str) -> Iterator[Fault]:
    """One fault for each line with a token that has no word or no tag."""
    bad = np.flatnonzero((marks <= tokens.starts) | (marks + 1 >= tokens.ends))
    line = np.searchsorted(tokens.offsets, bad, side="right") - 1
    chosen, first = np.unique(line, return_index=True)
    for row, token in zip(chosen, bad[first], strict=True):
        begin, end = int(tokens.starts[token]), int(tokens.ends[token])
        yield Fault(
            int(tokens.lines[row]),
            int(tokens.lines[row + 1]),
            begin,
            f"expected word{mark}tag, found {quote(points, begin, end)}.",
            "If the words have no tags, use --format segmented." if marks[token] < 0 else "",
        )


def line_contents(points: Points, lines: Ints) -> Ints:
    """Where each line ends, its line feed and one carriage return before it left out."""
    from duilian.formats.scan_kernels import trim_lines

    ends: Ints = trim_lines(fixed(points, np.uint32), fixed(lines, np.int64))
    return ends


def looks_tagged(sample: str, mark: str) -> int:
    """How much a sample looks like word, mark, tag: for detection."""
    words = sample.split()[:5000]
    if not words:
        return 0
    good = 0
    for word in words:
        head, found, tag = word.rpartition(mark)
        good += bool(found and head and tag and len(tag) <= 20)
    share = good / len(words)
    return int(70 + 15 * share) if share >= 0.5 else 0


def write_lines(
    corpus: Corpus,
    layer: Layer,
    format: str,
    strings: list[str],
    which: NDArray[np.int64],
    patch: bool,
    check: Callable[[], None],
) -> str:
    """One sentence a line: each unit with ``strings[which]`` behind it, and a separator before the next.

    With ``patch``, the strings without their first code point (the mark) take the place of the labels as read;
    without, sentences that are as they were read are copied. ``check`` runs if any word is written anew.
    """
    source = corpus.source
    same = unchanged(corpus, layer, format)
    kept = None
    if source is not None and same.any():
        if patch:
            slots = source.slots[layer.name]
            old = source.style["slot_offsets"]
            values = spread(which, layer, source, same, 0)
            kept = patches(source, old, *slots, values, [string[1:] for string in strings])
        else:
            none = np.zeros(0, np.int64)
            kept = patches(source, np.zeros(len(corpus) + 1, np.int64), none, none, none, [])
        if same.all():
            return render(kept)
    check()
    space, newline = " ", "\n"
    ends = np.full(len(corpus), 0)
    if source is not None and source.format == format:
        space, newline = source.style["space"], source.style["newline"]
        if len(source.raw) and source.raw[-1] != 10:
            ends[-1:] = 1
    n = len(strings)
    table = [*[string + space for string in strings], *strings, newline, ""]
    final = np.zeros(len(layer), bool)
    filled = np.diff(layer.offsets) > 0
    final[layer.offsets[1:][filled] - 1] = True
    fresh = Pieces(
        corpus.text,
        with_ends(layer.offsets, layer.starts, 0),
        with_ends(layer.offsets, layer.ends, 0),
        with_ends(layer.offsets, which + n * final, 2 * n + ends),
        np.repeat(np.arange(len(corpus)), np.diff(layer.offsets) + 1),
        table,
    )
    return render(fresh if kept is None else merge(kept, fresh, same))


def usual_space(points: Points, tokens: Tokens) -> str:
    """What stands between the first two tokens that share a line: the separator for lines written anew."""
    pairs = np.flatnonzero(np.diff(tokens.offsets) > 1)
    if not len(pairs):
        return " "
    token = int(tokens.offsets[pairs[0]])
    space = decode(points[tokens.ends[token] : tokens.starts[token + 1]])
    return space if len(space) <= 4 else " "
