"""Slow twins of the formats' kernels and of whole readers, in plain Python on strings."""

from __future__ import annotations

import re

Sentences = list[list[tuple[str, str | None]]]


# Kernels ------------------------------------------------------------------------------------------------------------


def is_space(c: str, wide: bool) -> bool:
    return c.isspace() if wide else c in " \t\n\r\x0b\x0c"


def lines_of(text: str) -> list[str]:
    """With their ends; only a line feed ends a line."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def tokens(text: str, wide: bool) -> list[list[tuple[int, int]]]:
    """(begin, end) of the tokens of each line."""
    found, at = [], 0
    for line in lines_of(text):
        runs = re.finditer(r"\S+" if wide else r"[^ \t\n\r\x0b\x0c]+", line)
        found.append([(at + run.start(), at + run.end()) for run in runs])
        at += len(line)
    return found


def content(line: str) -> str:
    line = line.removesuffix("\n")
    return line.removesuffix("\r")


def numbers(strings: list[str]) -> list[int]:
    seen: dict[str, int] = {}
    return [seen.setdefault(string, len(seen)) for string in strings]


def id_of(text: str) -> tuple[int, int, int]:
    """(kind, first number, second number) of the first column of CoNLL-U; kind -1 if it is nothing."""
    match = re.fullmatch(r"([0-9]{1,9})(?:([-.])([0-9]{1,9}))?", text)
    if not match:
        return -1, 0, 0
    if match[2] is None:
        return 0, int(match[1]), 0
    return (1 if match[2] == "-" else 2), int(match[1]), int(match[3])


def weave(text: str, spans: list[tuple[int, int]], table: list[str], which: list[int]) -> str:
    return "".join(text[begin:end] + table[k] for (begin, end), k in zip(spans, which, strict=True))


# Readers ------------------------------------------------------------------------------------------------------------


class Broken(Exception):
    """Carries the number of the broken line."""


def joined(text: str, mark: str) -> Sentences:
    """word, mark, tag; the last mark splits."""
    found: Sentences = []
    for n, line in enumerate(lines_of(text), 1):
        found.append([])
        for token in re.split(r"[ \t\n\r\x0b\x0c]+", line):
            if token:
                word, _, tag = token.rpartition(mark)
                if not word or not tag:
                    raise Broken(n)
                found[-1].append((word, tag))
    return found


def slash(text: str) -> tuple[Sentences, list[list[tuple[str, str]]]]:
    """Words with tags, and compounds with labels, outer ones first, of each line."""
    found: Sentences = []
    compounds: list[list[tuple[str, str]]] = []
    for n, line in enumerate(lines_of(text), 1):
        words: list[tuple[str, str | None]] = []
        open_at: list[int] = []
        closed: list[tuple[int, int, int, str]] = []
        for token in re.split(r"[ \t\n\r\x0b\x0c]+", line):
            if not token:
                continue
            opened, core, labels = peel(token, len(open_at))
            open_at += [len(words)] * opened
            if core:
                word, _, tag = core.rpartition("/")
                if not word or not tag:
                    raise Broken(n)
                words.append((word, tag))
            for label in labels:
                if not open_at or open_at[-1] == len(words):
                    raise Broken(n)
                begin = open_at.pop()
                closed.append((begin, -len(words), -len(closed), label))
        if open_at:
            raise Broken(n)
        found.append(words)
        compounds.append(
            [("".join(word for word, _ in words[begin:-end]), label) for begin, end, _, label in sorted(closed)]
        )
    return found, compounds


def peel(token: str, depth: int) -> tuple[int, str, list[str]]:
    """(brackets that open, word and tag, labels of the brackets that close, the innermost first)."""
    front = re.match(r"\[*", token)
    assert front
    opened = len(front[0])
    rest = token[opened:]
    if opened and rest:
        if "/" not in rest:
            opened = 0
        elif rest.startswith("/") or "]" in rest.split("/")[0]:
            opened -= 1  # the last bracket is a word, or part of one
    rest = token[opened:]
    # The longest tail of brackets with labels that leaves word/tag, or nothing, before it.
    labels: list[tuple[bool, str]] = []
    core = rest
    while True:
        match = re.fullmatch(r"(.*)\](/?)([^/\]]*)", core, re.DOTALL)
        if not match:
            break
        before, slash_, label = match.groups()
        if not before and slash_:
            break
        if before and before.find("/", 1) < 0 and not rest.startswith("]"):
            break
        core = before
        labels.insert(0, (slash_ != "", label))
    if len(labels) > depth + opened and all(variant for variant, _ in labels):
        return opened, rest, []
    return opened, core, [label for _, label in labels]


def rows(text: str, column: int) -> Sentences:
    """Columns separated by tabs; each blank line ends a sentence."""
    found: Sentences = []
    ended = True
    width = 0
    for n, line in enumerate(lines_of(text), 1):
        if ended:
            found.append([])
        ended = content(line) == ""
        if ended:
            continue
        fields = content(line).split("\t")
        width = width or len(fields)
        if len(fields) != width or not fields[0] or (width > 1 and (width < column or not fields[column - 1])):
            raise Broken(n)
        found[-1].append((fields[0], fields[column - 1] if width > 1 else None))
    return found


def conllu(text: str, column: int) -> Sentences:
    """The given column (4 or 5) of CoNLL-U, ``_`` as unknown; words with their own forms."""
    found: Sentences = []
    inside = False
    reach = 0
    begins: list[tuple[int, int, int]] = []
    for n, line in enumerate(lines_of(text), 1):
        line = content(line)
        if not line:
            inside = False
            continue
        if not inside:
            found.append([])
            inside, reach = True, 0
        if line.startswith("#"):
            continue
        fields = line.split("\t")
        if len(fields) != 10:
            raise Broken(n)
        kind, first, second = id_of(fields[0])
        here = len(found[-1]) + 1
        if kind == -1 or (kind < 2 and first != here):
            raise Broken(n)
        if kind == 1:
            if second < first or first <= reach or not fields[1]:
                raise Broken(n)
            reach = second
            begins.append((len(found) - 1, second, n))
        if kind == 0:
            if not fields[1] or not fields[3] or not fields[4]:
                raise Broken(n)
            found[-1].append((fields[1], None if fields[column - 1] == "_" else fields[column - 1]))
    for sentence, second, n in begins:
        if second > len(found[sentence]):
            raise Broken(n)
    return found
