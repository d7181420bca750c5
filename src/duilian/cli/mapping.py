"""duilian mapping: which labels of two standards go together: induce it, show it, edit it by file, export it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from duilian.cli.arguments import Reading, parse_sides
from duilian.cli.mapping_output import Shown, facts, finish, write_mapping
from duilian.cli.terminal import Debug, Encoding, Format, Json, OnError, Quiet, Remarks, print_json
from duilian.errors import UsageError

if TYPE_CHECKING:
    from duilian.corpus import Corpus, Layer

app = typer.Typer(
    help="Mappings: which labels of two standards go together; induced, shown, edited by file.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Sides = Annotated[
    list[str],
    typer.Option("--side", metavar="NAME=FILE", help="Corpus NAME=FILE[#LAYER] annotated to a side's standard."),
]
SomeSides = Annotated[
    list[str] | None,
    typer.Option(
        "--side", metavar="NAME=FILE", help="Corpus of a side: says which labels there are, for rules with a *."
    ),
]
Output = Annotated[
    Path | None,
    typer.Option("-o", "--output", metavar="RULES", help="Write a rule file, for --set mapping=RULES and for editing."),
]
Picture = Annotated[
    Path | None,
    typer.Option("--picture", metavar="FILE", help="Write a heat map: .svg, or .html with counts and examples."),
]
Least = Annotated[int, typer.Option("--least", metavar="N", help="Leave out what is seen fewer times.", min=1)]
Weak = Annotated[
    float,
    typer.Option(
        "--weak", metavar="SHARE", help="Mark as weak (?) what is less than this share of both labels.", min=0, max=1
    ),
]
Examples = Annotated[int, typer.Option("--examples", metavar="N", help="Show N places of each relation.", min=0)]
Heat = Annotated[bool, typer.Option("--heat/--no-heat", help="Draw a heat map on the terminal.")]


@app.command("automatic")
def automatic_command(
    side: Sides,
    model: Annotated[
        list[str], typer.Option("--model", metavar="NAME=MODEL", help="A model that answers in a side's standard.")
    ],
    output: Output = None,
    picture: Picture = None,
    least: Least = 1,
    weak: Weak = 0.0,
    examples: Examples = 0,
    heat: Heat = False,
    format: Format = "auto",
    encoding: Encoding = "utf-8",
    on_error: OnError = "stop",
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Induce a mapping: run the tagger of one side over the corpus of the other, and count what meets.

    One model is enough; with a model of each side both corpora count. Words of different segmentations meet where they
    share a character. The order of --side is the order of the columns, as --set mapping=RULES wants it.

    \b
    Examples:
      duilian mapping automatic --side ctb=ctb.txt --side pku=pku.txt --model pku=pku.model -o ctb-pku.rules
      duilian mapping automatic --side ctb=ctb.txt --side pku=pku.txt --model pku=pku.model --model ctb=ctb.model --heat
    """
    reading = Reading(format, encoding, on_error, Remarks(quiet))
    finish(induce_automatic(side, model, reading, least), reading, output, picture, weak, examples, heat, as_json)


@app.command("words")
def words_command(
    side: Sides,
    share: Annotated[
        float, typer.Option("--share", help="A label counts that makes at least this share of a word.", min=0, max=1)
    ] = 0.1,
    output: Output = None,
    picture: Picture = None,
    least: Least = 1,
    weak: Weak = 0.0,
    heat: Heat = False,
    format: Format = "auto",
    encoding: Encoding = "utf-8",
    on_error: OnError = "stop",
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Induce a mapping from the words that the corpora have in common, without any tagger.

    Each common word brings together its usual labels on either side; a relation's count is the number of such words.

    \b
    Examples:
      duilian mapping words --side ctb=ctb.txt --side pku=pku.txt -o ctb-pku.rules
      duilian mapping words --side ud=ud.conllu#upos --side ptb=ptb.conllu --share 0.2 --least 3 --heat
    """
    reading = Reading(format, encoding, on_error, Remarks(quiet))
    finish(induce_words(side, reading, share, least), reading, output, picture, weak, 0, heat, as_json)


@app.command("model")
def model_command(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model that converts between its sides.")],
    side: Sides,
    sure: Annotated[
        float, typer.Option("--sure", metavar="P", help="Count only answers at least this probable.", min=0, max=1)
    ] = 0.0,
    output: Output = None,
    picture: Picture = None,
    least: Least = 1,
    weak: Weak = 0.0,
    examples: Examples = 0,
    heat: Heat = False,
    format: Format = "auto",
    encoding: Encoding = "utf-8",
    on_error: OnError = "stop",
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Count the bundles that a trained model makes: one side's labels are given, it answers with the others.

    With --sure only answers count whose marginal probability under the given labels is high enough.

    \b
    Examples:
      duilian mapping model coupled.model --side pku=pku-dev.txt --heat --examples 2
      duilian mapping model coupled.model --side ctb=ctb-dev.txt --side pku=pku-dev.txt --sure 0.9 -o sure.rules
    """
    reading = Reading(format, encoding, on_error, Remarks(quiet))
    finish(induce_model(model, side, reading, sure, least), reading, output, picture, weak, examples, heat, as_json)


@app.command("show")
def show_command(
    rules: Annotated[str, typer.Argument(metavar="RULES", help="A rule file.")],
    side: SomeSides = None,
    inside: Annotated[
        list[str] | None,
        typer.Option("--in", metavar="FILE", help="JSON lines that have all sides: where examples are taken from."),
    ] = None,
    picture: Picture = None,
    examples: Examples = 2,
    heat: Heat = True,
    encoding: Encoding = "utf-8",
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Show a rule file: what goes with what, how often, a heat map, and examples in context.

    Counts are those of the comments in the file; with --in they are counted anew.

    \b
    Examples:
      duilian mapping show ctb-pku.rules
      duilian mapping show ctb-pku.rules --in both.jsonl --examples 3 --picture ctb-pku.html
    """
    reading = Reading("auto", encoding, "stop", Remarks(quiet))
    found = with_counts(read_mapping(rules, side or [], reading), inside or [], reading)
    finish(found, reading, None, picture, 0.0, examples if inside else 0, heat, as_json)


@app.command("export")
def export_command(
    rules: Annotated[list[str], typer.Argument(metavar="RULES...", help="Rule files; several are put together.")],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="OUT", help="What to write: rules, or a table (.tsv, .json).")
    ],
    side: SomeSides = None,
    least: Least = 1,
    weak: Weak = 0.0,
    tight: Annotated[bool, typer.Option("--tight", help="Without the weak relations.")] = False,
    loose: Annotated[
        bool, typer.Option("--loose", help="Sub-categories follow their category (qiu2013); needs --side.")
    ] = False,
    only: Annotated[
        str, typer.Option("--only", metavar="NAME,NAME", help="These sides, in this order; counts are added up.")
    ] = "",
    encoding: Encoding = "utf-8",
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Write rule files anew: put together, thinned out, spread to sub-categories, turned round, or as a table.

    What is written as rules reads back as the same mapping, with its counts.

    \b
    Examples:
      duilian mapping export ctb-pku.rules --least 5 --tight -o tight.rules
      duilian mapping export mine.rules automatic.rules -o both.rules
      duilian mapping export ctb-pku.rules --only pku,ctb -o pku-ctb.rules
      duilian mapping export ctb-pku.rules -o ctb-pku.tsv
    """
    remarks = Remarks(quiet)
    reading = Reading("auto", encoding, "stop", remarks)
    found = export(rules, side or [], reading, least, weak, tight=tight, loose=loose, only=only)
    write_mapping(found, output)
    if as_json:
        return print_json(facts(found, {}))
    remarks(f"{len(found.mapping)} relations in {output}")
    return None


def induce_automatic(sides: Sequence[str], models: Sequence[str], reading: Reading, least: int = 1) -> Shown:
    """What taggers make of the other sides' corpora."""
    from duilian import methods
    from duilian.induction import by_taggers

    corpora = read_sides(sides, reading, two=True)
    taggers = {}
    for text in models:
        name, equals, file = text.partition("=")
        if not equals or name not in corpora:
            raise UsageError(f"--model {text!r}: expected NAME=MODEL with a name of --side: {', '.join(corpora)}.")
        taggers[name] = methods.load(file)
        if taggers[name].task == "seg":
            raise UsageError(f"--model {text!r}: this model only segments, and a mapping pairs tags.")
    found = by_taggers(corpora, taggers, least)
    return Shown(found.mapping, found.names, found.parts)


def induce_words(sides: Sequence[str], reading: Reading, share: float = 0.1, least: int = 1) -> Shown:
    """What common words bring together."""
    from duilian.mapping import common_words

    corpora = read_sides(sides, reading, two=True)
    parts = [(corpus, corpus.layer()) for corpus in corpora.values()]
    return Shown(common_words(parts, share, least), tuple(corpora))


def induce_model(model: str, sides: Sequence[str], reading: Reading, sure: float = 0.0, least: int = 1) -> Shown:
    """The bundles of a trained model."""
    from duilian import methods
    from duilian.induction import by_model

    found = by_model(methods.load(model), read_sides(sides, reading), sure, least)
    return Shown(found.mapping, found.names, found.parts)


def read_sides(given: Sequence[str], reading: Reading, two: bool = False) -> dict[str, Corpus]:
    """Side -> its corpora as one."""
    from dataclasses import replace

    from duilian.corpus import Corpus, concatenate

    found = {}
    for side in parse_sides(given):
        parts = [reading.read(file) for file in side.files]
        named = [Corpus(one.text, one.offsets, (replace(one.layer(), name=side.name),)) for one in parts]
        found[side.name] = concatenate(named)
        if not found[side.name].layer().has_tags:
            raise UsageError(f"--side {side.name}: its corpus has no tags, and a mapping pairs tags.")
    if two and len(found) < 2:
        raise UsageError("a mapping has two sides at least: --side NAME=FILE --side NAME=FILE.")
    return found


def read_mapping(rules: str, sides: Sequence[str], reading: Reading) -> Shown:
    """A rule file; sides: corpora that say which labels there are."""
    from duilian import mapping

    corpora = read_sides(sides, reading)
    labels = None
    if corpora:
        labels = [
            sorted(tag for tag, n in zip(corpus.layer().tags, _counts(corpus.layer()), strict=True) if n)
            for corpus in corpora.values()
        ]
    found = mapping.read_rules(rules, labels)
    n = len(found.mapping.sides)
    names = tuple(corpora) or found.names or tuple(str(k + 1) for k in range(n))
    return Shown(found.mapping, names)


def _counts(layer: Layer) -> Any:
    import numpy as np

    used = np.concatenate([layer.labels[layer.labels >= 0], layer.sets.data])
    return np.bincount(used, minlength=len(layer.tags))


def with_counts(shown: Shown, files: Sequence[str], reading: Reading) -> Shown:
    """The same relations as they are seen in corpora that have all sides."""
    if not files:
        return shown
    import numpy as np

    from duilian.induction import by_layers
    from duilian.mapping import make

    corpora = [reading.read(file) for file in files]
    for corpus, file in zip(corpora, files, strict=True):
        missing = [name for name in shown.names if name not in {layer.name for layer in corpus.layers}]
        if missing:
            has = ", ".join(layer.name for layer in corpus.layers)
            raise UsageError(f"{file} has no side {missing[0]}; it has {has}.")
    seen = by_layers(corpora, shown.names)
    numbers = dict(zip(seen.mapping.names(), seen.mapping.counts.tolist(), strict=True))
    old = shown.mapping
    counts = np.array([numbers.get(bundle, 0) for bundle in old.names()], np.int64)
    return Shown(make(old.sides, old.bundles, old.weak, counts), shown.names, seen.parts)


def export(
    rules: Sequence[str], sides: Sequence[str], reading: Reading, least: int = 1, weak: float = 0.0, *,
    tight: bool = False, loose: bool = False, only: str = "",
) -> Shown:  # fmt: skip
    """Rule files put together, and what was asked for done to them."""
    from duilian import mapping

    if loose and not sides:
        raise UsageError("--loose asks which labels there are: name a corpus of each side, --side NAME=FILE.")
    parts = [read_mapping(file, sides, reading) for file in rules]
    whole = parts[0]
    for other in parts[1:]:
        if other.names != whole.names:
            raise UsageError(f"files of {' and '.join(whole.names)}, and of {' and '.join(other.names)}: not the same.")
        both = zip(whole.mapping.sides, other.mapping.sides, strict=True)
        labels = [sorted({*one, *two}) for one, two in both]
        whole.mapping = whole.mapping.with_sides(labels).union(other.mapping.with_sides(labels))
    found = whole.mapping
    if loose:
        found = mapping.loose(found)
    if least > 1:
        found = found.at_least(least)
    if weak:
        found = mapping.mark_weak(found, weak)
    if tight:
        found = found.tight()
    names = whole.names
    if only:
        names = tuple(only.split(","))
        if len(names) < 2 or len(set(names)) < len(names) or not set(names) <= set(whole.names):
            raise UsageError(f"--only {only}: expected two sides or more out of {', '.join(whole.names)}.")
        chosen = [whole.names.index(name) for name in names]
        found = mapping.make([found.sides[k] for k in chosen], found.bundles[:, chosen], found.weak, found.counts)
    return Shown(found, names)
