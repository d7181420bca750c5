"""Ragged arrays against lists of lists."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duilian.ragged import Ragged, offsets_of, ranges

rows = st.lists(st.lists(st.integers(-9, 9), max_size=4), max_size=6)


@given(rows)
def test_rows_come_back(items: list[list[int]]) -> None:
    found = Ragged.from_rows(items)
    assert len(found) == len(items)
    assert [row.tolist() for row in found] == items
    assert found.lengths.tolist() == [len(row) for row in items]
    assert [found[k].tolist() for k in range(-len(items), 0)] == items


@given(rows.filter(bool), st.data())
def test_select_takes_rows_in_the_given_order(items: list[list[int]], data: st.DataObject) -> None:
    wanted = data.draw(st.lists(st.integers(0, len(items) - 1)))
    found = Ragged.from_rows(items).select(wanted)
    assert [row.tolist() for row in found] == [items[k] for k in wanted]


@given(st.lists(st.integers(0, 5)))
def test_offsets_are_running_sums_from_zero(lengths: list[int]) -> None:
    offsets = offsets_of(lengths)
    assert offsets.dtype == np.int64
    assert offsets.tolist() == [sum(lengths[:k]) for k in range(len(lengths) + 1)]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 4))))
def test_ranges_one_after_the_other(pairs: list[tuple[int, int]]) -> None:
    starts = np.array([start for start, _ in pairs], np.int64)
    ends = starts + np.array([length for _, length in pairs], np.int64)
    assert ranges(starts, ends).tolist() == [k for start, n in pairs for k in range(start, start + n)]


@pytest.mark.parametrize("row", [2, -3, 99])
def test_a_row_that_is_not_there(row: int) -> None:
    with pytest.raises(IndexError, match=f"row {row} of 2"):
        Ragged.from_rows([[1], []])[row]


@pytest.mark.parametrize("offsets", [[], [1, 3], [0, 2], [0, 4], [[0, 3]]])
def test_offsets_that_do_not_fit(offsets: list[int]) -> None:
    with pytest.raises(ValueError, match="offsets must run from 0 to 3"):
        Ragged(np.zeros(3), np.array(offsets, np.int64))


def test_offsets_that_fall() -> None:
    with pytest.raises(ValueError, match="never fall"):
        Ragged(np.zeros(3), np.array([0, 2, 1, 3]))


def test_the_type_is_kept() -> None:
    assert Ragged.from_rows([[1, 2]], np.int32).data.dtype == np.int32
    assert Ragged.from_rows([], np.uint64).data.dtype == np.uint64
    assert Ragged.from_rows([[1, 2]], np.int32).select([0]).data.dtype == np.int32
