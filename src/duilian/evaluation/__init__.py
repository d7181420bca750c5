"""Evaluation: an annotation against gold, and two annotations against each other. Scores are 0 to 100, unrounded.

alignment.py      two annotations of one text side by side      accuracy.py      tags of the same words
words.py          words and tagged words: P, R, F, OOV          per_tag.py       each tag, confusions
significance.py   randomization test, bootstrap                 calibration.py   are confidences worth something
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duilian.corpus import Corpus, decode
from duilian.errors import MismatchError
from duilian.evaluation.accuracy import Share, tag_accuracy, token_accuracy
from duilian.evaluation.alignment import Alignment, align, known_words, vocabulary
from duilian.evaluation.per_tag import Confusion, confusion
from duilian.evaluation.significance import SentenceCounts, bootstrap, randomization
from duilian.evaluation.words import Found, joint, recall, segmentation

__all__ = [
    "Alignment",
    "Confusion",
    "Found",
    "SentenceCounts",
    "Share",
    "align",
    "bootstrap",
    "compare",
    "confusion",
    "evaluate",
    "joint",
    "known_words",
    "randomization",
    "recall",
    "score",
    "segmentation",
    "sentence_counts",
    "tag_accuracy",
    "token_accuracy",
    "vocabulary",
]

METRICS = ("accuracy", "joint_f", "ws_f")


def evaluate(
    gold: Corpus,
    pred: Corpus,
    gold_layer: str | None = None,
    pred_layer: str | None = None,
    train_words: Iterable[str] | None = None,
    task: str | None = None,
    names: tuple[str, str] = ("gold", "pred"),
) -> dict[str, Any]:
    """All scores of pred, as the JSON of ``duilian evaluate``; MismatchError where the texts differ.

    train_words: the words that training saw; without them OOV scores are None
    task:        pos, seg or segpos: the keys of that task only, and pos demands the same words on both sides
    """
    return score(align(gold, pred, gold_layer, pred_layer, names), train_words, task)


def score(alignment: Alignment, train_words: Iterable[str] | None = None, task: str | None = None) -> dict[str, Any]:
    """All scores of an alignment; see docs/evaluation.md for each key."""
    share = tag_accuracy(alignment)
    if task == "pos" and not alignment.same_words:
        raise MismatchError(
            f"the words differ: {_first_different_word(alignment)}. Tags alone are scored over one segmentation"
        )
    by_tags = task == "pos" or (task is None and share is not None)
    known = None if train_words is None else known_words(alignment, _without_spaces(train_words))
    scores: dict[str, Any] = {"tokens": len(alignment.gold), "sentences": alignment.n_sentences}
    if task != "pos":
        scores["ws"] = segmentation(alignment).scores()
    if task in (None, "segpos"):
        scores["joint"] = joint(alignment).scores() if alignment.tagged else None
    if task in (None, "pos"):
        scores["accuracy"] = None if share is None else share.value
    scores["oov_recall"] = _recall(alignment, None if known is None else ~known, by_tags)
    scores["iv_recall"] = _recall(alignment, known, by_tags)
    scores["oov_rate"] = None if known is None or not len(known) else 100.0 * float(np.mean(~known))
    return scores


def compare(
    gold: Corpus,
    pred1: Corpus,
    pred2: Corpus,
    gold_layer: str | None = None,
    pred1_layer: str | None = None,
    pred2_layer: str | None = None,
    samples: int = 10_000,
    seed: int = 0,
    names: tuple[str, str, str] = ("gold", "pred1", "pred2"),
) -> dict[str, Any]:
    """Is pred2 better than pred1? The JSON of ``duilian compare``.

    The metric is accuracy if all three have tags on the same words, else F of tagged words if all have tags, else F of
    words. difference is pred2 less pred1; p_value is two-sided, by shuffling sentences; interval holds 95 %.
    """
    one = align(gold, pred1, gold_layer, pred1_layer, (names[0], names[1]))
    two = align(gold, pred2, gold_layer, pred2_layer, (names[0], names[2]))
    if one.tagged and two.tagged:
        metric = "accuracy" if one.same_words and two.same_words else "joint_f"
    else:
        metric = "ws_f"
    first, second = sentence_counts(one, metric), sentence_counts(two, metric)
    return {
        "metric": metric,
        "pred1": first.f(),
        "pred2": second.f(),
        "difference": second.f() - first.f(),
        "p_value": randomization(first, second, samples, seed),
        "interval": list(bootstrap(first, second, samples, seed)),
        "sentences": len(first),
        "samples": samples,
        "seed": seed,
    }


def sentence_counts(alignment: Alignment, metric: str) -> SentenceCounts:
    """What significance tests need, for each gold sentence. metric: accuracy, joint_f or ws_f."""
    if metric not in METRICS:
        raise ValueError(f"metric must be one of {', '.join(METRICS)}, found {metric!r}")

    def per_sentence(sentence: NDArray[np.int64], mask: NDArray[np.bool_]) -> NDArray[np.int64]:
        return np.bincount(sentence[mask], minlength=alignment.n_sentences)

    ours, theirs = alignment.gold.sentence, alignment.pred.sentence
    if metric == "ws_f":
        everything = np.ones(len(alignment.gold) + len(alignment.pred), np.bool_)
        correct = per_sentence(ours, alignment.match >= 0)
        gold, pred = per_sentence(ours, everything[: len(ours)]), per_sentence(theirs, everything[: len(theirs)])
    else:
        correct = per_sentence(ours, alignment.right)
        gold = per_sentence(ours, alignment.scored)
        pred = gold if metric == "accuracy" else per_sentence(theirs, alignment.free)
    return SentenceCounts(correct, pred, gold)


def _recall(alignment: Alignment, among: NDArray[np.bool_] | None, by_tags: bool) -> float | None:
    return None if among is None else recall(alignment, among, with_tags=by_tags).value


def _without_spaces(words: Iterable[str]) -> frozenset[str]:
    return frozenset("".join(word.split()) for word in words)


def _first_different_word(alignment: Alignment) -> str:
    gold, pred = alignment.gold, alignment.pred
    unit = int(np.argmin(alignment.match >= 0)) if np.any(alignment.match < 0) else None
    if unit is None:
        return f"gold has {len(gold)} words, pred {len(pred)}"
    word = decode(alignment.text[gold.starts[unit] : gold.ends[unit]])
    sentence = int(gold.sentence[unit])
    place = unit - int(np.searchsorted(gold.sentence, sentence)) + 1
    return f"sentence {sentence + 1}, word {place}: gold has {word!r}, pred cuts these characters otherwise"
