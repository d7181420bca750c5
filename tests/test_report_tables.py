"""Tables of reports: means, what is best, what is more than chance, and how numbers are written."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import raw_results
from hypothesis import given
from hypothesis import strategies as st
from raw_results import TARGET

from duilian.report.numbers import mean, probability, shown, signed
from duilian.report.reading import Number, Part, read
from duilian.report.tables import Filled, fill


def filled(folder: Path, files: dict[str, Any]) -> Filled:
    raw_results.write(folder, files)
    (table,) = fill(read(folder))
    return table


def scored(values: dict[str, list[float | None]], p_values: list[float], gains: list[float]) -> dict[str, Any]:
    """A study with these accuracies (None: the run failed), coupled compared with crf."""
    files = raw_results.whole(len(p_values))
    for method, scores in values.items():
        for seed, score in enumerate(scores, 1):
            cell = files[f"cells/{method}-{seed}.json"]
            if score is None:
                cell |= {"status": "failed", "error": "stopped"}
            else:
                cell |= {"status": "done", "scores": {TARGET: {"accuracy": score}}}
    for seed, (p, gain) in enumerate(zip(p_values, gains, strict=True), 1):
        files[raw_results.compared(seed)] |= {"p_value": p, "difference": gain}
    return files


def accuracy(table: Filled) -> dict[str, Any]:
    return {line.row.id: line.places[0] for line in table.lines}


def test_the_best_is_marked_and_what_looks_the_same(tmp_path: Path) -> None:
    values: dict[str, list[float | None]] = {"crf": [90.001], "guide": [90.004], "coupled": [89.99]}
    places = accuracy(filled(tmp_path, scored(values, [0.5], [0.1])))
    assert [places[name].best for name in ("crf", "guide", "coupled", "later")] == [True, True, False, False]


def test_low_is_best_where_the_column_says_so(tmp_path: Path) -> None:
    files = raw_results.whole(1)
    for name, seconds in (("crf", 10.0), ("guide", 30.0), ("coupled", 20.0)):
        files[f"cells/{name}-1.json"] |= {"status": "done", "seconds": seconds}
    table = filled(tmp_path, files)
    assert [line.places[2].best for line in table.lines] == [True, False, False, False]


def test_a_row_that_lacks_a_seed_is_not_compared(tmp_path: Path) -> None:
    values: dict[str, list[float | None]] = {"crf": [90.0, 92.0], "guide": [99.0, None], "coupled": [91.0, 90.0]}
    places = accuracy(filled(tmp_path, scored(values, [0.5, 0.5], [0.1, 0.1])))
    assert places["crf"].mean.value == 91.0
    assert places["crf"].mean.deviation == pytest.approx(math.sqrt(2), rel=1e-12)
    assert places["guide"].mean.numbers[0].value == 99.0
    assert not places["guide"].mean.whole
    assert [places[name].best for name in ("crf", "guide", "coupled")] == [True, False, False]


@pytest.mark.parametrize(
    ("p_values", "gains", "marks"),
    [
        ([0.05], [0.4], ""),
        ([0.049], [0.4], "+"),
        ([0.009], [0.4], "++"),
        ([0.0001], [0.4], "+++"),
        ([0.009], [-0.4], "--"),
        ([0.0001, 0.02], [0.4, 0.5], "+"),
        ([0.0001, 0.02], [0.4, -0.5], ""),
        ([0.0001, 0.2], [0.4, 0.5], ""),
    ],
)
def test_marks_of_significance(tmp_path: Path, p_values: list[float], gains: list[float], marks: str) -> None:
    table = filled(tmp_path, scored({}, p_values, gains))
    line = next(line for line in table.lines if line.row.id == "coupled")
    assert [place.marks for place in line.places] == [marks, "", "", ""]
    assert line.against is not None
    assert line.against.title == "crf alone"
    assert line.against.p == max(p_values)


def test_no_marks_without_the_comparison_of_every_seed(tmp_path: Path) -> None:
    files = scored({}, [0.0001, 0.0001], [0.4, 0.4])
    del files[raw_results.compared(2)]
    line = next(line for line in filled(tmp_path, files).lines if line.row.id == "coupled")
    assert line.places[0].marks == ""
    assert line.against is not None


def test_a_row_may_have_a_path_of_its_own(tmp_path: Path) -> None:
    files = raw_results.whole(1)
    files["study.json"]["tables"][0]["rows"][2]["paths"] = {"accuracy": f"conversions.{raw_results.WAY}.accuracy"}
    place = accuracy(filled(tmp_path, files))["coupled"]
    assert place.mean.value == files["cells/coupled-1.json"]["conversions"][raw_results.WAY]["accuracy"]
    assert place.mean.numbers[0].pointer == f"/conversions/{raw_results.WAY}/accuracy"
    assert place.marks == ""  # the comparison is about another number


def test_a_part_knows_its_place() -> None:
    part = Part(
        {"a.b": {"c/d": [1, {"~": 2.5}]}, "a": {"b": None}, "flag": True, "nan": float("nan")}, "cells/x y.json"
    )
    number = part.at("a.b.c/d.-1.~").number(scale=2)
    assert number == Number(5.0, "cells/x y.json", ("a.b", "c/d", 1, "~"), 2)
    assert number.href == "cells/x%20y.json#/a.b/c~1d/1/~0"
    for path in ("a.b.c/d.7", "a.x", "flag", "nan", "a.b.c/d.0.0"):
        assert part.at(path).number() is None
    assert not part["nothing"]["below"]
    assert list(part["nothing"]) == []


@given(st.floats(-1e12, 1e12), st.integers(0, 4))
def test_a_number_is_read_back_to_its_digits(value: float, digits: int) -> None:
    for text in (shown(value, digits), signed(value, digits).removeprefix("+")):
        assert float(text.replace(",", "")) == pytest.approx(value, abs=0.5 * 10**-digits + 1e-3 * abs(value) * 1e-9)
        assert not text.startswith("-0.0") or float(text.replace(",", "")) != 0


def test_how_numbers_are_written() -> None:
    assert [shown(1234.567), shown(-0.001), shown(0.5, 0), shown(2_500_000.0, 0)] == [
        "1,234.57",
        "0.00",
        "0",
        "2,500,000",
    ]
    assert [signed(0.456), signed(-0.456), signed(0.001)] == ["+0.46", "-0.46", "0.00"]
    assert [probability(0.01234), probability(0.5), probability(0.0001)] == ["0.012", "0.5", "0.0001"]


def test_a_mean_of_nothing_is_nothing() -> None:
    assert mean([None, None]) is None
    one = Number(1.0, "f", ())
    found = mean([one, None])
    assert found is not None
    assert (found.value, found.deviation, found.whole) == (1.0, None, False)
