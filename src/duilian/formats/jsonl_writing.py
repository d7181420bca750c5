"""Writing JSON lines. A sentence that is as it was read keeps its line; any other keeps the fields we do not know."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duilian.corpus import UNKNOWN, Corpus, Layer, Source, decode
from duilian.formats.base import WriteOptions
from duilian.formats.weaving import check_confidence, original, other_labels, patches, pick, render, unchanged
from duilian.ragged import offsets_of, ranges


def write(corpus: Corpus, layer: str | None, options: WriteOptions) -> str:
    """All layers of the corpus, whichever is named; confidences wherever a layer has them."""
    if layer is not None or options.confidence:
        check_confidence(pick(corpus, layer, "jsonl"), options.confidence, "jsonl", holds=True)
    source = corpus.source if corpus.source is not None and corpus.source.format == "jsonl" else None
    texts = decode(corpus.text)
    sides = [Written(corpus, item, options) for item in corpus.layers]
    edges = corpus.offsets.tolist()
    if source is None or len(source.offsets) != len(corpus) + 1:
        return "".join(dumps(record({}, texts[edges[k] : edges[k + 1]], sides, k)) + "\n" for k in range(len(corpus)))
    if not len(corpus):
        return decode(source.raw)
    begins, ends = source.slots["lines"]
    changed = np.flatnonzero(differs(corpus, source, options))
    strings = []
    for k in changed.tolist():
        old = json.loads(decode(source.raw[begins[k] : ends[k]]))
        strings.append(dumps(record(old, texts[edges[k] : edges[k + 1]], sides, k)))
    offsets = offsets_of(np.bincount(changed, minlength=len(corpus)))
    return render(patches(source, offsets, begins[changed], ends[changed], np.arange(len(changed)), strings))


def dumps(value: Any) -> str:
    """JSON as we write it."""
    return json.dumps(value, ensure_ascii=False)


class Written:
    """One layer, ready to be written sentence by sentence."""

    def __init__(self, corpus: Corpus, layer: Layer, options: WriteOptions) -> None:
        self.name, self.standard = layer.name, layer.standard
        self.offsets = layer.offsets.tolist()
        shift = np.repeat(corpus.offsets[:-1], np.diff(layer.offsets))
        self.spans = np.stack([layer.starts - shift, layer.ends - shift], axis=1)
        self.values: list[Any] = [*layer.tags]
        self.sets = [[layer.tags[k] for k in row.tolist()] for row in layer.sets]
        self.labels = layer.labels
        self.confidence = layer.confidence
        self.nbest = (options.nbest or {}).get(layer.name)

    def label(self, number: int) -> Any:
        """A label as JSON has it."""
        return self.values[number] if number >= 0 else None if number == UNKNOWN else self.sets[-2 - number]

    def side(self, sentence: int, old: Any) -> dict[str, Any]:
        """The side of one sentence; ``old`` may have fields of others."""
        begin, end = self.offsets[sentence], self.offsets[sentence + 1]
        ours = ("standard", "units", "labels", "confidence", "nbest")
        side: dict[str, Any] = {} if self.standard is None else {"standard": self.standard}
        side["units"] = self.spans[begin:end].tolist()
        labels = self.labels[begin:end].tolist()
        if any(number != UNKNOWN for number in labels):
            side["labels"] = [self.label(number) for number in labels]
        if self.confidence is not None:
            side["confidence"] = [None if value != value else value for value in rounded(self.confidence[begin:end])]
        if self.nbest is not None:
            side["nbest"] = [answer(float(score), layer, side["units"]) for score, layer in self.nbest[sentence]]
        if isinstance(old, dict):
            side.update({key: value for key, value in old.items() if key not in ours})
        return side


def rounded(values: NDArray[np.float32]) -> list[float]:
    """Single-precision numbers with no more digits than they have."""
    return [float(str(value)) for value in values]


def answer(score: float, layer: Layer, units: list[list[int]]) -> dict[str, Any]:
    """One of the n best: a layer over this sentence alone. Units are left out where they are the side's."""
    found: dict[str, Any] = {"score": score}
    own = np.stack([layer.starts, layer.ends], axis=1).tolist()
    if own != units:
        found["units"] = own
    if layer.has_tags:
        labels = (layer.label(unit) for unit in range(len(layer)))
        found["labels"] = [sorted(label) if isinstance(label, frozenset) else label for label in labels]
    return found


def record(old: dict[str, Any], text: str, sides: list[Written], sentence: int) -> dict[str, Any]:
    """One line: our fields first, then what the line had beside them."""
    before = old.get("sides")
    before = before if isinstance(before, dict) else {}
    new = {side.name: side.side(sentence, before.get(side.name)) for side in sides}
    return {"text": text, "sides": new, **{key: value for key, value in old.items() if key not in ("text", "sides")}}


def differs(corpus: Corpus, source: Source, options: WriteOptions) -> NDArray[np.bool_]:
    """(n_sentences,) whether anything is not as it was read."""
    n = len(corpus)
    names = [layer.name for layer in source.style["layers"]]
    if options.nbest or sorted(names) != sorted(layer.name for layer in corpus.layers):
        return np.ones(n, bool)
    changed = np.zeros(n, bool)
    for layer in corpus.layers:
        old = original(source, layer.name)
        if layer is old:
            continue
        assert old is not None
        same = unchanged(corpus, layer, "jsonl")
        here = ranges(layer.offsets[:-1][same], layer.offsets[1:][same])
        there = ranges(old.offsets[:-1][same], old.offsets[1:][same])
        moved = other_labels(layer, here, old, there)
        a, b = layer.confidence, old.confidence
        if a is not None and b is not None:
            moved |= ~((a[here] == b[there]) | (np.isnan(a[here]) & np.isnan(b[there])))
        elif a is not None or b is not None:
            moved |= True
        sentence = np.repeat(np.arange(n)[same], np.diff(layer.offsets)[same])
        changed |= ~same
        changed[sentence[moved]] = True
        if layer.standard != old.standard:
            changed[:] = True
    return changed
