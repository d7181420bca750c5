"""How long a study will take: by method and words of training text, corrected by what has been run already."""

from __future__ import annotations

from dataclasses import dataclass

from duilian.studies.corpora import size_of
from duilian.studies.job import Job

START = 6.0
"""Seconds of a cell that trains on next to nothing: imports, compiled code from its cache, tagging, scoring."""
RATES = {
    "crf": 70_000.0, "perceptron": 70_000.0, "pa": 70_000.0, "hmm": 400_000.0, "merge": 17_000.0, "guide": 70_000.0,
    "adapt": 130_000.0, "coupled": 3_300.0,
}  # fmt: skip
"""Words of training text per second of a whole cell, pos, one thread: docs/results.md, and this study on zh_ud."""
OTHERS = 3_000.0
"""The same where nothing was measured."""
SLOWER = {"pos": 1.0, "seg": 1.0, "segpos": 7.0}
"""How much longer a crf takes for a task (docs/results.md)."""
PRIOR = 120.0
"""Seconds for which the table is believed: a first cell that compiles its kernels says little of the others."""


def expected(job: Job) -> float:
    """Seconds of a cell, roughly."""
    words = sum(size_of(piece)[1] for side in job.sides for piece in side.train)
    return START + SLOWER[job.task] * words / RATES.get(job.method, OTHERS)


@dataclass
class Forecast:
    """What is left. factor: how much slower this machine has been so far than the one that was measured."""

    left: dict[str, float]
    spent: float = 0.0
    foreseen: float = 0.0

    @classmethod
    def of(cls, jobs: list[Job]) -> Forecast:
        """Before anything has been run."""
        return cls({job.id: expected(job) for job in jobs})

    def done(self, job: Job, seconds: float) -> None:
        """A cell took so long."""
        self.foreseen += self.left.pop(job.id)
        self.spent += seconds

    @property
    def seconds(self) -> float:
        """What is left, in seconds."""
        factor = (self.spent + PRIOR) / (self.foreseen + PRIOR)
        return factor * sum(self.left.values())

    def text(self) -> str:
        """The same in words."""
        return f"about {spoken(self.seconds)}"


def spoken(seconds: float) -> str:
    """A duration as a person says it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.1f} h"
