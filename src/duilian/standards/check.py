"""Does a corpus keep to its standard? And a standard made from a corpus, for ``--standard auto``."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from duilian.corpus import Layer, decode
from duilian.errors import TagError
from duilian.ragged import ranges
from duilian.standards.standard import Standard

_EXAMPLES = 4
_LOOKED_AT = 400


@dataclass(frozen=True)
class UnknownTag:
    """A tag that a standard does not know: where it comes first (counted from 1), and in how many units."""

    tag: str
    sentence: int
    word: int
    unit: int
    count: int
    nearest: str | None


def unknown_tags(layer: Layer, standard: Standard) -> list[UnknownTag]:
    """The used tags of a layer that its standard does not know, in the order of the text; tags in sets count too."""
    strange = [number for number, tag in enumerate(layer.tags) if not standard.knows(tag)]
    if not strange:
        return []
    found = []
    for number in strange:
        units = np.flatnonzero(_carries(layer, number))
        if len(units):
            unit = int(units[0])
            sentence = int(np.searchsorted(layer.offsets, unit, side="right")) - 1
            tag = layer.tags[number]
            place = (sentence + 1, unit - int(layer.offsets[sentence]) + 1, unit)
            found.append(UnknownTag(tag, *place, len(units), standard.nearest(tag)))
    return sorted(found, key=lambda one: one.unit)


def check(layer: Layer, standard: Standard, where: str = "corpus", text: NDArray[np.uint32] | None = None) -> None:
    """Raise a TagError if the layer has a tag that the standard does not know; with the text it shows the word."""
    unknown = unknown_tags(layer, standard)
    if unknown:
        raise TagError(describe(unknown, layer, standard, where, text))


def describe(
    unknown: list[UnknownTag],
    layer: Layer,
    standard: Standard,
    where: str = "corpus",
    text: NDArray[np.uint32] | None = None,
) -> str:
    """One message about unknown tags: for the error of ``check``, and for commands that only warn."""
    first = unknown[0]
    word = ""
    if text is not None:
        word = f" ({decode(text[layer.starts[first.unit] : layer.ends[first.unit]])!r})"
    near = ""
    if first.nearest is not None:
        near = f" The nearest known tag is {first.nearest!r} ({standard.gloss(first.nearest)})."
    others = ""
    if len(unknown) > 1:
        listed = ", ".join(f"{one.tag!r} ({one.count})" for one in unknown[1:6])
        others = f" {len(unknown) - 1} more unknown tags: {listed}{', ...' if len(unknown) > 6 else ''}."
    return (
        f"{where}: sentence {first.sentence}, word {first.word}{word}: tag {first.tag!r} is not in the standard "
        f"{standard.name!r} of {len(standard.tags)} tags; {first.count} such token{'s' * (first.count > 1)}."
        f"{near}{others} Correct the corpus, name another standard, add the tag to a copy of the standard file, "
        "or use --standard auto to take the tags from the corpus."
    )


def from_corpus(layer: Layer, name: str, text: NDArray[np.uint32] | None = None, language: str = "und") -> Standard:
    """A standard that has just the tags of a layer; glosses are examples where the text is given, else counts."""
    tags: dict[str, str] = {}
    for number in sorted(range(len(layer.tags)), key=lambda number: layer.tags[number]):
        units = np.flatnonzero(_carries(layer, number))
        if len(units):
            tags[layer.tags[number]] = _examples(layer, units, text)
    return Standard(
        name=name,
        title=f"tags found in a corpus ({name})",
        language=language,
        unit="word",
        tags=tags,
        source="made from a corpus",
        licence="as the corpus",
        segmentation="as the corpus",
    )


def _carries(layer: Layer, number: int) -> NDArray[np.bool_]:
    """(n_units,) whether each unit has this tag as its label or among its allowed labels."""
    carries = layer.labels == number
    if len(layer.sets):
        rows = np.repeat(np.arange(len(layer.sets)), layer.sets.lengths)[layer.sets.data == number]
        carries = carries | np.isin(-2 - layer.labels, rows)
    return np.asarray(carries)


def _examples(layer: Layer, units: NDArray[np.int64], text: NDArray[np.uint32] | None) -> str:
    count = f"seen {len(units)} {'time' if len(units) == 1 else 'times'}"
    if text is None:
        return count
    some = units[:_LOOKED_AT]
    starts, ends = layer.starts[some], layer.ends[some]
    characters = decode(text[ranges(starts, ends)])
    edges = np.concatenate([np.zeros(1, np.int64), np.cumsum(ends - starts)]).tolist()
    words = Counter(characters[a:b] for a, b in pairwise(edges))
    return f"{count}, as in {', '.join(word for word, _ in words.most_common(_EXAMPLES))}"
