"""Study `jiang2012`: cross-corpus loss, merging, adaptation and transformation, rounds, predict-self, final.

Paper: Jiang, Meng, Liu, Lü 2012: F of words on CTB5 with the People's Daily. Perceptrons and the features of its
Table 1 throughout. "Small source": the beginning of the source with as many words as the target (SPD there).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from duilian.studies.corpora import Corpora, SideData, size_of
from duilian.studies.recipe import MEASURES, Kind, Recipe, costs, on_dev, scored
from duilian.studies.results import Column, Paper, Row

TITLE = "Iterative Annotation Transformation with Predict-Self Reestimation for Chinese Word Segmentation"
LEARNER: dict[str, Any] = {"learner": "perceptron", "templates": "jiang2012"}
ROUNDS = 10
RATIOS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
"""Weights of the way back in Figure 2; the paper goes by 0.05."""


def small(source: SideData, target: SideData) -> SideData:
    """The beginning of a source with about as many words as the target has."""
    wanted = sum(size_of(piece)[1] for piece in target.train)
    sentences, words = size_of(source.train[0])
    return source if words <= wanted else source.beginning(max(1, round(sentences * wanted / words)))


def build(recipe: Recipe, pairs: Sequence[Corpora | None]) -> None:
    """Tables 4 to 6, Figures 1 to 3."""
    (corpora,) = pairs
    assert corpora is not None
    target, full = corpora.target, corpora.sources[0]
    source, task = small(full, target), recipe.task
    both = [target, source]
    words = f"{target.name}.ws.f"
    column = scored(task, target.name)
    base = recipe.run("perceptron", [target], templates="jiang2012", cross=[source])
    other = recipe.run("perceptron", [source], templates="jiang2012", cross=[target], mark="small")
    recipe.table(
        "cross", "Table 4: across corpora", f"{source.name}: its beginning, of the target's size. Segmentation alone.",
        [*scored(task, target.name, which=("ws.f",)), *scored(task, source.name, which=("ws.f",))],
        [
            Row("target", f"trained on {target.name}", base, paper={words: 97.35, f"{source.name}.ws.f": 86.65}),
            Row("source", f"trained on {source.name}", other, paper={words: 91.23, f"{source.name}.ws.f": 94.25}),
        ],
    )  # fmt: skip
    merge = recipe.run("merge", both, mark="small", **LEARNER)
    adapt = recipe.run("adapt", both, mark="small", **LEARNER)
    once = recipe.run("transform", both, mark="small", rounds=1, reestimation=False, **LEARNER)
    time = Column("time", "tagging the test part", f"tag.{target.name}.seconds", "s", 2, "low")
    recipe.table(
        "compared", "Table 5: merging, adaptation, transformation", "Small source; one round, no predict-self.",
        [time, *column, *costs(target.name)],
        [
            Row("base", "baseline", base, paper={"time": 1.21, words: 97.35}),
            Row("merge", "merging", merge, "base", paper={"time": 1.33, words: 93.79}),
            Row("adapt", "annotation adaptation", adapt, "base", paper={"time": 4.39, words: 97.67}),
            Row("once", "annotation transformation", once, "base", paper={"time": 1.33, words: 97.69}),
        ],
        target.name,
    )  # fmt: skip
    long: dict[str, Any] = {"rounds": ROUNDS, "round_patience": ROUNDS} if not recipe.quick else {}
    rounds = recipe.run("transform", both, mark="small", reestimation=False, **long, **LEARNER)
    final = recipe.run("transform", both, mark="small", extras=("samples", "mapping"), **long, **LEARNER)
    ratios = {
        ratio: recipe.run("transform", both, mark="small", rounds=1, lambda_=str(ratio), **LEARNER) for ratio in RATIOS
    }
    filtered = recipe.run("transform", both, mark="small", rounds=1, reestimation=False, filtration=True, **LEARNER)
    curves(recipe, target, rounds, final, once, ratios, filtered)
    far = recipe.run("adapt", [target, full], **LEARNER)
    best = recipe.run("transform", [target, full], extras=("samples",), **LEARNER)
    recipe.table(
        "final", "Table 6: final", "Iterative transformation with predict-self reestimation against adaptation.",
        [time, *column, *costs(target.name)],
        [
            Row("base", "baseline", base, paper={words: 97.35}),
            Row("adapt", "small source: adaptation", adapt, "base", paper={"time": 4.39, words: 97.67}),
            Row("transform", "small source: transformation", final, "base", paper={"time": 1.33, words: 97.97}),
            Row("far", "full source: adaptation", far, "base", paper={"time": 4.76, words: 98.15}),
            Row("best", "full source: transformation", best, "base", paper={"time": 1.37, words: 98.43}),
        ],
        target.name,
    )  # fmt: skip
    recipe.figure("words", "word-gains", "Words gained and lost", "Full source, transformation beside the baseline.",
                  baseline=base[0], system=best[0], side=target.name)  # fmt: skip
    recipe.figure("samples", "samples", "Transformed sentences", f"{full.name} to {target.name}.", cell=best[0],
                  conversion=f"{full.name}->{target.name}")  # fmt: skip


def curves(
    recipe: Recipe, target: SideData, rounds: tuple[str, ...], final: tuple[str, ...], once: tuple[str, ...],
    ratios: dict[float, tuple[str, ...]], filtered: tuple[str, ...],
) -> None:  # fmt: skip
    """Figures 1 to 3, and Figure 2 as a table."""
    measure = MEASURES[recipe.task][-1]
    rows = [Row("once", "no predict-self", once), Row("filtered", "filtration", filtered, "once")]
    rows += [Row(f"r{ratio:g}", f"reestimation, lambda = {ratio:g}", cells, "once") for ratio, cells in ratios.items()]
    rows += [
        Row("rounds", f"{ROUNDS} rounds", rounds, "once"),
        Row("final", f"{ROUNDS} rounds, reestimation", final, "once"),
    ]
    recipe.table(
        "predict-self", "Figures 1 to 3: predict-self and rounds",
        "Small source; one round where nothing else is said.",
        [on_dev(target.name), *scored(recipe.task, target.name), *costs(target.name)[1:2]], rows, target.name,
    )  # fmt: skip
    if not target.dev:
        return
    path = f"train.dev.{target.name}"
    recipe.figure(
        "rounds", "learning-curve", "Figure 1: rounds of transformation",
        "Dev score of the classifier after each round.",
        series=[{"name": "iterative", "cell": rounds[0]}], path=f"dev.{target.name}", x_title="round", y_title=measure,
    )  # fmt: skip
    recipe.figure(
        "lambda", "curve", "Figure 2: predict-self", "Dev score after one round.", x_title="lambda", y_title=measure,
        series=[{"name": "reestimation",
                 "points": [{"cell": cells[0], "x": ratio, "path": path} for ratio, cells in ratios.items()]}],
        lines=[{"name": "filtration", "cell": filtered[0], "path": path},
               {"name": "transformation", "cell": once[0], "path": path}],
    )  # fmt: skip
    recipe.figure(
        "both", "learning-curve", "Figure 3: rounds with and without reestimation", "Dev score after each round.",
        series=[{"name": "iterative", "cell": rounds[0]}, {"name": "with reestimation", "cell": final[0]}],
        path=f"dev.{target.name}", x_title="round", y_title=measure,
    )  # fmt: skip


KIND = Kind(
    "jiang2012",
    TITLE,
    ("seg", "segpos"),
    {"seg": ("zh",), "segpos": ("zh",)},
    build,
    Paper("jiang2012", TITLE, 2012),
    "joint",
)
