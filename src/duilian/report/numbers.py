"""Numbers as a reader sees them: digits, signs, mean and deviation over seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from duilian.report.reading import Number


def shown(value: float, digits: int = 2) -> str:
    """A number with thousands marked, 1,234.5; no negative zero."""
    text = f"{value:,.{digits}f}"
    return text.removeprefix("-") if float(text.replace(",", "")) == 0 else text


def signed(value: float, digits: int = 2) -> str:
    """A difference, with its sign."""
    text = shown(value, digits)
    return text if text.startswith("-") or float(text.replace(",", "")) == 0 else f"+{text}"


def probability(value: float) -> str:
    """A p-value: two digits that count."""
    return f"{value:.2g}"


@dataclass(frozen=True)
class Mean:
    """Numbers of several seeds. planned: how many there were to be."""

    numbers: tuple[Number, ...]
    planned: int

    @property
    def value(self) -> float:
        """Their mean."""
        return math.fsum(one.value for one in self.numbers) / len(self.numbers)

    @property
    def deviation(self) -> float | None:
        """The standard deviation of the sample (n - 1); None of fewer than two."""
        n = len(self.numbers)
        if n < 2:
            return None
        return math.sqrt(math.fsum((one.value - self.value) ** 2 for one in self.numbers) / (n - 1))

    @property
    def whole(self) -> bool:
        """Whether every seed has its number."""
        return len(self.numbers) == self.planned


def mean(numbers: Sequence[Number | None]) -> Mean | None:
    """The mean of the numbers that there are; None of none."""
    there = tuple(one for one in numbers if one is not None)
    return Mean(there, len(numbers)) if there else None
