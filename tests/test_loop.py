"""The training loop: epochs, patience, the best model, going on after an interruption; learners and their data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from problems import LearningProblem, random_problem
from toys import begin, toy_sentences

from duilian import storage
from duilian.errors import DuilianError
from duilian.features import Featurizer
from duilian.lifting import Units
from duilian.models.chain import Chain
from duilian.training.data import TrainingData, cut_at, dropout, shuffled
from duilian.training.learners import CrfLearner, OnlineLearner, restore
from duilian.training.loop import Loop, Progress


@dataclass
class Number:
    """A model that is one number."""

    value: float

    def numbers(self) -> dict[str, Any]:
        return {"value": np.array([self.value])}

    def with_numbers(self, numbers: dict[str, Any]) -> Number:
        return Number(float(numbers["value"][0]))


class Counter:
    """A learner whose model after epoch n is n."""

    def __init__(self) -> None:
        self.state = np.zeros(1)

    def warm_up(self) -> None:
        pass

    def epoch(self, number: int) -> tuple[float, int]:
        self.state += 1
        return float(-number), 10

    def current(self) -> Number:
        return Number(float(self.state[0]))

    def tensors(self) -> dict[str, Any]:
        return {"state": self.state}

    def restore(self, tensors: dict[str, Any]) -> None:
        self.state[...] = tensors["state"]


def loop_over(scores: list[float], epochs: int = 99, patience: int = 99) -> Loop:
    """A loop whose dev score after epoch n is the n-th of the scores."""
    return Loop(Counter(), lambda model: {"a": scores[int(model.value) - 1], "Z": -model.value}, epochs, patience)


@pytest.mark.parametrize(
    ("scores", "epochs", "patience", "n_run", "best"),
    [
        ([1, 2, 3, 4, 5], 5, 9, 5, 5),
        ([1, 2, 3, 4, 5], 3, 9, 3, 3),
        ([1, 5, 3, 4, 2, 9], 6, 2, 4, 2),
        ([1, 5, 3, 6, 2, 1], 6, 2, 6, 4),
        ([5, 5, 5, 5], 4, 3, 4, 1),
        ([5, 1, 1, 1], 4, 1, 2, 1),
        ([0, 0], 2, 9, 2, 1),
    ],
)
def test_patience_and_the_best_model(scores: list[float], epochs: int, patience: int, n_run: int, best: int) -> None:
    """An equal score is no better: the earlier model is kept."""
    loop = loop_over(scores, epochs, patience)
    seen = list(loop)
    assert [progress.epoch for progress in seen] == list(range(1, n_run + 1))
    assert loop.model.value == best
    assert loop.best is not None
    assert loop.best.epoch == best
    assert [progress.tokens for progress in seen] == [10 * n for n in range(1, n_run + 1)]
    assert [progress.objective for progress in seen] == [-n for n in range(1, n_run + 1)]
    assert loop.done
    assert list(loop) == []


def test_without_dev_the_last_model_is_kept() -> None:
    loop = Loop(Counter(), None, 4, 1)
    seen = list(loop)
    assert len(seen) == 4
    assert all(progress.best and progress.dev == {} for progress in seen)
    assert loop.model.value == 4


@pytest.mark.parametrize("at", range(6))
def test_interrupted_and_resumed(at: int, tmp_path: Path) -> None:
    """Through a file, where dev scores come back in another order: the first side still decides."""
    scores = [1.0, 5.0, 3.0, 6.0, 2.0, 1.0]
    whole = loop_over(scores, 6, 2)
    first = loop_over(scores, 6, 2)
    expected = [replace(progress, seconds=0) for progress in whole]
    for _ in range(at):
        first.step()
    header, tensors = first.state()
    storage.save(tmp_path / "checkpoint", header, tensors)
    second = loop_over(scores, 6, 2)
    read = storage.load(tmp_path / "checkpoint")
    second.restore(dict(read[0]), dict(read[1]))
    list(second)
    assert [replace(progress, seconds=0) for progress in second.history] == expected
    assert second.model.value == whole.model.value == 4
    assert second.tokens == whole.tokens


# Learners -----------------------------------------------------------------------------------------------------------

CRF = {"eta": 0.4, "c2": 0.3, "batch": 2, "dropout": 0.2, "sample": 0, "common": 50.0}
ONLINE = {"dropout": 0.2, "sample": 0}
KINDS: list[tuple[Any, dict[str, Any]]] = [
    (CrfLearner, CRF),
    (OnlineLearner, ONLINE),
    (OnlineLearner, {**ONLINE, "C": 0.1, "margin": "one"}),
]
learners = pytest.mark.parametrize(("kind", "settings"), KINDS)


def chain_of(problem: LearningProblem) -> Chain:
    names = tuple("abcdefgh"[: problem.n_labels])
    featurizer = Featurizer(["w0"], "word")
    zero = replace(problem.table, weights=np.zeros_like(problem.table.weights))
    return Chain(names, "pos", featurizer, zero, 0 * problem.trans, 0 * problem.start, 0 * problem.end)


def learner_on(kind: Any, settings: dict[str, Any], seed: int = 3, problem: LearningProblem | None = None) -> Any:
    problem = problem or random_problem(4, lengths=(3, 2, 0, 4, 1, 3), known=0.9)
    data = TrainingData(problem.features, problem.labels, problem.sets, problem.sentences)
    return kind(chain_of(problem), data, settings, seed)


def assert_same_numbers(one: dict[str, Any], two: dict[str, Any]) -> None:
    assert one.keys() == two.keys()
    for name, array in one.items():
        np.testing.assert_array_equal(array, two[name], err_msg=name)


@learners
def test_a_learner_restored_goes_on_to_the_bit(kind: Any, settings: dict[str, Any]) -> None:
    whole = learner_on(kind, settings)
    for number in (1, 2, 3, 4):
        whole.epoch(number)
    for at in (0, 2, 3):
        first = learner_on(kind, settings)
        for number in range(1, at + 1):
            first.epoch(number)
        second = learner_on(kind, settings)
        second.restore({name: np.array(array) for name, array in first.tensors().items()})
        for number in range(at + 1, 5):
            second.epoch(number)
        assert_same_numbers(second.tensors(), whole.tensors())
        assert_same_numbers(second.current().numbers(), whole.current().numbers())


@learners
def test_the_seed_and_the_epoch_decide_everything(kind: Any, settings: dict[str, Any]) -> None:
    one, two, other = (learner_on(kind, settings, seed) for seed in (3, 3, 4))
    for learner in (one, two, other):
        learner.epoch(1)
    assert_same_numbers(one.tensors(), two.tensors())
    assert any(np.any(one.tensors()[name] != other.tensors()[name]) for name in ("weights",))


@learners
def test_the_model_is_a_copy(kind: Any, settings: dict[str, Any]) -> None:
    learner = learner_on(kind, settings)
    learner.epoch(1)
    model = learner.current()
    before = {name: array.copy() for name, array in model.numbers().items()}
    learner.epoch(2)
    assert_same_numbers(model.numbers(), before)


@learners
def test_a_checkpoint_of_other_data_is_refused(kind: Any, settings: dict[str, Any]) -> None:
    learner = learner_on(kind, settings)
    other = learner_on(kind, settings, problem=random_problem(5, n_labels=2))
    with pytest.raises(DuilianError, match="other data"):
        learner.restore(other.tensors())
    with pytest.raises(DuilianError, match="other data"):
        restore({"weights": np.zeros(3)}, {})


def test_the_rate_is_calibrated_once_and_kept() -> None:
    learner = learner_on(CrfLearner, {**CRF, "eta": 0.0})
    assert learner.tensors()["eta"][0] == 0
    learner.epoch(1)
    rate = float(learner.tensors()["eta"][0])
    assert rate > 0
    assert np.log2(rate / 0.1) == pytest.approx(round(np.log2(rate / 0.1)), abs=1e-9)
    learner.epoch(2)
    assert learner.tensors()["eta"][0] == rate


def test_calibration_leaves_the_learner_as_it_was() -> None:
    learner = learner_on(CrfLearner, {**CRF, "eta": 0.0})
    before = {name: array.copy() for name, array in learner.tensors().items()}
    learner.calibrate()
    assert_same_numbers(learner.tensors(), before)


def test_a_rate_that_runs_away_is_an_error_that_names_another() -> None:
    learner = learner_on(CrfLearner, {**CRF, "eta": 1e30, "c2": 0.0})
    with pytest.raises(DuilianError, match=r"ran away.*--set eta=2\.5e\+29"):
        _ = [learner.epoch(number) for number in range(1, 9)]


def test_sentences_that_cannot_be_labelled_do_not_stop_training() -> None:
    """Two of six sentences have labels that the grammar forbids."""
    problem = random_problem(4, lengths=(2, 2, 3, 2, 3, 2), known=1.0)
    labels = problem.labels.copy()
    labels[:4] = [0, 1, 0, 1]
    labels[4:] = 2
    trans = np.zeros_like(problem.trans)
    trans[0, 1] = -np.inf
    data = TrainingData(problem.features, labels, problem.sets, problem.sentences)
    chain = replace(chain_of(problem), trans=trans)
    for kind, settings in KINDS:
        learner = kind(chain, data, settings, 1)
        objectives = [learner.epoch(number)[0] for number in range(1, 13)]
        assert np.all(np.isfinite(objectives))
        assert learner.current().trans[0, 1] == -np.inf
        assert np.isfinite(learner.current().trans).sum() == trans.size - 1


def test_the_scale_is_folded_into_the_weights_before_it_vanishes() -> None:
    learner = learner_on(CrfLearner, {**CRF, "c2": 4.0, "eta": 0.5})
    for number in range(1, 12):
        learner.epoch(number)
    assert 1e-4 <= learner.tensors()["scale"][0] <= 1
    assert np.all(np.isfinite(learner.current().rows.weights))


# Data ---------------------------------------------------------------------------------------------------------------


def test_orders_come_from_the_seed_and_the_epoch() -> None:
    orders = {(seed, epoch): tuple(shuffled(20, seed, epoch).tolist()) for seed in (1, 2) for epoch in (1, 2)}
    assert len(set(orders.values())) == 4
    assert all(sorted(order) == list(range(20)) for order in orders.values())
    assert tuple(shuffled(20, 1, 2).tolist()) == orders[1, 2]


@pytest.mark.parametrize(("sample", "n"), [(0, 20), (7, 7), (20, 20), (50, 20)])
def test_a_sample_is_drawn_without_replacement(sample: int, n: int) -> None:
    order = shuffled(20, 1, 1, sample).tolist()
    assert len(order) == len(set(order)) == n
    assert set(order) <= set(range(20))


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_dropout_leaves_out_that_share_and_keeps_the_order(rate: float) -> None:
    problem = random_problem(1, lengths=(700,))
    whole = problem.features
    one, again, other = (dropout(whole, rate, seed, []) for seed in (5, 5, 6))
    n = int(one.offsets[-1])
    share = 1 - n / len(whole.data)
    # Five standard errors of a share of about a thousand.
    assert share == pytest.approx(rate, abs=5 * np.sqrt(rate * (1 - rate) / len(whole.data)))
    np.testing.assert_array_equal(one.data[:n], again.data[:n])
    assert int(other.offsets[-1]) != n or np.any(other.data[:n] != one.data[:n])
    for unit in range(700):
        kept = iter(whole.data[whole.offsets[unit] : whole.offsets[unit + 1]].tolist())
        assert all(row in kept for row in one.data[one.offsets[unit] : one.offsets[unit + 1]].tolist())


def test_no_dropout_is_the_same_object_and_room_is_used_again() -> None:
    features = random_problem(1).features
    assert dropout(features, 0, 1, []) is features
    room: list[Any] = []
    assert dropout(features, 0.5, 1, room).data is dropout(features, 0.5, 2, room).data


def test_sentences_are_cut_behind_marks() -> None:
    text = np.array([ord(c) for c in "ab。c。。de"], np.uint32)
    starts = np.arange(8)
    units = Units(text, starts, starts + 1, np.array([0, 2, 8]))
    assert cut_at(units, "").tolist() == [0, 2, 8]
    assert cut_at(units, "。").tolist() == [0, 2, 3, 5, 6, 8]
    assert cut_at(units, "e").tolist() == [0, 2, 8]
    words = Units(text, np.array([0, 2, 4]), np.array([2, 4, 8]), np.array([0, 3]))
    assert cut_at(words, "。").tolist() == [0, 3], "a mark inside a word is none"


@pytest.mark.parametrize("task", ["seg", "segpos"])
def test_no_word_is_cut_in_two(task: str) -> None:
    """北 is in 北京 alone: to cut behind it changes nothing. 京 ends the word: that is a cut."""
    runs = [begin("perceptron", task, epochs=2, split=marks) for marks in ("", "北", "京")]
    for run in runs:
        list(run)
    whole, inside, behind = (run.loop.model.numbers() for run in runs)
    assert_same_numbers(inside, whole)
    assert any(np.any(behind[name] != whole[name]) for name in whole)


def test_progress_is_a_record() -> None:
    progress = next(iter(begin("perceptron", "pos", toy_sentences(3), epochs=1)))
    assert isinstance(progress, Progress)
    assert (progress.epoch, progress.epochs, progress.tokens) == (1, 1, 10)


@pytest.mark.parametrize("hide", [0.2, 0.7])
def test_a_unit_loses_all_its_rare_features_or_none(hide: float) -> None:
    problem = random_problem(1, lengths=(700,))
    whole = problem.features
    rare = np.zeros(int(whole.data.max()) + 1, np.bool_)
    rare[::2] = True
    thinned = dropout(whole, 0.0, 5, [], rare, hide)
    has = lost = 0
    for unit in range(700):
        before = whole.data[whole.offsets[unit] : whole.offsets[unit + 1]].tolist()
        after = thinned.data[thinned.offsets[unit] : thinned.offsets[unit + 1]].tolist()
        common = [row for row in before if not rare[row]]
        assert after in (before, common)
        if len(common) < len(before):
            has += 1
            lost += after == common
    assert has > 100
    # Five standard errors of a share.
    assert lost / has == pytest.approx(hide, abs=5 * np.sqrt(hide * (1 - hide) / has))
