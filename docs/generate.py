"""Write the pages of the command line reference from the commands themselves; with --check only compare.

    python docs/generate.py [--check]

Made from the commands' own tables rather than from printed help, so that no version of Typer changes a page.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from inspect import cleandoc
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "cli"
NOTE = "<!-- written by docs/generate.py: edit the command, then run `make docs` -->"


def commands() -> Iterator[tuple[str, Any]]:
    """(whole name, command) of everything that can be typed, in the order of the help."""
    from typer.main import get_command

    from duilian.cli.application import app

    yield from _below("duilian", get_command(app))


def _below(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    for child_name, child in getattr(command, "commands", {}).items():
        whole = f"{name} {child_name}"
        if hasattr(child, "commands"):
            yield from _below(whole, child)
        else:
            yield whole, child


def pages() -> dict[str, str]:
    """File name -> text of every page."""
    found = {f"{name.replace('duilian ', '').replace(' ', '-')}.md": _page(name, c) for name, c in commands()}
    rows = "\n".join(
        f"| [`{name}`]({name.replace('duilian ', '').replace(' ', '-')}.md) | {summary(command)} |"
        for name, command in commands()
    )
    found["index.md"] = (
        f"{NOTE}\n# Commands\n\n"
        "Data goes to stdout, everything else to stderr; `-` is stdin or stdout; `--json` prints one JSON object.\n"
        "Exit status: 0 done, 1 the work failed, 2 the call was wrong, 130 interrupted.\n\n"
        f"| command | what it does |\n| --- | --- |\n{rows}\n"
    )
    found["settings.md"] = _settings()
    return found


def _settings() -> str:
    """A table of the settings of each method."""
    from duilian.methods import METHODS

    parts = [NOTE, "# Settings", "For `duilian train METHOD --set KEY=VALUE`, and for recipe files."]
    for method in METHODS.values():
        rows = [
            f"| `{setting.name}` | {'' if setting.default in (None, '') else f'`{setting.default}`'} "
            f"| {_text(setting.help)} ({setting.expected()}) |"
            for setting in method.settings
        ]
        parts.append(
            f"## {method.name}\n\n{method.about[0].upper()}{method.about[1:]}. Does {', '.join(method.tasks)}."
        )
        parts.append("| setting | default | meaning |\n| --- | --- | --- |\n" + "\n".join(rows))
    return "\n\n".join(parts) + "\n"


def summary(command: Any) -> str:
    """The first sentence of a command's help."""
    first = " ".join(cleandoc(command.help or "").split("\n\n")[0].split())
    return first


def help_and_examples(command: Any) -> tuple[str, str]:
    """(text, examples) of a command's help; the examples are the block that starts with "Examples:"."""
    paragraphs = cleandoc(command.help or "").split("\n\n")
    text = [p.replace("\b\n", "") for p in paragraphs if "Examples:" not in p]
    examples = [p.split("Examples:\n", 1)[1] for p in paragraphs if "Examples:\n" in p]
    return "\n\n".join(text), "\n".join(line.strip() for block in examples for line in block.splitlines())


def _page(name: str, command: Any) -> str:
    text, examples = help_and_examples(command)
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option" and p.name != "help"]
    usage = " ".join([name, "[OPTIONS]", *(_usage(p) for p in arguments)])
    parts = [NOTE, f"# {name}", f"    {usage}", text]
    if examples:
        parts.append("## Examples\n\n" + "\n".join(f"    {line}" for line in examples.splitlines()))
    if arguments:
        parts.append("## Arguments\n\n" + "\n".join(f"- `{_metavar(p)}`: {_text(p.help)}" for p in arguments))
    parts.append("## Options\n\n| option | meaning |\n| --- | --- |\n" + "\n".join(_row(p) for p in options))
    return "\n\n".join(parts) + "\n"


def _usage(parameter: Any) -> str:
    text = _metavar(parameter) + ("..." if parameter.nargs == -1 else "")
    return text if parameter.required else f"[{text}]"


def _metavar(parameter: Any) -> str:
    return str(parameter.metavar or parameter.name.upper())


def _row(option: Any) -> str:
    value = "" if getattr(option, "is_flag", False) else f" {_metavar(option)}"
    names = ", ".join(f"`{name}{value}`" for name in option.opts)
    default = option.default
    shown = not callable(default) and default not in (None, False, [], ()) and "[default" not in (option.help or "")
    remark = f" [default: {default}]" if shown else " [required]" if option.required else ""
    remark += " (repeatable)" if getattr(option, "multiple", False) else ""
    return f"| {names} | {_text(option.help)}{remark} |"


def _text(text: str | None) -> str:
    return " ".join((text or "").split()).replace("|", "\\|")


def differences() -> list[str]:
    """What is missing, different or left over in the folder."""
    wanted = pages()
    present = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.md")}
    found = [f"docs/cli/{name} is missing" for name in wanted if name not in present]
    found += [f"docs/cli/{name} is out of date" for name in wanted if present.get(name, wanted[name]) != wanted[name]]
    return found + [f"docs/cli/{name} has no command" for name in present if name not in wanted]


def main(arguments: list[str]) -> int:
    """Write the pages, or with --check say what is out of date."""
    if arguments == ["--check"]:
        found = differences()
        for line in found:
            print(f"{line}; run `make docs`", file=sys.stderr)
        return int(bool(found))
    FOLDER.mkdir(exist_ok=True)
    wanted = pages()
    for path in FOLDER.glob("*.md"):
        if path.name not in wanted:
            path.unlink()
    for name, text in wanted.items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
