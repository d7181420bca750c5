"""Training text whose labels are not all to be trusted, such as converted text: what is left of it, what it counts.

A layer's confidences say how probable each label is; a label without one is gold. Settings:

    sure=P            labels less probable than P become unknown; the rest of the sentence is learnt from
    unsure=sentence   instead, sentences whose mean confidence is below P are left out
    weigh=yes         a sentence counts as much as the mean confidence of its words
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from duilian.corpus import UNKNOWN, Corpus, Layer
from duilian.lifting import Labelled, is_space
from duilian.ragged import offsets_of, ranges
from duilian.settings import Setting

SETTINGS = (
    Setting("sure", 0.0, "labels with a lower confidence, as in converted text, are not learnt from", low=0, high=1),
    Setting("unsure", "label", "what a low confidence leaves out", choices=("label", "sentence")),
    Setting("weigh", False, "whether a sentence counts as much as the mean confidence of its words"),
)


def certainty(layer: Layer) -> NDArray[np.float32]:
    """(n_units,) the confidence of each label, 1 where there is none."""
    if layer.confidence is None:
        return np.ones(len(layer), np.float32)
    return np.where(np.isnan(layer.confidence), np.float32(1), layer.confidence).astype(np.float32)


def trusted(layer: Layer, least: float) -> NDArray[np.bool_]:
    """(n_sentences,) whether the mean confidence of a sentence is at least that; one without words is."""
    return means(certainty(layer), layer.offsets) >= least


def means(values: NDArray[np.float32], offsets: NDArray[np.int64]) -> NDArray[np.float32]:
    """(n,) the mean of each run, 1 where it is empty."""
    sums = np.concatenate([np.zeros(1), np.cumsum(values, dtype=np.float64)])
    lengths = np.diff(offsets)
    found = (sums[offsets[1:]] - sums[offsets[:-1]]) / np.maximum(lengths, 1)
    return np.where(lengths > 0, found, 1.0).astype(np.float32)


def of_units(corpus: Corpus, layer: Layer, task: str) -> NDArray[np.float32]:
    """(U,) the confidence at each unit of a task; all characters of a word have the word's."""
    sure = certainty(layer)
    if task == "pos":
        return sure
    shift = offsets_of(~is_space(corpus.text))
    begins, ends = shift[layer.starts], shift[layer.ends]
    found = np.ones(int(shift[-1]), np.float32)
    found[ranges(begins, ends)] = np.repeat(sure, ends - begins)
    return found


def forget(labelled: Labelled, sure: NDArray[np.float32], least: float) -> Labelled:
    """The labels whose confidence is lower are unknown; of a word in characters, so are its boundaries."""
    return replace(labelled, labels=np.where(sure >= least, labelled.labels, UNKNOWN).astype(np.int32))
