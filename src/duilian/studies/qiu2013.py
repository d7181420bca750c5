"""Study `qiu2013`: multi-task learning across a loose mapping, both ways (Table 5) and one way (Table 7).

Paper: Qiu, Zhao, Huang 2013: joint F on CTB5 and the PKU part of the SIGHAN Bakeoff 2008. Table 6 is the same with
another target (the Bakeoff's CTB): run this study with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from duilian.studies.corpora import Corpora
from duilian.studies.recipe import Kind, Recipe, costs, on_dev
from duilian.studies.results import Column, Paper, Row

TITLE = "Joint Chinese Word Segmentation and POS Tagging on Heterogeneous Annotated Corpora with Multiple Task Learning"
AS_PRINTED: dict[str, Any] = {
    "templates": "c-2;c-1;c0;c+1;c+2;c-1 c0;c0 c+1", "C": 0.01, "help": 1.0, "average": "passes", "margin": "one",
    "dropout": 0.0, "hide": 0.0,
}  # fmt: skip
"""Section 6 and Tables 4 and 5 there, as far as our settings can say it."""
PASSES = 50


def build(recipe: Recipe, pairs: Sequence[Corpora | None]) -> None:
    """Tables 5 and 7."""
    (corpora,) = pairs
    assert corpora is not None
    target, source = corpora.target, corpora.sources[0]
    both, task = [target, source], recipe.task
    numbers = ("joint.p", "joint.r", "joint.f") if task == "segpos" else ("accuracy",)
    columns = [*three(target.name, numbers), *three(source.name, numbers)]

    def paper(side: str, *values: float) -> dict[str, float]:
        return {f"{side}.{key}": value for key, value in zip(numbers, values, strict=True)} if task == "segpos" else {}

    one, other = recipe.run("pa", [target]), recipe.run("pa", [source])
    ours = recipe.run("multitask", both)
    alone = [
        Row("target", f"one side, {target.name}", one, paper=paper(target.name, 93.28, 93.35, 93.31)),
        Row(
            "source",
            f"one side, {source.name}",
            other,
            paper=paper(source.name, 89.41, 88.58, 88.99),
            paths={"speed": f"tag.{source.name}.tokens_per_second"},
        ),
    ]
    both_numbers = paper(target.name, 94.74, 95.11, 94.92) | paper(source.name, 90.25, 89.73, 89.99)
    rows = [*alone, Row("both", "multi-task, our settings", ours, "target", paper=both_numbers)]
    if task == "segpos":
        passes: dict[str, Any] = {} if recipe.quick else {"epochs": PASSES, "patience": PASSES}
        printed = recipe.run("multitask", both, mark="as-printed", **AS_PRINTED, **passes)
        rows.append(Row("printed", "multi-task, settings of the paper", printed, "target", paper=both_numbers))
    recipe.table("both", "Table 5: both ways", "Test parts; p: against one side on the target.",
                 [*columns, *costs(target.name)], rows, target.name)  # fmt: skip
    one_way = recipe.run("multitask", both, direction="one-way")
    one_numbers = paper(target.name, 93.86, 94.73, 94.29) | paper(source.name, 90.05, 89.28, 89.66)
    automatic = recipe.run("multitask", both, mapping="automatic") if task != "seg" else ours
    recipe.table(
        "one-way", "Table 7: one way, and a counted mapping",
        f"One way: {source.name} helps {target.name} and is learnt by itself. Counting a mapping is its future work.",
        [on_dev(target.name), *columns, *costs(target.name)],
        [
            *alone,
            Row("one-way", "one way", one_way, "target", paper=one_numbers),
            Row("both", "both ways", ours, "target", paper=both_numbers),
            Row("automatic", "both ways, mapping counted from taggers' answers", automatic, "target"),
        ],
        target.name,
    )  # fmt: skip
    if target.dev:
        recipe.figure(
            "learning", "learning-curve", "Passes", f"Dev score of {target.name} after each pass.",
            series=[{"name": "one side", "cell": one[0]}, {"name": "one way", "cell": one_way[0]},
                    {"name": "both ways", "cell": ours[0]}],
            path=f"dev.{target.name}", x_title="pass", y_title=numbers[-1],
        )  # fmt: skip
    first = {"baseline": one[0], "system": ours[0], "side": target.name}
    recipe.figure("per-tag", "per-tag", "F of single tags", "One side and multi-task.", **first)
    recipe.figure("words", "word-gains", "Words gained and lost", "One side and multi-task.", **first)
    recipe.note("Table 6 is this study with another target: give the Bakeoff's CTB as --target, --dev and --test.")


def three(side: str, measures: Sequence[str]) -> list[Column]:
    """Precision, recall and F of words with tags, or accuracy."""
    titles = {"joint.p": "P", "joint.r": "R", "joint.f": "F", "accuracy": "accuracy"}
    return [Column(f"{side}.{m}", f"{side} {titles[m]}", f"scores.{side}.{m}", "%", 2, "high") for m in measures]


KIND = Kind(
    "qiu2013",
    TITLE,
    ("segpos", "pos"),
    {"segpos": ("zh",), "pos": ("zh",)},
    build,
    Paper("qiu2013", TITLE, 2013),
    "joint",
)
