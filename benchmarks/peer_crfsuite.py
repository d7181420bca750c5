"""A peer: python-crfsuite. Its features as strings, its training paused between epochs, and a small command line.

    python benchmarks/peer_crfsuite.py train ALGORITHM TASK FILE MODEL ITERATIONS     word/tag file -> model
    python benchmarks/peer_crfsuite.py tag TASK MODEL FILE OUT                        text file -> annotated file

This is how a careful user of python-crfsuite would write it: plain Python, strings built with the fewest steps.
The templates are those of ``duilian.features.templates``; a test holds them against our hashes.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from queue import SimpleQueue
from typing import Any

EDGE = "\n"
"""Stands beside the ends of a sentence; no word has it."""

Strings = Callable[[Sequence[str]], list[list[str]]]


def li2015(words: Sequence[str]) -> list[list[str]]:
    """Features of every word of a sentence: Table 1 of li2015."""
    found = []
    padded = [EDGE, *words, EDGE]
    for i, word in enumerate(words):
        left, right = padded[i], padded[i + 2]
        last, first, begin, end = left[-1], right[0], word[0], word[-1]
        features = [
            "w0=" + word,
            "w-1=" + left,
            "w+1=" + right,
            "w0last-1=" + word + " " + last,
            "w0first+1=" + word + " " + first,
            "first0=" + begin,
            "last0=" + end,
        ]
        size = len(word)
        if size == 1:
            features.append("single0=" + word + last + first)
        elif size > 2:
            for inner in word[1:-1]:
                features.append("inner0=" + inner)
                features.append("first0inner0=" + begin + inner)
                features.append("last0inner0=" + end + inner)
        for k in range(size - 1):
            if word[k] == word[k + 1]:
                features.append("repeat0=" + word[k])
        for k in range(1, min(size, 4) + 1):
            features.append("prefix0=" + word[:k])
            features.append("suffix0=" + word[-k:])
        found.append(features)
    return found


@cache
def kind_of(character: str) -> str:
    """1 of numbers, 2 of dates, 3 of letters, p of punctuation, else 0; once for each character of the text."""
    from duilian.features.characters import DATE, DIGIT, LETTER, PUNCTUATION, character_class

    return {DIGIT: "1", DATE: "2", LETTER: "3", PUNCTUATION: "p"}.get(character_class(character), "0")


def jiang2012(characters: Sequence[str]) -> list[list[str]]:
    """Features of every character of a sentence: Table 1 of jiang2012."""
    kinds = [kind_of(character) for character in characters]
    types = ["<", "<", *(kind if kind in "123" else "0" for kind in kinds), ">", ">"]
    padded = ["\n", "\n", *characters, "\r", "\r"]
    found = []
    for i, kind in enumerate(kinds):
        a, b, c, d, e = padded[i : i + 5]
        found.append(
            [
                "c-2=" + a,
                "c-1=" + b,
                "c0=" + c,
                "c+1=" + d,
                "c+2=" + e,
                "c-2c-1=" + a + b,
                "c-1c0=" + b + c,
                "c0c+1=" + c + d,
                "c+1c+2=" + d + e,
                "c-1c+1=" + b + d,
                "pu0=1" if kind == "p" else "pu0=0",
                "t=" + "".join(types[i : i + 5]),
            ]
        )
    return found


def epochs(
    algorithm: str, sentences: Sequence[Sequence[str]], labels: Sequence[Sequence[str]], strings: Strings, n: int
) -> Iterator[float]:
    """Train n epochs; yields the CPU seconds of each, and does nothing until the next is asked for.

    Feature generation, the calibration of l2sgd and storing the model are no part of it.
    """
    import pycrfsuite

    done: SimpleQueue[float | BaseException | None] = SimpleQueue()
    go = threading.Semaphore(0)

    class Paused(pycrfsuite.Trainer):  # type: ignore[misc]
        """Stops where it reports the end of an epoch. l2sgd announces an epoch before it, ap behind it."""

        before = began = 0.0

        def message(self, text: str) -> None:
            now = time.thread_time()
            if text.startswith("*****"):
                self.began = self.before
            elif text.startswith("Seconds required for this iteration"):
                done.put(now - self.began)
                go.acquire()
                now = time.thread_time()
            self.before = now

    def train(path: Path) -> None:
        try:
            trainer = Paused(algorithm, verbose=False)
            trainer.set_params({"max_iterations": n})
            for units, gold in zip(sentences, labels, strict=True):
                trainer.append(strings(units), gold)
            trainer.train(str(path))
            done.put(None)
        except BaseException as error:  # handed over to the thread that waits
            done.put(error)

    with tempfile.TemporaryDirectory() as folder:
        thread = threading.Thread(target=train, args=(Path(folder) / "model",), daemon=True)
        thread.start()
        try:
            while (found := done.get()) is not None:
                if isinstance(found, BaseException):
                    raise found
                yield found
                go.release()
        finally:
            for _ in range(n):
                go.release()
            thread.join()


def units(task: str, pairs: Iterable[tuple[str, str]]) -> tuple[Sequence[str], list[str]]:
    """What is labelled in a sentence of words with tags, and its labels: tags, S B M E, or S@NN B@NN M@NN E@NN."""
    words, tags = zip(*pairs, strict=True)
    if task == "pos":
        return words, list(tags)
    labels: list[str] = []
    for word, tag in zip(words, tags, strict=True):
        behind = "@" + tag if task == "segpos" else ""
        size = len(word)
        if size == 1:
            labels.append("S" + behind)
        else:
            labels.append("B" + behind)
            labels.extend(["M" + behind] * (size - 2))
            labels.append("E" + behind)
    return "".join(words), labels


def sentences(task: str, path: str) -> Iterator[tuple[Sequence[str], list[str]]]:
    """``units`` of each line of a word/tag file."""
    with Path(path).open(encoding="utf-8") as stream:
        for line in stream:
            pairs = [(word, tag) for word, _, tag in (token.rpartition("/") for token in line.split())]
            if pairs:
                yield units(task, pairs)


def answer(task: str, given: Sequence[str], labels: Sequence[str]) -> str:
    """A line of output: words with tags, or words. Where labels contradict each other, B and S begin a word."""
    if task == "pos":
        return "  ".join([f"{word}/{tag}" for word, tag in zip(given, labels, strict=True)])
    words: list[str] = []
    tags: list[str] = []
    for character, label in zip(given, labels, strict=True):
        if label[0] in "BS" or not words:
            words.append(character)
            tags.append(label[2:])
        else:
            words[-1] += character
    if task == "segpos":
        words = [f"{word}/{tag}" for word, tag in zip(words, tags, strict=True)]
    return "  ".join(words)


STRINGS: dict[str, Strings] = {"pos": li2015, "seg": jiang2012, "segpos": jiang2012}


def train_file(algorithm: str, task: str, path: str, model: str, iterations: int) -> None:
    """A word/tag file to a model file."""
    import pycrfsuite

    trainer = pycrfsuite.Trainer(algorithm, verbose=False)
    trainer.set_params({"max_iterations": iterations})
    strings = STRINGS[task]
    for given, labels in sentences(task, path):
        trainer.append(strings(given), labels)
    trainer.train(model)


def tag_file(task: str, model: str, path: str, output: str) -> None:
    """A segmented file to a word/tag file; or a raw one to words, with tags or without."""
    import pycrfsuite

    tagger = pycrfsuite.Tagger()
    tagger.open(model)
    strings = STRINGS[task]
    with Path(path).open(encoding="utf-8") as stream, Path(output).open("w", encoding="utf-8") as out:
        for line in stream:
            given = line.split() if task == "pos" else line.rstrip("\n")
            out.write(answer(task, given, tagger.tag(strings(given))) + "\n")


def main(arguments: Sequence[Any]) -> None:
    """The command line."""
    if arguments[0] == "train":
        algorithm, task, path, model, iterations = arguments[1:]
        train_file(algorithm, task, path, model, int(iterations))
    else:
        task, model, path, output = arguments[1:]
        tag_file(task, model, path, output)


if __name__ == "__main__":
    main(sys.argv[1:])
