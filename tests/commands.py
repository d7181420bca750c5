"""What tests of commands share: the type of the fixture ``run`` in conftest.py."""

from collections.abc import Callable

Run = Callable[..., tuple[int, str, str]]
"""Runs a command in this process: (exit status, stdout, stderr)."""
