"""The rule-made twin: each rule does what the document says, nothing is lost, and only context tells."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duilian import evaluation, standards
from duilian.corpus import Corpus, build
from duilian.datasets import twin
from duilian.errors import MismatchError

DOCUMENT = Path(__file__).parents[1] / "docs" / "twin.md"
RULES = (*twin.JOINS, *twin.CUTS, *twin.TAGS)
WORDS = ["书", "北京", "了", "的", "实事求是", "１月", "３日", "三", "个", "好"]
TAGS = ["n", "v", "a", "d", "u", "nr", "m", "q", "t", "i", "z", "r", "w", "ns", "vn", "unheard-of"]


def read(text: str) -> Corpus:
    """One sentence of word/tag."""
    pairs = [token.rsplit("/", 1) for token in text.split()]
    return build([([word for word, _ in pairs], [tag for _, tag in pairs])])


def written(corpus: Corpus) -> str:
    return " ".join(f"{w}/{t}" for w, t in zip(corpus.words()[0], corpus.tags()[0], strict=True))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_every_rule_does_what_its_example_says_and_is_documented(rule: twin.Rule) -> None:
    before = read(rule.before)
    assert written(twin.convert(before)) == rule.after
    sentence = twin.Sentence(before.words()[0], [str(tag) for tag in before.tags()[0]])
    group = next(group for group in (twin.JOINS, twin.CUTS, twin.TAGS) if rule in group)
    deciding = [next((one for one in group if one.fits(sentence, k)), None) for k in range(len(sentence.words))]
    assert rule in deciding, "the example does not come to this rule"
    text = DOCUMENT.read_text(encoding="utf-8")
    for part in (rule.name, rule.says, rule.before, rule.after):
        assert part in text


def test_the_standard_has_exactly_the_tags_that_rules_make() -> None:
    made = {tag for rule in RULES for tag in rule.tag.split()} | set(twin.PLAIN.values()) | {"X"}
    standard = standards.get(twin.NAME)
    assert set(standard.tags) == made
    assert "ule-made" in standard.title
    text = DOCUMENT.read_text(encoding="utf-8")
    for tag, plain in twin.PLAIN.items():
        assert f"{tag} → {plain}" in text


sentences = st.lists(
    st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(TAGS)), max_size=8), min_size=1, max_size=4
)


@given(sentences)
def test_the_twin_covers_the_same_text(drawn: list[list[tuple[str, str]]]) -> None:
    corpus = build([([w for w, _ in one], [t for _, t in one]) for one in drawn])
    layer = twin.annotate(corpus)
    for k in range(len(corpus)):
        edges = slice(layer.offsets[k], layer.offsets[k + 1])
        pieces = [*zip(layer.starts[edges].tolist(), layer.ends[edges].tolist(), strict=True)]
        ends = [int(corpus.offsets[k]), *(end for _, end in pieces)]
        assert [start for start, _ in pieces] == ends[:-1]
        assert ends[-1] == corpus.offsets[k + 1]
    assert set(twin.convert(corpus).layer().tags) <= set(standards.get(twin.NAME).tags)
    again = twin.annotate(corpus)
    np.testing.assert_array_equal(layer.labels, again.labels)
    np.testing.assert_array_equal(layer.starts, again.starts)


def test_a_word_without_a_tag_is_x() -> None:
    corpus = build([(["好", "书"], [None, frozenset("nv")])])
    assert twin.convert(corpus).tags() == [["X", "X"]]


@given(sentences)
def test_the_best_map_takes_the_commonest_of_every_word_and_tag(drawn: list[list[tuple[str, str]]]) -> None:
    """Counted anew: what a word of a tag becomes is written as its characters with the pieces' edges and tags."""
    corpus = build([([w for w, _ in one], [t for _, t in one]) for one in drawn])
    source, target = corpus.layer(), twin.annotate(corpus)
    if not len(source):
        with pytest.raises(MismatchError):
            twin.best_map(corpus, source, target)
        return

    def marks() -> list[tuple[str, bool]]:
        found = []
        for start, end, label in zip(target.starts, target.ends, target.labels, strict=True):
            found += [(target.tags[label], at == start, at == end - 1) for at in range(start, end)]
        return found

    per_word: dict[tuple[str, str], Counter[tuple[object, ...]]] = {}
    flat = marks()
    places = [*zip(source.starts.tolist(), source.ends.tolist(), source.labels.tolist(), strict=True)]
    text = corpus.text.tolist()
    for start, end, label in places:
        key = (str(text[start:end]), source.tags[label])
        per_word.setdefault(key, Counter())[tuple(flat[start:end])] += 1
    clear = {key: max(seen, key=seen.__getitem__) for key, seen in per_word.items() if len(seen) == 1}
    found = twin.best_map(corpus, source, target)
    spans = {
        (start, end): target.tags[label]
        for start, end, label in zip(found.starts.tolist(), found.ends.tolist(), found.labels.tolist(), strict=True)
    }
    for start, end, label in places:
        only = clear.get((str(text[start:end]), source.tags[label]))
        if only is not None and only[0][1] and only[-1][2] and sum(mark[1] for mark in only) == 1:
            assert spans.get((start, end)) == only[0][0]


def test_the_best_map_cannot_see_context() -> None:
    corpus = build([(list("爱书好书"), ["v", "n", "a", "n"]), (list("书好"), ["n", "a"]), (list("爱"), ["v"])] * 4)
    gold = twin.convert(corpus)
    mapped = twin.best_map(corpus, corpus.layer(), gold.layer())
    assert written(Corpus(corpus.text, corpus.offsets, (mapped,))) == "爱/V 书/N 好/AP 书/N"
    assert written(gold) == "爱/VT 书/N 好/AT 书/N"
    score = evaluation.evaluate(gold, Corpus(corpus.text, corpus.offsets, (mapped,)), task="segpos")
    assert 50 < score["joint"]["f"] < 95


def test_a_map_learnt_elsewhere_goes_by_tag_where_it_does_not_know_the_word() -> None:
    train = build([(["书", "好"], ["n", "a"]), (["三", "个", "人"], ["m", "q", "n"])])
    corpus = build([(["车", "坏"], ["n", "z"]), (["四"], ["m"])])
    learnt = (train, train.layer(), twin.annotate(train))
    mapped = twin.best_map(corpus, corpus.layer(), twin.annotate(corpus), learnt)
    found = Corpus(corpus.text, corpus.offsets, (mapped,))
    assert found.words()[0][0] == "车"
    assert found.tags()[0][0] == "N"
