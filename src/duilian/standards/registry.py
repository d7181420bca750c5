"""The registry: which standards there are and in which file each stands.

Folders are searched in this order, and the first file of a name counts, so that a user's copy hides ours:

    DUILIAN_STANDARDS               folders, separated as in PATH
    ~/.config/duilian/standards     (XDG_CONFIG_HOME instead of ~/.config where that is set)
    the folder of this file         what duilian ships
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from duilian.errors import StandardError
from duilian.standards.standard import Standard, edit_distance, read_toml

VARIABLE = "DUILIAN_STANDARDS"
SHIPPED = Path(__file__).parent


def folders() -> list[Path]:
    """The folders that are searched, first to last; those that do not exist are left out."""
    named = [Path(part) for part in os.environ.get(VARIABLE, "").split(os.pathsep) if part]
    config = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    every = [*named, Path(config) / "duilian" / "standards", SHIPPED]
    return [folder for folder in map(_home, every) if folder.is_dir()]


def paths() -> dict[str, Path]:
    """Name -> file, by name."""
    found = dict(_files())
    return {name: found[name] for name in sorted(found)}


def names() -> list[str]:
    """The names of all registered standards, sorted."""
    return list(paths())


def get(name: str) -> Standard:
    """The standard of that name."""
    return _resolve(name, ())


def load(path: str | os.PathLike[str]) -> Standard:
    """The standard in a file anywhere."""
    return _read(Path(path), ())


def _files() -> Iterator[tuple[str, Path]]:
    for folder in reversed(folders()):
        for path in folder.glob("*.toml"):
            yield path.stem, path


def _home(path: Path) -> Path:
    try:
        return path.expanduser()
    except RuntimeError:
        return path


def _resolve(name: str, asked_by: tuple[str, ...]) -> Standard:
    found = paths()
    if name not in found:
        likely = [known for known in found if edit_distance(name.lower(), known.lower()) <= max(1, len(known) // 3)]
        meant = f" Did you mean {' or '.join(map(repr, likely))}?" if likely else ""
        raise StandardError(
            f"no standard {name!r}; there are {', '.join(found)}.{meant} "
            f"To add your own put {name}.toml in a folder named by {VARIABLE}"
        )
    standard = _read(found[name], asked_by)
    if standard.name != name:
        raise StandardError(f"{found[name]}: holds the name {standard.name!r}; a file is called after its standard")
    return standard


def _read(path: Path, asked_by: tuple[str, ...]) -> Standard:
    data = read_toml(path)
    base = data.pop("extends", None)
    if base is not None:
        if not isinstance(base, str):
            raise StandardError(f"{path}: extends must be the name of a standard, found {base!r}")
        chain = (*asked_by, str(data.get("name", path.stem)))
        if base in chain:
            raise StandardError(f"{path}: extends goes in a circle: {' -> '.join((*chain, base))}")
        data = _extended(_resolve(base, chain).to_dict(), data)
    return Standard.from_dict(data, where=str(path))


def _extended(base: dict[str, Any], data: dict[str, Any]) -> dict[str, Any]:
    """What the base has, overlaid with what the file says; tables are merged entry by entry."""
    merged = dict(base)
    for key, value in data.items():
        old = base.get(key)
        merged[key] = {**old, **value} if isinstance(old, dict) and isinstance(value, dict) else value
    return merged
