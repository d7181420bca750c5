"""Study `li2016`: r and lambda of online and offline pruning, main results with speed, what pruning sees.

Paper: Li, Chao, Zhang, Yang 2016. Its numbers are on CTB5 with January of the People's Daily.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from duilian.studies.corpora import Corpora, SideData
from duilian.studies.li2015 import rule_files
from duilian.studies.recipe import MEASURES, Kind, Recipe, costs, on_dev, scored
from duilian.studies.results import Column, Paper, Row

Limits = tuple[int, float, tuple[float, float, float, float]]
"""r, lambda, and the paper's dev accuracies (CTB, PD) and mean numbers of tags (CTB, PD)."""

TUNING: dict[str, dict[str, tuple[Limits, ...]]] = {
    "pos": {  # Table 2
        "online": (
            (2, 0.98, (94.25, 95.03, 2.0, 2.0)), (4, 0.98, (95.06, 95.66, 3.9, 4.0)),
            (8, 0.98, (95.14, 95.83, 6.3, 7.4)), (16, 0.98, (95.12, 95.81, 7.8, 14.1)),
            (8, 0.90, (95.15, 95.79, 3.7, 6.3)), (8, 0.95, (95.13, 95.82, 5.1, 7.1)),
            (8, 0.99, (95.15, 95.74, 7.4, 7.9)), (8, 1.00, (95.15, 95.76, 8.0, 8.0)),
        ),
        "offline": (
            (8, 0.9999, (94.95, 96.05, 4.1, 5.1)), (16, 0.9999, (95.15, 96.09, 5.2, 7.6)),
            (32, 0.9999, (95.13, 96.09, 5.5, 9.3)), (16, 0.99, (94.42, 95.77, 1.6, 2.2)),
            (16, 0.999, (95.02, 96.10, 2.6, 4.0)), (16, 0.99999, (95.10, 96.09, 6.8, 8.9)),
        ),
    },
    "segpos": {  # Table 4
        "online": (
            (8, 1.00, (90.41, 89.91, 8.0, 8.0)), (16, 0.95, (90.65, 90.22, 15.9, 16.0)),
            (16, 0.99, (90.77, 90.49, 16.0, 16.0)), (16, 1.00, (90.79, 90.49, 16.0, 16.0)),
        ),
        "offline": (
            (8, 0.995, (91.22, 91.62, 2.6, 3.1)), (16, 0.995, (91.66, 91.85, 3.2, 4.3)),
            (32, 0.995, (91.67, 91.87, 3.5, 5.6)), (16, 0.95, (90.69, 91.30, 1.6, 2.1)),
            (16, 0.99, (91.64, 91.92, 2.5, 3.5)), (16, 0.999, (91.62, 91.75, 5.1, 6.4)),
        ),
    },
}  # fmt: skip
CHOSEN = {
    "pos": {"online": (8, 0.98), "offline": (16, 0.9999)},
    "segpos": {"online": (16, 1.0), "offline": (16, 0.995)},
}
"""What the paper's main results are with."""
MAIN: dict[str, dict[str, tuple[float, ...]]] = {
    "pos": {  # Table 3: CTB5-test, PD-test, tokens/s
        "offline": (94.83, 95.90, 246), "online": (94.74, 95.95, 365), "none": (94.58, 95.79, 3),
        "relaxed": (94.63, 95.87, 127), "guide": (94.35, 95.63, 584), "baseline": (94.07, 95.82, 1573),
    },
    "segpos": {  # Table 5: words and words with tags F on CTB5-test, the same on PD-test, characters/s
        "offline": (95.55, 90.58, 96.12, 92.44, 115), "online": (94.94, 89.58, 95.60, 91.56, 26),
        "guide": (95.07, 89.79, 95.66, 91.61, 27), "baseline": (94.88, 89.49, 96.28, 92.47, 119),
    },
}  # fmt: skip
PREFERRED = {"pos": "accuracy", "segpos": "joint.f"}


def build(recipe: Recipe, pairs: Sequence[Corpora | None]) -> None:
    """Tables 2 and 3, or 4 and 5; Figures 3 and 4."""
    (corpora,) = pairs
    assert corpora is not None
    target, source = corpora.target, corpora.sources[0]
    both, task = [target, source], recipe.task
    runs = tuning(recipe, target, source)
    baseline, alone = recipe.run("crf", [target]), recipe.run("crf", [source])
    guide, other_guide = recipe.run("guide", both), recipe.run("guide", [source, target])
    coupled = {way: runs[way, *CHOSEN[task][way]] for way in ("offline", "online")}
    there = {"speed": f"tag.{source.name}.tokens_per_second"}
    rows = [
        Row("baseline", f"baseline, {target.name}", baseline, paper=paper(task, target, None, "baseline")),
        Row("source", f"baseline, {source.name}", alone, paper=paper(task, None, source, "baseline"), paths=there),
        Row("guide", f"guide features, {target.name}", guide, "baseline", paper=paper(task, target, None, "guide")),
        Row(
            "source-guide",
            f"guide features, {source.name}",
            other_guide,
            paper=paper(task, None, source, "guide"),
            paths=there,
        ),
    ]
    extras = ("ranks",)
    if task == "pos":
        files = rule_files(recipe, both)
        if "relaxed" in files:
            relaxed = recipe.run("coupled", both, pruning="none", mapping=files["relaxed"], mark="relaxed")
            rows.append(Row("relaxed", "coupled, relaxed mapping, no pruning", relaxed, "baseline",
                            paper=paper(task, target, source, "relaxed")))  # fmt: skip
        none = recipe.run("coupled", both, space="grid")
        rows.append(
            Row("none", "coupled, complete space, exact", none, "baseline", paper=paper(task, target, source, "none"))
        )
    for way in ("online", "offline"):
        r, lambda_ = CHOSEN[task][way]
        rows.append(
            Row(way, f"coupled, {way} pruning, r = {r}, lambda = {lambda_:g}", coupled[way], "baseline",
                paper=paper(task, target, source, way))
        )  # fmt: skip
    ours = recipe.run("coupled", both, extras=extras)
    rows.append(Row("default", "coupled, our default limits", ours, "baseline"))
    recipe.table(
        "main", f"Table {3 if task == 'pos' else 5}: main results",
        "Test parts; speed without the pruning models' training. Guide features answer in their own target alone.",
        [*scored(task, target.name), *scored(task, source.name), *costs(target.name)], rows, target.name,
    )  # fmt: skip
    recipe.figure(
        "ranks", "rank-probabilities", "Figure 3: probability of the k-th best label",
        f"Mean over {target.name} test text, and entropy.",
        series=[{"name": way, "cell": coupled[way][0], "side": target.name} for way in ("online", "offline")],
    )  # fmt: skip
    first = {"baseline": baseline[0], "system": coupled["offline"][0], "side": target.name}
    recipe.figure("per-tag", "per-tag", "Figure 4: F of single tags", "Baseline and coupled, largest changes.", **first)
    recipe.figure("words", "word-gains", "Words gained and lost", "Baseline and coupled.", **first)
    for side in (target, source):
        if side.dev and target.dev:
            recipe.figure(
                f"learning-{side.name}", "learning-curve", f"Learning curves, {side.name}",
                "Dev score after each epoch.",
                series=[{"name": way, "cell": coupled[way][0]} for way in ("online", "offline")],
                path=f"dev.{side.name}", x_title="epoch", y_title=PREFERRED[task],
            )  # fmt: skip
    recipe.note("Table 6 (CTB5X) is this study with the other split: give its parts as --target, --dev and --test.")


def tuning(recipe: Recipe, target: SideData, source: SideData) -> dict[Any, tuple[str, ...]]:
    """Table 2 or 4: one row for each r and lambda."""
    runs = {}
    task, names = recipe.task, (target.name, source.name)
    columns = [
        on_dev(target.name), on_dev(source.name),
        *(Column(f"left.{name}", f"{name} labels left", f"ranks.{name}.mean_candidates", "", 1) for name in names),
        *(Column(f"lost.{name}", f"{name} gold lost", f"ranks.{name}.lost", "%", 2, "low") for name in names),
        *scored(task, target.name)[-1:], *costs(target.name),
    ]  # fmt: skip
    keys = [f"dev.{target.name}", f"dev.{source.name}", f"left.{target.name}", f"left.{source.name}"]
    rows = []
    for way, limits in TUNING[task].items():
        for r, lambda_, numbers in limits:
            cells = recipe.run("coupled", [target, source], pruning=way, r=(r,), lambda_=(lambda_,), extras=("ranks",))
            runs[way, r, lambda_] = cells
            rows.append(
                Row(f"{way}-{r}-{lambda_:g}", f"{way}, r = {r}, lambda = {lambda_:g}", cells,
                    paper=dict(zip(keys, numbers, strict=True)))
            )  # fmt: skip
    recipe.table(
        "tuning", f"Table {2 if task == 'pos' else 4}: r and lambda",
        "Dev scores; labels left and gold lost are counted on test text before given labels are put back. "
        + ("" if task == "pos" else "The paper's dev numbers are accuracies of characters."),
        columns, rows,
    )  # fmt: skip
    return runs


def paper(task: str, target: SideData | None, source: SideData | None, row: str) -> dict[str, float]:
    """The paper's numbers for the columns of those sides."""
    *scores, speed = MAIN[task][row]
    half = len(scores) // 2
    found: dict[str, float] = {}
    for side, numbers in ((target, scores[:half]), (source, scores[half:])):
        if side is not None:
            found |= {f"{side.name}.{key}": n for key, n in zip(MEASURES[task], numbers, strict=True)}
    return found | ({"speed": float(speed)} if target is not None and task == "pos" else {})


KIND = Kind(
    "li2016",
    "Fast Coupled Sequence Labeling on Heterogeneous Annotations via Context-aware Pruning",
    ("pos", "segpos"),
    {"pos": ("zh",), "segpos": ("zh",)},
    build,
    Paper("li2016", "Fast Coupled Sequence Labeling on Heterogeneous Annotations via Context-aware Pruning", 2016),
    "parsing",
    {
        ("target", "train"): 16_091, ("target", "dev"): 803, ("target", "test"): 1_910,
        ("source", "train"): 46_815, ("source", "dev"): 2_000, ("source", "test"): 5_000,
    },
)  # fmt: skip
