"""How long a study will take: by method and words of training text, corrected by what has been run already."""

from __future__ import annotations

from dataclasses import dataclass

from duilian.studies.corpora import size_of
from duilian.studies.job import Job

START = 6.0
"""Seconds of a cell that trains on next to nothing: imports, compiled code from its cache, tagging, scoring."""
RATES: dict[str, dict[str, float]] = {
    "pos": {},
    "seg": {},
    "segpos": {},
}
"""Words of training text per second of a whole cell."""
OTHERS = 20_000.0


def expected(job: Job) -> float:
    """Seconds of a cell, roughly."""
    words = sum(size_of(piece)[1] for side in job.sides for piece in side.train)
    return START + words / RATES[job.task].get(job.method, OTHERS)


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
        factor = self.spent / self.foreseen if self.foreseen else 1.0
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
