"""Arguments of several parts: NAME=FILE, NAME:STANDARD=FILE, key=value, recipe files; and how a FILE is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from duilian.cli.terminal import Remarks
from duilian.errors import FormatError, SettingError, UsageError

if TYPE_CHECKING:
    from duilian.corpus import Corpus

SHOWN = 10
"""Skipped places that are told one by one; the rest is counted."""


@dataclass(frozen=True)
class SideFiles:
    """The files of one side: ``--side NAME[:STANDARD]=FILE``, repeated for more files."""

    name: str
    standard: str | None
    files: tuple[str, ...]


def parse_sides(given: Sequence[str], option: str = "--side") -> list[SideFiles]:
    """Sides in the order of their first mention."""
    found: dict[str, SideFiles] = {}
    for text in given:
        left, equals, file = text.partition("=")
        name, colon, standard = left.partition(":")
        if not equals or not name or not file or (colon and not standard):
            raise UsageError(f"{option} {text!r}: expected NAME=FILE or NAME:STANDARD=FILE, such as pku=train.txt.")
        before = found.get(name, SideFiles(name, None, ()))
        if standard and before.standard and standard != before.standard:
            raise UsageError(f"{option} {text!r}: {name} already has the standard {before.standard}.")
        found[name] = SideFiles(name, standard or before.standard, (*before.files, file))
    return list(found.values())


def parse_settings(given: Sequence[str], recipe: Path | None = None) -> dict[str, Any]:
    """``--set key=value`` over what a recipe file says."""
    settings: dict[str, Any] = {}
    if recipe is not None:
        settings.update(read_recipe(recipe))
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise SettingError(f"--set {text!r}: expected key=value, such as epochs=10.")
        settings[key] = value
    return settings


def read_recipe(path: Path) -> dict[str, Any]:
    """The settings in a TOML file: one table of names and values."""
    import tomllib

    try:
        with path.open("rb") as stream:
            found = tomllib.load(stream)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingError(f"{path}: not a TOML file: {error}.") from None
    for name, value in found.items():
        if isinstance(value, Mapping):
            raise SettingError(f"{path}: [{name}] is a table; a recipe has lines such as epochs = 10.")
    return found


@dataclass
class Reading:
    """How files are read: the options that commands share; tells on stderr what it skipped."""

    format: str = "auto"
    encoding: str = "utf-8"
    on_error: str = "stop"
    remarks: Remarks = field(default_factory=lambda: Remarks(quiet=True))
    skipped: int = 0

    def __post_init__(self) -> None:
        if self.on_error not in ("stop", "skip"):
            raise UsageError(f"--on-error {self.on_error}: expected stop or skip.")

    def skip(self, error: FormatError) -> None:
        """Count a broken place, and tell the first few."""
        self.skipped += 1
        if self.skipped <= SHOWN:
            self.remarks(f"skipped {error}")

    def read(self, file: str, keep_source: bool = False) -> Corpus:
        """A FILE[#LAYER] as a corpus whose first layer is the one meant."""
        from duilian import formats

        path, layer = formats.split_layer(file)
        corpus = formats.read(path, layer=layer, on_skip=self.skip, keep_source=keep_source, **self.options())
        return corpus

    def options(self) -> dict[str, Any]:
        """What ``formats.read`` takes."""
        return {"format": self.format, "encoding": self.encoding, "on_error": self.on_error}

    def finish(self) -> None:
        """Say how much was skipped in all."""
        if self.skipped > SHOWN:
            self.remarks(f"skipped {self.skipped:,} broken places in all")


def is_model(file: str) -> bool:
    """Whether a file begins like one of our models: a table's length of eight bytes, then the table."""
    path = Path(file)
    if file == "-" or not path.is_file():
        return False
    with path.open("rb") as stream:
        head = stream.read(9)
    return len(head) == 9 and head[8:] == b"{" and int.from_bytes(head[:8], "little") < 1 << 32
