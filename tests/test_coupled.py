"""The coupled model against enumeration: gradients, marginals and best bundles under every space; its learner."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import coupled as naive

from duilian.corpus import build
from duilian.errors import SettingError
from duilian.features import Featurizer
from duilian.methods import Side, train
from duilian.models.candidates import Candidates, Given, mapped_lattice
from duilian.models.coupled import Coupled
from duilian.models.joint_rows import build_joint_rows
from duilian.models.side_model import SideModel, empty_side
from duilian.models.spaces import Batch, GridSpace, LatticeSpace, side_nodes
from duilian.models.weights import Features, build_rows
from duilian.ragged import Ragged, offsets_of
from duilian.training.coupled import LEAST, MOST, CoupledLearner, side_dropout
from duilian.training.parts import Parts

FAST = 3e-5
"""Absolute: float32 probabilities of short sentences."""
FAST_LOG = 2e-4
"""Absolute: float32 logarithms of sums."""
NAMES = ("abc", "xy", "pq")
N_ROWS = 4


@dataclass
class Problem:
    """A model with weights, sentences, and what is known of them."""

    model: Coupled
    batch: Batch
    rows: list[list[int]]
    allowed: list[list[list[int]]]

    @property
    def sizes(self) -> list[int]:
        return self.model.sizes

    def sentences(self) -> list[tuple[int, int]]:
        return list(itertools.pairwise(self.batch.sentences.tolist()))

    def weights(self) -> naive.Weights:
        """The model as the twin takes it."""
        found: naive.Weights = {}
        for s, side in enumerate(self.model.sides):
            for row, label, value in entries(side.rows.offsets, side.rows.labels, side.rows.weights):
                found["separate", s, row, label] = value
            for i, j in itertools.product(range(len(side.names)), repeat=2):
                found["trans", s, i, j] = float(side.trans[i, j])
            for i in range(len(side.names)):
                found["start", s, i], found["end", s, i] = float(side.start[i]), float(side.end[i])
        joint = self.model.joint
        for row, code, value in entries(joint.offsets, joint.codes, joint.weights):
            found["joint", row, self.bundle(code)] = value
        for key, value in zip(self.model.pair_keys.tolist(), self.model.pair_weights.tolist(), strict=True):
            found["pair", self.bundle(key // self.model.n_codes), self.bundle(key % self.model.n_codes)] = value
        return found

    def bundle(self, code: int) -> naive.Bundle:
        labels = []
        for size in reversed(self.sizes):
            labels.append(code % size)
            code //= size
        return tuple(reversed(labels))

    def code(self, bundle: naive.Bundle) -> int:
        return int(np.ravel_multi_index(bundle, self.sizes))

    def fits(self, unit: int, bundle: naive.Bundle) -> bool:
        return all(label in self.allowed[s][unit] for s, label in enumerate(bundle))


def entries(offsets: Any, labels: Any, weights: Any) -> list[tuple[int, int, float]]:
    return [
        (row, int(labels[at]), float(weights[at]))
        for row in range(len(offsets) - 1)
        for at in range(offsets[row], offsets[row + 1])
    ]


def random_problem(
    seed: int, *, n_sides: int = 2, lengths: tuple[int, ...] = (2, 0, 1, 3), known: float = 0.5, joint: bool = True,
    pairs: bool = False, spread: float = 1.0,
) -> Problem:  # fmt: skip
    rng = np.random.default_rng(seed)
    names = NAMES[:n_sides]
    sizes = [len(one) for one in names]
    n = sum(lengths)
    rows = [sorted(set(rng.integers(0, N_ROWS, rng.integers(0, 4)).tolist())) for _ in range(n)]
    ragged = Ragged.from_rows(rows, np.int32)
    labels, sets, allowed = [], [], []
    for size in sizes:
        some = [sorted(rng.permutation(size)[: rng.integers(1, size + 1)].tolist()) for _ in range(2)]
        here = np.where(rng.random(n) < known, rng.integers(0, size, n), rng.integers(-3, 0, n)).astype(np.int32)
        labels.append(here)
        sets.append(Ragged.from_rows(some, np.int32))
        allowed.append([[k] if k >= 0 else list(range(size)) if k == -1 else some[-2 - k] for k in here.tolist()])
    given = tuple(Given(one, some) for one, some in zip(labels, sets, strict=True))

    def values(*shape: int) -> Any:
        return (rng.normal(size=shape) * spread).astype(np.float32)

    sides = []
    for name, one, some in zip(names, labels, sets, strict=True):
        empty = empty_side(list(name), "pos", "BIES", build_rows(N_ROWS, len(name), [(ragged, one, some)], 0.9))
        weights = replace(empty.rows, weights=values(len(empty.rows.labels)))
        size = len(name)
        sides.append(SideModel(empty.names, weights, values(size, size), values(size), values(size)))
    n_codes = int(np.prod(sizes))
    runs = [
        [int(np.ravel_multi_index(bundle, sizes)) for bundle in itertools.product(*(side[u] for side in allowed))]
        for u in range(n)
    ]
    if joint:
        flat = np.array([code for run in runs for code in run], np.int32)
        kinds = np.arange(n, dtype=np.int32)
        table = build_joint_rows(
            N_ROWS, n_codes, ragged.data, ragged.offsets, kinds, offsets_of([len(run) for run in runs]), flat
        )
    else:
        none = np.zeros(0, np.int32)
        table = build_joint_rows(N_ROWS, n_codes, none, np.zeros(1, np.int64), none, np.zeros(1, np.int64), none)
    table = table.with_weights(values(len(table.codes)))
    keys = np.arange(n_codes**2) if pairs else np.zeros(0, np.int64)
    featurizer = Featurizer(["w0"], "word", keys=np.arange(N_ROWS, dtype=np.uint64))
    model = Coupled("pos", "BIES", featurizer, tuple(sides), table, keys, values(len(keys)))
    features = Features(ragged.data, ragged.offsets)
    return Problem(model, Batch((features,) * (n_sides + 1), offsets_of(lengths), given), rows, allowed)


problems = st.builds(
    random_problem, st.integers(0, 2**32 - 1), n_sides=st.sampled_from([1, 2, 2, 3]), joint=st.booleans(),
    pairs=st.booleans(),
)  # fmt: skip


def check_gradient(problem: Problem, space: Any, candidates: list[list[naive.Bundle]]) -> None:
    """log-likelihoods and gradients of a space, when these bundles compete at each unit."""
    weights, found = problem.weights(), space.gradient(problem.model, problem.model.numbers(), 1.0, problem.batch)
    nodes = [np.zeros_like(node) for node in found.nodes]
    tables = [np.zeros((size, size)) for size in problem.sizes]
    joint = np.zeros((problem.batch.n_units, problem.model.n_codes))
    pairs = np.zeros((problem.model.n_codes,) * 2)
    for s, (begin, end) in enumerate(problem.sentences()):
        whole = naive.ways(candidates[begin:end])
        inside = [way for way in whole if all(problem.fits(begin + t, bundle) for t, bundle in enumerate(way))]
        if not inside:
            assert found.log_likelihood[s] == -np.inf
            continue
        value, _ = naive.gradient(weights, problem.rows[begin:end], inside, whole)
        assert found.log_likelihood[s] == pytest.approx(value, abs=FAST_LOG)
        # units of their own, so that each gets its own expectations
        for sign, some in ((1, inside), (-1, whole)):
            log_z = naive.log_total(weights, problem.rows[begin:end], some)
            for way in some:
                p = sign * np.exp(naive.score(weights, problem.rows[begin:end], way) - log_z)
                for t, bundle in enumerate(way):
                    joint[begin + t, problem.code(bundle)] += p
                    for side, label in enumerate(bundle):
                        nodes[side][begin + t, label] += p
                        if t:
                            tables[side][way[t - 1][side], label] += p
                    if t:
                        pairs[problem.code(way[t - 1]), problem.code(bundle)] += p
    for side, (node, table) in enumerate(zip(nodes, tables, strict=True)):
        np.testing.assert_allclose(found.nodes[side], node, atol=FAST)
        np.testing.assert_allclose(found.counts[side], table, atol=FAST)
    if found.lattice is not None:
        rows = np.repeat(np.arange(problem.batch.n_units), np.diff(found.lattice.space.starts))
        codes = [problem.code(tuple(bundle)) for bundle in found.lattice.labels.tolist()]
        np.testing.assert_allclose(found.joint, joint[rows, codes], atol=FAST)
    elif found.joint is not None:
        np.testing.assert_allclose(found.joint, joint, atol=FAST)
    if len(problem.model.pair_keys):
        np.testing.assert_allclose(found.pairs, pairs.ravel()[problem.model.pair_keys], atol=FAST)


def complete(problem: Problem) -> list[list[naive.Bundle]]:
    return [naive.all_bundles(problem.sizes)] * problem.batch.n_units


@given(problems)
def test_gradients_over_all_bundles_equal_enumeration(problem: Problem) -> None:
    check_gradient(problem, LatticeSpace(), complete(problem))
    check_gradient(problem, GridSpace(), complete(problem))


@given(problems, st.integers(0, 2**32 - 1))
def test_gradients_over_candidates_equal_enumeration(problem: Problem, seed: int) -> None:
    rng = np.random.default_rng(seed)
    lists: list[list[list[int]]] = []
    for s, size in enumerate(problem.sizes):
        lists.append(
            [
                sorted({*problem.allowed[s][u], *rng.permutation(size)[: rng.integers(0, size)].tolist()})
                for u in range(problem.batch.n_units)
            ]
        )
    kept = Candidates.of([Ragged.from_rows(side, np.int32) for side in lists], problem.sizes)
    problem.batch = replace(problem.batch, candidates=kept)
    bundles = [list(itertools.product(*(side[u] for side in lists))) for u in range(problem.batch.n_units)]
    check_gradient(problem, LatticeSpace(), bundles)


@given(problems, st.integers(0, 2**32 - 1))
def test_gradients_under_a_mapping_equal_enumeration(problem: Problem, seed: int) -> None:
    """Where the mapping knows none of the allowed bundles of a unit, those stay; where it knows some, only they."""
    table = np.random.default_rng(seed).random(problem.sizes) < 0.6
    bundles = []
    for u in range(problem.batch.n_units):
        every = naive.all_bundles(problem.sizes)
        known = [one for one in every if table[one]]
        if not known:
            known = every
        if not any(problem.fits(u, one) for one in known):
            known = [one for one in every if one in known or problem.fits(u, one)]
        bundles.append(known)
    full = Candidates.full(problem.batch.n_units, problem.sizes)
    problem.batch = replace(problem.batch, candidates=full)
    check_gradient(problem, LatticeSpace(table), bundles)


@given(problems)
def test_marginals_and_best_bundles_under_given_labels(problem: Problem) -> None:
    """Given labels are all that is possible, as in conversion."""
    weights = problem.weights()
    listed = Candidates.of(
        [one.lists(size) for one, size in zip(problem.batch.given, problem.sizes, strict=True)], problem.sizes
    )
    for space, batch in ((GridSpace(), problem.batch), (LatticeSpace(), replace(problem.batch, candidates=listed))):
        found, best = space.marginals(problem.model, batch), space.best(problem.model, batch)
        for s, (begin, end) in enumerate(problem.sentences()):
            if begin == end:
                continue
            rows = problem.rows[begin:end]
            every = naive.ways(
                [[one for one in naive.all_bundles(problem.sizes) if problem.fits(u, one)] for u in range(begin, end)]
            )
            assert found.log_z[s] == pytest.approx(naive.log_total(weights, rows, every), abs=FAST_LOG)
            expected = naive.expectations(weights, rows, every)
            assert expected
            top = max(naive.score(weights, rows, way) for way in every)
            way = tuple(map(tuple, best[begin:end].tolist()))
            assert naive.score(weights, rows, way) == pytest.approx(top, abs=FAST_LOG)
            for side, size in enumerate(problem.sizes):
                np.testing.assert_allclose(found.sides[side][begin:end].sum(axis=1), 1, atol=FAST)
                for label in range(size):
                    for u in range(begin, end):
                        if label not in problem.allowed[side][u]:
                            assert found.sides[side][u, label] == 0


def test_n_best_and_spans_equal_enumeration() -> None:
    problem = random_problem(5, lengths=(3,), known=0.0)
    weights, space = problem.weights(), LatticeSpace()
    batch = replace(problem.batch, given=tuple(Given.nothing(3) for _ in problem.sizes))
    every = naive.ways(complete(problem))
    log_z = naive.log_total(weights, problem.rows, every)
    chances = {way: np.exp(naive.score(weights, problem.rows, way) - log_z) for way in every}
    best = sorted(chances, key=lambda way: -chances[way])[:7]
    (found,) = space.n_best(problem.model, batch, 7)
    assert [tuple(map(tuple, path.tolist())) for _, path in found] == best
    np.testing.assert_allclose([p for p, _ in found], [chances[way] for way in best], rtol=1e-4)
    labels = np.array([1, 0, 1], np.int32)
    spans = np.array([0, 2, 3])
    wanted = [
        sum(p for way, p in chances.items() if all(way[t][1] == labels[t] for t in range(a, b)))
        for a, b in itertools.pairwise(spans.tolist())
    ]
    np.testing.assert_allclose(space.spans(problem.model, batch, 1, labels, spans), wanted, atol=FAST)


def test_a_side_of_one_tag_changes_nothing() -> None:
    """log Z and marginals are those of the plain chain at equal weights."""
    both = random_problem(3, n_sides=2, joint=False, lengths=(4, 3))
    side = both.model.sides[0]
    one = empty_side(
        ["z"],
        "pos",
        "BIES",
        build_rows(
            N_ROWS, 1, [(Ragged.from_rows([], np.int32), np.zeros(0, np.int32), Ragged.from_rows([], np.int32))]
        ),
    )
    none = build_joint_rows(
        N_ROWS, 3, np.zeros(0, np.int32), np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(1, np.int64),
        np.zeros(0, np.int32),
    )  # fmt: skip
    coupled = replace(both.model, sides=(side, one), joint=none)
    alone = replace(coupled, sides=(side,))
    units = both.batch.n_units
    pair = replace(both.batch, given=(Given.nothing(units), Given.nothing(units)))
    single = replace(both.batch, features=both.batch.features[:2], given=pair.given[:1])
    from duilian.inference.chain import runs_of
    from duilian.inference.paths import Posteriors

    zero = np.zeros(3)
    node = side_nodes(coupled, coupled.numbers(), 1.0, pair)[0].astype(np.float64)
    plain = Posteriors(node, pair.sentences, side.trans.astype(np.float64), zero, zero, runs_of(np.ones((3, 3), bool)))
    for space in (LatticeSpace(), GridSpace()):
        with_one, without = space.marginals(coupled, pair), space.marginals(alone, single)
        np.testing.assert_allclose(with_one.sides[0], plain.marginals, atol=1e-6)
        np.testing.assert_allclose(with_one.log_z, plain.log_z, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(without.log_z, plain.log_z, rtol=1e-6, atol=1e-6)


def test_a_mapping_leaves_what_it_does_not_know_where_nothing_else_is_left() -> None:
    lists = [Ragged.from_rows([[0, 1], [0], [2]], np.int32), Ragged.from_rows([[0, 1], [0], [0, 1]], np.int32)]
    space = Candidates.of(lists, (3, 2)).lattice(np.array([0, 3]))
    table = np.zeros((3, 2), np.bool_)
    table[0, 1] = table[2, 0] = True
    found = mapped_lattice(space, table)
    labels = [found.labels[a:b].tolist() for a, b in itertools.pairwise(found.space.starts.tolist())]
    assert labels == [[[0, 1]], [[0, 0]], [[2, 0]]]
    wanted = (Given(np.array([1, 0, 2], np.int32)), Given(np.array([-1, -1, 1], np.int32)))
    found = mapped_lattice(space, table, wanted)
    labels = [found.labels[a:b].tolist() for a, b in itertools.pairwise(found.space.starts.tolist())]
    assert labels == [[[0, 1], [1, 0], [1, 1]], [[0, 0]], [[2, 0], [2, 1]]]


# Learning -----------------------------------------------------------------------------------------------------------

SETTINGS = {
    "sample": ("0",), "eta": 0.05, "c2": 0.0, "rare": 0, "hide": 0.0, "dropout": 0.0, "side_dropout": ("0",),
    "common": 1e9, "batch": 100,
}  # fmt: skip


def learner_of(problem: Problem, space: Any, threads: int = 1, **settings: Any) -> CoupledLearner:
    batch = problem.batch
    homes = np.zeros(len(batch.sentences) - 1, np.int8)
    parts = Parts(batch.features[0], batch.sentences, batch.given, homes)
    return CoupledLearner(problem.model, parts, space, None, SETTINGS | settings, 1, threads)


@pytest.mark.parametrize("space", [LatticeSpace(), GridSpace()], ids=["bundles", "grid"])
@pytest.mark.parametrize("pairs", [False, True])
def test_a_step_goes_up_the_gradient(space: Any, pairs: bool) -> None:
    """Every weight moves by eta times the derivative that the twin finds."""
    problem = random_problem(11, pairs=pairs)
    weights = problem.weights()
    learner = learner_of(problem, space)
    learner.epoch(1)
    problem.model = problem.model.with_numbers(learner.now)
    moved = problem.weights()
    slopes: dict[Any, float] = {}
    for begin, end in problem.sentences():
        whole = naive.ways(complete(problem)[begin:end])
        inside = [way for way in whole if all(problem.fits(begin + t, one) for t, one in enumerate(way))]
        for name, slope in naive.gradient(weights, problem.rows[begin:end], inside, whole)[1].items():
            slopes[name] = slopes.get(name, 0.0) + slope
    assert max(map(abs, slopes.values())) > 0.1
    # An epoch is cut into parts; sentences fall into different batches, so the later ones start from moved weights.
    for name, before in weights.items():
        assert moved[name] - before == pytest.approx(0.05 * slopes.get(name, 0.0), abs=0.01), name


@pytest.mark.parametrize("space", [LatticeSpace(), GridSpace()], ids=["bundles", "grid"])
def test_threads_change_no_bit(space: Any) -> None:
    found = []
    for threads in (1, 2):
        learner = learner_of(random_problem(7, lengths=(3, 2, 4, 1, 2, 3)), space, threads, dropout=0.2, batch=6)
        for number in (1, 2):
            learner.epoch(number)
        found.append(learner.current().numbers())
    for name, array in found[0].items():
        np.testing.assert_array_equal(array, found[1][name], err_msg=name)


def test_learning_raises_the_likelihood() -> None:
    learner = learner_of(random_problem(2, lengths=(3, 2, 4, 1, 2, 3)), LatticeSpace(), batch=2)
    values = [learner.epoch(number)[0] for number in range(1, 8)]
    assert values[-1] > values[0] + 0.5


def test_a_forecast_counts_the_units_of_an_epoch_and_changes_nothing() -> None:
    learner = learner_of(random_problem(2, lengths=(3, 2, 4, 1, 2, 3)), LatticeSpace(), batch=2, sample=("4",))
    learner.epoch(1)
    before = {name: array.copy() for name, array in learner.tensors().items()}
    units, seconds = learner.forecast()
    assert 4 <= units <= 13
    assert 0 < seconds < 60
    for name, array in learner.tensors().items():
        np.testing.assert_array_equal(array, before[name])
    assert learner_of(random_problem(2, lengths=()), LatticeSpace()).forecast() == (0, 0.0)


def test_a_side_hides_what_is_rare_in_its_own_corpora_alone() -> None:
    """Two corpora: what the first has rarely is hidden from the first side at its own units, from no other."""
    problem = random_problem(1, lengths=(2, 2), known=1.0)
    units = problem.batch.n_units
    rows = Ragged.from_rows([[0, 1], [0, 1], [0, 1], [0, 1]], np.int32)
    given = (Given(np.array([0, 0, -1, -1], np.int32)), Given(np.array([-1, -1, 0, 0], np.int32)))
    homes = np.array([0, 1], np.int8)
    parts = Parts(Features(rows.data, rows.offsets), np.array([0, 2, 4]), given, homes)
    settings = SETTINGS | {"rare": 2, "hide": 0.9}
    learner = CoupledLearner(problem.model, parts, LatticeSpace(), None, settings, 1)
    assert learner.rare.tolist() == [[True] * N_ROWS, [True] * N_ROWS]
    hidden = np.zeros((3, units), np.int64)
    for seed in range(60):
        batch = learner._lay_out(np.array([0, 1]), seed).batch
        for view, features in enumerate(batch.features):
            hidden[view] += np.diff(features.offsets) == 0
    assert (hidden[0] > 40).tolist() == [True, True, False, False]
    assert (hidden[1] > 40).tolist() == [False, False, True, True]
    assert not hidden[2].any(), "joint features are never hidden"
    assert hidden[0, 2:].sum() == hidden[1, :2].sum() == 0


def test_a_side_starts_from_a_chain() -> None:
    problem = random_problem(4)
    chain = problem.model.sides[0]
    more = build_rows(
        N_ROWS,
        3,
        [(Ragged.from_rows([[0, 1, 2, 3]], np.int32), np.array([-1], np.int32), Ragged.from_rows([], np.int32))],
    )
    begun = empty_side(list("abc"), "pos", "BIES", more).starting_from(chain, 2.0)
    whole = {(row, label): value for row, label, value in entries(more.offsets, more.labels, begun.rows.weights)}
    for row, label, value in entries(chain.rows.offsets, chain.rows.labels, chain.rows.weights):
        assert whole.pop((row, label)) == np.float32(2 * value)
    assert set(whole.values()) <= {0.0}
    np.testing.assert_array_equal(begun.trans, chain.trans)


def test_sides_and_joint_features_are_thinned_at_rates_of_their_own() -> None:
    problem = random_problem(1, lengths=(200,), known=1.0)
    parts = Parts(problem.batch.features[0], problem.batch.sentences, problem.batch.given, np.zeros(1, np.int8))
    settings = SETTINGS | {"hide": 0.0, "dropout": 0.5, "side_dropout": ("0.9", "0.0")}
    learner = CoupledLearner(problem.model, parts, LatticeSpace(), None, settings, 1)
    batch = learner._lay_out(np.array([0]), 1).batch
    left = [int(view.offsets[-1]) / len(problem.batch.features[0].data) for view in batch.features]
    assert left == pytest.approx([0.1, 1.0, 0.5], abs=0.1)
    learner.means = {name: np.ones_like(mean) for name, mean in learner.means.items()}
    current = learner.current()
    assert set(current.sides[0].rows.weights.tolist()) == {np.float32(0.1)}
    assert set(current.sides[1].rows.weights.tolist()) == {1.0}
    assert set(current.joint.weights.tolist()) == {0.5}
    assert set(current.sides[0].trans.ravel().tolist()) == {1.0}


def test_a_small_corpus_leaves_out_most_of_its_separate_features_a_large_one_few() -> None:
    settings = {"side_dropout": ("auto",)}
    small, medium, large = side_dropout(settings, [5_000, 300_000, 5_000_000])
    assert small == MOST
    assert LEAST < medium < MOST
    assert large == LEAST
    assert side_dropout(settings, [5_000, 5_000_000], words=False) == (LEAST, LEAST)
    assert side_dropout({"side_dropout": ("0.5",)}, [1, 2]) == (0.5, 0.5)
    assert side_dropout({"side_dropout": ("0.5", "0.2")}, [1, 2]) == (0.5, 0.2)


@pytest.mark.parametrize("setting", ["dropout=2", "dropout=much", "side_dropout=1", "side_dropout=0.1,0.2,0.3"])
def test_dropouts_that_make_no_sense(setting: str) -> None:
    name, value = setting.split("=")
    sides = [Side(side, build([(["我"], ["r"])])) for side in "ab"]
    with pytest.raises(SettingError, match=f"{name}"):
        train("coupled", sides, "pos", {name: value})
