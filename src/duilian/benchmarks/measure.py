"""What a measurement is, and the two ways to take one: CPU time of one thread here, or a whole child process."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from duilian.errors import DuilianError

SCORES = ("accuracy", "F")
"""Units of scores."""


@dataclass(frozen=True)
class Target:
    """What a figure, or its ratio to the peer's, has to reach."""

    of: str
    bound: float
    at_most: bool = False

    def __str__(self) -> str:
        sign = "at most" if self.at_most else "at least"
        return f"{sign} {self.bound:,.10g}{'x' if self.of == 'ratio' else ''}"


@dataclass(frozen=True)
class Measurement:
    """One row of the answer.

    name:   what was measured, within its benchmark
    runs:   the figure of each run, in units of ``unit``; rates (``.../s``) and scores want to be high, all else low
    peer, peer_runs: the same of another program, its runs between ours
    targets: what it has to reach
    details: figures beside it: accuracies, sizes, CPU seconds
    """

    benchmark: str
    name: str
    unit: str
    runs: tuple[float, ...]
    peer: str | None = None
    peer_runs: tuple[float, ...] = ()
    targets: tuple[Target, ...] = ()
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def more_is_better(self) -> bool:
        """Whether it is a rate or a score."""
        return self.unit.endswith("/s") or self.unit in SCORES

    def best_of(self, runs: Sequence[float]) -> float | None:
        """The run that other programs on the machine disturbed least."""
        return (max(runs) if self.more_is_better else min(runs)) if runs else None

    @property
    def best(self) -> float | None:
        """Our best run."""
        return self.best_of(self.runs)

    @property
    def ratio(self) -> float | None:
        """How many times better than the peer, in most cases faster: best against best."""
        ours, theirs = self.best, self.best_of(self.peer_runs)
        return _times(ours, theirs, self.more_is_better)

    @property
    def ratio_of_pairs(self) -> float | None:
        """The same as the median over neighbouring runs, which drift together."""
        pairs = [_times(a, b, self.more_is_better) for a, b in zip(self.runs, self.peer_runs, strict=False)]
        found = [pair for pair in pairs if pair is not None]
        return median(found) if found else None

    def reached(self, target: Target) -> bool | None:
        """Whether a target is met; None if its figure is missing."""
        value = self.ratio if target.of == "ratio" else self.best
        if value is None:
            return None
        return value <= target.bound if target.at_most else value >= target.bound

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "benchmark": self.benchmark,
            "name": self.name,
            "unit": self.unit,
            "best": self.best,
            "median": median(self.runs) if self.runs else None,
            "runs": list(self.runs),
            "peer": self.peer,
            "peer_best": self.best_of(self.peer_runs),
            "peer_runs": list(self.peer_runs),
            "ratio": self.ratio,
            "ratio_of_pairs": self.ratio_of_pairs,
            "targets": [{"target": str(target), "reached": self.reached(target)} for target in self.targets],
            "details": self.details,
        }


def _times(ours: float | None, theirs: float | None, more_is_better: bool) -> float | None:
    above, below = (ours, theirs) if more_is_better else (theirs, ours)
    return above / below if above is not None and below else None


def cpu_seconds(work: Callable[[], Any]) -> float:
    """CPU time of this thread: what one thread of ours costs, whatever else the machine is doing."""
    began = time.thread_time()
    work()
    return time.thread_time() - began


@dataclass(frozen=True)
class Child:
    """A finished command: wall clock and CPU seconds, peak memory in bytes, what it printed."""

    wall: float
    cpu: float
    peak: int
    output: str


# A new process starts with the peak memory of the one that made it, so a small one stands between.
_LAUNCHER = """
import json, os, subprocess, sys, time
began = time.perf_counter()
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE)
output = child.stdout.read()
_, status, used = os.wait4(child.pid, 0)
wall = time.perf_counter() - began
peak = used.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
print(json.dumps([os.waitstatus_to_exitcode(status), wall, used.ru_utime + used.ru_stime, peak, output.decode()]))
"""


def run_child(command: Sequence[object]) -> Child:
    """Run a command to its end; an error if it fails."""
    words = [str(word) for word in command]
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _LAUNCHER, *words], capture_output=True, text=True, check=False
    )
    if done.returncode == 0:
        status, wall, cpu, peak, output = json.loads(done.stdout)
        if status == 0:
            return Child(wall, cpu, peak, output)
    raise DuilianError(f"{' '.join(words)} failed: {done.stderr.strip().splitlines()[-1:] or 'it said nothing'}")


def run_duilian(*arguments: object) -> Child:
    """Run one of our commands as a user would."""
    return run_child([sys.executable, "-m", "duilian", *arguments])
