"""duilian demo: the whole way on real data in a few minutes: get, inspect, train, tag, score, compare."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from duilian.cli.arguments import Reading, SideFiles
from duilian.cli.compare import compare
from duilian.cli.data import get_dataset
from duilian.cli.evaluate import evaluate, print_scores
from duilian.cli.tag import tag
from duilian.cli.terminal import Debug, Json, Quiet, Remarks, Threads, print_json
from duilian.cli.train import print_summary, train

LINES = 4000
"""Training lines of the demonstration, of 15,000."""

SAMPLE = "今天是一九九八年的第一天，我们在北京向全国各族人民致以节日的问候！\n"


def command(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for corpora, models and answers.")] = Path(
        "demo"
    ),
    lines: Annotated[int, typer.Option("--lines", help="Lines of the training corpus to use.", min=1)] = LINES,
    threads: Threads = 1,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Show the whole way on the People's Daily of January 1998: get, train, tag, score, compare.

    Trains on the first lines of the training part and scores on the dev part; the test part is not touched.

    \b
    Examples:
      duilian demo
      duilian demo --out /tmp/demo --lines 15000
    """
    remarks = Remarks(quiet)
    found = demo(out, remarks, lines, threads, shown=not as_json)
    if as_json:
        print_json(found)


def demo(out: Path, remarks: Remarks, lines: int = LINES, threads: int = 1, shown: bool = True) -> dict[str, Any]:
    """Run every step and return what each found."""
    say: Callable[[str], object] = typer.echo if shown else (lambda text: None)
    began = time.perf_counter()
    out.mkdir(parents=True, exist_ok=True)
    say(f"$ duilian data get peoples-daily --split --to {out}")
    paths = get_dataset("peoples-daily", to=out, split=True, remarks=remarks)
    train_file, dev_file = out / "train.txt", paths["dev"]
    with paths["train"].open("rb") as whole:
        train_file.write_bytes(b"".join(line for _, line in zip(range(lines), whole, strict=False)))
    reading = Reading(remarks=remarks)
    found: dict[str, Any] = {}
    answers: dict[str, str] = {}
    for title, method, task in (
        ("Words are given: a conditional random field tags them", "crf", "pos"),
        ("The same by an averaged perceptron", "perceptron", "pos"),
        ("Text without word boundaries: segmentation", "perceptron", "seg"),
    ):
        model, answer = out / f"{method}-{task}.model", out / f"{method}-{task}.txt"
        say(
            f"\n{title}\n$ duilian train {method} --task {task} --side pku={train_file} --dev pku={dev_file} -o {model}"
        )
        files = ([SideFiles("pku", None, (str(train_file),))], [SideFiles("pku", None, (str(dev_file),))])
        result = train(method, *files, model, reading, task=task, settings={"epochs": 8})
        tag(str(model), str(dev_file), str(answer), reading, threads=threads)
        scores = evaluate(str(dev_file), str(answer), reading, [str(train_file)])
        answers[f"{method}-{task}"] = str(answer)
        found[f"{method}-{task}"] = {"train": result, "scores": scores}
        if shown:
            print_summary(result)
            say(f"$ duilian evaluate {dev_file} {answer} --train {train_file}")
            print_scores(scores)
    first, second = answers["crf-pos"], answers["perceptron-pos"]
    say(f"\nIs the difference more than chance?\n$ duilian compare {dev_file} {first} {second}")
    found["compare"] = compare(str(dev_file), first, second, reading)
    say(f"difference {found['compare']['difference']:+.2f}, p = {found['compare']['p_value']:.4g}")
    found["sample"] = sample(out, reading)
    say(f"\nA sentence, segmented, then tagged\n{found['sample']}")
    found["seconds"] = time.perf_counter() - began
    say(f"\nAll of it took {found['seconds']:.0f} s; the files are in {out}.")
    return found


def sample(out: Path, reading: Reading) -> str:
    """A sentence through the segmenter and then the tagger."""
    raw, words, tagged = (out / f"sample-{step}.txt" for step in ("raw", "words", "tagged"))
    raw.write_text(SAMPLE, encoding="utf-8")
    tag(str(out / "perceptron-seg.model"), str(raw), str(words), Reading("raw", remarks=reading.remarks))
    tag(str(out / "crf-pos.model"), str(words), str(tagged), Reading("segmented", remarks=reading.remarks))
    return tagged.read_text(encoding="utf-8").strip()
