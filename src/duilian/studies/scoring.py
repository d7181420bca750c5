"""What is told of an answer beside its scores: tags, confusions, confidences, single words, sentences to look at."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duilian import evaluation
from duilian.corpus import Corpus, Layer, decode
from duilian.evaluation.alignment import Alignment
from duilian.evaluation.calibration import reliability, risk_coverage
from duilian.mapping import Example, Mapping

MOST = 30
"""Rows of a list of words or confusions."""
POINTS = 60
"""Points of a risk-coverage curve."""
SAMPLES, SHORTEST, LONGEST = 8, 5, 40
"""Sample sentences, and how many words they have."""


def scores_of(gold: Corpus, pred: Corpus, words: frozenset[str] | None, task: str | None) -> dict[str, Any]:
    """All scores of an answer; task None: whatever can be scored (words may differ)."""
    alignment = evaluation.align(gold, pred, names=("gold", "the answer"))
    found = evaluation.score(alignment, words, task)
    counts = evaluation.confusion(alignment)
    found["per_tag"] = {
        tag: {"gold": one.gold, "answered": one.pred, "right": one.correct, **one.scores()}
        for tag, one in counts.per_tag().items()
    }
    found["confusion"] = [list(row) for row in counts.most_confused(MOST)]
    sure = pred.layer().confidence
    if sure is not None and len(sure) == len(alignment.pred):
        found |= confidences(alignment, sure, with_tags=task != "seg" and alignment.tagged)
    return found


def confidences(alignment: Alignment, sure: NDArray[np.float32], with_tags: bool) -> dict[str, Any]:
    """What confidences are worth: calibration and risk."""
    right = np.zeros(len(sure), np.bool_)
    good = (alignment.match >= 0) & (alignment.right if with_tags else True)
    right[alignment.match[good]] = True
    known = np.isfinite(sure)
    sure, right = np.clip(sure[known], 0.0, 1.0), right[known]
    if not len(sure):
        return {}
    bins, curve = reliability(sure, right), risk_coverage(sure, right)
    places = np.unique(np.searchsorted(curve.coverage, np.linspace(1 / POINTS, 1, POINTS)).clip(0, len(curve.risk) - 1))
    return {
        "calibration": {
            "ece": bins.error,
            "bins": [
                [float(low), float(high), float(mean), float(share), int(n)]
                for low, high, mean, share, n in zip(
                    bins.edges[:-1], bins.edges[1:], bins.confidence, bins.right, bins.n, strict=True
                )
            ],
        },
        "risk": [[float(curve.coverage[k]), 100.0 * float(curve.risk[k])] for k in places],
    }


def comparison(gold: Corpus, one: Corpus, other: Corpus, samples: int) -> dict[str, Any]:
    """Significance of the second answer against the first, and the words that it gains and loses most."""
    found = evaluation.compare(gold, one, other, samples=samples)
    measure = {"accuracy": "accuracy", "joint_f": "joint", "ws_f": "ws"}[found["metric"]]
    return {
        "measure": measure,
        "difference": found["difference"],
        "p_value": found["p_value"],
        "interval": list(found["interval"]),
        "samples": samples,
        "words": word_gains(gold, one, other, measure != "ws"),
    }


def word_gains(gold: Corpus, one: Corpus, other: Corpus, with_tags: bool) -> list[list[Any]]:
    """[word, gold tag, times right in the first answer, in the second, times in all], the largest changes first."""
    counts: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    for column, answer in enumerate((one, other)):
        alignment = evaluation.align(gold, answer)
        right = alignment.right if with_tags else alignment.match >= 0
        text, words = decode(alignment.text), alignment.gold
        spans = zip(words.starts.tolist(), words.ends.tolist(), words.labels.tolist(), right.tolist(), strict=True)
        for start, end, label, good in spans:
            if with_tags and label < 0:
                continue
            row = counts[text[start:end], alignment.tags[label] if with_tags else ""]
            row[column] += good
            row[2] += column
    changed = [(word, tag, a, b, n) for (word, tag), (a, b, n) in counts.items() if a != b]
    changed.sort(key=lambda row: (-abs(row[3] - row[2]), row[2] - row[3], row[0], row[1]))
    return [list(row) for row in changed[:MOST]]


def samples_of(given: Corpus, answer: Corpus, gold: Corpus | None, n: int = SAMPLES) -> list[dict[str, Any]]:
    """Sentences with what was given, what was answered and how surely; taken evenly from those of a usual length."""
    gold = gold if gold is not None and len(gold) == len(given) else None
    lengths = np.diff(given.layer().offsets)
    usual = np.flatnonzero((lengths >= SHORTEST) & (lengths <= LONGEST))
    if not len(usual):
        usual = np.flatnonzero(lengths)
    chosen = usual[np.linspace(0, len(usual) - 1, min(n, len(usual))).astype(np.int64)].tolist() if len(usual) else []
    return [
        {
            "sentence": k + 1,
            "given": words_of(given, given.layer(), k),
            "answer": words_of(answer, answer.layer(), k, sure=True),
            "gold": None if gold is None else words_of(gold, gold.layer(), k),
        }
        for k in chosen
    ]


def words_of(corpus: Corpus, layer: Layer, sentence: int, sure: bool = False) -> list[list[Any]]:
    """[word, label] of a sentence, or [word, label, confidence]; a set of labels is written with bars."""
    rows: list[list[Any]] = []
    for unit in range(int(layer.offsets[sentence]), int(layer.offsets[sentence + 1])):
        label = layer.label(unit)
        text = "|".join(sorted(label)) if isinstance(label, frozenset) else label
        row: list[Any] = [decode(corpus.text[layer.starts[unit] : layer.ends[unit]]), text]
        if sure:
            row.append(None if layer.confidence is None else round(float(layer.confidence[unit]), 6))
        rows.append(row)
    return rows


def relations(mapping: Mapping, places: dict[tuple[str, ...], list[Example]]) -> list[list[Any]]:
    """[label, label, words, [[left, words, right], ...]] of a counted mapping, the commonest first."""
    order = sorted(range(len(mapping)), key=lambda at: (-int(mapping.counts[at]), at))
    names = mapping.names()
    return [
        [
            *names[at],
            int(mapping.counts[at]),
            [[one.left, " / ".join(dict.fromkeys(one.words)), one.right] for one in places.get(names[at], ())],
        ]
        for at in order
    ]
