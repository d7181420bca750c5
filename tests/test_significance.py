"""The randomization test against all 2^S exchanges, the bootstrap against all S^S samples."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duilian import evaluation
from duilian.corpus import build
from duilian.evaluation import significance
from duilian.evaluation.significance import SentenceCounts, bootstrap, randomization
from tests.naive import evaluation as naive


def counts(rows: naive.Counts) -> SentenceCounts:
    table = np.array(rows, dtype=np.int64).reshape(-1, 3)
    return SentenceCounts(table[:, 0], table[:, 1], table[:, 2])


@st.composite
def systems(draw: st.DrawFn, max_size: int) -> tuple[naive.Counts, naive.Counts]:
    """Counts of two systems over the same gold."""
    first, second = [], []
    for _ in range(draw(st.integers(1, max_size))):
        gold = draw(st.integers(0, 4))
        for system in (first, second):
            pred = draw(st.integers(0, 5))
            system.append((draw(st.integers(0, min(pred, gold))), pred, gold))
    return first, second


@given(pair=systems(7))
def test_p_value_is_near_the_exact_one(pair: tuple[naive.Counts, naive.Counts]) -> None:
    first, second = pair
    samples = 4000
    exact = naive.exact_p(first, second)
    # five standard deviations of a share of 4000, and the added one
    tolerance = 5 * np.sqrt(max(exact * (1 - exact), 1e-4) / samples) + 1 / samples
    assert randomization(counts(first), counts(second), samples, seed=3) == pytest.approx(exact, abs=tolerance)


def test_p_value_by_hand() -> None:
    """Three sentences, each one word better: only none or all exchanged is as extreme, 2 of 8."""
    first, second = counts([(0, 1, 1)] * 3), counts([(1, 1, 1)] * 3)
    found = randomization(first, second, samples=10_000)
    assert found == pytest.approx(0.25, abs=0.025)
    assert round(found * 10_001) == found * 10_001
    # 20 such sentences: 2 of 2^20, so none of 100 samples is, and p = 1 / 101
    assert randomization(counts([(0, 1, 1)] * 20), counts([(1, 1, 1)] * 20), samples=100) == 1 / 101


def test_equal_systems_have_p_one() -> None:
    same = counts([(1, 2, 2), (0, 1, 3)])
    assert randomization(same, same, samples=50) == 1.0
    balanced = counts([(1, 1, 1), (0, 1, 1)]), counts([(0, 1, 1), (1, 1, 1)])
    assert randomization(*balanced, samples=50) == 1.0
    assert bootstrap(same, same, samples=50) == (0.0, 0.0)


def test_nothing_to_compare() -> None:
    nothing = counts([])
    assert randomization(nothing, nothing, samples=10) == 1.0
    assert bootstrap(nothing, nothing, samples=10) == (0.0, 0.0)


@given(pair=systems(4), level=st.sampled_from([0.5, 0.9]))
def test_interval_is_near_that_of_all_resamples(pair: tuple[naive.Counts, naive.Counts], level: float) -> None:
    """At an end of the interval the exact distribution must be near the tail; 0.06 is more than five deviations."""
    every = naive.every_resample(*pair)
    low, high = bootstrap(counts(pair[0]), counts(pair[1]), samples=2000, seed=1, level=level)
    tail, slack = (1 - level) / 2, 0.06
    for found, share in ((low, tail), (high, 1 - tail)):
        below = sum(one < found - 1e-9 for one in every) / len(every)
        up_to = sum(one <= found + 1e-9 for one in every) / len(every)
        assert below <= share + slack
        assert up_to >= share - slack


def test_interval_of_many_sentences_is_that_of_the_normal_distribution() -> None:
    """One word a sentence: the difference is a mean of n values, its 95 % interval 1.96 deviations to each side."""
    n = 2000
    rng = np.random.default_rng(7)
    one, two = (rng.integers(0, 2, n) for _ in range(2))
    ones = np.ones(n, np.int64)
    low, high = bootstrap(SentenceCounts(one, ones, ones), SentenceCounts(two, ones, ones), samples=5000)
    half = 1.96 * 100 * np.std(two - one) / np.sqrt(n)
    middle = 100 * np.mean(two - one)
    assert low == pytest.approx(middle - half, abs=0.06 * half)
    assert high == pytest.approx(middle + half, abs=0.06 * half)


def test_same_seed_same_result_whatever_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    gold = rng.integers(1, 9, 70)
    one, two = (SentenceCounts(rng.integers(0, gold), gold + rng.integers(0, 2, 70), gold) for _ in range(2))
    p, interval = randomization(one, two, 300, seed=5), bootstrap(one, two, 300, seed=5)
    monkeypatch.setattr(significance, "_BLOCK", 100)
    assert randomization(one, two, 300, seed=5) == p
    assert bootstrap(one, two, 300, seed=5) == interval
    assert bootstrap(one, two, 300, seed=6) != interval


def test_large_counts_stay_exact() -> None:
    """Beyond 2^24 sums are made in float64: the result is that of the same differences, once scaled."""
    first, second = [(0, 3, 3), (1, 3, 3), (2, 3, 3)], [(2, 3, 3), (2, 3, 3), (1, 3, 3)]
    big = 2**30 + 1
    scaled = [[tuple(big * value for value in row) for row in rows] for rows in (first, second)]
    small = randomization(counts(first), counts(second), 500, seed=2)
    assert randomization(counts(scaled[0]), counts(scaled[1]), 500, seed=2) == small


def test_wrong_calls_are_refused() -> None:
    one, other = counts([(1, 1, 1)]), counts([(1, 1, 2)])
    with pytest.raises(ValueError, match="same gold"):
        randomization(one, other)
    with pytest.raises(ValueError, match="at least 1, found 0"):
        randomization(one, one, samples=0)
    with pytest.raises(ValueError, match="between 0 and 1, found 95"):
        bootstrap(one, one, level=95)


def test_compare_names_its_metric() -> None:
    gold = build([(["a", "bc"], ["N", "V"]), (["d"], ["N"])])
    one = build([(["a", "bc"], ["N", "N"]), (["d"], ["V"])])
    two = build([(["a", "bc"], ["N", "V"]), (["d"], ["V"])])
    found = evaluation.compare(gold, one, two, samples=1000, seed=4)
    assert found["metric"] == "accuracy"
    assert found["pred1"] == pytest.approx(100 / 3, abs=1e-9)
    assert found["difference"] == pytest.approx(100 / 3, abs=1e-9)
    assert found["p_value"] == 1.0
    assert found["interval"][0] <= found["difference"] <= found["interval"][1]
    assert evaluation.compare(gold, two, one, samples=10)["difference"] == -found["difference"]
    cut = build([(["ab", "c"], ["N", "V"]), (["d"], ["N"])])
    joint = evaluation.compare(gold, cut, two, samples=10)
    assert joint["metric"] == "joint_f"
    assert joint["difference"] == pytest.approx(100 * 2 / 3 - 100 / 3, abs=1e-9)
    plain = build([(["ab", "c"], None), (["d"], None)])
    words = evaluation.compare(gold, plain, two, samples=10)
    assert words["metric"] == "ws_f"
    assert words["difference"] == pytest.approx(100 - 100 / 3, abs=1e-9)


def test_sentences_of_the_gold_are_the_strata() -> None:
    """A prediction that is cut into other sentences is compared by the gold's."""
    gold = build([(["a"], None), (["b"], None)])
    alignment = evaluation.align(gold, build([(["a", "b"], None)]))
    assert evaluation.sentence_counts(alignment, "ws_f").pred.tolist() == [1, 1]
    with pytest.raises(ValueError, match="ws_f"):
        evaluation.sentence_counts(alignment, "f")


def test_twenty_thousand_sentences_in_five_seconds() -> None:
    rng = np.random.default_rng(0)
    n = 20_000
    gold = rng.integers(1, 60, n)
    one, two = (SentenceCounts(rng.integers(0, gold + 1), gold + rng.integers(0, 3, n), gold) for _ in range(2))
    begin = time.perf_counter()
    randomization(one, two)
    bootstrap(one, two)
    assert time.perf_counter() - begin < 10.0  # 1.7 s on an idle core; twice the promised 5 s for a busy one
