"""Words as labels of characters and back, against the slow twin; what each scheme calls legal, by enumeration."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duilian.errors import StandardError
from duilian.ragged import offsets_of
from duilian.standards import schemes
from tests.naive import schemes as naive

NAMES = sorted(schemes.SCHEMES)
LENGTHS = st.lists(st.lists(st.integers(1, 5), max_size=6), max_size=5)


def numbers(scheme: schemes.Scheme, letters: str) -> np.ndarray:
    return np.array([scheme.prefixes.index(letter) for letter in letters], dtype=np.int8)


def letters(scheme: schemes.Scheme, prefixes: np.ndarray) -> str:
    return "".join(scheme.prefixes[number] for number in prefixes)


def test_the_twin_knows_all_schemes() -> None:
    assert set(naive.LETTERS) == set(schemes.SCHEMES)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("BIES", "SBEBIIE"), ("BMES", "SBEBMME"), ("BILOU", "UBLBIIL"), ("BIO", "BBIBIII")],
)
def test_words_of_one_two_and_four_characters(name: str, expected: str) -> None:
    scheme = schemes.scheme(name)
    assert letters(scheme, schemes.prefixes_of(scheme, np.array([1, 2, 0, 4]))) == expected


@pytest.mark.parametrize("name", NAMES)
@given(sentences=LENGTHS)
def test_round_trip(name: str, sentences: list[list[int]]) -> None:
    scheme = schemes.scheme(name)
    flat = [length for sentence in sentences for length in sentence]
    prefixes = schemes.prefixes_of(scheme, np.array(flat, dtype=np.int64))
    assert letters(scheme, prefixes) == naive.write(name, flat)
    offsets = offsets_of([sum(sentence) for sentence in sentences])
    starts, ends, words = schemes.words_of(scheme, prefixes, offsets)
    assert (ends - starts).tolist() == flat
    assert words.tolist() == offsets_of([len(sentence) for sentence in sentences]).tolist()
    assert schemes.is_legal(scheme, prefixes, offsets).all()


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_repair_of_any_sequence(name: str, data: st.DataObject) -> None:
    scheme = schemes.scheme(name)
    alphabet = st.text("".join(scheme.prefixes), max_size=7)
    sentences = data.draw(st.lists(alphabet, max_size=4))
    offsets = offsets_of([len(sentence) for sentence in sentences])
    starts, ends, words = schemes.words_of(scheme, numbers(scheme, "".join(sentences)), offsets)
    found = [(ends - starts)[a:b].tolist() for a, b in pairwise(words)]
    assert found == [naive.read(name, sentence) for sentence in sentences]


@pytest.mark.parametrize("name", NAMES)
def test_legal_is_what_some_words_write(name: str) -> None:
    scheme = schemes.scheme(name)
    for n in range(5):
        writings = naive.every_writing(name, n)
        for sequence in product(scheme.prefixes, repeat=n):
            sentence = "".join(sequence)
            offsets = np.array([0, n, n])
            legal = schemes.is_legal(scheme, numbers(scheme, sentence), offsets)
            assert legal.tolist() == [sentence in writings, True], sentence
            if sentence in writings:
                assert naive.read(name, sentence) == writings[sentence]


@pytest.mark.parametrize("name", NAMES)
def test_tables_hold_what_enumeration_finds(name: str) -> None:
    scheme = schemes.scheme(name)
    writings = [sentence for n in range(1, 7) for sentence in naive.every_writing(name, n)]
    for p, one in enumerate(scheme.prefixes):
        assert scheme.starts[p] == any(sentence[0] == one for sentence in writings)
        assert scheme.ends[p] == any(sentence[-1] == one for sentence in writings)
        for q, other in enumerate(scheme.prefixes):
            assert scheme.follows[p, q] == any(one + other in sentence for sentence in writings)


def test_sentences_are_read_apart() -> None:
    scheme = schemes.scheme("BIES")
    legal = schemes.is_legal(scheme, numbers(scheme, "SBE" + "IE" + "BI" + "S"), offsets_of([3, 2, 2, 0, 1]))
    assert legal.tolist() == [True, False, False, True, True]


def test_a_word_keeps_its_tag() -> None:
    scheme = schemes.scheme("BIES")
    prefixes = numbers(scheme, "BEBE")
    offsets = np.array([0, 2, 4])
    assert schemes.is_legal(scheme, prefixes, offsets, np.array([1, 1, 1, 0])).tolist() == [True, False]
    labels = ["B@NN", "E@NN", "S@NN", "B@VV", "E@VV", "S@VV"]
    number, tags, names = schemes.parse_labels(scheme, labels)
    assert names == ("NN", "VV")
    starts, ends, follows = schemes.grammar(scheme, number, tags)
    pairs = {(labels[p], labels[q]) for p, q in zip(*np.nonzero(follows), strict=True)}
    assert ("B@NN", "E@NN") in pairs
    assert ("B@NN", "E@VV") not in pairs
    assert ("E@NN", "B@VV") in pairs
    assert ("S@NN", "E@NN") not in pairs
    assert [label for label, may in zip(labels, starts, strict=True) if may] == ["B@NN", "S@NN", "B@VV", "S@VV"]
    assert [label for label, may in zip(labels, ends, strict=True) if may] == ["E@NN", "S@NN", "E@VV", "S@VV"]


def test_label_names() -> None:
    assert schemes.join_label("B", "NN") == "B@NN"
    assert schemes.split_label("B@a@b") == ("B", "a@b")
    assert schemes.split_label("B") == ("B", None)
    assert schemes.split_label("B@") == ("B", "")
    _, tags, names = schemes.parse_labels(schemes.scheme(), ["B", "I", "E", "S"])
    assert names == (None,)
    assert tags.tolist() == [0, 0, 0, 0]


def test_errors_name_what_is_possible() -> None:
    with pytest.raises(StandardError, match="BIES, BMES"):
        schemes.scheme("IOB1")
    with pytest.raises(StandardError, match="'M@NN'"):
        schemes.parse_labels(schemes.scheme("BIES"), ["B@NN", "M@NN"])
    with pytest.raises(ValueError, match="0 to 3"):
        schemes.words_of(schemes.scheme("BIES"), np.array([0, 4]), np.array([0, 2]))
    with pytest.raises(ValueError, match="offsets end at 1"):
        schemes.words_of(schemes.scheme("BIES"), np.array([3, 3]), np.array([0, 1]))


def test_nothing() -> None:
    scheme = schemes.scheme()
    assert len(schemes.prefixes_of(scheme, np.zeros(0, np.int64))) == 0
    starts, ends, words = schemes.words_of(scheme, np.zeros(0, np.int8), np.zeros(3, np.int64))
    assert (len(starts), len(ends), words.tolist()) == (0, 0, [0, 0, 0])
