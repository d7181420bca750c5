"""Features: hashes against readable features built the slow way; the index; the dictionary; names and collisions."""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import features as naive

import duilian.features
from duilian.corpus import build, encode
from duilian.features import TEMPLATES, Dictionary, Featurizer, characters
from duilian.features import dictionary as words_of_training
from duilian.features.index import Index, may_have, place
from duilian.features.names import collisions, names_of, one_sentence, spelled
from duilian.features.templates import CHARACTER_ATOMS, WORD_ATOMS, guided
from duilian.lifting import Units, character_units, word_units

Sentences = list[list[str]]
WORD_TEMPLATES = (*TEMPLATES["li2015"], "bias", "lower0 shape-1", "n0 n+1", "shape0", "single+1", "first0 suffix0")
CHARACTER_TEMPLATES = (*TEMPLATES["lexicon"], "bias", "same0 c0", "same-1", "begin-2 end+2")
words = st.text("年人民ａＡaB1１.，℃é", min_size=1, max_size=5)
sentences = st.lists(st.lists(words, max_size=4), max_size=5)


def units_of(text: Sentences, unit: str) -> Units:
    corpus = build([(words, None) for words in text])
    return word_units(corpus, corpus.layer()) if unit == "word" else character_units(corpus)


def pieces(text: Sentences, unit: str) -> Sentences:
    return text if unit == "word" else [list("".join(words)) for words in text]


def all_features(text: Sentences, unit: str, templates: Sequence[str], **options: Any) -> list[list[naive.Feature]]:
    return [one for sentence in pieces(text, unit) for one in naive.features(sentence, templates, **options)]


def assert_same_structure(hashes: Any, features: Sequence[Sequence[naive.Feature]]) -> None:
    """Unit by unit, feature by feature: two hashes are equal if and only if the features are."""
    assert len(hashes) == len(features)
    by_feature: dict[naive.Feature, int] = {}
    by_hash: dict[int, naive.Feature] = {}
    for row, names in zip(hashes, features, strict=True):
        assert len(row) == len(names)
        for number, name in zip(row.tolist(), names, strict=True):
            assert by_feature.setdefault(name, number) == number, f"{name} has two hashes"
            assert by_hash.setdefault(number, name) == name, f"{name} and {by_hash[number]} share a hash"


def folded(word: str) -> str:
    return "".join(map(naive.half_width, word))


@given(sentences, st.booleans())
def test_features_of_words(text: Sentences, fold: bool) -> None:
    featurizer = Featurizer(WORD_TEMPLATES, "word", fold=fold)
    found = featurizer.hashes(units_of(text, "word"))
    assert_same_structure(found, all_features(text, "word", WORD_TEMPLATES, fold=fold))


@given(sentences, st.booleans())
def test_features_of_characters(text: Sentences, fold: bool) -> None:
    """With a dictionary of the same text, asked as at tagging: all its words count."""
    dictionary = words_of_training.build(units_of(text, "word"), fold)
    featurizer = Featurizer(CHARACTER_TEMPLATES, "character", fold=fold, dictionary=dictionary)
    found = featurizer.hashes(units_of(text, "character"))
    known = naive.words_known_in([[folded(w) if fold else w for w in words] for words in text], None, 10)
    options = {"fold": fold, "words": known}
    assert_same_structure(found, all_features(text, "character", CHARACTER_TEMPLATES, **options))


@given(st.lists(st.lists(words, max_size=3), min_size=1, max_size=14))
def test_in_training_a_word_of_one_fold_is_unknown_there(text: Sentences) -> None:
    templates = ("begin0", "end0", "mid0")
    dictionary = words_of_training.build(units_of(text, "word"), True)
    featurizer = Featurizer(templates, "character", dictionary=dictionary)
    (rows,) = featurizer.fit([units_of(text, "character")])
    known_text = [[folded(word) for word in words] for words in text]
    features: list[list[naive.Feature]] = []
    for number, sentence in enumerate(pieces(text, "character")):
        here = naive.fold_of(number, len(text), words_of_training.FOLDS)
        known = naive.words_known_in(known_text, here, words_of_training.FOLDS)
        features += naive.features(sentence, templates, words=known)
    assert_same_structure(rows, features)


@given(sentences, st.data())
def test_guides_are_features_of_their_own(text: Sentences, data: st.DataObject) -> None:
    templates = guided(("c0", "c-1 c0", "g-1"))
    units = units_of(text, "character")
    guide = np.array(data.draw(st.lists(st.integers(-1, 3), min_size=len(units), max_size=len(units))), np.int32)
    found = Featurizer(templates, "character").hashes(units, guide)
    features = []
    for sentence, (begin, end) in zip(
        pieces(text, "character"), zip(units.sentences[:-1], units.sentences[1:], strict=True), strict=True
    ):
        features += list(naive.features(sentence, templates, guide=guide[begin:end].tolist()))
    assert_same_structure(found, features)
    assert_same_structure(Featurizer(templates, "character").hashes(units), all_features(text, "character", templates))


@given(sentences, st.data())
def test_several_guides_are_features_of_their_own(text: Sentences, data: st.DataObject) -> None:
    units = units_of(text, "word")
    labels = st.lists(st.integers(-1, 3), min_size=len(units), max_size=len(units))
    guides = np.array([data.draw(labels) for _ in range(3)], np.int32).reshape(3, len(units))
    edges = list(itertools.pairwise(units.sentences.tolist()))
    for n in (1, 2, 3):
        templates = guided(("w0", "prefix0"), n)
        features = []
        for sentence, (begin, end) in zip(pieces(text, "word"), edges, strict=True):
            first, *more = guides[:n, begin:end].tolist()
            features += list(naive.features(sentence, templates, guide=first, more=more))
        assert_same_structure(Featurizer(templates, "word").hashes(units, guides[:n]), features)


@given(sentences, st.integers(1, 3))
def test_rows_under_each_guide_are_those_of_that_guide(text: Sentences, block: int) -> None:
    """The features that look at the guide, known to training or not, for each label that it may be."""
    units = units_of(text, "character")
    plain, lines = ("c0", "c-1 c0"), guided(("c0", "c-1 c0"))
    guide = (np.arange(len(units)) % 3).astype(np.int32)
    featurizer = Featurizer(lines, "character")
    featurizer.fit([units], [guide])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(duilian.features, "BLOCK", block)
        found = [(begin, label, rows) for begin, label, rows in featurizer.under_each_guide(units, 3)]
    seen = np.zeros((3, len(units)), np.int64)
    for label in range(3):
        whole = featurizer.transform(units, np.full(len(units), label, np.int32))
        without = [featurizer.index.find(*_one(line, units))[0] for line in plain]
        known = set(np.concatenate([np.zeros(0, np.int64), *without]).tolist())
        for begin, one, rows in found:
            if one != label:
                continue
            for k in range(len(rows)):
                seen[label, begin + k] += 1
                assert rows[k].tolist() == [row for row in whole[begin + k].tolist() if row not in known]
    assert (seen == 1).all()


def _one(line: str, units: Units) -> tuple[Any, Any]:
    hashes = Featurizer((line,), "character").hashes(units)
    return hashes.data, hashes.offsets


@given(sentences)
def test_blocks_make_no_difference(text: Sentences) -> None:
    dictionary = words_of_training.build(units_of(text, "word"), True)
    units = units_of(text, "character")
    with pytest.MonkeyPatch.context() as patch:
        whole = Featurizer(CHARACTER_TEMPLATES, "character", dictionary=dictionary)
        (rows,) = whole.fit([units])
        one = whole.hashes(units)
        patch.setattr(duilian.features, "BLOCK", 3)
        cut = Featurizer(CHARACTER_TEMPLATES, "character", dictionary=dictionary)
        (cut_rows,) = cut.fit([units])
        two = cut.hashes(units)
    for left, right in ((one, two), (rows, cut_rows)):
        np.testing.assert_array_equal(left.data, right.data)
        np.testing.assert_array_equal(left.offsets, right.offsets)


@given(sentences, sentences)
def test_a_sentence_has_the_same_features_wherever_it_stands(text: Sentences, before: Sentences) -> None:
    featurizer = Featurizer(WORD_TEMPLATES, "word")
    alone, behind = featurizer.hashes(units_of(text, "word")), featurizer.hashes(units_of(before + text, "word"))
    n = len(behind) - len(alone)
    np.testing.assert_array_equal(behind.data[behind.offsets[n] :], alone.data)


def test_whitespace_is_seen_by_no_feature() -> None:
    plain, spaced = build([(["新年", "好"], None)]), build([(["新　年", " 好"], None)])
    words_seen = Featurizer(TEMPLATES["li2015"], "word")
    np.testing.assert_array_equal(
        words_seen.hashes(word_units(plain, plain.layer())).data,
        words_seen.hashes(word_units(spaced, spaced.layer())).data,
    )
    characters = Featurizer(TEMPLATES["jiang2012"], "character")
    np.testing.assert_array_equal(
        characters.hashes(character_units(plain)).data, characters.hashes(character_units(spaced)).data
    )


def test_threads_share_one_set_of_tables() -> None:
    """A thread that filled a set of its own would leave the others without the classes of half-width twins."""
    threads = 8
    together = threading.Barrier(threads)

    def ask(number: int) -> Any:
        together.wait()
        return characters.tables(encode(chr(0xFF10 + number % 4) * 3))

    for _ in range(5):
        characters._tables.cache_clear()
        with ThreadPoolExecutor(threads) as pool:
            found = list(pool.map(ask, range(threads)))
        assert all(one is other for tables in found for one, other in zip(tables, found[0], strict=True))
        classes, half, _ = found[0]
        assert classes[0xFF10:0xFF14].tolist() == [characters.DIGIT] * 4
        assert half[0xFF10:0xFF14].tolist() == [ord(digit) for digit in "0123"]


def test_the_hash_of_a_feature_depends_on_its_template_alone() -> None:
    """Other templates around it change nothing: a model's keys stay what they are."""
    units = units_of([["新年", "好"]], "word")
    alone = Featurizer(["w0 last-1"], "word").hashes(units).data.tolist()
    among = Featurizer(["w0", "w0 last-1", "first0"], "word").hashes(units)
    assert alone == [row.tolist()[1] for row in among]


# Rows ---------------------------------------------------------------------------------------------------------------


@given(sentences, sentences, st.integers(1, 3))
def test_rows_are_numbered_as_they_come_and_rare_ones_dropped(seen: Sentences, new: Sentences, cutoff: int) -> None:
    featurizer = Featurizer(WORD_TEMPLATES, "word")
    (rows,) = featurizer.fit([units_of(seen, "word")], cutoff=cutoff)
    features = all_features(seen, "word", WORD_TEMPLATES)
    counts = Counter(feature for unit in features for feature in unit)
    number: dict[naive.Feature, int] = {}
    for feature in (feature for unit in features for feature in unit):
        if counts[feature] >= cutoff:
            number.setdefault(feature, len(number))
    assert len(featurizer) == len(number)
    assert [row.tolist() for row in rows] == [[number[f] for f in unit if f in number] for unit in features]
    for text in (seen, new):
        found = featurizer.transform(units_of(text, "word"))
        expected = [[number[f] for f in unit if f in number] for unit in all_features(text, "word", WORD_TEMPLATES)]
        assert [row.tolist() for row in found] == expected
    again = Featurizer(WORD_TEMPLATES, "word", keys=featurizer.index.keys)
    np.testing.assert_array_equal(again.transform(units_of(seen, "word")).data, rows.data)


def test_several_corpora_share_rows() -> None:
    one, two = [["新年", "好"]], [["好", "人"]]
    featurizer = Featurizer(["w0"], "word")
    first, second = featurizer.fit([units_of(one, "word"), units_of(two, "word")])
    assert first.data.tolist() == [0, 1]
    assert second.data.tolist() == [1, 2]


@given(st.lists(st.integers(0, 60), max_size=120), st.lists(st.integers(0, 80), max_size=40))
def test_the_index_is_a_dictionary(keys: list[int], others: list[int]) -> None:
    """It grows several times over, also with keys that fall on one place."""
    step = np.uint64(pow(0x9E3779B97F4A7C15, -1, 1 << 64))

    def spread(numbers: list[int]) -> Any:
        return np.array([(number * int(step)) % (1 << 64) for number in numbers], np.uint64)

    index = Index()
    rows = index.add(spread(keys))
    number: dict[int, int] = {}
    assert rows.tolist() == [number.setdefault(key, len(number)) for key in keys]
    assert len(index) == len(number)
    index.freeze()
    offsets = np.arange(len(others) + 1)
    found, found_offsets = index.find(spread(others), offsets)
    assert found.tolist() == [number[key] for key in others if key in number]
    assert np.diff(found_offsets).tolist() == [int(key in number) for key in others]
    assert {int(place(key, 4)) for key in spread(keys)} <= {0}


def test_a_key_twice_is_an_error() -> None:
    with pytest.raises(ValueError, match="stands twice"):
        Index(np.array([5, 7, 5], np.uint64))


# Dictionary ---------------------------------------------------------------------------------------------------------


@given(sentences)
def test_the_dictionary_has_each_word_of_two_characters_once(text: Sentences) -> None:
    found = words_of_training.build(units_of(text, "word"), fold=True)
    known = naive.words_known_in([[folded(word) for word in words] for words in text], None, 10)
    assert len(found.words) == len(known)
    assert np.all(found.words[1:] > found.words[:-1])


def test_a_dictionary_from_a_file_counts_everywhere() -> None:
    """What is saved of it are the hashes: no fold."""
    text = [["人民", "日报"]] * 3
    built = words_of_training.build(units_of(text, "word"), True)
    loaded = Dictionary(built.words, np.full(len(built.words), -1, np.int8), built.longest)
    units = units_of(text, "character")
    first, second = (Featurizer(("begin0",), "character", dictionary=one).hashes(units) for one in (built, loaded))
    np.testing.assert_array_equal(first.data, second.data)


# Names --------------------------------------------------------------------------------------------------------------


@given(sentences)
def test_names_are_as_different_as_the_features(text: Sentences) -> None:
    dictionary = words_of_training.build(units_of(text, "word"), True)
    for unit, templates in (("word", WORD_TEMPLATES), ("character", CHARACTER_TEMPLATES)):
        featurizer = Featurizer(templates, unit, dictionary=dictionary if unit == "character" else None)
        names = list(spelled(featurizer, units_of(text, unit)))
        assert_same_structure(featurizer.hashes(units_of(text, unit)), [[(name,) for name in row] for row in names])


@given(sentences)
def test_rows_get_the_names_of_their_features(text: Sentences) -> None:
    featurizer = Featurizer(WORD_TEMPLATES, "word")
    units = units_of(text, "word")
    (rows,) = featurizer.fit([units], cutoff=2)
    names = names_of(featurizer, units)
    assert sorted(names) == list(range(len(featurizer)))
    kept = [[name for name in unit if name in set(names.values())] for unit in spelled(featurizer, units)]
    assert [[names[row] for row in unit.tolist()] for unit in rows] == kept
    some = list(range(0, len(featurizer), 3))
    assert names_of(featurizer, units, some) == {row: names[row] for row in some}


def test_names_can_be_read() -> None:
    featurizer = Featurizer(["w0 last-1", "prefix0", "shape0", "g0", "w+1"], "word")
    units = units_of([["新年", "Ａb1"]], "word")
    first, second = spelled(featurizer, units, np.array([1, 0]), ["NN", "NT"])
    assert first == ["w0=新年 last-1=<s>", "prefix0=新", "prefix0=新年", "shape0=other-date", "g0=NT", "w+1=Ab1"]
    assert second[:2] == ["w0=Ab1 last-1=年", "prefix0=A"]
    assert second[4:] == ["shape0=capital-letter-digit", "g0=NN", "w+1=</s>"]
    seg = Featurizer(
        ["t-1 t0 pu0", "begin0 mid0", "same0"], "character", dictionary=words_of_training.build(units, True)
    )
    assert list(spelled(seg, units_of([["新年", "，"]], "character"))) == [
        ["t-1=<s> t0=other pu0=no", "begin0=2 mid0=none", "same0=no"],
        ["t-1=other t0=date pu0=no", "begin0=none mid0=none", "same0=no"],
        ["t-1=date t0=other pu0=yes", "begin0=none mid0=none", "same0=no"],
    ]


def test_words_alone_name_most_features_of_a_model() -> None:
    text = [["新年", "好"], ["好", "人"]]
    featurizer = Featurizer(["w0", "w-1", "prefix0"], "word")
    featurizer.fit([units_of(text, "word")])
    names = names_of(featurizer, one_sentence(sorted({word for words in text for word in words})))
    assert {"w0=新年", "w0=好", "w0=人", "prefix0=新年", "w-1=<s>"} <= set(names.values())
    assert names_of(featurizer, one_sentence([])) == {}


def test_collisions_are_counted() -> None:
    text = [["新年", "好", "人们"], ["新年", "a"]]
    units = units_of(text, "word")
    featurizer = Featurizer(["w0", "w-1", "lower0", "single0"], "word")
    expected = {feature for unit in all_features(text, "word", featurizer.table.texts) for feature in unit}
    found = collisions(featurizer, units)
    assert (found.n_features, found.n_hashes, found.n_lost) == (len(expected), len(expected), 0)
    featurizer.seeds[1] = featurizer.seeds[0]
    shared = {word for words in text for word in words[:-1]}
    again = collisions(featurizer, units)
    assert (again.n_hashes, again.n_lost) == (len(expected) - len(shared), len(shared))


def test_every_atom_has_a_twin() -> None:
    for unit, atoms in (("word", WORD_ATOMS), ("character", CHARACTER_ATOMS)):
        templates = [f"{name}0" for name in sorted(atoms)]
        features = next(naive.features(["年"], templates, guide=[1], words={"年人"}, more=[[1]] * 7))
        assert {str(template) for template, *_ in features} == set(templates), unit


@given(st.sets(st.integers(0, 2**64 - 1), max_size=200), st.integers(0, 2**64 - 1))
def test_a_sieve_never_denies_what_is_there(keys: set[int], other: int) -> None:
    index = Index(np.array(sorted(keys), np.uint64))
    sieve, bits = index.sieve()
    assert all(may_have(sieve, bits, np.uint64(key)) for key in keys)
    assert len(sieve) * 64 == 2**bits >= 16 * len(keys)
    if not keys:
        assert not may_have(sieve, bits, np.uint64(other))


def test_a_sieve_denies_nearly_all_that_is_not_there() -> None:
    keys = np.random.default_rng(1).integers(0, 2**64 - 1, size=3000, dtype=np.uint64)
    sieve, bits = Index(np.unique(keys[:1000])).sieve()
    assert sum(bool(may_have(sieve, bits, key)) for key in keys[1000:]) < 200
