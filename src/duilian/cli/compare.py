"""duilian compare: is one prediction better than another by more than chance?"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from duilian.cli.arguments import Reading
from duilian.cli.terminal import Debug, Encoding, Format, Json, OnError, Quiet, Remarks, Seed, print_json

TITLES = {"accuracy": "accuracy", "joint_f": "F of words with tags", "ws_f": "F of words"}


def command(
    gold: Annotated[str, typer.Argument(metavar="GOLD", help="Gold corpus, FILE[#LAYER].")],
    first: Annotated[str, typer.Argument(metavar="PRED1", help="First prediction.")],
    second: Annotated[str, typer.Argument(metavar="PRED2", help="Second prediction.")],
    samples: Annotated[int, typer.Option("--samples", help="How often sentences are shuffled.", min=1)] = 10_000,
    seed: Seed = 0,
    format: Format = "auto",
    encoding: Encoding = "utf-8",
    on_error: OnError = "stop",
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Compare two predictions of one text: the difference PRED2 - PRED1, and whether it is more than chance.

    The score is the accuracy where all three have tags on the same words, else the F of words with tags, else of
    words. The p-value is two-sided, from shuffling sentences between the two (Noreen); the interval is bootstrapped.

    \b
    Examples:
      duilian compare gold.txt crf.txt perceptron.txt
      duilian compare gold.conllu old.conllu new.conllu --samples 100000 --json
    """
    reading = Reading(format, encoding, on_error, Remarks(quiet))
    found = compare(gold, first, second, reading, samples, seed)
    reading.finish()
    if as_json:
        return print_json(found)
    low, high = found["interval"]
    typer.echo(f"{TITLES[found['metric']]}: {found['pred1']:.2f} and {found['pred2']:.2f}")
    typer.echo(f"difference: {found['difference']:+.2f}, 95 % between {low:+.2f} and {high:+.2f}")
    typer.echo(f"p = {found['p_value']:.4g} ({samples:,} shuffles of {found['sentences']:,} sentences)")
    return None


def compare(
    gold: str, first: str, second: str, reading: Reading, samples: int = 10_000, seed: int = 0
) -> dict[str, Any]:
    """Both scores, their difference and its p-value."""
    from duilian import evaluation

    truth, one, two = (reading.read(file) for file in (gold, first, second))
    return evaluation.compare(truth, one, two, samples=samples, seed=seed, names=(gold, first, second))
