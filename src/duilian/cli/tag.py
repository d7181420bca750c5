"""duilian tag: annotate a file of any size with a model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from duilian.cli.arguments import Reading
from duilian.cli.streaming import Job, through
from duilian.cli.terminal import (
    Debug,
    Encoding,
    Json,
    OnError,
    Quiet,
    Remarks,
    Threads,
    print_json,
)
from duilian.errors import UsageError

if TYPE_CHECKING:
    from duilian.corpus import Corpus


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
    from duilian import methods

    tagger = methods.load(model)
    names = [info.name for info in tagger.answers] if side == "all" else [tagger.answer(side).name]
    several = "--side all" if side == "all" else "--nbest" if nbest is not None else ""
    job = TagJob(tagger, confidence, nbest, several, names, side == "all", constrain)
    return through(job, file, output, reading, format=format, labels=constrain, threads=threads)


@dataclass
class TagJob(Job):
    """Tagging blocks.

    sides: names, in the order of the answer; all: each side becomes a layer of its own
    """

    sides: list[str]
    all: bool = False
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
