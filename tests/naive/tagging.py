"""What a trained chain should answer, by enumeration over the label names of one sentence."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from naive import chain

Word = tuple[str, str | None]


def label_scores(node: Any, model: Any, allowed: Sequence[Sequence[int]] | None = None) -> chain.Scores:
    """Every possible labelling of a sentence with its score over the temperature."""
    scores = chain.all_scores(node, model.trans, model.start, model.end, allowed)
    return {labels: value / model.temperature for labels, value in scores.items()}


def words_of(names: Sequence[str], labels: Sequence[int], characters: str) -> list[tuple[int, int, str | None]]:
    """BIES labels -> words as (begin, end, tag)."""
    found: list[tuple[int, int, str | None]] = []
    begin = 0
    for at, label in enumerate(labels):
        prefix, _, tag = names[label].partition("@")
        if prefix in "BS":
            begin = at
        if prefix in "ES":
            found.append((begin, at + 1, tag or None))
    assert not found or found[-1][1] == len(characters)
    return found


def word_probability(
    scores: chain.Scores, names: Sequence[str], characters: str, word: tuple[int, int, str | None]
) -> float:
    """The share of the labellings in which exactly this word stands, tag and all."""
    return sum(p for labels, p in chain.probabilities(scores).items() if word in words_of(names, labels, characters))


def crosses(word: tuple[int, int, str | None], gaps: set[int]) -> bool:
    """Whether a word spans a place where it must not."""
    return any(word[0] < gap < word[1] for gap in gaps)


def spans(words: Sequence[str]) -> list[tuple[int, int]]:
    """Words one after another as ranges of characters."""
    edges = [0, *itertools.accumulate(map(len, words))]
    return list(itertools.pairwise(edges))
