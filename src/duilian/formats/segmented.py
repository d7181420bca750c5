"""Words with white space between them, one sentence a line: the format of the segmentation bakeoffs.

    迈向  充满  希望  的  新  世纪

Any white space separates, the ideographic space too. Labels are unknown, and none are written.
"""

from __future__ import annotations

import numpy as np

from duilian.corpus import Corpus
from duilian.formats.base import (
    TAGS,
    Block,
    Format,
    ReadOptions,
    WriteOptions,
    assemble,
    one_layer,
    tagged,
    with_source,
)
from duilian.formats.tokens import scan, usual_space, write_lines
from duilian.formats.weaving import ANY_SPACE, check_confidence, check_words, pick


def detect(sample: str) -> int:
    """Chinese or Japanese in short tokens, or punctuation that stands alone."""
    words = sample.split()
    lines = max(1, sample.count("\n"))
    if len(words) <= lines:
        return 10
    wide = sum(any(0x2E80 <= ord(c) <= 0x9FFF or 0xAC00 <= ord(c) <= 0xD7AF for c in word) for word in words)
    if 2 * wide > len(words):
        return 60 if sum(map(len, words)) / len(words) <= 4.5 else 10
    marks = '.,;:!?"()'
    alone = sum(word in marks for word in words)
    attached = sum(len(word) > 1 and word[-1] in marks and word[0] not in marks for word in words)
    return 60 if alone > 2 * attached else 10


def read(block: Block, layer: str | None, options: ReadOptions) -> Corpus:
    """Every token is a word."""
    name = one_layer(layer, (TAGS,), "segmented")
    points = block.points
    tokens = scan(points, wide=True)
    units = assemble(points, tokens.starts, tokens.ends, tokens.offsets)
    corpus = Corpus(units.text, units.edges, (tagged(units, name),))
    if options.keep_source:
        corpus = with_source(corpus, "segmented", points, tokens.lines, {}, space=usual_space(points, tokens))
    return corpus


def write(corpus: Corpus, layer: str | None, options: WriteOptions) -> str:
    """The words of the layer."""
    chosen = pick(corpus, layer, "segmented")
    check_confidence(chosen, options.confidence, "segmented", holds=False)
    which = np.zeros(len(chosen), np.int64)
    return write_lines(
        corpus, chosen, "segmented", [""], which, False, lambda: check_words(corpus, chosen, "segmented", ANY_SPACE)
    )


FORMAT = Format(
    name="segmented",
    about="words with spaces between them, one sentence a line",
    suffixes=(".seg", ".utf8"),
    cut="line",
    layers="tags (always unknown)",
    keeps_tags=False,
    detect=detect,
    read=read,
    write=write,
)
