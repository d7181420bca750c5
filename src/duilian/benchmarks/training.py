"""Training, epoch by epoch, on one thread, in CPU seconds; ways of training that are compared take turns.

The first epoch of each is left out (cold caches). An epoch of ours is all that happens between two
Progresses: the walk, its dropout, and the averaged model.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from duilian import methods
from duilian.benchmarks.data import SIDE, Bench
from duilian.benchmarks.measure import Measurement
from duilian.corpus import Corpus
from duilian.methods import Training
from duilian.tagger import Tagger


@dataclass(frozen=True)
class Epoch:
    """One epoch of ours: CPU seconds, units visited, score on dev if there is one."""

    seconds: float
    units: int
    dev: float | None

    @property
    def rate(self) -> float:
        """Units per second."""
        return self.units / self.seconds


def own_epochs(training: Training) -> Iterator[Epoch]:
    """Walk through a training of ours as its loop does, the clock stopped while dev is scored."""
    loop = training.loop
    for number in range(1, loop.epochs + 1):
        began = time.thread_time()
        _, units = loop.learner.epoch(number)
        model = loop.learner.current()
        seconds = time.thread_time() - began
        scores = {} if loop.score is None else loop.score(model)
        yield Epoch(seconds, units, next(iter(scores.values()), None))


def prepared(
    method: str, corpus: Corpus, task: str, settings: Mapping[str, Any], n: int, dev: Corpus | None = None
) -> Training:
    """A training of n epochs, not begun."""
    chosen = dict(settings) if method == "hmm" else {**settings, "epochs": n}
    return methods.train(method, [methods.Side(SIDE, corpus, dev)], task, chosen)


PLAIN: dict[str, Any] = {"fold": False, "dropout": 0, "hide": 0}
"""Settings with which the features of a template set are all that is learnt from, as other programs do."""


def rates(bench: Bench, name: str, method: str, corpus: Corpus, task: str, templates: str) -> list[Measurement]:
    """Epochs with plain features and with our defaults, in turns."""
    ways: dict[str, dict[str, Any]] = {"plain features": {**PLAIN, "templates": templates}, "defaults": {}}
    n = bench.sizes.epochs + 1
    for settings in ways.values():
        list(own_epochs(prepared(method, bench.warm(), task, settings, 1)))
    walks = [own_epochs(prepared(method, corpus, task, settings, n)) for settings in ways.values()]
    found = zip(*zip(*walks, strict=True), strict=True)
    return [
        Measurement(
            name,
            f"{method} {task}, {way}",
            "words/s" if task == "pos" else "characters/s",
            tuple(epoch.rate for epoch in epochs[1:]),
            details={"seconds": [epoch.seconds for epoch in epochs[1:]], "settings": ways[way]},
        )
        for way, epochs in zip(ways, found, strict=True)
    ]


def train_crf(bench: Bench) -> list[Measurement]:
    """Epochs of a CRF on words."""
    return rates(bench, "train-crf", "crf", bench.sentences(bench.sizes.train), "pos", "li2015")


def train_perceptron(bench: Bench) -> list[Measurement]:
    """Epochs of the averaged perceptron on words."""
    return rates(bench, "train-perceptron", "perceptron", bench.sentences(bench.sizes.train), "pos", "li2015")


def train_seg(bench: Bench) -> list[Measurement]:
    """Epochs of the averaged perceptron on characters with boundaries."""
    return rates(bench, "train-seg", "perceptron", bench.sentences(bench.sizes.train), "seg", "jiang2012")


def train_segpos(bench: Bench) -> list[Measurement]:
    """Epochs of the averaged perceptron on characters with joint labels."""
    return rates(bench, "train-segpos", "perceptron", bench.sentences(bench.sizes.joint), "segpos", "jiang2012")


def train_hmm(bench: Bench) -> list[Measurement]:
    """Counting and tagging of the second-order HMM."""

    def trained(corpus: Corpus) -> Tagger:
        training = prepared("hmm", corpus, "pos", {}, 1)
        list(training)
        return training.tagger

    trained(bench.warm()).tag(bench.warm())
    corpus, dev = bench.sentences(bench.sizes.train), bench.parts[1]
    counting, tagging = [], []
    for _ in range(bench.sizes.repeats):
        began = time.thread_time()
        tagger = trained(corpus)
        middle = time.thread_time()
        tagger.tag(dev)
        counting.append(len(corpus.layer()) / (middle - began))
        tagging.append(len(dev.layer()) / (time.thread_time() - middle))
    return [
        Measurement("train-hmm", "hmm pos, counting", "words/s", tuple(counting)),
        Measurement("train-hmm", "hmm pos, tagging in memory", "words/s", tuple(tagging)),
    ]


ROWS = {"dense": 0, "mixed": 0.1, "labels seen": 1}
"""The setting ``full``: rows with at least this share of the labels hold all of them."""


def rows(bench: Bench) -> list[Measurement]:
    """Rows of weights that hold every label beside rows with the labels seen: speed, size, and accuracy on dev."""
    found = []
    corpus, dev = bench.sentences(bench.sizes.joint), bench.parts[1]
    for method, task in (("crf", "pos"), ("perceptron", "pos"), ("perceptron", "segpos")):
        trainings = {
            name: prepared(method, corpus, task, {"full": full}, bench.sizes.epochs + 1, dev)
            for name, full in ROWS.items()
        }
        together = zip(*map(own_epochs, trainings.values()), strict=True)
        for (name, training), epochs in zip(trainings.items(), zip(*together, strict=True), strict=True):
            details = {
                "full": ROWS[name],
                "features": training.about["features"],
                "entries": training.about["entries"],
                "dev": [epoch.dev for epoch in epochs],
            }
            unit = "words/s" if task == "pos" else "characters/s"
            rates = tuple(epoch.rate for epoch in epochs[1:])
            found.append(Measurement("rows", f"{method} {task}, {name}", unit, rates, details=details))
    return found
