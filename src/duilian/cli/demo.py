"""duilian demo: two standards, one of them made by rules: train alone and coupled, tag, convert, score, compare."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from duilian.cli import tag as tagging
from duilian.cli.arguments import Reading, SideFiles
from duilian.cli.compare import compare
from duilian.cli.convert import convert
from duilian.cli.data import get_dataset
from duilian.cli.demo_study import PAIRS, TITLES, history, write_study
from duilian.cli.evaluate import evaluate
from duilian.cli.terminal import Debug, Json, Quiet, Remarks, Threads, print_json, print_table
from duilian.cli.train import train
from duilian.errors import UsageError

if TYPE_CHECKING:
    from duilian.corpus import Corpus

LINES = 1600
"""Training lines of the demonstration, of 15,000: three quarters as they are, one quarter annotated by the rules."""
DEV, TEST = 100, 300
"""Lines of the dev part that decide which model is kept, and the next ones, which are scored."""
LIMIT = 95.0
"""A twin that the best map by word and tag gets better than this shows nothing."""
SHOWN = 10
"""Sentences that are shown side by side."""
SHORT = (8, 18)
"""How few and how many words a shown sentence has."""
BASELINE = {"epochs": 10}
COUPLED = {"epochs": 8, "folds": 2, "pruning_epochs": 3, "r": 8}
NOTICE = (
    "The rule-made standard is a twin of the PKU standard, made by rules (docs/twin.md). Nobody annotates by it:\n"
    "it is here because the truth on both sides is known. Its files, sides and figures are called rule-made."
)


def command(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for corpora, models and answers.")] = Path(
        "demo"
    ),
    lines: Annotated[
        int, typer.Option("--lines", help="Lines of the training corpus to use, a quarter of them rule-made.", min=4)
    ] = LINES,
    threads: Threads = 2,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Show what several standards together are worth, on the People's Daily of January 1998 and a twin of it.

    The twin is rule-made: other tags and other word boundaries, decided by context, by rules that docs/twin.md tells.
    Trains one tagger on a little text of the twin alone, and a coupled one on that and on other sentences that have the
    annotation of the People's Daily; tags with both, converts, scores and compares. The gold of both standards is
    taken from lines of the dev part; the test part is not touched. DIR/study has what was measured, and a report.

    \b
    Examples:
      duilian demo
      duilian demo --out /tmp/demo --lines 6000
    """
    remarks = Remarks(quiet)
    found = demo(out, remarks, lines, threads, shown=not as_json)
    if as_json:
        print_json(found)


@dataclass(frozen=True)
class Files:
    """What the demonstration reads: both standards over the same sentences in test, over different ones in train."""

    pku_train: Path
    pku_test: Path
    twin_train: Path
    twin_dev: Path
    twin_test: Path


@dataclass(frozen=True)
class Trained:
    """A model and how it came to be. wall: seconds from files to model; history: its epochs."""

    method: str
    model: Path
    settings: dict[str, Any]
    summary: dict[str, Any]
    history: list[dict[str, Any]]
    wall: float


def demo(out: Path, remarks: Remarks, lines: int = LINES, threads: int = 1, shown: bool = True) -> dict[str, Any]:
    """Run every step and return what each found."""
    from duilian.datasets.twin import NAME

    say: Callable[[str], object] = typer.echo if shown else (lambda text: None)
    began = time.perf_counter()
    out.mkdir(parents=True, exist_ok=True)
    say(f"$ duilian data get peoples-daily --split --to {out}")
    paths = get_dataset("peoples-daily", to=out, split=True, remarks=remarks)
    files = make_files(out, paths, lines)
    say(NOTICE)
    reading = Reading(remarks=remarks)
    mapped = out / f"{NAME}-by-map.txt"
    best = map_score(files, mapped)
    if best > LIMIT:
        remarks(f"the best map by word and tag scores {best:.2f} on this sample: more than {LIMIT:g}, take more lines")
    say(f"The best map by word and tag, learnt with both sides gold from the test text itself: {best:.2f}")
    alone, coupled = out / f"{NAME}-crf.model", out / f"{NAME}-pku-coupled.model"
    sides = [SideFiles(NAME, None, (str(files.twin_train),)), SideFiles("pku", None, (str(files.pku_train),))]
    devs = [SideFiles(NAME, None, (str(files.twin_dev),))]
    trained = {
        "crf": _train("crf", sides[:1], devs, alone, reading, BASELINE, 1, say),
        "coupled": _train("coupled", sides, devs, coupled, reading, COUPLED, threads, say),
    }
    found: dict[str, Any] = {
        "rule_made": NOTICE.replace("\n", " "),
        "best_map": best,
        "train": {name: one.summary for name, one in trained.items()},
    }
    answers = {
        "as_is": files.pku_test, "map": mapped, "crf": out / f"{NAME}-by-crf.txt",
        "coupled": out / f"{NAME}-by-coupled.txt", "converted": out / f"{NAME}-converted.txt",
    }  # fmt: skip
    say(f"\n$ duilian tag {alone} {files.twin_test} -o {answers['crf']}")
    tagging.tag(str(alone), str(files.twin_test), str(answers["crf"]), reading, threads=threads)
    say(f"$ duilian tag {coupled} {files.twin_test} --side {NAME} -o {answers['coupled']}")
    tagging.tag(str(coupled), str(files.twin_test), str(answers["coupled"]), reading, side=NAME, threads=threads)
    say(f"$ duilian convert {coupled} {files.pku_test} --from pku --to {NAME} -o {answers['converted']}")
    convert(str(coupled), str(files.pku_test), "pku", NAME, str(answers["converted"]), reading, threads=threads)
    found["scores"] = {name: evaluate(str(files.twin_test), str(file), reading) for name, file in answers.items()}
    found["compare"] = {}
    for first, second in PAIRS:
        say(f"$ duilian compare {files.twin_test} {answers[first]} {answers[second]}")
        pair = (str(answers[first]), str(answers[second]))
        found["compare"][f"{second} - {first}"] = compare(str(files.twin_test), *pair, reading)
    found["sentences"] = chosen_sentences(files.pku_test, answers["converted"], files.twin_test)
    asked = f"duilian demo --lines {lines}"
    folder = write_study(out / "study", files, answers, trained, threads, asked, NOTICE)
    found["report"] = report(folder, remarks)
    found["seconds"] = time.perf_counter() - began
    if shown:
        print_scores(found)
        print_sentences(found["sentences"])
    if found["report"] is not None:
        say(f"\nThe same as a page, with curves, confusions, the learned mapping and more: {found['report']}")
    say(f"\nAll of it took {found['seconds']:.0f} s; the files are in {out}.")
    return found


def report(folder: Path, remarks: Remarks) -> Path | None:
    """The report of what was measured; None, and a remark, where the libraries that it needs are not installed."""
    from duilian.report import write_report

    try:
        return write_report(folder)
    except UsageError as error:
        remarks(str(error))
        return None


def make_files(out: Path, paths: dict[str, Path], lines: int) -> Files:
    """Training text of the two standards on different sentences; dev and test text of both on the same."""
    from duilian import formats
    from duilian.datasets import twin

    dev, whole = formats.read(paths["dev"]), formats.read(paths["train"])
    n = min(lines, len(whole))
    cut, held = n - n // 4, min(DEV, len(dev) // 2)
    parts = {
        "pku-train": whole.select(slice(0, cut)),
        f"{twin.NAME}-train": twin.convert(whole.select(slice(cut, n))),
        f"{twin.NAME}-dev": twin.convert(dev.select(slice(0, held))),
        "pku-test": dev.select(slice(held, held + TEST)),
        f"{twin.NAME}-test": twin.convert(dev.select(slice(held, held + TEST))),
    }
    notes = ["made by rules (docs/twin.md) from the People's Daily, January 1998; nobody annotates by it"]
    written = {}
    for name, corpus in parts.items():
        written[name] = out / f"{name}.txt"
        formats.write(written[name], corpus, "slash", provenance=notes if name.startswith(twin.NAME) else ())
    return Files(
        written["pku-train"], written["pku-test"], written[f"{twin.NAME}-train"], written[f"{twin.NAME}-dev"],
        written[f"{twin.NAME}-test"],
    )  # fmt: skip


def map_score(files: Files, answer: Path) -> float:
    """F of tagged words of the best map by word and tag, on the text that it is learnt from; writes what it makes."""
    from duilian import evaluation, formats
    from duilian.corpus import Corpus
    from duilian.datasets import twin

    source, gold = (formats.read(file) for file in (files.pku_test, files.twin_test))
    mapped = twin.best_map(source, source.layer(), twin.annotate(source))
    pred = Corpus(source.text, source.offsets, (mapped,))
    formats.write(answer, pred, "slash", provenance=["the best map by word and tag, learnt from the rule-made gold"])
    return float(evaluation.evaluate(gold, pred, task="segpos")["joint"]["f"])


def _train(
    method: str, sides: Sequence[SideFiles], devs: Sequence[SideFiles], model: Path, reading: Reading,
    settings: dict[str, Any], threads: int, say: Callable[[str], object],
) -> Trained:  # fmt: skip
    given = " ".join(f"--side {side.name}={side.files[0]}" for side in sides)
    chosen = " ".join(f"--set {key}={value}" for key, value in settings.items())
    say(f"\n$ duilian train {method} --task segpos {given} --dev {devs[0].name}={devs[0].files[0]} {chosen} -o {model}")
    began, epochs = time.perf_counter(), list[dict[str, Any]]()
    found = train(
        method, sides, devs, model, reading, task="segpos", settings=settings, threads=threads, cache="none",
        told=lambda progress: epochs.append(history(progress)),
    )  # fmt: skip
    scores = ", ".join(f"{name} {score:.2f}" for name, score in found["dev"].items())
    say(f"{found['epochs']} epochs in {found['seconds']:.0f} s, dev {scores}")
    return Trained(method, model, settings, found, epochs, time.perf_counter() - began)


def chosen_sentences(source: Path, converted: Path, gold: Path) -> list[dict[str, list[list[str]]]]:
    """The first sentences of a handy length: words and tags of the source, of the answer, and of gold."""
    from duilian import formats

    corpora = {
        name: formats.read(file) for name, file in (("pku", source), ("converted", converted), ("rule_made", gold))
    }
    words = corpora["pku"].words()
    numbers = [k for k, sentence in enumerate(words) if SHORT[0] <= len(sentence) <= SHORT[1]][:SHOWN]
    tokens = {name: _tokens(corpus) for name, corpus in corpora.items()}
    return [{name: found[k] for name, found in tokens.items()} for k in numbers]


def _tokens(corpus: Corpus) -> list[list[list[str]]]:
    return [
        [[word, tag if isinstance(tag, str) else ""] for word, tag in zip(words, tags, strict=True)]
        for words, tags in zip(corpus.words(), corpus.tags(), strict=True)
    ]


def print_scores(found: dict[str, Any]) -> None:
    """The table: every way to the rule-made standard, and whether differences are more than chance."""
    typer.echo("\nAgainst the rule-made gold")
    rows = []
    for name, title in TITLES.items():
        scores = found["scores"][name]
        rows.append((title, scores["ws"]["f"], None if name == "as_is" else scores["joint"]["f"]))
    print_table(rows, ("", "F words", "F words with tags"))
    typer.echo("\nIs it more than chance? (paired randomization)")
    pairs = []
    for name, pair in found["compare"].items():
        low, high = pair["interval"]
        pairs.append((name, f"{pair['difference']:+.2f}", f"{low:+.2f} to {high:+.2f}", f"{pair['p_value']:.2g}"))
    print_table(pairs, ("", "difference", "95 %", "p"))


def print_sentences(sentences: Sequence[dict[str, list[list[str]]]]) -> None:
    """Converted sentences beside what they were made from; where they differ from the rule-made gold they are red."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(show_lines=True, title="Converted sentences: red is not what the rules say", title_justify="left")
    table.add_column("pku, given")
    table.add_column("rule-made, converted")
    for sentence in sentences:
        given, answer = Text(), Text()
        gold = set(_spans(sentence["rule_made"]))
        for word, tag in sentence["pku"]:
            given.append(word).append(f"/{tag} ", style="cyan")
        for span, (word, tag) in zip(_spans(sentence["converted"]), sentence["converted"], strict=True):
            plain, colour = ("", "green") if span in gold else ("bold red", "red")
            answer.append(word, style=plain).append(f"/{tag} ", style=colour)
        table.add_row(given, answer)
    Console(file=sys.stdout).print(table)


def _spans(tokens: list[list[str]]) -> list[tuple[int, int, str]]:
    found, at = [], 0
    for word, tag in tokens:
        found.append((at, at + len(word), tag))
        at += len(word)
    return found
