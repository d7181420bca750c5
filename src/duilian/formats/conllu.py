"""CoNLL-U: ten columns, comments, multi-word tokens, empty nodes. Two layers on the same words: xpos and upos.

    # sent_id = 1
    1-2	don't	_	_	_	_	_	_	_	_
    1	do	_	AUX	VBP	_	_	_	_	_
    2	n't	_	PART	RB	_	_	_	_	_

``_`` is an unknown label. Words of a multi-word token share its span of the text unless, put together, they are it.
The confidence of the layer that is read or written is ``Conf=`` in MISC. Comments, empty nodes and the other columns
stay in the source; a sentence that was segmented anew keeps its comments, is renumbered and loses the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from duilian.corpus import Corpus, Layer, encode
from duilian.errors import UsageError
from duilian.formats.base import (
    Block,
    Fault,
    Format,
    Ints,
    Points,
    ReadOptions,
    assemble,
    fixed,
    mended,
    number,
    quote,
    tagged,
    with_source,
    without,
)
from duilian.formats.conllu_writing import write
from duilian.formats.rows import Check, Rows, check_columns, check_filled, faults, fields, scan
from duilian.ragged import offsets_of

LAYERS = ("xpos", "upos")
_ID, _FORM, _UPOS, _XPOS, _MISC = range(5)


class Words(NamedTuple):
    """The words of a block: lines of the file, fields (5, n_words) for ID, FORM, UPOS, XPOS and MISC.

    heads: (n_sentences,) where the first line that is no comment begins
    joint: multi-word tokens whose words, put together, are something else: (first word, behind the last, span)
    """

    rows: Rows
    offsets: Ints
    starts: Ints
    ends: Ints
    heads: Ints
    joint: list[tuple[int, int, int, int]]


def detect(sample: str) -> int:
    """Most lines have ten columns, the first a number."""
    lines = [line for line in sample.split("\n") if line.strip("\r") and not line.startswith("#")]
    if not lines:
        return 60 if sample.startswith("# ") and ("# text" in sample or "# sent_id" in sample) else 0
    good = sum(line.count("\t") == 9 and line[0].isdigit() for line in lines)
    return int(95 * good / len(lines)) if 2 * good > len(lines) else 0


def parse(points: Points) -> tuple[Words | None, Iterator[Fault]]:
    """Find the words of all sentences, or what is wrong with them."""
    from duilian.formats.scan_kernels import scan_ids

    rows = scan(points, every_blank=False)
    comment = np.zeros(len(rows.starts), bool)
    filled = ~rows.blank
    comment[filled] = points[rows.starts[filled]] == 35
    lines = np.flatnonzero(filled & ~comment)
    columns = check_columns(points, rows, lines, 10, "CoNLL-U has ten columns separated by one tab each.")
    if len(columns[0]):
        return None, faults(rows, columns)
    starts, ends = fields(points, rows.starts[lines], rows.ends[lines], [0, 1, 3, 4, 9])
    kinds, first, second = scan_ids(fixed(points, np.uint32), fixed(starts[_ID], np.int64), fixed(ends[_ID], np.int64))
    n_sentences = len(rows.bounds) - 1
    is_word = kinds == 0
    words, with_form = lines[is_word], kinds < 2
    checks = [
        *check_ids(points, rows, lines, kinds, first, second, starts[_ID], ends[_ID]),
        check_filled(lines[with_form], starts[_FORM][with_form], ends[_FORM][with_form], 2),
        check_filled(words, starts[_UPOS][is_word], ends[_UPOS][is_word], 4),
        check_filled(words, starts[_XPOS][is_word], ends[_XPOS][is_word], 5),
    ]
    if any(len(wrong) for wrong, _ in checks):
        return None, faults(rows, *checks)
    offsets = offsets_of(np.bincount(rows.sentence[words], minlength=n_sentences))
    before = np.cumsum(is_word) - is_word
    joint = [
        (int(before[k]), int(before[k] + second[k] - first[k] + 1), int(starts[_FORM, k]), int(ends[_FORM, k]))
        for k in np.flatnonzero(kinds == 1).tolist()
    ]
    heads = rows.bounds[1:].copy()
    lead, at = np.unique(rows.sentence[lines], return_index=True)
    heads[lead] = rows.starts[lines[at]]
    return Words(rows, offsets, starts[:, is_word], ends[:, is_word], heads, joint), iter(())


def check_ids(
    points: Points,
    rows: Rows,
    lines: Ints,
    kinds: NDArray[np.int8],
    first: Ints,
    second: Ints,
    starts: Ints,
    ends: Ints,
) -> list[Check]:
    """Words count 1, 2, 3 in every sentence; a range stands before its first word and has them all."""
    is_word = kinds == 0
    sentence = rows.sentence[lines]
    before = np.cumsum(is_word) - is_word
    counts = np.bincount(sentence[is_word], minlength=len(rows.bounds) - 1)
    expected = before - offsets_of(counts)[sentence] + 1

    def found(line: int) -> tuple[int, str]:
        k = int(np.searchsorted(lines, line))
        return k, quote(points, int(starts[k]), int(ends[k]))

    def say_word(line: int) -> tuple[str, str]:
        k, text = found(line)
        what = "a number, a range like 2-3 or an empty node like 2.1" if kinds[k] < 0 else f"word {expected[k]}"
        return f"expected {what} in column 1, found {text}.", ""

    def say_range(line: int) -> tuple[str, str]:
        k, text = found(line)
        hint = f"Expected a first word {expected[k]}, a last one of at most {counts[sentence[k]]}, and no overlap."
        return f"the range {text} does not fit the words of its sentence.", hint

    ranges = np.flatnonzero(kinds == 1)
    wrong = (first[ranges] != expected[ranges]) | (second[ranges] < first[ranges])
    wrong |= second[ranges] > counts[sentence[ranges]]
    follows = sentence[ranges][1:] == sentence[ranges][:-1]
    wrong[1:] |= follows & (first[ranges][1:] <= second[ranges][:-1])
    return [(lines[(kinds < 0) | (is_word & (first != expected))], say_word), (lines[ranges[wrong]], say_range)]


def share_spans(words: Words, points: Points) -> tuple[Ints, Ints, list[tuple[int, int]]]:
    """Places of the words in the file, and (first word, behind the last) of those that share the first one's place."""
    starts, ends = words.starts[_FORM].copy(), words.ends[_FORM].copy()
    shared = []
    for first, last, begin, end in words.joint:
        whole = points[begin:end]
        if int((ends[first:last] - starts[first:last]).sum()) == end - begin:
            parts = [points[a:b] for a, b in zip(starts[first:last].tolist(), ends[first:last].tolist(), strict=True)]
            if np.array_equal(np.concatenate(parts), whole):
                continue
        starts[first], ends[first] = begin, end
        ends[first + 1 : last] = starts[first + 1 : last]
        shared.append((first, last))
    return starts, ends, shared


def read(block: Block, layer: str | None, options: ReadOptions) -> Corpus:
    """Both layers; the one asked for comes first, without asking the one that is filled, xpos before upos."""
    if layer is not None and layer not in LAYERS:
        raise UsageError(f"conllu has no layer {layer!r}, only xpos and upos. Leave #{layer} out.")
    words, points = mended(block, options, parse)
    starts, ends, shared = share_spans(words, points)
    units = assemble(points, starts, ends, words.offsets)
    if shared:
        units = units._replace(starts=units.starts.copy(), ends=units.ends.copy())
        for first, last in shared:
            units.starts[first:last] = units.starts[first]
            units.ends[first:last] = units.ends[first]
    places = {"upos": (words.starts[_UPOS], words.ends[_UPOS]), "xpos": (words.starts[_XPOS], words.ends[_XPOS])}
    if "layer" not in block.session and len(units.starts):
        empty = {name: is_open(points, *places[name]) for name in LAYERS}
        block.session["layer"] = "upos" if empty["xpos"] and not empty["upos"] else "xpos"
    first_layer = layer or block.session.get("layer", "xpos")
    layers = []
    for name in sorted(LAYERS, key=lambda name: name != first_layer):
        labelled = without(*number(points, *places[name]), unknown="_") if options.labels else ()
        layers.append(tagged(units, name, *labelled))
    layers[0] = with_confidence(layers[0], points, words)
    corpus = Corpus(units.text, units.edges, tuple(layers))
    if options.keep_source:
        corpus = with_source(corpus, "conllu", points, words.rows.bounds, places, heads=words.heads)
    return corpus


def is_open(points: Points, starts: Ints, ends: Ints) -> bool:
    """Whether all these fields are ``_``."""
    return bool(np.all((ends - starts == 1) & (points[starts] == 95)))


def with_confidence(layer: Layer, points: Points, words: Words) -> Layer:
    """The layer with what ``Conf=`` says in MISC, if any word has it."""
    from duilian.formats.scan_kernels import find_pattern

    pattern = encode("Conf=")
    places = find_pattern(
        fixed(points, np.uint32),
        fixed(words.starts[_MISC], np.int64),
        fixed(words.ends[_MISC], np.int64),
        fixed(pattern, np.uint32),
    )
    found = np.flatnonzero(places >= 0)
    if not len(found):
        return layer
    values = np.full(len(layer), np.nan, np.float32)
    for unit in found.tolist():
        text = points[places[unit] + len(pattern) : min(int(words.ends[_MISC, unit]), int(places[unit]) + 40)]
        number_text = "".join(map(chr, text.tolist())).split("|")[0]
        try:
            value = float(number_text)
        except ValueError:
            continue
        if 0 <= value <= 1:
            values[unit] = value
    return replace(layer, confidence=values)


FORMAT = Format(
    name="conllu",
    about="CoNLL-U: ten columns, comments, multi-word tokens, empty nodes",
    suffixes=(".conllu",),
    cut="blank",
    layers="xpos (the default where it is filled) and upos",
    keeps_tags=True,
    detect=detect,
    read=read,
    write=write,
    holds=frozenset({"unknown", "confidence"}),
    comment="# ",
)
