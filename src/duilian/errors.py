"""The exception tree: every error a user can cause says what was found, what was expected, where, and what to try.

DuilianError            the work failed                          exit status 1
|-- FormatError         a corpus file has a broken line
|-- TagError            a corpus has a tag that its standard does not know
|-- MismatchError       two corpora that should have the same text do not
|-- ModelFileError      a model file is damaged, truncated, foreign or hostile
|-- DataError           data that a command needs cannot be had
`-- UsageError          the call itself was wrong                exit status 2
    |-- StandardError   no such standard, or its file is broken
    |-- SettingError    no such setting, or a value it cannot take
    `-- TaskError       this method cannot do this task or direction
"""

from __future__ import annotations


class DuilianError(Exception):
    """Something failed that the user can understand and mend."""

    exit_code = 1


class FormatError(DuilianError):
    """A broken place in a corpus file: where, what was found, what was expected, what to try."""

    def __init__(self, where: str, line: int | None, message: str, hint: str = "") -> None:
        self.where, self.line, self.message, self.hint = where, line, message, hint
        place = where if line is None else f"{where}:{line}"
        super().__init__(f"{place}: {message}" + (f" {hint}" if hint else ""))


class TagError(DuilianError):
    """A tag that the standard of a corpus does not know."""


class MismatchError(DuilianError):
    """Two annotations that should be over the same text are not."""


class ModelFileError(DuilianError):
    """A file that is not a model this version can read."""


class DataError(DuilianError):
    """Data that a command needs cannot be had."""


class UsageError(DuilianError):
    """The call was wrong: nothing was done."""

    exit_code = 2


class StandardError(UsageError):
    """No such standard, or a standard file that cannot be read."""


class SettingError(UsageError):
    """No such setting, or a value that it cannot take."""


class TaskError(UsageError):
    """A method was asked for a task, a side or a direction that it does not have."""
