"""Words and tags as labels of characters, from the definition, by plain Python over strings."""

from __future__ import annotations

from collections.abc import Sequence

from duilian.corpus import Label

Sentence = tuple[Sequence[str], Sequence[Label]]


def characters(text: str) -> list[str]:
    """What is labelled: every character that is not whitespace."""
    return [character for character in text if not character.isspace()]


def roles(word: str) -> list[str]:
    """Single, or begin, middle, end, of each character of a word, as BIES letters."""
    length = len(characters(word))
    return ["S"] if length == 1 else ["B", *"I" * (length - 2), "E"][:length]


def labels_allowed(
    sentence: Sentence, tags: Sequence[str], task: str, known: Sequence[str] | None = None
) -> list[set[str]]:
    """What each character of a sentence may be labelled; an empty set where anything goes.

    tags: those that a word without a tag may have; known: the labels that there are (None: all)
    """

    def writable(word: str, tag: str | None) -> bool:
        names = [role if tag is None else f"{role}@{tag}" for role in roles(word)]
        return known is None or all(name in known for name in names)

    found: list[set[str]] = []
    for word, label in zip(*sentence, strict=True):
        wanted: set[str | None] = {None} if task == "seg" else set(tags)
        if task == "segpos" and label is not None:
            wanted = {label} if isinstance(label, str) else set(label)
        fine = {tag for tag in wanted if writable(word, tag)}
        if not fine:
            every: set[str | None] = {None} if task == "seg" else set(tags)
            fine = {tag for tag in every if writable(word, tag)}
        for role in roles(word):
            found.append({role if tag is None else f"{role}@{tag}" for tag in fine})
    return found


def words(text: Sequence[str], labels: Sequence[str]) -> list[tuple[str, str | None]]:
    """Characters and legal BIES labels -> words with their tags."""
    found: list[tuple[str, str | None]] = []
    for character, label in zip(text, labels, strict=True):
        role, _, tag = label.partition("@")
        if role in "BS":
            found.append((character, tag or None))
        else:
            found[-1] = (found[-1][0] + character, found[-1][1])
    return found


def is_legal(labels: Sequence[str]) -> bool:
    """Whether a sentence may have these labels: words are closed, and keep one tag."""
    open_tag: str | None = None
    for label in labels:
        role, _, tag = label.partition("@")
        if (role in "BS") != (open_tag is None) or (open_tag is not None and tag != open_tag):
            return False
        open_tag = tag if role in "BI" else None
    return open_tag is None
