"""The chains that offline pruning asks: one per standard, and for a corpus' own sentences others that never saw them.

li2016 section 3: marginals come from models of single standards; the sentences that such a model is trained on are
marked by models of the other folds (jack-knifing). Finished chains and candidates are kept as stages.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duilian.errors import DuilianError
from duilian.features import Featurizer
from duilian.features.dictionary import fold_numbers
from duilian.inference.chain_marginals import best_paths
from duilian.models.candidates import Pruner, join, slice_features
from duilian.models.chain import Chain
from duilian.models.side_model import SideModel, empty_side
from duilian.models.weights import build_rows
from duilian.ragged import Ragged
from duilian.stages import Context
from duilian.training.data import TrainingData
from duilian.training.learners import CrfLearner
from duilian.training.parts import Parts

LEARNING: dict[str, Any] = {
    "batch": 5, "c2": 0.01, "common": 10.0, "eta": 0.0, "dropout": 0.3, "hide": 0.3, "rare": 5, "sample": 0,
}  # fmt: skip
"""How the chains are trained: as method crf is by default."""
LOWEST = 1e-6
"""No rate below this is tried."""


def train_side(
    data: TrainingData, names: Sequence[str], task: str, scheme: str, featurizer: Featurizer, epochs: int, seed: int
) -> SideModel:
    """A chain on the sentences of one side, over shared feature rows."""
    features = Ragged(data.features.data, data.features.offsets)
    rows = build_rows(len(featurizer), len(names), [(features, data.labels, data.sets)])
    side = empty_side(names, task, scheme, rows)
    chain = Chain(side.names, task, featurizer, rows, side.trans, side.start, side.end, scheme)
    eta = 0.0
    while True:
        learner = CrfLearner(chain, data, LEARNING | {"eta": eta}, seed)
        learner.warm_up()
        try:
            for number in range(1, epochs + 1):
                learner.epoch(number)
        except DuilianError:  # a rate found on very few sentences can be too high for all epochs
            eta = float(learner.eta[0]) / 4
            if eta < LOWEST:
                raise
            continue
        best = learner.current()
        return SideModel(side.names, best.rows, best.trans, best.start, best.end)


class Folds:
    """The chains of one side: one that saw all of its sentences, and one for each fold that it did not see.

    fold: (S,) int64 the fold of each sentence that the side knows, -1 for all others
    """

    def __init__(self, parts: Parts, side: int, n_folds: int) -> None:
        known = np.flatnonzero(parts.known(side))
        self.fold = np.full(len(parts), -1, np.int64)
        self.fold[known] = fold_numbers(len(known), min(n_folds, len(known))) if n_folds > 1 else -1
        self.n_folds = int(self.fold.max(initial=-1)) + 1
        self.known = known

    def training(self, fold: int) -> NDArray[np.int64]:
        """The sentences that a chain is trained on: all that are known, without those of a fold (-1: without none)."""
        if fold < 0 or self.n_folds < 2:
            return self.known
        return self.known[self.fold[self.known] != fold]  # type: ignore[no-any-return]


def train_chains(
    parts: Parts, names: Sequence[Sequence[str]], folds: Sequence[Folds], task: str, scheme: str,
    featurizer: Featurizer, settings: dict[str, Any], seed: int, context: Context,
) -> list[list[SideModel]]:  # fmt: skip
    """Per side the chain that saw everything, then those of its folds. Chains are trained side by side on threads."""
    jobs = [(side, fold) for side in range(len(names)) for fold in range(-1, folds[side].n_folds)]
    done = 0

    def work(job: tuple[int, int]) -> SideModel:
        nonlocal done
        side, fold = job
        data = parts.chain_data(side, folds[side].training(fold))
        found = train_side(data, names[side], task, scheme, featurizer, settings["pruning_epochs"], seed)
        done += 1
        context.report(f"pruning model {done} of {len(jobs)}")
        return found

    none = parts.chain_data(0, folds[0].known[:0])
    train_side(none, names[0], task, scheme, featurizer, 0, seed)  # compiles before threads would wait for each other
    with ThreadPoolExecutor(max(1, context.threads)) as pool:
        trained = list(pool.map(work, jobs))
    return [[model for (s, _), model in zip(jobs, trained, strict=True) if s == side] for side in range(len(names))]


def keep_for_training(
    parts: Parts, side: int, chains: Sequence[SideModel], folds: Folds, pruner: Pruner, threads: int
) -> Ragged:
    """The labels of one side that survive at every training unit; what is given survives in any case."""
    lists = []
    order = []
    for fold in range(-1, folds.n_folds):
        chosen = np.flatnonzero(folds.fold == fold)
        if not len(chosen):
            continue
        units, offsets = parts.units_of(chosen)
        own = Pruner((chains[fold + 1],), (pruner.r[side],), (pruner.lambda_[side],), pruner.paths)
        lists.append(
            own.keep(0, parts.features_of(units), offsets, must=parts.given[side].select(units), threads=threads)
        )
        order.append(units)
    whole = join(lists)
    back = np.argsort(np.concatenate(order), kind="stable")
    return whole.select(back)


def best_labels(parts: Parts, side: int, chain: SideModel) -> NDArray[np.int32]:
    """(U,) the labels that a chain gives every training unit: what an automatic mapping is counted from."""
    found = []
    sentences = parts.sentences
    step = 256
    for first in range(0, len(parts), step):
        last = min(first + step, len(parts))
        begin, end = int(sentences[first]), int(sentences[last])
        offsets = sentences[first : last + 1] - begin
        node = chain.scores(slice_features(parts.features, begin, end), offsets)
        found.append(best_paths(node, offsets, chain.trans))
    return np.concatenate([np.zeros(0, np.int32), *found])
