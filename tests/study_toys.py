"""Toy corpora in files for tests of studies: two standards over the same kind of sentences, gold on both in test."""

from __future__ import annotations

from pathlib import Path

from toys import Sentences, rename, toy_sentences

from duilian.studies.corpora import Given
from duilian.studies.prepare import Asked


def write(path: Path, sentences: Sentences) -> str:
    """Sentences as word/tag lines."""
    lines = (" ".join(f"{word}/{tag}" for word, tag in zip(*one, strict=True)) for one in sentences)
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return str(path)


def other(sentences: Sentences) -> Sentences:
    """The same in the other standard."""
    return rename(sentences, lambda tag: tag.upper())


def files(folder: Path) -> dict[str, str]:
    """a: the target's standard, b: the source's; test is one text in both."""
    folder.mkdir(parents=True, exist_ok=True)
    test = toy_sentences(8, 4)
    return {
        "a-train": write(folder / "a-train.txt", toy_sentences(12)),
        "a-dev": write(folder / "a-dev.txt", toy_sentences(4, 2)),
        "a-test": write(folder / "a-test.txt", test),
        "b-train": write(folder / "b-train.txt", other(toy_sentences(14, 3))),
        "b-dev": write(folder / "b-dev.txt", other(toy_sentences(4, 1))),
        "b-test": write(folder / "b-test.txt", other(test)),
    }


def asked(study: str, folder: Path, task: str | None = None, gold: bool = True, **more: object) -> Asked:
    """A study of the toys. gold: the source has a test part, too, which is the target's text."""
    found = files(folder / "toys")
    tests = [Given("a", None, (found["a-test"],))]
    if gold:
        tests.append(Given("b", None, (found["b-test"],)))
    return Asked(
        study, folder / "out",
        (Given("a", None, (found["a-train"],)),), (Given("b", None, (found["b-train"],)),),
        (Given("a", None, (found["a-dev"],)), Given("b", None, (found["b-dev"],))), tuple(tests), task,
        **more,  # type: ignore[arg-type]
    )  # fmt: skip


def options(folder: Path) -> list[str]:
    """The same for the command line."""
    found = files(folder / "toys")
    return [
        "--target", f"a={found['a-train']}", "--source", f"b={found['b-train']}", "--dev", f"a={found['a-dev']}",
        "--test", f"a={found['a-test']}", "--test", f"b={found['b-test']}",
    ]  # fmt: skip
