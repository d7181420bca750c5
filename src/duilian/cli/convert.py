"""duilian convert: an annotated corpus of any size to another standard, by the annotation that it has."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import duilian
from duilian.cli.arguments import Reading
from duilian.cli.streaming import Job, through
from duilian.cli.terminal import Debug, Encoding, Json, OnError, Quiet, Remarks, Threads, print_json
from duilian.errors import UsageError

if TYPE_CHECKING:
    from duilian.corpus import Corpus, Layer

CONTEXT = 12
"""Characters of context on either side of a word in the review list."""


def command(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model of two standards or more.")],
    file: Annotated[str, typer.Argument(metavar="FILE", help="Annotated corpus FILE[#LAYER]; - is stdin.")],
    source: Annotated[str, typer.Option("--from", metavar="NAME", help="The side whose annotation the file has.")],
    target: Annotated[str, typer.Option("--to", metavar="NAME", help="The side to convert to.")],
    output: Annotated[str, typer.Option("-o", "--output", metavar="OUT", help="Where to write; - is stdout.")] = "-",
    format: Annotated[
        str, typer.Option("--format", help="Format to write; auto is that of the input, if it has a place for it.")
    ] = "auto",
    input_format: Annotated[
        str, typer.Option("--input-format", help="Format to read; auto looks at the content.")
    ] = "auto",
    confidence: Annotated[bool, typer.Option("--confidence", help="Write the probability of each label.")] = False,
    nbest: Annotated[
        int | None,
        typer.Option("--nbest", metavar="K", help="Write the K best conversions of each sentence (jsonl).", min=1),
    ] = None,
    review: Annotated[
        Path | None, typer.Option("--review", metavar="FILE", help="Write a list of the least certain tokens.")
    ] = None,
    review_tokens: Annotated[int, typer.Option("--review-tokens", help="How many it lists.", min=1)] = 1000,
    encoding: Encoding = "utf-8",
    on_error: OnError = "stop",
    threads: Threads = 1,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Convert an annotated corpus to another standard.

    What the file says is taken for right, and the best annotation of the other standard is found under it. Labels that
    a layer of the target's name has already are kept. Tags that the model does not know leave their words free. The
    output tells where it came from and under which licence: as a comment, or in OUT.source.txt.

    \b
    Examples:
      duilian convert coupled.model pd.txt --from pku --to ctb -o pd-ctb.txt
      duilian convert coupled.model ud.conllu#upos --from ud --to ptb --confidence -o ptb.conllu
      duilian convert coupled.model pd.txt --from pku --to ctb --review hard.tsv -o pd-ctb.txt --threads 2
    """
    if as_json and output == "-":
        raise UsageError("--json prints figures on stdout, where the answer goes: name a file with -o.")
    remarks = Remarks(quiet)
    reading = Reading(input_format, encoding, on_error, remarks)
    found = convert(
        model, file, source, target, output, reading, format=format, confidence=confidence, nbest=nbest,
        review=review, review_tokens=review_tokens, threads=threads,
    )  # fmt: skip
    reading.finish()
    if as_json:
        return print_json(found)
    remarks(f"{found['tokens']:,} tokens in {found['seconds']:.1f} s")
    return None


def convert(
    model: str,
    file: str,
    source: str,
    target: str,
    output: str,
    reading: Reading,
    format: str = "auto",
    confidence: bool = False,
    nbest: int | None = None,
    review: Path | None = None,
    review_tokens: int = 1000,
    threads: int = 1,
) -> dict[str, Any]:
    """Convert a file block by block; returns tokens, seconds, tokens_per_second, unknown_tags."""
    from duilian import methods

    tagger = methods.load(model)
    one, other = tagger.side(source), tagger.side(target)
    several = "--nbest" if nbest is not None else ""
    job = ConvertJob(tagger, confidence, nbest, several, one.name, other.name, review_tokens if review else 0)
    licence = one.licence or "not stated when the model was trained"
    provenance = [
        f"converted from {one.name} to {other.name} by duilian {duilian.__version__}, {tagger.method}",
        f"source: {file}",
        f"licence of the {one.name} corpus that the model learnt from: {licence}",
    ]
    found = through(
        job, file, output, reading, format=format, threads=threads, provenance=provenance, title="converting"
    )
    if job.unknown:
        commonest = sorted(job.unknown.items(), key=lambda item: (-item[1], item[0]))
        listed = ", ".join(f"{tag} {count:,}" for tag, count in commonest[:10])
        more = f" and {len(commonest) - 10} more" if len(commonest) > 10 else ""
        reading.remarks(f"{sum(job.unknown.values()):,} words have a tag that {one.name} does not know: {listed}{more}")
    if review is not None:
        write_review(review, job.hardest)
    return found | {"unknown_tags": job.unknown}


@dataclass(frozen=True)
class Doubt:
    """A converted word for the review list."""

    confidence: float
    sentence: int
    number: int
    word: str
    label: str
    left: str
    right: str


@dataclass
class ConvertJob(Job):
    """Converting blocks. unknown: source tags the model does not know, counted; hardest: the least certain words."""

    source: str
    target: str
    doubts: int = 0
    unknown: dict[str, int] = field(default_factory=dict)
    hardest: list[Doubt] = field(default_factory=list)
    sentences: int = 0

    def run(self, corpus: Corpus) -> tuple[Corpus, dict[str, Any] | None]:
        """A converted block."""
        layer = corpus.layer()
        asked = self.confidence or self.doubts > 0
        result = self.tagger.convert(corpus, self.source, self.target, layer.name, confidence=asked)
        self._strange[id(result)] = self.tagger.unknown_source_tags(layer, self.source)
        answers = None
        if self.nbest is not None:
            one, other = self.tagger.side(self.source), self.tagger.side(self.target)
            found = self.tagger.convert_n_best(corpus, layer, one, other, self.nbest)
            answers = {layer.name: [[(score, best) for best, score in sentence] for sentence in found]}
        return result, answers

    def __post_init__(self) -> None:
        self._strange: dict[int, dict[str, int]] = {}

    def seen(self, corpus: Corpus) -> None:
        """Collect what is told at the end."""
        for tag, count in self._strange.pop(id(corpus)).items():
            self.unknown[tag] = self.unknown.get(tag, 0) + count
        if self.doubts:
            doubts = least_certain(corpus, corpus.layer(), self.doubts, self.sentences)
            self.hardest = sorted([*self.hardest, *doubts], key=lambda one: (one.confidence, one.sentence, one.number))
            del self.hardest[self.doubts :]
        self.sentences += len(corpus)


def least_certain(corpus: Corpus, layer: Layer, n: int, before: int = 0) -> list[Doubt]:
    """The n words of the lowest confidence. before: sentences of earlier blocks."""
    import numpy as np

    from duilian.corpus import decode

    if layer.confidence is None:
        return []
    found = []
    for unit in np.argsort(layer.confidence, kind="stable")[:n].tolist():
        sentence = int(np.searchsorted(layer.offsets, unit, side="right")) - 1
        start, end = int(layer.starts[unit]), int(layer.ends[unit])
        begin, stop = int(corpus.offsets[sentence]), int(corpus.offsets[sentence + 1])
        label = layer.label(unit)
        found.append(
            Doubt(
                float(layer.confidence[unit]),
                before + sentence + 1,
                unit - int(layer.offsets[sentence]) + 1,
                decode(corpus.text[start:end]),
                label if isinstance(label, str) else "",
                decode(corpus.text[max(begin, start - CONTEXT) : start]),
                decode(corpus.text[end : min(stop, end + CONTEXT)]),
            )
        )
    return found


def write_review(path: Path, doubts: list[Doubt]) -> None:
    """The review list: columns separated by tabs, the least certain word first."""
    with path.open("w", encoding="utf-8") as file:
        file.write("confidence\tsentence\tword number\tbefore\tword\tlabel\tbehind\n")
        for one in doubts:
            cells = [one.left, one.word, one.label, one.right]
            texts = [" ".join(cell.split()) for cell in cells]
            file.write("\t".join([f"{one.confidence:.4f}", str(one.sentence), str(one.number), *texts]) + "\n")
