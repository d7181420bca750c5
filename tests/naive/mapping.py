"""Twins of duilian/mapping: relations as sets of tuples of names."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

Relation = set[tuple[str, ...]]


def complete(sides: Sequence[Sequence[str]]) -> Relation:
    return set(itertools.product(*sides))


def automatic(units: Sequence[tuple[str | None, ...]]) -> dict[tuple[str, ...], int]:
    """How often each bundle occurs among units whose labels are all known."""
    found: dict[tuple[str, ...], int] = {}
    for unit in units:
        if None not in unit:
            key = tuple(label for label in unit if label is not None)
            found[key] = found.get(key, 0) + 1
    return found


def positions_of(lengths: Sequence[int]) -> str:
    """Words of these lengths as one letter per character: B, I, E, S."""
    return "".join("S" if n == 1 else "B" + "I" * (n - 2) + "E" for n in lengths)


def compositions(n: int) -> list[list[int]]:
    """All ways to cut n characters into words."""
    if n == 0:
        return [[]]
    return [[first, *rest] for first in range(1, n + 1) for rest in compositions(n - first)]


def meetings(mode: str, longest: int = 4) -> set[tuple[str, str]]:
    """Which positions meet at a character, from all pairs of ways to cut short texts that the mode speaks of."""
    found = set()
    for n in range(1, longest + 1):
        for one, other in itertools.product(compositions(n), repeat=2):
            cuts, others = edges(one), edges(other)
            fits = {"same": cuts == others, "finer": cuts <= others, "coarser": cuts >= others, "free": True}
            fits["nested"] = fits["finer"] or fits["coarser"]
            if fits[mode]:
                found |= set(zip(positions_of(one), positions_of(other), strict=True))
    return found


def edges(lengths: Sequence[int]) -> set[int]:
    return set(itertools.accumulate(lengths))


def lift(relation: Relation, labels: Sequence[Sequence[str]], mode: str) -> Relation:
    """Bundles of labels ``B@tag`` whose tags are related and whose positions may meet."""
    meet = meetings(mode)
    return {
        bundle
        for bundle in itertools.product(*labels)
        if tuple(label[2:] for label in bundle) in relation
        and all((a[0], b[0]) in meet for a, b in itertools.combinations(bundle, 2))
    }


def overlaps(spans: list[list[tuple[int, int]]]) -> set[tuple[int, ...]]:
    """Bundles of words, one of each list of spans, that have a character in common."""
    found = set()
    for bundle in itertools.product(*(range(len(side)) for side in spans)):
        chosen = [set(range(*side[k])) for side, k in zip(spans, bundle, strict=True)]
        if set.intersection(*chosen):
            found.add(bundle)
    return found


def common_words(corpora: list[list[tuple[str, str]]], share: float) -> dict[tuple[str, ...], int]:
    """Bundles of usual tags of the words that all corpora have, by the number of such words."""
    found: dict[tuple[str, ...], int] = {}
    for word in set.intersection(*({word for word, _ in corpus} for corpus in corpora)):
        usual = []
        for corpus in corpora:
            tags = [tag for one, tag in corpus if one == word]
            usual.append({tag for tag in tags if tags.count(tag) / len(tags) >= share - 1e-12})
        for bundle in itertools.product(*usual):
            found[bundle] = found.get(bundle, 0) + 1
    return found
