"""Toy corpora that every method must learn: each word has one tag, and each character one place in its word."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from duilian.corpus import Corpus, Label, build, decode
from duilian.methods import METHODS, Method, Side, Training, train
from duilian.methods.learned import HandedOn
from duilian.tagger import Tagger

_WORDS = {"r": "他 我们", "v": "爱 学习", "n": "书 北京 图书馆", "d": "很", "a": "大 好"}
LEXICON = {word: tag for tag, words in _WORDS.items() for word in words.split()}
PATTERNS = ("rvn", "nda", "rdvn", "rda", "n")
Sentences = list[tuple[list[str], list[Label]]]
CASES = [(name, task) for name, method in METHODS.items() for task in method.tasks]
"""Every method with every task it does."""


def toy_sentences(n: int, first: int = 0) -> Sentences:
    """Sentences that go through all words of each tag in turn."""
    words = {tag: itertools.cycle([word for word, one in LEXICON.items() if one == tag]) for tag in "rvnda"}
    found: Sentences = []
    for number in range(first + n):
        pattern = PATTERNS[number % len(PATTERNS)]
        found.append(([next(words[tag]) for tag in pattern], list(pattern)))
    return found[first:]


def rename(sentences: Sentences, new: Callable[[str], Label]) -> Sentences:
    """The same sentences with other labels."""
    return [(words, [new(str(tag)) for tag in tags]) for words, tags in sentences]


def settings_of(method: Method, **given: Any) -> dict[str, Any]:
    """Settings that make training short, and those given, where the method has them."""
    short = {
        "epochs": 6, "rounds": 3, "eta": 0.5, "C": 0.5, "dropout": 0.1, "side_dropout": "0.1", **given,
    }  # fmt: skip
    known = {setting.name for setting in method.settings}
    for setting in method.settings:
        if setting.name == "learner":
            learner = METHODS[given.get("learner", setting.default)]
            own = {one.name for one in method.settings if not isinstance(one, HandedOn)}
            known &= own | {one.name for one in learner.settings}
    return {name: value for name, value in short.items() if name in known}


def sides_of(method: Method, target: Sentences, dev: Sentences | None = None) -> list[Side]:
    """As few sides as the method takes; the others have standards of their own over other sentences."""
    sides = [Side("a", build(target), None if dev is None else build(dev))]
    for number in range(1, method.sides[0]):
        own = {tag: f"{tag.upper()}{number}" for tag in "rvnda"}
        other = rename(toy_sentences(8, 3 * number), own.__getitem__)
        sides.append(Side(f"b{number}", build(other), None if dev is None else build(other[:3])))
    return sides


def begin(
    name: str, task: str, target: Sentences | None = None, dev: Sentences | None = None, seed: int = 1, **given: Any
) -> Training:
    """A training run over toy corpora, not begun."""
    method = METHODS[name]
    target = toy_sentences(12) if target is None else target
    return train(name, sides_of(method, target, dev), task, settings_of(method, **given), seed)


def trained(
    name: str, task: str, target: Sentences | None = None, dev: Sentences | None = None, seed: int = 1, **given: Any
) -> Tagger:
    """A tagger trained on toy corpora."""
    run = begin(name, task, target, dev, seed, **given)
    for _ in run:
        pass
    return run.tagger


def without_tags(sentences: Sentences) -> Corpus:
    """The words alone."""
    return build([(words, None) for words, _ in sentences])


def raw(texts: Sequence[str]) -> Corpus:
    """Sentences without any layer."""
    corpus = build([([text] if text else [], None) for text in texts])
    return Corpus(corpus.text, corpus.offsets)


def answers(tagger: Tagger, corpus: Corpus, **options: Any) -> list[list[tuple[str, Label]]]:
    """Words and labels of each sentence as the tagger gives them; the label is None for plain segmentation."""
    new = tagger.tag(corpus, **options)
    return [list(zip(*pair, strict=True)) for pair in zip(new.words(), new.tags(), strict=True)]


def expected(sentences: Sentences, task: str) -> list[list[tuple[str, Label]]]:
    """What a tagger that has learnt everything answers."""
    return [
        [(word, None if task == "seg" else tag) for word, tag in zip(words, tags, strict=True)]
        for words, tags in sentences
    ]


def arrays_of(corpus: Corpus) -> dict[str, Any]:
    """Copies of everything that a corpus holds."""
    found: dict[str, Any] = {"text": corpus.text.copy(), "offsets": corpus.offsets.copy()}
    for layer in corpus.layers:
        for name in ("offsets", "starts", "ends", "labels"):
            found[f"{layer.name}.{name}"] = getattr(layer, name).copy()
        found[f"{layer.name}.sets"] = np.concatenate([layer.sets.data, layer.sets.offsets])
        found[f"{layer.name}.tags"] = np.array(layer.tags)
    return found


def text_of(corpus: Corpus) -> str:
    """The text of a corpus."""
    return decode(corpus.text)
