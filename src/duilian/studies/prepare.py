"""From what the user asks to a prepared study: which corpora, which recipe, cut down for --quick."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from duilian import standards, studies
from duilian.errors import UsageError
from duilian.studies import corpora as data
from duilian.studies import ctb
from duilian.studies.corpora import Corpora, Given, Piece, SideData
from duilian.studies.engine import Prepared, facts
from duilian.studies.recipe import Kind, Recipe, check_task

CTB = "ctb:"
"""Before a folder: the Chinese Treebank as it comes."""


@dataclass(frozen=True)
class Asked:
    """What a command line asks for. data: the folder of the corpora at hand, where no target is given."""

    study: str
    out: Path
    targets: tuple[Given, ...] = ()
    sources: tuple[Given, ...] = ()
    devs: tuple[Given, ...] = ()
    tests: tuple[Given, ...] = ()
    task: str | None = None
    seeds: int = 1
    quick: bool = False
    threads: int = 1
    data: Path | None = None
    command: str = ""


def prepare(asked: Asked, report: Callable[[str], None] = lambda text: None) -> Prepared:
    """The plan with its jobs; nothing is run."""
    kind = studies.find(asked.study)
    task = check_task(kind, asked.task)
    if bool(asked.targets) != bool(asked.sources):
        missing = "--source" if asked.targets else "--target"
        raise UsageError(
            f"{missing} is missing: a study needs corpora of two standards, such as --target ctb=train.txt --source "
            "pku=pd.txt; without both it takes those at hand."
        )
    if not asked.targets and (asked.devs or asked.tests):
        raise UsageError("--dev and --test belong to --target and --source, which are not given.")
    found = given(asked, kind, task, report) if asked.targets else at_hand(asked, kind, task)
    if asked.quick:
        found = [None if one is None else one.quick() for one in found]
    recipe = Recipe(task, range(1, asked.seeds + 1), asked.quick, asked.out)
    if asked.quick:
        recipe.note(
            "quick: "
            + ", ".join(f"{n} {what}" for what, n in data.QUICK.items())
            + " sentences at the most, and few epochs. These scores say that everything runs, not which method is best."
        )
    if found[0] is not None and len(found[0].sources) > 1 and kind.paper is not None:
        left = ", ".join(side.name for side in found[0].sources[1:])
        recipe.note(
            f"a paper's study is about two standards: {left} is left out. `duilian study all` takes all of them."
        )
    kind.build(recipe, found)
    return recipe.prepared(kind, found, asked.command, facts(asked.threads))


def at_hand(asked: Asked, kind: Kind, task: str) -> list[Corpora | None]:
    """The corpora of the documents."""
    folder = data.data_folder(asked.data)
    return [data.at_hand(one, folder, asked.out) if one else None for one in kind.hand[task]]


def given(asked: Asked, kind: Kind, task: str, report: Callable[[str], None]) -> list[Corpora | None]:
    """The user's corpora, once for each pair that the recipe wants; pairs that need gold on both sides only with it."""
    treebanks = [one for one in (*asked.targets, *asked.sources) if one.files[0].startswith(CTB)]
    if len(treebanks) > 1:
        raise UsageError("two treebanks: ctb:FOLDER can stand for one side.")
    if treebanks:
        own = data.with_conversions(_with_treebank(asked, treebanks[0], kind, report), task)
    else:
        own = data.with_conversions(data.from_files(asked.targets, asked.sources, asked.devs, asked.tests), task)
    both = own if own.conversions else None
    return [own if number == 0 else both for number, _ in enumerate(kind.hand[task])]


def _with_treebank(asked: Asked, treebank: Given, kind: Kind, report: Callable[[str], None]) -> Corpora:
    """Sides of which one is the Chinese Treebank in its folder."""
    folder = Path(treebank.files[0].removeprefix(CTB))
    paths = ctb.write_parts(folder, kind.split, asked.out / "corpora", report)
    train, dev, test = ((Piece(str(paths[part].resolve())),) for part in data.PARTS)
    role = "target" if treebank in asked.targets else "source"
    side = SideData(treebank.name, role, train, dev, test, treebank.standard or _registered(treebank.name))
    others = [one for one in (*asked.targets, *asked.sources) if one is not treebank]
    if any(one.name == treebank.name for one in (*asked.devs, *asked.tests, *others)):
        raise UsageError(f"{treebank.name} is a treebank with parts of its own: no other files for it.")
    if role == "source":
        found = data.from_files([one for one in others if one in asked.targets], (), asked.devs, asked.tests)
        return replace(found, sides=(*found.sides, side))
    sources = data.sides_of(others, "source", asked.devs, asked.tests)
    return Corpora((side, *sources))


def _registered(name: str) -> str | None:
    return name if name in standards.names() else None
