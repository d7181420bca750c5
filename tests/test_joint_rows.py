"""Rows of joint weights: scores at candidates and changes to them, however long a row is, against dictionaries."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from naive import weights as naive

from duilian.inference.lattice import product, room_for_token
from duilian.models.joint_rows import JointRows, add_hits, no_hits, room_for_hits, score_candidates
from duilian.models.weights import Features
from duilian.ragged import Ragged

SIZES = (20, 13)
N_CODES = SIZES[0] * SIZES[1]
N_ROWS = 6


def lists(rng: Any, n: int, size: int, most: int) -> Ragged:
    return Ragged.from_rows(
        [np.sort(rng.choice(size, rng.integers(1, most + 1), replace=False)).astype(np.int32) for _ in range(n)],
        np.int32,
    )


def random_rows(rng: Any) -> JointRows:
    """Some rows without a code, some with a few, some with so many that they have maps, one with all."""
    sizes = [0, 3, 40, 70, 150, N_CODES]
    codes = [np.sort(rng.choice(N_CODES, size, replace=False)).astype(np.int32) for size in sizes]
    flat = Ragged.from_rows(codes, np.int32)
    return JointRows(N_CODES, flat.offsets, flat.data, rng.normal(size=len(flat.data)).astype(np.float32))


@given(st.integers(0, 10**6), st.integers(1, 4), st.sampled_from([1, 4, 13]))
def test_long_and_short_rows_are_scored_and_changed_alike(seed: int, n_units: int, most: int) -> None:
    rng = np.random.default_rng(seed)
    rows = random_rows(rng)
    features = [rng.integers(0, N_ROWS, rng.integers(0, 5)).tolist() for _ in range(n_units)]
    flat = Ragged.from_rows([np.array(one, np.int32) for one in features], np.int32)
    sides = [lists(rng, n_units, size, min(size, most)) for size in SIZES]
    lattice = product(np.array([0, n_units], np.int64), sides, SIZES)
    space = lattice.space
    table = {
        (row, int(rows.codes[e])): float(rows.weights[e])
        for row in range(N_ROWS)
        for e in range(rows.offsets[row], rows.offsets[row + 1])
    }
    bundles = [
        [int(a) * SIZES[1] + int(b) for a in sides[0][t].tolist() for b in sides[1][t].tolist()] for t in range(n_units)
    ]
    expected = []
    for t in range(n_units):
        scores = naive.score(features[t], table, N_CODES)
        expected.append([scores[code] for code in bundles[t]])

    sparse, seen = rows.sparse(), Features(flat.data, flat.offsets)
    scratch, where = room_for_token(space), np.full(N_CODES, -1, np.int32)
    hits = room_for_hits(sparse, seen, space)
    for written in (no_hits(), hits):
        node = np.zeros(lattice.n_bundles, np.float32)
        score_candidates(sparse, seen, space, 0, n_units, np.float32(2), scratch, where, node, written)
        np.testing.assert_allclose(node, 2 * np.concatenate(expected), rtol=0, atol=1e-5)
    assert np.all(where == -1)

    delta, rates = rng.normal(size=lattice.n_bundles).astype(np.float32), rng.random(N_ROWS).astype(np.float32)
    parts = {}
    for n_parts in (1, 2):
        parts[n_parts] = rows.weights.copy()
        for part in range(n_parts):
            add_hits(rows.sparse(parts[n_parts]), rates, seen, hits, part, n_parts, delta)
    assert parts[1].tobytes() == parts[2].tobytes(), "who changes a row does not matter"
    for t in range(n_units):
        change = [0.0] * N_CODES
        for code, value in zip(bundles[t], delta[space.starts[t] : space.starts[t + 1]].tolist(), strict=True):
            change[code] = value
        table = naive.add(features[t], table, change, rates.tolist())
    np.testing.assert_allclose(parts[1], list(table.values()), rtol=0, atol=1e-5)
