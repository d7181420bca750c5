"""Words and tags joined by a slash, one sentence a line; the last slash splits. The People's Daily comes like this.

    迈向/v  充满/v  希望/n  的/u  新/a  世纪/n
    [中央/n  人民/n  广播/vn  电台/n]nt  播/v

A bracketed compound may also close with ``]/nt``, or with a bracket that stands alone. By default only its words are
read; the brackets stay in the source and are written back. ``compounds="keep"`` adds the layer ``compounds``, whose
units are the compounds with their labels; compounds may nest, the outer one comes first.

A half-width bracket is a word of its own in ``[/w`` and ``]/w``, and part of a word in ``[1]/m``.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge

import numpy as np

from duilian.corpus import Corpus, Layer, decode, encode
from duilian.errors import UsageError
from duilian.formats.base import (
    TAGS,
    Block,
    Fault,
    Format,
    Ints,
    Points,
    ReadOptions,
    Units,
    WriteOptions,
    assemble,
    fixed,
    mended,
    number,
    one_layer,
    tagged,
    with_source,
    without,
)
from duilian.formats.tokens import Tokens, last, looks_tagged, scan, split_faults, usual_space, write_lines
from duilian.formats.weaving import ASCII_SPACE, check_confidence, check_labels, check_tags, check_words, pick, place
from duilian.ragged import offsets_of

COMPOUNDS = "compounds"


def detect(sample: str) -> int:
    """Nearly every token has a slash inside."""
    return looks_tagged(sample, "/")


def bracket_faults(points: Points, tokens: Tokens, faults: Ints) -> Iterator[Fault]:
    """What to say about the faults that strip_brackets found."""
    hint = "Expected [word/tag ... word/tag]label on one line."
    for line, at, reason in faults.T.tolist():
        begin, end = int(tokens.lines[line]), int(tokens.lines[line + 1])
        what = repr(decode(points[at : min(end, at + 20)]).strip())
        message = (
            f"{what} closes a compound that was not opened.",
            f"the compound that opens at {what} never closes.",
            f"the compound that opens at {what} has no words.",
        )[reason]
        yield Fault(begin, end, at, message, hint)


def by_line(*sources: Iterator[Fault]) -> Iterator[Fault]:
    """The faults in order, one for each line."""
    before = -1
    for fault in merge(*sources, key=lambda fault: fault.at):
        if fault.begin != before:
            yield fault
        before = fault.begin


def find(points: Points) -> tuple[tuple[Tokens, Ints, Ints], Iterator[Fault]]:
    """Tokens without brackets, the slash of each, and the compounds: first and last token, span of the label."""
    from duilian.formats.scan_kernels import bracketed

    tokens = scan(points, wide=False)
    raw, starts, ends = fixed(points, np.uint32), fixed(tokens.starts, np.int64), fixed(tokens.ends, np.int64)
    flagged = bracketed(raw, starts, ends)
    compounds: Ints = np.zeros((4, 0), np.int64)
    faults: Iterator[Fault] = iter(())
    if len(flagged):
        from duilian.formats.compound_kernels import strip_brackets

        offsets = fixed(tokens.offsets, np.int64)
        starts, ends, words, compounds, wrong = strip_brackets(raw, starts, ends, offsets, fixed(flagged, np.int64))
        faults = bracket_faults(points, tokens, wrong)
        if words.all():
            tokens = Tokens(tokens.lines, tokens.offsets, starts, ends)
        else:
            at = offsets_of(words)
            compounds[0], compounds[1] = at[compounds[0]], at[compounds[1] + 1] - 1
            tokens = Tokens(tokens.lines, at[tokens.offsets], starts[words], ends[words])
    marks = last(points, tokens, "/")
    return (tokens, marks, compounds), by_line(faults, split_faults(points, tokens, marks, "/"))


def compound_layer(points: Points, units: Units, compounds: Ints, labels: bool) -> Layer:
    """The layer ``compounds``: outer compounds before the ones inside them."""
    order = np.lexsort((-np.arange(compounds.shape[1]), -compounds[1], compounds[0]))
    first, final, label_starts, label_ends = compounds[:, order]
    offsets = np.searchsorted(first, units.offsets).astype(np.int64)
    layer = tagged(units._replace(offsets=offsets, starts=units.starts[first], ends=units.ends[final]), COMPOUNDS)
    if labels:
        tags, numbers = without(*number(points, label_starts, label_ends), unknown="")
        layer = Layer(COMPOUNDS, tags, layer.offsets, layer.starts, layer.ends, numbers)
    return layer


def read(block: Block, layer: str | None, options: ReadOptions) -> Corpus:
    """Split every token at its last slash."""
    name = one_layer(layer, (TAGS,), "slash")
    (tokens, marks, compounds), points = mended(block, options, find)
    units = assemble(points, tokens.starts, marks, tokens.offsets)
    layers = [tagged(units, name, *(number(points, marks + 1, tokens.ends) if options.labels else ()))]
    if options.compounds == "keep":
        layers.append(compound_layer(points, units, compounds, options.labels))
    corpus = Corpus(units.text, units.edges, tuple(layers))
    if options.keep_source:
        space = usual_space(points, tokens)
        slots = {name: (marks + 1, tokens.ends)}
        corpus = with_source(corpus, "slash", points, tokens.lines, slots, space=space, slot_offsets=tokens.offsets)
    return corpus


def check_brackets(corpus: Corpus, layer: Layer) -> None:
    """No word may be taken for the beginning of a compound when it is read again; then none is for an end."""
    from duilian.formats.compound_kernels import count_openers
    from duilian.formats.scan_kernels import bracketed

    for unit in bracketed(
        fixed(corpus.text, np.uint32), fixed(layer.starts, np.int64), fixed(layer.ends, np.int64)
    ).tolist():
        token = encode(decode(corpus.text[layer.starts[unit] : layer.ends[unit]]) + "/x")
        if count_openers(fixed(token, np.uint32), 0, len(token)):
            raise UsageError(
                f"slash would read {place(corpus, layer, unit)} back as the beginning of a compound. "
                "Formats that hold any word: tsv, conllu, jsonl."
            )


def write(corpus: Corpus, layer: str | None, options: WriteOptions) -> str:
    """Word, slash, tag. Compounds are written where they are in the source and the words are as they were read."""
    chosen = pick(corpus, layer, "slash")
    check_confidence(chosen, options.confidence, "slash", holds=False)
    check_labels(corpus, chosen, "slash")
    check_tags(chosen, "slash", lambda tag: "/" in tag or "]" in tag or tag.split() != [tag])

    def check() -> None:
        check_words(corpus, chosen, "slash", ASCII_SPACE)
        check_brackets(corpus, chosen)

    strings = ["/" + tag for tag in chosen.tags]
    return write_lines(corpus, chosen, "slash", strings, chosen.labels.astype(np.int64), True, check)


FORMAT = Format(
    name="slash",
    about="word/tag, one sentence a line, compounds in brackets (People's Daily)",
    suffixes=(".txt",),
    cut="line",
    layers="tags; with compounds=keep also compounds",
    keeps_tags=True,
    detect=detect,
    read=read,
    write=write,
)
