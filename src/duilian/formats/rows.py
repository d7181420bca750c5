"""Lines of columns separated by tabs, sentences separated by blank lines: what tsv, conllu and coupled10 share."""

from __future__ import annotations

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
    sentence: Ints
    bounds: Ints


def scan(points: Points, every_blank: bool) -> Rows:
    """Lines and sentences. ``every_blank``: each blank line ends a sentence, even an empty one; else any number do."""
    from duilian.formats.scan_kernels import scan_lines

    starts, ends, n_tabs = scan_lines(fixed(points, np.uint32))
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
    sentence = np.cumsum(first) - 1
    bounds = np.append(starts[first], len(points))
    if len(bounds) > 1:
        bounds[0] = 0
    return Rows(starts, ends, n_tabs + 1, blank, sentence.astype(np.int64), bounds)


def fields(points: Points, starts: Ints, ends: Ints, columns: list[int]) -> tuple[Ints, Ints]:
    """Where the given columns (from 0, rising) of these lines begin and end: two (k, m) arrays."""
    from duilian.formats.scan_kernels import scan_fields

    found: tuple[Ints, Ints] = scan_fields(
        fixed(points, np.uint32), fixed(starts, np.int64), fixed(ends, np.int64), fixed(columns, np.int64)
    )
    return found


def fault(rows: Rows, line: int, message: str, hint: str = "") -> Fault:
    """A fault in a line: its whole sentence has to go."""
    sentence = int(rows.sentence[line])
    return Fault(int(rows.bounds[sentence]), int(rows.bounds[sentence + 1]), int(rows.starts[line]), message, hint)


def first_of_each(faults: list[Fault]) -> list[Fault]:
    """One fault for each sentence, the first."""
    seen: dict[int, Fault] = {}
    for item in sorted(faults, key=lambda item: item.at):
        seen.setdefault(item.begin, item)
    return list(seen.values())


def column_faults(points: Points, rows: Rows, lines: Ints, expected: int, hint: str) -> list[Fault]:
    """Lines that have another number of columns than expected."""
    wrong = lines[rows.n_columns[lines] != expected]
    one_each = wrong[np.unique(rows.sentence[wrong], return_index=True)[1]]
    plural = "" if expected == 1 else "s"
    return [
        fault(
            rows,
            line,
            f"expected {expected} column{plural}, found {rows.n_columns[line]}: "
            f"{quote(points, int(rows.starts[line]), int(rows.ends[line]))}.",
            hint,
        )
        for line in one_each.tolist()
    ]


def empty_faults(rows: Rows, lines: Ints, starts: Ints, ends: Ints, column: int) -> list[Fault]:
    """Lines whose given column is empty."""
    wrong = lines[starts == ends]
    one_each = wrong[np.unique(rows.sentence[wrong], return_index=True)[1]]
    return [fault(rows, line, f"column {column} is empty.", "Expected text in it.") for line in one_each.tolist()]
