"""duilian train: from annotated files to a model file."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from duilian.cli.arguments import Reading, SideFiles, parse_settings, parse_sides
from duilian.cli.terminal import (
    Debug,
    Encoding,
    Format,
    Json,
    OnError,
    Quiet,
    Remarks,
    Seed,
    Threads,
    bar,
    print_json,
)
from duilian.errors import DataError, UsageError

if TYPE_CHECKING:
    from duilian.corpus import Corpus
    from duilian.methods import Side, Training
    from duilian.training.loop import Progress

CHECKPOINT_SECONDS = 60.0
"""How often the checkpoint is renewed, at the ends of epochs."""


class Interrupted(KeyboardInterrupt):
    """Training was stopped by the user; what there was to save is saved."""


def command(
    method: Annotated[
        str,
        typer.Argument(
            metavar="METHOD",
            help="crf, perceptron, pa, hmm (one side); merge, guide, adapt, transform, coupled (two or more).",
        ),
    ],
    side: Annotated[
        list[str],
        typer.Option(
            "--side", metavar="NAME=FILE", help="Training corpus NAME[:STANDARD]=FILE[#LAYER]; the first is the target."
        ),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="MODEL", help="The model file to write.")],
    dev: Annotated[
        list[str] | None,
        typer.Option("--dev", metavar="NAME=FILE", help="Corpus that decides which model is kept."),
    ] = None,
    task: Annotated[str, typer.Option("--task", help="pos (words are given), seg, or segpos (both at once).")] = "pos",
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting of the method.")
    ] = None,
    recipe: Annotated[
        Path | None, typer.Option("--recipe", metavar="FILE", help="Settings in a TOML file; --set goes before it.")
    ] = None,
    standard: Annotated[
        str,
        typer.Option("--standard", help="registered: check a side of that name; auto: take the tags from the corpus."),
    ] = "registered",
    licence: Annotated[
        list[str] | None,
        typer.Option("--licence", metavar="NAME=TEXT", help="Licence of a side's corpus, for the model file."),
    ] = None,
    cache: Annotated[
        str,
        typer.Option("--cache", metavar="DIR", help="Folder for finished stages of long trainings; none: keep none."),
    ] = "auto",
    resume: Annotated[bool, typer.Option("--resume", help="Go on from MODEL.checkpoint.")] = False,
    format: Format = "auto",
    encoding: Encoding = "utf-8",
    on_error: OnError = "stop",
    seed: Seed = 1,
    threads: Threads = 1,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Train a model and write it to a file.

    A repeated NAME adds a file. A NAME that is a registered standard is checked against it. Ctrl-C stops after the
    running epoch, leaves the best model so far and a checkpoint for --resume, and exits 130; once more stops at once.

    \b
    Examples:
      duilian train crf --side pku=train.txt --dev pku=dev.txt -o pku.model
      duilian train perceptron --task seg --side pku=train.txt --set epochs=10 -o seg.model
      duilian train merge --side zh-ud=ud.conllu --side pku=pd.txt --set learner=perceptron -o merged.model
    """
    reading = Reading(format, encoding, on_error, Remarks(quiet))
    try:
        found = train(
            method,
            parse_sides(side),
            parse_sides(dev or [], "--dev"),
            output,
            reading,
            task=task,
            settings=parse_settings(settings or [], recipe),
            standard=standard,
            licences=_licences(licence or []),
            resume=resume,
            seed=seed,
            threads=threads,
            cache=cache,
        )
    except Interrupted as interruption:
        reading.remarks(str(interruption))
        raise typer.Exit(130) from None
    reading.finish()
    if as_json:
        print_json(found)
    else:
        print_summary(found)


def train(
    method: str,
    sides: Sequence[SideFiles],
    devs: Sequence[SideFiles],
    output: Path,
    reading: Reading,
    task: str = "pos",
    settings: Mapping[str, Any] | None = None,
    standard: str = "registered",
    licences: Mapping[str, str] | None = None,
    resume: bool = False,
    seed: int = 1,
    threads: int = 1,
    cache: str = "auto",
    told: Callable[[Progress], None] = lambda progress: None,
) -> dict[str, Any]:
    """Train, write the model, and say how it went; ``told`` hears of each epoch."""
    from duilian import methods
    from duilian.settings import resolve
    from duilian.stages import Context, Stages, cache_folder

    chosen = methods.find(method)
    resolve(chosen.settings, settings or {}, chosen.name)
    strange = [dev.name for dev in devs if dev.name not in {side.name for side in sides}]
    if strange:
        raise UsageError(
            f"--dev {strange[0]}: there is no such side; sides are {', '.join(side.name for side in sides)}."
        )
    if standard not in ("registered", "auto"):
        raise UsageError(
            f"--standard {standard}: expected registered or auto. To name one: --side NAME:{standard}=FILE."
        )
    checkpoint = output.with_name(output.name + ".checkpoint")
    if resume and not checkpoint.is_file():
        raise DataError(f"{checkpoint}: there is no such checkpoint. Train without --resume.")
    read = [read_side(side, devs, reading, standard, task, (licences or {}).get(side.name, "")) for side in sides]
    reading.remarks("preparing")
    training = methods.train(method, read, task, settings or {}, seed)
    folder = None if cache == "none" else cache_folder() if cache == "auto" else Path(cache)
    training.context = Context(reading.remarks, threads, Stages(folder))
    if resume:
        training.resume(checkpoint)
    run(training, output, checkpoint, reading.remarks, told)
    training.tagger.save(output)
    checkpoint.unlink(missing_ok=True)
    return summary(training, output)


def read_side(
    side: SideFiles, devs: Sequence[SideFiles], reading: Reading, standard: str, task: str, licence: str
) -> Side:
    """The corpora of one side, checked against its standard."""
    from duilian import standards
    from duilian.corpus import concatenate
    from duilian.methods import Side

    train = concatenate([read_named(file, side.name, reading) for file in side.files])
    dev_files = [file for dev in devs if dev.name == side.name for file in dev.files]
    dev = concatenate([read_named(file, side.name, reading) for file in dev_files]) if dev_files else None
    chosen = None
    if side.standard is not None:
        chosen = standards.get(side.standard)
    elif standard == "auto":
        chosen = standards.from_corpus(train.layer(), side.name, train.text)
    elif side.name in standards.names() and task != "seg":
        chosen = standards.get(side.name)
    if chosen is not None and task != "seg":
        standards.check(train.layer(), chosen, ", ".join(side.files), train.text)
        unknown = standards.unknown_tags(dev.layer(), chosen) if dev is not None else []
        if dev is not None and unknown:
            reading.remarks(
                f"warning: {standards.describe(unknown, dev.layer(), chosen, ', '.join(dev_files), dev.text)}"
            )
    return Side(side.name, train, dev, standard=chosen, licence=licence)


def read_named(file: str, name: str, reading: Reading) -> Corpus:
    """A corpus with one layer, called after its side: files of several formats can then be put together."""
    from duilian.corpus import Corpus

    corpus = reading.read(file)
    return Corpus(corpus.text, corpus.offsets, (replace(corpus.layer(), name=name),))


def run(
    training: Training, output: Path, checkpoint: Path, remarks: Remarks,
    told: Callable[[Progress], None] = lambda progress: None,
) -> None:  # fmt: skip
    """All epochs, with a bar or a line for each; Ctrl-C saves what there is."""
    saved = time.monotonic()
    with stop_between_epochs(remarks) as stop, bar(remarks, "training") as advance:
        try:
            for progress in training:
                told(progress)
                dev = "  ".join(f"{name} {score:.2f}" for name, score in progress.dev.items())
                rate = progress.tokens / progress.seconds if progress.seconds else 0.0
                text = f"{dev}  {rate:,.0f} tokens/s"
                advance(progress.epoch, progress.epochs, text)
                if not remarks.on_terminal:
                    mark = " *" if progress.best else ""
                    remarks(
                        f"epoch {progress.epoch} of {progress.epochs}: objective {progress.objective:.6g}  {text}{mark}"
                    )
                if stop:
                    raise KeyboardInterrupt
                if time.monotonic() - saved > CHECKPOINT_SECONDS:
                    training.save_checkpoint(checkpoint)
                    saved = time.monotonic()
        except KeyboardInterrupt:
            if not training.begun:
                raise Interrupted("stopped before the first epoch was complete; no model was written") from None
            training.tagger.save(output)
            if len(stop) == 1:  # between two epochs: in the middle of one there is no state to go on from
                training.save_checkpoint(checkpoint)
            further = f"; --resume goes on from {checkpoint}" if checkpoint.is_file() else ""
            raise Interrupted(f"stopped; {output} is the best model so far{further}") from None


@contextmanager
def stop_between_epochs(remarks: Remarks) -> Iterator[list[bool]]:
    """Ctrl-C once puts a mark into the list; twice interrupts at once. Outside the main thread nothing is changed."""
    asked: list[bool] = []

    def handle(number: int, frame: object) -> None:
        asked.append(True)
        if len(asked) > 1:
            raise KeyboardInterrupt
        remarks("stopping after this epoch; press Ctrl-C again to stop at once")

    try:
        before = signal.signal(signal.SIGINT, handle)
    except ValueError:
        yield asked
        return
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, before)


def summary(training: Training, output: Path) -> dict[str, Any]:
    """How a finished training went."""
    return {"model": str(output), **training.summary(), "model_bytes": output.stat().st_size}


def print_summary(found: Mapping[str, Any]) -> None:
    """The same for people."""
    for name, score in found["dev"].items():
        typer.echo(f"dev {name}: {score:.2f}")
    typer.echo(f"epochs: {found['epochs']}, the best was {found['best_epoch']}")
    rate = found["tokens_per_second"]
    typer.echo(f"seconds: {found['seconds']:.1f}" + (f" ({rate:,.0f} tokens/s)" if rate else ""))
    if found["features"] is not None:
        typer.echo(f"features: {found['features']:,}")
    typer.echo(f"model: {found['model']} ({found['model_bytes']:,} bytes)")


def _licences(given: Sequence[str]) -> dict[str, str]:
    found = {}
    for text in given:
        name, equals, licence = text.partition("=")
        if not equals or not name:
            raise UsageError(f"--licence {text!r}: expected NAME=TEXT, such as 'ud=CC BY-SA 4.0'.")
        found[name] = licence
    return found
