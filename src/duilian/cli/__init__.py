"""The command line: one file per command, each with two functions: one takes options, one does the work.

Nothing here imports NumPy or Numba before a command runs: ``duilian --help`` answers at once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

from duilian.errors import DuilianError


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 1 the work failed, 2 the call was wrong, 130 interrupted."""
    try:
        run(list(sys.argv[1:] if args is None else args))
    except SystemExit as end:
        if args is None:
            leave(end.code)
        raise


def run(given: list[str]) -> None:
    """Run the command line; every way out but a traceback is a SystemExit."""
    from typer.main import get_command

    from duilian.cli.application import app

    debug = "--debug" in given
    try:
        get_command(app)(args=given, prog_name="duilian")
    except KeyboardInterrupt:
        code = 130
    except DuilianError as error:
        if debug:
            raise
        code = fail(str(error), error.exit_code)
    except OSError as error:
        if debug:
            raise
        code = fail(f"{error.filename}: {error.strerror}." if error.filename else str(error))
    except MemoryError:
        if debug:
            raise
        code = fail("not enough memory. Try a part of the corpus, a higher cutoff, or one thread.")
    except RecursionError:
        if debug:
            raise
        code = fail("the input is nested too deeply.")
    sys.exit(code)


def fail(message: str, code: int = 1) -> int:
    """Say on stderr why the command failed; returns the exit status."""
    sys.stderr.write(f"duilian: {message}\n")
    return code


def leave(code: Any) -> None:
    """End the process now: Python would first take apart what Numba compiled, which lasts 0.3 seconds."""
    if isinstance(code, str):
        code = fail(code)
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:  # nobody reads any more
        code = code or 1
    os._exit(code or 0)
