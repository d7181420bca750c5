"""Tagger: a trained model of whatever method behind one protocol: tag, n best, convert, save. Methods subclass it."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from duilian import storage
from duilian.corpus import Corpus, Layer, decode
from duilian.errors import DuilianError, TaskError
from duilian.standards import Standard
from duilian.tensors import Header, reject, require, require_field, require_names

A = TypeVar("A")
B = TypeVar("B")


@dataclass(frozen=True)
class SideInfo:
    """What a model knows of one of its sides.

    tags:    the tags it answers with, sorted; empty for plain segmentation
    words:   the words its training text has, without whitespace, for OOV scores
    licence: of the training corpora, as given
    """

    name: str
    tags: tuple[str, ...]
    standard: Standard | None = None
    licence: str = ""
    words: frozenset[str] = field(default_factory=frozenset)


class Tagger:
    """A trained model. Subclasses label; this class checks sides, keeps what is read, saves and loads."""

    method = ""

    def __init__(self, task: str, sides: Iterable[SideInfo], about: Mapping[str, Any]) -> None:
        self.task, self.sides = task, tuple(sides)
        self.about = dict(about)

    def tag(
        self, corpus: Corpus, side: str | None = None, layer: str | None = None, *,
        constrain: bool = False, confidence: bool = False,
    ) -> Corpus:  # fmt: skip
        """The corpus with the layer relabelled (pos) or segmented anew (seg, segpos) to the standard of a side.

        layer: which layer to read and replace; it may be missing for seg and segpos, then it is made
        constrain: labels that are there are kept, only the unknown are filled in
        """
        info = self.answer(side)
        found = next((one for one in corpus.layers if layer is None or one.name == layer), None)
        if found is None and (layer is not None or self.task == "pos"):
            raise TaskError(self._no_words(corpus, layer))
        if found is not None and found.name == "chunks" and self.task == "pos":
            raise TaskError(self._no_words(corpus, None))
        new = self.label(corpus, found, info, constrain=constrain, confidence=confidence)
        name = found.name if found is not None else (layer or info.name)
        return corpus.with_layer(replace(new, name=name, standard=info.standard.name if info.standard else None))

    def convert(
        self, corpus: Corpus, source: str, target: str, layer: str | None = None, *, confidence: bool = False,
        keep: str | None = None,
    ) -> Corpus:  # fmt: skip
        """The corpus with the layer, annotated to the standard ``source``, replaced by one to the standard ``target``.

        The given annotation is gold: nothing else than what it allows is answered. Tags that the source side of the
        model does not know leave their units free (``unknown_source_tags`` counts them). Labels of the target standard
        that the layer ``keep`` has already are kept; without a name that is a layer called ``target``, if there is one.
        """
        one, other = self.side(source), self.side(target)
        if one.name == other.name:
            raise TaskError(f"from {source} to {target} there is nothing to convert.")
        found = next((each for each in corpus.layers if layer is None or each.name == layer), None)
        if found is None or found.name == "chunks":
            raise TaskError("converting needs annotated words, and the input is raw text: use tag.")
        given = self.kept_layer(corpus, found, target, keep)
        new = self.convert_layer(corpus, found, one, other, given=given, confidence=confidence)
        standard = other.standard.name if other.standard else None
        return corpus.with_layer(replace(new, name=found.name, standard=standard))

    def kept_layer(self, corpus: Corpus, layer: Layer, target: str, keep: str | None = None) -> Layer | None:
        """The layer whose labels a conversion of another layer keeps: ``keep``, or one called as the target side."""
        given = next((each for each in corpus.layers if each.name == (keep or target) and each is not layer), None)
        if keep is not None and given is None:
            names = ", ".join(each.name for each in corpus.layers if each is not layer) or "none"
            raise TaskError(
                f"there is no layer {keep!r} whose labels could be kept; beside {layer.name} there are {names}."
            )
        return given

    def unknown_source_tags(self, layer: Layer, source: str) -> dict[str, int]:
        """The tags of a layer that the source side does not know, and how many words have each."""
        if self.task == "seg":
            return {}
        known = set(self.side(source).tags)
        counts = np.bincount(layer.labels[layer.labels >= 0], minlength=len(layer.tags))
        return {tag: int(n) for tag, n in zip(layer.tags, counts, strict=True) if n and tag not in known}

    def convert_layer(
        self, corpus: Corpus, layer: Layer, source: SideInfo, target: SideInfo, *, given: Layer | None,
        confidence: bool,
    ) -> Layer:  # fmt: skip
        """What a method implements if it converts: the layer in the standard of the target side.

        given: labels of the target side that are there already, over the same text, or None
        """
        raise TaskError(f"{self.method} does not convert: it answers in one standard and reads no other.")

    def convert_n_best(
        self, corpus: Corpus, layer: Layer, source: SideInfo, target: SideInfo, k: int, *, given: Layer | None = None
    ) -> list[list[tuple[Layer, float]]]:
        """What a method may implement: the k best conversions of each sentence with their probabilities."""
        raise TaskError(f"{self.method} has no n-best list of conversions")

    def label(self, corpus: Corpus, layer: Layer | None, side: SideInfo, *, constrain: bool, confidence: bool) -> Layer:
        """What a method implements: the new layer."""
        raise NotImplementedError

    def n_best(self, corpus: Corpus, side: str | None, layer: str | None, k: int) -> list[list[tuple[Layer, float]]]:
        """What a method implements: the k best labellings of each sentence with their probabilities."""
        raise TaskError(f"{self.method} has no n-best list")

    def sample(self, corpus: Corpus, rng: np.random.Generator, layer: str | None = None) -> Corpus:
        """The corpus with a labelling drawn from the model's distribution in place of the best one."""
        raise TaskError(f"{self.method} cannot draw labellings")

    def side(self, name: str | None = None) -> SideInfo:
        """The side of that name, or the first."""
        for info in self.sides:
            if name is None or info.name == name:
                return info
        raise TaskError(
            f"this model answers in {', '.join(info.name for info in self.sides)}; there is no side {name!r}"
        )

    @property
    def answers(self) -> tuple[SideInfo, ...]:
        """The sides that ``tag`` answers in; a method that only reads some of its sides says so here."""
        return self.sides

    def answer(self, name: str | None = None) -> SideInfo:
        """The side of that name, or the first, which ``tag`` must be able to answer in."""
        info = self.side(name)
        if info not in self.answers:
            able = ", ".join(one.name for one in self.answers)
            raise TaskError(f"{self.method} tags in {able} alone; {info.name} is a side that it learns from.")
        return info

    def parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """What a method implements: header fields and tensors of its models."""
        raise NotImplementedError

    def save(self, path: Any) -> None:
        """Write the model file."""
        fields, tensors = self.parts()
        sides = []
        for number, info in enumerate(self.sides):
            text = "\n".join(sorted(info.words)).encode("utf-8", "surrogatepass")
            tensors[f"words.{number}"] = np.frombuffer(text, np.uint8)
            standard = info.standard.to_toml() if info.standard is not None else None
            sides.append({"name": info.name, "tags": list(info.tags), "standard": standard, "licence": info.licence})
        header = {"method": self.method, "task": self.task, "sides": sides, "about": self.about, "model": fields}
        storage.save(path, header, tensors)

    def _no_words(self, corpus: Corpus, layer: str | None) -> str:
        if layer is not None:
            names = ", ".join(one.name for one in corpus.layers) or "no layer at all"
            return f"there is no layer {layer!r} to read words from; the file has {names}"
        return (
            "this model tags given words, and the input is raw text: segment it first, "
            "or say --input-format segmented if its words are separated by spaces"
        )


def read_sides(header: dict[str, Any], tensors: dict[str, NDArray[Any]]) -> list[SideInfo]:
    """Sides from the header of a model file."""
    sides = []
    for number, record in enumerate(require_field(header, "sides", list)):
        record = Header(getattr(header, "path", "model"), record if isinstance(record, dict) else {})
        text = require(tensors, f"words.{number}", np.uint8, (None,)).tobytes().decode("utf-8", "replace")
        source = record.get("standard")
        sides.append(
            SideInfo(
                require_field(record, "name", str),
                require_names(record, "tags"),
                _standard(record, source) if isinstance(source, str) else None,
                require_field(record, "licence", str),
                frozenset(text.split("\n")) if text else frozenset(),
            )
        )
    if not sides:
        reject(header, "it has no sides")
    return sides


def _standard(record: dict[str, Any], source: str) -> Standard:
    try:
        return Standard.from_dict(tomllib.loads(source), "model")
    except (tomllib.TOMLDecodeError, DuilianError, RecursionError) as error:
        reject(record, f"one of its standards cannot be read ({error})")


def words_of(corpus: Corpus, layer: Layer) -> frozenset[str]:
    """The different words of a layer, without whitespace."""
    from duilian.formats.base import first_of_each

    text, firsts = decode(corpus.text), first_of_each(corpus.text, layer.starts, layer.ends)
    starts, ends = layer.starts[firsts].tolist(), layer.ends[firsts].tolist()
    words = [text[start:end] for start, end in zip(starts, ends, strict=True)]
    return frozenset("".join(word.split()) for word in words)


def in_order(work: Callable[[A], B], items: Iterable[A], threads: int) -> Iterator[B]:
    """work(item) for each item, in order, on that many threads, never more than a few items ahead."""
    if threads <= 1:
        yield from map(work, items)
        return
    waiting = iter(items)
    with ThreadPoolExecutor(threads) as pool:
        queue = [pool.submit(work, item) for item in islice(waiting, threads + 1)]
        while queue:
            done = queue.pop(0)
            queue.extend(pool.submit(work, item) for item in islice(waiting, 1))
            yield done.result()
