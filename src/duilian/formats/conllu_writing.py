"""Writing CoNLL-U: new labels in the lines as they were read, or new lines.

Sentences with their words as read keep every column; the layer's column, the other layer's where the corpus has it, and
``Conf=`` are put in. Other sentences keep their comments.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from duilian.corpus import Corpus, Layer, Source, decode, encode
from duilian.formats.base import Ints, Points, WriteOptions, fixed
from duilian.formats.weaving import (
    TAB_OR_LINE_END,
    Pieces,
    check_confidence,
    check_labels,
    check_tags,
    check_words,
    confidences,
    interleave,
    merge,
    original,
    patches,
    pick,
    render,
    spread,
    unchanged,
    with_ends,
)

LAYERS = ("upos", "xpos")


def write(corpus: Corpus, layer: str | None, options: WriteOptions) -> str:
    """The layer in its column (any name but upos goes to xpos), the other one beside it where it has the same words."""
    chosen = pick(corpus, layer, "conllu")
    values = check_confidence(chosen, options.confidence, "conllu", holds=True)
    source = corpus.source if corpus.source is not None and corpus.source.format == "conllu" else None
    if source is not None and not len(corpus):
        return decode(source.raw)
    same = unchanged(corpus, chosen, "conllu")
    if chosen.name not in LAYERS:
        same = np.zeros(len(corpus), bool)
    kept = None
    if source is not None and same.any():
        kept = patched(corpus, source, chosen, values, same)
        if same.all():
            return render(kept)
    fresh = anew(corpus, source, chosen, values)
    return render(fresh if kept is None else merge(kept, fresh, same))


def checked(corpus: Corpus, layer: Layer) -> tuple[list[str], Ints]:
    """(tags and ``_``, the number of each unit's)."""
    check_labels(corpus, layer, "conllu", unknown=True)
    check_tags(layer, "conllu", lambda tag: tag == "_" or any(c in tag for c in "\t\n\r"))
    return [*layer.tags, "_"], np.where(layer.labels < 0, len(layer.tags), layer.labels).astype(np.int64)


def patched(
    corpus: Corpus, source: Source, chosen: Layer, values: NDArray[np.float32] | None, same: NDArray[np.bool_]
) -> Pieces:
    """The lines as read, with new labels and confidences."""
    begins: list[Any] = []
    stops: list[Any] = []
    which: list[Any] = []
    strings: list[str] = []
    old = original(source, chosen.name)
    assert old is not None
    for name in LAYERS:
        found = [layer for layer in corpus.layers if layer.name == name]
        if not found or not unchanged(corpus, found[0], "conllu")[same].all():
            continue
        tags, numbers = checked(corpus, found[0])
        begins.append(source.slots[name][0])
        stops.append(source.slots[name][1])
        which.append(spread(numbers, found[0], source, same, len(tags) - 1) + len(strings))
        strings += tags
    if values is not None:
        texts, numbers = confidences(spread(values, chosen, source, same, 0))
        starts, ends, prefix = confidence_slots(source.raw, source.slots["xpos"][1])
        known = np.array([text != "" for text in texts])[numbers]
        ends = np.where(known | (prefix > 0), ends, starts)
        begins.append(starts)
        stops.append(ends)
        n = len(texts)
        which.append(np.where(known, numbers + n * prefix, 2 * n) + len(strings))
        strings += ["Conf=" + text for text in texts] + ["|Conf=" + text for text in texts] + [""]
    k = len(begins)
    return patches(source, old.offsets * k, interleave(*begins), interleave(*stops), interleave(*which), strings)


def confidence_slots(raw: Points, places: Ints) -> tuple[Ints, Ints, Ints]:
    """Where ``Conf=`` goes in the rows whose XPOS ends at ``places``: (starts, ends, 1 where it needs a bar)."""
    from duilian.formats.scan_kernels import find_pattern, row_tails

    raw = fixed(raw, np.uint32)
    starts, ends = row_tails(raw, fixed(places, np.int64), 5)
    found = find_pattern(raw, fixed(starts, np.int64), fixed(ends, np.int64), fixed(encode("Conf="), np.uint32))
    empty = (ends - starts == 1) & (raw[starts] == 95) | (ends == starts)
    begins = np.where(found >= 0, found, np.where(empty, starts, ends))
    stops = ends.copy()
    for k in np.flatnonzero(found >= 0).tolist():
        bars = np.flatnonzero(raw[found[k] : ends[k]] == 124)
        if len(bars):
            stops[k] = found[k] + bars[0]
    return begins, stops, (~empty & (found < 0)).astype(np.int64)


def anew(corpus: Corpus, source: Source | None, chosen: Layer, values: NDArray[np.float32] | None) -> Pieces:
    """Four pieces for each word (two for the line of a multi-word token that it begins; number; the rest)."""
    check_words(corpus, chosen, "conllu", TAB_OR_LINE_END)
    newline = "\n" if source is None else source.style["newline"]
    columns = {"upos": (["_"], np.zeros(len(chosen), np.int64)), "xpos": (["_"], np.zeros(len(chosen), np.int64))}
    home = chosen.name if chosen.name in LAYERS else "xpos"
    columns[home] = checked(corpus, chosen)
    for layer in corpus.layers:
        if layer.name in LAYERS and layer.name != home and alike(layer, chosen):
            columns[layer.name] = checked(corpus, layer)
    misc_texts, misc = misc_column(source, chosen, values)
    rest, rest_of = combine(columns["upos"], columns["xpos"], (misc_texts, misc), newline)

    lengths = np.diff(chosen.offsets)
    ids = np.arange(len(chosen)) - np.repeat(chosen.offsets[:-1], lengths) + 1
    longest = int(lengths.max()) if len(lengths) else 0
    strings = ["", *[f"{k}\t" for k in range(1, longest + 1)], *rest]
    rest_of = rest_of + 1 + longest
    sizes = group_sizes(chosen)
    group_of, groups = np.zeros(len(chosen), np.int64), np.zeros(len(chosen), np.int64)
    if (sizes > 1).any():
        first = np.flatnonzero(sizes > 1)
        group_of[first] = len(strings) + np.arange(len(first))
        strings += [f"{ids[k]}-{ids[k] + sizes[k] - 1}\t" for k in first.tolist()]
        groups[first] = len(strings)
        strings.append("\t_" * 8 + newline)
    zeros = np.zeros(len(chosen), np.int64)
    heads, tails = len(strings), len(strings) + 2
    strings += ["", "# text =" + newline, newline, ""]

    text = corpus.text
    comment_starts = comment_ends = np.zeros(len(corpus), np.int64)
    last = np.full(len(corpus), tails)
    if source is not None:
        text = np.concatenate([text, source.raw])
        comment_starts = source.offsets[:-1] + len(corpus.text)
        comment_ends = source.style["heads"] + len(corpus.text)
        if not decode(source.raw[-3:]).endswith(("\n\n", "\n\r\n")):
            last[-1:] += 1
    bare = (lengths == 0) & (comment_starts == comment_ends)
    starts = interleave(zeros, np.where(group_of > 0, chosen.starts, 0), zeros, chosen.starts)
    ends = interleave(zeros, np.where(group_of > 0, chosen.ends, 0), zeros, chosen.ends)
    which = interleave(group_of, groups, ids, rest_of)
    offsets = chosen.offsets * 4
    return Pieces(
        text,
        with_ends(with_heads(offsets), np.insert(starts, offsets[:-1], comment_starts), 0),
        with_ends(with_heads(offsets), np.insert(ends, offsets[:-1], comment_ends), 0),
        with_ends(with_heads(offsets), np.insert(which, offsets[:-1], heads + bare), last),
        np.repeat(np.arange(len(corpus)), lengths * 4 + 2),
        strings,
    )


def with_heads(offsets: Ints) -> Ints:
    """The same offsets with one more item at the head of each row."""
    return offsets + np.arange(len(offsets))


def combine(
    upos: tuple[list[str], Ints], xpos: tuple[list[str], Ints], misc: tuple[list[str], Ints], newline: str
) -> tuple[list[str], Ints]:
    """All that stands behind the form, once for each combination in use: (strings, the number of each word's)."""
    key = (upos[1] * len(xpos[0]) + xpos[1]) * len(misc[0]) + misc[1]
    used, which = np.unique(key, return_inverse=True)
    strings = []
    for value in used.tolist():
        value, m = divmod(value, len(misc[0]))
        u, x = divmod(value, len(xpos[0]))
        strings.append(f"\t_\t{upos[0][u]}\t{xpos[0][x]}\t_\t_\t_\t_\t{misc[0][m]}{newline}")
    return strings, which.astype(np.int64)


def misc_column(source: Source | None, chosen: Layer, values: NDArray[np.float32] | None) -> tuple[list[str], Ints]:
    """SpaceAfter=No where the source had no space there, and the confidence."""
    tight = np.zeros(len(chosen), np.int64)
    old = original(source, chosen.name) if source is not None else None
    if source is not None and old is not None:
        tight = (~np.isin(chosen.ends, old.ends[~no_space(source)])).astype(np.int64)
    texts, numbers = [""], np.zeros(len(chosen), np.int64)
    if values is not None:
        texts, numbers = confidences(values)
    strings = []
    for space in ("", "SpaceAfter=No"):
        for text in texts:
            strings.append("|".join(part for part in (text and f"Conf={text}", space) if part) or "_")
    return strings, tight * len(texts) + numbers


def no_space(source: Source) -> NDArray[np.bool_]:
    """(n_words,) whether a word of the source has SpaceAfter=No."""
    from duilian.formats.scan_kernels import find_pattern, row_tails

    raw = fixed(source.raw, np.uint32)
    starts, ends = row_tails(raw, fixed(source.slots["xpos"][1], np.int64), 5)
    pattern = fixed(encode("SpaceAfter=No"), np.uint32)
    found: NDArray[np.bool_] = find_pattern(raw, fixed(starts, np.int64), fixed(ends, np.int64), pattern) >= 0
    return found


def group_sizes(layer: Layer) -> Ints:
    """(n_units,) how many units of the sentence share a unit's span, at the first of them; 1 or 0 at the others."""
    n = len(layer)
    first = np.ones(n, bool)
    first[1:] = (layer.starts[1:] != layer.starts[:-1]) | (layer.ends[1:] != layer.ends[:-1])
    first[layer.offsets[:-1][np.diff(layer.offsets) > 0]] = True
    begins = np.flatnonzero(first)
    sizes = np.zeros(n, np.int64)
    sizes[begins] = np.diff(np.append(begins, n))
    return sizes


def alike(left: Layer, right: Layer) -> bool:
    """Whether two layers have the same units."""
    return (
        np.array_equal(left.offsets, right.offsets)
        and np.array_equal(left.starts, right.starts)
        and np.array_equal(left.ends, right.ends)
    )
