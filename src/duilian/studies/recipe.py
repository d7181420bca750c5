"""What recipes are written in: runs that are shared by tables, rows, columns, figures; and what a study is.

recipe.run("coupled", [target, source], r=8)    the cells of a method, one for each seed; asked twice, made once
recipe.table(...), recipe.figure(...)           refer to these cells
recipe.plan(...)                                 the plan and its jobs
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from duilian.errors import UsageError
from duilian.methods import METHODS
from duilian.methods.learned import HandedOn
from duilian.settings import resolve
from duilian.studies.corpora import Corpora, SideData, described, piece_to_json
from duilian.studies.engine import Prepared
from duilian.studies.job import Conversion, Job, Text, answers, converts
from duilian.studies.results import Column, Figure, Paper, Plan, Row, Table

QUICK: dict[str, Any] = {
    "epochs": 4, "patience": 4, "rounds": 2, "grid": ("0", "0.4"), "pruning_epochs": 2, "folds": 2,
    "tagger_epochs": 2, "mapping_epochs": 2,
}  # fmt: skip
"""--quick: settings of every method that has them, unless the recipe says otherwise."""
MEASURES = {"pos": ("accuracy",), "seg": ("ws.f",), "segpos": ("ws.f", "joint.f")}
"""Task -> paths of its scores, the one that counts last."""
TITLES = {"accuracy": "accuracy", "ws.f": "words F", "joint.f": "words with tags F", "oov_recall": "new words"}
SAMPLED = 300
"""Sentences of a source's test part that are converted for samples where there is no gold."""


@dataclass(frozen=True)
class Kind:
    """A study: what it is called, what it can be about, and how its cells, tables and figures are made.

    tasks:   the first is the default
    hand:    kinds of corpora at hand that it takes by task, one for each that ``build`` wants; "" for none
    split:   of the Chinese Treebank
    stated:  (role, part) -> sentences that the paper states
    build:   the recipe, and corpora as ``hand`` has them; None where the user's have no gold on both sides
    """

    name: str
    title: str
    tasks: tuple[str, ...]
    hand: Mapping[str, tuple[str, ...]]
    build: Callable[[Recipe, Sequence[Corpora | None]], None]
    paper: Paper | None = None
    split: str = "joint"
    stated: Mapping[tuple[str, str], int] = field(default_factory=dict)


class Recipe:
    """Cells, tables and figures as they are collected."""

    def __init__(self, task: str, seeds: Sequence[int], quick: bool, out: Any = None) -> None:
        self.task, self.seeds, self.quick, self.out = task, tuple(seeds), quick, out
        self.tables: list[Table] = []
        self.figures: list[Figure] = []
        self.notes: list[str] = []
        self._jobs: dict[str, Job] = {}
        self._names: dict[str, str] = {}

    def run(
        self,
        method: str,
        sides: Sequence[SideData],
        conversions: Sequence[tuple[str, str]] = (),
        *,
        cross: Sequence[SideData] = (),
        extras: Sequence[str] = (),
        as_conversion: Sequence[tuple[str, str]] = (),
        corrected: bool = False,
        mark: str = "",
        **settings: Any,
    ) -> tuple[str, ...]:
        """The cells of a run, one for each seed. The same method, sides and settings are the same cells.

        conversions:   between which sides there is gold on both; those that the method cannot do are left out
        cross:         sides of other standards whose test text is tagged, too, and scored as it is
        as_conversion: conversions that a method which does not convert is compared with: it tags their text
        corrected:     converts over the target's words, too
        mark:          goes into the name of the cells
        """
        given = {key.rstrip("_"): value for key, value in settings.items()}
        if self.quick:
            known = settings_taken(method, given)
            given = {key: value for key, value in QUICK.items() if key in known} | given
        resolve(METHODS[method].settings, given, method)
        METHODS[method].check_names([side.name for side in sides], self.task)
        key = self._key(method, sides, given)
        if key not in self._jobs:
            name = self._name(method, sides, given, mark, key)
            self._jobs[key] = Job(name, method, self.task, 0, tuple(sides), given)
        job = self._jobs[key]
        tests = [Text(side.name, side.name, side.test) for side in sides[: answers(method, len(sides))] if side.test]
        tests += [Text(side.name, sides[0].name, side.test) for side in cross if side.test]
        names = [side.name for side in sides]
        able = [pair for pair in conversions if set(pair) <= set(names)]
        able = [pair for pair in able if converts(method, *map(names.index, pair))]
        part = {side.name: side.test for side in sides}
        found = [Conversion(a, b, part[a], part[b]) for a, b in able]
        if corrected:
            found += [Conversion(a, b, part[a], part[b], True) for a, b in able]
        if "samples" in extras and not found:
            for number, side in enumerate(sides[1:], 1):
                if converts(method, number, 0) and (side.test or side.dev):
                    piece = (side.test or side.dev)[0]
                    some = replace(piece, limit=min(SAMPLED, piece.limit or SAMPLED))
                    found.append(Conversion(side.name, names[0], (some,)))
        tests += [Text(f"{a}->{b}", b, sides[0].test) for a, b in as_conversion if b == names[0]]
        self._jobs[key] = replace(
            job,
            tests=_union(job.tests, tests),
            conversions=_union(job.conversions, found),
            extras=_union(job.extras, extras),
        )
        return tuple(f"{job.id}.s{seed}" for seed in self.seeds)

    def converted(self, runs: Sequence[str], target: SideData, source: SideData) -> SideData:
        """The target with the source's corpus, converted by the first seed of a run, as more training files."""
        made = tuple(replace(piece, made_by=(runs[0], source.name, target.name)) for piece in source.train)
        return replace(target, train=(*target.train, *made))

    def table(
        self, id: str, title: str, caption: str, columns: Sequence[Column], rows: Sequence[Row],
        compared: str | None = None,
    ) -> None:  # fmt: skip
        """Add a table. compared: the side or conversion that significance is tested on."""
        self.tables.append(Table(id, title, caption, tuple(columns), tuple(rows), compared))

    def figure(self, id: str, kind: str, title: str, caption: str, **refers: Any) -> None:
        """Add a figure."""
        self.figures.append(Figure(id, kind, title, caption, refers))

    def note(self, text: str) -> None:
        """Something that a reader must know."""
        if text not in self.notes:
            self.notes.append(text)

    def prepared(
        self, kind: Kind, corpora: Sequence[Corpora | None], command: str, facts: Mapping[str, Any]
    ) -> Prepared:
        """The plan and its jobs, those first whose models others need."""
        jobs = []
        for job in self._jobs.values():
            for seed in self.seeds:
                one = job.of_seed(seed, f"{job.id}.s{seed}")
                jobs.append(replace(one, sides=tuple(_of_seed(side, seed, self.seeds[0]) for side in one.sides)))
        needed = {need for job in jobs for need in job.needs}
        jobs = [replace(job, keep=job.id in needed) for job in jobs]
        sides, files = described([one for one in corpora if one is not None], self.task)
        count = {(side.role, part): 0 for side in sides for part in ("train", "dev", "test")}
        first = next(one for one in corpora if one is not None)
        role = {side.name: side.role for side in first.sides}
        for file in files:
            if file.side in role:
                count[role[file.side], file.part] += file.sentences
        same = bool(kind.stated) and not self.quick and all(count.get(k) == n for k, n in kind.stated.items())
        plan = Plan(
            kind.name, kind.title, self.task, self.seeds, self.quick, command, tuple(job.id for job in jobs),
            tuple(self.tables), tuple(self.figures), sides, files, kind.paper, same,
            facts["versions"], facts["commit"], facts["machine"], tuple(self.notes),
        )  # fmt: skip
        check_references(plan)
        return Prepared(plan, tuple(jobs))

    def _key(self, method: str, sides: Sequence[SideData], settings: Mapping[str, Any]) -> str:
        data = [
            [side.name, side.role, side.standard, *([piece_to_json(p) for p in side.part(k)] for k in ("train", "dev"))]
            for side in sides
        ]
        values = resolve(METHODS[method].settings, settings, method)
        return json.dumps([method, self.task, data, values], sort_keys=True, default=str)

    def _name(self, method: str, sides: Sequence[SideData], settings: Mapping[str, Any], mark: str, key: str) -> str:
        own = {name: value for name, value in settings.items() if not self.quick or QUICK.get(name) != value}
        parts = [method, "+".join(side.name for side in sides), mark]
        parts += [f"{name}={_text(value)}" for name, value in own.items()]
        name = re.sub(r"[^\w=,.+-]", "_", ".".join(part for part in parts if part))[:80]
        if self._names.setdefault(name, key) != key:
            name = f"{name[:72]}.{hashlib.sha256(key.encode()).hexdigest()[:6]}"
            self._names[name] = key
        return name


def settings_taken(method: str, given: Mapping[str, Any]) -> set[str]:
    """The settings that a method takes, those of its learner among them."""
    table = METHODS[method].settings
    names = {setting.name for setting in table if not isinstance(setting, HandedOn)}
    for setting in table:
        if setting.name == "learner":
            names |= {one.name for one in METHODS[given.get("learner", setting.default)].settings}
    return names


def _of_seed(side: SideData, seed: int, first: int) -> SideData:
    """The side with files that the cell of the same seed converts."""
    train = tuple(
        replace(piece, made_by=(f"{piece.made_by[0].removesuffix(f'.s{first}')}.s{seed}", *piece.made_by[1:]))
        if piece.made_by
        else piece
        for piece in side.train
    )
    return replace(side, train=train)


def _union(some: Sequence[Any], more: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys([*some, *more]))


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return str(value).rsplit("/", 1)[-1]


def check_references(plan: Plan) -> None:
    """Every cell that a table or figure speaks of is planned, and every row that one is compared with is there."""
    known = set(plan.cells)
    for table in plan.tables:
        rows = {row.id for row in table.rows}
        for row in table.rows:
            strange = [id for id in row.cells if id not in known]
            if strange or (row.against is not None and row.against not in rows) or len(row.cells) != len(plan.seeds):
                raise ValueError(f"table {table.id}, row {row.id}: refers to what is not planned: {strange}")
    for figure in plan.figures:
        strange = [id for id in figure.cells() if id not in known]
        if strange or not figure.cells():
            raise ValueError(f"figure {figure.id}: refers to what is not planned: {strange}")


def scored(task: str, side: str, title: str = "", which: Sequence[str] = ()) -> list[Column]:
    """Columns of the scores of a side, or of a conversion. which: instead of the task's own."""
    place = "conversions" if "->" in side else "scores"
    return [
        Column(
            f"{side}.{measure}", f"{title or side.replace('->', '→')} {TITLES.get(measure, measure)}",
            f"{place}.{side}.{measure}", "%", 2, "high",
        )
        for measure in which or MEASURES[task]
    ]  # fmt: skip


def main_key(task: str, side: str) -> str:
    """The key of the column that counts."""
    return f"{side}.{MEASURES[task][-1]}"


def on_dev(side: str, title: str = "") -> Column:
    """The dev score of the epoch that was kept."""
    return Column(f"dev.{side}", f"{title or side} dev", f"train.dev.{side}", "%", 2, "high")


def costs(side: str, of: str = "words") -> list[Column]:
    """Speed, time, memory, size."""
    return [
        Column("speed", f"{of}/s", f"tag.{side}.tokens_per_second", f"{of}/s", 0, "high"),
        Column("seconds", "seconds", "seconds", "s", 0, "low"),
        Column("memory", "memory", "peak_bytes", "MB", 0, "low", 1e-6),
        Column("model", "model", "train.model_bytes", "MB", 1, "low", 1e-6),
    ]


def check_task(kind: Kind, task: str | None) -> str:
    """The task that is asked for, or the study's own."""
    if task is None:
        return kind.tasks[0]
    if task not in kind.tasks:
        raise UsageError(f"study {kind.name} is about {', '.join(kind.tasks)}, not {task}.")
    return task
