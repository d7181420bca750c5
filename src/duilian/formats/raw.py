"""Plain text, one sentence a line.

The text keeps its white space, which is never part of a unit: the layer ``chunks`` has the stretches between.
"""

from __future__ import annotations

import numpy as np

from duilian.corpus import Corpus
from duilian.errors import UsageError
from duilian.formats.base import Block, Format, ReadOptions, Units, WriteOptions, fixed, one_layer, tagged, with_source
from duilian.formats.tokens import line_contents, scan
from duilian.formats.weaving import Pieces, check_confidence, pick, render
from duilian.ragged import offsets_of

CHUNKS = "chunks"


def detect(sample: str) -> int:
    """Any text is this if nothing says otherwise."""
    return 30


def read(block: Block, layer: str | None, options: ReadOptions) -> Corpus:
    """Every line is the text of a sentence."""
    from duilian.formats.scan_kernels import gather

    name = one_layer(layer, (CHUNKS,), "raw")
    points = block.points
    tokens = scan(points, wide=True)
    begins, stops = tokens.lines[:-1], line_contents(points, tokens.lines)
    text = gather(fixed(points, np.uint32), fixed(begins, np.int64), fixed(stops, np.int64))
    edges = offsets_of(stops - begins)
    line = np.repeat(np.arange(len(begins), dtype=np.int32), np.diff(tokens.offsets))
    shift = edges[line] - begins[line]
    units = Units(text, edges, tokens.offsets, tokens.starts + shift, tokens.ends + shift)
    corpus = Corpus(text, edges, (tagged(units, name),))
    if options.keep_source:
        corpus = with_source(corpus, "raw", points, tokens.lines, {})
    return corpus


def write(corpus: Corpus, layer: str | None, options: WriteOptions) -> str:
    """The text of every sentence; no layer shows in it."""
    if options.confidence:
        check_confidence(pick(corpus, layer, "raw"), True, "raw", holds=False)
    source = corpus.source
    if source is not None and source.format == "raw" and source.style["text"] is corpus.text:
        n = len(corpus)
        return render(
            Pieces(source.raw, source.offsets[:-1], source.offsets[1:], np.zeros(n, np.int64), np.arange(n), [""])
        )
    filled = np.flatnonzero(np.diff(corpus.offsets))
    ends = corpus.offsets[filled + 1] - 1
    wrong = np.union1d(np.flatnonzero(corpus.text == 10), ends[corpus.text[ends] == 13])
    if len(wrong):
        sentence = int(np.searchsorted(corpus.offsets, wrong[0], side="right"))
        raise UsageError(f"raw cannot hold sentence {sentence}: there is a line end in it. Use jsonl.")
    n = len(corpus)
    return render(
        Pieces(corpus.text, corpus.offsets[:-1], corpus.offsets[1:], np.zeros(n, np.int64), np.arange(n), ["\n"])
    )


FORMAT = Format(
    name="raw",
    about="plain text, one sentence a line",
    suffixes=(".txt",),
    cut="line",
    layers="chunks (stretches without white space)",
    keeps_tags=False,
    detect=detect,
    read=read,
    write=write,
)
