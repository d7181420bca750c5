"""From tags to labels of characters: which positions of the words of two sides may meet (qiu2013 section 4, li2016)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from duilian.errors import SettingError
from duilian.mapping.rules import matching
from duilian.mapping.table import Mapping, make
from duilian.standards.schemes import Scheme, scheme, split_label

# Roles of a character in the words of two sides that may meet: single, begin, middle, end, in this order.
_SAME = np.eye(4, dtype=np.bool_)
_FINER = np.array([[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 1], [1, 0, 0, 1]], dtype=np.bool_)
LIFTS: dict[str, NDArray[np.bool_]] = {
    "same": _SAME,
    "finer": _FINER,
    "coarser": _FINER.T,
    "nested": _FINER | _FINER.T,
    "free": np.ones((4, 4), dtype=np.bool_),
}
"""same: t1 <-> t2 gives B@t1 <-> B@t2 and so on (qiu2013). finer: the later side may cut the word further
(B@NR <-> S@nrf, E@NR <-> E@nrg). coarser: the other way about. nested: either.
free: any two prefixes, as the complete space has it."""


def lift(
    mapping: Mapping,
    labels: Sequence[Sequence[str]],
    mode: str = "same",
    special: Sequence[tuple[str, ...]] = (),
    special_mode: str = "nested",
    scheme_name: str = "BIES",
) -> Mapping:
    """From tags to labels of characters (``B@NN``; a plain ``B`` goes with every tag).

    labels: per side the labels of characters;  mode: which positions may meet, a key of LIFTS
    special: bundles of tags, ``*`` allowed, that follow ``special_mode`` as well: proper names, say, that one standard
    cuts and the other does not (qiu2013, section 4)
    """
    for name in (mode, special_mode):
        if name not in LIFTS:
            raise SettingError(f"no way of lifting is called {name!r}; there are {', '.join(LIFTS)}")
    way = scheme(scheme_name)
    tags, prefixes = [], []
    for s, side in enumerate(labels):
        number = {tag: k for k, tag in enumerate(mapping.sides[s])}
        parts = [split_label(label) for label in side]
        for label, (prefix, tag) in zip(side, parts, strict=True):
            if prefix not in way.prefixes:
                raise SettingError(f"label {label!r} does not begin with a prefix of {way.name}: {way.prefixes}")
            if tag is not None and tag not in number:
                raise SettingError(f"label {label!r}: the mapping knows no tag {tag!r} on side {s + 1}")
        tags.append(np.array([-1 if tag is None else number[tag] for _, tag in parts], dtype=np.int64))
        prefixes.append(np.array([way.prefixes.index(prefix) for prefix, _ in parts], dtype=np.int64))
    named = np.zeros(mapping.sizes, dtype=np.bool_)
    for patterns in special:
        chosen = [matching(pattern, side) for pattern, side in zip(patterns, mapping.sides, strict=True)]
        named[np.ix_(*chosen)] = True
    allowed = _spread(mapping.table, tags) & _meeting(way, prefixes, mode)
    allowed |= _spread(mapping.table & named, tags) & _meeting(way, prefixes, special_mode)
    rows = np.argwhere(allowed)
    bundled = make(labels, rows, np.zeros(len(rows), np.bool_), np.zeros(len(rows), np.int64))
    weak = np.zeros(mapping.sizes, dtype=np.bool_)
    weak[tuple(mapping.bundles[mapping.weak].T)] = True
    strong = mapping.table & ~weak
    return replace(bundled, weak=~_spread(strong, tags)[tuple(bundled.bundles.T)])


def _spread(table: NDArray[np.bool_], tags: Sequence[NDArray[np.int64]]) -> NDArray[np.bool_]:
    """A table over tags as one over labels; tag -1 goes with every tag."""
    for axis, numbers in enumerate(tags):
        any_tag = table.any(axis=axis, keepdims=True)
        free = np.expand_dims(numbers < 0, tuple(k for k in range(table.ndim) if k != axis))
        table = np.where(free, any_tag, np.take(table, np.maximum(numbers, 0), axis=axis))
    return table


def _meeting(way: Scheme, prefixes: Sequence[NDArray[np.int64]], mode: str) -> NDArray[np.bool_]:
    """Whether the prefixes of a bundle of labels may meet at a character, every two sides by the mode."""
    plays = np.zeros((len(way), 4), dtype=np.int64)
    plays[way.roles, np.arange(4)] = 1
    meet = (plays @ LIFTS[mode].astype(np.int64) @ plays.T) > 0
    n_sides = len(prefixes)
    found = np.ones([1] * n_sides, dtype=np.bool_)
    for a, b in itertools.combinations(range(n_sides), 2):
        pair = meet[prefixes[a][:, None], prefixes[b][None, :]]
        found = found & np.expand_dims(pair, tuple(k for k in range(n_sides) if k not in (a, b)))
    return np.broadcast_to(found, [len(side) for side in prefixes])
