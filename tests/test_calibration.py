"""Calibration against hand-computed cases and the slow twin."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duilian.evaluation import calibration
from duilian.ragged import Ragged
from tests.naive import evaluation as naive

CLOSE = 1e-9
TOKENS = st.lists(
    st.tuples(st.one_of(st.integers(0, 60).map(lambda k: k / 60), st.floats(0, 1)), st.booleans()), max_size=12
)


def test_error_by_hand() -> None:
    """Bins of a half: (0.2, 0.4) with one right of two, (1.0,) right: 2/3 * |0.5 - 0.3| + 1/3 * 0."""
    found = calibration.calibration_error([0.2, 0.4, 1.0], [True, False, True], n_bins=2)
    assert found == pytest.approx(2 / 3 * 0.2, abs=CLOSE)
    bins = calibration.reliability([0.0, 0.5, 0.5], [True, True, False], n_bins=2)
    assert bins.n.tolist() == [3, 0]
    assert bins.right.tolist() == [pytest.approx(2 / 3), 0.0]
    assert calibration.N_BINS == 15


@given(tokens=TOKENS, n_bins=st.sampled_from([1, 4, 8, 15]))
def test_error_agrees_with_the_twin(tokens: list[tuple[float, bool]], n_bins: int) -> None:
    sure, right = [c for c, _ in tokens], [r for _, r in tokens]
    edges = [k / n_bins for k in range(1, n_bins)]
    sure = [c if all(abs(c - edge) > 1e-12 for edge in edges) else c / 2 for c in sure]
    found = calibration.calibration_error(sure, right, n_bins)
    assert found == pytest.approx(naive.calibration_error(sure, right, n_bins), abs=CLOSE)
    assert 0 <= found <= 1


@given(tokens=TOKENS)
def test_risk_and_coverage_agree_with_the_twin(tokens: list[tuple[float, bool]]) -> None:
    sure, right = [c for c, _ in tokens], [r for _, r in tokens]
    found = calibration.risk_coverage(sure, right)
    assert found.threshold.tolist() == sorted(set(sure), reverse=True)
    for threshold, coverage, risk in zip(found.threshold, found.coverage, found.risk, strict=True):
        kept = [r for c, r in tokens if c >= threshold]
        assert coverage == pytest.approx(len(kept) / len(tokens), abs=CLOSE)
        assert risk == pytest.approx(kept.count(False) / len(kept), abs=CLOSE)
    areas = [naive.errors_among(sure, right, n, surest=True) / n for n in range(1, len(sure) + 1)]
    assert found.area == pytest.approx(sum(areas) / len(areas) if areas else 0.0, abs=CLOSE)


@given(tokens=TOKENS, share=st.floats(0, 1))
def test_errors_found_agrees_with_the_twin(tokens: list[tuple[float, bool]], share: float) -> None:
    sure, right = [c for c, _ in tokens], [r for _, r in tokens]
    errors = right.count(False)
    expected = naive.errors_among(sure, right, share * len(sure), surest=False) / errors if errors else 0.0
    assert calibration.errors_found(sure, right, share) == pytest.approx(expected, abs=CLOSE)


def test_errors_found_by_hand() -> None:
    sure, right = [0.9, 0.2, 0.4, 0.8], [True, False, True, False]
    assert calibration.errors_found(sure, right, 0.25) == pytest.approx(0.5, abs=CLOSE)
    assert calibration.errors_found(sure, right, 0.75) == pytest.approx(1.0, abs=CLOSE)
    assert calibration.errors_found([0.5, 0.5], [True, False], 0.5) == pytest.approx(0.5, abs=CLOSE)
    assert calibration.errors_found(sure, [True] * 4, 0.5) == 0.0


def test_temperature_by_hand() -> None:
    """Two labels a score of 2 apart, the better one right in 3 of 4: sigmoid(2 / T) = 3 / 4, so T = 2 / log 3."""
    scores = np.array([[2.0, 0.0]] * 4)
    assert calibration.fit_temperature(scores, [0, 0, 0, 1]) == pytest.approx(2 / math.log(3), rel=1e-3)
    moved = 1000 * scores + 5e6
    assert calibration.fit_temperature(moved, [0, 0, 0, 1]) == pytest.approx(2000 / math.log(3), rel=1e-3)


@given(data=st.data())
def test_no_other_temperature_is_better(data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.lists(st.integers(-5, 5).map(float), min_size=1, max_size=4), min_size=1, max_size=6))
    gold = [data.draw(st.integers(0, len(row) - 1)) for row in rows]
    found = calibration.fit_temperature(Ragged.from_rows(rows, np.float64), gold)
    best = naive.negative_log_likelihood(rows, gold, found)
    for temperature in np.geomspace(0.05, 1000, 60):
        assert best <= naive.negative_log_likelihood(rows, gold, float(temperature)) + 2e-3


def test_unknown_gold_is_left_out_of_the_temperature() -> None:
    scores = np.array([[2.0, 0.0]] * 4 + [[0.0, 9.0]])
    assert calibration.fit_temperature(scores, [0, 0, 0, 1, -1]) == calibration.fit_temperature(
        scores[:4], [0, 0, 0, 1]
    )
    assert calibration.fit_temperature(scores, [-1] * 5) == 1.0
    assert calibration.fit_temperature(np.zeros((2, 3)), [0, 1]) == 1.0
    with pytest.raises(ValueError, match="not among the scores"):
        calibration.fit_temperature(scores, [0, 0, 0, 2, 0])


def test_best_temperature_of_a_known_curve() -> None:
    found = calibration.best_temperature(lambda t: (math.log(t) - 1.5) ** 2)
    assert found == pytest.approx(math.exp(1.5), rel=1e-3)
    assert calibration.best_temperature(lambda t: t, low=0.5, high=8.0) == pytest.approx(0.5, rel=1e-3)


def test_nothing_and_nonsense() -> None:
    assert calibration.calibration_error([], []) == 0.0
    assert calibration.risk_coverage([], []).area == 0.0
    assert calibration.errors_found([], [], 0.5) == 0.0
    with pytest.raises(ValueError, match="between 0 and 1"):
        calibration.calibration_error([1.5], [True])
    with pytest.raises(ValueError, match="between 0 and 1"):
        calibration.calibration_error([float("nan")], [True])
    with pytest.raises(ValueError, match="one length"):
        calibration.calibration_error([0.5], [True, False])
    with pytest.raises(ValueError, match="between 0 and 1, found 20"):
        calibration.errors_found([0.5], [True], 20)
