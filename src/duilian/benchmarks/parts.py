"""Parts of the way: features and their index, collisions of hashes, and the phases of tagging on one thread."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from duilian import formats, methods
from duilian.benchmarks.data import Bench
from duilian.benchmarks.measure import Measurement, Target
from duilian.corpus import Corpus
from duilian.features import TEMPLATES, Featurizer
from duilian.features.dictionary import build
from duilian.features.names import collisions
from duilian.lifting import layer_from, units_of, word_units


def features(bench: Bench) -> list[Measurement]:
    """Units per second: hashing, building the index, looking rows up; and features that share a hash."""
    found = []
    for templates, task in (("li2015", "pos"), ("jiang2012", "seg"), ("lexicon", "seg")):
        corpus = bench.sentences(bench.sizes.train if task == "pos" else bench.sizes.joint)
        unit = "words/s" if task == "pos" else "characters/s"
        runs: dict[str, list[float]] = {"hash": [], "index": [], "look up": []}
        count: dict[str, int] = {}
        for part, repeats in ((bench.warm(), 1), (corpus, bench.sizes.repeats)):
            for _ in range(repeats):
                for phase, seconds, units in _walk(part, templates, task, count):
                    if part is corpus:
                        runs[phase].append(units / seconds)
        for phase, rates in runs.items():
            name = f"{templates}, {phase}"
            found.append(Measurement("features", name, unit, tuple(rates), details=dict(count)))
        if templates != "lexicon":
            found.append(_collisions(corpus, templates, task))
    return found


def _walk(corpus: Corpus, templates: str, task: str, count: dict[str, int]) -> Iterator[tuple[str, float, int]]:
    units = units_of(corpus, corpus.layer(), task)
    dictionary = build(word_units(corpus, corpus.layer()), True) if templates == "lexicon" else None
    featurizer = Featurizer(TEMPLATES[templates], "word" if task == "pos" else "character", dictionary=dictionary)
    for phase, work in (
        ("hash", lambda: featurizer.hashes(units)),
        ("index", lambda: featurizer.fit([units])),
        ("look up", lambda: featurizer.transform(units)),
    ):
        began = time.thread_time()
        work()
        yield phase, time.thread_time() - began, len(units)
    count["features"] = len(featurizer)


def _collisions(corpus: Corpus, templates: str, task: str) -> Measurement:
    """Distinct features less distinct hashes: how many features lost a row of their own."""
    units = units_of(corpus, corpus.layer(), task)
    featurizer = Featurizer(TEMPLATES[templates], "word" if task == "pos" else "character", fold=False)
    counted = collisions(featurizer, units)
    details = {"features": counted.n_features, "hashes": counted.n_hashes}
    return Measurement(
        "features",
        f"{templates}, collisions",
        "",
        (float(counted.n_lost),),
        targets=(Target("figure", 0, True),),
        details=details,
    )


class Clock:
    """CPU seconds of this thread by phase."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, phase: str) -> Iterator[None]:
        began = time.thread_time()
        yield
        self.seconds[phase] = self.seconds.get(phase, 0.0) + time.thread_time() - began


def phases(bench: Bench) -> list[Measurement]:
    """Where the time of tagging goes, on one thread: reading, units, features, decoding, the new layer, writing."""
    found = []
    for method, task, name, read, write in (
        ("crf", "pos", "words.txt", "segmented", "slash"),
        ("perceptron", "seg", "raw.txt", "raw", "segmented"),
    ):
        tagger: Any = methods.load(bench.model(method, task))
        chain = tagger.chain
        clocks: list[Clock] = []
        count = 0
        for _ in range(bench.sizes.repeats + 1):
            clock, count = Clock(), 0
            blocks = formats.read_blocks(bench.file(name), format=read, keep_source=True)
            with formats.open_writer(io.BytesIO(), write) as writer:
                while True:
                    with clock("read"):
                        corpus = next(blocks, None)
                    if corpus is None:
                        break
                    layer = corpus.layer()
                    with clock("units"):
                        units = units_of(corpus, layer, task)
                    with clock("features"):
                        rows = chain.features(units)
                    with clock("decode"):
                        labels = chain.decode(rows, units.sentences)
                    with clock("layer"):
                        new = layer_from(corpus, labels, chain.names, task, layer, layer.name, chain.scheme)
                        answer = corpus.with_layer(new)
                    with clock("write"):
                        writer.write(answer)
                    count += len(units)
            clocks.append(clock)
        for phase in clocks[0].seconds:
            rates = tuple(count / clock.seconds[phase] for clock in clocks[1:])
            found.append(Measurement("phases", f"{method} {task}, {phase}", _unit(task), rates))
        totals = tuple(count / sum(clock.seconds.values()) for clock in clocks[1:])
        found.append(Measurement("phases", f"{method} {task}, all", _unit(task), totals))
    return found


def _unit(task: str) -> str:
    return "words/s" if task == "pos" else "characters/s"
