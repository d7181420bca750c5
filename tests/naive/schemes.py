"""Schemes one word and one character at a time, from the roles' names."""

from __future__ import annotations

LETTERS = {
    "BIES": {"single": "S", "begin": "B", "middle": "I", "end": "E"},
    "BMES": {"single": "S", "begin": "B", "middle": "M", "end": "E"},
    "BILOU": {"single": "U", "begin": "B", "middle": "I", "end": "L"},
    "BIO": {"single": "B", "begin": "B", "middle": "I", "end": "I"},
}


def write(name: str, lengths: list[int]) -> str:
    """The prefixes of words of these lengths."""
    letters = LETTERS[name]
    out = ""
    for length in lengths:
        if length == 1:
            out += letters["single"]
        elif length > 1:
            out += letters["begin"] + letters["middle"] * (length - 2) + letters["end"]
    return out


def every_writing(name: str, n: int) -> dict[str, list[int]]:
    """All sequences of n prefixes that some words write -> those words' lengths."""
    found: dict[str, list[int]] = {}

    def extend(lengths: list[int], left: int) -> None:
        if left == 0:
            found[write(name, lengths)] = list(lengths)
        for length in range(1, left + 1):
            extend([*lengths, length], left - length)

    extend([], n)
    return found


def read(name: str, prefixes: str) -> list[int]:
    """Word lengths from any sequence: cut before every opening letter and after every letter that only closes."""
    letters = LETTERS[name]
    opening = {letters["single"], letters["begin"]}
    closing = {letters["single"], letters["end"]} - {letters["begin"], letters["middle"]}
    lengths: list[int] = []
    for place, letter in enumerate(prefixes):
        if place == 0 or letter in opening or prefixes[place - 1] in closing:
            lengths.append(1)
        else:
            lengths[-1] += 1
    return lengths
