"""From file to file, block by block: what tag and convert share. A file of any size passes through."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from duilian.cli.arguments import Reading
from duilian.cli.terminal import bar
from duilian.errors import UsageError

if TYPE_CHECKING:
    from duilian.corpus import Corpus
    from duilian.tagger import Tagger


@dataclass
class Job:
    """What is to be done with every block.

    several: the option that asks for several answers, or nothing
    """

    tagger: Tagger
    confidence: bool
    nbest: int | None
    several: str

    def run(self, corpus: Corpus) -> tuple[Corpus, dict[str, Any] | None]:
        """What a job does: a block with its answers, and the n best where they are asked for."""
        raise NotImplementedError

    def layer(self, corpus: Corpus) -> str | None:
        """Which layer is written: the one that was read; None is all of them."""
        return corpus.layer().name

    def seen(self, corpus: Corpus) -> None:
        """Called with every block's answer, in order."""

    def check_format(self, format: str) -> None:
        """Several answers need a format that holds them."""
        from duilian import formats

        chosen = formats.find(format)
        if self.several and format != "jsonl":
            raise UsageError(f"{self.several} needs --format jsonl; {format} holds one answer.")
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


def through(
    job: Job,
    file: str,
    output: str,
    reading: Reading,
    format: str = "auto",
    labels: bool = True,
    threads: int = 1,
    provenance: Sequence[str] = (),
    title: str = "tagging",
) -> dict[str, Any]:
    """Send a file through a job; returns tokens, seconds, tokens_per_second. labels: whether the input's are read."""
    from duilian import formats
    from duilian.tagger import in_order

    began = time.perf_counter()
    if format != "auto":
        job.check_format(format)
    path, layer = formats.split_layer(file)
    blocks = formats.read_blocks(
        path, layer, on_skip=reading.skip, keep_source=True, labels=labels, **reading.options()
    )
    tokens = 0
    with ExitStack() as stack, bar(reading.remarks, title) as advance:
        writer: Any = None
        for corpus, answers in in_order(job.run, blocks, threads):
            if writer is None:
                format = format if format != "auto" else job.output_format(corpus)
                job.check_format(format)
                writer = stack.enter_context(
                    formats.open_writer(
                        output, format, job.layer(corpus), confidence=job.confidence, provenance=provenance
                    )
                )
            writer.write(corpus, answers)
            job.seen(corpus)
            tokens += len(corpus.layer())
            advance(tokens, None, f"{tokens:,} tokens")
    seconds = time.perf_counter() - began
    return {"tokens": tokens, "seconds": seconds, "tokens_per_second": tokens / seconds}
