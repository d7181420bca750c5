"""The linear chain: sparse feature weights and a table of label pairs -> potentials. Trained by CRF, perceptron or PA.

    score(y) = sum_t sum_(features f of unit t) w[f, y_t] + start[y_0] + sum_t trans[y_(t-1), y_t] + end[y_(T-1)]

What it is that is scored; how sums and maxima are computed is in ``inference.chain`` and ``inference.paths``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duilian.errors import DuilianError
from duilian.features import Dictionary, Featurizer
from duilian.inference.chain import Runs, constrain, runs_of, viterbi
from duilian.inference.paths import Posteriors, n_best
from duilian.kernels import kernel
from duilian.lifting import Grammar, Units, grammar_of
from duilian.models.weights import Features, Rows, score
from duilian.ragged import Ragged, offsets_of
from duilian.tensors import check_offsets, reject, require, require_field, require_names

BLOCK = 1 << 15
"""Posteriors are computed for about this many units at a time."""


@kernel
def decode(
    sparse: Any, features: Any, trans: Any, start: Any, end: Any, runs: Any, sentences: Any,
    allowed: Any, set_data: Any, set_offsets: Any, out: Any,
) -> Any:  # fmt: skip
    """Best labels of every sentence; returns the first sentence for which no label sequence is possible, or -1.

    allowed (U,) int32 as in ``constrain``, or (0,) for no constraint; out (U,) int32
    """
    longest = 1
    for s in range(len(sentences) - 1):
        longest = max(longest, sentences[s + 1] - sentences[s])
    n_labels = trans.shape[0]
    node = np.empty((longest, n_labels), np.float32)
    best = np.empty((longest, n_labels), np.float32)
    for s in range(len(sentences) - 1):
        first, last = sentences[s], sentences[s + 1]
        if last == first:
            continue
        score(sparse, features, first, last, np.float32(1), node)
        if len(allowed):
            constrain(node, first, last, allowed, set_data, set_offsets)
        if viterbi(node, last - first, trans, start, end, runs, best, out[first:last]) == -np.inf:
            return s
    return -1


@dataclass(frozen=True, eq=False)
class Chain:
    """A trained chain.

    names:  the labels, sorted
    rows:   sparse weights by feature row
    trans:  (L, L) float32; start, end: (L,) float32; -inf where the grammar of the task forbids
    temperature: scores are divided by it before they become probabilities (1 for a CRF)
    """

    names: tuple[str, ...]
    task: str
    featurizer: Featurizer
    rows: Rows
    trans: NDArray[np.float32]
    start: NDArray[np.float32]
    end: NDArray[np.float32]
    scheme: str = "BIES"
    temperature: float = 1.0
    _runs: list[Runs] = field(default_factory=list)

    @property
    def runs(self) -> Runs:
        """Allowed transitions as ranges."""
        if not self._runs:
            self._runs.append(runs_of(grammar_of(self.names, self.task, self.scheme).follows))
        return self._runs[0]

    def with_weights(self, weights: Any, trans: Any, start: Any, end: Any) -> Chain:
        """The same chain with other numbers."""
        f32 = np.float32
        return replace(
            self, rows=replace(self.rows, weights=weights.astype(f32)),
            trans=trans.astype(f32), start=start.astype(f32), end=end.astype(f32),
        )  # fmt: skip

    def numbers(self) -> dict[str, NDArray[Any]]:
        """Everything that training changes."""
        return {"weights": self.rows.weights, "trans": self.trans, "start": self.start, "end": self.end}

    def with_numbers(self, numbers: dict[str, NDArray[Any]]) -> Chain:
        """The same chain with the numbers of another."""
        return self.with_weights(numbers["weights"], numbers["trans"], numbers["start"], numbers["end"])

    def without_idle_rows(self) -> Chain:
        """The same chain without features whose weights are all 0, which after mistakes alone are most."""
        rows, keys = self.rows, self.featurizer.index.keys
        busy = np.concatenate([np.zeros(1, np.int64), np.cumsum(rows.weights != 0)])
        kept = busy[rows.offsets[1:]] > busy[rows.offsets[:-1]]
        entries = np.repeat(kept, np.diff(rows.offsets))
        offsets = offsets_of(np.diff(rows.offsets)[kept]).astype(np.int32)
        smaller = Rows(rows.n_labels, offsets, rows.labels[entries], rows.weights[entries])
        old = self.featurizer
        featurizer = Featurizer(
            old.table.texts, old.unit, fold=old.fold, dictionary=old.dictionary, keys=keys[kept]
        )  # fmt: skip
        return replace(self, rows=smaller, featurizer=featurizer)

    def features(self, units: Units, guide: Any = None) -> Features:
        """Feature rows of units."""
        found = self.featurizer.transform(units, guide)
        return Features(found.data, found.offsets)

    def decode(
        self, features: Features, sentences: Any, allowed: Any = None, sets: Ragged | None = None
    ) -> NDArray[np.int32]:
        """(U,) best labels, among those allowed (labels and sets as in a Layer; None: all)."""
        out = np.zeros(int(sentences[-1]), np.int32)
        allowed = np.zeros(0, np.int32) if allowed is None else allowed
        data, offsets = (np.zeros(0, np.int32), np.zeros(1, np.int64)) if sets is None else (sets.data, sets.offsets)
        stuck = decode(
            self.rows.sparse(),
            features,
            self.trans,
            self.start,
            self.end,
            self.runs,
            sentences,
            allowed,
            data,
            offsets,
            out,
        )
        if stuck >= 0:
            raise DuilianError(
                f"sentence {stuck + 1}: the model has no sequence of labels among those that are allowed."
            )
        return out

    def node(self, features: Features, begin: int, end: int) -> NDArray[np.float32]:
        """(end - begin, L) scores of the labels of units begin..end."""
        node = np.empty((end - begin, len(self.names)), np.float32)
        score(self.rows.sparse(), features, begin, end, np.float32(1), node)
        return node

    def posteriors(
        self, features: Features, sentences: Any, allowed: Any = None, sets: Ragged | None = None
    ) -> Iterator[tuple[int, int, Posteriors]]:
        """Posteriors of blocks of whole sentences, each with the range of units it is about."""
        at = 0
        heat = self.temperature
        while at < len(sentences) - 1:
            to = max(at + 1, int(np.searchsorted(sentences, sentences[at] + BLOCK, side="right")) - 1)
            begin, end = int(sentences[at]), int(sentences[to])
            node = self.node(features, begin, end).astype(np.float64) / heat
            if allowed is not None:
                self._constrain(node, allowed[begin:end], sets)
            part = sentences[at : to + 1] - begin
            yield begin, end, Posteriors(node, part, self.trans / heat, self.start / heat, self.end / heat, self.runs)
            at = to

    def n_best(
        self, features: Features, begin: int, end: int, k: int, allowed: Any = None, sets: Ragged | None = None
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """The k best label sequences of the sentence of units begin..end and their scores, among those allowed."""
        node = self.node(features, begin, end)
        if allowed is not None:
            self._constrain(node, allowed[begin:end], sets)
        return n_best(node, self.trans, self.start, self.end, k)

    @staticmethod
    def _constrain(node: Any, allowed: Any, sets: Ragged | None) -> None:
        data, offsets = (np.zeros(0, np.int32), np.zeros(1, np.int64)) if sets is None else (sets.data, sets.offsets)
        constrain(node, 0, len(node), allowed, data, offsets)

    def to_tensors(self, prefix: str = "") -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """What a model file keeps of it: header fields and tensors."""
        header: dict[str, Any] = {
            "labels": list(self.names),
            "task": self.task,
            "scheme": self.scheme,
            "temperature": self.temperature,
            "templates": list(self.featurizer.table.texts),
            "fold": self.featurizer.fold,
        }
        tensors = {
            prefix + "keys": self.featurizer.index.keys,
            prefix + "row_offsets": self.rows.offsets,
            prefix + "row_labels": self.rows.labels,
            prefix + "row_weights": self.rows.weights,
            prefix + "trans": self.trans,
            prefix + "start": self.start,
            prefix + "end": self.end,
        }
        if self.featurizer.dictionary is not None:
            header["longest"] = self.featurizer.dictionary.longest
            tensors[prefix + "dictionary"] = self.featurizer.dictionary.words
        return header, tensors

    @classmethod
    def from_tensors(cls, header: dict[str, Any], tensors: Mapping[str, NDArray[Any]], prefix: str = "") -> Chain:
        """The reverse of ``to_tensors``; whatever a kernel would trust is checked here."""
        names = require_names(header, "labels")
        n = len(names)
        task = require_field(header, "task", str)
        scheme = require_field(header, "scheme", str)
        temperature = float(require_field(header, "temperature", float))
        if not (0 < temperature < np.inf):
            reject(header, f"its temperature is {temperature}")
        if not 0 < n <= 65535:
            reject(header, f"it has {n} labels")
        tensors = dict(tensors) if not isinstance(tensors, dict) else tensors
        keys = require(tensors, prefix + "keys", np.uint64, (None,))
        offsets = require(tensors, prefix + "row_offsets", np.int32, (len(keys) + 1,))
        labels = require(tensors, prefix + "row_labels", np.uint16, (None,))
        weights = require(tensors, prefix + "row_weights", np.float32, (len(labels),))
        check_offsets(offsets, len(labels), prefix + "row_offsets", tensors)
        if len(labels) and int(labels.max()) >= n:
            reject(tensors, f"{prefix}row_labels names label {int(labels.max())} of {n}")
        trans = require(tensors, prefix + "trans", np.float32, (n, n))
        start = require(tensors, prefix + "start", np.float32, (n,))
        end = require(tensors, prefix + "end", np.float32, (n,))
        dictionary = None
        if prefix + "dictionary" in tensors:
            words = require(tensors, prefix + "dictionary", np.uint64, (None,))
            longest = min(64, max(1, require_field(header, "longest", int)))
            dictionary = Dictionary(words, np.full(len(words), -1, np.int8), longest)
        try:
            rules: Grammar = grammar_of(names, task, scheme)
            featurizer = Featurizer(
                require_names(header, "templates"), "word" if task == "pos" else "character",
                fold=require_field(header, "fold", bool), dictionary=dictionary, keys=keys,
            )  # fmt: skip
        except Exception as error:
            reject(header, str(error))
        inf = np.float32(-np.inf)
        return cls(
            names, task, featurizer, Rows(n, offsets, labels, weights),
            np.where(rules.follows, trans, inf), np.where(rules.starts, start, inf), np.where(rules.ends, end, inf),
            scheme, temperature,
        )  # fmt: skip
