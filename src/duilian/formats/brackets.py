"""Bracketed trees of the Penn and Chinese treebanks. Read only: the words and their parts of speech.

    ( (IP (NP-SBJ (NR 上海) (NN 浦东)) (VP (VV 开发))))

A tree may take several lines, a line may hold several trees, the top may have no label. Traces (-NONE-) are dropped,
escaped brackets (-LRB-) stay as they are, and a tag stays as it is but for CTB's suffix -SHORT, which is no tag of
its own. Lines that begin with < between trees (the SGML of CTB files) are passed over.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator

import numpy as np

from duilian.corpus import Corpus, decode
from duilian.formats.base import (
    TAGS,
    Block,
    Fault,
    Format,
    Ints,
    Points,
    ReadOptions,
    assemble,
    mended,
    number,
    one_layer,
    tagged,
)
from duilian.ragged import offsets_of

_PART = re.compile(r"[()]|[^\s()]+")
_LEAF = re.compile(r"\(\s*[^\s()]+\s+[^\s()]+\s*\)")
_TREE_LINE = re.compile(r"^\(", re.MULTILINE)
_CHILD = 4


def detect(sample: str) -> int:
    """The first line that is no SGML begins with a bracket, and there are leaves."""
    for line in sample.split("\n"):
        if line.strip() and not line.startswith("<"):
            return 92 if line.lstrip().startswith("(") and _LEAF.search(sample) else 0
    return 0


EMPTY, NO_WORD, MANY_WORDS, MIXED, OPEN, STRAY, OUTSIDE = range(7)
REASONS = {
    EMPTY: ("a bracket with nothing in it.", "Expected (LABEL ...) or (TAG word)."),
    NO_WORD: ("a bracket with a label and no word in it.", "Expected (LABEL ...) or (TAG word)."),
    MANY_WORDS: ("a bracket with more than one word in it.", "Expected (LABEL ...) or (TAG word)."),
    MIXED: ("a word beside brackets.", "Expected (LABEL ...) or (TAG word)."),
    OPEN: ("a tree that never closes.", "Expected as many closing brackets as opening ones."),
    STRAY: ("a closing bracket that nothing opened.", "Expected ( before it."),
    OUTSIDE: ("text outside of any tree.", "Expected ( at the beginning of a tree."),
}


class Trees:
    """What was found: places of tags and words, how many words each tree has, what is wrong.

    faults: begin, end, place and reason, one after the other
    """

    def __init__(self) -> None:
        self.places = tuple(array("q") for _ in range(4))
        self.counts = array("q")
        self.faults = array("q")

    def fault(self, begin: int, end: int, at: int, reason: int) -> None:
        """Note a fault; of brackets that nothing opened, one after the other, the first counts."""
        if reason == STRAY and self.faults[-1:] == array("q", [STRAY]) and self.faults[-3] == begin:
            self.faults[-3] = end
        else:
            self.faults.extend((begin, end, at, reason))

    def each_fault(self) -> Iterator[Fault]:
        """What to say about each."""
        for k in range(0, len(self.faults), 4):
            begin, end, at, reason = self.faults[k : k + 4]
            yield Fault(begin, end, at, *REASONS[reason])


def parse_trees(text: str, begin: int, hard: bool, found: Trees) -> int:
    """Parse from ``begin`` to the end, or to the beginning of a tree that never closes: where to go on, or -1.

    With ``hard``, a bracket in the first column always begins a tree. The stack has one byte for each open bracket:
    how many words stand in it (at most 3), and whether a bracket does.
    """
    stack = bytearray()
    tree = at = n_leaves = 0
    atoms = [(0, 0), (0, 0)]
    wrong_at = wrong = -1
    skip_to = begin

    def drop(end: int) -> None:
        nonlocal n_leaves, wrong
        found.fault(tree, end, wrong_at, wrong)
        for places in found.places:
            del places[len(places) - n_leaves :]
        wrong, n_leaves = -1, 0

    for match in _PART.finditer(text, begin):
        at = match.start()
        if at < skip_to:
            continue
        part = text[at]
        if part == "(":
            if hard and stack and (at == 0 or text[at - 1] == "\n"):
                wrong_at, wrong = tree, OPEN
                drop(at)
                stack.clear()
            if stack:
                stack[-1] |= _CHILD
            else:
                tree = at
            stack.append(0)
        elif part == ")":
            if not stack:
                found.fault(at, at + 1, at, STRAY)
                continue
            state = stack.pop()
            if wrong < 0:
                if state == 2:
                    n_leaves += add_leaf(text, *atoms[0], *atoms[1], found)
                elif state < _CHILD or state > _CHILD + 1:
                    wrong_at = at
                    wrong = MIXED if state > _CHILD else (EMPTY, NO_WORD, -1, MANY_WORDS)[state]
            if not stack:
                if wrong >= 0:
                    drop(at + 1)
                else:
                    found.counts.append(n_leaves)
                    n_leaves = 0
        elif stack:
            state = stack[-1]
            if state < 2:
                atoms[state] = match.span()
            if state & 3 < 3:
                stack[-1] += 1
        else:
            skip_to = text.find("\n", at)
            skip_to = len(text) if skip_to < 0 else skip_to
            if text[text.rfind("\n", 0, at) + 1] != "<":
                bracket = text.find("(", at, skip_to)
                skip_to = skip_to if bracket < 0 else bracket
                found.fault(at, skip_to, at, OUTSIDE)
    if not stack:
        return -1
    again = None if hard else _TREE_LINE.search(text, tree + 1)
    wrong_at, wrong = tree, OPEN
    drop(again.start() if again else len(text))
    return again.start() if again else -1


def add_leaf(text: str, tag_start: int, tag_end: int, start: int, end: int, found: Trees) -> int:
    """Note a leaf, unless it is a trace: how many were noted."""
    if text.startswith("-NONE-", tag_start, tag_end) and tag_end - tag_start == 6:
        return 0
    if tag_end - tag_start > 6 and text.endswith("-SHORT", tag_start, tag_end):
        tag_end -= 6
    for places, place in zip(found.places, (tag_start, tag_end, start, end), strict=True):
        places.append(place)
    return 1


def parse(points: Points) -> tuple[tuple[list[Ints], Ints] | None, Iterator[Fault]]:
    """Places of tags and words, and numbers of words per tree."""
    text = decode(points)
    found = Trees()
    at = parse_trees(text, 0, False, found)
    if at >= 0:
        parse_trees(text, at, True, found)
    places = [np.array(place, np.int64) for place in found.places]
    return (places, offsets_of(np.array(found.counts, np.int64))), found.each_fault()


def read(block: Block, layer: str | None, options: ReadOptions) -> Corpus:
    """A sentence for each tree."""
    name = one_layer(layer, (TAGS,), "brackets")
    ((tag_starts, tag_ends, word_starts, word_ends), offsets), points = mended(block, options, parse)
    units = assemble(points, word_starts, word_ends, offsets)
    labelled = number(points, tag_starts, tag_ends) if options.labels else ()
    return Corpus(units.text, units.edges, (tagged(units, name, *labelled),))


FORMAT = Format(
    name="brackets",
    about="bracketed trees of the Penn and Chinese treebanks, read only",
    suffixes=(".mrg", ".fid", ".nw", ".mz", ".bn", ".bc", ".wb", ".df", ".sc", ".cs", ".parse"),
    cut="tree",
    layers="tags",
    keeps_tags=True,
    detect=detect,
    read=read,
    write=None,
)
