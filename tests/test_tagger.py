"""Taggers against enumeration of their own chains: answers, constraints, whitespace, confidence, n best, files."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from naive import chain as naive_chain
from naive import tagging as naive
from toys import CASES, Sentences, answers, begin, raw, rename, text_of, toy_sentences, trained, without_tags

from duilian import storage
from duilian.corpus import Corpus, Layer, build, decode, with_tags
from duilian.errors import DuilianError, ModelFileError, TaskError
from duilian.lifting import units_of
from duilian.methods import load
from duilian.methods.single import ChainTagger
from duilian.standards.registry import get as load_standard
from duilian.tagger import SideInfo, Tagger, in_order, words_of

CHAINS = [case for case in CASES if case[0] in ("crf", "perceptron")]
every = pytest.mark.parametrize(("name", "task"), CASES)
chains = pytest.mark.parametrize(("name", "task"), CHAINS)
characters = pytest.mark.parametrize(("name", "task"), [case for case in CASES if case[1] != "pos"])

SINGLE = 2e-5
"""Absolute on probabilities: scores are float32, sums float64."""
NEW: Sentences = [(["他", "爱", "书"], [None] * 3), (["很", "好"], [None] * 2), (["北京"], [None]), ([], [])]
TEXTS = ["他爱书", "很好", "北京", ""]


@cache
def tagger_of(name: str, task: str) -> Any:
    """Trained briefly, and its temperature fitted to a dev set that contradicts itself: nothing is certain."""
    unclear = toy_sentences(5) + rename(toy_sentences(5), dict(zip("rvnda", "vndar", strict=True)).__getitem__)
    return trained(name, task, toy_sentences(6), dev=unclear, epochs=2)


def chain_scores(tagger: Any, corpus: Corpus, sentence: int, allowed: Any = None) -> naive_chain.Scores:
    """Every labelling of a sentence under the tagger's chain."""
    layer = corpus.layers[0] if corpus.layers else None
    units = units_of(corpus, layer, tagger.task)
    begin, end = int(units.sentences[sentence]), int(units.sentences[sentence + 1])
    return naive.label_scores(tagger.chain.node(tagger.chain.features(units), begin, end), tagger.chain, allowed)


def corpus_for(task: str) -> Corpus:
    return without_tags(NEW) if task == "pos" else raw(TEXTS)


# Answers ------------------------------------------------------------------------------------------------------------


@chains
def test_answers_are_the_best_labellings(name: str, task: str) -> None:
    tagger, corpus = tagger_of(name, task), corpus_for(task)
    new = tagger.tag(corpus)
    for sentence, text in enumerate(TEXTS):
        if not text:
            continue
        best = naive_chain.best(chain_scores(tagger, corpus, sentence))
        if task == "pos":
            assert new.tags()[sentence] == [tagger.chain.names[label] for label in best]
        else:
            expected = naive.words_of(tagger.chain.names, best, text)
            found = list(zip(naive.spans(new.words()[sentence]), new.tags()[sentence], strict=True))
            assert found == [((begin, end), tag) for begin, end, tag in expected]


@chains
def test_confidences_are_marginals_of_labels_and_of_whole_words(name: str, task: str) -> None:
    tagger, corpus = tagger_of(name, task), corpus_for(task)
    new = tagger.tag(corpus, confidence=True)
    layer = new.layer()
    for sentence, text in enumerate(TEXTS):
        if not text:
            continue
        scores = chain_scores(tagger, corpus, sentence)
        found = layer.confidence[layer.offsets[sentence] : layer.offsets[sentence + 1]].tolist()
        words, tags = new.words()[sentence], new.tags()[sentence]
        if task == "pos":
            expected = [naive_chain.marginal(scores, t, tagger.chain.names.index(tag)) for t, tag in enumerate(tags)]
        else:
            places = [(*span, tag) for span, tag in zip(naive.spans(words), tags, strict=True)]
            expected = [naive.word_probability(scores, tagger.chain.names, text, word) for word in places]
        assert found == pytest.approx(expected, abs=SINGLE)
    assert np.any(layer.confidence < 0.99), "a model that is sure of everything shows nothing"


@every
def test_confidences_are_probabilities_and_change_no_answer(name: str, task: str) -> None:
    tagger, corpus = tagger_of(name, task), corpus_for(task)
    sure = tagger.tag(corpus, confidence=True)
    assert np.all((sure.layer().confidence >= 0) & (sure.layer().confidence <= 1))
    plain = tagger.tag(corpus)
    assert (plain.words(), plain.tags()) == (sure.words(), sure.tags())
    assert plain.layer().confidence is None


@every
def test_n_best_begins_with_the_answer_and_falls(name: str, task: str) -> None:
    tagger, corpus = tagger_of(name, task), corpus_for(task)
    new = tagger.tag(corpus)
    lists = tagger.n_best(corpus, None, None, 3)
    assert len(lists) == len(corpus)
    for sentence, found in enumerate(lists):
        shares = [share for _, share in found]
        assert 1 <= len(found) <= 3
        assert shares == sorted(shares, reverse=True)
        assert sum(shares) <= 1 + SINGLE
        one = corpus.select([sentence])
        read = [(one.with_layer(layer).words(layer.name), one.with_layer(layer).tags(layer.name)) for layer, _ in found]
        assert read[0] == ([new.words()[sentence]], [new.tags()[sentence]])
        assert len({repr(pair) for pair in read}) == len(read)


@chains
def test_n_best_probabilities_are_shares_of_labellings(name: str, task: str) -> None:
    tagger, corpus = tagger_of(name, task), corpus_for(task)
    lists = tagger.n_best(corpus, None, None, 4)
    for sentence, text in enumerate(TEXTS):
        expected = [1.0]
        if text:
            shares = naive_chain.probabilities(chain_scores(tagger, corpus, sentence))
            expected = sorted(shares.values(), reverse=True)[:4]
        assert [share for _, share in lists[sentence]] == pytest.approx(expected, abs=SINGLE)


# Constraints --------------------------------------------------------------------------------------------------------


@every
def test_given_labels_are_kept_where_asked(name: str, task: str) -> None:
    """Labels that the model would not give, a set, and unknown ones beside them."""
    words = ["他", "爱", "书"]
    given = build([(words, ["n", None, frozenset(["a", "d"])])])
    tagger = tagger_of(name, task)
    new = tagger.tag(given, constrain=True, confidence=True)
    assert new.words() == [words]
    if task == "seg":
        return
    (tags,) = new.tags()
    assert tags[0] == "n"
    assert tags[1] in tagger.side().tags
    assert tags[2] in ("a", "d")
    free = tagger.tag(given)
    assert free.tags() == tagger.tag(build([(words, None)])).tags()


@chains
def test_constrained_answers_are_the_best_of_those_allowed(name: str, task: str) -> None:
    tagger = tagger_of(name, task)
    names = tagger.chain.names
    given = build([(["他", "爱", "书"], ["n", None, frozenset(["a", "d"])])])
    if task == "pos":
        allowed = [[names.index("n")], list(range(len(names))), [names.index("a"), names.index("d")]]
    elif task == "seg":
        allowed = [[names.index("S")]] * 3
    else:
        single = [k for k, label in enumerate(names) if label.startswith("S@")]
        wanted = ({"S@n"}, {names[k] for k in single}, {"S@a", "S@d"})
        allowed = [[k for k in single if names[k] in some] for some in wanted]
    # A label that training never saw cannot be asked for: then anything goes at that unit.
    allowed = [some or list(range(len(names))) for some in allowed]
    new = tagger.tag(given, constrain=True, confidence=True)
    scores = chain_scores(tagger, given, 0, allowed)
    best = naive_chain.best(scores)
    if task == "pos":
        assert new.tags() == [[names[label] for label in best]]
        expected = [naive_chain.marginal(scores, t, label) for t, label in enumerate(best)]
    else:
        places = naive.words_of(names, best, "他爱书")
        assert [(word, tag) for word, tag in zip(new.words()[0], new.tags()[0], strict=True)] == [
            ("他爱书"[begin:end], tag) for begin, end, tag in places
        ]
        expected = [naive.word_probability(scores, names, "他爱书", word) for word in places]
    assert new.layer().confidence.tolist() == pytest.approx(expected, abs=SINGLE)


@characters
def test_words_with_foreign_tags_keep_their_boundaries(name: str, task: str) -> None:
    """A tag that the model does not know is as good as none: the word stays a word."""
    words = ["他", "爱北京", "书"]
    for tags in ([None] * 3, ["??", "!!", "??"]):
        new = tagger_of(name, task).tag(build([(words, list(tags))]), constrain=True)
        if task == "seg":
            assert new.words() == [words]
        else:
            assert [one for one in new.words()[0] if one in words] == words
            assert set(new.tags()[0]) <= set(tagger_of(name, task).side().tags)


# Whitespace ---------------------------------------------------------------------------------------------------------


@characters
def test_whitespace_in_raw_text_is_a_boundary(name: str, task: str) -> None:
    tagger = tagger_of(name, task)
    for text in ("他 爱书", "北 京", " 他爱　书 ", "图\t书\u00a0馆", "   ", "图书 馆"):
        new = tagger.tag(raw([text]))
        words = new.words()[0]
        assert "".join(words) == "".join(text.split())
        assert not any(character.isspace() for word in words for character in word)
        assert text_of(new) == text


@chains
def test_the_best_labelling_within_the_boundaries_is_taken(name: str, task: str) -> None:
    if task == "pos":
        return
    tagger = tagger_of(name, task)
    spaced, joined = raw(["他爱 书北京"]), raw(["他爱书北京"])
    scores = {
        labels: value
        for labels, value in chain_scores(tagger, joined, 0).items()
        if not any(naive.crosses(word, {2}) for word in naive.words_of(tagger.chain.names, labels, "他爱书北京"))
    }
    expected = naive.words_of(tagger.chain.names, naive_chain.best(scores), "他爱书北京")
    new = tagger.tag(spaced, confidence=True)
    assert [(*span, tag) for span, tag in zip(naive.spans(new.words()[0]), new.tags()[0], strict=True)] == expected
    shares = [naive.word_probability(scores, tagger.chain.names, "他爱书北京", word) for word in expected]
    assert new.layer().confidence.tolist() == pytest.approx(shares, abs=SINGLE)
    for layer, share in tagger.n_best(spaced, None, None, 3)[0]:
        found = [naive.crosses((begin, end, None), {2}) for begin, end in zip(layer.starts, layer.ends, strict=True)]
        del found, share  # n best of text with spaces is checked by its words below
        words = spaced.with_layer(layer).words(layer.name)[0]
        assert not any(" " in word for word in words)


@characters
def test_whitespace_in_annotated_text_is_ignored(name: str, task: str) -> None:
    plain, spaced = build([(["他", "北京"], None)]), build([(["他", "北 京"], None)])
    tagger = tagger_of(name, task)
    one, two = answers(tagger, plain)[0], answers(tagger, spaced)[0]
    assert [("".join(word.split()), tag) for word, tag in two] == one


# Layers and sides ---------------------------------------------------------------------------------------------------


@every
def test_the_layer_that_was_read_is_replaced_and_others_stay(name: str, task: str) -> None:
    corpus = without_tags(NEW)
    other = Layer("other", ("x",), *(getattr(corpus.layer(), f) for f in ("offsets", "starts", "ends", "labels")))
    both = corpus.with_layer(other)
    tagger = tagger_of(name, task)
    new = tagger.tag(both, layer="other")
    assert [layer.name for layer in new.layers] == ["tags", "other"]
    assert new.layers[0] is corpus.layer()
    assert new.words("other") == tagger.tag(corpus).words()
    assert new.tags("other") == tagger.tag(corpus).tags()


@every
def test_sides_and_layers_that_are_not_there(name: str, task: str) -> None:
    tagger = tagger_of(name, task)
    with pytest.raises(TaskError, match="no side 'zz'"):
        tagger.tag(without_tags(NEW), "zz")
    with pytest.raises(TaskError, match=r"no layer 'zz'.*has tags"):
        tagger.tag(without_tags(NEW), layer="zz")
    if task == "pos":
        with pytest.raises(TaskError, match="raw text"):
            tagger.tag(raw(["他爱书"]))
    assert tagger.tag(without_tags(NEW), "a").tags() == tagger.tag(without_tags(NEW)).tags()


# Files --------------------------------------------------------------------------------------------------------------


def test_what_a_side_knows_survives_the_file(tmp_path: Path) -> None:
    info = SideInfo("我的", ("NN", "VV"), load_standard("ctb"), "CC BY-SA 4.0", frozenset({"年", "新年", "\ud800"}))
    tagger = tagger_of("crf", "pos")
    tagger = type(tagger)("crf", "pos", info, tagger.chain, {"seed": 3})
    tagger.save(tmp_path / "model")
    (again,) = load(tmp_path / "model").sides
    assert (again.name, again.tags, again.licence) == (info.name, info.tags, info.licence)
    assert again.words - {"\ufffd" * 3} == info.words - {"\ud800"}
    assert again.standard is not None
    assert again.standard.to_toml() == load_standard("ctb").to_toml()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"method": "zzz"}, "its method is 'zzz'"),
        ({"method": None}, "its method is None"),
        ({"sides": []}, "no sides"),
        ({"sides": [{"name": 3}]}, "'name' in its header is 3"),
        ({"model": []}, "'model' in its header"),
        ({"model": {}}, "no 'labels'"),
    ],
)
def test_a_header_that_no_model_has(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    tagger_of("crf", "pos").save(tmp_path / "model")
    header, tensors = storage.load(tmp_path / "model")
    storage.save(tmp_path / "model", {**header, **change}, tensors)
    with pytest.raises(ModelFileError, match=message):
        load(tmp_path / "model")


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("row_labels", lambda a: a + 99, "names label"),
        ("row_offsets", lambda a: a[::-1].copy(), "offsets"),
        ("row_weights", lambda a: a[:-1], "was expected"),
        ("trans", lambda a: a[:-1], "was expected"),
        ("trans", lambda a: a.astype(np.float64), "was expected"),
        ("keys", lambda a: np.full_like(a, 7), "stands twice"),
    ],
)
def test_tensors_that_no_kernel_may_see(name: str, change: Any, message: str, tmp_path: Path) -> None:
    tagger_of("crf", "seg").save(tmp_path / "model")
    header, tensors = storage.load(tmp_path / "model")
    storage.save(tmp_path / "model", header, {**tensors, name: change(np.array(tensors[name]))})
    with pytest.raises(ModelFileError, match=message):
        load(tmp_path / "model")


# Parts --------------------------------------------------------------------------------------------------------------


def test_words_of_a_layer_are_without_whitespace() -> None:
    corpus = build([(["新 年", "好", "新年"], None), (["　"], None)])
    assert words_of(corpus, corpus.layer()) == {"新年", "好", ""}


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_work_comes_back_in_order(threads: int) -> None:
    taken: list[int] = []

    def items() -> Any:
        for item in range(20):
            taken.append(item)
            yield item

    results = in_order(lambda item: item * item, items(), threads)
    for number, result in enumerate(results):
        assert result == number * number
        assert len(taken) <= number + threads + 3, "items are not read far ahead"
    assert taken == list(range(20))


def test_an_error_in_a_thread_comes_out() -> None:
    def work(item: int) -> int:
        if item == 3:
            raise DuilianError("three")
        return item

    with pytest.raises(DuilianError, match="three"):
        list(in_order(work, range(9), 2))


def test_a_tagger_of_nothing_has_no_lists() -> None:
    bare = Tagger("pos", [SideInfo("a", ())], {})
    with pytest.raises(TaskError, match="n-best"):
        bare.n_best(build([]), None, None, 1)


def test_the_toy_text_is_what_the_tests_say() -> None:
    assert [decode(raw([text]).text) for text in TEXTS] == TEXTS
    assert ["".join(words) for words, _ in NEW] == TEXTS
    assert with_tags(build([(["a"], ["b"])]).layer(), ["c"]).labels.tolist() == [-1]


@pytest.mark.parametrize("task", ["pos", "seg"])
def test_features_without_weights_are_no_part_of_a_model_and_missed_by_none(task: str) -> None:
    corpus = corpus_for(task)
    layer = corpus.layers[0] if corpus.layers else None
    training = begin("perceptron", task, epochs=2)
    list(training)
    whole, tagger = training.loop.model, training.tagger
    assert isinstance(tagger, ChainTagger)
    kept = tagger.chain
    assert 0 < len(kept.rows) < len(whole.rows)
    assert len(kept.featurizer) == len(kept.rows)
    units = units_of(corpus, layer, task)
    scores = [chain.node(chain.features(units), 0, len(units)) for chain in (kept, whole)]
    np.testing.assert_array_equal(*scores)


@pytest.mark.parametrize("words", [[], ["书"], ["他", "爱", "他", "New York", "New\u3000York", "𠀀", "书"] * 20])
def test_the_words_of_a_layer_are_listed_once_without_whitespace(words: list[str]) -> None:
    corpus = without_tags([(words, [None] * len(words))])
    assert words_of(corpus, corpus.layer()) == {"".join(word.split()) for word in words}
