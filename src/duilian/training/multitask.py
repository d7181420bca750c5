"""Training of two standards at once by PA-I over expanded scores (qiu2013 Algorithm 2).

    wrong = argmax over y != gold of S(y),  loss = max(0, 1 - (S(gold) - S(wrong)))              (Eq. 11 to 13)
    w += tau e,  e = Phi(gold) + Phi(z of gold) - Phi(wrong) - Phi(z of wrong),  tau = min(C, loss / |e|^2)    (Eq. 15)

Phi of an expansion is multiplied by ``help`` (1 in the paper), in scores and steps alike. z are the best expansions
under the weights of that moment; with them held fixed, a step that C does not cut short leaves the margin at 1 (Eq.
14). The average is the mean of the weights at the ends of the passes (Algorithm 2), or of those after every step.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from duilian.inference.expansion import (
    Links,
    best_right_and_wrong,
    empty_tables,
    fill_steps,
    room_for_steps,
    scale_tables,
    tables_over,
)
from duilian.kernels import kernel
from duilian.models.multitask import NO_TABLES, MultiTask
from duilian.models.weights import Features, Sparse, score
from duilian.training.data import dropout
from duilian.training.learners import restore
from duilian.training.online import list_changes, list_steps, squared_norm
from duilian.training.parts import Parts, drawn

F32 = np.float32


class Numbers(NamedTuple):
    """The weights of a side while it is trained.

    sparse: Sparse, and sums (n_entries,) float32
    table:  ((L + 1) * (L + 3),) float32: transitions, starts, ends with none, and table_sums;  views: Tables over it
    """

    sparse: Any
    sums: Any
    table: Any
    table_sums: Any
    views: Any


class Room(NamedTuple):
    """Scratch for the sentences of one side; n the longest of them, L own labels, M others, K pairs.

    node (n, L), narrow (n, M), wide (n, M + 1), right, wrong (n, K), both (K,) float32; steps: Steps;
    scaled: Tables of the others times help; fine (n, L) bool; gold, other_gold, path, other_path (n,) int32
    """

    node: Any
    narrow: Any
    wide: Any
    right: Any
    wrong: Any
    both: Any
    steps: Any
    scaled: Any
    fine: Any
    gold: Any
    other_gold: Any
    path: Any
    other_path: Any


@kernel
def allow(labels: Any, set_data: Any, set_offsets: Any, first: Any, last: Any, fine: Any) -> None:
    """fine[u - first, label]: whether the unit may have the label; labels and sets as in ``constrain``."""
    for u in range(first, last):
        row, label = fine[u - first], labels[u]
        row[:] = label == -1
        if label >= 0:
            row[label] = True
        elif label < -1:
            for at in range(set_offsets[-2 - label], set_offsets[-1 - label]):
                row[set_data[at]] = True


@kernel
def without_none(codes: Any, signs: Any, n: Any, size: Any) -> Any:
    """Leave out the steps to, from and by none, label size - 1; codes as ``list_steps`` gives them; how many stay."""
    kept = 0
    none = size - 1
    for k in range(n):
        code = codes[k]
        if code < size * size:
            has = code // size == none or code % size == none
        else:
            has = (code - size * size) % size == none
        if not has:
            codes[kept], signs[kept] = code, signs[k]
            kept += 1
    return kept


@kernel
def change(
    numbers: Any, entries: Any, signs: Any, n: Any, codes: Any, ways: Any, n_codes: Any, step: Any, c: Any
) -> None:
    """Add step * sign to every weight named, and c * sign to its sum."""
    size = len(numbers.views.turned)
    for e in range(n):
        numbers.sparse.weights[entries[e]] += step * signs[e]
        numbers.sums[entries[e]] += c * signs[e]
    for e in range(n_codes):
        code = codes[e]
        numbers.table[code] += step * ways[e]
        numbers.table_sums[code] += c * ways[e]
        if code < size * size:
            numbers.views.turned[code % size, code // size] = numbers.table[code]


@kernel
def expanded_step(
    own: Any, other: Any, links: Any, none: Any, expands: Any, features: Any, other_features: Any, labels: Any,
    set_data: Any, set_offsets: Any, first: Any, last: Any, room: Any, now: Any, help_: Any, aggressiveness: Any,
    by_errors: Any,
) -> Any:  # fmt: skip
    """One sentence of one side, units first..last; returns how many units the model had wrong before it.

    own, other: Numbers; none: Tables of a side without labels; room: Room; the others as in ``expanded_pass``
    """
    n = last - first
    score(own.sparse, features, first, last, np.float32(1), room.node)
    m = room.narrow.shape[1]
    if expands:
        score(other.sparse, other_features, first, last, help_, room.narrow)
        room.wide[:n, :m] = room.narrow[:n]
    allow(labels, set_data, set_offsets, first, last, room.fine)
    tables, mine = none, own.views
    if expands:
        tables = room.scaled
        scale_tables(other.views, help_, tables)
    fill_steps(links, mine, tables, room.steps)
    goal, high = best_right_and_wrong(
        room.node, room.wide, n, links, mine, tables, room.steps, room.fine, room.right, room.wrong, room.both,
        room.gold, room.other_gold, room.path, room.other_path,
    )  # fmt: skip
    if goal == -np.inf or high == -np.inf:
        return 0
    errors = 0
    for t in range(n):
        errors += not room.fine[t, room.path[t]]
    wrong = errors if high >= goal else 0
    loss = np.float64(errors if by_errors else 1) - (np.float64(goal) - np.float64(high))
    if loss <= 0:
        return wrong
    most = 2 * (features.offsets[last] - features.offsets[first])
    entries, signs = np.empty(most, np.int64), np.empty(most, np.int8)
    codes, ways = np.empty(2 * n + 2, np.int64), np.empty(2 * n + 2, np.int8)
    n_entries = list_changes(own.sparse, features, first, room.gold, room.path, n, entries, signs)
    n_codes = list_steps(room.gold, room.path, n, len(own.views.turned), codes, ways)
    norm = squared_norm(entries, signs, n_entries) + squared_norm(codes, ways, n_codes)
    most = 2 * (other_features.offsets[last] - other_features.offsets[first]) if expands else 0
    more, more_signs = np.empty(most, np.int64), np.empty(most, np.int8)
    steps, more_ways = np.empty(2 * n + 2, np.int64), np.empty(2 * n + 2, np.int8)
    n_more, n_steps = 0, 0
    if expands:
        size = len(other.views.turned)
        n_more = list_changes(
            other.sparse, other_features, first, room.other_gold, room.other_path, n, more, more_signs
        )
        n_steps = list_steps(room.other_gold, room.other_path, n, size, steps, more_ways)
        n_steps = without_none(steps, more_ways, n_steps, size)
        norm += help_ * help_ * (squared_norm(more, more_signs, n_more) + squared_norm(steps, more_ways, n_steps))
    if norm == 0:
        return wrong
    step = np.float32(min(aggressiveness, loss / norm))
    c = np.float32(now) * step
    change(own, entries, signs, n_entries, codes, ways, n_codes, step, c)
    if expands:
        change(other, more, more_signs, n_more, steps, more_ways, n_steps, step * help_, c * help_)
    return wrong


@kernel
def expanded_pass(
    one: Any, two: Any, links_one: Any, links_two: Any, none: Any, one_way: Any, features_one: Any, features_two: Any,
    labels_one: Any, sets_one: Any, labels_two: Any, sets_two: Any, sentences: Any, homes: Any, room_one: Any,
    room_two: Any, now: Any, help_: Any, aggressiveness: Any, by_errors: Any,
) -> Any:  # fmt: skip
    """One pass over sentences of both sides, in their order; returns how many units were wrong.

    features_one: Features of all units as side one sees them, features_two as side two does; labels_one (U,) int32
    and sets_one (data, offsets) what side one says of its own sentences; homes (S,) int8: whose sentence it is;
    now: number of the first step, from 1; one_way: sentences of side two leave side one alone; help_ float32
    """
    wrong = 0
    for s in range(len(sentences) - 1):
        first, last = sentences[s], sentences[s + 1]
        if last == first:
            continue
        if homes[s] == 0:
            wrong += expanded_step(
                one, two, links_one, none, True, features_one, features_two, labels_one, sets_one[0], sets_one[1],
                first, last, room_one, now + s, help_, aggressiveness, by_errors,
            )  # fmt: skip
        else:
            wrong += expanded_step(
                two, one, links_two, none, not one_way, features_two, features_one, labels_two, sets_two[0],
                sets_two[1], first, last, room_two, now + s, help_, aggressiveness, by_errors,
            )  # fmt: skip
    return wrong


def room_for(n: int, n_labels: int, n_others: int, links: Links) -> Room:
    """Scratch for sentences of n units at the most."""

    def labels() -> NDArray[np.int32]:
        return np.empty(n, np.int32)

    def scores(*shape: int) -> NDArray[np.float32]:
        return np.zeros(shape, F32)

    n_pairs = len(links.own)
    return Room(
        scores(n, n_labels), scores(n, n_others), scores(n, n_others + 1), scores(n, n_pairs), scores(n, n_pairs),
        scores(n_pairs), room_for_steps(links), empty_tables(n_others), np.empty((n, n_labels), np.bool_), labels(),
        labels(), labels(), labels(),
    )  # fmt: skip


class MultiTaskLearner:
    """Passes over both corpora. The model is the average of the weights."""

    def __init__(self, model: MultiTask, parts: Parts, settings: dict[str, Any], seed: int) -> None:
        self.model, self.parts, self.settings, self.seed = model, parts, settings, seed
        self.sample = tuple(int(number) for number in settings["sample"])
        self.now = tuple(self._numbers(side) for side in (0, 1))
        self.steps, self.passes = np.ones(1, np.int64), np.zeros(1, np.int64)
        by_pass = settings["average"] == "passes"
        self.means = [np.zeros(a.shape if by_pass else 0, np.float64) for one in self.now for a in self._parts(one)]
        rare = []
        for side in (0, 1):
            units, _ = parts.units_of(np.flatnonzero(parts.homes == side))
            counts = np.bincount(parts.features_of(units).data, minlength=len(model.featurizer))
            rare.append(counts <= settings["rare"])
        self.rare = np.stack(rare)

    def _numbers(self, side: int) -> Numbers:
        weights = self.model.sides[side].rows.weights.copy()
        tables = self.model.tables[side]
        flat = np.concatenate([tables.trans.reshape(-1), tables.start, tables.end])
        sparse: Sparse = self.model.sides[side].rows.sparse(weights)
        return Numbers(
            sparse, np.zeros_like(weights), flat, np.zeros_like(flat), tables_over(flat, tables.turned.copy())
        )

    @staticmethod
    def _parts(numbers: Numbers) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        return numbers.sparse.weights, numbers.table

    def _walk(self, order: NDArray[np.int64], seed: int | None) -> int:
        """A pass over some sentences, features thinned out by the seed, or not."""
        parts, settings, model = self.parts, self.settings, self.model
        units, sentences = parts.units_of(order)
        views: list[Features] = [parts.features_of(units)] * 2
        homes = parts.homes[order]
        if seed is not None:
            lengths = np.diff(sentences)
            for side in (0, 1):
                # A side loses what is rare in its own corpus; what the other makes of it has to serve.
                groups = np.repeat(np.where(homes == side, side, -1).astype(np.int8), lengths)
                views[side] = dropout(views[0] if side == 0 else views[1], settings["dropout"], seed, [], self.rare,
                                      settings["hide"], groups)  # fmt: skip
        given = [one.select(units) for one in parts.given]
        sets = [(one.sets.data.astype(np.int32), one.sets.offsets) for one in given]
        longest = [int(np.diff(sentences)[homes == side].max(initial=1)) for side in (0, 1)]
        sizes = [len(side.names) for side in model.sides]
        rooms: list[Any] = []
        for side in (0, 1):
            others = sizes[1 - side] if model.expands(side) else 0
            rooms.append(room_for(longest[side], sizes[side], others, model.links[side]))
        (one, two), (links, other_links), (view, other_view) = self.now, model.links, views
        wrong = expanded_pass(
            one, two, links, other_links, NO_TABLES, model.one_way, view, other_view, given[0].labels, sets[0],
            given[1].labels, sets[1], sentences, homes, rooms[0], rooms[1], int(self.steps[0]),
            F32(model.help), settings["C"], settings["margin"] == "errors",
        )  # fmt: skip
        return int(wrong)

    def warm_up(self) -> None:
        """A pass over no sentences."""
        self._walk(np.zeros(0, np.int64), 0)

    def epoch(self, number: int) -> tuple[float, int]:
        """One pass over both corpora, or samples of them, shuffled together."""
        order = drawn(self.parts.homes, self.sample, self.seed, number)
        wrong = self._walk(order, self.seed * 1000 + number)
        self.steps += len(order)
        self.passes += 1
        if self.settings["average"] == "passes":
            now = [array for one in self.now for array in self._parts(one)]
            for mean, array in zip(self.means, now, strict=True):
                finite = np.isfinite(array)
                mean[finite] += array[finite]
        return -float(wrong), int(np.diff(self.parts.sentences)[order].sum())

    def current(self) -> MultiTask:
        """The averaged model; dropped features count fully again."""
        found: dict[str, NDArray[Any]] = {}
        kept = 1 - self.settings["dropout"]
        for side, one in enumerate(self.now):
            n = len(self.model.sides[side].names)
            if self.settings["average"] == "passes":
                weights, table = (mean / max(1, int(self.passes[0])) for mean in self.means[2 * side : 2 * side + 2])
            else:
                taken = F32(self.steps[0])
                weights = one.sparse.weights - one.sums / taken
                table = np.where(np.isfinite(one.table), one.table - one.table_sums / taken, 0)
            table = np.where(np.isfinite(one.table), table, -np.inf).astype(F32)
            size = n + 1
            found[f"side.{side}.weights"] = weights * kept
            found[f"side.{side}.trans"] = table[: size * size].reshape(size, size)[:n, :n]
            found[f"side.{side}.start"] = table[size * size : size * size + n]
            found[f"side.{side}.end"] = table[size * size + size : -1]
        return self.model.with_numbers(found)

    def tensors(self) -> dict[str, NDArray[Any]]:
        """Everything that an interruption must not lose."""
        found: dict[str, NDArray[Any]] = {"steps": self.steps, "passes": self.passes}
        for side, one in enumerate(self.now):
            found |= {f"{side}.weights": one.sparse.weights, f"{side}.sums": one.sums, f"{side}.table": one.table}
            found |= {f"{side}.table_sums": one.table_sums, f"{side}.turned": one.views.turned}
        return found | {f"mean.{k}": mean for k, mean in enumerate(self.means)}

    def restore(self, tensors: dict[str, NDArray[Any]]) -> None:
        """Take up where ``tensors`` left off."""
        restore(self.tensors(), tensors)
