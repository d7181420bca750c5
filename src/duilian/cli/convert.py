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
    keep: Annotated[
        str | None,
        typer.Option(
            "--keep", metavar="LAYER", help="Layer of FILE with labels to keep. [default: one called as --to]"
        ),
    ] = None,
    encoding: Encoding = "utf-8",
    on_error: OnError = "stop",
    threads: Threads = 1,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Convert an annotated corpus to another standard.

    What the file says is taken for right, and the best annotation of the other standard is found under it. Labels of
    the target standard that the file has already, in another layer, are kept. Tags that the model does not know leave
    their words free. The output tells where it came from and under which licence: as a comment, or in OUT.source.txt.

    --confidence writes the probability of each label, for segmentation of each whole word, under what was given; the
    score that --nbest writes is that of the whole sentence.

    \b
    Examples:
      duilian convert coupled.model pd.txt --from pku --to ctb -o pd-ctb.txt
      duilian convert coupled.model ud.conllu#upos --from ud --to ptb --confidence -o ptb.conllu
      duilian convert coupled.model pd.txt --from pku --to ctb --review hard.tsv -o pd-ctb.txt --threads 2
      duilian convert coupled.model half.conllu#upos --from ud --to ptb --keep xpos -o whole.conllu
    """
    if as_json and output == "-":
        raise UsageError("--json prints figures on stdout, where the answer goes: name a file with -o.")
    remarks = Remarks(quiet)
    reading = Reading(input_format, encoding, on_error, remarks)
    found = convert(
        model, file, source, target, output, reading, format=format, confidence=confidence, nbest=nbest,
        review=review, review_tokens=review_tokens, keep=keep, threads=threads,
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
    keep: str | None = None,
    threads: int = 1,
) -> dict[str, Any]:
    """Convert a file block by block; returns tokens, seconds, tokens_per_second, unknown_tags, confidence.

    confidence: its mean over all tokens, or None where it was not asked for
    """
    from duilian import methods

    tagger = methods.load(model)
    one, other = tagger.side(source), tagger.side(target)
    several = "--nbest" if nbest is not None else ""
    doubts = review_tokens if review else 0
    job = ConvertJob(tagger, confidence, nbest, several, one.name, other.name, keep, doubts)
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
    mean = job.sure / job.weighed if job.weighed else None
    return found | {"unknown_tags": job.unknown, "confidence": mean}


@dataclass(frozen=True)
class Doubt:
    """A converted word for the review list. given: the words and tags that it was made from."""

    confidence: float
    sentence: int
    number: int
    word: str
    label: str
    left: str
    right: str
    given: str


@dataclass
class ConvertJob(Job):
    """Converting blocks.

    unknown: source tags the model does not know, counted;  hardest: the least certain words
    sure, weighed: the sum of the confidences, and of how many words
    """

    source: str
    target: str
    keep: str | None = None
    doubts: int = 0
    unknown: dict[str, int] = field(default_factory=dict)
    hardest: list[Doubt] = field(default_factory=list)
    sentences: int = 0
    sure: float = 0.0
    weighed: int = 0
    _given: dict[int, Layer] = field(default_factory=dict)

    def run(self, corpus: Corpus) -> tuple[Corpus, dict[str, Any] | None]:
        """A converted block."""
        layer = corpus.layer()
        asked = self.confidence or self.doubts > 0
        result = self.tagger.convert(
            corpus, self.source, self.target, layer.name, confidence=asked, keep=self.keep
        )  # fmt: skip
        self._given[id(result)] = layer
        answers = None
        if self.nbest is not None:
            one, other = self.tagger.side(self.source), self.tagger.side(self.target)
            kept = self.tagger.kept_layer(corpus, layer, self.target, self.keep)
            found = self.tagger.convert_n_best(corpus, layer, one, other, self.nbest, given=kept)
            answers = {layer.name: [[(score, best) for best, score in sentence] for sentence in found]}
        return result, answers

    def seen(self, corpus: Corpus) -> None:
        """Collect what is told at the end."""
        given, layer = self._given.pop(id(corpus)), corpus.layer()
        for tag, count in self.tagger.unknown_source_tags(given, self.source).items():
            self.unknown[tag] = self.unknown.get(tag, 0) + count
        if layer.confidence is not None:
            self.sure += float(layer.confidence.sum(dtype=float))
            self.weighed += len(layer)
        if self.doubts:
            doubts = least_certain(corpus, layer, self.doubts, self.sentences, given)
            self.hardest = sorted([*self.hardest, *doubts], key=lambda one: (one.confidence, one.sentence, one.number))
            del self.hardest[self.doubts :]
        self.sentences += len(corpus)


def least_certain(corpus: Corpus, layer: Layer, n: int, before: int = 0, given: Layer | None = None) -> list[Doubt]:
    """The n words of the lowest confidence. before: sentences of earlier blocks; given: what it was converted from."""
    import numpy as np

    from duilian.corpus import decode

    if layer.confidence is None:
        return []
    found = []
    for unit in np.argsort(layer.confidence, kind="stable")[:n].tolist():
        sentence = int(np.searchsorted(layer.offsets, unit, side="right")) - 1
        start, end = int(layer.starts[unit]), int(layer.ends[unit])
        begin, stop = int(corpus.offsets[sentence]), int(corpus.offsets[sentence + 1])
        found.append(
            Doubt(
                float(layer.confidence[unit]),
                before + sentence + 1,
                unit - int(layer.offsets[sentence]) + 1,
                decode(corpus.text[start:end]),
                _written(layer, unit),
                decode(corpus.text[max(begin, start - CONTEXT) : start]),
                decode(corpus.text[end : min(stop, end + CONTEXT)]),
                "" if given is None else _under(corpus, given, start, end),
            )
        )
    return found


def _under(corpus: Corpus, layer: Layer, start: int, end: int) -> str:
    """The words of a layer that share a character with a span, as word/tag."""
    import numpy as np

    from duilian.corpus import decode

    first = int(np.searchsorted(layer.ends, start, side="right"))
    last = int(np.searchsorted(layer.starts, end, side="left"))
    return " ".join(
        f"{decode(corpus.text[layer.starts[unit] : layer.ends[unit]])}/{_written(layer, unit)}"
        for unit in range(first, last)
    )


def _written(layer: Layer, unit: int) -> str:
    label = layer.label(unit)
    return label if isinstance(label, str) else "" if label is None else "|".join(sorted(label))


def write_review(path: Path, doubts: list[Doubt]) -> None:
    """The review list: columns separated by tabs, the least certain word first."""
    with path.open("w", encoding="utf-8") as file:
        file.write("confidence\tsentence\tword number\tbefore\tword\tlabel\tbehind\tgiven\n")
        for one in doubts:
            cells = [one.left, one.word, one.label, one.right, one.given]
            texts = [" ".join(cell.split()) for cell in cells]
            file.write("\t".join([f"{one.confidence:.4f}", str(one.sentence), str(one.number), *texts]) + "\n")
