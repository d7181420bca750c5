"""A study's folder read back: paths, seeds, failed cells, and files that are no results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from duilian.errors import DataError
from duilian.studies.results import Figure, Plan, Table, Value, answer_name, load, lookup, plain, read_plan

CELL: dict[str, Any] = {
    "format": 1, "id": "crf-1", "method": "crf", "task": "pos", "seed": 1, "status": "done", "settings": {},
    "sides": ["zh.ud"], "inputs": "x", "seconds": 2.0, "history": [{"epoch": 1, "dev": {"zh.ud": 80.0}}],
    "scores": {"zh.ud": {"accuracy": 90.0, "joint": {"f": 88.0}}}, "conversions": {"ud->ptb": {"accuracy": 95.0}},
}  # fmt: skip
PLAN: dict[str, Any] = {
    "format": 1, "study": "all", "title": "t", "task": "pos", "seeds": [1, 2], "quick": False, "command": "c",
    "cells": ["crf-1", "crf-2"], "later": "a field of a later version",
    "sides": [{"name": "zh.ud", "role": "target"}],
    "tables": [
        {
            "id": "final", "title": "t", "caption": "c", "compared": "zh.ud",
            "columns": [{"key": "accuracy", "title": "a", "path": "scores.zh.ud.accuracy", "unit": "%"}],
            "rows": [
                {"id": "crf", "title": "crf", "cells": ["crf-1", "crf-2"], "paper": {"accuracy": 94.1}},
                {"id": "x", "title": "x", "cells": ["crf-2", "crf-1"], "against": "crf"},
            ],
        }
    ],
    "figures": [
        {"id": "f", "kind": "curve", "title": "", "caption": "",
         "series": [{"name": "s", "points": [{"cell": "crf-2", "x": 1, "path": "seconds"}, {"cell": "crf-1", "x": 2}]}]}
    ],
}  # fmt: skip


def folder_of(path: Path, **more: Any) -> Path:
    """A study's folder with one finished cell and one failed one."""
    for name in ("cells", "comparisons", "answers"):
        (path / name).mkdir()
    (path / "study.json").write_text(json.dumps(PLAN))
    (path / "cells" / "crf-1.json").write_text(json.dumps(CELL))
    failed = {**CELL, "id": "crf-2", "status": "failed", "error": "no memory", **more}
    (path / "cells" / "crf-2.json").write_text(json.dumps(failed))
    return path


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("seconds", 2.0),
        ("scores.zh.ud.accuracy", 90.0),
        ("scores.zh.ud.joint.f", 88.0),
        ("conversions.ud->ptb.accuracy", 95.0),
        ("history.-1.dev.zh.ud", 80.0),
        ("history.3.epoch", None),
        ("scores.other.accuracy", None),
        ("seconds.more", None),
    ],
)
def test_a_path_leads_through_names_with_dots_and_lists(path: str, found: Any) -> None:
    assert lookup(CELL, path) == found


def test_a_failed_cell_has_no_values(tmp_path: Path) -> None:
    results = load(folder_of(tmp_path))
    (table,) = results.plan.tables
    value = results.figure(table.rows[0], table.columns[0])
    assert value.values == (90.0, None)
    assert value.failed == ("crf-2",)
    assert value.mean is None
    assert results.cells["crf-2"].error == "no memory"
    assert results.cells["crf-2"].get("seconds") is None


def test_a_cell_that_was_not_run_is_missing(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    (folder / "cells" / "crf-2.json").unlink()
    results = load(folder)
    (table,) = results.plan.tables
    assert results.figure(table.rows[0], table.columns[0]) == Value((90.0, None), (), ("crf-2",))


def test_mean_and_deviation() -> None:
    assert Value((90.0, 92.0)).mean == 91.0
    assert Value((90.0, 92.0)).deviation == pytest.approx(2**0.5, rel=1e-12)
    assert Value((90.0,)).deviation is None
    assert Value((90.0, None)).mean is None


def test_comparisons_are_found_by_row_seed_and_side(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    one = {
        "format": 1, "baseline": "crf-1", "system": "crf-2", "side": "zh.ud", "measure": "accuracy",
        "difference": 0.5, "p_value": 0.01, "samples": 100, "words": [["w", "NN", 1, 2, 3]],
    }  # fmt: skip
    (folder / "comparisons" / "a.json").write_text(json.dumps(one))
    results = load(folder)
    (table,) = results.plan.tables
    first, second = results.comparisons_of(table, table.row("x"))
    assert first is not None
    assert first.p_value == 0.01
    assert first.words == (("w", "NN", 1, 2, 3),)
    assert second is None
    assert results.comparisons_of(table, table.row("crf")) == [None, None]


def test_a_plan_is_written_as_it_is_read(tmp_path: Path) -> None:
    plan = read_plan(folder_of(tmp_path) / "study.json")
    assert isinstance(plan, Plan)
    assert isinstance(plan.tables[0], Table)
    assert plan.seeds == (1, 2)
    assert plan.target == "zh.ud"
    (tmp_path / "again.json").write_text(json.dumps(plan.to_json()))
    assert read_plan(tmp_path / "again.json") == plan


def test_a_figure_knows_its_cells() -> None:
    assert Figure("f", "curve", "", "", PLAN["figures"][0]).cells() == ["crf-2", "crf-1"]
    assert Figure("f", "per-tag", "", "", {"baseline": "a", "system": "b", "side": "c"}).cells() == ["a", "b"]
    assert plain(Figure("f", "curve", "", "", {"cells": ("a",)}))["refers"] == {"cells": ["a"]}


def test_answers_lie_where_the_reader_looks(tmp_path: Path) -> None:
    results = load(folder_of(tmp_path))
    assert results.answer("crf-1", "ud->ptb") is None
    path = tmp_path / "answers" / answer_name("crf-1", "ud->ptb")
    path.write_text("")
    assert results.answer("crf-1", "ud->ptb") == path


@pytest.mark.parametrize(
    ("text", "says"),
    [("{", "not a JSON file"), ("[]", "found 'list'"), ('{"format": 2}', "found 2"), ('{"format": 1}', "Plan")],
)
def test_what_is_no_study_is_an_error(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "study.json").write_text(text)
    with pytest.raises(DataError, match=says):
        load(tmp_path)


def test_a_folder_without_a_study_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        load(tmp_path)
