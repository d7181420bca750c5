"""Pruning by r and lambda against its definition, and what its statistics say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import pruning as naive

from duilian.inference import pruning
from duilian.ragged import Ragged


@st.composite
def tables(draw: Any) -> Any:
    """Probabilities in sixteenths: sums are exact, ties are common."""
    n_labels = draw(st.integers(1, 6))
    rows = draw(st.lists(st.lists(st.integers(0, 4), min_size=n_labels, max_size=n_labels), max_size=6))
    return np.array(rows, dtype=float).reshape(len(rows), n_labels) / 16


@given(tables(), st.integers(1, 8), st.sampled_from([0.1, 0.25, 0.5, 0.9999, 1.0]), st.booleans(), st.booleans())
def test_prune_equals_the_definition(rows: Any, r: int, lambda_: float, single: bool, with_given: bool) -> None:
    keep = (np.arange(rows.size).reshape(rows.shape) % 5 == 3) if with_given else None
    found = pruning.prune(rows.astype(np.float32) if single else rows, r, lambda_, keep)
    assert found.data.dtype == np.int32
    for t, row in enumerate(rows.tolist()):
        given_labels = [] if keep is None else np.flatnonzero(keep[t]).tolist()
        assert found[t].tolist() == naive.prune(row, r, lambda_, given_labels)


def test_lambda_must_be_exceeded_not_reached() -> None:
    assert pruning.prune(np.array([[0.5, 0.25, 0.25]]), 3, 0.5)[0].tolist() == [0, 1]
    assert pruning.prune(np.array([[0.5, 0.25, 0.25]]), 3, 0.49)[0].tolist() == [0]
    # float32 marginals may sum to a little more than one: lambda = 1 still keeps r labels
    assert len(pruning.prune(np.array([[1.0000001, 0, 0, 0]], dtype=np.float32), 3, 1.0)[0]) == 3


def test_given_labels_are_one_none_or_a_set() -> None:
    sets = Ragged.from_rows([[0, 2], [1]], np.int32)
    mask = pruning.given_mask(np.array([1, -1, -2, -3], dtype=np.int32), sets, 3)
    assert [np.flatnonzero(row).tolist() for row in mask] == [[1], [], [0, 2], [1]]


def test_statistics() -> None:
    rows = np.array([[0.75, 0.25, 0.0], [0.25, 0.25, 0.5], [0.0, 1.0, 0.0]])
    keep = pruning.given_mask(np.array([1, 0, -1], dtype=np.int32), Ragged.from_rows([], np.int32), 3)
    found = pruning.statistics(rows, 2, 0.6, keep)
    # survivors: {0}, {0, 2}, {1}; the given label 1 of the first token is lost
    assert (found.n_tokens, found.n_given, found.n_lost) == (3, 2, 1)
    assert found.mean_candidates == pytest.approx(4 / 3)
    np.testing.assert_allclose(found.kth_best, [2.25 / 3, 0.5 / 3, 0.25 / 3], rtol=1e-12)
    wanted = -(0.75 * np.log(0.75) + 0.25 * np.log(0.25) + 2 * 0.25 * np.log(0.25) + 0.5 * np.log(0.5)) / 3
    assert found.entropy == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [((np.zeros(3), 1, 0.5), "shape"), ((np.zeros((1, 3)), 0, 0.5), "r is 0"), ((np.zeros((1, 3)), 1, 0.0), "lambda")],
)
def test_wrong_arguments(arguments: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        pruning.prune(*arguments)
