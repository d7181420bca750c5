"""The ten columns of the tagger of Li et al. (2015): two sides, and what is allowed where one is open.

    1	上海	_	NR^*	_	_	_	_	_	NR^Ng_NR^nr_NR^ns

Column 2 is the word, column 4 the tags of both sides with ``*`` for an open one, column 10 the allowed bundles, joined
by ``_`` (``_`` alone: any). The layers are ``1`` and ``2``. An open side gets the set of its tags in the allowed
bundles. Each blank line ends a sentence.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from duilian.corpus import UNKNOWN, Corpus, Label, Layer, number_labels
from duilian.errors import UsageError
from duilian.formats.base import (
    Block,
    Fault,
    Format,
    Ints,
    Points,
    ReadOptions,
    WriteOptions,
    assemble,
    mended,
    number,
    one_layer,
    short,
    tagged,
    with_source,
)
from duilian.formats.conllu_writing import alike
from duilian.formats.rows import Rows, check_columns, check_filled, faults, fields, scan
from duilian.formats.tsv import ends_blank
from duilian.formats.weaving import (
    TAB_OR_LINE_END,
    Pieces,
    check_confidence,
    check_tags,
    check_words,
    interleave,
    merge,
    original,
    other_labels,
    patches,
    pick,
    render,
    unchanged,
    with_ends,
)
from duilian.ragged import offsets_of

SIDES = ("1", "2")
Pair = tuple[Label, Label]


class Words(NamedTuple):
    """Fields (3, n_words) of column 2, 4 and 10; ``pairs[which[k]]`` are the labels of word k on both sides."""

    rows: Rows
    offsets: Ints
    starts: Ints
    ends: Ints
    pairs: list[Pair]
    which: Ints


def detect(sample: str) -> int:
    """Ten columns with a ^ in the fourth."""
    rows = [line.rstrip("\r").split("\t") for line in sample.split("\n") if line.strip("\r")]
    good = sum(len(row) == 10 and (row[3] == "_" or row[3].count("^") == 1) for row in rows)
    split = sum(len(row) == 10 and "^" in row[3] for row in rows)
    return int(98 * good / len(rows)) if 2 * split > len(rows) else 0


def pair_of(tags: str, bundles: str) -> Pair | str:
    """The labels of both sides, or what is wrong with the columns."""
    sides: list[Label] = [None, None]
    if tags != "_":
        parts = tags.split("^")
        if len(parts) != 2 or not all(parts):
            return f"expected TAG^TAG with * for an open side in column 4, found {short(tags)}."
        sides = [None if part == "*" else part for part in parts]
    if bundles == "_":
        return sides[0], sides[1]
    allowed = [bundle.split("^") for bundle in bundles.split("_")]
    if any(len(bundle) != 2 or not all(bundle) or "*" in bundle for bundle in allowed):
        return f"expected bundles TAG^TAG joined by _ in column 10, found {short(bundles)}."
    fitting = [
        bundle for bundle in allowed if all(side in (None, tag) for side, tag in zip(sides, bundle, strict=True))
    ]
    if not fitting:
        return f"column 10 allows no bundle that has the tags {short(tags)} of column 4."
    first, second = (
        frozenset(bundle[k] for bundle in fitting) if side is None else side for k, side in enumerate(sides)
    )
    return first, second


def parse(points: Points) -> tuple[Words | None, Iterator[Fault]]:
    """Find the words and the labels of both sides."""
    rows = scan(points, every_blank=True)
    lines = np.flatnonzero(~rows.blank)
    count = check_columns(points, rows, lines, 10, "Columns are separated by one tab each.")
    if len(count[0]):
        return None, faults(rows, count)
    starts, ends = fields(points, rows.starts[lines], rows.ends[lines], [1, 3, 9])
    checks = [check_filled(lines, starts[k], ends[k], column) for k, column in enumerate((2, 4, 10))]
    tags, tag_of = number(points, starts[1], ends[1])
    bundles, bundle_of = number(points, starts[2], ends[2])
    used, which = np.unique(tag_of.astype(np.int64) * max(len(bundles), 1) + bundle_of, return_inverse=True)
    pairs: list[Pair] = []
    wrong: dict[int, str] = {}
    for k, key in enumerate(used.tolist()):
        tag, bundle = divmod(key, len(bundles))
        pair = pair_of(tags[tag], bundles[bundle])
        if isinstance(pair, str):
            wrong[k] = pair
            pair = (None, None)
        pairs.append(pair)
    bad = lines[np.isin(which, list(wrong))]
    checks.append((bad, lambda line: (wrong[int(which[np.searchsorted(lines, line)])], "")))
    counts = np.bincount(rows.sentence[lines], minlength=len(rows.bounds) - 1)
    words = Words(rows, offsets_of(counts), starts, ends, pairs, which.astype(np.int64))
    return words, faults(rows, *checks)


def read(block: Block, layer: str | None, options: ReadOptions) -> Corpus:
    """Both sides; the one asked for comes first."""
    first = one_layer(layer, SIDES, "coupled10")
    words, points = mended(block, options, parse)
    units = assemble(points, words.starts[0], words.ends[0], words.offsets)
    layers = []
    for name in sorted(SIDES, key=lambda name: name != first):
        side = tagged(units, name)
        if options.labels:
            tags, numbers, sets = number_labels([pair[SIDES.index(name)] for pair in words.pairs])
            labels = numbers[words.which] if len(numbers) else np.zeros(0, np.int32)
            side = Layer(name, tags, side.offsets, side.starts, side.ends, labels, sets)
        layers.append(side)
    corpus = Corpus(units.text, units.edges, tuple(layers))
    if options.keep_source:
        slots = {"tags": (words.starts[1], words.ends[1]), "bundles": (words.starts[2], words.ends[2])}
        corpus = with_source(corpus, "coupled10", points, words.rows.bounds, slots)
    return corpus


def sides_of(corpus: Corpus, layer: str | None) -> list[Layer | None]:
    """The layers to write as first and second side."""
    chosen = pick(corpus, layer, "coupled10")
    if chosen.name not in SIDES:
        return [chosen, next((item for item in corpus.layers if item is not chosen and alike(item, chosen)), None)]
    found: list[Layer | None] = []
    for name in SIDES:
        side = next((item for item in corpus.layers if item.name == name), None)
        if side is not None and not alike(side, chosen):
            if layer is None:
                raise UsageError("coupled10 needs both sides on the same words; these differ. Name one of them.")
            side = moved(side, chosen)
        found.append(side)
    return found


def moved(side: Layer, onto: Layer) -> Layer:
    """A side on the words of the other one: words that both have keep their labels, the rest are open."""
    at = np.searchsorted(side.starts, onto.starts)
    there = np.minimum(at, max(len(side) - 1, 0))
    labels = np.full(len(onto), UNKNOWN, np.int32)
    if len(side):
        both = (side.starts[there] == onto.starts) & (side.ends[there] == onto.ends)
        labels[both] = side.labels[there[both]]
    return replace(onto, name=side.name, tags=side.tags, labels=labels, sets=side.sets, confidence=None)


def columns(corpus: Corpus, sides: list[Layer | None]) -> tuple[list[tuple[str, str]], Ints]:
    """Columns 4 and 10: (distinct pairs, which one each word has)."""
    present = [side for side in sides if side is not None]
    low = [-1 - len(item.sets) for item in present]
    width = [len(item.tags) - least for item, least in zip(present, low, strict=True)]
    key = np.zeros(len(present[0]), np.int64)
    for item, least, size in zip(present, low, width, strict=True):
        key = key * size + (item.labels - least)
    used, which = np.unique(key, return_inverse=True)
    texts = []
    for value in used.tolist():
        row: list[int] = []
        for least, size in zip(low[::-1], width[::-1], strict=True):
            value, rest = divmod(value, size)
            row.insert(0, rest + least)
        labels: list[Label] = []
        options: list[list[str]] = []
        numbers = iter(row)
        for side in sides:
            if side is None:
                labels.append(None)
                options.append([])
                continue
            k = next(numbers)
            label = side.tags[k] if k >= 0 else None if k == -1 else frozenset(side.tags[t] for t in side.sets[-2 - k])
            labels.append(label)
            options.append([label] if isinstance(label, str) else sorted(side.tags if label is None else label))
        tags = "^".join(label if isinstance(label, str) else "*" for label in labels)
        bundles = "_"
        if any(isinstance(label, frozenset) for label in labels):
            if not all(options):
                raise UsageError("coupled10 cannot hold allowed tags of one side alone. Use --format jsonl.")
            bundles = "_".join(f"{a}^{b}" for a in options[0] for b in options[1])
        texts.append((tags, bundles))
    return texts, which.astype(np.int64)


def write(corpus: Corpus, layer: str | None, options: WriteOptions) -> str:
    """Both sides; a corpus with one layer leaves the second side open."""
    sides = sides_of(corpus, layer)
    chosen = next(side for side in sides if side is not None)
    check_confidence(chosen, options.confidence, "coupled10", holds=False)
    for side in sides:
        if side is not None:
            check_tags(side, "coupled10", lambda tag: any(c in tag for c in "^_*\t\n\r"))
            for k in np.unique(side.sets.data).tolist():
                if any(c in side.tags[k] for c in "^_*\t\n\r"):
                    raise UsageError(f"coupled10 cannot hold the tag {short(side.tags[k])}. Use --format jsonl.")
    source = corpus.source if corpus.source is not None and corpus.source.format == "coupled10" else None
    same = unchanged(corpus, chosen, "coupled10")
    for side in sides:
        same = same & (False if side is None else unchanged(corpus, side, "coupled10"))
    texts, which = columns(corpus, sides)
    kept = None
    if source is not None and (same.any() or not len(corpus)):
        kept = patched(corpus, source, sides, texts, which, same)
        if same.all():
            return render(kept)
    check_words(corpus, chosen, "coupled10", TAB_OR_LINE_END)
    newline = "\n" if source is None else source.style["newline"]
    rest = ["\t_\t" + tags + "\t_" * 5 + "\t" + bundles + newline for tags, bundles in texts]
    lengths = np.diff(chosen.offsets)
    ids = np.arange(len(chosen)) - np.repeat(chosen.offsets[:-1], lengths)
    numbers = [f"{k + 1}\t" for k in range(int(lengths.max()) if len(lengths) else 0)]
    last = np.full(len(corpus), len(rest) + len(numbers))
    if source is not None and not ends_blank(source.raw):
        last[-1:] += 1
    zeros = np.zeros(len(chosen), np.int64)
    fresh = Pieces(
        corpus.text,
        with_ends(chosen.offsets * 2, interleave(zeros, chosen.starts), 0),
        with_ends(chosen.offsets * 2, interleave(zeros, chosen.ends), 0),
        with_ends(chosen.offsets * 2, interleave(ids + len(rest), which), last),
        np.repeat(np.arange(len(corpus)), lengths * 2 + 1),
        [*rest, *numbers, newline, ""],
    )
    return render(fresh if kept is None else merge(kept, fresh, same))


def patched(
    corpus: Corpus,
    source: object,
    sides: list[Layer | None],
    texts: list[tuple[str, str]],
    which: Ints,
    same: NDArray[np.bool_],
) -> Pieces:
    """The lines as read, with columns 4 and 10 anew where a word's labels are not what they were."""
    assert corpus.source is not None
    first = original(corpus.source, "1")
    assert first is not None
    changed = np.zeros(len(first), bool)
    new = np.zeros(len(first), np.int64)
    for side in sides:
        assert side is not None
        old = original(corpus.source, side.name)
        assert old is not None
        here = np.flatnonzero(np.repeat(same, np.diff(side.offsets)))
        there = np.flatnonzero(np.repeat(same, np.diff(old.offsets)))
        changed[there] |= other_labels(side, here, old, there)
    new[np.repeat(same, np.diff(first.offsets))] = which[np.repeat(same, np.diff(sides[0].offsets))]  # type: ignore[union-attr]
    at = np.flatnonzero(changed)
    sentence = np.searchsorted(first.offsets, at, side="right") - 1
    offsets = offsets_of(np.bincount(sentence, minlength=len(first.offsets) - 1)) * 2
    (a, b), (c, d) = corpus.source.slots["tags"], corpus.source.slots["bundles"]
    strings = [tags for tags, _ in texts] + [bundles for _, bundles in texts]
    return patches(
        corpus.source,
        offsets,
        interleave(a[at], c[at]),
        interleave(b[at], d[at]),
        interleave(new[at], new[at] + len(texts)),
        strings,
    )


FORMAT = Format(
    name="coupled10",
    about="the ten columns of the tagger of Li et al. (2015), two sides",
    suffixes=(".coupled",),
    cut="blank",
    layers="1 and 2, the two sides",
    keeps_tags=True,
    detect=detect,
    read=read,
    write=write,
    holds=frozenset({"unknown", "sets"}),
)
