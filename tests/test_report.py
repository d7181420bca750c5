"""Reports: the page is well formed, says what the raw results say and nothing else, and is the same each time."""

from __future__ import annotations

import copy
import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import raw_results
from pages import Page, untraceable

import duilian.report
from duilian.errors import DataError, UsageError
from duilian.report import write_report
from duilian.report.figures import KINDS

ROOT = Path(__file__).parents[1]


def page_of(folder: Path, files: dict[str, Any]) -> Page:
    """The report of a folder that holds these files."""
    raw_results.write(folder, files)
    page = Page(write_report(folder).read_text(encoding="utf-8"))
    assert page.complaints == []
    assert page.foreign == []
    assert untraceable(page, folder) == []
    return page


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study with a figure of every kind, and its report."""
    path = tmp_path_factory.mktemp("study")
    raw_results.write(path, raw_results.whole())
    write_report(path)
    return path


@pytest.fixture(scope="module")
def page(folder: Path) -> Page:
    return Page((folder / "report.html").read_text(encoding="utf-8"))


def test_the_page_is_well_formed_and_asks_for_nothing(page: Page) -> None:
    assert page.complaints == []
    assert page.foreign == []
    assert {"h1", "table", "svg", "details"} <= page.tags


def test_a_bad_page_is_found() -> None:
    bad = '<!doctype html><p id="a" onclick="x"><b>x</p><svg></svg><script></script><a href="#b">x</a><i id="a"></i>'
    found = " ".join(Page(bad).complaints)
    for what in ("</p> after ['b']", "never closed", "without words", "script", "leads nowhere", "id twice", "onclick"):
        assert what in found
    assert Page("<p></p>").complaints == ["no doctype"]
    links = '<!doctype html><a href="https://x.org/">x</a><a href="//x">x</a><a href="cells/a.json">x</a>'
    assert Page(links).foreign == ["https://x.org/", "//x"]


def test_every_number_stands_in_the_file_that_it_leads_to(page: Page, folder: Path) -> None:
    assert untraceable(page, folder) == []
    files = {link.href.partition("#")[0] for link in page.links if link.kind == "n"}
    assert {"study.json", "cells/crf-1.json", "cells/coupled-1.json", "cells/coupled-2.json"} <= files
    assert any(name.startswith("comparisons/") for name in files)


def test_a_number_from_nowhere_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"x": {"y/z": [93.456]}, "w": "1"}')
    start = '<!doctype html><a class="n" title="t" href="a.json'
    assert untraceable(Page(f'{start}#/x/y~1z/0">93.46</a>'), tmp_path) == []
    for rest in ('#/x/y~1z/0">93.47</a>', '#/x/y~1z/1">93.46</a>', '#/w">1</a>', 'x#/w">1</a>'):
        assert len(untraceable(Page(start + rest), tmp_path)) == 1


def test_every_plot_says_in_words_what_is_to_be_seen(page: Page) -> None:
    found = " | ".join(page.drawings)
    for what in (
        "from 9",
        "highest 9",
        "entropy",
        "largest gain",
        "calibration error",
        "Heat map of",
        "% errors among",
    ):
        assert what in found
    assert len(page.drawings) == 7


def test_what_users_bring_is_text_and_nothing_else(page: Page) -> None:
    for tag in raw_results.NASTY:
        assert " ".join(tag.split()) in page.text
    for text in ("<5> & more", 'zh.ud<&"', "the <dog>", "كتاب", "only <a> part & parcel", "guide <i>", "前文<"):
        assert text in page.text
    assert page.tags.isdisjoint({"em", "dog", "i", "my", "sequence", "script"} - {"em"})
    assert "Every method on <my>" in page.text


def test_failed_and_missing_runs_are_told_and_have_no_numbers(page: Page) -> None:
    table = page.section("t1")
    assert "failed: no memory for <5> & more" in table
    assert "1 of 2 seeds" in table
    assert table.count("never run") == 1
    assert "not run" in table
    assert not any("cells/guide-2.json#/scores" in link.href or "later" in link.href for link in page.links)
    assert "5 of 8 done, 1 failed, 2 not run" in page.section("run")


def test_the_papers_numbers_are_marked_as_other_data(tmp_path: Path, page: Page) -> None:
    assert "li2016 other data" in page.section("t1")
    assert "94.83" in page.section("t1")
    files = raw_results.whole(1)
    files["study.json"]["same_corpora_as_paper"] = True
    same = page_of(tmp_path, files).section("t1")
    assert "other data" not in same
    assert "as published" in same


CHANGES: dict[str, Callable[[dict[str, Any]], None]] = {
    "score": lambda cell: cell["scores"][raw_results.TARGET].update(accuracy=12.34),
    "history": lambda cell: cell["history"][3]["dev"].update({raw_results.TARGET: 12.34}),
    "rank": lambda cell: cell["ranks"][raw_results.TARGET]["kth_best"].__setitem__(1, 0.1234),
    "tag": lambda cell: cell["scores"][raw_results.TARGET]["per_tag"]["PRP$"].update(f=12.34),
    "confusion": lambda cell: cell["scores"][raw_results.TARGET]["confusion"][0].__setitem__(2, 1234),
    "calibration": lambda cell: cell["conversions"][raw_results.WAY]["calibration"]["bins"][4].__setitem__(3, 0.1234),
    "risk": lambda cell: cell["scores"][raw_results.TARGET]["risk"][9].__setitem__(1, 12.34),
    "mapping": lambda cell: cell["mapping"]["relations"][0].__setitem__(2, 1234),
    "confidence": lambda cell: cell["samples"][raw_results.WAY][0]["answer"][0].__setitem__(2, 0.0001234),
    "seconds": lambda cell: cell.update(seconds=1234.5),
}


@pytest.mark.parametrize("change", CHANGES)
def test_another_number_in_a_run_makes_another_page(change: str, tmp_path: Path) -> None:
    files = raw_results.whole(1)
    before = page_of(tmp_path, files)
    changed = copy.deepcopy(files)
    CHANGES[change](changed["cells/coupled-1.json"])
    after = page_of(tmp_path, changed)
    told = after.text + " ".join(after.drawings)
    expected = {"score": "12.34", "seconds": "1,234.5", "confusion": "1,234", "mapping": "1,234", "confidence": "0.00"}
    assert told != before.text + " ".join(before.drawings)
    assert expected.get(change, "12.3") in told or "0.1234" in told


def test_without_runs_everything_is_not_run(tmp_path: Path) -> None:
    page = page_of(tmp_path, {"study.json": raw_results.whole()["study.json"]})
    assert page.drawings == []
    assert page.text.count("not run") > len(KINDS)
    ours = [link.href for link in page.links if link.kind == "n" and not link.href.startswith("#")]
    assert {href.partition("/")[0] for href in ours} == {"study.json#"}


def test_an_empty_study_has_a_page(tmp_path: Path) -> None:
    page = page_of(tmp_path, raw_results.empty())
    assert "no tables" in page.text
    assert page.drawings == []


def test_the_same_results_make_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    raw_results.write(tmp_path, raw_results.whole())
    code = f"from pathlib import Path; from duilian.report import write_report; write_report(Path({str(tmp_path)!r}))"
    environment = os.environ | {"PYTHONHASHSEED": "12345", "TZ": "Asia/Shanghai", "PYTHONPATH": str(ROOT / "src")}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment, capture_output=True)
    assert (tmp_path / "report.html").read_bytes() == (folder / "report.html").read_bytes()
    assert not list(tmp_path.glob("*.new"))


def test_a_report_can_be_made_twice_from_the_same_folder(folder: Path) -> None:
    before = (folder / "report.html").read_bytes()
    assert write_report(folder).read_bytes() == before


def test_every_kind_of_figure_of_the_documents_can_be_drawn() -> None:
    text = (ROOT / "docs" / "studies.md").read_text(encoding="utf-8")
    rows = text.partition("| kind of figure |")[2].splitlines()[2:]
    named = set()
    for row in rows:
        if not row.startswith("|"):
            break
        named |= {name.strip("` ") for name in row.split("|")[1].split(",")}
    assert named == set(KINDS)


def test_an_unknown_kind_is_told(tmp_path: Path) -> None:
    files = raw_results.whole(1)
    files["study.json"]["figures"] = [{"id": "x", "kind": "hologram", "title": "Later", "caption": ""}]
    assert "cannot draw a figure of the kind hologram" in page_of(tmp_path, files).section("f1")


def test_a_figure_whose_runs_did_not_measure_it_says_so(tmp_path: Path) -> None:
    files = raw_results.whole(1)
    del files["cells/coupled-1.json"]["ranks"]
    page = page_of(tmp_path, files)
    assert "did not measure what it shows" in page.section("f3")


def test_one_point_and_huge_numbers_are_drawn(tmp_path: Path) -> None:
    files = raw_results.whole(1)
    cell = files["cells/coupled-1.json"]
    cell["history"] = cell["history"][:1]
    cell["seconds"] = 1e300
    page_of(tmp_path, files)


@pytest.mark.parametrize(
    ("text", "said"),
    [(None, "no such file"), ("{", "not a JSON file"), ('{"format": 99}', "format 1"), ("[]", "format 1")],
)
def test_a_folder_that_cannot_be_read_is_a_clear_error(text: str | None, said: str, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "study.json").write_text(text)
    with pytest.raises(DataError, match=said):
        write_report(tmp_path)


def test_a_missing_library_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw_results.write(tmp_path, raw_results.empty())
    monkeypatch.setattr(duilian.report, "NEEDED", ("matplotlib", "no_such_library"))
    with pytest.raises(UsageError, match=r"needs no_such_library: pip install 'duilian\[report\]'"):
        write_report(tmp_path)
    assert not (tmp_path / "report.html").exists()


def test_raw_results_are_left_alone(folder: Path) -> None:
    for name, content in raw_results.whole().items():
        assert json.loads((folder / name).read_text(encoding="utf-8")) == content


def test_many_missing_runs_are_named_in_one_place(tmp_path: Path) -> None:
    files = raw_results.whole(1)
    points = [{"cell": f"gone-{k}", "x": k, "path": "seconds"} for k in range(9)]
    points += [{"cell": "crf-1", "x": 10, "path": "seconds"}, {"cell": "guide-1", "x": 11, "path": "seconds"}]
    files["study.json"]["figures"] = [
        {"id": "c", "kind": "curve", "title": "Time", "caption": "", "series": [{"name": "time", "points": points}]}
    ]
    page = page_of(tmp_path, files)
    found = page.section("f1")
    assert "not run: 9 runs" in found
    assert "gone-0, gone-1" in found
    assert "failed: guide-1" in found
    assert f"time: {files['cells/crf-1.json']['seconds']:.2f} at 10" in page.drawings[0]


def test_settings_with_names_stand_in_their_order(tmp_path: Path) -> None:
    files = raw_results.whole(1)
    points = [{"cell": cell, "x": x, "path": "seconds"} for cell, x in (("coupled-1", "5K:5K"), ("crf-1", "1K:<9>"))]
    files["study.json"]["figures"] = [
        {"id": "c", "kind": "curve", "title": "N", "caption": "", "series": [{"name": "time", "points": points}],
         "x_title": "N':M'"}
    ]  # fmt: skip
    page = page_of(tmp_path, files)
    assert "positions 0 is 5K:5K, 1 is 1K:<9>" in page.drawings[0]
    assert page.section("f1").index("5K:5K") < page.section("f1").index("1K:<9>")


def test_a_setting_that_spans_orders_has_a_logarithmic_axis(tmp_path: Path) -> None:
    drawn = []
    for xs in ((1, 20, 40), (1, 5, 25)):
        files = raw_results.whole(2)
        cells = ("crf-1", "crf-2", "coupled-1")
        points = [{"cell": cell, "x": x, "path": "seconds"} for cell, x in zip(cells, xs, strict=True)]
        files["study.json"]["figures"] = [
            {"id": "c", "kind": "curve", "title": "N", "caption": "", "series": [{"name": "t", "points": points}]}
        ]
        page_of(tmp_path, files)
        html = (tmp_path / "report.html").read_text(encoding="utf-8")
        svg = html[html.index('<section id="f1"') :]
        marks = re.findall(r'transform="translate\(([\d.]+) [\d.]+\)" style="[^"]*var\(--s0\)', svg)[:3]
        drawn.append([float(x) for x in marks])
    (a, b, c), (d, e, f) = drawn
    assert (b - a) / (c - a) == pytest.approx(math.log(20) / math.log(40), abs=1e-3)
    assert (e - d) / (f - d) == pytest.approx(4 / 24, abs=1e-3)


def test_a_failed_row_tells_its_message_across_the_table(tmp_path: Path) -> None:
    files = raw_results.whole(1)
    for row in files["study.json"]["tables"][0]["rows"]:
        row["paper"] = {}
    page = page_of(tmp_path, files)
    assert page.section("t1").count("failed") == 1
    assert page.section("t1").count("not run") == 1
    assert "li2016" not in page.section("t1")
