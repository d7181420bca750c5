"""Plans of studies: every reference resolves, runs are shared, corpora are found or the error says what to give."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from commands import Run
from study_toys import asked, files, options, write
from toys import toy_sentences

from duilian.errors import DataError, SettingError, TaskError, UsageError
from duilian.studies import FILES, find
from duilian.studies import corpora as data
from duilian.studies.corpora import Given, Piece, SideData, at_hand, data_folder, size_of, with_conversions
from duilian.studies.job import Job, answers, converts
from duilian.studies.prepare import prepare
from duilian.studies.recipe import Recipe, check_references
from duilian.studies.results import Row, read_plan

EVERY = [(name, task) for name in FILES for task in find(name).tasks]


@pytest.mark.parametrize(("name", "task"), EVERY)
@pytest.mark.parametrize("quick", [False, True])
def test_every_recipe_refers_to_what_it_plans(name: str, task: str, quick: bool, tmp_path: Path) -> None:
    prepared = prepare(asked(name, tmp_path, task, seeds=2, quick=quick))
    plan = prepared.plan
    check_references(plan)
    assert len(plan.cells) == len(set(plan.cells)) == len(prepared.jobs)
    used = {id for table in plan.tables for row in table.rows for id in row.cells}
    used |= {id for figure in plan.figures for id in figure.cells()}
    used |= {need for job in prepared.jobs for need in job.needs}
    assert {id for id in plan.cells if id.endswith(".s1")} <= used  # nothing is run for nobody
    assert all(len(row.cells) == 2 for table in plan.tables for row in table.rows)
    assert len({table.id for table in plan.tables}) == len(plan.tables)
    assert len({figure.id for figure in plan.figures}) == len(plan.figures)
    (tmp_path / "plan.json").write_text(json.dumps(plan.to_json()))
    assert read_plan(tmp_path / "plan.json") == plan
    assert str(tmp_path) not in json.dumps({**plan.to_json(), "cells": [], "tables": [], "figures": []})


@pytest.mark.parametrize(("name", "task"), EVERY)
def test_columns_say_what_the_cells_of_their_rows_can_tell(name: str, task: str, tmp_path: Path) -> None:
    """Scores of a side or conversion stand in a column only if some row's cell makes them."""
    prepared = prepare(asked(name, tmp_path, task))
    for table in prepared.plan.tables:
        jobs = [prepared.job(row.cells[0]) for row in table.rows]
        made = {test.name for job in jobs for test in job.tests} | {one.name for job in jobs for one in job.conversions}
        for column in table.columns:
            place, _, rest = column.path.partition(".")
            if place in ("scores", "conversions"):
                assert any(rest.startswith(f"{name}.") for name in made), (table.id, column.path)
        if table.compared is not None:
            assert table.compared in made
        numbers = {key for row in table.rows for key in row.paper}
        assert numbers <= {column.key for column in table.columns}, table.id


def test_papers_have_numbers_where_their_text_has_them(tmp_path: Path) -> None:
    for name in ("li2015", "li2016", "jiang2012", "qiu2013"):
        plan = prepare(asked(name, tmp_path / name)).plan
        assert plan.paper is not None
        assert any(row.paper for table in plan.tables for row in table.rows), name
        assert not plan.same_corpora_as_paper
    plan = prepare(asked("correspondence", tmp_path / "c")).plan
    assert not any(row.paper for table in plan.tables for row in table.rows)


def test_the_same_corpora_are_told_by_the_counts_that_the_paper_states(tmp_path: Path, monkeypatch: Any) -> None:
    kind = find("li2015")
    counts = {("target", "train"): 12, ("target", "test"): 8, ("source", "train"): 14}
    monkeypatch.setattr("duilian.studies.li2015.KIND", replace(kind, stated=counts))
    assert prepare(asked("li2015", tmp_path)).plan.same_corpora_as_paper
    assert not prepare(asked("li2015", tmp_path, quick=True)).plan.same_corpora_as_paper
    monkeypatch.setattr("duilian.studies.li2015.KIND", replace(kind, stated={**counts, ("source", "test"): 9}))
    assert not prepare(asked("li2015", tmp_path)).plan.same_corpora_as_paper


def test_a_run_that_is_asked_for_twice_is_made_once(tmp_path: Path) -> None:
    sides = prepared_sides(tmp_path)
    recipe = Recipe("pos", [1, 2], False)
    one = recipe.run("coupled", sides)
    again = recipe.run("coupled", sides, r=("8",), extras=("ranks",))  # 8 is the default
    different = recipe.run("coupled", sides, r=(4,))
    assert one == again
    assert set(one).isdisjoint(different)
    assert len(recipe._jobs) == 2
    assert next(iter(recipe._jobs.values())).extras == ("ranks",)
    small = recipe.run("coupled", [sides[0], sides[1].beginning(3)])
    assert set(small).isdisjoint(one)


def test_a_misspelt_setting_stops_the_plan(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="Did you mean epochs"):
        Recipe("pos", [1], False).run("crf", prepared_sides(tmp_path)[:1], epoch=3)


def test_a_reference_to_nowhere_is_found(tmp_path: Path) -> None:
    plan = prepare(asked("all", tmp_path)).plan
    table = plan.tables[0]
    for row in (Row("x", "x", ("nowhere",)), Row("x", "x", table.rows[0].cells, "nobody"), Row("x", "x", ())):
        with pytest.raises(ValueError, match="not planned"):
            check_references(replace(plan, tables=(replace(table, rows=(row,)),)))
    with pytest.raises(ValueError, match="not planned"):
        check_references(replace(plan, figures=(replace(plan.figures[0], refers={"cell": "nowhere"}),)))


def test_conversion_is_scored_where_the_test_text_is_the_same(tmp_path: Path) -> None:
    both, alone = prepare(asked("all", tmp_path / "1")), prepare(asked("all", tmp_path / "2", gold=False))
    assert {table.id for table in both.plan.tables} >= {"conversion-b-a", "conversion-a-b"}
    assert {table.id for table in alone.plan.tables} == {"all"}
    assert any("b has no test part" in note for note in alone.plan.notes)
    assert any(row.id == "correspondence" for row in both.plan.tables[0].rows)
    assert not any(row.id == "correspondence" for row in alone.plan.tables[0].rows)


def test_other_words_are_the_same_text_for_segmentation_only(tmp_path: Path) -> None:
    one = write(tmp_path / "a.txt", [(["图书馆", "好"], ["n", "a"])])
    two = write(tmp_path / "b.txt", [(["图书", "馆", "好"], ["N", "N", "A"])])
    sides = tuple(
        SideData(name, role, (Piece(file),), (), (Piece(file),))
        for name, role, file in (("a", "target", one), ("b", "source", two))
    )
    assert with_conversions(data.Corpora(sides), "pos").conversions == ()
    assert with_conversions(data.Corpora(sides), "segpos").conversions == (("a", "b"), ("b", "a"))


def test_a_table_without_gold_on_both_sides_is_left_out_and_told(tmp_path: Path) -> None:
    plan = prepare(asked("li2015", tmp_path, gold=False)).plan
    assert "conversion" not in {table.id for table in plan.tables}
    assert any("Table 5" in note for note in plan.notes)
    with pytest.raises(DataError, match="gold on both sides"):
        prepare(asked("correspondence", tmp_path / "c", gold=False))


def test_quick_is_said_and_smaller(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(data, "QUICK", {"target": 5, "source": 6, "dev": 2, "test": 3})
    plan = prepare(asked("all", tmp_path, quick=True)).plan
    assert plan.quick
    assert any(note.startswith("quick:") for note in plan.notes)
    assert {(file.side, file.part): file.sentences for file in plan.files} == {
        ("a", "train"): 5, ("a", "dev"): 2, ("a", "test"): 3, ("b", "train"): 6, ("b", "dev"): 2, ("b", "test"): 3,
    }  # fmt: skip


def test_what_decides_a_cell_is_in_its_hash(tmp_path: Path) -> None:
    def job(**more: Any) -> Job:
        return prepare(asked("all", tmp_path, **more)).jobs[0]

    first = job().inputs({})
    assert job().inputs({}) == first
    assert job(threads=2).inputs({}) == first
    assert replace(job(), seed=2).inputs({}) != first
    assert replace(job(), settings={"epochs": 3}).inputs({}) != first
    sides = job().sides
    write(Path(sides[0].train[0].path), toy_sentences(11))
    assert replace(job(), sides=sides).inputs({}) == first  # asking wrote the files anew
    write(Path(sides[0].train[0].path), toy_sentences(11))
    assert replace(prepare_again(tmp_path), sides=sides).inputs({}) != first


def prepare_again(folder: Path) -> Job:
    """The first job over the files as they are now."""
    from duilian.studies.job import Job as J

    found = SideData("a", "target", (Piece(str(folder / "toys" / "a-train.txt")),))
    return J("x", "crf", "pos", 1, (found,))


def test_a_job_travels_as_json(tmp_path: Path) -> None:
    for job in prepare(asked("all", tmp_path)).jobs:
        back = Job.from_json(json.loads(json.dumps(job.to_json())))
        assert back.to_json() == job.to_json()
        assert back.needs == job.needs


def test_methods_answer_and_convert_as_their_table_says() -> None:
    assert [answers(name, 2) for name in ("crf", "guide", "coupled", "multitask")] == [1, 1, 2, 2]
    assert converts("guide", 1, 0)
    assert not converts("guide", 0, 1)
    assert converts("transform", 0, 1)
    assert not converts("coupled", 1, 1)
    assert not converts("merge", 1, 0)


def test_a_converted_file_names_the_cell_that_converts_it(tmp_path: Path) -> None:
    prepared = prepare(asked("all", tmp_path, seeds=2))
    row = prepared.plan.tables[0].row("converted")
    coupled = prepared.plan.tables[0].row("coupled")
    assert [prepared.job(id).needs for id in row.cells] == [(id,) for id in coupled.cells]
    assert all(prepared.job(id).keep for id in coupled.cells)
    order = [job.id for job in prepared.jobs]
    assert order.index(coupled.cells[1]) < order.index(row.cells[1])


def test_without_a_folder_the_error_says_what_to_give(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.delenv("DUILIAN_DATA", raising=False)
    with pytest.raises(DataError, match=r"neither --data nor .*DUILIAN_DATA.*zh_ud, en_ewt and ja_gsd.*--target"):
        data_folder(None)
    with pytest.raises(DataError, match=r"no such folder \(--data"):
        data_folder(tmp_path / "nowhere")
    monkeypatch.setenv("DUILIAN_DATA", str(tmp_path / "elsewhere"))
    with pytest.raises(DataError, match=r"elsewhere.*DUILIAN_DATA names it"):
        data_folder(None)
    with pytest.raises(DataError, match=r"en_ewt-train.conllu: there is no such file.*CC BY-SA.*--data"):
        at_hand("en", tmp_path, tmp_path / "out")


def test_corpora_at_hand_are_cut_into_disjoint_halves(tmp_path: Path, data_folder: Path) -> None:
    found = at_hand("ja", data_folder, tmp_path)
    assert found.conversions == (("unidic-luw", "unidic-suw"), ("unidic-suw", "unidic-luw"))
    assert [size_of(side.train[0])[0] for side in found.sides] == [254, 253]
    assert [size_of(side.test[0])[0] for side in found.sides] == [543, 543]
    halves = at_hand("zh-halves", data_folder, tmp_path)
    assert [size_of(side.train[0])[0] for side in halves.sides] == [2000, 1997]
    texts = [{"".join(words) for words in side.train[0].read("x").words()} for side in halves.sides]
    assert len(texts[0] & texts[1]) < 20  # a few headlines come twice in the corpus itself


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"sources": ()}, UsageError, "--source is missing"),
        ({"tests": ()}, UsageError, "--test a=FILE is missing"),
        ({"devs": (Given("c", None, ("x",)),)}, UsageError, "no such side; sides are a, b"),
        ({"task": "parse"}, UsageError, "pos, seg, segpos, not parse"),
        ({"targets": (Given("a", None, ("nowhere.txt",)),)}, DataError, "nowhere.txt: there is no such file"),
        ({"targets": (), "sources": ()}, UsageError, "belong to --target"),
        ({"sources": (Given("a", None, ("x",)),)}, UsageError, "not both"),
    ],
)
def test_misuse_says_what_is_possible(tmp_path: Path, change: dict[str, Any], error: Any, says: str) -> None:
    with pytest.raises(error, match=says):
        prepare(replace(asked("all", tmp_path), **change))


def test_commands_end_with_2_when_misused(tmp_path: Path, run: Run) -> None:
    code, _, said = run("study", "li2015", "--task", "seg", "--out", tmp_path, *options(tmp_path))
    assert code == 2
    assert "li2015 is about pos, not seg" in said
    code, _, said = run("study", "all", "--target", "a=x", "--out", tmp_path)
    assert code == 2
    assert "--source is missing" in said
    code, _, said = run("study", "nothing", "--out", tmp_path)
    assert code == 2
    code, _, said = run("study", "report", tmp_path / "nowhere")
    assert code == 1
    assert "no such file" in said


def test_a_side_with_a_standard_is_checked(tmp_path: Path) -> None:
    found = files(tmp_path)
    side = SideData("pku", "target", (Piece(found["b-train"]),), standard="pku")
    with pytest.raises(Exception, match="give the side a name that is no standard's"):
        data.read_side(side, "pos")
    assert data.read_side(side, "seg").standard is None


def test_a_method_is_not_asked_for_too_many_sides(tmp_path: Path) -> None:
    sides = prepared_sides(tmp_path)
    with pytest.raises(UsageError, match="transform takes 2 sides"):
        Recipe("pos", [1], False).run("transform", [*sides, replace(sides[1], name="c")])
    with pytest.raises(TaskError):
        Recipe("seg", [1], False).run("hmm", sides[:1])


def prepared_sides(folder: Path) -> list[SideData]:
    """The sides of the toys."""
    found = files(folder / "toys")
    return [
        SideData("a", "target", (Piece(found["a-train"]),), (), (Piece(found["a-test"]),)),
        SideData("b", "source", (Piece(found["b-train"]),), (), (Piece(found["b-test"]),)),
    ]


def test_quick_settings_go_to_methods_that_take_them(tmp_path: Path) -> None:
    jobs = {job.method: job for job in prepare(asked("all", tmp_path, quick=True)).jobs}
    assert jobs["merge"].settings == {"epochs": 4, "patience": 4}  # its learner hmm has rounds, its learner crf has not
    assert jobs["transform"].settings["rounds"] == 2
    assert "epochs" not in jobs["hmm"].settings
