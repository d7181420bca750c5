"""Transition tables of the complete space as matrix products that leave out what is impossible.

Between character labels (B, I, E, S of each tag) most steps cannot happen: from B@x only to I@x and E@x. All rows that
share one set of possible columns form a dense block; the labels of the side are put into an order in which the block is
a contiguous part of the table, and what remains is a list of single entries. A table without holes is one block.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from duilian.inference.blocks import run_blocks
from duilian.inference.grid_kernels import entries_first, entries_last, entry_counts_first, entry_counts_last

Floats = NDArray[Any]

HALVED = 512  # labels from which on one product is worth two threads
WORTH = 0.6  # a block that needs more than this share of the full product is not worth the reordering


class Table:
    """One table in log space, as exponentials of what is above its maximum ``top``, with its labels in ``order``.

    order: (L,) int64; row and column k of everything else here is label order[k]
    """

    def __init__(self, log_table: Floats, dtype: Any, reorder: bool = True) -> None:
        log_table = np.asarray(log_table, dtype=np.float64)
        if log_table.ndim != 2 or log_table.shape[0] != log_table.shape[1]:
            raise ValueError(f"a transition table must be square, found shape {log_table.shape}")
        size = len(log_table)
        possible = log_table > -np.inf
        self.top = float(log_table[possible].max()) if possible.any() else 0.0
        rows, cols = dense_block(possible) if reorder else (np.ones(size, bool), np.ones(size, bool))
        self.order = np.concatenate(
            [
                np.flatnonzero(~rows & ~cols),
                np.flatnonzero(rows & ~cols),
                np.flatnonzero(rows & cols),
                np.flatnonzero(~rows & cols),
            ]
        )
        self.log_table = np.ascontiguousarray(log_table[np.ix_(self.order, self.order)], dtype=dtype)
        self.exp = np.exp(log_table[np.ix_(self.order, self.order)] - self.top).astype(dtype)
        first = int((~rows & ~cols).sum())
        self.rows = slice(first, first + int(rows.sum()))
        self.cols = slice(first + int((rows & ~cols).sum()), size)
        rest = self.exp > 0
        rest[self.rows, self.cols] = False
        self.entry_rows, self.entry_cols = (index.astype(np.int64) for index in np.nonzero(rest))
        self.entries = self.exp[self.entry_rows, self.entry_cols]
        self.block = np.ascontiguousarray(self.exp[self.rows, self.cols])
        self.whole = self.block.shape == self.exp.shape
        # a large table is worked on in two fixed halves of its columns or rows, which may run in parallel
        middle = size // 2 if self.whole and size >= HALVED else 0
        self.parts = [(0, middle), (middle, size)] if middle else [(0, size)]

    def move_first(self, x: Floats, out: Floats) -> None:
        """out[k, m] = sum_i x[i, m] exp[i, k]."""
        if self.whole:
            np.matmul(self.exp.T, x, out=out)
            return
        out[: self.cols.start] = 0
        np.matmul(self.block.T, x[self.rows], out=out[self.cols])
        entries_first(x, self.entry_rows, self.entry_cols, self.entries, out)

    def back_first(self, y: Floats, out: Floats) -> None:
        """out[i, m] = sum_k exp[i, k] y[k, m]."""
        if self.whole:
            np.matmul(self.exp, y, out=out)
            return
        out[: self.rows.start] = 0
        out[self.rows.stop :] = 0
        np.matmul(self.block, y[self.cols], out=out[self.rows])
        entries_first(y, self.entry_cols, self.entry_rows, self.entries, out)

    def move_last(self, x: Floats, out: Floats, threads: int = 1) -> None:
        """out[m, k] = sum_i x[m, i] exp[i, k]."""
        if self.whole:
            run_blocks(lambda a, b: np.matmul(x, self.exp[:, a:b], out=out[:, a:b]), self.parts, threads)
            return
        out[:, : self.cols.start] = 0
        np.matmul(x[:, self.rows], self.block, out=out[:, self.cols])
        entries_last(x, self.entry_rows, self.entry_cols, self.entries, out)

    def back_last(self, y: Floats, out: Floats, threads: int = 1) -> None:
        """out[m, i] = sum_k y[m, k] exp[i, k]."""
        if self.whole:
            run_blocks(lambda a, b: np.matmul(y, self.exp[a:b].T, out=out[:, a:b]), self.parts, threads)
            return
        out[:, : self.rows.start] = 0
        out[:, self.rows.stop :] = 0
        np.matmul(y[:, self.cols], self.block.T, out=out[:, self.rows])
        entries_last(y, self.entry_cols, self.entry_rows, self.entries, out)

    def steps(self, x: Floats, w: Floats, threads: int = 1) -> Floats:
        """Expected transitions of many units at once: exp[i, k] * sum_m x[m, i] w[m, k]; for a table without holes."""
        found: Floats = np.empty(self.exp.shape, dtype=self.exp.dtype)

        def part(a: int, b: int) -> None:
            np.matmul(x[:, a:b].T, w, out=found[a:b])
            found[a:b] *= self.exp[a:b]

        run_blocks(part, self.parts, threads)
        return found

    def new_counts(self) -> Counts:
        """Zeros to add expected transitions to."""
        return Counts(self)


class Counts:
    """Expected transitions over one table while they are being added up, before the factor exp."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.block = np.zeros(table.block.shape)
        self.entries = np.zeros(len(table.entries), dtype=table.exp.dtype)
        self.sum = np.zeros(len(table.entries))

    def add_first(self, x: Floats, y: Floats) -> None:
        """Add sum_m x[i, m] y[k, m]."""
        self.block += x[self.table.rows] @ y[self.table.cols].T
        if len(self.entries):
            entry_counts_first(x, y, self.table.entry_rows, self.table.entry_cols, self.entries)
            self._flush()

    def add_last(self, x: Floats, y: Floats) -> None:
        """Add sum_m x[m, i] y[m, k]."""
        self.block += x[:, self.table.rows].T @ y[:, self.table.cols]
        if len(self.entries):
            entry_counts_last(x, y, self.table.entry_rows, self.table.entry_cols, self.entries)
            self._flush()

    def _flush(self) -> None:
        self.sum += self.entries
        self.entries[:] = 0

    def result(self) -> NDArray[np.float64]:
        """(L, L) in the order of the labels."""
        table, inner = self.table, np.zeros(self.table.exp.shape)
        inner[table.rows, table.cols] = self.block * table.block
        inner[table.entry_rows, table.entry_cols] = self.sum * table.entries
        out = np.empty_like(inner)
        out[np.ix_(table.order, table.order)] = inner
        return out


def dense_block(possible: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Rows that share one set of possible columns, and that set: the largest such block, or everything."""
    size = len(possible)
    everything = np.ones(size, dtype=bool), np.ones(size, dtype=bool)
    if possible.all() or not possible.any():
        return everything
    kinds, kind = np.unique(possible, axis=0, return_inverse=True)
    kind = kind.ravel()
    areas = np.bincount(kind) * kinds.sum(axis=1)
    best = int(np.argmax(areas))
    rest = int(possible.sum() - areas[best])
    # an entry by itself costs about four times its share of a matrix product
    if areas[best] + 4 * rest > WORTH * size * size:
        return everything
    return kind == best, kinds[best]
