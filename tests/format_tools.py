"""Reading and writing corpora in memory, for the tests of formats."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from duilian import formats
from duilian.corpus import Corpus, encode
from duilian.formats.base import fixed

Sentences = list[list[tuple[str, Any]]]


def read(text: str | bytes, format: str = "auto", **options: Any) -> Corpus:
    data = text.encode() if isinstance(text, str) else text
    stream = io.BytesIO(data)
    stream.name = "FILE"
    return formats.read(stream, format=format, **options)


def written(corpus: Corpus, format: str, layer: str | None = None, **options: Any) -> str:
    out = io.BytesIO()
    with formats.open_writer(out, format, layer, **options) as writer:
        writer.write(corpus)
    return out.getvalue().decode()


def pairs(corpus: Corpus, layer: str | None = None) -> Sentences:
    return [
        list(zip(words, tags, strict=True)) for words, tags in zip(corpus.words(layer), corpus.tags(layer), strict=True)
    ]


def spans(starts: Any, ends: Any) -> list[tuple[int, int]]:
    return list(zip(starts.tolist(), ends.tolist(), strict=True))


def points(text: str) -> Any:
    return fixed(encode(text), np.uint32)


def places(*values: int) -> Any:
    return fixed(np.array(values, np.int64), np.int64)
