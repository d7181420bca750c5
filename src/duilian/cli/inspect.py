"""duilian inspect: a corpus before training, several corpora side by side, or what a model holds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from duilian.cli.arguments import Reading, is_model
from duilian.cli.terminal import Debug, Encoding, Format, Json, OnError, Quiet, Remarks, print_json, print_table

SHOWN_TAGS = 60


def command(
    files: Annotated[list[str], typer.Argument(metavar="FILE|MODEL...", help="Corpora FILE[#LAYER], or models.")],
    strongest: Annotated[
        int,
        typer.Option("--strongest", metavar="N", help="Of a model, the N strongest transitions of each label.", min=0),
    ] = 5,
    format: Format = "auto",
    encoding: Encoding = "utf-8",
    on_error: OnError = "stop",
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Show what a corpus or a model holds.

    Of a corpus: sizes, lengths, tags, which standards fit, and what is odd in it. Of several: also what each shares
    with the first one. Of a model: standards, settings, templates, and the strongest features and transitions by name.

    \b
    Examples:
      duilian inspect train.txt
      duilian inspect train.conllu#upos dev.conllu#upos
      duilian inspect pku.model --strongest 10
    """
    reading = Reading(format, encoding, on_error, Remarks(quiet))
    models = [file for file in files if is_model(file)]
    found: dict[str, Any] = {}
    if models:
        found["models"] = {file: inspect_model(file, strongest) for file in models}
    corpora = [file for file in files if file not in models]
    if corpora:
        found |= inspect_corpora(corpora, reading)
    reading.finish()
    if as_json:
        return print_json(found)
    for file, model in found.get("models", {}).items():
        print_model(file, model)
    for file, facts in found.get("corpora", {}).items():
        print_corpus(file, facts)
    for pair in found.get("overlap", []):
        print_overlap(pair)
    return None


def inspect_corpora(files: list[str], reading: Reading) -> dict[str, Any]:
    """Facts of each corpus, and what each shares with the first."""
    from duilian import inspection

    corpora = {file: reading.read(file) for file in files}
    found: dict[str, Any] = {"corpora": {file: inspection.facts(corpus) for file, corpus in corpora.items()}}
    first = files[0]
    found["overlap"] = [
        {"first": first, "second": file, **inspection.overlap(corpora[first], corpora[file])}
        for file in corpora
        if file != first
    ]
    return found


def inspect_model(file: str, strongest: int = 5) -> dict[str, Any]:
    """What a model file says of itself, and the strongest transitions of its chain if it is one."""
    from duilian import methods

    tagger = methods.load(file)
    _, tensors = tagger.parts()
    found: dict[str, Any] = {
        "method": tagger.method,
        "task": tagger.task,
        "bytes": Path(file).stat().st_size,
        "numbers": sum(int(tensor.size) for tensor in tensors.values()),
        "sides": {
            info.name: {
                "standard": info.standard.name if info.standard else None,
                "licence": info.licence or None,
                "words": len(info.words),
                "tags": list(info.tags),
            }
            for info in tagger.sides
        },
        **{key: value for key, value in tagger.about.items() if key != "history"},
    }
    chain = getattr(tagger, "chain", None)
    if chain is not None and strongest:
        found["templates"] = list(chain.featurizer.table.texts)
        found["strongest_features"] = strongest_features(tagger, chain, strongest)
        found["strongest_transitions"] = strongest_transitions(chain, strongest)
    return found


def strongest_features(tagger: Any, chain: Any, n: int) -> dict[str, list[dict[str, Any]]]:
    """Label -> its features of the largest weight, among those that the words of the model's own text can name."""
    import numpy as np

    from duilian.features.names import names_of, one_sentence
    from duilian.lifting import Units

    units = one_sentence(sorted(tagger.sides[0].words))
    if chain.task != "pos":
        starts = np.arange(len(units.text), dtype=np.int64)
        units = Units(units.text, starts, starts + 1, np.array([0, len(starts)], np.int64))
    rows, best = chain.rows, {}
    for number, name in enumerate(chain.names):
        entries = np.flatnonzero(rows.labels == number)
        order = entries[np.argsort(-rows.weights[entries], kind="stable")[: 50 * n]]
        best[name] = (np.searchsorted(rows.offsets, order, side="right") - 1, rows.weights[order])
    named = names_of(chain.featurizer, units, np.unique(np.concatenate([found for found, _ in best.values()])))
    return {
        name: [
            {"feature": named[row], "weight": float(weight)}
            for row, weight in zip(found.tolist(), weights.tolist(), strict=True)
            if row in named
        ][:n]
        for name, (found, weights) in best.items()
    }


def strongest_transitions(chain: Any, n: int) -> dict[str, list[dict[str, Any]]]:
    """Label -> the labels that its weights most want behind it."""
    import numpy as np

    found = {}
    for name, row in zip(chain.names, chain.trans, strict=True):
        order = np.argsort(-row, kind="stable")[:n].tolist()
        found[name] = [{"next": chain.names[k], "weight": float(row[k])} for k in order if np.isfinite(row[k])]
    return found


def print_corpus(file: str, facts: dict[str, Any]) -> None:
    """Facts of a corpus as a person reads them."""
    typer.echo(f"{file}, layer {facts['layer']}")
    rows: list[tuple[object, ...]] = [("", name, facts[name]) for name in ("sentences", "tokens", "characters")]
    rows += [("", "distinct words", facts["distinct_words"]), ("", "  of them seen once", facts["seen_once"])]
    rows += [("", "unknown labels", facts["unknown_labels"]), ("", "ambiguous labels", facts["ambiguous_labels"])]
    print_table(rows)
    for key, title in (("words_per_sentence", "words per sentence"), ("characters_per_word", "characters per word")):
        lengths = facts[key]
        if lengths:
            typer.echo(
                f"  {title}: {lengths['mean']:.1f} on average, {lengths['longest']:,} at most "
                f"({'sentence ' if key == 'words_per_sentence' else ''}{lengths['longest_is']})"
            )
    tags = facts["tags"]
    if tags:
        listed = ", ".join(f"{tag} {count:,}" for tag, count in list(tags.items())[:SHOWN_TAGS])
        more = f", and {len(tags) - SHOWN_TAGS} more" if len(tags) > SHOWN_TAGS else ""
        typer.echo(f"  {len(tags)} tags: {listed}{more}")
        typer.echo(f"  each word given its commonest tag: {facts['commonest_tag_accuracy']:.2f} % right")
    for fit in facts["standards"]:
        lacks = f", lacks {', '.join(fit['unknown_tags'][:10])}" if fit["unknown_tags"] else ""
        typer.echo(f"  standard {fit['name']} knows {fit['known']:.2f} % of the tags{lacks}")
    for odd in facts["odd"]:
        typer.echo(f"  odd: {odd['what']}: {odd['count']:,}, first in sentence {odd['sentence']:,}: {odd['example']!r}")


def print_overlap(pair: dict[str, Any]) -> None:
    """What two corpora share, as a person reads it."""
    typer.echo(f"{pair['second']} beside {pair['first']}")
    where = f", first its sentence {pair['first_shared']:,}" if pair["first_shared"] else ""
    typer.echo(f"  sentences that are in both: {pair['sentences_in_both']:,}{where}")
    rate = pair["oov_rate"]
    typer.echo(f"  words that are new: {pair['oov_tokens']:,}" + ("" if rate is None else f" ({rate:.2f} %)"))
    for key, title in (("tags_only_in_first", "only in the first"), ("tags_only_in_second", "only in the second")):
        if pair[key]:
            typer.echo(f"  tags {title}: {', '.join(pair[key])}")


def print_model(file: str, model: dict[str, Any]) -> None:
    """What a model holds, as a person reads it."""
    typer.echo(file)
    nested = ("sides", "strongest_features", "strongest_transitions")
    print_table([("", key.replace("_", " "), _short(value)) for key, value in model.items() if key not in nested])
    for name, side in model["sides"].items():
        typer.echo(f"  side {name}: {len(side['tags'])} tags, {side['words']:,} words of training")
        print_table([("", "", key, _short(value)) for key, value in side.items() if key != "words" and value])
    if "strongest_features" in model:
        typer.echo("  strongest features")
        for label, entries in model["strongest_features"].items():
            typer.echo(f"    {label}: " + ", ".join(f"{entry['feature']} {entry['weight']:+.2f}" for entry in entries))
    if "strongest_transitions" in model:
        typer.echo("  strongest transitions")
        for label, entries in model["strongest_transitions"].items():
            typer.echo(f"    {label}: " + ", ".join(f"{entry['next']} {entry['weight']:+.2f}" for entry in entries))


def _short(value: Any) -> str:
    if isinstance(value, dict):
        value = [f"{key}={item}" for key, item in value.items()]
    text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return text if len(text) <= 200 else text[:199] + "…"
