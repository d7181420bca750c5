"""Study `li2015`: mapping functions, weights of the two corpora, features, conversion, training with converted data.

Paper: Li, Chao, Zhang, Chen 2015. Its numbers are on CTB5 with 273,883 sentences of the People's Daily. Ours are with
offline pruning throughout: without any pruning the complete mapping took the paper 20 hours an iteration.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from duilian import guidelines
from duilian.corpus import Corpus
from duilian.mapping import to_rules
from duilian.studies.corpora import Corpora, SideData, size_of, whole
from duilian.studies.recipe import Kind, Recipe, costs, on_dev, scored
from duilian.studies.results import Column, Paper, Row

DRAWN = 5_000
"""Sentences of a side that an epoch draws: N' and M' of Algorithm 1, section 5.1; baselines draw as many."""
SHARES = (0.2, 1.0, 4.0, 20.0)
"""M' as a multiple of N': 1K, 5K, 20K and 100K beside 5K (Figures 4 and 5)."""
BUNDLES = {"tight": 145, "relaxed": 179, "automatic": 346, "complete": 1254}
"""Section 3.1."""


def build(recipe: Recipe, pairs: Sequence[Corpora | None]) -> None:
    """Figures 3 to 5, Tables 3 to 6."""
    corpora, double = pairs
    assert corpora is not None
    target, source = corpora.target, corpora.sources[0]
    both, dev, test = [target, source], on_dev(target.name), scored("pos", target.name)
    drawn = size(target, DRAWN), size(source, DRAWN)
    baseline = recipe.run("crf", [target], sample=drawn[0])
    guide = recipe.run("guide", both, sample=drawn[0])
    coupled = recipe.run("coupled", both, sample=drawn, extras=("ranks", "mapping", "samples"))

    def paper(**values: float) -> dict[str, float]:
        names = {"test": f"{target.name}.accuracy", "dev": f"dev.{target.name}", "bundles": "bundles"}
        return {names[key]: value for key, value in values.items()}

    recipe.table(
        "final", "Table 3: final results", f"Accuracy on the test part of {target.name}.",
        [*test, *scored("pos", source.name), *costs(target.name)],
        [
            Row("crf", "baseline CRF", baseline, paper=paper(test=94.10)),
            Row("guide", "two-stage CRF (guide features)", guide, "crf", paper=paper(test=94.81)),
            Row("coupled", "coupled CRF", coupled, "crf", paper=paper(test=95.00)),
        ],
        target.name,
    )  # fmt: skip
    separate = recipe.run("coupled", both, sample=drawn, features="separate")
    joint = recipe.run("coupled", both, sample=drawn, features="joint")
    recipe.table(
        "features", "Table 4: features", "Joint features, separate features, both.", [dev, *test],
        [
            Row("crf", "baseline CRF", baseline, paper=paper(dev=94.28, test=94.10)),
            Row("separate", "coupled, separate features", separate, "crf", paper=paper(dev=94.36, test=94.43)),
            Row("joint", "coupled, joint features", joint, "crf", paper=paper(dev=92.92, test=92.90)),
            Row("both", "coupled, both", coupled, "crf", paper=paper(dev=95.10, test=95.00)),
        ],
        target.name,
    )  # fmt: skip
    more = recipe.run("crf", [recipe.converted(coupled, target, source)], sample=2 * DRAWN, mark="converted")
    recipe.table(
        "converted", "Table 6: training with converted data",
        f"{source.name} converted by the coupled model, then the baseline on both.", [dev, *test, *costs(target.name)],
        [
            Row("crf", "baseline CRF", baseline, paper=paper(dev=94.28, test=94.10)),
            Row("coupled", "coupled CRF", coupled, "crf", paper=paper(dev=95.10, test=95.00)),
            Row("converted", f"baseline CRF, with converted {source.name}", more, "crf",
                paper=paper(dev=95.01, test=94.81)),
        ],
        target.name,
    )  # fmt: skip
    mapping_functions(recipe, both, drawn, baseline, coupled, dev, paper)
    weights(recipe, both, drawn[0], baseline)
    conversion(recipe, double)
    first = {"baseline": baseline[0], "system": coupled[0], "side": target.name}
    recipe.figure("words", "word-gains", "Words gained and lost", "coupled beside the baseline.", **first)
    recipe.figure("per-tag", "per-tag", "F of single tags", "coupled beside the baseline.", **first)
    recipe.figure("mapping", "mapping", "Learned mapping", "Labels that the coupled model pairs.", cell=coupled[0])
    recipe.figure("samples", "samples", "Converted sentences", "By the coupled model.", cell=coupled[0],
                  conversion=f"{source.name}->{target.name}")  # fmt: skip


def size(side: SideData, most: int) -> int:
    """So many sentences, or as many as there are."""
    return min(most, sum(size_of(piece)[0] for piece in side.train))


def mapping_functions(
    recipe: Recipe, both: Sequence[SideData], drawn: tuple[int, int], baseline: tuple[str, ...],
    complete: tuple[str, ...], dev: Column, paper: Any,
) -> None:  # fmt: skip
    """Figure 3 as curves, and what it says as a table."""
    target, source = both
    runs = {}
    for name, file in rule_files(recipe, both).items():
        runs[name] = recipe.run("coupled", both, sample=drawn, mapping=file, mark=name)
    if not runs:
        recipe.note(
            f"no tight and relaxed mapping: there is no guideline table between {target.standard or target.name} and "
            f"{source.standard or source.name} (src/duilian/guidelines)."
        )
    runs["automatic"] = recipe.run("coupled", both, sample=drawn, mapping="automatic")
    runs["complete"] = complete
    bundles = Column("bundles", "bundles", "train.bundles", "", 0)
    rows = [Row("crf", "baseline CRF", baseline)]
    for name, cells in runs.items():
        paths = {"bundles": "train.no-mapping"} if name == "complete" else {}
        rows.append(Row(name, f"{name} mapping", cells, "crf", paper=paper(bundles=BUNDLES[name]), paths=paths))
    recipe.table(
        "mappings", "Figure 3: mapping functions",
        "Offline pruning in each; tight and relaxed are our guideline tables.",
        [bundles, dev, *scored("pos", target.name), *costs(target.name)], rows, target.name,
    )  # fmt: skip
    if target.dev:
        recipe.figure(
            "mappings", "learning-curve", "Figure 3: mapping functions", f"Dev accuracy on {target.name}.",
            series=[{"name": name, "cell": cells[0]} for name, cells in {"baseline": baseline, **runs}.items()],
            path=f"dev.{target.name}", x_title="epoch", y_title="accuracy",
        )  # fmt: skip


def rule_files(recipe: Recipe, both: Sequence[SideData]) -> dict[str, str]:
    """Tight and relaxed mappings: our guideline table with and without its weak relations, over the corpora's tags."""
    table = guidelines.find(both[0].standard or "", both[1].standard or "")
    if table is None:
        return {}
    corpora = [whole(side.train, side.name) for side in both]
    found = table.mapping([side.standard or "" for side in both], [tags_of(corpus) for corpus in corpora])
    files = {}
    for name, one in (("tight", found.tight()), ("relaxed", found)):
        path = Path(recipe.out) / "corpora" / f"{name}.rules"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(to_rules(one, counts=False, names=[side.name for side in both]), "utf-8")
        files[name] = str(path.resolve())
    return files


def tags_of(corpus: Corpus) -> list[str]:
    """The tags that a corpus uses, sorted."""
    layer = corpus.layer()
    return sorted({layer.tags[k] for k in set(layer.labels[layer.labels >= 0].tolist())})


def weights(recipe: Recipe, both: Sequence[SideData], n: int, baseline: tuple[str, ...]) -> None:
    """Figures 4 and 5: N' fixed, M' varied; the table has the epoch that was kept."""
    target, source = both
    drawn = list(dict.fromkeys(size(source, round(n * share)) for share in SHARES))
    runs = {m: recipe.run("coupled", both, sample=(n, m), extras=()) for m in drawn}
    alone = recipe.run("crf", [source], sample=max(drawn))
    rows = [Row("crf", f"baseline CRF, {target.name}", baseline), Row("source", f"baseline CRF, {source.name}", alone)]
    rows += [Row(f"m{m}", f"coupled, N' = {n}, M' = {m}", cells, "crf") for m, cells in runs.items()]
    columns = [on_dev(target.name), on_dev(source.name), *scored("pos", target.name), *scored("pos", source.name)]
    recipe.table("weights", "Figures 4 and 5: weights of the corpora", "Sentences of each side in an epoch.",
                 columns, rows, target.name)  # fmt: skip
    for number, side, base in ((4, target, baseline), (5, source, alone)):
        if side.dev and target.dev:
            series = [{"name": f"M' = {m}", "cell": cells[0]} for m, cells in runs.items()]
            recipe.figure(
                f"weights-{side.name}", "learning-curve", f"Figure {number}: weights, {side.name}",
                f"Dev accuracy on {side.name}, N' = {n}.", series=[{"name": "baseline", "cell": base[0]}, *series],
                path=f"dev.{side.name}", x_title="epoch", y_title="accuracy",
            )  # fmt: skip


def conversion(recipe: Recipe, double: Corpora | None) -> None:
    """Table 5: conversion, where gold exists on both sides."""
    if double is None:
        recipe.note(
            "Table 5 (conversion) is left out: no test text has gold on both sides. Give --test for both sides over "
            "one text."
        )
        return
    one, other = double.sources[0].name, double.target.name
    name, both = f"{one}->{other}", [double.target, double.sources[0]]
    extras = ("samples", "mapping")
    rows = [
        Row("crf", "baseline CRF, the text alone", recipe.run("crf", [double.target], as_conversion=[(one, other)]),
            paper={f"{name}.accuracy": 90.59}),
        Row("guide", "two-stage CRF (guide features)", recipe.run("guide", both, double.conversions), "crf",
            paper={f"{name}.accuracy": 93.22}),
        Row("coupled", "coupled CRF", recipe.run("coupled", both, double.conversions, extras=extras), "crf",
            paper={f"{name}.accuracy": 93.90}, note=None),
    ]  # fmt: skip
    recipe.table(
        "conversion", "Table 5: conversion",
        f"{one} to {other}, what is given is gold. The paper scores the hardest 20 % of the tokens alone.",
        [*scored("pos", name), Column("ece", "ECE", f"conversions.{name}.calibration.ece", "", 4, "low")], rows, name,
    )  # fmt: skip
    for kind, title in (("calibration", "Calibration of conversion"), ("confusion", "Confusions of conversion")):
        recipe.figure(f"conversion-{kind}", kind, title, "coupled.", cell=rows[2].cells[0], side=name)
    series = [{"name": row.title, "cell": row.cells[0]} for row in rows[1:]]
    recipe.figure("conversion-risk", "risk-coverage", "Risk and coverage of conversion",
                  "Errors left if only the surest words are kept.", side=name, series=series)  # fmt: skip


KIND = Kind(
    "li2015",
    "Coupled Sequence Labeling on Heterogeneous Annotations: POS Tagging as a Case Study",
    ("pos",),
    {"pos": ("zh", "en")},
    build,
    Paper("li2015", "Coupled Sequence Labeling on Heterogeneous Annotations: POS Tagging as a Case Study", 2015),
    "parsing",
    {
        ("target", "train"): 16_091, ("target", "dev"): 803, ("target", "test"): 1_910,
        ("source", "train"): 273_883, ("source", "dev"): 1_000, ("source", "test"): 2_500,
    },
)  # fmt: skip
