"""Words and tags joined by a slash, one sentence a line; the last slash splits. The People's Daily comes like this.

    迈向/v  充满/v  希望/n  的/u  新/a  世纪/n
    [中央/n  人民/n  广播/vn  电台/n]nt  播/v

A bracketed compound may also close with ``]/nt``, or with a bracket that stands alone. By default only its words are
read; the brackets stay in the source and are written back. ``compounds="keep"`` adds the layer ``compounds``, whose
units are the compounds with their labels; compounds may nest, the outer one comes first.

A half-width bracket is a word of its own in ``[/w`` and ``]/w``, and part of a word in ``[1]/m``.
"""

from __future__ import annotations

from dataclasses import dataclass

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


@dataclass
class Compounds:
    """Compound k is words first[k]..last[k] (numbers of tokens); its label is points[starts[k]:ends[k]]."""

    first: list[int]
    last: list[int]
    starts: list[int]
    ends: list[int]


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
) -> tuple[Tokens, NDArray[np.bool_], Compounds, list[Fault]]:
    """Take the brackets off the tokens: (tokens without them, which of these are words, compounds, faults)."""
    starts, ends = tokens.starts.copy(), tokens.ends.copy()
    words = np.ones(len(starts), bool)
    compounds = Compounds([], [], [], [])
    faults: list[Fault] = []
    line, stop = -1, -1
    broken = False
    open_at: list[tuple[int, int]] = []

    def fault(at: int, message: str, hint: str = "") -> None:
        nonlocal broken
        if not broken:
            faults.append(Fault(int(tokens.lines[line]), int(tokens.lines[line + 1]), at, message, hint))
        broken = True
        open_at.clear()

    def finish() -> None:
        if open_at and not broken:
            at = open_at[-1][1]
            what = quote_line(points, at, int(tokens.lines[line + 1]))
            fault(
                at,
                f"a compound opens at {what} and never closes.",
                "Expected [word/tag ... word/tag]label on one line.",
            )

    for token in flagged.tolist():
        if token >= stop:
            finish()
            line = int(np.searchsorted(tokens.offsets, token, side="right")) - 1
            stop = int(tokens.offsets[line + 1])
            broken = False
            open_at.clear()
        if broken:
            continue
        begin = int(starts[token])
        text = decode(points[begin : int(ends[token])])
        n_open = openers(text)
        end, labels = closers(text, n_open)
        if len(labels) > len(open_at) + n_open:
            bare = any(text[at - 1] == "]" for at, _ in labels)
            if bare:
                fault(
                    begin,
                    f"{text[:40]!r} closes a compound that was not opened.",
                    "Expected a [ before it on the line.",
                )
                continue
            end, labels = len(text), []
        open_at.extend((token, begin + k) for k in range(n_open))
        words[token] = end > n_open
        starts[token], ends[token] = begin + n_open, begin + end
        for left, right in labels:
            first, at = open_at.pop()
            final = token if words[token] else token - 1
            if final < first or not words[first : final + 1].any():
                fault(at, "a compound without words.", "Expected [word/tag ... word/tag]label.")
                break
            compounds.first.append(first)
            compounds.last.append(final)
            compounds.starts.append(begin + left)
            compounds.ends.append(begin + right)
    finish()
    return tokens._replace(starts=starts, ends=ends), words, compounds, faults


def quote_line(points: Points, begin: int, end: int) -> str:
    """The beginning of the rest of a line."""
    return repr(decode(points[begin : min(end, begin + 20)]).strip())


def find(points: Points) -> tuple[tuple[Tokens, Ints, Compounds | None], list[Fault]]:
    """Tokens without brackets, the slash of each, the compounds."""
    from duilian.formats.scan_kernels import bracketed

    tokens = scan(points, wide=False)
    flagged = bracketed(fixed(points, np.uint32), fixed(tokens.starts, np.int64), fixed(tokens.ends, np.int64))
    compounds: Compounds | None = None
    faults: list[Fault] = []
    if len(flagged):
        tokens, words, compounds, faults = split_compounds(points, tokens, flagged)
        if not words.all():
            at = offsets_of(words)
            compounds.first = at[compounds.first].tolist() if compounds.first else []
            compounds.last = (at[np.array(compounds.last) + 1] - 1).tolist() if compounds.last else []
            tokens = Tokens(tokens.lines, at[tokens.offsets], tokens.starts[words], tokens.ends[words])
    marks = last(points, tokens, "/")
    missing = split_faults(points, tokens, marks, "/")
    lines = {fault.begin for fault in faults}
    return (tokens, marks, compounds), faults + [fault for fault in missing if fault.begin not in lines]


def compound_layer(points: Points, units: Units, compounds: Compounds | None, labels: bool) -> Layer:
    """The layer ``compounds``: outer compounds before the ones inside them."""
    found = compounds or Compounds([], [], [], [])
    order = sorted(range(len(found.first)), key=lambda k: (found.first[k], -found.last[k], -k))
    first = np.array([found.first[k] for k in order], np.int64)
    final = np.array([found.last[k] for k in order], np.int64)
    places = np.array([found.starts[k] for k in order], np.int64), np.array([found.ends[k] for k in order], np.int64)
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
