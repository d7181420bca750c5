"""Passes of correspondence and multitask in memory, on one thread, in CPU seconds.

Every second sentence of the corpus has coarser tags.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from duilian import methods
from duilian.benchmarks.data import Bench
from duilian.benchmarks.measure import Measurement
from duilian.benchmarks.training import own_epochs
from duilian.corpus import Corpus
from duilian.lifting import units_of
from duilian.methods import Side


def coarser(corpus: Corpus) -> Corpus:
    """The same words; of each tag the first character, which is its category in the People's Daily."""
    layer = corpus.layer()
    tags = tuple(sorted({tag[:1] for tag in layer.tags}))
    table = np.array([tags.index(tag[:1]) for tag in layer.tags] or [-1], np.int32)
    labels = np.where(layer.labels >= 0, table[np.maximum(layer.labels, 0)], layer.labels).astype(np.int32)
    return Corpus(corpus.text, corpus.offsets, (replace(layer, tags=tags, labels=labels, standard=None),))


def two_sides(corpus: Corpus) -> list[Side]:
    """Fine and coarse, sentence by sentence in turns."""
    return [Side("fine", corpus.select(slice(0, None, 2))), Side("coarse", coarser(corpus.select(slice(1, None, 2))))]


def train_correspondence(bench: Bench) -> list[Measurement]:
    """Counting and converting of the HMM with label correspondence."""
    corpus, dev = bench.sentences(bench.sizes.train), coarser(bench.parts[1])
    counting, converting = [], []
    for part, repeats in ((bench.warm(), 1), (corpus, bench.sizes.repeats)):
        for _ in range(repeats):
            began = time.thread_time()
            training = methods.train("correspondence", two_sides(part), "pos")
            list(training)
            middle = time.thread_time()
            training.tagger.convert(dev, "coarse", "fine")
            if part is corpus:
                counting.append(len(corpus.layer()) / (middle - began))
                converting.append(len(dev.layer()) / (time.thread_time() - middle))
    return [
        Measurement("train-correspondence", "correspondence pos, counting", "words/s", tuple(counting)),
        Measurement("train-correspondence", "correspondence pos, converting in memory", "words/s", tuple(converting)),
    ]


def train_multitask(bench: Bench) -> list[Measurement]:
    """Passes and tagging of the multi-task PA on characters with joint labels, both ways and one way."""
    found = []
    corpus, dev = bench.sentences(bench.sizes.joint), bench.parts[1].select(slice(0, bench.sizes.joint // 10 + 1))
    n = len(units_of(dev, None, "segpos"))
    for direction in ("both", "one-way"):
        settings = {"direction": direction, "mapping_epochs": 1, "epochs": bench.sizes.epochs + 1}
        warm = methods.train("multitask", two_sides(bench.warm()), "segpos", {**settings, "epochs": 1})
        list(warm)
        warm.tagger.tag(bench.warm())
        training = methods.train("multitask", two_sides(corpus), "segpos", settings)
        epochs = list(own_epochs(training))
        training.loop.model = training.loop.learner.current()
        tagger, rates = training.tagger, []
        for _ in range(bench.sizes.repeats):
            began = time.thread_time()
            tagger.tag(dev)
            rates.append(n / (time.thread_time() - began))
        name = f"multitask segpos, {direction}"
        passes = tuple(epoch.rate for epoch in epochs[1:])
        found += [
            Measurement("train-multitask", f"{name}, passes", "characters/s", passes),
            Measurement("train-multitask", f"{name}, tagging in memory", "characters/s", tuple(rates)),
        ]
    return found
