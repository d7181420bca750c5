"""Ragged: flat data with offsets, the only variable-length array in the project."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Ragged:
    """Rows of different lengths: row i is ``data[offsets[i]:offsets[i + 1]]``.

    data:    (n_items,) any dtype
    offsets: (n_rows + 1,) int64, from 0, never falling, ending at n_items
    """

    data: NDArray[Any]
    offsets: NDArray[np.int64]

    def __post_init__(self) -> None:
        offsets = self.offsets
        if offsets.ndim != 1 or len(offsets) == 0 or offsets[0] != 0 or offsets[-1] != len(self.data):
            raise ValueError(f"offsets must run from 0 to {len(self.data)}, one more than there are rows")
        if np.any(offsets[1:] < offsets[:-1]):
            raise ValueError("offsets must never fall")

    @classmethod
    def from_rows(cls, rows: Iterable[Sequence[Any] | NDArray[Any]], dtype: Any = np.int64) -> Ragged:
        """Build from a list of lists."""
        rows = list(rows)
        data = np.fromiter((item for row in rows for item in row), dtype=dtype)
        return cls(data, offsets_of([len(row) for row in rows]))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> NDArray[Any]:
        if not -len(self) <= row < len(self):
            raise IndexError(f"row {row} of {len(self)}")
        row %= len(self)
        return self.data[self.offsets[row] : self.offsets[row + 1]]

    def __iter__(self) -> Iterator[NDArray[Any]]:
        return (self[row] for row in range(len(self)))

    @property
    def lengths(self) -> NDArray[np.int64]:
        """(n_rows,) the length of each row."""
        return np.diff(self.offsets)

    def select(self, rows: Any) -> Ragged:
        """A new Ragged of the given rows, in the given order."""
        rows = np.asarray(rows, dtype=np.int64)
        return Ragged(self.data[ranges(self.offsets[rows], self.offsets[rows + 1])], offsets_of(self.lengths[rows]))


def offsets_of(lengths: Any) -> NDArray[np.int64]:
    """(n,) lengths -> (n + 1,) offsets that start at 0."""
    lengths = np.asarray(lengths, dtype=np.int64)
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def ranges(starts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Concatenation of ``range(start, end)`` for each pair, as one index array."""
    lengths = ends - starts
    offsets = offsets_of(lengths)
    return np.arange(offsets[-1], dtype=np.int64) + np.repeat(starts - offsets[:-1], lengths)
