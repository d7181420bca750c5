"""Runs a study: its cells one after another, each in a process of its own; what is finished is kept.

A cell's file appears at once and whole. A study that was interrupted goes on where it was; with the same seeds it ends
with the same numbers. What a cell costs in time and memory is the system's account of its process.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import duilian
from duilian import datasets
from duilian.benchmarks import machine
from duilian.errors import DataError, DuilianError, UsageError
from duilian.formats import read as read_corpus
from duilian.studies.corpora import whole
from duilian.studies.forecast import Forecast, spoken
from duilian.studies.job import Job
from duilian.studies.results import (
    ANSWERS,
    CELLS,
    COMPARISONS,
    FORMAT,
    PLAN,
    Plan,
    Results,
    answer_name,
    comparison_name,
    load,
    read_cell,
    read_json,
    read_plan,
)
from duilian.studies.scoring import comparison

SAMPLES, QUICK_SAMPLES = 10_000, 1_000
"""Shuffles of a significance test."""


@dataclass(frozen=True)
class Prepared:
    """A plan and the jobs of its cells, in the order in which they run."""

    plan: Plan
    jobs: tuple[Job, ...]

    def job(self, id: str) -> Job:
        """The job of a cell."""
        return next(job for job in self.jobs if job.id == id)


@dataclass
class Study:
    """A study in its folder.

    report: told about each cell;  live: told what a running cell says, for a line that is overwritten
    """

    prepared: Prepared
    out: Path
    threads: int = 1
    report: Callable[[str], None] = lambda text: None
    live: Callable[[str], None] = lambda text: None
    inputs: dict[str, str] = field(default_factory=dict)

    def run(self) -> Results:
        """Run what is not finished yet; failed cells are tried again."""
        self.out.mkdir(parents=True, exist_ok=True)
        with locked(self.out):
            self.begin()
            waiting = self.waiting()
            kept = len(self.prepared.jobs) - len(waiting)
            forecast = Forecast.of(waiting)
            more = f", {kept} finished before" if kept else ""
            self.report(f"{len(waiting)} cells to run{more}; {forecast.text()}")
            for number, job in enumerate(waiting, 1):
                self.report(f"cell {number} of {len(waiting)}: {job.id}")
                found = self.cell(job)
                self.keep(job, found)
                forecast.done(job, found["seconds"])
                said = found["error"] if found["status"] == "failed" else ""
                left = f"; {forecast.text()} left" if number < len(waiting) else ""
                took = spoken(found["seconds"])
                self.report(f"  failed after {took}: {said}" if said else f"  done in {took}{left}")
                self.forget(waiting[number:])
            self.compare()
            results = load(self.out)
            if all(cell.done for cell in results.cells.values()):
                shutil.rmtree(self.out / "work", ignore_errors=True)
        return results

    def begin(self) -> None:
        """Write the plan, once it is clear that the folder is this study's."""
        path = self.out / PLAN
        if path.is_file():
            before = read_plan(path)
            if (before.study, before.task) != (self.prepared.plan.study, self.prepared.plan.task):
                raise UsageError(
                    f"{self.out} holds the study {before.study} ({before.task}), not {self.prepared.plan.study} "
                    f"({self.prepared.plan.task}): name another folder with --out."
                )
        for job in self.prepared.jobs:
            self.inputs[job.id] = job.inputs(self.inputs)
        write_json(path, self.prepared.plan.to_json())

    def waiting(self) -> list[Job]:
        """The jobs that are to be run: unfinished ones, and those whose models they need and that are gone."""
        wanted = {job.id for job in self.prepared.jobs if not self.finished(job)}
        for job in reversed(self.prepared.jobs):
            if job.id in wanted:
                wanted |= {need for need in job.needs if not self.model(need).is_file()}
        return [job for job in self.prepared.jobs if job.id in wanted]

    def finished(self, job: Job) -> bool:
        """Whether a cell has been run with what is asked now, and all its answers are there."""
        path = self.out / CELLS / f"{job.id}.json"
        if not path.is_file():
            return False
        try:
            cell = read_cell(path)
        except DataError:
            return False
        names = [test.name for test in job.tests] + [one.name for one in job.conversions if one.gold]
        answers = all((self.out / ANSWERS / answer_name(job.id, name)).is_file() for name in names)
        return cell.done and cell.inputs == self.inputs[job.id] and answers

    def model(self, id: str) -> Path:
        """Where the model of a cell lies while others need it."""
        return self.out / "work" / f"{id}.model"

    def cell(self, job: Job) -> dict[str, Any]:
        """Run a job in a child process; what its file is to say."""
        failed = [need for need in job.needs if not self.model(need).is_file()]
        if failed:
            return {"status": "failed", "error": f"it needs the model of {failed[0]}, which failed", "seconds": 0.0}
        work = self.out / "work"
        work.mkdir(parents=True, exist_ok=True)
        asked, result = work / f"{job.id}.job.json", work / f"{job.id}.result.json"
        result.unlink(missing_ok=True)
        order = {
            "job": job.to_json(), "out": str(self.out.resolve()), "result": str(result.resolve()),
            "threads": self.threads,
        }  # fmt: skip
        asked.write_text(json.dumps(order, ensure_ascii=False), "utf-8")
        began = time.perf_counter()
        status, usage, said = child([sys.executable, "-m", "duilian.studies.cell", str(asked)], self.live)
        found: dict[str, Any] = {"seconds": time.perf_counter() - began, **usage}
        if status == 0 and result.is_file():
            found |= {"status": "done", "error": None, **json.loads(result.read_text("utf-8"))}
        else:
            end = f"ended by signal {-status}" + (" (out of memory?)" if status == -9 else "") if status < 0 else ""
            found |= {"status": "failed", "error": ": ".join(text for text in (end, said) if text) or "it said nothing"}
        for path in (asked, result):
            path.unlink(missing_ok=True)
        return found

    def keep(self, job: Job, found: Mapping[str, Any]) -> None:
        """Write a cell's file."""
        facts = self.prepared.plan
        write_json(
            self.out / CELLS / f"{job.id}.json",
            {
                "format": FORMAT, "id": job.id, "method": job.method, "task": job.task, "seed": job.seed,
                "settings": shown_settings(job), "sides": [side.name for side in job.sides], **found,
                "versions": dict(facts.versions), "commit": facts.commit, "threads": self.threads,
                "inputs": self.inputs[job.id],
            },
        )  # fmt: skip

    def forget(self, waiting: Sequence[Job]) -> None:
        """Delete models that no job will need any more."""
        needed = {need for job in waiting for need in job.needs}
        for job in self.prepared.jobs:
            if job.id not in needed:
                self.model(job.id).unlink(missing_ok=True)

    def compare(self) -> None:
        """Test the significance of each row against the row it is compared with, where both are finished."""
        for one, other, side in self.pairs():
            jobs = [self.prepared.job(id) for id in (one, other)]
            stamp = [self.inputs[one], self.inputs[other]]
            path = self.out / COMPARISONS / comparison_name(one, other, side)
            if path.is_file() and read_json(path).get("inputs") == stamp:
                continue
            files = [self.out / ANSWERS / answer_name(id, side) for id in (one, other)]
            gold = gold_of(jobs[1], side)
            if gold is None or not all(self.finished(job) for job in jobs) or not all(map(Path.is_file, files)):
                path.unlink(missing_ok=True)
                continue
            self.live(f"comparing {other} with {one} on {side}")
            samples = QUICK_SAMPLES if self.prepared.plan.quick else SAMPLES
            first, second = (read_corpus(str(file)) for file in files)
            found = comparison(gold, first, second, samples)
            write_json(
                path, {"format": FORMAT, "baseline": one, "system": other, "side": side, **found, "inputs": stamp}
            )

    def pairs(self) -> Iterator[tuple[str, str, str]]:
        """(baseline, system, side) of everything that is compared, each once."""
        seen = set()
        for table in self.prepared.plan.tables:
            for row in table.rows:
                if row.against is not None and table.compared is not None:
                    base = table.row(row.against).cells
                    seen |= {(a, b, table.compared) for a, b in zip(base, row.cells, strict=True) if a != b}
        for figure in self.prepared.plan.figures:
            if figure.kind == "word-gains":
                seen.add((figure.refers["baseline"], figure.refers["system"], figure.refers["side"]))
        yield from sorted(seen)


def shown_settings(job: Job) -> dict[str, Any]:
    """Settings as they were given; of files the name."""
    return {
        key: Path(value).name if isinstance(value, str) and Path(value).is_file() else value
        for key, value in job.settings.items()
    }


def gold_of(job: Job, side: str) -> Any:
    """The gold text behind a name of scores, or None."""
    for test in job.tests:
        if test.name == side:
            return whole(test.pieces, side)
    for one in job.conversions:
        if one.name == side and one.gold:
            return whole(one.gold, one.target)
    return None


def child(command: Sequence[str], live: Callable[[str], None]) -> tuple[int, dict[str, Any], str]:
    """Run a process to its end: exit status (negative: signal), peak_bytes and cpu_seconds, the last line it said.

    peak_bytes is never less than this process had when it started the other: a cell that ends well tells its own.
    It reads from a pipe that we hold: when we are gone, it ends, too. An interruption ends it at once.
    """
    home = str(Path(duilian.__file__).parents[1])
    paths = [home, *filter(None, [os.environ.get("PYTHONPATH")])]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, process_group=0,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)}, encoding="utf-8", errors="replace",
    )  # fmt: skip
    lines: deque[str] = deque(maxlen=50)
    assert process.stderr is not None
    reader = threading.Thread(target=_follow, args=(process.stderr, lines, live), daemon=True)
    try:
        reader.start()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    except BaseException:
        process.kill()
        process.wait()
        raise
    finally:
        if reader.ident is not None:
            reader.join()
        for stream in (process.stdin, process.stderr):
            if stream is not None:
                stream.close()
    scale = 1 if sys.platform == "darwin" else 1024
    used = {"peak_bytes": usage.ru_maxrss * scale, "cpu_seconds": usage.ru_utime + usage.ru_stime}
    return process.returncode, used, lines[-1] if lines else ""


def _follow(stream: IO[str], lines: deque[str], live: Callable[[str], None]) -> None:
    """Pass on what a process says."""
    for line in stream:
        if line.strip():
            lines.append(line.strip())
            live(line.strip())


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Nobody else runs a study in this folder meanwhile."""
    with (folder / ".lock").open("w") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise DuilianError(
                f"{folder}: another study is running in this folder. Wait for it, or name another."
            ) from None
        yield


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write a file so that nobody ever sees half of it."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=1)
    datasets.write(path, (text + "\n").encode())


def facts(threads: int) -> dict[str, Any]:
    """versions, commit and machine of a plan."""
    found = machine.machine()
    versions = {name: version for name, version in found.pop("versions").items() if version}
    found.pop("load")
    return {
        "versions": {**versions, "python": found.pop("python")},
        "commit": machine.commit() or None,
        "machine": {**found, "threads": threads},
    }
