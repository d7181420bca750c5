"""The coupled model: bundles of labels, one per side, scored by joint and by separate features (li2015 Eq. 2).

    score(bundles) = sum_t  joint[f, bundle_t]            for the features f of unit t
                          + sum_s  w_s[f, label_s]        the separate features of each side
                          + sum_s  trans_s[label_s before, label_s]  (+ start_s, end_s)
                          + pairs[bundle before, bundle]  (optional)

What it is that is scored. Which bundles compete at a unit, and how they are summed up: ``models.spaces``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duilian.features import Featurizer
from duilian.inference.lattice import Pairs, index_pairs
from duilian.models.joint_rows import JointRows
from duilian.models.side_model import SideModel
from duilian.models.weights import Features
from duilian.tensors import check_offsets, reject, require, require_field

F32 = np.float32
Floats = NDArray[np.float32]
MOST_CODES = 1 << 31


@dataclass(frozen=True, eq=False)
class Coupled:
    """A coupled model.

    joint: weights of (feature, bundle); rows without entries if there are only separate features
    pair_keys: (n,) int64 rising, code before * n_codes + code; pair_weights: (n,) float32; () for none
    """

    task: str
    scheme: str
    featurizer: Featurizer
    sides: tuple[SideModel, ...]
    joint: JointRows
    pair_keys: NDArray[np.int64]
    pair_weights: Floats

    @property
    def sizes(self) -> list[int]:
        """How many labels each side has."""
        return [len(side.names) for side in self.sides]

    @property
    def n_codes(self) -> int:
        """How many bundles there could be."""
        return int(np.prod(self.sizes))

    @cached_property
    def pairs(self) -> Pairs | None:
        """Which pairs of bundles have weights."""
        return index_pairs(self.n_codes, self.pair_keys) if len(self.pair_keys) else None

    def features(self, units: Any) -> Features:
        """Feature rows of units."""
        found = self.featurizer.transform(units)
        return Features(found.data, found.offsets)

    def numbers(self) -> dict[str, NDArray[Any]]:
        """Everything that training changes."""
        found: dict[str, NDArray[Any]] = {"joint.weights": self.joint.weights, "pairs.weights": self.pair_weights}
        for s, side in enumerate(self.sides):
            found |= side.numbers(f"side.{s}")
        return found

    def with_numbers(self, numbers: Mapping[str, NDArray[Any]]) -> Coupled:
        """The same model with other numbers."""
        sides = tuple(side.with_numbers(f"side.{s}", numbers) for s, side in enumerate(self.sides))
        joint = self.joint.with_weights(numbers["joint.weights"])
        return replace(self, sides=sides, joint=joint, pair_weights=numbers["pairs.weights"].astype(F32))

    def to_tensors(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """What a model file keeps of it: header fields and tensors, without the featurizer."""
        header: dict[str, Any] = {
            "task": self.task,
            "scheme": self.scheme,
            "labels": [list(side.names) for side in self.sides],
        }
        tensors: dict[str, NDArray[Any]] = {
            "joint.offsets": self.joint.offsets,
            "joint.codes": self.joint.codes,
            "joint.weights": self.joint.weights,
            "pairs.keys": self.pair_keys,
            "pairs.weights": self.pair_weights,
        }
        for s, side in enumerate(self.sides):
            tensors |= side.to_tensors(f"side.{s}")
        return header, tensors

    @classmethod
    def from_tensors(cls, header: dict[str, Any], tensors: dict[str, NDArray[Any]], featurizer: Featurizer) -> Coupled:
        """The reverse of ``to_tensors``; whatever a kernel would trust is checked here."""
        task, scheme = require_field(header, "task", str), require_field(header, "scheme", str)
        names = require_field(header, "labels", list)
        n_rows = len(featurizer)
        sides = tuple(
            SideModel.from_tensors(f"side.{s}", labels, task, scheme, n_rows, header, tensors)
            for s, labels in enumerate(names)
        )
        n_codes = 1
        for side in sides:
            n_codes *= len(side.names)
        if not sides or n_codes >= MOST_CODES:
            reject(header, f"it has {len(sides)} sides and {n_codes} bundles")
        offsets = require(tensors, "joint.offsets", np.int64, (n_rows + 1,))
        codes = require(tensors, "joint.codes", np.int32, (None,))
        check_offsets(offsets, len(codes), "joint.offsets", tensors)
        if len(codes) and not 0 <= int(codes.min()) <= int(codes.max()) < n_codes:
            reject(tensors, f"joint.codes runs from {codes.min()} to {codes.max()}, of {n_codes}")
        inner = np.ones(len(codes), np.bool_)
        inner[offsets[:-1][offsets[:-1] < len(codes)]] = False
        if np.any(np.diff(codes, prepend=-1)[inner] <= 0):
            reject(tensors, "joint.codes do not rise within a row")
        joint = JointRows(n_codes, offsets, codes, require(tensors, "joint.weights", F32, (len(codes),)))
        keys = require(tensors, "pairs.keys", np.int64, (None,))
        if len(keys) and (keys[0] < 0 or int(keys[-1]) >= n_codes**2 or np.any(np.diff(keys) <= 0)):
            reject(tensors, "pairs.keys do not rise within the number of bundles")
        weights = require(tensors, "pairs.weights", F32, (len(keys),))
        return cls(task, scheme, featurizer, sides, joint, keys, weights)
