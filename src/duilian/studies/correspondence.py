"""Study `correspondence`: seven ways to learn which labels correspond, and none, converting both ways.

Paper: Zhu, Wang, Zhu 2009, TCT to CTB6. The text that we have lost its tables of results: no numbers of the paper here.
Words as the source has them (TBWC there); where the two standards cut words differently also over the target's (TAWC).
"""

from __future__ import annotations

from collections.abc import Sequence

from duilian.errors import DataError
from duilian.studies.corpora import Corpora, whole
from duilian.studies.job import CORRECTED
from duilian.studies.recipe import Kind, Recipe, scored
from duilian.studies.results import Column, Paper, Row
from duilian.training.correspondence import ESTIMATORS

ABOUT = {
    "none": "no correspondence: the target's HMM", "hmm-t": "HMM-T: the target's HMM on the source's corpus",
    "hmm-s": "HMM-S: the source's HMM on the target's corpus",
    "crf-t": "CRF-T: the target's CRF on the source's corpus",
    "crf-s": "CRF-S: the source's CRF on the target's corpus", "cw-t": "CW-T: common words, the target's prior",
    "cw-s": "CW-S: common words, the source's prior", "cw-c": "CW-C: the mean of both",
}  # fmt: skip
assert set(ABOUT) == set(ESTIMATORS)


def build(recipe: Recipe, pairs: Sequence[Corpora | None]) -> None:
    """The paper's Tables 2 and 3 on every pair that has gold on both sides."""
    found = [one for one in pairs if one is not None and one.conversions]
    if not found:
        raise DataError(
            "no test text has gold on both sides, and this study scores conversion. Give --test for both sides over "
            "one text, such as --test ud=test.conllu#upos --test ptb=test.conllu#xpos."
        )
    unique = list(dict.fromkeys(found))
    for corpora in unique:
        taggers(recipe, corpora)
        for one in (corpora, corpora.reversed()):
            estimators(recipe, one)


def taggers(recipe: Recipe, corpora: Corpora) -> None:
    """Table 2: the taggers of the target that estimators ask."""
    target = corpora.target
    rows = [
        Row("hmm", "HMM", recipe.run("hmm", [target])),
        Row("crf", "CRF", recipe.run("crf", [target]), "hmm"),
    ]
    recipe.table(
        f"taggers-{target.name}", f"Table 2: taggers of {target.name}", "Tags of given words, no source.",
        scored("pos", target.name), rows, target.name,
    )  # fmt: skip


def estimators(recipe: Recipe, corpora: Corpora) -> None:
    """Table 3: conversion from the first source to the target, by estimator."""
    target, source = corpora.target, corpora.sources[0]
    one, other = source.name, target.name
    same = whole(source.test, "a").words() == whole(target.test, "b").words()
    name = f"{one}->{other}"
    measures = ("accuracy",) if same else ("ws.f", "joint.f")
    rows: list[Row] = []
    for estimator, about in ABOUT.items():
        extras = ("samples", "mapping") if estimator == "hmm-s" else ()
        cells = recipe.run(
            "correspondence", [target, source], [(one, other)], estimator=estimator, extras=extras, corrected=not same
        )
        rows.append(Row(estimator, about, cells, "none" if rows else None))
    coupled = recipe.run("coupled", [target, source], corpora.conversions)
    rows.append(Row("coupled", "for comparison: coupled", coupled, "none"))
    columns = [
        *scored("pos", name, which=measures),
        Column("ece", "ECE", f"conversions.{name}.calibration.ece", "", 4, "low"),
    ]
    if not same:
        columns += scored("pos", f"{name}{CORRECTED}", f"{one}→{other}, corrected words,", which=("accuracy",))
    columns.append(Column("seconds", "seconds", "seconds", "s", 0, "low"))
    recipe.table(
        f"estimators-{one}-{other}", f"Table 3: conversion, {one} to {other}", "What is given is gold.", columns,
        rows, name,
    )  # fmt: skip
    chosen = next(row for row in rows if row.id == "hmm-s").cells[0]
    recipe.figure(f"mapping-{one}-{other}", "mapping", "Label correspondence", f"HMM-S, {one} to {other}.", cell=chosen)
    recipe.figure(f"calibration-{one}-{other}", "calibration", "Calibration", f"HMM-S, {one} to {other}.", cell=chosen,
                  side=name)  # fmt: skip
    recipe.figure(f"confusion-{one}-{other}", "confusion", "Confusions", f"HMM-S, {one} to {other}.", cell=chosen,
                  side=name)  # fmt: skip
    recipe.figure(f"samples-{one}-{other}", "samples", "Converted sentences", f"HMM-S, {one} to {other}.", cell=chosen,
                  conversion=name)  # fmt: skip
    recipe.figure(
        f"risk-{one}-{other}", "risk-coverage", "Risk and coverage", f"{one} to {other}.", side=name,
        series=[{"name": row.id, "cell": row.cells[0]} for row in rows],
    )  # fmt: skip


KIND = Kind(
    "correspondence",
    "Label Correspondence Learning for Part-of-Speech Annotation Transformation",
    ("pos",),
    {"pos": ("en", "zh-halves", "ja")},
    build,
    Paper("correspondence", "Label Correspondence Learning for Part-of-Speech Annotation Transformation", 2009),
)
