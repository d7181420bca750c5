"""Kernels for the bracketed compounds of slash: which brackets of a line of tokens open and close what.

A token is ``[[word/tag]label]label`` with any number of brackets on both sides, or brackets alone. Positions are int64
indices into ``raw``. The slow twin is in tests/naive/formats.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from duilian.kernels import kernel

OPENING, CLOSING, SLASH = 91, 93, 47
NOT_OPENED, NEVER_CLOSES, NO_WORDS = 0, 1, 2


@kernel
def count_openers(raw: Any, begin: Any, end: Any) -> Any:
    """How many brackets at the beginning of a token open a compound.

    All of those in front, but for one that is a word ([/w) or part of one ([1]/m); none if the token has other
    text and no slash. raw (n,) -> int. Called by strip_brackets and by slash before it writes a word.
    """
    n = begin
    while n < end and raw[n] == OPENING:
        n += 1
    if n in (begin, end):
        return n - begin
    i = n
    while i < end and raw[i] != SLASH and raw[i] != CLOSING:
        i += 1
    if i == end:
        return 0
    if raw[i] == SLASH:
        return n - begin - 1 if i == n else n - begin
    while i < end and raw[i] != SLASH:
        i += 1
    return 0 if i == end else n - begin - 1


@kernel
def find_closers(raw: Any, begin: Any, end: Any, lefts: Any, rights: Any) -> Any:
    """The labels behind the closing brackets at the end of a token, from the last to the first.

    A closing bracket has word/tag or brackets before it, and behind it a label without slash, or with one in front
    of it; ]/w alone is a word. raw (n,); lefts, rights (m,) are filled -> (how many, where word and tag end).
    Called by strip_brackets.
    """
    n = 0
    slash = begin + 1
    while slash < end and raw[slash] != SLASH:
        slash += 1
    stop = end
    while True:
        bracket = stop - 1
        slashes = 0
        while bracket >= begin and raw[bracket] != CLOSING:
            if raw[bracket] == SLASH:
                slashes += 1
            bracket -= 1
        if bracket < begin:
            break
        label = bracket + 1
        if label < end and raw[label] == SLASH:
            label += 1
            if label <= stop:
                slashes -= 1
        if slashes > 0:
            break
        if bracket > begin and slash >= bracket and raw[begin] != CLOSING:
            break
        if bracket == begin and label > bracket + 1:
            break
        lefts[n] = label
        rights[n] = stop
        n += 1
        stop = bracket
    return n, stop


@kernel
def strip_brackets(raw: Any, starts: Any, ends: Any, offsets: Any, flagged: Any) -> Any:
    """Take the brackets off tokens: what is left of each, and the compounds.

    raw (n,); starts, ends (m,); offsets (n_lines + 1,) tokens of lines; flagged: numbers of the tokens with brackets
    -> new starts and ends (m,), words (m,) bool, which are more than brackets; compounds (4, c): first and last token,
    span of the label; faults (3, f): line, place, reason, one at most for a line. Called by slash.
    """
    starts = starts.copy()
    ends = ends.copy()
    words = np.ones(len(starts), np.bool_)
    n_open = 0
    n_close = 0
    for k in range(len(flagged)):
        for i in range(starts[flagged[k]], ends[flagged[k]]):
            if raw[i] == OPENING:
                n_open += 1
            elif raw[i] == CLOSING:
                n_close += 1
    stack = np.empty((3, n_open), np.int64)
    compounds = np.empty((4, n_close), np.int64)
    faults = np.empty((3, min(len(flagged), len(offsets) - 1)), np.int64)
    lefts = np.empty(n_close, np.int64)
    rights = np.empty(n_close, np.int64)
    depth = 0
    n_compounds = 0
    n_faults = 0
    n_bare = 0
    line = 0
    broken = False
    for k in range(len(flagged) + 1):
        token = flagged[k] if k < len(flagged) else len(starts)
        if token >= offsets[line + 1]:
            if depth > 0:
                faults[0, n_faults] = line
                faults[1, n_faults] = stack[1, depth - 1]
                faults[2, n_faults] = NEVER_CLOSES
                n_faults += 1
                depth = 0
            if k == len(flagged):
                break
            while token >= offsets[line + 1]:
                line += 1
            broken = False
        if broken:
            continue
        begin = starts[token]
        opened = count_openers(raw, begin, ends[token])
        closed, stop = find_closers(raw, begin + opened, ends[token], lefts, rights)
        if closed > depth + opened:
            bare = False
            for c in range(closed):
                if raw[lefts[c] - 1] == CLOSING:
                    bare = True
            if bare:
                faults[0, n_faults] = line
                faults[1, n_faults] = begin
                faults[2, n_faults] = NOT_OPENED
                n_faults += 1
                broken = True
                depth = 0
                continue
            closed = 0
            stop = ends[token]
        for i in range(opened):
            stack[0, depth] = token
            stack[1, depth] = begin + i
            stack[2, depth] = token - n_bare
            depth += 1
        starts[token] = begin + opened
        ends[token] = stop
        if stop == begin + opened:
            words[token] = False
            n_bare += 1
        for c in range(closed - 1, -1, -1):
            depth -= 1
            if token + 1 - n_bare == stack[2, depth]:
                faults[0, n_faults] = line
                faults[1, n_faults] = stack[1, depth]
                faults[2, n_faults] = NO_WORDS
                n_faults += 1
                broken = True
                depth = 0
                break
            compounds[0, n_compounds] = stack[0, depth]
            compounds[1, n_compounds] = token
            compounds[2, n_compounds] = lefts[c]
            compounds[3, n_compounds] = rights[c]
            n_compounds += 1
    return starts, ends, words, compounds[:, :n_compounds].copy(), faults[:, :n_faults].copy()
