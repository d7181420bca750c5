"""One side of a model of several standards: sparse weights and a table of label pairs over shared feature rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duilian.lifting import grammar_of
from duilian.models.weights import Features, Rows, score
from duilian.tensors import check_offsets, reject, require

F32 = np.float32
Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class SideModel:
    """A chain of one side, without a featurizer of its own.

    names: its labels, sorted;  rows: sparse weights by feature row
    trans: (L, L) float32; start, end: (L,) float32; -inf where the grammar of the task forbids
    """

    names: tuple[str, ...]
    rows: Rows
    trans: Floats
    start: Floats
    end: Floats

    def scores(
        self,
        features: Features,
        sentences: NDArray[np.int64],
        weights: Floats | None = None,
        tables: Sequence[Floats] | None = None,
        scale: float = 1.0,
    ) -> Floats:
        """(T, L) scores of the labels of every unit; how a sentence starts and ends counts at its first and last.

        weights, tables (trans, start, end): other numbers than its own;  scale: what all of them are multiplied by
        """
        start, end = (self.start, self.end) if tables is None else (tables[1], tables[2])
        n = int(sentences[-1])
        node = np.empty((n, len(self.names)), F32)
        score(self.rows.sparse(weights), features, 0, n, F32(scale), node)
        filled = sentences[1:] > sentences[:-1]
        node[sentences[:-1][filled]] += F32(scale) * start
        node[sentences[1:][filled] - 1] += F32(scale) * end
        return node

    def numbers(self, prefix: str) -> dict[str, NDArray[Any]]:
        """Everything that training changes, under names that begin with the prefix."""
        return {
            f"{prefix}.weights": self.rows.weights,
            f"{prefix}.trans": self.trans,
            f"{prefix}.start": self.start,
            f"{prefix}.end": self.end,
        }

    def with_numbers(self, prefix: str, numbers: Mapping[str, NDArray[Any]]) -> SideModel:
        """The same side with other numbers."""
        return replace(
            self,
            rows=replace(self.rows, weights=numbers[f"{prefix}.weights"].astype(F32)),
            trans=numbers[f"{prefix}.trans"].astype(F32),
            start=numbers[f"{prefix}.start"].astype(F32),
            end=numbers[f"{prefix}.end"].astype(F32),
        )

    def starting_from(self, other: SideModel, factor: float) -> SideModel:
        """The same side with the numbers of another one over the same features and labels, where it has them.

        factor: what the weights of features are multiplied by
        """
        weights = np.zeros_like(self.rows.weights)
        mine, theirs = _entry_keys(self.rows), _entry_keys(other.rows)
        at = np.minimum(np.searchsorted(mine, theirs), max(len(mine) - 1, 0))
        known = mine[at] == theirs if len(mine) else np.zeros(len(theirs), np.bool_)
        weights[at[known]] = other.rows.weights[known] * F32(factor)
        rows = replace(self.rows, weights=weights)
        return replace(self, rows=rows, trans=other.trans, start=other.start, end=other.end)

    def to_tensors(self, prefix: str) -> dict[str, NDArray[Any]]:
        """What a model file keeps of it."""
        rows: dict[str, NDArray[Any]] = {f"{prefix}.offsets": self.rows.offsets, f"{prefix}.labels": self.rows.labels}
        return rows | self.numbers(prefix)

    @classmethod
    def from_tensors(
        cls,
        prefix: str,
        names: Any,
        task: str,
        scheme: str,
        n_rows: int,
        header: dict[str, Any],
        tensors: dict[str, NDArray[Any]],
    ) -> SideModel:
        """The reverse of ``to_tensors``; whatever a kernel would trust is checked here."""
        if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
            reject(header, f"the labels of {prefix} are no list of names")
        n = len(names)
        if not 0 < n <= 65535 or len(set(names)) != n:
            reject(header, f"the labels of {prefix} are none, too many, or not all different")
        offsets = require(tensors, f"{prefix}.offsets", np.int32, (n_rows + 1,))
        labels = require(tensors, f"{prefix}.labels", np.uint16, (None,))
        check_offsets(offsets, len(labels), f"{prefix}.offsets", tensors)
        if len(labels) and int(labels.max()) >= n:
            reject(tensors, f"{prefix}.labels names label {int(labels.max())} of {n}")
        rows = Rows(n, offsets, labels, require(tensors, f"{prefix}.weights", F32, (len(labels),)))
        try:
            rules = grammar_of(names, task, scheme)
        except Exception as error:
            reject(header, str(error))
        low = F32(-np.inf)
        return cls(
            tuple(names),
            rows,
            np.where(rules.follows, require(tensors, f"{prefix}.trans", F32, (n, n)), low),
            np.where(rules.starts, require(tensors, f"{prefix}.start", F32, (n,)), low),
            np.where(rules.ends, require(tensors, f"{prefix}.end", F32, (n,)), low),
        )


def empty_side(names: Sequence[str], task: str, scheme: str, rows: Rows) -> SideModel:
    """A side whose weights are all 0, and -inf where the grammar of the task forbids."""
    rules, low, zero = grammar_of(names, task, scheme), F32(-np.inf), F32(0)
    return SideModel(
        tuple(names),
        rows,
        np.where(rules.follows, zero, low),
        np.where(rules.starts, zero, low),
        np.where(rules.ends, zero, low),
    )


def _entry_keys(rows: Rows) -> NDArray[np.int64]:
    """(n_entries,) row and label of each entry as one number, rising."""
    row = np.repeat(np.arange(len(rows), dtype=np.int64), np.diff(rows.offsets))
    return row * rows.n_labels + rows.labels
