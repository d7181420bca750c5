"""Settings of methods that train chains of other methods: ``learner=`` names one, and the rest is handed to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from duilian.errors import SettingError
from duilian.methods.base import Method
from duilian.settings import Setting, resolve


class HandedOn(Setting):
    """A setting that is handed to the learner, which checks it; unset unless given."""

    def read(self, value: Any) -> Any:
        """As it is."""
        return value


def settings_for(
    learners: Sequence[Method], default: str, help: str, own: Sequence[Setting] = ()
) -> tuple[Setting, ...]:
    """``learner``, a method's own settings, and all settings that any of the learners has."""
    names = {setting.name for method in learners for setting in method.settings} - {setting.name for setting in own}
    learner = Setting("learner", default, help, choices=tuple(method.name for method in learners))
    return (learner, *own, *(HandedOn(name, None, "of the learner") for name in sorted(names)))


def learner_of(
    learners: Sequence[Method], settings: Mapping[str, Any], task: str, own: Sequence[Setting] = ()
) -> tuple[Method, dict[str, Any]]:
    """The learner that settings name, and what they hand to it.

    own: settings that the method keeps for itself
    """
    kept = {"learner", *(setting.name for setting in own)}
    learner = next(method for method in learners if method.name == settings["learner"])
    if task not in learner.tasks:
        raise SettingError(f"learner={learner.name} does {', '.join(learner.tasks)}, not {task}.")
    given = {name: value for name, value in settings.items() if name not in kept and value is not None}
    return learner, resolve(learner.settings, given, f"learner {learner.name}")
