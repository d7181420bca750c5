"""Blocks of sentences: how work is cut so that one thread and two threads give the same bits.

The cut depends on the sentences alone, never on the number of threads; each block has buffers of its own, and what the
blocks found is added up in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

R = TypeVar("R")


def sentence_blocks(weight: NDArray[np.int64], n_blocks: int) -> list[tuple[int, int]]:
    """Cut sentences into at most n_blocks runs of about equal work.

    weight: (n_sentences + 1,) work before each sentence, so offsets of tokens or of candidates
    """
    n = len(weight) - 1
    if n <= 0:
        return []
    wanted = np.linspace(weight[0], weight[-1], n_blocks + 1)[1:-1]
    inner = np.searchsorted(weight, wanted, side="left")
    edges = np.unique(np.concatenate([[0], np.clip(inner, 0, n), [n]])).tolist()
    return list(pairwise(edges))


def run_blocks(work: Callable[[int, int], R], blocks: Sequence[tuple[int, int]], threads: int = 1) -> list[R]:
    """work(first, last) for each block; the results in the order of the blocks."""
    if threads <= 1 or len(blocks) <= 1:
        return [work(first, last) for first, last in blocks]
    return list(_pool(threads).map(work, *zip(*blocks, strict=True)))


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="duilian")
