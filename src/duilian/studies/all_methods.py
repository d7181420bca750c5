"""Study `all`: every method that the task allows on one pair of corpora: which road on my data?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from duilian.methods import METHODS
from duilian.studies.corpora import Corpora, SideData
from duilian.studies.recipe import Kind, Recipe, costs, main_key, scored
from duilian.studies.results import Column, Row

ONE_SIDE = ("crf", "perceptron", "pa", "hmm")
SEVERAL = ("merge", "guide", "adapt", "transform", "multitask", "correspondence", "coupled")
ABOUT = {
    "merge": "all corpora in one, as if of one standard", "guide": "labels of the other standard as features",
    "adapt": "the same by perceptrons", "transform": "the source transformed, round by round",
    "multitask": "features help each other across a mapping", "correspondence": "HMM and label correspondence",
    "coupled": "bundles of labels",
}  # fmt: skip


def fitting(method: str, sides: Sequence[SideData]) -> list[SideData]:
    """As many of the sides as a method takes."""
    most = METHODS[method].sides[1]
    return list(sides[:most])


def build(recipe: Recipe, pairs: Sequence[Corpora | None]) -> None:
    """One table of all methods; significance against the target's own CRF."""
    (corpora,) = pairs
    assert corpora is not None
    task, target, sources = recipe.task, corpora.target, corpora.sources
    conversions = corpora.conversions
    runs: dict[str, tuple[str, ...]] = {}
    rows: list[Row] = []

    def row(id: str, title: str, cells: tuple[str, ...], **more: Any) -> None:
        runs[id] = cells
        rows.append(Row(id, title, cells, "crf" if rows else None, **more))

    for method in ONE_SIDE:
        if task in METHODS[method].tasks:
            row(method, f"{method}, {target.name} alone", recipe.run(method, [target]))
    for method in SEVERAL:
        if task not in METHODS[method].tasks or (method == "correspondence" and not conversions):
            continue
        sides = fitting(method, corpora.sides)
        extras = ("samples", "mapping") if METHODS[method].converts else ()
        if method == "coupled":
            extras = (*extras, "ranks")
        note = None
        if len(sides) < len(corpora.sides):
            note = f"with {sides[1].name} alone: {method} takes {len(sides)} sides"
        cells = recipe.run(method, sides, conversions, extras=extras)
        row(method, f"{method}: {ABOUT[method]}", cells, note=note)
    more = target
    for source in sources:
        more = recipe.converted(runs["coupled"], more, source)
    row("converted", "crf, with what coupled converts", recipe.run("crf", [more], mark="converted"))

    columns = [
        *scored(task, target.name),
        Column("oov", "new words", f"scores.{target.name}.oov_recall", "%", 2, "high"),
    ]
    for source in sources:
        columns += scored(task, source.name) if source.test else []
    for pair in conversions:
        columns += scored(task, "->".join(pair))[-1:]
    recipe.table(
        "all", "All methods", f"Scores on the test part of {target.name}; p: against crf on {target.name} alone.",
        [*columns, *costs(target.name)], rows, target.name,
    )  # fmt: skip
    for source in sources:
        if not source.test:
            recipe.note(f"{source.name} has no test part: nothing is scored on it. Give --test {source.name}=FILE.")
            continue
        own = recipe.run("crf", [source])
        beside = [Row("crf", f"crf, {source.name} alone", own)]
        for method in ("multitask", "coupled"):
            if method in runs and source in fitting(method, corpora.sides):
                beside.append(Row(method, method, runs[method], "crf"))
        recipe.table(
            f"source-{source.name}", f"The other side: {source.name}", f"Scores on the test part of {source.name}.",
            [*scored(task, source.name), *costs(source.name)], beside, source.name,
        )  # fmt: skip
    for one, other in conversions:
        conversion_table(recipe, corpora, runs, one, other)
    figures(recipe, corpora, runs)


def conversion_table(recipe: Recipe, corpora: Corpora, runs: dict[str, tuple[str, ...]], one: str, other: str) -> None:
    """Methods that convert from one side to another, against a tagger that does not look at what is given."""
    name, names = f"{one}->{other}", [side.name for side in corpora.sides]
    target = corpora.side(other)
    rows = [Row("crf", "crf, which sees the text alone", recipe.run("crf", [target], as_conversion=[(one, other)]))]
    for method in SEVERAL:
        if (
            method in runs
            and METHODS[method].converts
            and {one, other} <= {s.name for s in fitting(method, corpora.sides)}
        ):
            if method in ("guide", "adapt", "correspondence") and names.index(other) > 0:
                continue
            rows.append(Row(method, method, runs[method], "crf"))
    columns = [*scored(recipe.task, name), Column("ece", "ECE", f"conversions.{name}.calibration.ece", "", 4, "low")]
    columns.append(Column("rate", "words/s", f"tag.{name}.tokens_per_second", "words/s", 0, "high"))
    recipe.table(
        f"conversion-{one}-{other}", f"Conversion, {one} to {other}",
        "What is given is gold; scores on the test text, which has gold on both sides.", columns, rows, name,
    )  # fmt: skip


def figures(recipe: Recipe, corpora: Corpora, runs: dict[str, tuple[str, ...]]) -> None:
    """What the report shows of the first seed."""
    target, task = corpora.target.name, recipe.task
    first = {id: cells[0] for id, cells in runs.items()}
    if corpora.target.dev:
        recipe.figure(
            "learning", "learning-curve", "Learning curves", f"Dev score of {target} after each epoch or round.",
            series=[{"name": id, "cell": first[id]} for id in ("crf", "transform", "coupled") if id in first],
            path=f"dev.{target}", x_title="epoch", y_title=main_key(task, target),
        )  # fmt: skip
    pair = {"baseline": first["crf"], "system": first["coupled"], "side": target}
    if task != "seg":
        recipe.figure("per-tag", "per-tag", "F of single tags", "coupled beside crf: the largest changes.", **pair)
        recipe.figure("confusion", "confusion", "Confusions", "coupled", cell=first["coupled"], side=target)
        recipe.figure(
            "mapping", "mapping", "Learned mapping", "Labels that the coupled model pairs.", cell=first["coupled"]
        )
    recipe.figure("words", "word-gains", "Words gained and lost", "coupled beside crf.", **pair)
    recipe.figure(
        "calibration", "calibration", "Calibration", f"coupled on {target}.", cell=first["coupled"], side=target
    )
    recipe.figure(
        "risk", "risk-coverage", "Risk and coverage", "Errors left if only the surest words are kept.", side=target,
        series=[{"name": id, "cell": first[id]} for id in ("crf", "guide", "multitask", "coupled") if id in first],
    )  # fmt: skip
    recipe.figure(
        "ranks", "rank-probabilities", "Candidates", "Mean probability of the k-th best label.",
        series=[{"name": one.name, "cell": first["coupled"], "side": one.name} for one in corpora.sides if one.test],
    )  # fmt: skip
    source = corpora.sources[0].name
    recipe.figure(
        "samples", "samples", "Converted sentences", f"coupled, {source} to {target}.", cell=first["coupled"],
        conversion=f"{source}->{target}",
    )  # fmt: skip


KIND = Kind(
    "all",
    "Every method on one pair of corpora",
    ("pos", "seg", "segpos"),
    {"pos": ("zh",), "seg": ("zh",), "segpos": ("zh",)},
    build,
)
