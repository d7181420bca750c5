"""Scores from their definitions: sets of spans, loops over tokens, every exchange. Input: lists of words and tags."""

from __future__ import annotations

import math
from collections import Counter
from itertools import product

Sentence = tuple[list[str], list[object]]


def spans(sentences: list[Sentence]) -> list[tuple[int, int, int, object, str, int]]:
    """(start, end, how many words had this span before, tag, form, sentence) of each word, without spaces."""
    out = []
    at = 0
    seen: Counter[tuple[int, int]] = Counter()
    for number, (words, tags) in enumerate(sentences):
        for word, tag in zip(words, tags, strict=True):
            form = "".join(character for character in word if not character.isspace())
            if form:
                span = (at, at + len(form))
                out.append((*span, seen[span], tag, form, number))
                seen[span] += 1
                at += len(form)
    return out


def right(gold: object, pred: object) -> bool:
    """Whether a predicted tag answers a gold tag or set of tags."""
    if isinstance(pred, frozenset):
        if len(pred) != 1:
            return False
        (pred,) = pred
    if gold is None or pred is None:
        return False
    return pred in gold if isinstance(gold, frozenset) else pred == gold


def prf(correct: int, pred: int, gold: int) -> dict[str, float]:
    """Precision, recall, and their harmonic mean."""
    p = 100 * correct / pred if pred else 0.0
    r = 100 * correct / gold if gold else 0.0
    return {"p": p, "r": r, "f": 2 * p * r / (p + r) if p + r else 0.0}


def evaluate(gold: list[Sentence], pred: list[Sentence], train: set[str] | None) -> dict[str, object]:
    """All scores."""
    ours = {one[:3]: one for one in spans(gold)}
    theirs = {one[:3]: one for one in spans(pred)}
    tagged = any(one[3] is not None for one in ours.values()) and any(one[3] is not None for one in theirs.values())
    both = [key for key in ours if key in theirs]
    agreed = [key for key in both if right(ours[key][3], theirs[key][3])]
    wanted = [key for key in ours if ours[key][3] is not None]
    offered = [key for key in theirs if not (key in ours and ours[key][3] is None)]
    by_tags = tagged and set(ours) == set(theirs)
    result: dict[str, object] = {
        "tokens": len(ours),
        "sentences": len(gold),
        "ws": prf(len(both), len(theirs), len(ours)),
        "joint": prf(len(agreed), len(offered), len(wanted)) if tagged else None,
        "accuracy": 100 * len(agreed) / len(wanted) if by_tags else None,
        "oov_recall": None,
        "iv_recall": None,
        "oov_rate": None,
    }
    if train is not None:
        hits = agreed if by_tags else both
        base = wanted if by_tags else list(ours)
        for name, inside in (("oov_recall", False), ("iv_recall", True)):
            chosen = [key for key in base if (ours[key][4] in train) == inside]
            if chosen:
                result[name] = 100 * len([key for key in chosen if key in hits]) / len(chosen)
        if ours:
            result["oov_rate"] = 100 * len([one for one in ours.values() if one[4] not in train]) / len(ours)
    return result


def per_tag(gold: list[Sentence], pred: list[Sentence]) -> dict[str, tuple[int, int, int]]:
    """(correct, predicted, gold) words of each tag."""
    ours = {one[:3]: one[3] for one in spans(gold)}
    theirs = {one[:3]: one[3] for one in spans(pred)}
    counts: dict[str, list[int]] = {}
    for key, tag in ours.items():
        answer = theirs.get(key)
        if isinstance(answer, frozenset):
            answer = next(iter(answer)) if len(answer) == 1 else None
        if isinstance(tag, frozenset):
            tag = answer if answer in tag else min(tag)
        if tag is not None:
            counts.setdefault(str(tag), [0, 0, 0])[2] += 1
            counts[str(tag)][0] += answer == tag
    for key, tag in theirs.items():
        if isinstance(tag, frozenset):
            tag = next(iter(tag)) if len(tag) == 1 else None
        if tag is not None and not (key in ours and ours[key] is None):
            counts.setdefault(str(tag), [0, 0, 0])[1] += 1
    return {tag: (c, p, g) for tag, (c, p, g) in sorted(counts.items())}


Counts = list[tuple[int, int, int]]


def f_score(counts: Counts) -> float:
    """F of sentences' (correct, predicted, gold)."""
    return prf(*(sum(column) for column in zip(*counts, strict=True)))["f"] if counts else 0.0


def exact_p(first: Counts, second: Counts) -> float:
    """The share of all 2^S exchanges of sentences with a difference at least as large as the observed."""
    observed = abs(f_score(second) - f_score(first))
    extreme = 0
    for swaps in product([False, True], repeat=len(first)):
        one = [b if swap else a for a, b, swap in zip(first, second, swaps, strict=True)]
        other = [a if swap else b for a, b, swap in zip(first, second, swaps, strict=True)]
        extreme += abs(f_score(other) - f_score(one)) >= observed - 1e-9
    return extreme / 2 ** len(first)


def every_resample(first: Counts, second: Counts) -> list[float]:
    """The differences of all S^S samples with replacement, sorted."""
    n = len(first)
    return sorted(
        f_score([second[k] for k in drawn]) - f_score([first[k] for k in drawn])
        for drawn in product(range(n), repeat=n)
    )


def calibration_error(confidence: list[float], correct: list[bool], n_bins: int) -> float:
    """ECE, bin by bin."""
    total = 0.0
    for k in range(n_bins):
        inside = [
            (c, r)
            for c, r in zip(confidence, correct, strict=True)
            if k / n_bins < c <= (k + 1) / n_bins or (k == 0 and c == 0)
        ]
        if inside:
            accuracy = sum(r for _, r in inside) / len(inside)
            total += len(inside) / len(confidence) * abs(accuracy - sum(c for c, _ in inside) / len(inside))
    return total


def errors_among(confidence: list[float], correct: list[bool], kept: float, *, surest: bool) -> float:
    """Expected errors among the ``kept`` surest (or least sure) tokens, if equals come in random order."""
    order = sorted(set(confidence), reverse=surest)
    errors = 0.0
    for level in order:
        group = [not r for c, r in zip(confidence, correct, strict=True) if c == level]
        take = min(kept, len(group))
        errors += sum(group) * take / len(group)
        kept -= take
    return errors


def negative_log_likelihood(scores: list[list[float]], gold: list[int], temperature: float) -> float:
    """Mean over tokens of -log softmax(scores / temperature)[gold]."""
    total = 0.0
    for row, wanted in zip(scores, gold, strict=True):
        top = max(row)
        z = sum(math.exp((score - top) / temperature) for score in row)
        total -= (row[wanted] - top) / temperature - math.log(z)
    return total / len(scores)
