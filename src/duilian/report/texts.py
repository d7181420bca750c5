"""Figures that are text: the learned mapping with examples in context, converted sentences with what is uncertain."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any

from duilian.mapping import Example, make, picture
from duilian.mapping.drawing import describe
from duilian.report.blocks import Block, Shown, one
from duilian.report.numbers import shown
from duilian.report.plotting import Panel
from duilian.report.reading import Number, Part, Raw
from duilian.studies.results import Figure

LEAST = 0.1
"""The share of the shown words that is marked as the least certain."""


@dataclass(frozen=True)
class Relation:
    """Two labels that go together, how often, and where. id: of its row on the page."""

    id: str
    labels: tuple[str, str]
    count: Number
    examples: tuple[tuple[str, str, str], ...]


def mapping(raw: Raw, figure: Figure) -> Block:
    """A heat map of what a tagger lets go together; each cell leads to its examples."""
    block, name = Block(figure), str(figure.refers.get("cell", ""))
    cell = block.run(raw, name)
    names = [part.text() for part in cell["mapping"]["sides"]]
    number = next(k for k, other in enumerate(raw.plan.figures) if other is figure)
    found = _relations(cell["mapping"]["relations"], f"f{number + 1}")
    if not found or len(names) != 2:
        return block
    sides = [sorted({one.labels[s] for one in found}) for s in (0, 1)]
    rows = [[sides[s].index(one.labels[s]) for s in (0, 1)] for one in found]
    table = make(sides, rows, [False] * len(found), [int(one.count.value) for one in found])
    examples: dict[tuple[str, ...], list[Example]] = {
        one.labels: [Example(left, (word,), right, 0) for left, word, right in one.examples] for one in found
    }  # fmt: skip
    ids = {one.labels: f"#{one.id}" for one in found}
    drawn = picture(table, names, examples, lambda labels: ids[labels[0], labels[1]], style="")
    block.panels.append(Panel(drawn, describe(table, names)))
    of_row: dict[str, list[Number]] = {}
    for relation in found:
        of_row.setdefault(relation.labels[0], []).append(relation.count)
    block.more = {
        "names": names,
        "relations": [
            (relation, one(relation.count, 0), _share(relation.count, of_row[relation.labels[0]])) for relation in found
        ],
    }
    return block


def _share(count: Number, row: list[Number]) -> Shown:
    part = 100 * count.value / sum(number.value for number in row)
    return Shown(f"{shown(part, 1)} %", (count, *(number for number in row if number is not count)))


def _relations(parts: Part, figure: str) -> list[Relation]:
    """The commonest first."""
    found = []
    for part in parts:
        count = part[2].number()
        if count is not None:
            places = tuple((at[0].text(), at[1].text(), at[2].text()) for at in part[3])
            found.append((count, (part[0].text(), part[1].text()), places))
    found.sort(key=lambda one: (-one[0].value, one[1]))
    return [Relation(f"{figure}-r{k}", labels, count, places) for k, (count, labels, places) in enumerate(found)]


@dataclass(frozen=True)
class Word:
    """A word of an answer. right: whether gold has it so, None without gold; unsure: among the least certain.

    gold: the tag that gold has, if it has that word
    """

    word: str
    tag: str
    confidence: Shown | None
    unsure: bool
    right: bool | None
    gold: str = ""


def samples(raw: Raw, figure: Figure) -> Block:
    """Converted sentences below what they were made from; the least certain words are marked."""
    block, name = Block(figure), str(figure.refers.get("cell", ""))
    cell = block.run(raw, name)
    sentences = list(cell["samples"][str(figure.refers.get("conversion", ""))])
    numbers = [number.value for part in sentences for word in part["answer"] if (number := word[2].number())]
    if not sentences:
        return block
    limit = sorted(numbers)[max(1, ceil(LEAST * len(numbers))) - 1] if numbers else None
    answers = [_words(part, limit) for part in sentences]
    given = [[(pair[0].text(), pair[1].text()) for pair in part["given"]] for part in sentences]
    every = [word for answer in answers for word in answer]
    block.more = {
        "sentences": [{"given": one, "answer": answer} for one, answer in zip(given, answers, strict=True)],
        "limit": limit,
        "unsure": sum(word.unsure for word in every),
        "wrong": sum(word.right is False for word in every),
        "unsure_and_wrong": sum(word.unsure and word.right is False for word in every),
        "words": len(every),
        "has_gold": any(word.right is not None for word in every),
    }
    return block


def _words(sentence: Part, limit: float | None) -> list[Word]:
    gold: dict[tuple[int, int], str] | None = None
    if sentence["gold"]:
        gold = dict(_spans(sentence["gold"]))
    found = []
    for (span, tag), part in zip(_spans(sentence["answer"]), sentence["answer"], strict=True):
        number = part[2].number()
        right = None if gold is None else gold.get(span) == tag
        unsure = number is not None and limit is not None and number.value <= limit
        wanted = "" if gold is None or right else gold.get(span, "")
        found.append(Word(part[0].text(), tag, one(number), unsure, right, wanted))
    return found


def _spans(words: Part) -> list[tuple[tuple[int, int], str]]:
    """Where each word begins and ends, spaces not counted, with its tag."""
    found: list[Any] = []
    at = 0
    for part in words:
        end = at + len("".join(part[0].text().split()))
        found.append(((at, end), part[1].text()))
        at = end
    return found
