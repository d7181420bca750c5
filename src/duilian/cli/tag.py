"""duilian tag: annotate a file of any size with a model."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from duilian.cli.arguments import Reading
from duilian.cli.terminal import (
    Debug,
    Encoding,
    Json,
    OnError,
    Quiet,
    Remarks,
    Threads,
    bar,
    print_json,
)
from duilian.errors import UsageError

if TYPE_CHECKING:
    from duilian.corpus import Corpus
    from duilian.tagger import Tagger


def command(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model file.")],
    file: Annotated[str, typer.Argument(metavar="FILE", help="Corpus FILE[#LAYER] or raw text; - is stdin.")],
    side: Annotated[
        str | None,
        typer.Option("--side", metavar="NAME", help="In which standard to answer, or all. [default: the first]"),
    ] = None,
    output: Annotated[str, typer.Option("-o", "--output", metavar="OUT", help="Where to write; - is stdout.")] = "-",
    format: Annotated[
        str,
        typer.Option("--format", help="Format to write; auto is that of the input, if it has a place for the answer."),
    ] = "auto",
    input_format: Annotated[
        str, typer.Option("--input-format", help="Format to read; auto looks at the content.")
    ] = "auto",
    confidence: Annotated[bool, typer.Option("--confidence", help="Write the probability of each answer.")] = False,
    nbest: Annotated[
        int | None,
        typer.Option("--nbest", metavar="K", help="Write the K best answers to each sentence (jsonl).", min=1),
    ] = None,
    constrain: Annotated[
        bool, typer.Option("--constrain", help="Keep the labels that are there; fill in the unknown ones.")
    ] = False,
    encoding: Encoding = "utf-8",
    on_error: OnError = "stop",
    threads: Threads = 1,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Annotate a file with a model.

    A model for pos tags the words that are there, one for seg or segpos segments the text anew. The layer that was read
    is replaced; all else is written back as it was. The file is read and written in blocks, whatever its size.

    \b
    Examples:
      duilian tag pku.model words.txt -o tagged.txt
      echo 今天天气很好 | duilian tag seg.model -
      duilian tag pku.model corpus.conllu#upos --confidence -o tagged.conllu --threads 2
    """
    if as_json and output == "-":
        raise UsageError("--json prints figures on stdout, where the answer goes: name a file with -o.")
    remarks = Remarks(quiet)
    reading = Reading(input_format, encoding, on_error, remarks)
    found = tag(
        model,
        file,
        output,
        reading,
        side=side,
        format=format,
        confidence=confidence,
        nbest=nbest,
        constrain=constrain,
        threads=threads,
    )
    reading.finish()
    if as_json:
        return print_json(found)
    remarks(f"{found['tokens']:,} tokens in {found['seconds']:.1f} s")
    return None


def tag(
    model: str,
    file: str,
    output: str,
    reading: Reading,
    side: str | None = None,
    format: str = "auto",
    confidence: bool = False,
    nbest: int | None = None,
    constrain: bool = False,
    threads: int = 1,
) -> dict[str, Any]:
    """Annotate a file block by block; returns tokens, seconds, tokens_per_second."""
    from duilian import formats, methods
    from duilian.tagger import in_order

    began = time.perf_counter()
    tagger = methods.load(model)
    job = Job(tagger, [info.name for info in tagger.sides] if side == "all" else [tagger.side(side).name],
              side == "all", confidence, nbest, constrain)  # fmt: skip
    if format != "auto":
        job.check_format(format)
    path, layer = formats.split_layer(file)
    blocks = formats.read_blocks(
        path, layer, on_skip=reading.skip, keep_source=True, labels=constrain, **reading.options()
    )
    tokens = 0
    with ExitStack() as stack, bar(reading.remarks, "tagging") as advance:
        writer: Any = None
        for corpus, answers in in_order(job.run, blocks, threads):
            if writer is None:
                format = format if format != "auto" else job.output_format(corpus)
                job.check_format(format)
                writer = stack.enter_context(
                    formats.open_writer(output, format, job.layer(corpus), confidence=confidence)
                )
            writer.write(corpus, answers)
            tokens += len(corpus.layer())
            advance(tokens, None, f"{tokens:,} tokens")
    seconds = time.perf_counter() - began
    return {"tokens": tokens, "seconds": seconds, "tokens_per_second": tokens / seconds}


@dataclass
class Job:
    """What is to be done with every block.

    sides: names, in the order of the answer; all: each side becomes a layer of its own
    """

    tagger: Tagger
    sides: list[str]
    all: bool = False
    confidence: bool = False
    nbest: int | None = None
    constrain: bool = False

    def run(self, corpus: Corpus) -> tuple[Corpus, dict[str, Any] | None]:
        """A block with its answers, and the n best of each side if they are asked for."""
        read = corpus.layer().name if corpus.layers else None
        answers = {}
        result = corpus
        layers = []
        for name in self.sides:
            tagged = self.tagger.tag(corpus, name, read, constrain=self.constrain, confidence=self.confidence)
            layer = tagged.layer(read)
            layers.append(replace(layer, name=name) if self.all else layer)
            result = tagged
            if self.nbest is not None:
                answers[layers[-1].name] = [
                    [(score, one) for one, score in sentence]
                    for sentence in self.tagger.n_best(corpus, name, read, self.nbest)
                ]
        if self.all:
            result = replace(corpus, layers=tuple(layers))
        return result, answers or None

    def layer(self, corpus: Corpus) -> str | None:
        """Which layer is written: the one that was read, or all of them."""
        return None if self.all else corpus.layer().name

    def check_format(self, format: str) -> None:
        """Several answers need a format that holds them."""
        from duilian import formats

        chosen = formats.find(format)
        if (self.all or self.nbest is not None) and format != "jsonl":
            raise UsageError(
                f"{'--side all' if self.all else '--nbest'} needs --format jsonl; {format} holds one answer."
            )
        if self.tagger.task != "seg" and not chosen.keeps_tags:
            raise UsageError(
                f"{format} has no place for tags. Name another with --format, such as slash, tsv or jsonl."
            )

    def output_format(self, corpus: Corpus) -> str:
        """The format of the input; where that has no place for words or tags, a plain one that has."""
        from duilian import formats

        given = formats.find(corpus.source.format if corpus.source is not None else "raw")
        if self.tagger.task == "seg":
            holds = given.name != "raw" and ("unknown" in given.holds or not given.keeps_tags)
            return given.name if holds else "segmented"
        return given.name if given.keeps_tags else "slash"
