"""Where the bundles of a coupled model come from, and what is asked of them: the best, their marginals, a gradient.

    LatticeSpace  candidates at every unit, by pruning and by a mapping (``inference.bundles``)
    GridSpace     every bundle at every unit, exact (``inference.grid``)

Both take a model, its numbers (or others of the same shape, while it is being trained) and a ``Batch``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from duilian.corpus import UNKNOWN
from duilian.inference import bundles, grid
from duilian.inference.bundle_room import Weights
from duilian.inference.chain import constrain
from duilian.inference.grid_kernels import give_side, take_side
from duilian.inference.grid_run import GridWeights
from duilian.inference.lattice import Lattice, mapped, room_for_token
from duilian.inference.pruning import given_mask
from duilian.models.candidates import Candidates, Given, allowed_bundles, mapped_lattice, survivors
from duilian.models.coupled import Coupled
from duilian.models.joint_rows import Hits, no_hits, room_for_hits, score_all, score_candidates
from duilian.models.weights import Features

F32 = np.float32
Floats = NDArray[Any]
Numbers = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Batch:
    """Some sentences.

    features:   rows of each unit as each side sees them, and last as the joint features do
    sentences:  (S + 1,) int64 from 0
    given:      per side the labels that are given; they are all that is allowed
    candidates: what pruning left, or None
    """

    features: tuple[Features, ...]
    sentences: NDArray[np.int64]
    given: tuple[Given, ...]
    candidates: Candidates | None = None

    @property
    def n_units(self) -> int:
        """How many units there are."""
        return int(self.sentences[-1])


@dataclass(frozen=True, eq=False)
class Gradient:
    """log Z(allowed) - log Z per sentence, and its gradient.

    log_likelihood: (S,) float64, -inf where the given labels are impossible: such a sentence adds nothing
    nodes:  per side (T, L) float32;  counts: per side (L, L) float64, label pairs
    joint:  (n_bundles,) over ``lattice``, or (T, n_codes) over all bundles, or None without joint features
    pairs:  (n_pairs,) float64 for the pairs of bundles that have a weight, () for none
    hits:   which joint weights the bundles of ``lattice`` have
    """

    log_likelihood: NDArray[np.float64]
    nodes: list[Floats]
    counts: tuple[NDArray[np.float64], ...]
    joint: Floats | None
    lattice: Lattice | None
    pairs: NDArray[np.float64]
    hits: Hits | None = None


@dataclass(frozen=True, eq=False)
class Marginals:
    """Per side (T, L) the probability of each label."""

    sides: tuple[Floats, ...]
    log_z: NDArray[np.float64]


def side_nodes(model: Coupled, numbers: Numbers, scale: float, batch: Batch) -> list[Floats]:
    """Per side (T, L) scores of its labels, with those of how a sentence starts and ends."""
    return [
        side.scores(
            batch.features[s],
            batch.sentences,
            numbers[f"side.{s}.weights"],
            [numbers[f"side.{s}.{name}"] for name in ("trans", "start", "end")],
            scale,
        )
        for s, side in enumerate(model.sides)
    ]


def _tables(model: Coupled, numbers: Numbers, scale: float) -> list[Floats]:
    return [numbers[f"side.{s}.trans"] * F32(scale) for s in range(len(model.sides))]


@dataclass(frozen=True, eq=False)
class LatticeSpace:
    """Candidates at every unit.

    table:   (L of each side) bool, the bundles that a mapping knows, or None for all
    online:  per side (r, lambda): candidates by the model's own separate features, batch by batch; () for not
    paths:   online pruning also keeps the labels of each side's best path
    threads: blocks of sentences run in parallel
    """

    table: NDArray[np.bool_] | None = None
    online: tuple[tuple[int, float], ...] = ()
    paths: bool = False
    threads: int = 1
    blocks: ClassVar[int] = 4
    """Into so many blocks of sentences a batch of training is cut."""

    @cached_property
    def _rows(self) -> NDArray[np.int32]:
        assert self.table is not None
        return np.argwhere(self.table).astype(np.int32)

    def lattice(
        self, model: Coupled, numbers: Numbers, scale: float, batch: Batch, nodes: list[Floats], training: bool
    ) -> Lattice:
        """The competing bundles; while training those that are given are among them."""
        sizes = model.sizes
        if batch.candidates is not None:
            space = batch.candidates.lattice(batch.sentences)
        elif self.online:
            space = self._pruned(numbers, scale, batch, nodes, training).lattice(batch.sentences)
        elif self.table is not None:
            masks = [
                None if training or _free(one) else _mask(one, n) for one, n in zip(batch.given, sizes, strict=True)
            ]
            found = mapped(batch.sentences, self._rows, sizes, masks)
            if np.all(np.diff(found.space.starts) > 0):
                return found
            space = Candidates.full(batch.n_units, sizes).lattice(batch.sentences)
        else:
            space = Candidates.full(batch.n_units, sizes).lattice(batch.sentences)
        if self.table is None:
            return space
        return mapped_lattice(space, self.table, None if not training else batch.given)

    def _pruned(self, numbers: Numbers, scale: float, batch: Batch, nodes: list[Floats], training: bool) -> Candidates:
        lists = []
        for s, (node, (r, lambda_)) in enumerate(zip(nodes, self.online, strict=True)):
            given = batch.given[s]
            trans = numbers[f"side.{s}.trans"] * F32(scale)
            lists.append(
                survivors(
                    node.copy(), batch.sentences, trans, r, lambda_, self.paths,
                    None if training or _free(given) else given, given if training and not _free(given) else None,
                )
            )  # fmt: skip
        return Candidates.of(lists, [node.shape[1] for node in nodes])

    def tables(self, model: Coupled, numbers: Numbers, scale: float) -> Weights:
        """Transitions as kernels want them, for many calls with the same numbers."""
        joint = numbers["pairs.weights"] * F32(scale) if len(model.pair_keys) else None
        return bundles.weights_of(_tables(model, numbers, scale), joint, F32)

    def _allowed(self, space: Lattice, batch: Batch) -> Lattice:
        if batch.candidates is not None and space.is_product:
            return space.restrict_sides(batch.candidates.allowed(batch.given))
        if space.is_product:
            return space.restrict_sides(_allowed_labels(space, batch.given))
        return space.restrict(allowed_bundles(space, batch.given))

    def _scored(
        self, model: Coupled, numbers: Numbers, scale: float, batch: Batch, training: bool
    ) -> tuple[Lattice, Floats, list[Floats], Hits | None]:
        nodes = side_nodes(model, numbers, scale, batch)
        space = self.lattice(model, numbers, scale, batch, nodes, training)
        node = np.zeros(space.n_bundles, F32)
        rows = room_for_token(space.space)
        for s, values in enumerate(nodes):
            take_side(space.space, s, values, rows, node)
        hits = None
        if len(model.joint.codes):
            where = np.full(model.n_codes, -1, np.int32)
            sparse, features = model.joint.sparse(numbers["joint.weights"]), batch.features[-1]
            hits = room_for_hits(sparse, features, space.space) if training else no_hits()
            score_candidates(sparse, features, space.space, 0, space.n_tokens, F32(scale), rows, where, node, hits)
        return space, node, nodes, hits

    def gradient(
        self, model: Coupled, numbers: Numbers, scale: float, batch: Batch, tables: Weights | None = None
    ) -> Gradient:
        """What a step of training needs; tables: of the same numbers, where they are at hand."""
        space, node, nodes, hits = self._scored(model, numbers, scale, batch, True)
        weights = self.tables(model, numbers, scale) if tables is None else tables
        allowed = self._allowed(space, batch)
        found = bundles.gradient(space, allowed, node, weights, None, model.pairs, threads=self.threads)
        rows, none = room_for_token(space.space), np.zeros(0, np.int64)
        for s, out in enumerate(nodes):
            out[:] = 0
            give_side(space.space, s, found.marginals, none, rows, out)
        return Gradient(found.log_z, nodes, found.counts, found.marginals, space, found.joint_counts, hits)

    def best(self, model: Coupled, batch: Batch) -> NDArray[np.int32]:
        """(T, S) labels of the best bundles; -1 where no path is possible."""
        numbers = model.numbers()
        space, node, _, _ = self._scored(model, numbers, 1.0, batch, False)
        weights = self.tables(model, numbers, 1.0)
        return bundles.viterbi(space, node, weights, None, model.pairs, threads=self.threads).labels

    def marginals(self, model: Coupled, batch: Batch) -> Marginals:
        """The probability of every label of every side."""
        numbers = model.numbers()
        space, node, nodes, _ = self._scored(model, numbers, 1.0, batch, False)
        weights = self.tables(model, numbers, 1.0)
        found = bundles.sums(space, node, weights, None, model.pairs, counts=False, threads=self.threads)
        rows, none = room_for_token(space.space), np.zeros(0, np.int64)
        for s, out in enumerate(nodes):
            out[:] = 0
            give_side(space.space, s, found.marginals, none, rows, out)
        return Marginals(tuple(nodes), found.log_z)

    def spans(
        self, model: Coupled, batch: Batch, side: int, labels: NDArray[np.int32], spans: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """P(the side carries these labels all over each span); spans as in ``bundles.span_probabilities``."""
        numbers = model.numbers()
        space, node, _, _ = self._scored(model, numbers, 1.0, batch, False)
        joint = model.pair_weights if len(model.pair_keys) else None
        tables = [one.trans for one in model.sides]
        return bundles.span_probabilities(
            space, node, tables, side, labels, spans, joint, model.pairs, threads=self.threads
        )

    def n_best(self, model: Coupled, batch: Batch, k: int) -> list[list[tuple[float, NDArray[np.int32]]]]:
        """Per sentence the k best paths, best first: their probabilities and (T, S) labels."""
        numbers = model.numbers()
        space, node, _, _ = self._scored(model, numbers, 1.0, batch, False)
        joint = model.pair_weights if len(model.pair_keys) else None
        tables = [one.trans for one in model.sides]
        log_z = bundles.log_partition(space, node.astype(np.float64), tables, joint, model.pairs)
        found = bundles.nbest(space, node, tables, k, joint, model.pairs)
        return [
            [(float(np.exp(score - log_z[i])), bundles.labels_on(space, path)) for score, path in paths]
            for i, paths in enumerate(found)
        ]


@dataclass(frozen=True, eq=False)
class GridSpace:
    """Every bundle at every unit. threads: blocks of sentences run in parallel."""

    threads: int = 1
    blocks: ClassVar[int] = 2
    """As in ``LatticeSpace``: fewer, since sentences that go side by side make one product."""

    def tables(self, model: Coupled, numbers: Numbers, scale: float) -> GridWeights:
        """Transitions as products want them, for many calls with the same numbers."""
        joint = None
        if len(model.pair_keys):
            n = model.n_codes
            flat = np.zeros(n * n, F32)
            flat[model.pair_keys] = numbers["pairs.weights"] * F32(scale)
            joint = flat.reshape(n, n)
        return GridWeights(_tables(model, numbers, scale), joint, F32)

    def _nodes(self, model: Coupled, numbers: Numbers, scale: float, batch: Batch) -> tuple[list[Floats], Any]:
        nodes = side_nodes(model, numbers, scale, batch)
        if not len(model.joint.codes):
            return nodes, None
        joint = np.zeros((batch.n_units, model.n_codes), F32)
        score_all(model.joint.sparse(numbers["joint.weights"]), batch.features[-1], 0, batch.n_units, F32(scale), joint)
        return nodes, joint

    def gradient(
        self, model: Coupled, numbers: Numbers, scale: float, batch: Batch, tables: GridWeights | None = None
    ) -> Gradient:
        """What a step of training needs; tables: of the same numbers, where they are at hand."""
        nodes, joint = self._nodes(model, numbers, scale, batch)
        masks = [None if _free(one) else _mask(one, n) for one, n in zip(batch.given, model.sizes, strict=True)]
        allowed = grid.lattice(batch.sentences, model.sizes, masks)
        weights = self.tables(model, numbers, scale) if tables is None else tables
        found = grid.gradient(batch.sentences, nodes, weights, allowed, joint, threads=self.threads)
        pairs = np.zeros(0)
        if found.joint_counts is not None:
            pairs = found.joint_counts.reshape(-1)[model.pair_keys].astype(np.float64)
        return Gradient(found.log_z, list(found.marginals), found.counts, found.joint, None, pairs)

    def best(self, model: Coupled, batch: Batch) -> NDArray[np.int32]:
        """(T, S) labels of the best bundles; -1 where no path is possible."""
        nodes, joint = self._nodes(model, model.numbers(), 1.0, batch)
        self._constrain(nodes, batch)
        weights = self.tables(model, model.numbers(), 1.0)
        return grid.viterbi(batch.sentences, nodes, weights, joint, threads=self.threads)[0]

    def marginals(self, model: Coupled, batch: Batch) -> Marginals:
        """The probability of every label of every side."""
        nodes, joint = self._nodes(model, model.numbers(), 1.0, batch)
        self._constrain(nodes, batch)
        weights = self.tables(model, model.numbers(), 1.0)
        found = grid.sums(batch.sentences, nodes, weights, joint, counts=False, threads=self.threads)
        return Marginals(found.marginals, found.log_z)

    @staticmethod
    def _constrain(nodes: list[Floats], batch: Batch) -> None:
        for node, given in zip(nodes, batch.given, strict=True):
            if not _free(given):
                constrain(node, 0, len(node), given.labels, given.sets.data, given.sets.offsets)


def _free(given: Given) -> bool:
    return bool(np.all(given.labels == UNKNOWN))


def _mask(given: Given, n_labels: int) -> NDArray[np.bool_]:
    """(T, L) which labels are allowed: all where none is given."""
    mask = given_mask(given.labels, given.sets, n_labels)
    mask[given.labels == UNKNOWN] = True
    return mask


def _allowed_labels(space: Lattice, given: tuple[Given, ...]) -> NDArray[np.bool_]:
    """(n_kept,) whether each label of a product lattice is among those given."""
    return Candidates(space.space.lists, space.space.kept, tuple(space.space.sizes.tolist())).allowed(given)
