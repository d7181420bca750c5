"""Stages: finished parts of a long training, kept on disk under a name made of everything that decided them.

A second run with the same data and settings, or one that was interrupted, takes them from there. The folder holds the
newest few gigabytes; a file that cannot be read counts as missing.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duilian import storage
from duilian.errors import DuilianError

LIMIT = 4 << 30
"""Bytes that a folder may hold; the oldest files go first."""


def cache_folder() -> Path:
    """Where stages are kept unless another folder is named."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "duilian" / "stages"


def key_of(*parts: Any) -> str:
    """A name for whatever is decided by these parts: numbers, texts, tuples, mappings, arrays."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        if isinstance(part, np.ndarray):
            digest.update(f"{part.dtype}{part.shape}".encode())
            digest.update(np.ascontiguousarray(part).tobytes())
        else:
            digest.update(repr(sorted(part.items()) if isinstance(part, Mapping) else part).encode())
        digest.update(b"\0")
    return digest.hexdigest()


@dataclass(frozen=True)
class Stages:
    """A folder of finished stages; without a folder nothing is kept and nothing is found."""

    folder: Path | None = None
    limit: int = LIMIT

    def find(self, key: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]] | None:
        """Header and tensors of a stage, or None."""
        if self.folder is None or not (path := self._path(key)).is_file():
            return None
        try:
            header, tensors = storage.load(path)
        except (DuilianError, OSError):
            return None
        with suppress(OSError):
            os.utime(path)
        return (header, dict(tensors)) if header.get("stage") == key else None

    def keep(self, key: str, header: Mapping[str, Any], tensors: Mapping[str, NDArray[Any]]) -> None:
        """Write a stage, and make room for it; a folder that cannot be written to is no reason to stop."""
        if self.folder is None:
            return
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            storage.save(self._path(key), {**header, "stage": key}, tensors)
            self._make_room()

    def _path(self, key: str) -> Path:
        assert self.folder is not None
        return self.folder / f"{key}.stage"

    def _make_room(self) -> None:
        assert self.folder is not None
        files = sorted(self.folder.glob("*.stage"), key=lambda path: path.stat().st_mtime, reverse=True)
        held = 0
        for number, path in enumerate(files):
            held += path.stat().st_size
            if number and held > self.limit:
                path.unlink(missing_ok=True)


@dataclass
class Context:
    """What surrounds a training: who is told, how many threads there are, where finished stages are kept.

    None of it decides a result.
    """

    report: Callable[[str], None] = lambda text: None
    threads: int = 1
    stages: Stages = field(default_factory=Stages)
