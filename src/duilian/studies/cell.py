"""One cell, run in this process: train, tag, convert, score. A study starts ``python -m duilian.studies.cell JOB``.

JOB is a file that the engine wrote: the job, where its results go, where models of other cells lie. A result is written
at the end and at once; what is said on the way goes to stderr, an error as its last line.
"""

from __future__ import annotations

import json
import math
import os
import resource
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from duilian import datasets, formats, methods
from duilian.corpus import UNKNOWN, Corpus, concatenate
from duilian.errors import DuilianError, MismatchError
from duilian.induction import by_model
from duilian.mapping import examples
from duilian.methods import Side
from duilian.methods.coupled_tagger import CoupledTagger
from duilian.stages import Context, Stages
from duilian.studies.corpora import Piece, SideData, read_side, whole
from duilian.studies.job import Conversion, Job, Text
from duilian.studies.results import ANSWERS, answer_name
from duilian.studies.scoring import relations, samples_of, scores_of
from duilian.tagger import Tagger

ASKED = 500
"""Sentences of a side that ranks and mappings are counted in."""
PLACES, RELATIONS = 2, 400
"""Examples of a relation, and relations that have some."""
WARM = 3
"""Sentences that are tagged before the clock starts."""


@dataclass(frozen=True)
class CountingStages(Stages):
    """Stages that remember what was found: a run that did not begin from nothing says so."""

    hits: list[str] = field(default_factory=list)

    def find(self, key: str) -> Any:
        """As ever."""
        found = super().find(key)
        if found is not None:
            self.hits.append(key)
        return found


@dataclass(frozen=True)
class Surroundings:
    """What decides no score: the study's folder, threads, who is told."""

    out: Path
    threads: int = 1
    report: Callable[[str], None] = lambda text: None

    def model(self, cell: str) -> Path:
        """Where the model of a cell lies while others need it."""
        return self.out / "work" / f"{cell}.model"


def run(job: Job, around: Surroundings) -> dict[str, Any]:
    """Everything that a cell's file says of its run."""
    tagger, found = train(job, around)
    scores: dict[str, Any] = {}
    conversions: dict[str, Any] = {}
    samples: dict[str, Any] = {}
    tagged: dict[str, Any] = {}
    read: dict[str, Corpus] = {}
    for test in job.tests:
        gold = read[test.name] = whole(test.pieces, test.name)
        around.report(f"tagging {test.name}")
        pred, tagged[test.name] = tag(tagger, gold, test)
        words = tagger.side(test.answer).words
        into = conversions if "->" in test.name else scores
        into[test.name] = scores_of(gold, pred, words, job.task)
        keep_answer(around, job, test.name, pred)
    for one in job.conversions:
        around.report(f"converting {one.name}")
        given, answer, tagged[one.name] = convert(tagger, one)
        if not one.corrected:
            read.setdefault(one.source, given)
        truth = whole(one.gold, one.target) if one.gold else None
        if truth is not None:
            task = job.task if job.task != "pos" or truth.words() == answer.words() else None
            conversions[one.name] = scores_of(truth, answer, tagger.side(one.target).words, task)
            keep_answer(around, job, one.name, answer)
        if "samples" in job.extras:
            samples[one.name] = samples_of(given, answer, truth)
    found |= {"scores": scores, "conversions": conversions, "tag": tagged}
    if samples:
        found["samples"] = samples
    if "ranks" in job.extras and isinstance(tagger, CoupledTagger):
        found["ranks"] = ranks(tagger, read)
    if "mapping" in job.extras and len(tagger.sides) == 2:
        found["mapping"] = mapping(tagger, read)
    return found


def train(job: Job, around: Surroundings) -> tuple[Tagger, dict[str, Any]]:
    """The trained tagger, as it comes back from its file, and how training went."""
    sides = [side_of(side, job.task, around) for side in job.sides]
    around.report("preparing")
    training = methods.train(job.method, sides, job.task, job.settings, job.seed)
    stages = CountingStages(around.out / "work" / "stages")
    training.context = Context(around.report, around.threads, stages)
    history = []
    for progress in training:
        dev = "  ".join(f"{name} {score:.2f}" for name, score in progress.dev.items())
        around.report(f"epoch {progress.epoch} of {progress.epochs}  {dev}")
        history.append(
            {
                "epoch": progress.epoch,
                "seconds": progress.seconds,
                "objective": progress.objective,
                "dev": dict(progress.dev),
                "best": progress.best,
            }
        )
    path = around.model(job.id)
    path.parent.mkdir(parents=True, exist_ok=True)
    training.tagger.save(path)
    summary = training.summary() | {"model_bytes": path.stat().st_size, "reused_stages": len(stages.hits)}
    about = {key: training.about[key] for key in ("bundles", "lambda", "entries") if key in training.about}
    tagger = methods.load(path)
    if not job.keep:
        path.unlink()
    return tagger, {"train": summary | about, "history": history}


def side_of(side: SideData, task: str, around: Surroundings) -> Side:
    """The training data of a side; pieces that other cells make are converted now."""
    made = [piece for piece in side.train if piece.made_by]
    if not made:
        return read_side(side, task)
    plain = tuple(piece for piece in side.train if not piece.made_by)
    own = read_side(replace(side, train=plain), task)
    parts = [own.corpus]
    for piece in made:
        around.report(f"converting {Path(piece.path).name}")
        parts.append(converted(piece, side.name, around))
    return replace(own, corpus=concatenate(parts))


def converted(piece: Piece, name: str, around: Surroundings) -> Corpus:
    """A file as another cell's model converts it."""
    assert piece.made_by is not None
    cell, source, target = piece.made_by
    tagger = methods.load(around.model(cell))
    corpus = tagger.convert(replace(piece, made_by=None).read(name), source, target, name, confidence=True)
    return Corpus(corpus.text, corpus.offsets, (replace(corpus.layer(name), standard=None),))


def tag(tagger: Tagger, gold: Corpus, test: Text) -> tuple[Corpus, dict[str, Any]]:
    """The answer with confidences where the method has them, and how fast it comes without."""
    tagger.tag(gold.select(slice(0, WARM)), test.answer, test.name)
    began = time.perf_counter()
    pred = tagger.tag(gold, test.answer, test.name)
    rate = speed(len(pred.layer()), time.perf_counter() - began)
    sure = tagger.tag(gold, test.answer, test.name, confidence=True)
    return sure, rate


def convert(tagger: Tagger, one: Conversion) -> tuple[Corpus, Corpus, dict[str, Any]]:
    """What is given, and what it is converted to."""
    given = whole(one.given, one.source)
    if one.corrected:
        given = over_words(given, whole(one.gold, one.target), one.target)
    tagger.convert(given.select(slice(0, WARM)), one.source, one.target, one.source)
    began = time.perf_counter()
    answer = tagger.convert(given, one.source, one.target, one.source)
    rate = speed(len(answer.layer()), time.perf_counter() - began)
    return given, tagger.convert(given, one.source, one.target, one.source, confidence=True), rate


def over_words(given: Corpus, gold: Corpus, target: str) -> Corpus:
    """What is given, with the words of the target's gold, unlabelled, as a second layer (the paper's TAWC)."""
    if not np.array_equal(given.text, gold.text) or not np.array_equal(given.offsets, gold.offsets):
        raise MismatchError("corrected words can be given only where both files have the same text, spaces and all")
    layer = gold.layer()
    unknown = np.full(len(layer), UNKNOWN, np.int32)
    return given.with_layer(replace(layer, name=target, labels=unknown, tags=(), standard=None))


def speed(tokens: int, seconds: float) -> dict[str, Any]:
    """As `duilian tag --json` says it."""
    return {"tokens": tokens, "seconds": seconds, "tokens_per_second": tokens / seconds if seconds else None}


def keep_answer(around: Surroundings, job: Job, name: str, answer: Corpus) -> None:
    """Write an answer where significance tests and the report find it."""
    path = around.out / ANSWERS / answer_name(job.id, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    formats.write(path, answer, "jsonl", confidence=answer.layer().confidence is not None)


def ranks(tagger: CoupledTagger, read: dict[str, Corpus]) -> dict[str, Any]:
    """What pruning does to each side's test text (li2016 Tables 2 and 4, Figure 3)."""
    found = {}
    for info in tagger.sides:
        if info.name in read:
            one = tagger.pruning_statistics(read[info.name].select(slice(0, ASKED)), info.name, info.name)
            found[info.name] = {
                "kth_best": [float(value) for value in one.kth_best],
                "entropy": one.entropy,
                "mean_candidates": one.mean_candidates,
                "lost": 100.0 * one.n_lost / one.n_given if one.n_given else None,
                "tokens": one.n_tokens,
            }
    return found


def mapping(tagger: Tagger, read: dict[str, Corpus]) -> dict[str, Any] | None:
    """Which labels the model pairs, counted where the labels of one side are given."""
    corpora = {}
    for number, info in enumerate(tagger.sides):
        other = tagger.sides[1 - number].name
        if info.name in read:
            try:
                tagger.convert(read[info.name].select(slice(0, 1)), info.name, other, info.name)
            except DuilianError:  # a method that converts one way is asked that way
                continue
            corpora[info.name] = read[info.name].select(slice(0, ASKED))
    if not corpora or tagger.task == "seg":
        return None
    found = by_model(tagger, corpora)
    order = np.argsort(-found.mapping.counts, kind="stable")[:RELATIONS]
    names = found.mapping.names()
    places = examples(found.parts, [names[at] for at in order], PLACES)
    return {"sides": list(found.names), "relations": relations(found.mapping, places)}


def main(arguments: Sequence[str]) -> int:
    """Run the job in a file; 0 done, 1 failed."""
    asked = json.loads(Path(arguments[0]).read_text("utf-8"))
    threading.Thread(target=end_with_parent, daemon=True).start()

    def say(text: str) -> None:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()

    around = Surroundings(Path(asked["out"]), asked["threads"], say)
    try:
        found = run(Job.from_json(asked["job"]), around)
    except DuilianError as error:
        say(" ".join(str(error).split()))
        return 1
    except MemoryError:
        say("not enough memory: try --quick, fewer files, or one thread")
        return 1
    found["peak_bytes"] = peak_memory()
    text = json.dumps(finite(found), ensure_ascii=False, allow_nan=False)
    datasets.write(Path(asked["result"]), text.encode())
    return 0


def peak_memory() -> int:
    """The most memory that this process had, in bytes. (What Linux tells of a child holds its parent's, too.)"""
    try:
        for line in Path("/proc/self/status").read_text("ascii").splitlines():
            if line.startswith("VmHWM:"):
                return 1024 * int(line.split()[1])
    except OSError:
        pass
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def finite(value: Any) -> Any:
    """The same with null for what is not a number."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def end_with_parent() -> None:
    """End this process when the one that started it is gone: its end of our stdin closes."""
    sys.stdin.buffer.read()
    os._exit(1)


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stderr.flush()
    os._exit(code)  # Python would first take apart what Numba compiled
