"""Kernels that read: code points in, positions out. They know lines, tokens, columns and strings, and no format.

Sizes: n code points, m tokens or strings. Positions are int64 indices into ``raw``. Called by tokens.py, rows.py and
the formats; every slow twin is in tests/naive/formats.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from duilian.kernels import kernel

NEWLINE = 10


@kernel
def is_space(c: Any, wide: Any) -> Any:
    """Whether a code point separates tokens: ASCII white space, or with ``wide`` all that Unicode calls white space.

    The wide set is the one of Python's str.isspace. Called by every kernel that splits lines into tokens.
    """
    if c <= 32:
        return c == 32 or 9 <= c <= 13 or (wide and 28 <= c <= 31)
    if not wide or c < 0x85:
        return False
    if c == 0x3000 or 0x2000 <= c <= 0x200A:
        return True
    return c in (0x85, 0xA0, 0x1680, 0x2028, 0x2029, 0x202F, 0x205F)


@kernel
def scan_tokens(raw: Any, wide: Any) -> Any:
    """Lines and the tokens (runs without white space) on them.

    raw (n,) uint32 -> lines (n_lines + 1,), where each line begins; offsets (n_lines + 1,), tokens of line i are
    offsets[i]:offsets[i + 1]; starts, ends (m,). A last line without line end counts, an empty one does not.
    """
    n = len(raw)
    n_lines = 0
    m = 0
    inside = False
    for i in range(n):
        c = raw[i]
        if is_space(c, wide):
            inside = False
            if c == NEWLINE:
                n_lines += 1
        elif not inside:
            inside = True
            m += 1
    if n > 0 and raw[n - 1] != NEWLINE:
        n_lines += 1
    lines = np.empty(n_lines + 1, np.int64)
    offsets = np.empty(n_lines + 1, np.int64)
    starts = np.empty(m, np.int64)
    ends = np.empty(m, np.int64)
    line = 0
    token = 0
    lines[0] = 0
    offsets[0] = 0
    inside = False
    for i in range(n):
        c = raw[i]
        if is_space(c, wide):
            if inside:
                ends[token] = i
                token += 1
                inside = False
            if c == NEWLINE:
                line += 1
                lines[line] = i + 1
                offsets[line] = token
        elif not inside:
            inside = True
            starts[token] = i
    if inside:
        ends[token] = n
    lines[n_lines] = n
    offsets[n_lines] = m
    return lines, offsets, starts, ends


@kernel
def trim_lines(raw: Any, lines: Any) -> Any:
    """Where each line ends without its line feed and without one carriage return before that.

    raw (n,), lines (n_lines + 1,) where each begins -> ends (n_lines,) int64. Called by tokens.line_contents.
    """
    ends = np.empty(len(lines) - 1, np.int64)
    for k in range(len(ends)):
        end = lines[k + 1]
        if end > lines[k] and raw[end - 1] == NEWLINE:
            end -= 1
        if end > lines[k] and raw[end - 1] == 13:
            end -= 1
        ends[k] = end
    return ends


@kernel
def last_mark(raw: Any, starts: Any, ends: Any, mark: Any) -> Any:
    """The last place of a code point in each token, -1 where it has none.

    raw (n,), starts, ends (m,) -> places (m,) int64. Called by tokens.split.
    """
    places = np.empty(len(starts), np.int64)
    for k in range(len(starts)):
        i = ends[k] - 1
        while i >= starts[k] and raw[i] != mark:
            i -= 1
        places[k] = i if i >= starts[k] else -1
    return places


@kernel
def bracketed(raw: Any, starts: Any, ends: Any) -> Any:
    """The tokens that begin with [ or have ] anywhere: those that may belong to a compound.

    raw (n,), starts, ends (m,) -> numbers of tokens, int64, rising. Called by slash.
    """
    flags = np.zeros(len(starts), np.bool_)
    for k in range(len(starts)):
        if raw[starts[k]] == 91:
            flags[k] = True
        else:
            for i in range(starts[k], ends[k]):
                if raw[i] == 93:
                    flags[k] = True
                    break
    return np.flatnonzero(flags)


@kernel
def gather(raw: Any, starts: Any, ends: Any) -> Any:
    """The given spans one after the other.

    raw (n,) uint32, starts, ends (m,) -> text (sum of lengths,) uint32. Called by base.assemble.
    """
    total = 0
    for k in range(len(starts)):
        total += ends[k] - starts[k]
    text = np.empty(total, np.uint32)
    at = 0
    for k in range(len(starts)):
        for i in range(starts[k], ends[k]):
            text[at] = raw[i]
            at += 1
    return text


@kernel
def number_strings(raw: Any, starts: Any, ends: Any) -> Any:
    """Equal strings get equal numbers, counted from 0 as they first appear.

    An open-addressed table of hashes that never grows over half full; a hit is compared code point by code point, so
    two strings that share a hash stay two. raw (n,), starts, ends (m,) -> numbers (m,) int32; firsts (n_distinct,)
    int64, where each string is first. The hash has 32 bits of 64, so that it never
    overflows. Called by base.number.
    """
    size: Any = 256
    table = np.full(size, -1, np.int64)
    firsts = np.empty(64, np.int64)
    hashes = np.empty(64, np.int64)
    n_distinct = np.int64(0)
    numbers = np.empty(len(starts), np.int32)
    for k in range(len(starts)):
        length = ends[k] - starts[k]
        h = np.int64(2166136261)
        for i in range(starts[k], ends[k]):
            h = ((h ^ np.int64(raw[i])) * np.int64(16777619)) & np.int64(0xFFFFFFFF)
        slot = (h ^ (h >> 15)) & (size - 1)
        found = np.int64(-1)
        while table[slot] >= 0:
            other = table[slot]
            first = firsts[other]
            if hashes[other] == h and ends[first] - starts[first] == length:
                equal = True
                for i in range(length):
                    if raw[starts[first] + i] != raw[starts[k] + i]:
                        equal = False
                        break
                if equal:
                    found = other
                    break
            slot = (slot + 1) & (size - 1)
        if found < 0:
            if n_distinct == len(firsts):
                more = np.empty(2 * n_distinct, np.int64)
                more[:n_distinct] = firsts
                firsts = more
                wider = np.empty(2 * n_distinct, np.int64)
                wider[:n_distinct] = hashes
                hashes = wider
            found = n_distinct
            firsts[found] = k
            hashes[found] = h
            table[slot] = found
            n_distinct += 1
            if 2 * n_distinct > size:
                size *= 2
                table = np.full(size, -1, np.int64)
                for other in range(n_distinct):
                    place = (hashes[other] ^ (hashes[other] >> 15)) & (size - 1)
                    while table[place] >= 0:
                        place = (place + 1) & (size - 1)
                    table[place] = other
        numbers[k] = found
    return numbers, firsts[:n_distinct].copy()


@kernel
def scan_lines(raw: Any) -> Any:
    """Where each line begins and ends; the end leaves out the line feed and one carriage return before it.

    raw (n,) uint32 -> starts, ends (n_lines,) int64, n_tabs (n_lines,) int32. Called by rows.scan.
    """
    n = len(raw)
    n_lines = 0
    for i in range(n):
        if raw[i] == NEWLINE:
            n_lines += 1
    if n > 0 and raw[n - 1] != NEWLINE:
        n_lines += 1
    starts = np.empty(n_lines, np.int64)
    ends = np.empty(n_lines, np.int64)
    n_tabs = np.zeros(n_lines, np.int32)
    line = 0
    begin = 0
    tabs = 0
    for i in range(n):
        c = raw[i]
        if c == 9:
            tabs += 1
        elif c == NEWLINE:
            starts[line] = begin
            ends[line] = i - 1 if i > begin and raw[i - 1] == 13 else i
            n_tabs[line] = tabs
            line += 1
            begin = i + 1
            tabs = 0
    if begin < n:
        starts[line] = begin
        ends[line] = n - 1 if raw[n - 1] == 13 else n
        n_tabs[line] = tabs
    return starts, ends, n_tabs


@kernel
def scan_fields(raw: Any, starts: Any, ends: Any, columns: Any) -> Any:
    """The wanted columns of each line; the lines must have them all.

    raw (n,), starts, ends (m,), columns (k,) int64 rising, from 0 -> field_starts, field_ends (k, m) int64.
    Called by rows.fields.
    """
    k = len(columns)
    field_starts = np.empty((k, len(starts)), np.int64)
    field_ends = np.empty((k, len(starts)), np.int64)
    for row in range(len(starts)):
        column = 0
        wanted = 0
        begin = starts[row]
        for i in range(starts[row], ends[row] + 1):
            if i == ends[row] or raw[i] == 9:
                if wanted < k and columns[wanted] == column:
                    field_starts[wanted, row] = begin
                    field_ends[wanted, row] = i
                    wanted += 1
                    if wanted == k:
                        break
                column += 1
                begin = i + 1
    return field_starts, field_ends


@kernel
def scan_ids(raw: Any, starts: Any, ends: Any) -> Any:
    """The first column of CoNLL-U: 0 a word "7", 1 a range "7-8", 2 an empty node "7.1", -1 none of these.

    raw (n,), starts, ends (m,) -> kinds (m,) int8; first, second (m,) int64. Numbers have at most nine digits.
    Called by conllu.
    """
    m = len(starts)
    kinds = np.zeros(m, np.int8)
    first = np.zeros(m, np.int64)
    second = np.zeros(m, np.int64)
    for k in range(m):
        value: Any = 0
        digits = 0
        kind = 0
        for i in range(starts[k], ends[k]):
            c = np.int64(raw[i])
            if 48 <= c <= 57:
                value = value * 10 + (c - 48)
                digits += 1
                if digits > 9:
                    kind = -1
                    break
            elif kind == 0 and digits > 0 and (c == 45 or c == 46):
                kind = 1 if c == 45 else 2
                first[k] = value
                value = 0
                digits = 0
            else:
                kind = -1
                break
        if digits == 0:
            kind = -1
        kinds[k] = kind
        if kind == 0:
            first[k] = value
        else:
            second[k] = value
    return kinds, first, second


@kernel
def row_tails(raw: Any, places: Any, n_tabs: Any) -> Any:
    """From a place in a row, over ``n_tabs`` further tabs: the field behind them, and the row's end.

    raw (n,), places (m,) -> starts, ends (m,) int64. With n_tabs = 0 the field is the rest of the row; no tab is looked
    for. Called by tsv and conllu to find where a confidence goes.
    """
    n = len(raw)
    starts = np.empty(len(places), np.int64)
    ends = np.empty(len(places), np.int64)
    for k in range(len(places)):
        left = n_tabs
        i = places[k]
        starts[k] = i
        while i < n and raw[i] != NEWLINE:
            if raw[i] == 9 and left > 0:
                left -= 1
                starts[k] = i + 1
            i += 1
        if i > places[k] and raw[i - 1] == 13:
            i -= 1
        ends[k] = i
    return starts, ends


@kernel
def find_pattern(raw: Any, starts: Any, ends: Any, pattern: Any) -> Any:
    """Where a pattern stands in each field, at its beginning or behind a bar; -1 where it does not.

    raw (n,), starts, ends (m,), pattern (p,) uint32 -> places (m,) int64. Called by conllu (``Conf=`` in MISC).
    """
    places = np.full(len(starts), -1, np.int64)
    p = len(pattern)
    for k in range(len(starts)):
        for i in range(starts[k], ends[k] - p + 1):
            if i == starts[k] or raw[i - 1] == 124:
                equal = True
                for j in range(p):
                    if raw[i + j] != pattern[j]:
                        equal = False
                        break
                if equal:
                    places[k] = i
                    break
    return places


@kernel
def first_unfit(text: Any, starts: Any, ends: Any, rule: Any) -> Any:
    """The first unit that a format cannot hold: empty, or with a code point that would end it.

    rule 0: ASCII white space ends a word; 1: all white space; 2: tab and line ends. text (n,), starts, ends (m,) ->
    a number, -1 if there is none. Called by base.check_words.
    """
    for k in range(len(starts)):
        if ends[k] <= starts[k]:
            return k
        for i in range(starts[k], ends[k]):
            c = text[i]
            if rule == 2:
                if c == 9 or c == 10 or c == 13:
                    return k
            elif is_space(c, rule == 1):
                return k
    return -1
