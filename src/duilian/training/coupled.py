"""Coupled training: likelihood of ambiguous labelings by SGD, samples of the corpora per epoch (li2015 Algorithm 1).

    L = sum_s log Z(allowed_s) - log Z(all_s) - (c2 / 2) |w|^2       gradient E_allowed[f] - E[f]       (li2015 Eq. 4-6)

Rates, shrinkage, thinning of features and the average of the weights are those of the single chain
(``training.learners.CrfLearner``), so that the two compare. Each batch is cut into blocks of sentences that do not
depend on the number of threads; what they find is added up in order.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from duilian.corpus import UNKNOWN
from duilian.errors import DuilianError
from duilian.inference.blocks import run_blocks, sentence_blocks
from duilian.models.candidates import Candidates, slice_features
from duilian.models.coupled import Coupled
from duilian.models.joint_rows import add_all, add_hits
from duilian.models.spaces import Batch, Gradient, GridSpace, LatticeSpace
from duilian.models.weights import add, occurrences
from duilian.training.data import dropout
from duilian.training.learners import restore, row_rates
from duilian.training.parts import Parts, drawn
from duilian.training.sgd import Steps, blend

F32 = np.float32
SMALL, MOST, LEAST, FALL = 100_000, 0.95, 0.3, 0.7
"""Separate features left out of a corpus of SMALL units or fewer, at least, and how much less for ten times as many."""
Found = tuple[Batch, Gradient]
FORECAST = 2
"""So many batches are timed for a forecast."""
JOINT_PARTS = 2
"""Into so many parts the rows of joint features are shared out where they change."""


class Walk(NamedTuple):
    """What an epoch walks over: sentences in their order, one behind the other."""

    batch: Batch

    def part(self, first: int, last: int) -> Batch:
        """Sentences first..last."""
        whole = self.batch
        begin, end = int(whole.sentences[first]), int(whole.sentences[last])
        features = tuple(slice_features(one, begin, end) for one in whole.features)
        given = tuple(one.select(slice(begin, end)) for one in whole.given)
        candidates = None if whole.candidates is None else whole.candidates.slice(begin, end)
        return Batch(features, whole.sentences[first : last + 1] - begin, given, candidates)


class CoupledLearner:
    """Finds the numbers of a coupled model. The model is a polynomial-decay average, as that of ``CrfLearner``."""

    PARTS = 5
    DECAY = 3.0
    CALIBRATION_SENTENCES = 600

    def __init__(
        self,
        model: Coupled,
        parts: Parts,
        space: LatticeSpace | GridSpace,
        candidates: Candidates | None,
        settings: dict[str, Any],
        seed: int,
        threads: int = 1,
    ) -> None:
        self.model, self.parts, self.space, self.candidates = model, parts, space, candidates
        self.settings, self.seed, self.threads = settings, seed, threads
        self.sample = tuple(int(number) for number in settings["sample"])
        self.now = {name: array.copy() for name, array in model.numbers().items()}
        self.means = {name: np.zeros(array.shape, np.float64) for name, array in self.now.items()}
        self.n_means = np.zeros(1, np.int64)
        self.eta = np.array([settings["eta"]], np.float64)
        self.steps = _no_steps()
        self.decay = settings["c2"] / max(len(parts), 1)
        counts = occurrences(parts.features, len(model.featurizer))
        self.known = [parts.known(side) for side in range(len(model.sides))]
        sizes = [int(np.count_nonzero(given.labels != UNKNOWN)) for given in parts.given]
        words = model.task == "pos"
        joint = (0.1 if words else 0.3) if settings["dropout"] == "auto" else float(settings["dropout"])
        self.dropout = (*side_dropout(settings, sizes, words), joint)
        self.rare = np.stack([self._counts(known) <= settings["rare"] for known in self.known])
        self.rates = row_rates(counts, settings["common"])
        cells = {f"side.{s}": parts.n_units / size for s, size in enumerate(model.sizes)}
        cells["pairs"] = parts.n_units / max(1, len(model.pair_keys))
        self.table_rates = {
            name: F32(row_rates(np.array([count]), settings["common"])[0]) for name, count in cells.items()
        }

    def _counts(self, known: NDArray[np.bool_]) -> NDArray[np.int64]:
        """(n_rows,) how often each feature occurs in some sentences."""
        units, _ = self.parts.units_of(np.flatnonzero(known))
        return occurrences(self.parts.features_of(units), len(self.model.featurizer))

    def _lay_out(self, order: NDArray[np.int64], seed: int | None) -> Walk:
        """Sentences in the order of a walk; seed: of what is thinned out, None for nothing."""
        units, sentences = self.parts.units_of(order)
        features = self.parts.features_of(units)
        views = (features,) * (len(self.model.sides) + 1)
        if seed is not None:
            groups, hide = self._groups(order, sentences), self.settings["hide"]
            views = tuple(
                dropout(features, rate, seed, [], self.rare, hide, group)
                for rate, group in zip(self.dropout, groups, strict=True)
            )
        given = tuple(one.select(units) for one in self.parts.given)
        candidates = None
        if self.candidates is not None:
            candidates = self.candidates.select(units)
        return Walk(Batch(views, sentences, given, candidates))

    def _groups(self, order: NDArray[np.int64], sentences: NDArray[np.int64]) -> Iterator[NDArray[np.int8]]:
        """Whose rare features a unit may lose: per side, and last for the joint features, which lose none.

        A side loses what is rare in its own corpora, where it is known: the other sides go on seeing the word, and what
        they make of it has to serve, as for a word that only their corpora have.
        """
        lengths = np.diff(sentences)
        for side in range(len(self.model.sides)):
            yield np.repeat(np.where(self.known[side][order], side, -1).astype(np.int8), lengths)
        yield np.full(int(lengths.sum()), -1, np.int8)

    def _walk(self, walk: Walk, first: int, last: int, eta: float, numbers: Any, steps: Steps) -> float:
        """Steps over sentences first..last; the sum of their log-likelihoods."""
        total = 0.0
        for begin in range(first, last, self.settings["batch"]):
            end = min(begin + self.settings["batch"], last)
            scale = float(steps.scale[0])
            tables = self.space.tables(self.model, numbers, scale)

            def work(a: int, b: int, begin: int = begin, scale: float = scale, tables: Any = tables) -> Found:
                batch = walk.part(begin + a, begin + b)
                return batch, self.space.gradient(self.model, numbers, scale, batch, tables)

            offsets = walk.batch.sentences[begin : end + 1]
            found = run_blocks(work, sentence_blocks(offsets, self.space.blocks), self.threads)
            for _, one in found:
                good = one.log_likelihood[np.isfinite(one.log_likelihood)]
                total += float(good.sum())
                steps.skipped[0] += len(one.log_likelihood) - len(good)
            if eta > 0:
                self._step(found, eta, numbers, steps)
        return total

    def _step(self, found: list[Found], eta: float, numbers: Any, steps: Steps) -> None:
        """One step against the gradients of the blocks of a batch."""
        rate = eta / (1 + eta * self.decay * steps.taken[0])
        steps.taken[0] += 1
        steps.scale[0] *= 1 - rate * self.decay
        step = F32(rate / steps.scale[0])

        def side(s: int) -> None:
            trans, start, end = (numbers[f"side.{s}.{name}"] for name in ("trans", "start", "end"))
            sparse = self.model.sides[s].rows.sparse(numbers[f"side.{s}.weights"])
            tables = step * self.table_rates[f"side.{s}"]
            for batch, one in found:
                delta = one.nodes[s]
                filled = np.diff(batch.sentences) > 0
                start += tables * delta[batch.sentences[:-1][filled]].sum(axis=0)
                end += tables * delta[batch.sentences[1:][filled] - 1].sum(axis=0)
                trans += (tables * one.counts[s]).astype(F32)
                delta *= step
                add(sparse, self.rates, batch.features[s], 0, batch.n_units, delta)

        def pairs() -> None:
            for _, one in found:
                if len(one.pairs):
                    numbers["pairs.weights"] += (step * self.table_rates["pairs"] * one.pairs).astype(F32)

        def joint(part: int) -> None:
            sparse = self.model.joint.sparse(numbers["joint.weights"])
            for batch, one in found:
                if one.joint is None or not len(self.model.joint.codes):
                    continue
                if one.hits is None:
                    add_all(sparse, self.rates, batch.features[-1], part, JOINT_PARTS, one.joint * step)
                else:
                    add_hits(sparse, self.rates, batch.features[-1], one.hits, part, JOINT_PARTS, one.joint * step)

        n = len(self.model.sides)
        work: list[Callable[[], None]] = [partial(joint, part) for part in range(JOINT_PARTS)]
        work += [partial(side, s) for s in range(n)] + [pairs]
        run_blocks(lambda k, _: work[k](), [(k, k + 1) for k in range(len(work))], self.threads)

    def warm_up(self) -> None:
        """A step over one sentence, thrown away."""
        order = np.flatnonzero(np.diff(self.parts.sentences) > 0)[:1].astype(np.int64)
        if not len(order):
            return
        numbers = {name: array.copy() for name, array in self.now.items()}
        self._walk(self._lay_out(order, 0), 0, len(order), 1e-6, numbers, _no_steps())
        for mean, part in zip(self.means.values(), self.now.values(), strict=True):
            blend(mean.reshape(-1)[:0], part.reshape(-1)[:0], 1.0, 0.0)

    def forecast(self) -> tuple[int, float]:
        """Units of an epoch, and about how many seconds it will take, from a few batches that change nothing."""
        order = drawn(self.parts.homes, self.sample, self.seed, 1)
        some = order[: FORECAST * self.settings["batch"]]
        if not len(some):
            return 0, 0.0
        walk = self._lay_out(some, 0)
        numbers = {name: array.copy() for name, array in self.now.items()}
        seconds = 0.0
        for _ in range(2):  # the first time kernels are compiled
            began = time.perf_counter()
            self._walk(walk, 0, len(some), 1e-6, numbers, _no_steps())
            seconds = time.perf_counter() - began
        units = int(np.diff(self.parts.sentences)[order].sum())
        return units, seconds * units / max(1, walk.batch.n_units)

    def calibrate(self) -> float:
        """The rate that serves a sample best after one walk: 0.1, doubled or halved while that helps (CRFsuite)."""
        order = drawn(self.parts.homes, self.sample, self.seed, -1 & 0xFFFF)[: self.CALIBRATION_SENTENCES]
        walk = self._lay_out(order, None)
        tried: dict[int, float] = {}

        def loss(power: int) -> float:
            if power not in tried:
                numbers = {name: array.copy() for name, array in self.now.items()}
                steps = _no_steps()
                eta = 0.1 * 2.0**power
                with warnings.catch_warnings(), np.errstate(all="ignore"):
                    warnings.simplefilter("ignore")
                    self._walk(walk, 0, len(order), eta, numbers, steps)
                    before = int(steps.skipped[0])
                    after = -self._walk(walk, 0, len(order), 0.0, numbers, steps)
                tried[power] = after if np.isfinite(after) and steps.skipped[0] == 2 * before else np.inf
            return tried[power]

        best = 0
        for way in (1, -1):
            while abs(best) < 10 and loss(best + way) < loss(best):
                best += way
            if best:
                break
        return float(0.1 * 2.0**best)

    def epoch(self, number: int) -> tuple[float, int]:
        """One walk over a sample of the corpora."""
        if self.eta[0] <= 0:
            self.eta[0] = self.calibrate()
        order = drawn(self.parts.homes, self.sample, self.seed, number)
        walk = self._lay_out(order, self.seed * 1000 + number)
        self.steps.skipped[0] = 0
        total = 0.0
        edges = np.linspace(0, len(order), self.PARTS + 1).astype(int).tolist()
        for first, last in pairwise(edges):
            total += self._walk(walk, first, last, float(self.eta[0]), self.now, self.steps)
            self.n_means += 1
            share = (self.DECAY + 1) / (int(self.n_means[0]) + self.DECAY)
            for name, mean in self.means.items():
                blend(mean.reshape(-1), self.now[name].reshape(-1), float(self.steps.scale[0]), share)
        if self.steps.scale[0] < 1e-4:
            self._rescale()
        if self.steps.skipped[0] > len(order) // 2 or not np.isfinite(total):
            raise DuilianError(
                f"training ran away in epoch {number}: {self.steps.skipped[0]} of {len(order)} sentences had no "
                f"probability. The rate was {self.eta[0]:g}: try --set eta={self.eta[0] / 4:g}; or the mapping "
                "allows too little."
            )
        return total, int(walk.batch.n_units)

    def _rescale(self) -> None:
        """Fold the scale into the weights before it gets too small for float32."""
        for array in self.now.values():
            array *= F32(self.steps.scale[0])
        self.steps.scale[0] = 1.0

    def current(self) -> Coupled:
        """The averaged model; dropped features count fully again."""
        kept = {"joint.weights": 1 - self.dropout[-1]}
        kept |= {f"side.{s}.weights": 1 - rate for s, rate in enumerate(self.dropout[:-1])}
        return self.model.with_numbers({name: mean * kept.get(name, 1.0) for name, mean in self.means.items()})

    def tensors(self) -> dict[str, NDArray[Any]]:
        """Everything that an interruption must not lose."""
        found: dict[str, NDArray[Any]] = {f"now.{name}": array for name, array in self.now.items()}
        found |= {f"mean.{name}": array for name, array in self.means.items()}
        return found | {
            "n_means": self.n_means,
            "eta": self.eta,
            "taken": self.steps.taken,
            "scale": self.steps.scale,
            "skipped": self.steps.skipped,
        }

    def restore(self, tensors: dict[str, NDArray[Any]]) -> None:
        """Take up where ``tensors`` left off."""
        restore(self.tensors(), tensors)


def side_dropout(settings: dict[str, Any], sizes: Sequence[int], words: bool = True) -> tuple[float, ...]:
    """Which share of its separate features each side leaves out: one number for all sides, or one for each.

    sizes: labelled units of each side. A small corpus is soon known by heart, and what its own features explain nothing
    is learnt from for the bundles; a large one needs its own features more than it needs the others' (auto). Labels of
    characters are not learnt from a feature or two: there it is LEAST for all.
    """
    values = tuple(settings["side_dropout"])
    if values == ("auto",) and not words:
        return (LEAST,) * len(sizes)
    if values == ("auto",):
        return tuple(float(np.clip(MOST - FALL * np.log10(max(size, 1) / SMALL), LEAST, MOST)) for size in sizes)
    rates = tuple(float(number) for number in values)
    return rates * len(sizes) if len(rates) == 1 else rates


def _no_steps() -> Steps:
    return Steps(np.zeros(1, np.int64), np.ones(1), np.zeros(1, np.int64))
