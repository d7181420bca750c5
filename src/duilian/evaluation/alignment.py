"""Two annotations of one text laid side by side: which words agree, and whether their tags do. All scores start here.

Words compare by their non-space characters: spaces inside a word or around it change nothing, and a word of nothing but
spaces does not count. Words that share a span (the parts of a contraction) are matched in their order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from duilian.corpus import UNKNOWN, Corpus, Layer, decode
from duilian.errors import MismatchError
from duilian.lifting import is_space, word_units
from duilian.ragged import Ragged, offsets_of

NO_ANSWER = -3
"""The label of a predicted word that holds several allowed tags: not an answer, so never right."""
_CONTEXT = 8


@dataclass(frozen=True, eq=False)
class Words:
    """The words of one annotation.

    starts, ends: (W,) int64 into the text without spaces
    sentence:     (W,) int64, the gold sentence in which the word starts
    labels:       (W,) int32 into the tags of the alignment; -1 unknown, <= -2 a set
    """

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    sentence: NDArray[np.int64]
    labels: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.starts)


@dataclass(frozen=True, eq=False)
class Alignment:
    """Gold and predicted words of one text.

    text:   (n,) uint32 code points, without spaces
    match:  (gold words,) int64, the predicted word of the same span, or -1
    right:  (gold words,) bool, matched, and the predicted tag is the gold tag or in the gold set
    scored: (gold words,) bool, has a gold tag: words without one are not scored where tags are
    free:   (predicted words,) bool, not matched to a gold word without a tag: counts where tags are scored
    tagged: whether both sides have any tags
    """

    text: NDArray[np.uint32]
    n_sentences: int
    tags: tuple[str, ...]
    sets: Ragged
    gold: Words
    pred: Words
    match: NDArray[np.int64]
    right: NDArray[np.bool_]
    scored: NDArray[np.bool_]
    free: NDArray[np.bool_]
    tagged: bool

    @property
    def same_words(self) -> bool:
        """Whether both sides have exactly the same words."""
        return len(self.gold) == len(self.pred) and bool(np.all(self.match >= 0))

    def matched_labels(self) -> NDArray[np.int32]:
        """(gold words,) the label of each gold word's match; -1 where there is none."""
        labels = np.full(len(self.gold), UNKNOWN, np.int32)
        found = self.match >= 0
        labels[found] = self.pred.labels[self.match[found]]
        return labels


def align(
    gold: Corpus,
    pred: Corpus,
    gold_layer: str | None = None,
    pred_layer: str | None = None,
    names: tuple[str, str] = ("gold", "pred"),
) -> Alignment:
    """Lay a predicted layer beside a gold layer; MismatchError with the place where their texts differ."""
    ours, theirs = gold.layer(gold_layer), pred.layer(pred_layer)
    text, sentences = _without_spaces(gold)
    other, _ = _without_spaces(pred)
    _check_text(text, other, sentences, names)
    tags, theirs = _one_numbering(ours, theirs)
    gold_words, pred_words = _words(gold, ours, sentences), _words(pred, theirs, sentences)
    match = match_spans(gold_words.starts, gold_words.ends, pred_words.starts, pred_words.ends)
    found = match >= 0
    right = np.zeros(len(match), np.bool_)
    right[found] = right_labels(gold_words.labels[found], pred_words.labels[match[found]], ours.sets)
    scored = gold_words.labels != UNKNOWN
    free = np.ones(len(pred_words), np.bool_)
    free[match[found & ~scored]] = False
    tagged = bool(np.any(scored) and np.any(pred_words.labels != UNKNOWN))
    return Alignment(
        text, len(gold), tags, ours.sets, gold_words, pred_words, match, right, scored, free, tagged
    )  # fmt: skip


def match_spans(
    gold_starts: NDArray[np.int64],
    gold_ends: NDArray[np.int64],
    pred_starts: NDArray[np.int64],
    pred_ends: NDArray[np.int64],
) -> NDArray[np.int64]:
    """(gold words,) the predicted word with the same span, or -1; equal spans are matched in order."""
    base = np.int64(1 + max(gold_ends.max(initial=0), pred_ends.max(initial=0)))
    gold_keys, gold_order = _sorted_keys(gold_starts, gold_ends, base)
    pred_keys, pred_order = _sorted_keys(pred_starts, pred_ends, base)
    match = np.full(len(gold_keys), -1, np.int64)
    if len(pred_keys) == 0 or len(gold_keys) == 0:
        return match
    ordinal = np.arange(len(gold_keys)) - np.searchsorted(gold_keys, gold_keys)
    place = np.searchsorted(pred_keys, gold_keys) + ordinal
    inside = np.minimum(place, len(pred_keys) - 1)
    equal = (place < len(pred_keys)) & (pred_keys[inside] == gold_keys)
    match[gold_order[equal]] = pred_order[place[equal]]
    return match


def right_labels(gold: NDArray[np.int32], pred: NDArray[np.int32], sets: Ragged) -> NDArray[np.bool_]:
    """(n,) whether each predicted label is the gold label, or in the gold set; never where gold is unknown."""
    right = (gold == pred) & (gold >= 0)
    several = np.flatnonzero((gold <= -2) & (pred >= 0))
    if len(several):
        base = np.int64(1 + max(int(pred.max()), int(sets.data.max(initial=0))))
        allowed = np.repeat(np.arange(len(sets), dtype=np.int64), sets.lengths) * base + sets.data
        right[several] = np.isin((-2 - gold[several].astype(np.int64)) * base + pred[several], allowed)
    return np.asarray(right)


def known_words(alignment: Alignment, vocabulary: frozenset[str]) -> NDArray[np.bool_]:
    """(gold words,) whether each gold word, without its spaces, is in the vocabulary."""
    text = decode(alignment.text)
    spans = zip(alignment.gold.starts.tolist(), alignment.gold.ends.tolist(), strict=True)
    return np.fromiter((text[start:end] in vocabulary for start, end in spans), np.bool_, len(alignment.gold))


def vocabulary(corpus: Corpus, layer: str | None = None) -> frozenset[str]:
    """The words of a layer without their spaces: what counts as seen in training."""
    units = word_units(corpus, corpus.layer(layer))
    text = decode(units.text)
    words = {text[start:end] for start, end in zip(units.starts.tolist(), units.ends.tolist(), strict=True)}
    return frozenset(words - {""})


def _without_spaces(corpus: Corpus) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    space = is_space(corpus.text)
    if not space.any():
        return corpus.text, corpus.offsets
    return corpus.text[~space], offsets_of(~space)[corpus.offsets]


def _check_text(
    gold: NDArray[np.uint32], pred: NDArray[np.uint32], sentences: NDArray[np.int64], names: tuple[str, str]
) -> None:
    n = min(len(gold), len(pred))
    different = np.flatnonzero(gold[:n] != pred[:n])
    if len(different) == 0 and len(gold) == len(pred):
        return
    at = int(different[0]) if len(different) else n
    sentence = min(int(np.searchsorted(sentences, at, side="right")), len(sentences) - 1)
    character = at - int(sentences[max(sentence - 1, 0)]) + 1

    def shown(text: NDArray[np.uint32]) -> str:
        return repr(decode(text[at : at + _CONTEXT])) if at < len(text) else "nothing more"

    raise MismatchError(
        f"sentence {max(sentence, 1)}, character {character} (spaces not counted): {names[0]} has {shown(gold)}, "
        f"{names[1]} has {shown(pred)}. Two annotations can be compared only over the same characters: "
        "was one of them cut, reordered or converted (full-width, traditional)?"
    )


def _one_numbering(gold: Layer, pred: Layer) -> tuple[tuple[str, ...], Layer]:
    """Gold's tags with pred's new ones behind them, and pred in these numbers; a set of one tag becomes the tag."""
    own = set(gold.tags)
    tags = (*gold.tags, *(tag for tag in pred.tags if tag not in own))
    number = {tag: k for k, tag in enumerate(tags)}
    table = np.array([number[tag] for tag in pred.tags] or [UNKNOWN], dtype=np.int32)
    labels = np.where(pred.labels >= 0, table[np.maximum(pred.labels, 0)], pred.labels).astype(np.int32)
    several = np.flatnonzero(labels <= -2)
    if len(several):
        rows = -2 - labels[several]
        first = np.append(pred.sets.data, UNKNOWN)[np.minimum(pred.sets.offsets[rows], len(pred.sets.data))]
        labels[several] = np.where(pred.sets.lengths[rows] == 1, table[first], NO_ANSWER)
    return tags, replace(pred, labels=labels)


def _words(corpus: Corpus, layer: Layer, sentences: NDArray[np.int64]) -> Words:
    units = word_units(corpus, layer)
    keep = units.ends > units.starts
    if keep.all():
        starts, ends, labels = units.starts, units.ends, layer.labels
    else:
        starts, ends, labels = units.starts[keep], units.ends[keep], layer.labels[keep]
    return Words(starts, ends, np.searchsorted(sentences, starts, side="right") - 1, labels)


def _sorted_keys(
    starts: NDArray[np.int64], ends: NDArray[np.int64], base: np.int64
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    keys = starts * base + ends
    if np.all(keys[1:] >= keys[:-1]):
        return keys, np.arange(len(keys))
    order = np.argsort(keys, kind="stable")
    return keys[order], order
