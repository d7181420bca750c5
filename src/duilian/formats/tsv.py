"""Columns separated by tabs, a word a line, a blank line behind each sentence. No comments, no quoting.

    迈向	v
    充满	v

Words are in column 1; a layer is the number of a column, by default 2. All lines have the same number of columns.
Each blank line ends a sentence, so a second one in a row is an empty sentence.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from duilian.corpus import UNKNOWN, Corpus, decode
from duilian.errors import FormatError, UsageError
from duilian.formats.base import (
    Block,
    Fault,
    Format,
    Ints,
    Points,
    ReadOptions,
    WriteOptions,
    assemble,
    fixed,
    mended,
    number,
    tagged,
    with_source,
)
from duilian.formats.rows import Rows, check_columns, check_filled, faults, fields, scan
from duilian.formats.weaving import (
    TAB_OR_LINE_END,
    Pieces,
    check_confidence,
    check_labels,
    check_tags,
    check_words,
    confidences,
    interleave,
    merge,
    patches,
    pick,
    render,
    spread,
    unchanged,
    with_ends,
)
from duilian.ragged import offsets_of


def detect(sample: str) -> int:
    """Every line has the same number of tabs, at least one."""
    lines = [line for line in sample.split("\n") if line.strip("\r")]
    counts = [line.count("\t") for line in lines]
    if not lines or max(counts) == 0:
        return 0
    usual = max(set(counts), key=counts.count)
    share = counts.count(usual) / len(counts)
    return int(90 * share) if usual > 0 and share >= 0.8 and len(lines) > 1 else 40 if usual > 0 else 0


def column_of(layer: str | None) -> int:
    """The column asked for, from 1."""
    if layer is None:
        return 2
    if not layer.isascii() or not layer.isdecimal() or len(layer) > 6 or int(layer) < 1:
        raise UsageError(f"tsv has no layer {layer!r}: a layer is the number of a column, as in FILE#2.")
    if int(layer) == 1:
        raise UsageError("column 1 of a tsv file has the words. Tags are in column 2 or another: FILE#2.")
    return int(layer)


def read(block: Block, layer: str | None, options: ReadOptions) -> Corpus:
    """The words and one column of tags."""
    column = column_of(layer)

    def parse(points: Points) -> tuple[tuple[Rows, Ints, Ints, Ints] | None, Iterator[Fault]]:
        rows = scan(points, every_blank=True)
        lines = np.flatnonzero(~rows.blank)
        if len(lines):
            block.session.setdefault("columns", int(rows.n_columns[lines[0]]))
        n_columns = block.session.get("columns", column)
        if n_columns < column and (layer is not None or n_columns > 1):
            place = block.line + int(np.count_nonzero(points[: rows.starts[lines[0]]] == 10)) if len(lines) else None
            raise FormatError(
                block.where,
                place,
                f"expected at least {column} columns, found {n_columns}.",
                "Name another column, as in FILE#2, or leave it out if there are only words.",
            )
        columns = check_columns(points, rows, lines, n_columns, "Columns are separated by one tab each.")
        if len(columns[0]):
            return None, faults(rows, columns)
        wanted = [0, column - 1] if n_columns >= column else [0]
        starts, ends = fields(points, rows.starts[lines], rows.ends[lines], wanted)
        filled = [check_filled(lines, starts[k], ends[k], place + 1) for k, place in enumerate(wanted)]
        return (rows, lines, starts, ends), faults(rows, *filled)

    (rows, lines, starts, ends), points = mended(block, options, parse)
    n_sentences = len(rows.bounds) - 1
    offsets = offsets_of(np.bincount(rows.sentence[lines], minlength=n_sentences))
    units = assemble(points, starts[0], ends[0], offsets)
    has_labels = len(starts) > 1
    labelled = number(points, starts[1], ends[1]) if has_labels and options.labels else ()
    corpus = Corpus(units.text, units.edges, (tagged(units, str(column), *labelled),))
    if options.keep_source:
        place = (starts[1], ends[1]) if has_labels else (rows.ends[lines], rows.ends[lines])
        n_columns = block.session.get("columns", column)
        slots = {str(column): place}
        corpus = with_source(corpus, "tsv", points, rows.bounds, slots, bare=not has_labels, columns=n_columns)
    return corpus


def write(corpus: Corpus, layer: str | None, options: WriteOptions) -> str:
    """Word, tag, and with confidence a last column for it; words alone if no word has a label."""
    from duilian.formats.scan_kernels import row_tails

    chosen = pick(corpus, layer, "tsv")
    source = corpus.source
    known = chosen.has_tags
    if known or (source is not None and source.format == "tsv" and not source.style["bare"]):
        check_labels(corpus, chosen, "tsv")
        check_tags(chosen, "tsv", lambda tag: any(c in tag for c in "\t\n\r"))
    values = check_confidence(chosen, options.confidence, "tsv", holds=True)
    tables, which = [[*chosen.tags, ""]], [np.where(chosen.labels == UNKNOWN, len(chosen.tags), chosen.labels)]
    if values is not None:
        texts, numbers = confidences(values)
        tables.append(["\t" + (text or "_") for text in texts])
        which.append(numbers + len(tables[0]))
    strings = [string for table in tables for string in table]
    which = [numbers.astype(np.int64) for numbers in which]
    n_slots = len(which)

    same = unchanged(corpus, chosen, "tsv")
    kept = None
    if source is not None and same.any() and chosen.name in source.slots:
        starts, ends = source.slots[chosen.name]
        filled = [spread(numbers, chosen, source, same, 0) for numbers in which]
        begins, stops = [starts], [ends]
        if values is not None:
            _, tails = row_tails(fixed(source.raw, np.uint32), fixed(ends, np.int64), 0)
            begins, stops = [starts, tails], [ends, tails]
        table = strings
        if source.style["bare"] and known:
            table = ["\t" + tag for tag in tables[0]] + strings[len(tables[0]) :]
        old = source.style["layers"][0].offsets
        kept = patches(source, old * n_slots, interleave(*begins), interleave(*stops), interleave(*filled), table)
        if same.all():
            return render(kept)
    elif source is not None and source.format == "tsv" and not len(corpus):
        return ""
    check_words(corpus, chosen, "tsv", TAB_OR_LINE_END)
    newline, before, after = "\n", "", ""
    if source is not None and source.format == "tsv":
        newline = source.style["newline"]
        if chosen.name in source.slots and not source.style["bare"]:
            before, after = "\t_" * (int(chosen.name) - 2), "\t_" * (source.style["columns"] - int(chosen.name))
    tags = [f"{before}\t{tag}{after}" for tag in tables[0]] if known else [""] * len(tables[0])
    rest = strings[len(tables[0]) :]
    if values is None:
        tags = [tag + newline for tag in tags]
    fresh_strings = tags + [string + newline for string in rest] + [newline, ""]
    zeros = np.zeros(len(chosen), np.int64)
    last = np.full(len(corpus), len(fresh_strings) - 2)
    if source is not None and source.format == "tsv" and not ends_blank(source.raw):
        last[-1:] += 1
    fresh = Pieces(
        corpus.text,
        with_ends(chosen.offsets * n_slots, interleave(chosen.starts, *[zeros] * (n_slots - 1)), 0),
        with_ends(chosen.offsets * n_slots, interleave(chosen.ends, *[zeros] * (n_slots - 1)), 0),
        with_ends(chosen.offsets * n_slots, interleave(*which), last),
        np.repeat(np.arange(len(corpus)), np.diff(chosen.offsets) * n_slots + 1),
        fresh_strings,
    )
    return render(fresh if kept is None else merge(kept, fresh, same))


def ends_blank(raw: Points) -> bool:
    """Whether these lines end in a blank one."""
    return decode(raw[-3:]).endswith(("\n\n", "\n\r\n"))


FORMAT = Format(
    name="tsv",
    about="columns separated by tabs, a word a line, a blank line behind each sentence",
    suffixes=(".tsv", ".conll"),
    cut="blank",
    layers="the number of a column, from 2 (default 2)",
    keeps_tags=True,
    detect=detect,
    read=read,
    write=write,
    holds=frozenset({"confidence"}),
)
