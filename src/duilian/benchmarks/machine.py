"""What it was measured on, and the history file: one line for each measurement that was recorded."""

from __future__ import annotations

import csv
import importlib.metadata
import os
import platform
import subprocess
from collections.abc import Iterable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import duilian
from duilian.benchmarks.measure import Measurement
from duilian.errors import DataError

COLUMNS = ("date", "commit", "benchmark", "name", "figure", "unit", "peer", "ratio", "load", "machine")


PACKAGES = ("numpy", "numba")
"""Whose versions are told."""


def machine(packages: Sequence[str] = PACKAGES) -> dict[str, Any]:
    """Processor, memory, load, and versions of all that matters."""
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gb": _memory(),
        "system": f"{platform.system()} {platform.machine()}",
        "load": load(),
        "python": platform.python_version(),
        "versions": {
            "duilian": duilian.__version__,
            **{name: _version(name) for name in packages},
        },
    }


def load() -> float | None:
    """How many programs want to run, on average over the last minute."""
    try:
        return round(os.getloadavg()[0], 2)
    except OSError:
        return None


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _memory() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1)
    except (ValueError, OSError):
        return None


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def commit() -> str:
    """The commit of the checkout this runs from, with + where files differ from it; empty for an installed package."""
    folder = Path(duilian.__file__).parent
    try:
        command = ["git", "-C", str(folder), "describe", "--always", "--dirty=+", "--exclude=*"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def append(path: Path, found: Iterable[Measurement], packages: Sequence[str] = PACKAGES) -> None:
    """Add a line for each measurement; a new file gets its titles first."""
    facts = machine(packages)
    versions = " ".join(f"{name} {version}" for name, version in facts["versions"].items() if version)
    name = f"{facts['processor']}, {facts['cores']} cores, python {facts['python']} {versions}"
    stamp = commit()
    try:
        with path.open("a", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream, lineterminator="\n")
            if stream.tell() == 0:
                writer.writerow(COLUMNS)
            for one in found:
                ratio = "" if one.ratio is None else f"{one.ratio:.3g}"
                figure = "" if one.best is None else f"{one.best:.4g}"
                row = [date.today().isoformat(), stamp, one.benchmark, one.name, figure, one.unit, one.peer or ""]
                writer.writerow([*row, ratio, facts["load"], name])
    except OSError as error:
        raise DataError(f"{path}: cannot be written: {error.strerror or error}.") from None
