"""A job: everything that decides one cell, as a value; its hash; and what a method answers and converts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import duilian
from duilian.methods import METHODS
from duilian.studies.corpora import Piece, SideData, digest, piece_from_json, piece_to_json

DECIDES = (
    "corpus.py", "lifting.py", "tagger.py", "settings.py", "ragged.py", "kernels.py", "vectors.py", "induction.py",
    "evaluation", "features", "formats", "guidelines", "inference", "mapping", "methods", "models", "standards",
    "training", "studies/cell.py", "studies/corpora.py", "studies/scoring.py",
)  # fmt: skip
"""The parts of the program that decide what a cell says; others may change without a new run."""


CORRECTED = "@words"
"""Behind the name of a conversion over corrected words."""


@dataclass(frozen=True)
class Text:
    """Text that is answered and scored. name: what the scores are called; answer: the side it is answered in."""

    name: str
    answer: str
    pieces: tuple[Piece, ...]


@dataclass(frozen=True)
class Conversion:
    """Text with gold on both sides. given: as the source has it; gold: as the target has it, () for samples alone."""

    source: str
    target: str
    given: tuple[Piece, ...]
    gold: tuple[Piece, ...] = ()
    corrected: bool = False
    """Over the words of the target's gold instead of the source's."""

    @property
    def name(self) -> str:
        """What its scores are called."""
        return f"{self.source}->{self.target}{CORRECTED if self.corrected else ''}"


@dataclass(frozen=True)
class Job:
    """One run: train, tag, convert, score.

    extras: what else is measured: ranks, mapping, samples;  keep: whether other jobs need its model
    """

    id: str
    method: str
    task: str
    seed: int
    sides: tuple[SideData, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    tests: tuple[Text, ...] = ()
    conversions: tuple[Conversion, ...] = ()
    extras: tuple[str, ...] = ()
    keep: bool = False

    @property
    def needs(self) -> tuple[str, ...]:
        """The cells whose models it reads its files through."""
        pieces = [piece for side in self.sides for piece in (*side.train, *side.dev)]
        return tuple(dict.fromkeys(piece.made_by[0] for piece in pieces if piece.made_by))

    def to_json(self) -> dict[str, Any]:
        """For the process that runs it."""
        return {
            "id": self.id, "method": self.method, "task": self.task, "seed": self.seed,
            "settings": dict(self.settings), "extras": list(self.extras), "keep": self.keep,
            "sides": [
                {"name": side.name, "role": side.role, "standard": side.standard, "licence": side.licence,
                 **{part: [piece_to_json(piece) for piece in side.part(part)] for part in ("train", "dev")}}
                for side in self.sides
            ],
            "tests": [
                {"name": test.name, "answer": test.answer, "pieces": [piece_to_json(piece) for piece in test.pieces]}
                for test in self.tests
            ],
            "conversions": [
                {"source": one.source, "target": one.target, "corrected": one.corrected,
                 "given": [piece_to_json(piece) for piece in one.given],
                 "gold": [piece_to_json(piece) for piece in one.gold]}
                for one in self.conversions
            ],
        }  # fmt: skip

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Job:
        """The reverse."""

        def pieces(found: list[dict[str, Any]]) -> tuple[Piece, ...]:
            return tuple(piece_from_json(one) for one in found)

        return cls(
            data["id"], data["method"], data["task"], data["seed"],
            tuple(
                SideData(
                    one["name"], one["role"], pieces(one["train"]), pieces(one["dev"]),
                    standard=one["standard"], licence=one["licence"],
                )
                for one in data["sides"]
            ),
            data["settings"],
            tuple(Text(one["name"], one["answer"], pieces(one["pieces"])) for one in data["tests"]),
            tuple(
                Conversion(one["source"], one["target"], pieces(one["given"]), pieces(one["gold"]), one["corrected"])
                for one in data["conversions"]
            ),
            tuple(data["extras"]), data["keep"],
        )  # fmt: skip

    def inputs(self, needed: Mapping[str, str]) -> str:
        """A hash of everything that decides the cell. needed: the same of the cells that it needs."""
        data = self.to_json()
        del data["id"], data["keep"]
        for places in (
            *(side[part] for side in data["sides"] for part in ("train", "dev")),
            *(test["pieces"] for test in data["tests"]),
            *(one[part] for one in data["conversions"] for part in ("given", "gold")),
        ):
            for piece in places:
                piece["sha256"] = digest(piece.pop("path"))
                if piece["made_by"]:
                    piece["made_by"] = [needed[piece["made_by"][0]], *piece["made_by"][1:]]
        data["settings"] = {
            key: digest(value) if isinstance(value, str) and Path(value).is_file() else value
            for key, value in data["settings"].items()
        }
        data["program"] = [duilian.__version__, program_stamp()]
        return hashlib.sha256(json.dumps(data, sort_keys=True, ensure_ascii=False).encode()).hexdigest()

    def of_seed(self, seed: int, id: str) -> Job:
        """The same with another seed."""
        return replace(self, seed=seed, id=id)


def answers(method: str, sides: int) -> int:
    """In how many of its first sides a method tags."""
    return sides if METHODS[method].answers in ("all sides", "both sides") else 1


def converts(method: str, source: int, target: int) -> bool:
    """Whether a method converts from a side to another, by their numbers."""
    ways = METHODS[method].converts
    return bool(ways) and source != target and (target == 0 or ways in ("any side -> any other", "both ways"))


@cache
def program_stamp(root: Path = Path(duilian.__file__).parent) -> str:
    """A hash of the sources that decide what a cell says."""
    digests = hashlib.blake2b(digest_size=16)
    for name in DECIDES:
        place = root / name
        for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
            if path.suffix in (".py", ".toml"):
                digests.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digests.hexdigest()
