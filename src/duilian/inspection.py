"""A look at corpora before training: sizes, tags, lengths, what is odd in them, and what two of them share.

Everything is counted over one layer. Sentences and words are numbered from 1, as people count lines.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from duilian import standards
from duilian.corpus import UNKNOWN, Corpus, Layer, decode

LONG = 200
"""Units in a sentence from which on it is worth a remark."""

EXAMPLE = 40
"""Characters of a sentence that are shown."""

RARE = 2
"""Times up to which a tag is worth a remark: it may be a slip of the annotators."""


def facts(corpus: Corpus, layer_name: str | None = None) -> dict[str, Any]:
    """What there is in one layer of a corpus."""
    layer = corpus.layer(layer_name)
    lengths = np.diff(layer.offsets)
    words = Counter(_forms(corpus, layer))
    return {
        "layer": layer.name,
        "sentences": len(corpus),
        "tokens": len(layer),
        "characters": len(corpus.text),
        "distinct_words": len(words),
        "seen_once": sum(count == 1 for count in words.values()),
        "words_per_sentence": _lengths(lengths, lambda k: k + 1),
        "characters_per_word": _lengths(layer.ends - layer.starts, lambda k: _form(corpus, layer, k)),
        "unknown_labels": int(np.count_nonzero(layer.labels == UNKNOWN)),
        "ambiguous_labels": int(np.count_nonzero(layer.labels < UNKNOWN)),
        "tags": _tag_counts(layer),
        "commonest_tag_accuracy": _commonest_tag_accuracy(corpus, layer),
        "standards": fitting_standards(layer),
        "odd": oddities(corpus, layer),
    }


def overlap(
    first: Corpus, second: Corpus, first_layer: str | None = None, second_layer: str | None = None
) -> dict[str, Any]:
    """What a second corpus has in common with a first one, such as a dev file with its training file."""
    a, b = first.layer(first_layer), second.layer(second_layer)
    known = set(_forms(first, a))
    forms = _forms(second, b)
    seen = {_bare(first, k) for k in range(len(first))}
    shared = [k for k in range(len(second)) if _bare(second, k) in seen and _bare(second, k)]
    tags_a, tags_b = _tag_counts(a), _tag_counts(b)
    return {
        "sentences_in_both": len(shared),
        "first_shared": shared[0] + 1 if shared else None,
        "oov_tokens": sum(form not in known for form in forms),
        "oov_rate": 100.0 * sum(form not in known for form in forms) / len(forms) if forms else None,
        "tags_only_in_first": sorted(set(tags_a) - set(tags_b)),
        "tags_only_in_second": sorted(set(tags_b) - set(tags_a)),
    }


def fitting_standards(layer: Layer) -> list[dict[str, Any]]:
    """Registered standards by the share of the tags' occurrences that they know, the best three above 90 %."""
    counts = _tag_counts(layer)
    total = sum(counts.values())
    found: list[dict[str, Any]] = []
    if not total:
        return found
    for name in standards.names():
        standard = standards.get(name)
        unknown = {tag: count for tag, count in counts.items() if not standard.knows(tag)}
        share = 100.0 * (1 - sum(unknown.values()) / total)
        if share > 90:
            found.append({"name": name, "known": share, "unknown_tags": sorted(unknown)})
    return sorted(found, key=lambda fit: (-fit["known"], len(standards.get(fit["name"]).tags)))[:3]


def oddities(corpus: Corpus, layer: Layer | None = None) -> list[dict[str, Any]]:
    """What a person should look at before training: each with how often, and where first."""
    layer = corpus.layer() if layer is None else layer
    found = []
    for what, places in _checks(corpus, layer).items():
        if places:
            sentence, text = places[0]
            shown = text if len(text) <= EXAMPLE else text[:EXAMPLE] + "…"
            found.append({"what": what, "count": len(places), "sentence": sentence + 1, "example": shown})
    return found


def _checks(corpus: Corpus, layer: Layer) -> Mapping[str, list[tuple[int, str]]]:
    lengths = np.diff(layer.offsets)
    texts = [_bare(corpus, k) for k in range(len(corpus))]
    seen: set[str] = set()
    repeated = []
    for k, text in enumerate(texts):
        if text and text in seen:
            repeated.append((k, text))
        seen.add(text)
    known = layer.labels != UNKNOWN
    per_sentence = (
        np.add.reduceat(np.append(known, False).astype(np.int64), layer.offsets[:-1]) if len(lengths) else lengths
    )
    some = (per_sentence > 0) & (per_sentence < lengths) & (lengths > 0)
    return {
        "empty sentence": [(int(k), "") for k in np.flatnonzero(lengths == 0)],
        "sentence that came before": repeated,
        f"sentence of more than {LONG} words": [(int(k), texts[k]) for k in np.flatnonzero(lengths > LONG)],
        "sentence of which only a part is labelled": [(int(k), texts[k]) for k in np.flatnonzero(some)],
        "word with a space inside": _words_with(corpus, layer, str.isspace),
        "control, private or unassigned character": _words_with(corpus, layer, _is_strange),
        "full-width character that is there in half width, too": _both_widths(corpus, layer),
        f"tag that occurs at most {RARE} times": _rare_tags(corpus, layer),
    }


def _words_with(corpus: Corpus, layer: Layer, test: Callable[[str], bool]) -> list[tuple[int, str]]:
    """(sentence, word) of each word that has a character of this kind."""
    points, where = np.unique(corpus.text, return_inverse=True)
    bad = np.array([test(chr(point)) for point in points.tolist()], dtype=bool)
    if not bad.any():
        return []
    at = np.flatnonzero(bad[where])
    units = np.searchsorted(layer.starts, at, side="right") - 1
    units = np.unique(units[(units >= 0) & (at < layer.ends[units])]) if len(layer) else at[:0]
    return [(_sentence(layer, unit), _form(corpus, layer, unit)) for unit in units.tolist()]


def _is_strange(character: str) -> bool:
    return character == "\N{REPLACEMENT CHARACTER}" or (
        unicodedata.category(character) in ("Cc", "Co", "Cn", "Cs") and not character.isspace()
    )


def _both_widths(corpus: Corpus, layer: Layer) -> list[tuple[int, str]]:
    """Letters and digits that occur in both forms; punctuation does so in any corpus."""
    points = set(np.unique(corpus.text).tolist())
    both = {chr(p) for p in points if 0xFF01 <= p <= 0xFF5E and p - 0xFEE0 in points and chr(p).isalnum()}
    return _words_with(corpus, layer, both.__contains__) if both else []


def _rare_tags(corpus: Corpus, layer: Layer) -> list[tuple[int, str]]:
    counts = np.bincount(layer.labels[layer.labels >= 0], minlength=len(layer.tags))
    found = []
    for tag in np.flatnonzero((counts > 0) & (counts <= RARE)).tolist():
        unit = int(np.flatnonzero(layer.labels == tag)[0])
        found.append((_sentence(layer, unit), f"{_form(corpus, layer, unit)} {layer.tags[tag]}"))
    return sorted(found)


def _tag_counts(layer: Layer) -> dict[str, int]:
    """Tag -> times, the commonest first; tags inside sets are not counted."""
    counts = np.bincount(layer.labels[layer.labels >= 0], minlength=len(layer.tags)).tolist()
    order = sorted(range(len(layer.tags)), key=lambda k: (-counts[k], layer.tags[k]))
    return {layer.tags[k]: counts[k] for k in order if counts[k]}


def _commonest_tag_accuracy(corpus: Corpus, layer: Layer) -> float | None:
    """Score of giving each word its commonest tag, on the corpus itself: how much the words alone tell."""
    labels = layer.labels.tolist()
    pairs = Counter((form, label) for form, label in zip(_forms(corpus, layer), labels, strict=True) if label >= 0)
    best: dict[str, int] = {}
    for (form, _), count in pairs.items():
        best[form] = max(best.get(form, 0), count)
    total = sum(pairs.values())
    return 100.0 * sum(best.values()) / total if total else None


def _lengths(lengths: Any, place: Callable[[int], Any]) -> dict[str, Any] | None:
    if not len(lengths):
        return None
    longest = int(np.argmax(lengths))
    return {
        "mean": float(np.mean(lengths)),
        "median": float(np.median(lengths)),
        "longest": int(lengths[longest]),
        "longest_is": place(longest),
    }


def _forms(corpus: Corpus, layer: Layer) -> list[str]:
    text = decode(corpus.text)
    return [text[a:b] for a, b in zip(layer.starts.tolist(), layer.ends.tolist(), strict=True)]


def _form(corpus: Corpus, layer: Layer, unit: int) -> str:
    return decode(corpus.text[layer.starts[unit] : layer.ends[unit]])


def _sentence(layer: Layer, unit: int) -> int:
    return int(np.searchsorted(layer.offsets, unit, side="right")) - 1


def _bare(corpus: Corpus, sentence: int) -> str:
    """A sentence's text without spaces: equal however it was segmented."""
    return "".join(corpus.sentence_text(sentence).split())
