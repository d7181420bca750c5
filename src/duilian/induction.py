"""Mappings induced by taggers: what one standard's tagger makes of another's corpus, what a coupled model pairs.

by_taggers   each corpus has the labels of its side; taggers of the other sides run over it (li2015, section 3.1)
by_model     a model that converts is given one side's labels, and answers with the others
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from duilian.corpus import UNKNOWN, Corpus, Layer
from duilian.errors import TaskError, UsageError
from duilian.mapping import Mapping as Bundles
from duilian.mapping import from_overlaps
from duilian.tagger import Tagger


@dataclass(frozen=True)
class Induced:
    """A mapping with the corpora that it was counted in, each with a layer for every side, for examples."""

    mapping: Bundles
    names: tuple[str, ...]
    parts: tuple[tuple[Corpus, tuple[Layer, ...]], ...]


def by_taggers(corpora: Mapping[str, Corpus], taggers: Mapping[str, Tagger], least: int = 1) -> Induced:
    """What is given on one side and predicted on the others; a corpus counts if all its other sides have a tagger.

    corpora: side -> a corpus with its labels, in the order of the sides;  taggers: side -> what answers in its standard
    """
    names = tuple(corpora)
    parts = []
    for name, corpus in corpora.items():
        if any(other not in taggers for other in names if other != name):
            continue
        given = corpus.layer()
        parts.append(
            (corpus, tuple(given if other == name else answer(taggers[other], corpus, other) for other in names))
        )
    if not parts:
        raise UsageError(
            f"no corpus can be tagged to the other standard: of {', '.join(names)} there are taggers for "
            f"{', '.join(taggers) or 'none'}. A mapping of two sides needs one tagger at least."
        )
    return Induced(from_overlaps(parts, least), names, tuple(parts))


def by_model(tagger: Tagger, corpora: Mapping[str, Corpus], sure: float = 0.0, least: int = 1) -> Induced:
    """The model's own bundles: the labels of a side are given, those of the others are the likeliest beside them.

    corpora: side -> a corpus with its labels;  sure: answers whose probability is lower do not count
    """
    names = tuple(info.name for info in tagger.sides)
    if len(names) < 2:
        raise TaskError(f"this model knows one standard, {names[0]}: nothing is paired in it.")
    parts = []
    for name, corpus in corpora.items():
        given = corpus.layer()
        layers = []
        for other in names:
            if other == tagger.side(name).name:
                layers.append(given)
                continue
            found = tagger.convert(corpus, name, other, given.name, confidence=sure > 0).layer(given.name)
            layers.append(_sure(found, sure))
        parts.append((corpus, tuple(layers)))
    if not parts:
        raise UsageError("a model is asked on annotated text: name a corpus with --side NAME=FILE.")
    return Induced(from_overlaps(parts, least), names, tuple(parts))


def by_layers(corpora: Sequence[Corpus], names: Sequence[str], least: int = 1) -> Induced:
    """Corpora that have a layer of every side already."""
    parts = [(corpus, tuple(corpus.layer(name) for name in names)) for corpus in corpora]
    return Induced(from_overlaps(parts, least), tuple(names), tuple(parts))


def answer(tagger: Tagger, corpus: Corpus, name: str) -> Layer:
    """The layer that a tagger gives a corpus: on the side of that name, or on its only one."""
    known = [info.name for info in tagger.sides]
    if name not in known and len(known) > 1:
        raise TaskError(f"a model of {', '.join(known)} has no side {name}.")
    layer = corpus.layer().name
    return tagger.tag(corpus, name if name in known else known[0], layer).layer(layer)


def _sure(layer: Layer, sure: float) -> Layer:
    """The layer without labels that are less probable."""
    if layer.confidence is None or sure <= 0:
        return layer
    return replace(layer, labels=np.where(layer.confidence >= sure, layer.labels, UNKNOWN).astype(np.int32))
