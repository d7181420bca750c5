"""Twin of duilian/inference/pruning.py: sort the labels, take them one by one."""

from __future__ import annotations

from collections.abc import Sequence


def prune(row: Sequence[float], r: int, lambda_: float, given: Sequence[int] = ()) -> list[int]:
    """The labels of one token that survive (li2016, section 3)."""
    ranked = sorted(range(len(row)), key=lambda label: (-row[label], label))
    fewest = len(row)
    for n in range(1, len(row) + 1):
        if lambda_ < 1 and sum(row[label] for label in ranked[:n]) > lambda_:
            fewest = n
            break
    return sorted({*ranked[: min(fewest, r)], *given})
