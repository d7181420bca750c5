"""What a coupled model knows before its first step: which labels of two standards meet more often than by chance.

Sentences of one side say nothing of the other's labels but what the model itself believes, and while it believes that
the two are independent the gradient does not tell it otherwise: for labels a of the side that is annotated and b of the
other it is the sum over units of p(b) (1{a is right} - p(a)), next to nothing once p(a) is well fitted. So the weights
of bundles whatever the word begin with

    log meetings(a, b) / expected(a, b)         expected: as often as by chance

where a is what the corpus says and b the marginals of the other side's own model, which never saw that corpus.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from duilian.inference.chain_marginals import marginals
from duilian.inference.pruning import given_mask
from duilian.models.joint_rows import JointRows
from duilian.models.side_model import SideModel
from duilian.training.parts import Parts

FAINT = 0.5
"""Meetings that are added, shared among all pairs of labels, so that none is impossible."""
FARTHEST = 5.0
"""No weight starts farther from 0."""
BLOCK = 256
"""Sentences that are asked about at once."""


def meetings(parts: Parts, chains: Sequence[SideModel], one: int, other: int) -> NDArray[np.float64]:
    """(L of one, L of other) how often labels of one side, as annotated, meet those of another, as its model sees it.

    Where both are annotated, the annotation counts.
    """
    sizes = len(chains[one].names), len(chains[other].names)
    found = np.zeros(sizes)
    known = np.flatnonzero(parts.known(one))
    for first in range(0, len(known), BLOCK):
        units, sentences = parts.units_of(known[first : first + BLOCK])
        node = chains[other].scores(parts.features_of(units), sentences)
        here = marginals(node, sentences, chains[other].trans).astype(np.float64)
        given = parts.given[other].select(units)
        sure = given.labels >= 0
        here[sure] = given_mask(given.labels, given.sets, sizes[1])[sure]
        labels = parts.given[one].labels[units]
        np.add.at(found, labels[labels >= 0], here[labels >= 0])
    return found


def associations(parts: Parts, chains: Sequence[SideModel], one: int, other: int) -> NDArray[np.float64]:
    """(L of one, L of other) how much likelier than by chance labels of two sides meet, as a logarithm."""
    counts = meetings(parts, chains, one, other) + meetings(parts, chains, other, one).T
    counts += FAINT / counts.size
    expected = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0, keepdims=True) / counts.sum()
    found: NDArray[np.float64] = np.clip(np.log(counts / expected), -FARTHEST, FARTHEST)
    return found


def begin_with_associations(
    joint: JointRows, row: int, parts: Parts, chains: Sequence[SideModel], factor: float
) -> JointRows:
    """The same weights, but those of one row, a feature of every unit, are the associations of each bundle's labels.

    factor: what they are multiplied by; of three sides and more the associations of each pair of sides are added up
    """
    first, last = int(joint.offsets[row]), int(joint.offsets[row + 1])
    sizes = tuple(len(chain.names) for chain in chains)
    labels = np.unravel_index(joint.codes[first:last], sizes)
    weights = joint.weights.copy()
    for one in range(len(sizes)):
        for other in range(one + 1, len(sizes)):
            table = associations(parts, chains, one, other)
            weights[first:last] += (factor * table[labels[one], labels[other]]).astype(np.float32)
    return joint.with_weights(weights)
