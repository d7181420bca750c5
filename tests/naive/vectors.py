"""Products of tables, number by number."""

from __future__ import annotations

from typing import Any


def product(a: Any, b: Any, out: Any) -> list[list[float]]:
    """out + a @ b."""
    return [
        [float(out[i][j]) + sum(float(a[i][k]) * float(b[k][j]) for k in range(len(b))) for j in range(len(out[i]))]
        for i in range(len(out))
    ]
