"""What ``peers.py`` compares: epochs, whole trainings with their scores, tagging; ours and the peers' runs in turns.

Every comparison is a Measurement of ours beside one peer. Training and its epochs have one thread.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any

from contest import CONTESTS, Arena, CrfSuite, Program

from duilian.benchmarks import coupled
from duilian.benchmarks.files import turns
from duilian.benchmarks.measure import Child, Measurement, Target

TARGETS: dict[tuple[str, str, str], float] = {
    ("epochs pos", "duilian crf, plain features", "crfsuite l2sgd"): 3,
    ("epochs pos", "duilian perceptron, plain features", "crfsuite ap"): 3,
    ("epochs seg", "duilian perceptron, plain features", "crfsuite ap"): 2,
    ("epochs seg", "duilian perceptron, plain features", "ltp-extension AP"): 4,
    ("epochs segpos", "duilian perceptron, plain features", "crfsuite ap"): 4,
    ("score seg", "duilian perceptron, plain features", "crfsuite ap"): 1,
    ("score seg", "duilian perceptron, plain features", "ltp-extension AP"): 1,
    ("file to model pos", "duilian crf", "crfsuite l2sgd"): 5,
    ("file to model pos", "duilian perceptron", "crfsuite ap"): 5,
    ("tagging pos", "duilian crf", "crfsuite l2sgd"): 3,
}
"""(what, ours, peer) -> how many times better ours has to be."""

COLUMNS = (
    "score", "epoch_per_second", "file_to_model_seconds", "tagging_per_second", "tagging_threads", "train_mb", "tag_mb",
    "model_mb",
)  # fmt: skip
Figures = dict[str, dict[str, float | None]]
"""Program -> COLUMNS -> figure."""


class Comparison:
    """One task: runs it, and gathers a row for each program."""

    def __init__(self, arena: Arena, say: Callable[[str], None], programs: Sequence[Program]) -> None:
        self.arena, self.say = arena, say
        self.programs = [one for one in programs if one.installed and one.can(arena.task)]
        self.rows: Figures = {one.name: dict.fromkeys(COLUMNS) for one in self.programs}

    def sides(self, group: Sequence[Program]) -> tuple[list[Program], list[Program]]:
        """Ours and the peers of a contest that are here."""
        here = [one for one in group if one in self.programs]
        return [one for one in here if one.ours], [one for one in here if not one.ours]

    def beside(
        self, what: str, unit: str, group: Sequence[Program], runs: dict[str, Sequence[float]],
        details: dict[str, dict[str, Any]] | None = None,
    ) -> Iterator[Measurement]:  # fmt: skip
        """A measurement of each of ours beside each peer; of ours alone if there is none."""
        ours, peers = self.sides(group)
        name = f"{what} {self.arena.task.name}"
        known = details or {}
        for own in ours:
            mine = {"ours": known.get(own.name, {})} if known else {}
            if not peers:
                yield Measurement("peers", f"{name}, {own.name}", unit, tuple(runs[own.name]), details=mine)
            for peer in peers:
                bound = TARGETS.get((name, own.name, peer.name))
                yield Measurement(
                    "peers", f"{name}, {own.name}", unit, tuple(runs[own.name]), peer.name, tuple(runs[peer.name]),
                    () if bound is None else (Target("ratio", bound),),
                    {**mine, "peer": known[peer.name]} if known else {},
                )  # fmt: skip

    def epochs(self, group: Sequence[Program]) -> Iterator[Measurement]:
        """CPU seconds of an epoch on one thread, all in turns; the first of each does not count."""
        here = [one for one in group if one in self.programs]
        n = self.arena.sizes.epochs + 1
        self.say(f"{self.arena.task.name}, epochs: {', '.join(one.name for one in here)}")
        walks = [one.epochs(self.arena, n) for one in here]
        seconds = zip(*zip(*walks, strict=True), strict=True)
        units = self.units()
        rates: dict[str, Sequence[float]] = {}
        for one, found in zip(here, seconds, strict=True):
            rates[one.name] = [units / second for second in found[1:] if second]
        for name, fast in rates.items():
            self.rows[name]["epoch_per_second"] = max(fast, default=None)
        yield from self.beside("epochs", self.arena.task.unit, group, rates)

    def units(self) -> int:
        """Words, or characters of them, of the training part."""
        words = self.arena.corpus.words()
        return sum(len(one) if self.arena.task.name == "pos" else sum(map(len, one)) for one in words)

    def trainings(self, group: Sequence[Program], repeats: int) -> Iterator[Measurement]:
        """From file to model, wall clock with start-up; then the score of that model on dev."""
        here = [one for one in group if one in self.programs]
        n = self.arena.sizes.file_epochs
        self.say(f"{self.arena.task.name}, file to model, {n} epochs: {', '.join(one.name for one in here)}")
        children = turns(repeats, *(partial(one.train, self.arena, n) for one in here))
        seconds, scores, details = self._costs(here, children, "train")
        for one in here:
            self.rows[one.name]["file_to_model_seconds"] = min(seconds[one.name])
            output = self.arena.bench.folder / "answer.txt"
            one.tag(self.arena, self.arena.file("dev", self.arena.task.text), output, 1)
            scores[one.name] = [self.arena.score(output)]
            self.rows[one.name]["score"] = scores[one.name][0]
            self.rows[one.name]["model_mb"] = one.model(self.arena).stat().st_size / 1e6
        yield from self.beside("file to model", "s", group, seconds, details)
        yield from self.beside("score", self.arena.task.metric, group, scores)

    def tagging(self, group: Sequence[Program], threads: int, repeats: int) -> Iterator[Measurement]:
        """From text file to annotated file, wall clock with start-up."""
        here = [one for one in group if one in self.programs]
        self.say(f"{self.arena.task.name}, tagging: {', '.join(one.name for one in here)}")
        text, units = self.arena.text()
        line = self.arena.file("tiny", self.arena.task.text)
        output = self.arena.bench.folder / "answer.txt"
        for one in here:
            if not one.model(self.arena).exists():
                one.train(self.arena, self.arena.sizes.model_epochs)
            one.tag(self.arena, line, output, 1)
        children = turns(repeats, *(partial(one.tag, self.arena, text, output, threads) for one in here))
        seconds, rates, details = self._costs(here, children, "tag")
        for one in here:
            rates[one.name] = [units / second for second in seconds[one.name]]
            details[one.name]["threads"] = one.threads(threads)
            self.rows[one.name]["tagging_per_second"] = max(rates[one.name])
            self.rows[one.name]["tagging_threads"] = one.threads(threads)
        yield from self.beside("tagging", self.arena.task.unit, group, rates, details)

    def _costs(
        self, here: Sequence[Program], children: Sequence[Sequence[Child]], word: str
    ) -> tuple[dict[str, Sequence[float]], dict[str, Sequence[float]], dict[str, dict[str, Any]]]:
        """Seconds of each program, room for other figures, CPU seconds and peak memory beside; memory into its row."""
        seconds: dict[str, Sequence[float]] = {}
        details: dict[str, dict[str, Any]] = {}
        for one, found in zip(here, children, strict=True):
            peak = max(child.peak for child in found) / 1e6
            self.rows[one.name][f"{word}_mb"] = peak
            seconds[one.name] = [child.wall for child in found]
            details[one.name] = {"cpu_seconds": [child.cpu for child in found], "peak_mb": peak}
        return seconds, {}, details


STEPS = ("epochs", "trainings", "tagging")


def compare(
    arena: Arena, steps: Sequence[str], threads: int, say: Callable[[str], None], beside: Sequence[str] = ()
) -> tuple[Figures, Iterator[Measurement]]:
    """Rows, which fill as the measurements come. beside: names of the peers that take part, () for all."""
    groups = [
        (*ours, *(peer for peer in peers if not beside or peer.name in beside))
        for ours, peers in CONTESTS
        if not beside or any(peer.name in beside for peer in peers)
    ]
    comparison = Comparison(arena, say, [one for group in groups for one in group])

    def walk() -> Iterator[Measurement]:
        for group in groups:
            if "epochs" in steps:
                yield from comparison.epochs(group)
            if "trainings" in steps:
                yield from comparison.trainings(group, max(1, arena.sizes.repeats - 1))
            if "tagging" in steps:
                yield from comparison.tagging(group, threads, arena.sizes.repeats)

    return comparison.rows, walk()


COUPLED = ("pos, pruned, r=16 0.9999", "pos, defaults")


def compare_coupled(arena: Arena, say: Callable[[str], None]) -> Iterator[Measurement]:
    """Walks of the coupled model over two corpora (wall clock), between epochs of CRFsuite on one (CPU seconds)."""
    peer = CrfSuite("l2sgd")
    say(f"coupled, walks over two sides{f' beside {peer.name} on one' if peer.installed else ''}")
    units = sum(map(len, arena.corpus.words()))
    walk = peer.epochs(arena, len(COUPLED) + 1) if peer.installed else iter(())
    next(walk, None)
    for name in COUPLED:
        _, child = coupled.trained(arena.bench, name)
        rate = float(json.loads(child.output)["tokens_per_second"])
        theirs = tuple(units / seconds for seconds in islice(walk, 1))
        details = {"wall": child.wall, "peak_mb": child.peak / 1e6}
        yield Measurement(
            "peers", f"coupled {name}", "words/s", (rate,), f"{peer.name}, one side", theirs, details=details
        )
    list(walk)
