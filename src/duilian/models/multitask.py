"""Two standards with features of their own; the score of a label also counts the labels of the other that it maps to.

    S(y) = own(y) + help * max over z, z_t in phi(y_t), of other(z)                              (qiu2013 Eq. 6 to 10)

help is 1 in the paper. A side that is not expanded (the second one, if the mapping is one-way) is a plain chain. Sums
and maxima are in ``inference/expansion.py``; probabilities are those of pairs (y, z), summed over z, at a temperature.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duilian.errors import DuilianError
from duilian.features import Featurizer
from duilian.inference.chain import constrain
from duilian.inference.expansion import (
    Links,
    Tables,
    best_pairs,
    fill_steps,
    links_of,
    room_for_steps,
    tables_of,
    with_escapes,
)
from duilian.kernels import kernel
from duilian.lifting import grammar_of
from duilian.models.coupled import Coupled
from duilian.models.joint_rows import JointRows
from duilian.models.side_model import SideModel
from duilian.models.weights import Features, Rows, score
from duilian.ragged import Ragged
from duilian.tensors import reject, require, require_field

F32 = np.float32
NONE = "none"
"""Name of the label that stands for no expansion; it never leaves the model."""


@kernel
def decode(
    sparse: Any, other_sparse: Any, n_other: Any, help_: Any, features: Any, links: Any, own: Any, other: Any,
    steps: Any, sentences: Any, allowed: Any, set_data: Any, set_offsets: Any, out: Any,
) -> Any:  # fmt: skip
    """Best labels of every sentence; returns the first sentence for which no label sequence is possible, or -1.

    n_other: M, 0 where nothing is expanded; help_: float32, what the other side's features count, whose tables come
    times it; allowed (U,) int32 as in ``constrain``, or (0,); out (U,) int32
    """
    longest = 1
    for s in range(len(sentences) - 1):
        longest = max(longest, sentences[s + 1] - sentences[s])
    n_labels, n_pairs = len(links.firsts) - 1, len(links.own)
    node = np.empty((longest, n_labels), np.float32)
    narrow = np.empty((longest, n_other), np.float32)
    wide = np.zeros((longest, n_other + 1), np.float32)
    best = np.empty((longest, n_pairs), np.float32)
    others = np.empty(longest, np.int32)
    fill_steps(links, own, other, steps)
    for s in range(len(sentences) - 1):
        first, last = sentences[s], sentences[s + 1]
        n = last - first
        if n == 0:
            continue
        score(sparse, features, first, last, np.float32(1), node)
        if n_other:
            score(other_sparse, features, first, last, help_, narrow)
            wide[:n, :n_other] = narrow[:n]
        if len(allowed):
            constrain(node, first, last, allowed, set_data, set_offsets)
        top = best_pairs(node, wide, n, links, own, other, steps, best, out[first:last], others)
        if top == -np.inf:
            return s
    return -1


@dataclass(frozen=True, eq=False)
class MultiTask:
    """A model of two sides.

    pairs:    (n, 2) int32, which labels map to each other
    one_way:  the second side is not expanded
    help:     what an expansion counts
    temperatures: per side, what scores are divided by before they become probabilities
    """

    task: str
    scheme: str
    featurizer: Featurizer
    sides: tuple[SideModel, ...]
    pairs: NDArray[np.int32]
    one_way: bool
    help: float = 1.0
    temperatures: tuple[float, ...] = (1.0, 1.0)

    def expands(self, side: int) -> bool:
        """Whether labels of a side bring labels of the other along."""
        return side == 0 or not self.one_way

    @cached_property
    def expanded(self) -> tuple[NDArray[np.int32], ...]:
        """Per side its pairs (own, other), with none where a label could be left without a way on."""
        rules = [self._rules(side) for side in (0, 1)]
        found = []
        for side in (0, 1):
            n = len(self.sides[side].names)
            if self.expands(side):
                found.append(with_escapes(self.pairs[:, ::-1] if side else self.pairs, rules[side], rules[1 - side]))
            else:
                found.append(np.stack([np.arange(n), np.zeros(n)], axis=1).astype(np.int32))
        return tuple(found)

    @cached_property
    def links(self) -> tuple[Links, ...]:
        """Per side its links; one that is not expanded has none alone."""
        follows = [self._rules(side)[2] for side in (0, 1)]
        nothing = np.zeros((0, 0), np.bool_)
        return tuple(
            links_of(self.expanded[side], follows[side], follows[1 - side] if self.expands(side) else nothing)
            for side in (0, 1)
        )

    def _rules(self, side: int) -> tuple[Any, Any, Any]:
        rules = grammar_of(self.sides[side].names, self.task, self.scheme)
        return rules.starts, rules.ends, rules.follows

    @cached_property
    def tables(self) -> tuple[Tables, ...]:
        """Per side its tables with none."""
        return tuple(tables_of(side.trans, side.start, side.end) for side in self.sides)

    def features(self, units: Any) -> Features:
        """Feature rows of units."""
        found = self.featurizer.transform(units)
        return Features(found.data, found.offsets)

    def decode(
        self, side: int, features: Features, sentences: Any, allowed: Any = None, sets: Ragged | None = None
    ) -> NDArray[np.int32]:
        """(U,) best labels of a side, among those allowed (labels and sets as in a Layer; None: all)."""
        out = np.zeros(int(sentences[-1]), np.int32)
        allowed = np.zeros(0, np.int32) if allowed is None else allowed
        data, offsets = (np.zeros(0, np.int32), np.zeros(1, np.int64)) if sets is None else (sets.data, sets.offsets)
        one, other = self.sides[side], self.sides[1 - side]
        tables = NO_TABLES
        if self.expands(side):
            factor = F32(self.help)
            tables = tables_of(factor * other.trans, factor * other.start, factor * other.end)
        stuck = decode(
            one.rows.sparse(), other.rows.sparse(), len(other.names) if self.expands(side) else 0,
            F32(self.help), features,
            self.links[side], self.tables[side], tables, room_for_steps(self.links[side]), sentences, allowed, data,
            offsets, out,
        )  # fmt: skip
        if stuck >= 0:
            raise DuilianError(
                f"sentence {stuck + 1}: the model has no sequence of labels among those that are allowed."
            )
        return out

    def pair_model(self, side: int, heat: float | None = None) -> tuple[Coupled, NDArray[np.bool_]]:
        """The pairs of a side as a coupled model without joint features, and the table of its bundles.

        heat: what its scores are divided by; None is the temperature of the side
        """
        heat = self.temperatures[side] if heat is None else heat
        own, other = self.sides[side], _with_none(self.sides[1 - side])
        n, m = len(own.names), len(other.names)
        table = np.zeros((n, m), np.bool_)
        rows = self.expanded[side]
        table[rows[:, 0], rows[:, 1] if self.expands(side) else m - 1] = True
        n_rows = len(self.featurizer)
        none = JointRows(n * m, np.zeros(n_rows + 1, np.int64), np.zeros(0, np.int32), np.zeros(0, F32))
        empty = np.zeros(0, np.int64), np.zeros(0, F32)
        found = Coupled(self.task, self.scheme, self.featurizer, (own, other), none, *empty)
        factors = {True: F32(1 / heat), False: F32(self.help / heat)}
        numbers = {name: array * factors[name.startswith("side.0")] for name, array in found.numbers().items()}
        return found.with_numbers(numbers), table

    def numbers(self) -> dict[str, NDArray[Any]]:
        """Everything that training changes."""
        return self.sides[0].numbers("side.0") | self.sides[1].numbers("side.1")

    def with_numbers(self, numbers: Mapping[str, NDArray[Any]]) -> MultiTask:
        """The same model with other numbers."""
        return replace(self, sides=tuple(side.with_numbers(f"side.{s}", numbers) for s, side in enumerate(self.sides)))

    def to_tensors(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """What a model file keeps of it: header fields and tensors, without the featurizer."""
        header: dict[str, Any] = {
            "task": self.task,
            "scheme": self.scheme,
            "labels": [list(side.names) for side in self.sides],
            "one_way": self.one_way,
            "help": self.help,
            "temperatures": list(self.temperatures),
        }
        tensors: dict[str, NDArray[Any]] = {"pairs": self.pairs}
        for s, side in enumerate(self.sides):
            tensors |= side.to_tensors(f"side.{s}")
        return header, tensors

    @classmethod
    def from_tensors(
        cls, header: dict[str, Any], tensors: dict[str, NDArray[Any]], featurizer: Featurizer
    ) -> MultiTask:
        """The reverse of ``to_tensors``; whatever a kernel would trust is checked here."""
        task, scheme = require_field(header, "task", str), require_field(header, "scheme", str)
        names, heats = require_field(header, "labels", list), require_field(header, "temperatures", list)
        if len(names) != 2 or len(heats) != 2 or not all(isinstance(h, int | float) and h > 0 for h in heats):
            reject(header, "it does not have two sides with a temperature each")
        sides = tuple(
            SideModel.from_tensors(f"side.{s}", labels, task, scheme, len(featurizer), header, tensors)
            for s, labels in enumerate(names)
        )
        pairs = require(tensors, "pairs", np.int32, (None, 2))
        if len(pairs) and (pairs.min() < 0 or np.any(pairs.max(axis=0) >= [len(side.names) for side in sides])):
            reject(tensors, "its mapping names labels that it does not have")
        one_way, factor = require_field(header, "one_way", bool), require_field(header, "help", float)
        if not 0 < factor < np.inf:
            reject(header, f"its expansions count {factor}")
        return cls(task, scheme, featurizer, sides, pairs, one_way, factor, tuple(map(float, heats)))


NO_TABLES = tables_of(np.zeros((0, 0)), np.zeros(0), np.zeros(0))
"""The tables of a side that has no label but none."""


def _with_none(side: SideModel) -> SideModel:
    """A side with none as its last label, which scores nothing."""
    tables = tables_of(side.trans, side.start, side.end)
    n = len(side.names)
    rows = _widened(side.rows)
    return SideModel((*side.names, f"{NONE}{n}"), rows, tables.trans, tables.start, tables.end)


def _widened(rows: Rows) -> Rows:
    """The same rows for one label more, none of which has it: rows that held all labels get a 0 for it."""
    n = rows.n_labels
    sizes = np.diff(rows.offsets)
    full = sizes == n
    offsets = np.concatenate([[0], np.cumsum(sizes + full)]).astype(np.int32)
    labels = np.full(offsets[-1], n, np.uint16)
    weights = np.zeros(offsets[-1], F32)
    at = np.arange(len(rows.labels)) + np.repeat(offsets[:-1] - rows.offsets[:-1], sizes)
    labels[at], weights[at] = rows.labels, rows.weights
    return Rows(n + 1, offsets, labels, weights)
