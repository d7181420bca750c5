"""Vector code against loops over single numbers: all widths, turned tables, both float types; the same bits again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import vectors as naive

from duilian.kernels import kernel
from duilian.vectors import LANES, count_bits, multiply, prefetch

TOLERANCE = {np.float32: 1e-5, np.float64: 1e-13}
"""Absolute, of up to nine products of numbers below one."""


@kernel
def _multiply(a: Any, b: Any, out: Any) -> None:
    multiply(a, b, out)


@kernel
def _sum_ahead(values: Any) -> Any:
    total = 0.0
    for k in range(len(values)):
        prefetch(values, min(k + 4, len(values) - 1))
        total += values[k]
    return total


@kernel
def _bits(words: Any, out: Any) -> None:
    for k in range(len(words)):
        out[k] = count_bits(words[k])


@pytest.mark.parametrize("dtype", TOLERANCE)
@given(
    st.integers(1, 3),
    st.integers(0, 9),
    st.sampled_from([1, 2, LANES - 1, LANES, LANES + 3, 3 * LANES, 4 * LANES, 7 * LANES + 5]),
    st.booleans(),
    st.integers(0, 1000),
)
def test_a_product_is_what_single_numbers_give(
    dtype: Any, n_rows: int, inner: int, width: int, turned: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    a, b, out = (rng.random(shape).astype(dtype) for shape in ((n_rows, inner), (inner, width), (n_rows, width)))
    left = np.ascontiguousarray(a.T).T if turned else a
    expected = naive.product(a, b, out)
    again = out.copy()
    _multiply(left, b, out)
    np.testing.assert_allclose(out, expected, rtol=0, atol=TOLERANCE[dtype])
    _multiply(a.copy(), b.copy(), again)
    assert out.tobytes() == again.tobytes(), "the order of additions is fixed"


def test_rows_of_larger_arrays_are_multiplied_in_place() -> None:
    table = np.arange(2.0 * LANES).reshape(2, LANES)
    room = np.zeros((3, LANES))
    _multiply(np.array([[9.0, 1.0, 2.0, 9.0]])[:, 1:3], table, room[1:2])
    assert room[1].tolist() == (table[0] + 2 * table[1]).tolist()
    assert not room[[0, 2]].any()


def test_asking_ahead_changes_nothing() -> None:
    assert _sum_ahead(np.arange(10.0)) == 45.0


@given(st.lists(st.integers(0, 2**64 - 1)))
def test_bits_are_counted(words: list[int]) -> None:
    out = np.zeros(len(words), np.int64)
    _bits(np.array(words, np.uint64), out)
    assert out.tolist() == [bin(word).count("1") for word in words]
