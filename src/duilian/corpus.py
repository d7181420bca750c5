"""Corpus: a text, its sentences, and layers of annotation over it. Columnar, frozen, numpy.

    text     一 九 九 八 新 年 ...           code points of the input, never altered
    offsets  sentence i is text[offsets[i]:offsets[i + 1]]
    layers   each a segmentation of the text into units, with a label for each unit

Two segmentations of one text are two layers. Labels are numbers into the layer's own list of tags; -1 is unknown, and
-2 - k is the k-th set of allowed labels. The character view of a layer is computed by ``duilian.lifting``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duilian.ragged import Ragged, offsets_of, ranges

UNKNOWN = -1
Label = str | frozenset[str] | None
"""A label as a person writes it: a tag, a set of allowed tags, or None for unknown."""

_NO_SETS = Ragged(np.zeros(0, np.int32), np.zeros(1, np.int64))


@dataclass(frozen=True, eq=False)
class Layer:
    """One segmentation of a corpus, with labels.

    offsets:    (n_sentences + 1,) int64; the units of sentence i are offsets[i]:offsets[i + 1]
    starts:     (n_units,) int64, index of the unit's first code point in the corpus' text
    ends:       (n_units,) int64, index behind its last code point
    labels:     (n_units,) int32; >= 0 a tag, -1 unknown, -2 - k the allowed labels sets[k]
    sets:       Ragged of int32 tag numbers
    confidence: (n_units,) float32, probability of each label, NaN where it is not known; or None
    """

    name: str
    tags: tuple[str, ...]
    offsets: NDArray[np.int64]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    labels: NDArray[np.int32]
    sets: Ragged = _NO_SETS
    standard: str | None = None
    confidence: NDArray[np.float32] | None = None

    def __post_init__(self) -> None:
        n = len(self.starts)
        if len(self.ends) != n or len(self.labels) != n or self.offsets[-1] != n:
            raise ValueError(
                f"layer {self.name!r}: starts, ends, labels and offsets speak of different numbers of units"
            )
        if self.confidence is not None and len(self.confidence) != n:
            raise ValueError(f"layer {self.name!r}: {len(self.confidence)} confidences for {n} units")
        for array in (self.offsets, self.starts, self.ends, self.labels):
            array.flags.writeable = False

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def has_tags(self) -> bool:
        """Whether any unit carries a tag (a layer without tags is a segmentation only)."""
        return bool(np.any(self.labels != UNKNOWN))

    def label(self, unit: int) -> Label:
        """The label of a unit as a person writes it."""
        number = int(self.labels[unit])
        if number >= 0:
            return self.tags[number]
        return None if number == UNKNOWN else frozenset(self.tags[k] for k in self.sets[-2 - number])


@dataclass(frozen=True, eq=False)
class Source:
    """What a format needs to write a corpus back so that nothing but the annotation changes.

    raw:     (n,) uint32, the code points of the block as read, markup included
    offsets: (n_sentences + 1,) int64; sentence i came from raw[offsets[i]:offsets[i + 1]]
    slots:   layer name -> (starts, ends), the place in raw of each unit's label field
    style:   whatever else the format wants to remember (separators, line ends, field names)
    """

    format: str
    raw: NDArray[np.uint32]
    offsets: NDArray[np.int64]
    slots: dict[str, tuple[NDArray[np.int64], NDArray[np.int64]]] = field(default_factory=dict)
    style: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Corpus:
    """Sentences of one text and the layers over them.

    text:    (n_chars,) uint32 code points
    offsets: (n_sentences + 1,) int64 into text
    """

    text: NDArray[np.uint32]
    offsets: NDArray[np.int64]
    layers: tuple[Layer, ...] = ()
    source: Source | None = None

    def __post_init__(self) -> None:
        self.text.flags.writeable = False
        self.offsets.flags.writeable = False
        if self.offsets[-1] != len(self.text):
            raise ValueError(f"sentence offsets end at {self.offsets[-1]}, the text at {len(self.text)}")
        for layer in self.layers:
            if len(layer.offsets) != len(self.offsets):
                raise ValueError(f"layer {layer.name!r} has {len(layer.offsets) - 1} sentences, the text {len(self)}")

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def layer(self, name: str | None = None) -> Layer:
        """The layer of that name, or the only (or first) layer."""
        for layer in self.layers:
            if name is None or layer.name == name:
                return layer
        names = ", ".join(layer.name for layer in self.layers) or "no layers at all"
        raise KeyError(f"no layer {name!r}; this corpus has {names}")

    def with_layer(self, layer: Layer) -> Corpus:
        """A new corpus in which this layer replaces the one of the same name, or is added."""
        if any(old.name == layer.name for old in self.layers):
            layers = tuple(layer if old.name == layer.name else old for old in self.layers)
        else:
            layers = (*self.layers, layer)
        return replace(self, layers=layers)

    def sentence_text(self, sentence: int) -> str:
        """The text of one sentence."""
        return decode(self.text[self.offsets[sentence] : self.offsets[sentence + 1]])

    def words(self, name: str | None = None) -> list[list[str]]:
        """The words of each sentence, as strings."""
        layer = self.layer(name)
        text = decode(self.text)
        starts, ends = layer.starts.tolist(), layer.ends.tolist()
        forms = [text[start:end] for start, end in zip(starts, ends, strict=True)]
        return _split(forms, layer.offsets)

    def tags(self, name: str | None = None) -> list[list[Label]]:
        """The labels of each sentence, as a person writes them."""
        layer = self.layer(name)
        names: list[Label] = [*layer.tags]
        forms = [
            names[number] if number >= 0 else layer.label(unit) for unit, number in enumerate(layer.labels.tolist())
        ]
        return _split(forms, layer.offsets)

    def select(self, sentences: Any) -> Corpus:
        """A new corpus of the given sentences, in the given order (a slice, numbers or a mask); drops the source."""
        chosen = np.arange(len(self))[sentences]
        begin, end = self.offsets[chosen], self.offsets[chosen + 1]
        offsets = offsets_of(end - begin)
        layers = []
        for layer in self.layers:
            units = ranges(layer.offsets[chosen], layer.offsets[chosen + 1])
            counts = layer.offsets[chosen + 1] - layer.offsets[chosen]
            shift = np.repeat(offsets[:-1] - begin, counts)
            layers.append(
                replace(
                    layer,
                    offsets=offsets_of(counts),
                    starts=layer.starts[units] + shift,
                    ends=layer.ends[units] + shift,
                    labels=layer.labels[units],
                    confidence=None if layer.confidence is None else layer.confidence[units],
                )
            )
        return Corpus(self.text[ranges(begin, end)], offsets, tuple(layers))


def encode(text: str) -> NDArray[np.uint32]:
    """A string as an array of code points."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)


def decode(points: NDArray[np.uint32]) -> str:
    """An array of code points as a string."""
    return points.astype("<u4", copy=False).tobytes().decode("utf-32-le", "surrogatepass")


def concatenate(corpora: Sequence[Corpus]) -> Corpus:
    """One corpus after the other; they must have the same layers by name, tags are merged; drops the sources."""
    if not corpora:
        return Corpus(np.zeros(0, np.uint32), np.zeros(1, np.int64))
    if len(corpora) == 1:
        return corpora[0]
    chars = np.cumsum([0] + [len(corpus.text) for corpus in corpora])
    text = np.concatenate([corpus.text for corpus in corpora])
    offsets = offsets_of(np.concatenate([np.diff(corpus.offsets) for corpus in corpora]))
    layers = []
    for first in corpora[0].layers:
        parts = [corpus.layer(first.name) for corpus in corpora]
        tags = first.tags
        if any(part.tags != tags for part in parts):
            tags = tuple(sorted({tag for part in parts for tag in part.tags}))
            parts = [with_tags(part, tags) for part in parts]
        counts = np.cumsum([0] + [len(part.sets) for part in parts])
        confidence = None
        if any(part.confidence is not None for part in parts):
            nothing = (np.full(len(part), np.nan, np.float32) for part in parts)
            confidence = np.concatenate(
                [
                    none if part.confidence is None else part.confidence
                    for part, none in zip(parts, nothing, strict=True)
                ]
            )
        layers.append(
            Layer(
                name=first.name,
                tags=tags,
                offsets=offsets_of(np.concatenate([np.diff(part.offsets) for part in parts])),
                starts=np.concatenate([part.starts + at for part, at in zip(parts, chars[:-1], strict=True)]),
                ends=np.concatenate([part.ends + at for part, at in zip(parts, chars[:-1], strict=True)]),
                labels=np.concatenate(
                    [
                        np.where(part.labels <= -2, part.labels - np.int32(at), part.labels).astype(np.int32)
                        for part, at in zip(parts, counts[:-1], strict=True)
                    ]
                ),
                sets=Ragged(
                    np.concatenate([part.sets.data for part in parts]),
                    offsets_of(np.concatenate([part.sets.lengths for part in parts])),
                ),
                standard=first.standard,
                confidence=confidence,
            )
        )
    return Corpus(text, offsets, tuple(layers))


def with_tags(layer: Layer, tags: Sequence[str]) -> Layer:
    """The same labels over another list of tags, sets sorted; a tag that the list lacks becomes unknown."""
    number = {tag: k for k, tag in enumerate(tags)}
    table = np.array([number.get(tag, UNKNOWN) for tag in layer.tags] or [UNKNOWN], dtype=np.int32)
    labels = np.where(layer.labels >= 0, table[np.maximum(layer.labels, 0)], layer.labels).astype(np.int32)
    known = table[layer.sets.data] if len(layer.sets.data) else np.zeros(0, np.int32)
    keep = known >= 0
    offsets = offsets_of(keep)[layer.sets.offsets]
    row = np.repeat(np.arange(len(layer.sets)), np.diff(offsets))
    known = known[keep]
    sets = Ragged(known[np.lexsort((known, row))], offsets)
    if len(sets):
        empty = np.flatnonzero(sets.lengths == 0)
        labels[np.isin(-2 - labels, empty) & (labels <= -2)] = UNKNOWN
    return replace(layer, tags=tuple(tags), labels=labels, sets=sets)


def build(
    sentences: Iterable[tuple[Sequence[str], Sequence[Label] | None]],
    name: str = "tags",
    standard: str | None = None,
) -> Corpus:
    """A corpus from lists of words and labels: the door for Python programs and for formats without a kernel."""
    words: list[str] = []
    labels: list[Label] = []
    counts: list[int] = []
    for forms, tags in sentences:
        if tags is not None and len(tags) != len(forms):
            raise ValueError(f"sentence {len(counts) + 1} has {len(forms)} words and {len(tags)} labels")
        words.extend(forms)
        labels.extend(tags if tags is not None else [None] * len(forms))
        counts.append(len(forms))
    ends = np.cumsum(np.array([len(word) for word in words], dtype=np.int64))
    starts = np.concatenate([np.zeros(1, np.int64), ends])[:-1]
    offsets = offsets_of(counts)
    text = encode("".join(words))
    edges = np.concatenate([np.zeros(1, np.int64), ends])[offsets]
    known, numbers, sets = number_labels(labels)
    return Corpus(text, edges, (Layer(name, known, offsets, starts, ends, numbers, sets, standard),))


def number_labels(labels: Sequence[Label]) -> tuple[tuple[str, ...], NDArray[np.int32], Ragged]:
    """Labels as written -> (sorted tags, numbers, sets)."""
    seen: set[str] = set()
    for label in set(labels):
        if isinstance(label, str):
            seen.add(label)
        elif label is not None:
            seen |= label
    tags = tuple(sorted(seen))
    number: dict[Label, int] = {tag: k for k, tag in enumerate(tags)}
    number[None] = UNKNOWN
    rows: list[list[int]] = []
    for label in labels:
        if label not in number:
            assert isinstance(label, frozenset)
            number[label] = -2 - len(rows)
            rows.append(sorted(number[tag] for tag in label))
    return tags, np.array([number[label] for label in labels], dtype=np.int32), Ragged.from_rows(rows, np.int32)


def _split(items: list[Any], offsets: NDArray[np.int64]) -> list[list[Any]]:
    edges = offsets.tolist()
    return [items[begin:end] for begin, end in pairwise(edges)]
