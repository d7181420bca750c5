"""duilian evaluate: a prediction against gold, or a model against gold."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from duilian.cli.arguments import Reading, is_model
from duilian.cli.terminal import (
    Debug,
    Encoding,
    Format,
    Json,
    OnError,
    Quiet,
    Remarks,
    Threads,
    print_json,
    print_table,
)
from duilian.errors import UsageError


def command(
    first: Annotated[str, typer.Argument(metavar="GOLD|MODEL", help="Gold corpus FILE[#LAYER], or a model.")],
    second: Annotated[str, typer.Argument(metavar="PRED|GOLD", help="What to score; behind a model, the gold corpus.")],
    side: Annotated[
        str | None, typer.Option("--side", metavar="NAME", help="Which side of the model. [default: its first]")
    ] = None,
    train: Annotated[
        list[str] | None,
        typer.Option("--train", metavar="FILE", help="Training corpus, to tell known words from new ones."),
    ] = None,
    per_tag: Annotated[
        bool, typer.Option("--per-tag", help="Scores of each tag, and the commonest confusions.")
    ] = False,
    calibration: Annotated[
        bool,
        typer.Option(
            "--calibration", help="What confidences are worth (ECE, errors found): the model's, or those in PRED."
        ),
    ] = False,
    format: Format = "auto",
    encoding: Encoding = "utf-8",
    on_error: OnError = "stop",
    threads: Threads = 1,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Score a prediction, or a model, against a gold corpus.

    Words are found if they cover the same characters; spaces do not count. Tags alone are scored where both have the
    same words. Scores are 0 to 100.

    \b
    Examples:
      duilian evaluate gold.txt predicted.txt
      duilian evaluate gold.conllu#upos predicted.conllu#upos --train train.conllu#upos --per-tag
      duilian evaluate pku.model test.txt --json --calibration
    """
    reading = Reading(format, encoding, on_error, Remarks(quiet))
    if is_model(first):
        if train:
            raise UsageError("--train is for GOLD PRED; a model knows the words that it was trained on.")
        found = evaluate_model(first, second, side, reading, per_tag, calibration)
    else:
        if side is not None:
            raise UsageError(f"--side is for models, and {first} is none. Name a layer with FILE#LAYER.")
        found = evaluate(first, second, reading, train or [], per_tag, calibration)
    reading.finish()
    if as_json:
        print_json(found)
    else:
        print_scores(found)


def evaluate(
    gold: str,
    pred: str,
    reading: Reading,
    train: list[str] | None = None,
    per_tag: bool = False,
    calibration: bool = False,
) -> dict[str, Any]:
    """Scores of a predicted corpus file."""
    from duilian import evaluation

    truth, answer = reading.read(gold), reading.read(pred)
    confidence = answer.layer().confidence
    if calibration and confidence is None:
        raise UsageError(f"{pred} has no confidences to measure: write it with tag or convert --confidence.")
    words: set[str] | None = None
    for file in train or []:
        words = (words or set()) | evaluation.vocabulary(reading.read(file))
    alignment = evaluation.align(truth, answer, names=(gold, pred))
    found = evaluation.score(alignment, words) | (_details(alignment) if per_tag else {})
    if calibration:
        found["calibration"] = _calibration(alignment, confidence, "segpos" if alignment.tagged else "seg")
    return found


def evaluate_model(
    model: str, gold: str, side: str | None, reading: Reading, per_tag: bool = False, calibration: bool = False
) -> dict[str, Any]:
    """Scores of a model on a gold corpus file."""
    from duilian import evaluation, methods, standards

    tagger = methods.load(model)
    info = tagger.side(side)
    corpus = reading.read(gold)
    layer = corpus.layer()
    unknown = standards.unknown_tags(layer, info.standard) if info.standard and tagger.task != "seg" else []
    if unknown and info.standard:
        reading.remarks(f"warning: {standards.describe(unknown, layer, info.standard, gold, corpus.text)}")
    pred = tagger.tag(corpus, info.name, layer.name, confidence=calibration)
    alignment = evaluation.align(corpus, pred, names=(gold, "the model's answer"))
    found = evaluation.score(alignment, info.words, tagger.task) | (_details(alignment) if per_tag else {})
    if calibration:
        found["calibration"] = _calibration(alignment, pred.layer(layer.name).confidence, tagger.task)
    return found


def _calibration(alignment: Any, confidence: Any, task: str) -> dict[str, Any]:
    import numpy as np

    from duilian.evaluation.calibration import calibration_error, errors_found, risk_coverage

    right = np.zeros(len(confidence), np.bool_)
    right[alignment.match[(alignment.match >= 0) & (alignment.right if task != "seg" else True)]] = True
    curve = risk_coverage(confidence, right)
    kept = [int(np.searchsorted(curve.coverage, share)) for share in (0.5, 0.8, 0.9, 0.95)]
    return {
        "ece": calibration_error(confidence, right),
        "errors_in_least_confident_tenth": errors_found(confidence, right, 0.1),
        "risk_area": curve.area,
        "risk_coverage": [
            {"coverage": float(curve.coverage[k]), "risk": float(curve.risk[k])} for k in kept if k < len(curve.risk)
        ],
    }


def _details(alignment: Any) -> dict[str, Any]:
    from duilian import evaluation

    counts = evaluation.confusion(alignment)
    return {
        "per_tag": {tag: {"gold": found.gold, **found.scores()} for tag, found in counts.per_tag().items()},
        "confusions": [{"gold": gold, "pred": pred, "words": words} for gold, pred, words in counts.most_confused(20)],
    }


def print_scores(found: dict[str, Any]) -> None:
    """The scores as a person reads them: of words only where they differ."""
    same_words = found.get("accuracy") is not None
    for key, title in (("ws", "words"), ("joint", "words with tags")):
        if found.get(key) is not None and not same_words:
            typer.echo(f"{title}: P {found[key]['p']:.2f}  R {found[key]['r']:.2f}  F {found[key]['f']:.2f}")
    for key, title in (("accuracy", "accuracy"), ("oov_recall", "recall of new words"), ("iv_recall", "of known ones")):
        if found.get(key) is not None:
            typer.echo(f"{title}: {found[key]:.2f}")
    typer.echo(f"tokens: {found['tokens']:,}")
    if "calibration" in found:
        worth = found["calibration"]
        share = 100 * worth["errors_in_least_confident_tenth"]
        typer.echo(f"expected calibration error: {worth['ece']:.4f}")
        typer.echo(f"errors in the least confident 10 %: {share:.1f} %")
    if "per_tag" in found:
        rows = [(tag, s["gold"], s["p"], s["r"], s["f"]) for tag, s in found["per_tag"].items()]
        typer.echo("")
        print_table(rows, ("tag", "gold", "P", "R", "F"))
        typer.echo("")
        print_table([(c["gold"], c["pred"], c["words"]) for c in found["confusions"]], ("gold", "taken for", "words"))
