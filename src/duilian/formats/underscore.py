"""Words and tags joined by an underscore, one sentence a line; the last underscore splits.

上海_NR 浦东_NR 开发_NN
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from duilian.corpus import Corpus
from duilian.formats.base import (
    TAGS,
    Block,
    Fault,
    Format,
    Ints,
    Points,
    ReadOptions,
    WriteOptions,
    assemble,
    mended,
    number,
    one_layer,
    tagged,
    with_source,
)
from duilian.formats.tokens import Tokens, last, looks_tagged, scan, split_faults, usual_space, write_lines
from duilian.formats.weaving import ASCII_SPACE, check_confidence, check_labels, check_tags, check_words, pick


def detect(sample: str) -> int:
    """Nearly every token has an underscore inside."""
    return max(0, looks_tagged(sample, "_") - 5)


def read(block: Block, layer: str | None, options: ReadOptions) -> Corpus:
    """Split every token at its last underscore."""
    name = one_layer(layer, (TAGS,), "underscore")

    def parse(points: Points) -> tuple[tuple[Tokens, Ints], Iterator[Fault]]:
        tokens = scan(points, wide=False)
        marks = last(points, tokens, "_")
        return (tokens, marks), split_faults(points, tokens, marks, "_")

    (tokens, marks), points = mended(block, options, parse)
    units = assemble(points, tokens.starts, marks, tokens.offsets)
    corpus = Corpus(
        units.text,
        units.edges,
        (tagged(units, name, *(number(points, marks + 1, tokens.ends) if options.labels else ())),),
    )
    if options.keep_source:
        space = usual_space(points, tokens)
        slots = {name: (marks + 1, tokens.ends)}
        corpus = with_source(
            corpus, "underscore", points, tokens.lines, slots, space=space, slot_offsets=tokens.offsets
        )
    return corpus


def write(corpus: Corpus, layer: str | None, options: WriteOptions) -> str:
    """Word, underscore, tag."""
    chosen = pick(corpus, layer, "underscore")
    check_confidence(chosen, options.confidence, "underscore", holds=False)
    check_labels(corpus, chosen, "underscore")
    check_tags(chosen, "underscore", lambda tag: "_" in tag or tag.split() != [tag])
    strings = ["_" + tag for tag in chosen.tags]
    which = chosen.labels.astype(np.int64)
    return write_lines(
        corpus,
        chosen,
        "underscore",
        strings,
        which,
        True,
        lambda: check_words(corpus, chosen, "underscore", ASCII_SPACE),
    )


FORMAT = Format(
    name="underscore",
    about="word_TAG, one sentence a line",
    suffixes=(".pos",),
    cut="line",
    layers="tags",
    keeps_tags=True,
    detect=detect,
    read=read,
    write=write,
)
