"""Labels of one standard as guides for another: chains trained for it, corpora annotated, sentences two corpora share.

A chain that is trained as a part of something larger is kept as a stage, so that an interrupted training finds it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duilian.corpus import UNKNOWN
from duilian.features.dictionary import fold_numbers
from duilian.lifting import Labelled, Units, blocks, units_of
from duilian.methods.base import Method, Side, stamp_of
from duilian.methods.single import ChainRun, Guide
from duilian.models.chain import Chain
from duilian.stages import Context, key_of
from duilian.tagger import in_order
from duilian.tensors import Header

BLOCK = 1 << 15
"""Units are annotated in blocks of about this many."""
OVERLAP = 0.01
"""From this share of a corpus in sentences that the other has too, those are annotated by chains that never saw them:
a few short ones in common are what the tagger will meet later as well."""


def trained_chain(
    what: str, learner: Method, side: Side, task: str, settings: dict[str, Any], seed: int, context: Context,
    guide: Guide | None = None, dev_guide: Guide | None = None,
) -> tuple[Chain, dict[str, Any]]:  # fmt: skip
    """The best chain of a whole training, and how it went: {dev, epochs, tokens}. ``what`` is for those who watch."""
    key = key_of("chain 1", stamp_of(learner.name, [side], task, settings, seed), guide, dev_guide)
    kept = context.stages.find(key)
    if kept is not None:
        return Chain.from_tensors(Header("stage", kept[0]["chain"]), kept[1]), kept[0]["went"]
    run = ChainRun(side, task, settings, seed, guide, dev_guide)
    for _ in run.loop:
        pass
    chain, best = run.finished(run.loop.model), run.loop.best
    score = best.dev.get(side.name) if best is not None else None
    went = {"dev": score, "epochs": len(run.loop.history), "tokens": run.loop.tokens}
    dev = "" if score is None else f", dev {score:.2f}"
    context.report(f"{what}: {went['epochs']} epochs{dev}")
    header, tensors = chain.to_tensors()
    context.stages.keep(key, {"chain": header, "went": went}, tensors)
    return chain, went


def annotate(chain: Chain, units: Units, guide: Guide | None = None, threads: int = 1) -> NDArray[np.int32]:
    """(U,) the labels that a chain gives."""

    def work(block: tuple[int, int, Units]) -> NDArray[np.int32]:
        begin, end, part = block
        return chain.decode(chain.features(part, None if guide is None else guide[:, begin:end]), part.sentences)

    return np.concatenate([np.zeros(0, np.int32), *in_order(work, blocks(units, BLOCK), threads)])


def fill(chain: Chain, labelled: Labelled, guide: Guide | None = None) -> NDArray[np.int32]:
    """(U,) the given labels; where they are unknown or several, the chain's best among them. Names are the chain's."""
    if not np.any(labelled.labels < 0):
        return labelled.labels
    units = labelled.units
    return chain.decode(chain.features(units, guide), units.sentences, labelled.labels, labelled.sets)


def twins(units: Units, others: Units) -> NDArray[np.int64]:
    """(S,) the first of the other sentences that has the same characters, or -1; an empty sentence has none."""
    seen: dict[bytes, int] = {}
    for number, text in enumerate(_texts(others)):
        seen.setdefault(text, number)
    seen.pop(b"", None)
    return np.array([seen.get(text, -1) for text in _texts(units)], np.int64)


def _texts(units: Units) -> list[bytes]:
    """The characters of each sentence. Units lie one behind the other."""
    found = []
    for first, last in zip(units.sentences[:-1].tolist(), units.sentences[1:].tolist(), strict=True):
        if last == first:
            found.append(b"")
            continue
        text = units.text[units.starts[first] : units.ends[last - 1]]
        if units.ends[last - 1] - units.starts[first] != (units.ends[first:last] - units.starts[first:last]).sum():
            pieces = zip(units.starts[first:last].tolist(), units.ends[first:last].tolist(), strict=True)
            text = np.concatenate([units.text[begin:end] for begin, end in pieces])
        found.append(text.tobytes())
    return found


def source_labels(
    source: Side, chain: Chain, target: Units, learner: Method, task: str, settings: dict[str, Any], seed: int,
    folds: int, context: Context,
) -> NDArray[np.int32]:  # fmt: skip
    """(U,) a source chain's labels for the training units of the target, as if it had seen none of them.

    Sentences that the source has too are annotated by chains trained without them (jack-knifing).
    """
    labels = annotate(chain, target, threads=context.threads)
    own = units_of(source.corpus, source.gold, task)
    same = twins(target, own)
    lengths = np.diff(target.sentences)
    if folds < 2 or lengths[same >= 0].sum() < max(1.0, OVERLAP * len(target)):
        return labels
    first = twins(own, own)
    fold = fold_numbers(len(first), min(folds, len(first)))
    fold = np.where(first >= 0, fold[np.maximum(first, 0)], UNKNOWN)
    for number in np.unique(fold[same[same >= 0]]).tolist():
        kept = np.flatnonzero(fold != number)
        if not len(kept):
            continue
        part = replace(source, corpus=source.corpus.select(kept))
        what = f"{source.name} without part {number + 1}"
        other, _ = trained_chain(what, learner, part, task, settings, seed, context)
        mine = same >= 0
        mine[mine] = fold[same[mine]] == number
        unit = np.repeat(mine, lengths)
        again = annotate(other, target, threads=context.threads)
        labels[unit] = renumbered(again, other.names, chain.names, labels)[unit]
    return labels


def renumbered(
    labels: NDArray[np.int32], names: tuple[str, ...], known: tuple[str, ...], otherwise: NDArray[np.int32]
) -> NDArray[np.int32]:
    """Labels over other names; one that those lack becomes what stands in ``otherwise``."""
    if names == known:
        return labels
    number = {name: k for k, name in enumerate(known)}
    found = np.array([number.get(name, UNKNOWN) for name in names], np.int32)[labels]
    return np.where(found >= 0, found, otherwise).astype(np.int32)


def dev_units(side: Side, task: str) -> Units | None:
    """What is labelled on the dev corpus of a side, if it has one."""
    return None if side.dev is None else units_of(side.dev, side.dev.layer(side.dev_layer), task)
