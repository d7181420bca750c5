"""Settings as tables: name, default, what it may be, what it means. A misspelt name is an error, not a new setting."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from duilian.errors import SettingError


@dataclass(frozen=True)
class Setting:
    """One setting: choices are for texts, low and high for numbers."""

    name: str
    default: Any
    help: str
    choices: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None

    def read(self, value: Any) -> Any:
        """The value in the type of the default, or an error that says what was expected."""
        kind = type(self.default)
        try:
            if kind is bool:
                found: Any = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}[
                    str(value).lower()
                ]
            elif kind is int:
                found = int(str(value))
            elif kind is float:
                found = float(str(value))
            elif kind is tuple:
                found = tuple(value) if isinstance(value, (list, tuple)) else tuple(str(value).split(","))
            elif isinstance(value, (list, tuple)):
                found = "; ".join(str(item) for item in value)
            else:
                found = str(value)
        except (ValueError, KeyError):
            raise SettingError(f"{self.name}={value}: expected {self.expected()}.") from None
        wrong = (self.choices and found not in self.choices) or (kind is float and not math.isfinite(found))
        if self.low is not None and kind in (int, float):
            wrong = wrong or found < self.low
        if self.high is not None and kind in (int, float):
            wrong = wrong or found > self.high
        if wrong:
            raise SettingError(f"{self.name}={value}: expected {self.expected()}.")
        return found

    def expected(self) -> str:
        """What the setting may be, in words."""
        if self.choices:
            return "one of " + ", ".join(self.choices)
        words = {bool: "yes or no", int: "a whole number", float: "a number", tuple: "a list"}.get(
            type(self.default), "a text"
        )
        if self.low is not None:
            words += f" of at least {self.low:g}"
        if self.high is not None:
            words += f"{' and' if self.low is not None else ' of'} at most {self.high:g}"
        return words


def resolve(table: Sequence[Setting], given: Mapping[str, Any], owner: str) -> dict[str, Any]:
    """Defaults with what was given, checked; owner is named in the error."""
    known = {setting.name: setting for setting in table}
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            guess = f" Did you mean {near[0]}?" if near else ""
            raise SettingError(f"{owner} has no setting {name!r}.{guess} It has {', '.join(sorted(known))}.")
    return {name: setting.read(given[name]) if name in given else setting.default for name, setting in known.items()}
