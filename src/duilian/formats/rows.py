"""Lines of columns separated by tabs, sentences separated by blank lines: what tsv, conllu and coupled10 share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from duilian.formats.base import Fault, Ints, Points, fixed, quote


class Rows(NamedTuple):
    """All lines of a block, and where its sentences begin.

    starts, ends: (n_lines,) each line without its end;  n_columns: (n_lines,)
    blank:        (n_lines,) whether a line is empty
    sentence:     (n_lines,) number of the sentence each line belongs to
    bounds:       (n_sentences + 1,) sentence i is points[bounds[i]:bounds[i + 1]]
    """

    starts: Ints
    ends: Ints
    n_columns: NDArray[np.int32]
    blank: NDArray[np.bool_]
    sentence: NDArray[np.int32]
    bounds: Ints


def scan(points: Points, every_blank: bool) -> Rows:
    """Lines and sentences. ``every_blank``: each blank line ends a sentence, even an empty one; else any number do."""
    from duilian.formats.scan_kernels import scan_lines

    starts, ends, n_tabs = scan_lines(fixed(points, np.uint32))
    n_tabs += 1  # columns
    blank = ends == starts
    first = np.ones(len(starts), bool)
    if every_blank:
        first[1:] = blank[:-1]
    else:
        first[1:] = blank[:-1] & ~blank[1:]
        if len(blank) and blank[0]:
            filled = np.flatnonzero(~blank)
            first[: filled[0] + 1 if len(filled) else len(first)] = False
            first[0] = bool(len(filled))
    sentence = np.cumsum(first, dtype=np.int32)
    sentence -= 1
    bounds = np.empty(np.count_nonzero(first) + 1, np.int64)
    np.compress(first, starts, out=bounds[:-1])
    bounds[-1] = len(points)
    return Rows(starts, ends, n_tabs, blank, sentence, bounds)


def fields(points: Points, starts: Ints, ends: Ints, columns: list[int]) -> tuple[Ints, Ints]:
    """Where the given columns (from 0, rising) of these lines begin and end: two (k, m) arrays."""
    from duilian.formats.scan_kernels import scan_fields

    found: tuple[Ints, Ints] = scan_fields(
        fixed(points, np.uint32), fixed(starts, np.int64), fixed(ends, np.int64), fixed(columns, np.int64)
    )
    return found


Check = tuple[Ints, Callable[[int], tuple[str, str]]]
"""Lines that are wrong (numbers, rising), and what to say of one of them: message and hint."""


def faults(rows: Rows, *checks: Check) -> Iterator[Fault]:
    """One fault for each sentence that has a wrong line: the first; the whole sentence has to go."""
    lines = np.concatenate([wrong for wrong, _ in checks])
    which = np.repeat(np.arange(len(checks)), [len(wrong) for wrong, _ in checks])
    order = np.argsort(lines, kind="stable")
    lines, which = lines[order], which[order]
    sentences, first = np.unique(rows.sentence[lines], return_index=True)
    for sentence, line, check in zip(sentences, lines[first], which[first], strict=True):
        message, hint = checks[check][1](int(line))
        yield Fault(int(rows.bounds[sentence]), int(rows.bounds[sentence + 1]), int(rows.starts[line]), message, hint)


def check_columns(points: Points, rows: Rows, lines: Ints, expected: int, hint: str) -> Check:
    """Lines must have this many columns."""
    plural = "" if expected == 1 else "s"

    def say(line: int) -> tuple[str, str]:
        what = quote(points, int(rows.starts[line]), int(rows.ends[line]))
        return f"expected {expected} column{plural}, found {rows.n_columns[line]}: {what}.", hint

    return lines[rows.n_columns[lines] != expected], say


def check_filled(lines: Ints, starts: Ints, ends: Ints, column: int) -> Check:
    """The fields of a column, at starts and ends for each of the lines, must not be empty."""
    return lines[starts == ends], lambda line: (f"column {column} is empty.", "Expected text in it.")
