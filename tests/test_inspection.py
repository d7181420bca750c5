"""What `inspect` says of a corpus, on corpora small enough to count by hand."""

from __future__ import annotations

from typing import Any

import pytest

from duilian import inspection
from duilian.corpus import Corpus, Label, build


def odd(corpus: Corpus) -> dict[str, dict[str, Any]]:
    return {entry["what"]: entry for entry in inspection.oddities(corpus)}


def test_the_facts_of_a_small_corpus() -> None:
    corpus = build([(["我", "爱", "北京"], ["r", "v", "ns"]), (["爱", "我"], ["n", "r"]), (["我"], [None])])
    found = inspection.facts(corpus)
    assert (found["sentences"], found["tokens"], found["characters"]) == (3, 6, 7)
    assert (found["distinct_words"], found["seen_once"], found["unknown_labels"]) == (3, 1, 1)
    assert found["words_per_sentence"] == {"mean": 2.0, "median": 2.0, "longest": 3, "longest_is": 1}
    assert found["characters_per_word"]["longest_is"] == "北京"
    assert found["tags"] == {"r": 2, "n": 1, "ns": 1, "v": 1}
    assert found["commonest_tag_accuracy"] == pytest.approx(100 * 4 / 5), "爱 is v once and n once"


def test_an_empty_corpus_has_facts() -> None:
    found = inspection.facts(build([]))
    assert found["tokens"] == 0
    assert found["words_per_sentence"] is None
    assert found["commonest_tag_accuracy"] is None
    assert found["odd"] == []


def test_a_clean_corpus_has_nothing_odd() -> None:
    sentences = [([f"w{k}", "a", "b"], ["n", "v", "v"]) for k in range(5)]
    assert odd(build(sentences)) == {}


@pytest.mark.parametrize(
    ("sentence", "what", "example"),
    [
        (([], []), "empty sentence", ""),
        ((["w0", "ab"], ["n", "v"]), "sentence that came before", "w0ab"),
        ((["x"] * 201, ["n"] * 201), "sentence of more than 200 words", "x" * 40 + "…"),
        ((["p", "q"], ["n", None]), "sentence of which only a part is labelled", "pq"),
        ((["p", "q r"], ["n", "n"]), "word with a space inside", "q r"),
        ((["p", "q\ufffd"], ["n", "n"]), "control, private or unassigned character", "q\ufffd"),
        ((["p\x07"], ["n"]), "control, private or unassigned character", "p\x07"),
        ((["ａ"], ["n"]), "full-width character that is there in half width, too", "ａ"),
        ((["p"], ["slip"]), "tag that occurs at most 2 times", "p slip"),
    ],
)
def test_what_is_odd_is_found(sentence: tuple[list[str], list[Label]], what: str, example: str) -> None:
    clean: list[tuple[list[str], list[Label]]] = [([f"w{k}", "a", "b"], ["n", "v", "v"]) for k in range(5)]
    found = odd(build([*clean, sentence]))
    assert list(found) == [what]
    assert found[what]["example"] == example
    assert (found[what]["sentence"], found[what]["count"]) == (6, 1)


def test_what_two_corpora_share() -> None:
    train = build([(["我", "爱", "你"], ["r", "v", "r"]), (["好"], ["a"])])
    dev = build([(["好"], ["a"]), (["我", "恨", "你"], ["r", "v", "x"]), (["我爱", "你"], ["v", "r"])])
    found = inspection.overlap(train, dev)
    assert (found["sentences_in_both"], found["first_shared"]) == (2, 1), "the segmentation does not matter"
    assert (found["oov_tokens"], found["oov_rate"]) == (2, pytest.approx(100 * 2 / 6))
    assert (found["tags_only_in_first"], found["tags_only_in_second"]) == ([], ["x"])
    assert inspection.overlap(dev, build([]))["oov_rate"] is None


def test_the_standards_that_fit() -> None:
    corpus = build([(["a", "b", "c"], ["NOUN", "VERB", "PROPN"]), (["d"], ["ADJ"])])
    assert inspection.facts(corpus)["standards"][0] == {"name": "ud", "known": 100.0, "unknown_tags": []}
    assert inspection.facts(build([(["a"], ["no such tag"])]))["standards"] == []
