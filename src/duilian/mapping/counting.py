"""Counting: which labels of several standards meet on the same text, which share words, and where to see them.

overlaps      pairs of words of two segmentations, or more, that share characters       from_overlaps   their labels
common_words  labels of the words that two corpora, or more, have in common
examples      where a bundle was found, in context
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from duilian.corpus import UNKNOWN, Corpus, Layer, decode
from duilian.errors import MismatchError
from duilian.mapping.table import Mapping, make
from duilian.ragged import ranges

CONTEXT = 10
"""Characters of context on either side of an example."""


def overlaps(*layers: Layer, length: int) -> NDArray[np.int64]:
    """(n, S) words, one of each layer, that share at least one character; each bundle of words once.

    length: characters of the text. Where the segmentations agree this is word for word.
    """
    where = np.full((len(layers), length), -1, np.int64)
    for row, layer in zip(where, layers, strict=True):
        row[ranges(layer.starts, layer.ends)] = np.repeat(np.arange(len(layer)), layer.ends - layer.starts)
    inside: NDArray[np.bool_] = np.all(where >= 0, axis=0)
    new = inside.copy()
    new[1:] &= ~inside[:-1] | (where[:, 1:] != where[:, :-1]).any(axis=0)
    return np.ascontiguousarray(where[:, new].T)


def from_overlaps(parts: Sequence[tuple[Corpus, Sequence[Layer]]], min_count: int = 1) -> Mapping:
    """Every bundle of labels whose words share a character, with its counts.

    parts: corpora, each with a layer of every side, in the order of the sides; one given, the others predicted, say
    """
    if not parts:
        raise MismatchError("there is no corpus to count labels in")
    n_sides = len(parts[0][1])
    sides = [sorted({tag for _, layers in parts for tag in _used(layers[s])}) for s in range(n_sides)]
    number = [{tag: k for k, tag in enumerate(side)} for side in sides]
    rows: list[NDArray[np.int64]] = [np.zeros((0, n_sides), np.int64)]
    counts = [np.zeros(0, np.int64)]
    for corpus, layers in parts:
        words = overlaps(*layers, length=len(corpus.text))
        labels = np.stack([layer.labels[words[:, s]] for s, layer in enumerate(layers)], axis=1)
        found, seen = np.unique(labels[(labels >= 0).all(axis=1)], axis=0, return_counts=True)
        renamed = np.empty(found.shape, np.int64)
        for s, layer in enumerate(layers):
            table = np.array([number[s].get(tag, -1) for tag in layer.tags] or [-1])
            renamed[:, s] = table[found[:, s]]
        rows.append(renamed)
        counts.append(seen)
    whole = np.concatenate(rows)
    return make(sides, whole, np.zeros(len(whole), np.bool_), np.concatenate(counts)).at_least(min_count)


def common_words(corpora: Sequence[tuple[Corpus, Layer]], share: float = 0.1, min_count: int = 1) -> Mapping:
    """Every bundle of the usual labels of a word that all corpora have; its count is the number of such words.

    corpora: per side a corpus and its layer;  share: a label is usual that makes at least this share of a word's
    occurrences. For corpora of which no tagger can be trained, or as a check of one that was.
    """
    tables = [_labels_of_words(corpus, layer) for corpus, layer in corpora]
    sides = [sorted(_used(layer)) for _, layer in corpora]
    number = [{tag: k for k, tag in enumerate(side)} for side in sides]
    seen: Counter[tuple[int, ...]] = Counter()
    for word in sorted(set(tables[0]).intersection(*tables[1:])):
        usual = []
        for table, known in zip(tables, number, strict=True):
            total = sum(table[word].values())
            usual.append([known[tag] for tag, count in table[word].items() if count >= share * total])
        seen.update(itertools.product(*usual))
    rows = np.array(list(seen), np.int64).reshape(-1, len(corpora))
    return make(sides, rows, np.zeros(len(rows), np.bool_), list(seen.values())).at_least(min_count)


@dataclass(frozen=True)
class Example:
    """A place where a bundle was found. sentence: counted from 1; words: per side the word that carries the label."""

    left: str
    words: tuple[str, ...]
    right: str
    sentence: int


def examples(
    parts: Sequence[tuple[Corpus, Sequence[Layer]]], wanted: Sequence[tuple[str, ...]], n: int = 3
) -> dict[tuple[str, ...], list[Example]]:
    """The first n places of each bundle, with different words where there are such."""
    found: dict[tuple[str, ...], list[Example]] = {bundle: [] for bundle in wanted}
    spare: dict[tuple[str, ...], list[Example]] = {bundle: [] for bundle in wanted}
    for corpus, layers in parts:
        words = overlaps(*layers, length=len(corpus.text))
        names = [[*layer.tags, ""] for layer in layers]
        for row in words.tolist():
            bundle = tuple(
                name[max(int(layer.labels[k]), UNKNOWN)] for name, layer, k in zip(names, layers, row, strict=True)
            )
            if bundle not in found or len(found[bundle]) >= n:
                continue
            one = _example(corpus, layers, row)
            if any(one.words == old.words for old in found[bundle]):
                if len(spare[bundle]) < n:
                    spare[bundle].append(one)
            else:
                found[bundle].append(one)
    return {bundle: [*places, *spare[bundle]][:n] for bundle, places in found.items()}


def _example(corpus: Corpus, layers: Sequence[Layer], row: Sequence[int]) -> Example:
    spans = [(int(layer.starts[k]), int(layer.ends[k])) for layer, k in zip(layers, row, strict=True)]
    begin, end = min(a for a, _ in spans), max(b for _, b in spans)
    sentence = int(np.searchsorted(corpus.offsets, begin, side="right")) - 1
    first, last = int(corpus.offsets[sentence]), int(corpus.offsets[sentence + 1])
    return Example(
        decode(corpus.text[max(first, begin - CONTEXT) : begin]),
        tuple(decode(corpus.text[a:b]) for a, b in spans),
        decode(corpus.text[end : min(last, end + CONTEXT)]),
        sentence + 1,
    )


def _used(layer: Layer) -> set[str]:
    """The tags that a layer's words carry, alone."""
    return {layer.tags[k] for k in np.unique(layer.labels[layer.labels >= 0]).tolist()}


def _labels_of_words(corpus: Corpus, layer: Layer) -> dict[str, Counter[str]]:
    """Word, without whitespace -> its tags."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    text = decode(corpus.text)
    for start, end, label in zip(layer.starts.tolist(), layer.ends.tolist(), layer.labels.tolist(), strict=True):
        if label >= 0:
            found["".join(text[start:end].split())][layer.tags[label]] += 1
    return found
