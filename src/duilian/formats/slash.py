"""Words and tags joined by a slash, one sentence a line; the last slash splits. The People's Daily comes like this.

    迈向/v  充满/v  希望/n  的/u  新/a  世纪/n
    [中央/n  人民/n  广播/vn  电台/n]nt  播/v

A bracketed compound may also close with ``]/nt``, or with a bracket that stands alone. By default only its words are
read; the brackets stay in the source and are written back. ``compounds="keep"`` adds the layer ``compounds``, whose
units are the compounds with their labels; compounds may nest, the outer one comes first.

A half-width bracket is a word of its own in ``[/w`` and ``]/w``, and part of a word in ``[1]/m``.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import merge

import numpy as np
from numpy.typing import NDArray

from duilian.corpus import Corpus, Layer, decode
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
NOT_OPENED, NEVER_CLOSES, NO_WORDS = range(3)


@dataclass
class Compounds:
    """Compound k is words first[k]..last[k] (numbers of tokens); its label is points[starts[k]:ends[k]]."""

    first: array[int]
    last: array[int]
    starts: array[int]
    ends: array[int]

    def add(self, first: int, last: int, start: int, end: int) -> None:
        """One more compound."""
        self.first.append(first)
        self.last.append(last)
        self.starts.append(start)
        self.ends.append(end)


def detect(sample: str) -> int:
    """Nearly every token has a slash inside."""
    return looks_tagged(sample, "/")


def openers(token: str) -> int:
    """How many brackets at the beginning of a token open a compound."""
    n = len(token) - len(token.lstrip("["))
    if n == 0 or n == len(token):
        return n
    slash, bracket = token.find("/"), token.find("]")
    if slash < 0:
        return 0
    literal = slash == n or -1 < bracket < slash
    return n - 1 if literal else n


def closers(token: str, begin: int) -> tuple[int, list[tuple[int, int]]]:
    """Where the word and tag of ``token[begin:]`` end, and the places of the labels of the compounds that end there."""
    end = len(token)
    found: list[tuple[int, int]] = []
    slash = token.find("/", begin + 1)
    while True:
        bracket = token.rfind("]", begin, end)
        if bracket < 0:
            break
        label = bracket + 1 + (token[bracket + 1 : bracket + 2] == "/")
        if token.find("/", label, end) >= 0:
            break
        if bracket > begin and not 0 <= slash < bracket and token[begin] != "]":
            break
        if bracket == begin and label > bracket + 1:
            break
        found.append((label, end))
        end = bracket
    return end, found[::-1]


def split_compounds(
    points: Points, tokens: Tokens, flagged: Ints
) -> tuple[Tokens, NDArray[np.bool_], Compounds, array[int]]:
    """Take the brackets off the tokens: (tokens without them, which of these are words, compounds, faults).

    Faults are triples of line, place and reason, one after the other.
    """
    starts, ends = tokens.starts.copy(), tokens.ends.copy()
    words = np.ones(len(starts), bool)
    compounds = Compounds(array("q"), array("q"), array("q"), array("q"))
    faults = array("q")
    line, stop = -1, -1
    broken = False
    open_at: list[tuple[int, int]] = []
    for token in flagged.tolist():
        if token >= stop:
            if open_at:
                faults.extend((line, open_at[-1][1], NEVER_CLOSES))
                open_at.clear()
            line = int(np.searchsorted(tokens.offsets, token, side="right")) - 1
            stop = int(tokens.offsets[line + 1])
            broken = False
        if broken:
            continue
        begin = int(starts[token])
        text = decode(points[begin : int(ends[token])])
        n_open = openers(text)
        end, labels = closers(text, n_open)
        if len(labels) > len(open_at) + n_open:
            if any(text[at - 1] == "]" for at, _ in labels):
                faults.extend((line, begin, NOT_OPENED))
                broken = True
                open_at.clear()
                continue
            end, labels = len(text), []
        open_at.extend((token, begin + k) for k in range(n_open))
        words[token] = end > n_open
        starts[token], ends[token] = begin + n_open, begin + end
        for left, right in labels:
            first, at = open_at.pop()
            final = token if words[token] else token - 1
            if final < first or not words[first : final + 1].any():
                faults.extend((line, at, NO_WORDS))
                broken = True
                open_at.clear()
                break
            compounds.add(first, final, begin + left, begin + right)
    if open_at:
        faults.extend((line, open_at[-1][1], NEVER_CLOSES))
    return tokens._replace(starts=starts, ends=ends), words, compounds, faults


def bracket_faults(points: Points, tokens: Tokens, faults: array[int]) -> Iterator[Fault]:
    """What to say about the faults that split_compounds found."""
    hint = "Expected [word/tag ... word/tag]label on one line."
    for k in range(0, len(faults), 3):
        line, at, reason = faults[k : k + 3]
        begin, end = int(tokens.lines[line]), int(tokens.lines[line + 1])
        what = repr(decode(points[at : min(end, at + 20)]).strip())
        message = {
            NOT_OPENED: f"{what} closes a compound that was not opened.",
            NEVER_CLOSES: f"the compound that opens at {what} never closes.",
            NO_WORDS: f"the compound that opens at {what} has no words.",
        }[reason]
        yield Fault(begin, end, at, message, hint)


def by_line(*sources: Iterator[Fault]) -> Iterator[Fault]:
    """The faults in order, one for each line."""
    before = -1
    for fault in merge(*sources, key=lambda fault: fault.at):
        if fault.begin != before:
            yield fault
        before = fault.begin


def find(points: Points) -> tuple[tuple[Tokens, Ints, Compounds | None], Iterator[Fault]]:
    """Tokens without brackets, the slash of each, the compounds."""
    from duilian.formats.scan_kernels import bracketed

    tokens = scan(points, wide=False)
    flagged = bracketed(fixed(points, np.uint32), fixed(tokens.starts, np.int64), fixed(tokens.ends, np.int64))
    compounds: Compounds | None = None
    faults: Iterator[Fault] = iter(())
    if len(flagged):
        tokens, words, compounds, wrong = split_compounds(points, tokens, flagged)
        faults = bracket_faults(points, tokens, wrong)
        if not words.all():
            at = offsets_of(words)
            compounds = Compounds(
                array("q", at[compounds.first].tolist() if compounds.first else []),
                array("q", (at[np.array(compounds.last) + 1] - 1).tolist() if compounds.last else []),
                compounds.starts,
                compounds.ends,
            )
            tokens = Tokens(tokens.lines, at[tokens.offsets], tokens.starts[words], tokens.ends[words])
    marks = last(points, tokens, "/")
    return (tokens, marks, compounds), by_line(faults, split_faults(points, tokens, marks, "/"))


def compound_layer(points: Points, units: Units, compounds: Compounds | None, labels: bool) -> Layer:
    """The layer ``compounds``: outer compounds before the ones inside them."""
    none = array("q")
    found = compounds or Compounds(none, none, none, none)
    first, final = np.array(found.first, np.int64), np.array(found.last, np.int64)
    order = np.lexsort((-np.arange(len(first)), -final, first))
    first, final = first[order], final[order]
    places = np.array(found.starts, np.int64)[order], np.array(found.ends, np.int64)[order]
    offsets = np.searchsorted(first, units.offsets).astype(np.int64)
    layer = tagged(units._replace(offsets=offsets, starts=units.starts[first], ends=units.ends[final]), COMPOUNDS)
    if labels:
        tags, numbers = without(*number(points, *places), unknown="")
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
    from duilian.formats.scan_kernels import bracketed

    for unit in bracketed(
        fixed(corpus.text, np.uint32), fixed(layer.starts, np.int64), fixed(layer.ends, np.int64)
    ).tolist():
        token = decode(corpus.text[layer.starts[unit] : layer.ends[unit]]) + "/x"
        if openers(token):
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
