"""What the demonstration found as the raw results of a study, so that it has a report: study.json, cells, comparisons.

Answers are asked for once more with confidences, which its text files have no place for.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from duilian.cli.demo import Files, Trained
    from duilian.corpus import Corpus
    from duilian.studies.results import Column, Figure, Row
    from duilian.tagger import Tagger

TASK, SAMPLES = "segpos", 10_000
TITLES = {
    "as_is": "PKU annotation left as it is",
    "map": "PKU annotation through the best map, which saw the gold",
    "crf": "plain text, tagger trained on the rule-made text alone",
    "coupled": "plain text, coupled tagger trained on both standards",
    "converted": "PKU annotation converted by the coupled tagger",
}
"""Every way to the rule-made standard."""
PAIRS = (("crf", "coupled"), ("map", "converted"), ("coupled", "converted"))
"""Which is compared with which: (baseline, system)."""


def write_study(
    folder: Path, files: Files, answers: dict[str, Path], trained: dict[str, Trained], threads: int, command: str,
    notice: str,
) -> Path:  # fmt: skip
    """Write a study's folder of what the demonstration did; returns it."""
    from duilian import methods
    from duilian.datasets.twin import NAME
    from duilian.methods.coupled_tagger import CoupledTagger
    from duilian.studies.cell import mapping, ranks
    from duilian.studies.engine import write_json
    from duilian.studies.results import CELLS, FORMAT, PLAN, comparison_name
    from duilian.studies.scoring import comparison, samples_of, scores_of

    gold, given = _named(files.twin_test, NAME), _named(files.pku_test, "pku")
    words = _vocabulary(files.twin_train)
    taggers = {name: methods.load(one.model) for name, one in trained.items()}
    found = {
        "as_is": _named(answers["as_is"], NAME),
        "map": _named(answers["map"], NAME),
        "crf": _tag(taggers["crf"], gold, NAME),
        "coupled": _tag(taggers["coupled"], gold, NAME),
        "converted": taggers["coupled"].convert(given, "pku", NAME, "pku", confidence=True),
    }
    cells: dict[str, dict[str, Any]] = {}
    for name, answer in found.items():
        # Tags of another standard are no answer: what is left as it is has words to score, and no more.
        scores = scores_of(gold, answer, words, "seg" if name == "as_is" else TASK)
        cells[name] = {
            "format": FORMAT, "id": name, "method": name, "task": TASK, "seed": 1, "status": "done", "error": None,
            "settings": {}, "sides": [NAME, "pku"], "inputs": "", "scores": {NAME: scores},
        }  # fmt: skip
    for name, one in trained.items():
        cells[name] |= {
            "method": one.method, "settings": one.settings, "train": one.summary, "history": one.history,
            "seconds": one.wall,
        }  # fmt: skip
    both, learned = {NAME: gold, "pku": given}, taggers["coupled"]
    assert isinstance(learned, CoupledTagger)
    cells["coupled"] |= {"ranks": ranks(learned, both), "mapping": mapping(learned, both)}
    cells["converted"] |= {
        "method": "coupled",
        "samples": {f"pku->{NAME}": samples_of(given, found["converted"], gold)},
    }
    for name, cell in cells.items():
        write_json(folder / CELLS / f"{name}.json", cell)
    for first, second in PAIRS:
        write_json(
            folder / "comparisons" / comparison_name(first, second, NAME),
            {"format": FORMAT, "baseline": first, "system": second, "side": NAME}
            | comparison(gold, found[first], found[second], SAMPLES),
        )
    write_json(folder / PLAN, _plan(files, threads, command, notice, NAME))
    return folder


def _plan(files: Files, threads: int, command: str, notice: str, name: str) -> dict[str, Any]:
    from duilian.studies.corpora import Corpora, Piece, SideData, described
    from duilian.studies.engine import facts
    from duilian.studies.results import Plan, Table

    def pieces(path: Path) -> tuple[Piece, ...]:
        return (Piece(str(path)),)

    target = SideData(
        name, "target", pieces(files.twin_train), pieces(files.twin_dev), pieces(files.twin_test), name,
        licence="made by rules from the People's Daily",
    )  # fmt: skip
    source = SideData(
        "pku", "source", pieces(files.pku_train), (), pieces(files.pku_test), "pku", licence=_licence()
    )  # fmt: skip
    sides, listed = described([Corpora((target, source))], TASK)
    about = facts(threads)
    plan = Plan(
        study="demo", title="The demonstration: the People's Daily and its rule-made twin", task=TASK, seeds=(1,),
        quick=False, command=command, cells=tuple(TITLES),
        tables=(
            Table("ways", "Ways to the rule-made standard", "Scored against the rule-made gold of the test text.",
                  _columns(name), _rows(), name),
        ),
        figures=_figures(name), sides=sides, files=listed, versions=about["versions"], commit=about["commit"],
        machine=about["machine"], notes=(" ".join(notice.split()),),
    )  # fmt: skip
    return plan.to_json()


def _columns(name: str) -> tuple[Column, ...]:
    from duilian.studies.results import Column

    return (
        Column("joint", "words with tags F", f"scores.{name}.joint.f", "%", 2, "high"),
        Column("words", "words F", f"scores.{name}.ws.f", "%", 2, "high"),
        Column("new", "new words", f"scores.{name}.oov_recall", "%", 2, "high"),
        Column("ece", "calibration error", f"scores.{name}.calibration.ece", "", 4, "low"),
        Column("seconds", "training", "seconds", "s", 0, "none"),
        Column("size", "model", "train.model_bytes", "MB", 1, "none", 1e-6),
    )


def _rows() -> tuple[Row, ...]:
    from duilian.studies.results import Row

    notes = {"as_is": "its tags are another standard's: not scored"}
    against = {"coupled": "crf", "converted": "map"}
    return tuple(Row(name, title, (name,), against.get(name), notes.get(name)) for name, title in TITLES.items())


def _figures(name: str) -> tuple[Figure, ...]:
    from duilian.studies.results import Figure

    tagging = [{"name": "alone", "cell": "crf"}, {"name": "coupled", "cell": "coupled"}]
    pair = {"baseline": "crf", "system": "coupled", "side": name}
    way = f"pku->{name}"
    return (
        Figure("learning", "learning-curve", "Learning curves", "The rule-made dev text after each epoch.",
               {"series": tagging, "path": f"dev.{name}", "x_title": "epoch", "y_title": "words with tags F, %"}),
        Figure("ranks", "rank-probabilities", "Candidates by rank",
               "What pruning looks at: the probability of the k-th best label of a character, on average.",
               {"series": [{"name": side, "cell": "coupled", "side": side} for side in (name, "pku")]}),
        Figure("tags", "per-tag", "F per tag", "One standard alone, and both together.", pair),
        Figure("risk", "risk-coverage", "Risk and coverage", "Errors among the words that are kept.",
               {"series": [*tagging, {"name": "converted", "cell": "converted"}], "side": name}),
        Figure("words", "word-gains", "Words that both standards together change most", "", pair),
        Figure("calibration", "calibration", "Are confidences worth something?", "Of the converted text.",
               {"cell": "converted", "side": name}),
        Figure("confusion", "confusion", "What conversion confuses", "", {"cell": "converted", "side": name}),
        Figure("mapping", "mapping", "Which labels go together", "Counted where the coupled tagger converts test text.",
               {"cell": "coupled"}),
        Figure("samples", "samples", "Converted sentences", "", {"cell": "converted", "conversion": way}),
    )  # fmt: skip


def _named(path: Path, name: str) -> Corpus:
    """A corpus whose one layer is called after its side."""
    from duilian.studies.corpora import Piece

    return Piece(str(path)).read(name)


def _tag(tagger: Tagger, gold: Corpus, name: str) -> Corpus:
    return tagger.tag(gold, name, name, confidence=True)


def _vocabulary(path: Path) -> frozenset[str]:
    from duilian import evaluation, formats

    return frozenset(evaluation.vocabulary(formats.read(path)))


def _licence() -> str:
    from duilian.datasets import DATASETS

    return DATASETS["peoples-daily"].licence


def history(progress: Any) -> dict[str, Any]:
    """An epoch as a cell's file has it."""
    return {
        key: value for key, value in asdict(progress).items() if key in ("epoch", "seconds", "objective", "dev", "best")
    }
