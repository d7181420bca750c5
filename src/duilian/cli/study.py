"""duilian study: the papers' tables and figures, and every method beside the others, on the user's corpora.

Options and printing only; what is run, and how, is in ``duilian.studies`` (docs/studies.md).
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from duilian.cli.arguments import SideFiles, parse_sides
from duilian.cli.study_output import facts, print_tables
from duilian.cli.terminal import Debug, Json, Quiet, Remarks, print_json
from duilian.errors import DataError, UsageError

if TYPE_CHECKING:
    from duilian.studies.corpora import Given
    from duilian.studies.results import Results

app = typer.Typer(
    help="Studies: every method on your corpora, and the papers' tables and figures.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Out = Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for results; a study in it goes on.")]
Target = Annotated[
    list[str] | None,
    typer.Option(
        "--target", metavar="NAME=FILE", help="Training corpus NAME[:STANDARD]=FILE[#LAYER], or ctb:FOLDER."
    ),
]  # fmt: skip
Source = Annotated[
    list[str] | None,
    typer.Option("--source", metavar="NAME=FILE", help="Training corpus of a source, of another standard."),
]
Dev = Annotated[
    list[str] | None, typer.Option("--dev", metavar="NAME=FILE", help="Corpus that decides which model is kept.")
]
Test = Annotated[list[str] | None, typer.Option("--test", metavar="NAME=FILE", help="Corpus that is scored.")]
Task = Annotated[str | None, typer.Option("--task", help="pos, seg or segpos. [default: the study's own]")]
Seeds = Annotated[int, typer.Option("--seeds", metavar="N", help="Run with seeds 1 to N: mean and deviation.", min=1)]
Quick = Annotated[bool, typer.Option("--quick", help="A few sentences and epochs, to see that everything runs.")]
Data = Annotated[
    Path | None,
    typer.Option("--data", metavar="FOLDER", help="Where zh_ud, en_ewt and ja_gsd are. [default: DUILIAN_DATA]"),
]
StudyThreads = Annotated[int, typer.Option("--threads", help="Threads of training; scores do not depend on it.", min=1)]

STUDIES = {
    "all": """Every method that the task allows on one pair of corpora: scores, speed, time, memory, size.

    \b
    Examples:
      duilian study all --out results
      duilian study all --target ctb=ctb.txt --source pku=pd.txt --dev ctb=dev.txt --test ctb=test.txt --out results
      duilian study all --quick --out quick
    """,
    "li2015": """Coupled CRF: mapping functions, weights of the corpora, features, conversion, converted data (li2015).

    \b
    Examples:
      duilian study li2015 --out li2015
      duilian study li2015 --target ctb:CTB5 --source pku=pd.txt --dev pku=dev.txt --test pku=test.txt --out li2015
    """,
    "li2016": """Context-aware pruning: r and lambda, online and offline, main results, probabilities by rank (li2016).

    \b
    Examples:
      duilian study li2016 --out li2016
      duilian study li2016 --task segpos --out li2016-segpos
    """,
    "jiang2012": """Annotation transformation: cross-corpus loss, merging, adaptation, rounds, predict-self (jiang2012).

    \b
    Examples:
      duilian study jiang2012 --out jiang2012
      duilian study jiang2012 --target ctb:CTB5 --source pku=pd.txt --test pku=test.txt --out jiang2012
    """,
    "qiu2013": """Multi-task learning across a loose mapping, both ways and one way (qiu2013).

    \b
    Examples:
      duilian study qiu2013 --out qiu2013
      duilian study qiu2013 --task pos --out qiu2013-pos
    """,
    "correspondence": """Label correspondence: seven estimators and none, converting both ways (Zhu et al. 2009).

    \b
    Examples:
      duilian study correspondence --out correspondence
      duilian study correspondence --quick --out quick
    """,
}
"""Study -> its help."""


def make_command(name: str, text: str) -> Callable[..., None]:
    """The command of a study; all have the same options."""

    def command(
        out: Out,
        target: Target = None,
        source: Source = None,
        dev: Dev = None,
        test: Test = None,
        task: Task = None,
        seeds: Seeds = 1,
        quick: Quick = False,
        data: Data = None,
        threads: StudyThreads = 1,
        as_json: Json = False,
        quiet: Quiet = False,
        debug: Debug = False,
    ) -> None:
        remarks = Remarks(quiet)
        options: list[str] = []
        for option, values in (("--target", target), ("--source", source), ("--dev", dev), ("--test", test)):
            options += [part for value in values or [] for part in (option, value)]
        options += ["--task", task] if task else []
        options += ["--seeds", str(seeds)] if seeds > 1 else []
        options += ["--quick"] if quick else []
        results = study(
            name, out, remarks, target or [], source or [], dev or [], test or [], task, seeds, quick, data, threads,
            shlex.join(["duilian", "study", name, *map(short, options)]),
        )  # fmt: skip
        found = facts(results)
        if as_json:
            print_json(found)
        else:
            print_tables(results)
        report_beside(out, remarks)
        failed = [cell for cell in results.cells.values() if not cell.done]
        if failed:
            raise DataError(
                f"{len(failed)} of {len(results.plan.cells)} cells failed, the first is {failed[0].id}: "
                f"{(failed[0].error or '').rstrip('.')}. The same command tries them again."
            )

    command.__doc__ = text
    return command


for _name, _text in STUDIES.items():
    app.command(_name)(make_command(_name, _text))


@app.command("report")
def report_command(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a study.")],
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Write the report of a study anew, from its files alone, and print where it is.

    \b
    Examples:
      duilian study report results
    """
    from duilian.report import write_report

    path = write_report(folder)
    if as_json:
        return print_json({"report": path})
    typer.echo(path)
    return None


def study(
    name: str,
    out: Path,
    remarks: Remarks,
    targets: Sequence[str] = (),
    sources: Sequence[str] = (),
    devs: Sequence[str] = (),
    tests: Sequence[str] = (),
    task: str | None = None,
    seeds: int = 1,
    quick: bool = False,
    data: Path | None = None,
    threads: int = 1,
    command: str = "",
) -> Results:
    """Run a study, or what is left of it."""
    from duilian.studies.engine import Study
    from duilian.studies.prepare import Asked, prepare

    asked = Asked(
        name, out, sides(targets, "--target"), sides(sources, "--source"), sides(devs, "--dev"), sides(tests, "--test"),
        task, seeds, quick, threads, data, command,
    )  # fmt: skip
    remarks("preparing")
    prepared = prepare(asked, remarks)
    for note in prepared.plan.notes:
        remarks(f"note: {note}")
    try:
        with live_line(remarks) as live:
            return Study(prepared, out, threads, remarks, live).run()
    except KeyboardInterrupt:
        remarks("stopped; finished cells are kept, and the same command goes on")
        raise


def sides(given: Sequence[str], option: str) -> tuple[Given, ...]:
    """Sides as they were given; ctb:FOLDER alone is a side called ctb."""
    from duilian.studies.corpora import Given
    from duilian.studies.prepare import CTB

    texts = [f"ctb={text}" if text.startswith(CTB) else text for text in given]
    found: list[SideFiles] = parse_sides(texts, option)
    for side in found:
        if len(side.files) > 1 and any(file.startswith(CTB) for file in side.files):
            raise UsageError(f"{option} {side.name}: a treebank's folder stands alone, found {len(side.files)} files.")
    return tuple(Given(side.name, side.standard, side.files) for side in found)


def short(option: str) -> str:
    """An option without the folders of its file: results tell no paths."""
    name, equals, file = option.partition("=")
    if equals:
        return f"{name}={Path(file).name}"
    return f"ctb:{Path(option[4:]).name}" if option.startswith("ctb:") else option


def report_beside(folder: Path, remarks: Remarks) -> None:
    """The report after a study: its absence is told and is no failure."""
    from duilian.report import write_report

    try:
        remarks(f"report: {write_report(folder)}")
    except UsageError as error:
        remarks(str(error))


def live_line(remarks: Remarks) -> Any:
    """What a running cell says, on a line that is overwritten; nothing where stderr is no terminal."""
    from contextlib import contextmanager

    @contextmanager
    def shown() -> Any:
        if not remarks.on_terminal:
            yield lambda text: None
            return
        from rich.console import Console

        with Console(stderr=True).status("") as status:
            yield lambda text: status.update(text[:100])

    return shown()
