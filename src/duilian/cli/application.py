"""The table of commands, and what `duilian` itself answers."""

from __future__ import annotations

from typing import Annotated

import typer

import duilian
from duilian.cli import bench, compare, convert, data, demo, evaluate, inspect, mapping, study, tag, train

app = typer.Typer(
    name="duilian",
    help="One resource out of corpora annotated to different standards.",
    epilog="Try: duilian demo. Data goes to stdout, all else to stderr; exit status 0 done, 1 failed, 2 misused.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)

app.command("demo")(demo.command)
app.add_typer(data.app, name="data")
app.command("inspect")(inspect.command)
app.command("train")(train.command)
app.command("tag")(tag.command)
app.command("convert")(convert.command)
app.command("evaluate")(evaluate.command)
app.command("compare")(compare.command)
app.add_typer(mapping.app, name="mapping")
app.add_typer(study.app, name="study")
app.command("bench")(bench.command)


@app.callback(invoke_without_command=True)
def root(version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False) -> None:
    """One resource out of corpora annotated to different standards."""
    if version:
        typer.echo(f"duilian {duilian.__version__}")
        raise typer.Exit
