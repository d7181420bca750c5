"""Bracketed trees of the Penn and Chinese treebanks. Read only: the words and their parts of speech.

    ( (IP (NP-SBJ (NR 上海) (NN 浦东)) (VP (VV 开发))))

A tree may take several lines, a line may hold several trees, the top may have no label. Traces (-NONE-) are dropped,
escaped brackets (-LRB-) stay as they are, and a tag stays as it is but for CTB's suffix -SHORT, which is no tag of
its own. Lines that begin with < between trees (the SGML of CTB files) are passed over.
"""

from __future__ import annotations

import re
from array import array

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


class Trees:
    """What was found: places of tags and words, how many words each tree has, what is wrong."""

    def __init__(self) -> None:
        self.places = tuple(array("q") for _ in range(4))
        self.counts = array("q")
        self.faults: list[Fault] = []


def parse_trees(text: str, begin: int, hard: bool, found: Trees) -> int:
    """Parse from ``begin`` to the end, or to the beginning of a tree that never closes: where to go on, or -1.

    With ``hard``, a bracket in the first column always begins a tree. The stack has one byte for each open bracket:
    how many words stand in it (at most 3), and whether a bracket does.
    """
    stack = bytearray()
    tree = at = 0
    atoms = [(0, 0), (0, 0)]
    wrong: tuple[int, str] | None = None
    n_leaves = 0
    tag_starts, tag_ends, word_starts, word_ends = found.places
    skip_to = begin

    def drop(end: int) -> None:
        nonlocal n_leaves, wrong
        assert wrong is not None
        found.faults.append(Fault(tree, end, wrong[0], wrong[1], "Expected (LABEL ...) or (TAG word)."))
        for places in found.places:
            del places[len(places) - n_leaves :]
        wrong, n_leaves = None, 0

    for match in _PART.finditer(text, begin):
        at = match.start()
        if at < skip_to:
            continue
        part = text[at]
        if part == "(":
            if hard and stack and (at == 0 or text[at - 1] == "\n"):
                wrong = (tree, "a tree that never closes.")
                drop(at)
                stack.clear()
            if stack:
                stack[-1] |= _CHILD
            else:
                tree = at
            stack.append(0)
        elif part == ")":
            if not stack:
                found.faults.append(Fault(at, at + 1, at, "a closing bracket that nothing opened."))
                continue
            state = stack.pop()
            if wrong is None:
                if state == 2:
                    (a, b), (c, d) = atoms
                    if text[a:b] != "-NONE-":
                        if b - a > 6 and text.endswith("-SHORT", a, b):
                            b -= 6
                        tag_starts.append(a)
                        tag_ends.append(b)
                        word_starts.append(c)
                        word_ends.append(d)
                        n_leaves += 1
                elif state < _CHILD:
                    words = ("nothing", "a label without a word", "", "more than one word")[state]
                    wrong = (at, f"a bracket with {words} in it.")
                elif state > _CHILD + 1:
                    wrong = (at, "a word beside brackets.")
            if not stack:
                if wrong is not None:
                    drop(match.end())
                else:
                    found.counts.append(n_leaves)
                    n_leaves = 0
        elif stack:
            state = stack[-1]
            if state & 3 < 2 and not state & _CHILD:
                atoms[state & 3] = match.span()
            if state & 3 < 3:
                stack[-1] += 1
        else:
            line = text.rfind("\n", 0, at) + 1
            end = text.find("\n", at)
            skip_to = len(text) if end < 0 else end
            if text[line] != "<":
                stop = min([k for k in (text.find("(", at), skip_to) if k >= 0])
                found.faults.append(
                    Fault(at, stop, at, f"{text[at : at + 20]!r} stands outside of any tree.", "Expected a bracket.")
                )
                skip_to = stop
    if not stack:
        return -1
    again = _TREE_LINE.search(text, tree + 1)
    end = again.start() if again and not hard else len(text)
    wrong = (tree, "a tree that never closes.")
    drop(end)
    return end if end < len(text) else -1


def parse(points: Points) -> tuple[tuple[list[Ints], Ints] | None, list[Fault]]:
    """Places of tags and words, and numbers of words per tree."""
    text = decode(points)
    found = Trees()
    at = parse_trees(text, 0, False, found)
    if at >= 0:
        parse_trees(text, at, True, found)
    places = [np.array(place, np.int64) for place in found.places]
    return (places, np.concatenate([[0], np.cumsum(np.array(found.counts, np.int64))]).astype(np.int64)), found.faults


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
