"""Against python-crfsuite: its weights, on the same features, give the same likelihoods and the same best labels."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from naive import features as naive
from toys import LEXICON, Sentences, rename, toy_sentences

from duilian.corpus import build
from duilian.features import TEMPLATES, Featurizer
from duilian.inference.paths import Posteriors
from duilian.lifting import word_units
from duilian.models.chain import Chain
from duilian.models.weights import Features, Rows
from duilian.ragged import offsets_of

pycrfsuite = pytest.importorskip("pycrfsuite")

LIKELIHOOD = 1e-4
"""Relative, on the log-likelihood of a sentence: its weights are written with six decimals and ours are float32."""

TEMPLATE_LINES = TEMPLATES["li2015"]
PARAMETERS = {
    "l2sgd": {"c2": 0.5, "max_iterations": 20},
    "lbfgs": {"c2": 0.5, "max_iterations": 20, "feature.possible_states": True, "feature.possible_transitions": True},
    "lbfgs-sparse": {"c1": 0.3, "c2": 0.1, "max_iterations": 20},
    "ap": {"max_iterations": 3},
}


def strings_of(words: list[str]) -> list[list[str]]:
    """Each word's features as strings, built the slow way, in the order of our hashes."""
    return [[repr(feature) for feature in unit] for unit in naive.features(words, TEMPLATE_LINES)]


def noisy_sentences() -> Sentences:
    """Words with more than one tag, so that nothing is certain."""
    turned = dict(zip("rvnda", "vndar", strict=True))
    return toy_sentences(14) + rename(toy_sentences(5, 3), turned.__getitem__)


def unseen_sentences() -> Sentences:
    """Words out of order, with some that training has not seen."""
    rng = np.random.default_rng(2)
    words = [*LEXICON, "新", "北京人"]
    tags = sorted(set(LEXICON.values()))
    return [
        ([str(word) for word in rng.choice(words, n)], [str(tag) for tag in rng.choice(tags, n)])
        for n in (1, 2, 3, 4, 5)
    ]


class Peer:
    """A CRFsuite model, and a chain of ours with its weights."""

    def __init__(self, name: str, folder: Path) -> None:
        trainer = pycrfsuite.Trainer(algorithm=name.partition("-")[0], params=PARAMETERS[name], verbose=False)
        sentences = noisy_sentences()
        for words, tags in sentences:
            trainer.append(strings_of(words), [str(tag) for tag in tags])
        trainer.train(str(folder / "crfsuite"))
        self.tagger = pycrfsuite.Tagger()
        self.tagger.open(str(folder / "crfsuite"))
        self.chain = self._chain(sentences)

    def _chain(self, sentences: Sentences) -> Chain:
        info = self.tagger.info()
        names = tuple(sorted(self.tagger.labels()))
        number = {name: k for k, name in enumerate(names)}
        featurizer = Featurizer(TEMPLATE_LINES, "word")
        corpus = build(sentences)
        (rows,) = featurizer.fit([word_units(corpus, corpus.layer())])
        row_of: dict[str, int] = {}
        units = [unit for words, _ in sentences for unit in strings_of(words)]
        for found, strings in zip(rows, units, strict=True):
            row_of.update(zip(strings, found.tolist(), strict=True))
        entries: list[list[tuple[int, float]]] = [[] for _ in range(len(featurizer))]
        for (string, label), weight in info.state_features.items():
            entries[row_of[string]].append((number[label], weight))
        flat = [entry for row in entries for entry in sorted(row)]
        table = Rows(
            len(names), offsets_of([len(row) for row in entries]).astype(np.int32),
            np.array([label for label, _ in flat], np.uint16), np.array([weight for _, weight in flat], np.float32),
        )  # fmt: skip
        trans = np.zeros((len(names), len(names)), np.float32)
        for (before, after), weight in info.transitions.items():
            trans[number[before], number[after]] = weight
        zero = np.zeros(len(names), np.float32)
        return Chain(names, "pos", featurizer, table, trans, zero, zero)

    def ours(self, words: list[str]) -> tuple[Features, Posteriors]:
        corpus = build([(words, None)])
        units = word_units(corpus, corpus.layer())
        features = self.chain.features(units)
        ((_, _, found),) = self.chain.posteriors(features, units.sentences)
        return features, found

    def log_likelihood(self, words: list[str], tags: list[Any]) -> float:
        """Of the tags, by our chain."""
        _, found = self.ours(words)
        labels = [self.chain.names.index(tag) for tag in tags]
        score = sum(float(found.node[t, label]) for t, label in enumerate(labels))
        score += sum(float(found.trans[i, j]) for i, j in itertools.pairwise(labels))
        return score - float(found.log_z[0])


@pytest.fixture(scope="module", params=[name for name in PARAMETERS if name != "ap"])
def peer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Peer:
    return Peer(request.param, tmp_path_factory.mktemp("peer"))


def test_log_likelihoods_are_the_same(peer: Peer) -> None:
    seen = 0
    for words, tags in noisy_sentences() + unseen_sentences():
        peer.tagger.set(strings_of(words))
        theirs = float(np.log(peer.tagger.probability(tags)))
        assert peer.log_likelihood(words, tags) == pytest.approx(theirs, rel=LIKELIHOOD)
        seen += theirs < -0.5
    assert seen >= 5, "a model that is sure of everything shows nothing"


def test_marginals_are_the_same(peer: Peer) -> None:
    for words, _ in noisy_sentences()[:6] + unseen_sentences():
        peer.tagger.set(strings_of(words))
        _, found = peer.ours(words)
        for t in range(len(words)):
            for k, name in enumerate(peer.chain.names):
                assert found.marginals[t, k] == pytest.approx(peer.tagger.marginal(name, t), abs=LIKELIHOOD)


def same_best_labels(peer: Peer) -> None:
    for words, _ in noisy_sentences() + unseen_sentences():
        theirs = peer.tagger.tag(strings_of(words))
        features, found = peer.ours(words)
        ours = [peer.chain.names[label] for label in peer.chain.decode(features, np.array([0, len(words)]))]
        assert ours == theirs or peer.log_likelihood(words, ours) == pytest.approx(
            peer.log_likelihood(words, theirs), abs=1e-4
        ), "another best path, unless the two are equally good"
        del found


def test_the_best_labels_are_the_same(peer: Peer) -> None:
    same_best_labels(peer)


def test_the_best_labels_of_its_perceptron_are_the_same(tmp_path: Path) -> None:
    same_best_labels(Peer("ap", tmp_path))
