"""The two decorators that every compiled kernel wears; with ``vectors.py`` the only place that imports Numba.

Kernels call kernels of other files. Numba's cache looks at the time stamp of the caller's file alone, so an edited
callee would leave a stale caller behind; here the stamp is a hash over every source file that holds a kernel
(docs/decisions/0001-kernels-across-files.md).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache, wraps
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numba import njit

F = TypeVar("F", bound=Callable[..., Any])


@cache
def source_stamp(root: Path = Path(__file__).parent) -> str:
    """A hash over all files below root that hold kernels."""
    digest = hashlib.blake2b(digest_size=16)
    for path in sorted(root.rglob("*.py")):
        source = path.read_bytes()
        if b"kernel" in source:
            digest.update(path.relative_to(root).as_posix().encode() + b"\0" + source + b"\0")
    return digest.hexdigest()


def _stamped(dispatcher: Any) -> Any:
    if not hasattr(dispatcher, "py_func"):
        return _quiet(dispatcher)
    cache_file = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    if cache_file is not None:
        cache_file._source_stamp = source_stamp()
    return dispatcher


def _quiet(function: Any) -> Any:
    """With the compiler off NumPy warns of 1 / 0, log 0 and hashes that wrap around; compiled code never does."""

    @wraps(function)
    def run(*arguments: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*arguments)

    return run


def kernel(function: F) -> F:
    """Compile with IEEE rules: -inf and NaN mean what they say."""
    return _stamped(njit(cache=True, nogil=True, error_model="numpy")(function))  # type: ignore[no-any-return]


def fast_kernel(function: F) -> F:
    """Compile with multiplications and additions fused. Sums keep their order: LLVM takes a loop's vector or its scalar
    version by where the arrays happen to lie in memory, and only with a fixed order do both give the same bits."""
    return _stamped(  # type: ignore[no-any-return]
        njit(cache=True, nogil=True, error_model="numpy", fastmath={"nsz", "contract"})(function)
    )
