"""Temperature: what the scores of a perceptron or PA are divided by before they are read as probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np

from duilian.evaluation.calibration import best_temperature
from duilian.inference.chain import constrain
from duilian.inference.paths import Posteriors
from duilian.models.chain import Chain
from duilian.ragged import Ragged

SENTENCES = 400
COLDEST, HOTTEST = 0.05, 3000.0


def negative_log_likelihood(chain: Chain, node: Any, sentences: Any, labels: Any, sets: Ragged, heat: float) -> float:
    """Of the given labels, at this temperature; sentences that the model cannot label so are left out."""
    tables = chain.trans / heat, chain.start / heat, chain.end / heat
    scores = node / heat
    free = Posteriors(scores, sentences, *tables, chain.runs).log_z
    constrain(scores, 0, len(labels), labels, sets.data, sets.offsets)
    held = Posteriors(scores, sentences, *tables, chain.runs).log_z
    fine = np.isfinite(held) & np.isfinite(free)
    return float((free[fine] - held[fine]).sum())


def fit_temperature(chain: Chain, features: Any, labels: Any, sets: Ragged, sentences: Any) -> float:
    """The temperature under which the labels are likeliest, found on its first sentences."""
    sentences = sentences[: SENTENCES + 1]
    n = int(sentences[-1])
    if n == 0:
        return 1.0
    node = chain.node(features, 0, n).astype(np.float64)
    labels = labels[:n]

    def loss(heat: float) -> float:
        return negative_log_likelihood(chain, node, sentences, labels, sets, heat)

    return best_temperature(loss, COLDEST, HOTTEST, 1e-3)
