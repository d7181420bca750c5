"""Scores against hand-computed cases, against the slow twin on random annotations, and by relations they must keep."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duilian import evaluation
from duilian.corpus import Corpus, build
from duilian.errors import MismatchError
from duilian.evaluation import per_tag
from duilian.ragged import Ragged
from tests.naive import evaluation as naive

CLOSE = 1e-9
"""Absolute tolerance of scores, which are up to 100."""

TAGS = st.sampled_from(["N", "V", "X"])
LABELS = st.one_of(TAGS, st.none(), st.frozensets(TAGS, min_size=1, max_size=3))


@st.composite
def annotation(draw: st.DrawFn, texts: list[str], labels: st.SearchStrategy[object]) -> list[naive.Sentence]:
    """Sentences of these texts, cut into words anywhere, sometimes with spaces in them, with labels."""
    sentences = []
    for text in texts:
        words = [""]
        for character in text:
            if words[-1] and draw(st.booleans()):
                words.append("")
            words[-1] += character + (" " if draw(st.integers(0, 9)) == 0 else "")
        words = [word for word in words if word]
        if words and draw(st.integers(0, 9)) == 0:
            words.insert(0, " ")
        sentences.append((words, [draw(labels) for _ in words]))
    return sentences


@st.composite
def pairs(draw: st.DrawFn) -> tuple[list[naive.Sentence], list[naive.Sentence]]:
    """Two annotations of one text; half the time over the same words."""
    texts = draw(st.lists(st.text("ab", max_size=6), max_size=4))
    gold = draw(annotation(texts, LABELS))
    if draw(st.booleans()):
        return gold, [(words, [draw(LABELS) for _ in words]) for words, _ in gold]
    return gold, draw(annotation(texts, LABELS))


def corpus(sentences: list[naive.Sentence]) -> Corpus:
    return build(sentences)  # type: ignore[arg-type]


def same(found: object, expected: object) -> None:
    """Equal dictionaries of numbers, to CLOSE."""
    if isinstance(expected, dict):
        assert isinstance(found, dict)
        assert set(found) == set(expected)
        for key in expected:
            same(found[key], expected[key])
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, abs=CLOSE)
    else:
        assert found == expected


def test_sighan_by_hand() -> None:
    """Gold has 10 words, the system 10, 6 agree; of the gold words 'ef' and 'kl' are new, 'kl' is found."""
    gold = build([(["a", "b", "cd", "ef", "g"], None), (["h", "ij", "kl", "m", "n"], None)])
    pred = build([(["a", "b", "c", "de", "f", "g"], None), (["h", "ij", "kl", "mn"], None)])
    # sentence 1: a, b, g agree; sentence 2: h, ij, kl agree; predicted 6 + 4 words
    train = ["a", "b", "cd", "g", "h", "ij", "m", "n"]
    found = evaluation.evaluate(gold, pred, train_words=train)
    assert found["tokens"] == 10
    same(found["ws"], {"p": 60.0, "r": 60.0, "f": 60.0})
    assert found["joint"] is None
    assert found["accuracy"] is None
    assert found["oov_rate"] == pytest.approx(20.0, abs=CLOSE)
    assert found["oov_recall"] == pytest.approx(50.0, abs=CLOSE)
    assert found["iv_recall"] == pytest.approx(62.5, abs=CLOSE)


def test_tagged_words_by_hand() -> None:
    """The example of the qiu2013 paper: CTB 4 words against 6 words with other tags."""
    gold = build([(["刘翔", "进入", "中国区", "总决赛"], ["NR", "VV", "NN", "NN"])])
    pred = build([(["刘", "翔", "进入", "中国区", "总", "决赛"], ["NR", "NR", "VV", "NR", "JJ", "NN"])])
    found = evaluation.evaluate(gold, pred)
    same(found["ws"], {"p": 100 / 3, "r": 50.0, "f": 40.0})
    same(found["joint"], {"p": 100 / 6, "r": 25.0, "f": 20.0})
    assert found["accuracy"] is None
    assert found["oov_recall"] is None


def test_accuracy_by_hand() -> None:
    """Five words, one without a gold tag, one with a set: 3 of 4 are right; of two unseen words one is."""
    gold = build([(["the", "cat", "sat"], ["D", "N", None]), (["it", "ran"], [frozenset({"P", "N"}), "V"])])
    pred = build([(["the", "cat", "sat"], ["D", "V", "V"]), (["it", "ran"], ["P", "V"])])
    found = evaluation.evaluate(gold, pred, train_words=["the", "it", "sat"])
    assert found["accuracy"] == pytest.approx(75.0, abs=CLOSE)
    same(found["joint"], {"p": 75.0, "r": 75.0, "f": 75.0})
    same(found["ws"], {"p": 100.0, "r": 100.0, "f": 100.0})
    assert found["oov_recall"] == pytest.approx(50.0, abs=CLOSE)
    assert found["iv_recall"] == pytest.approx(100.0, abs=CLOSE)


def test_spaces_do_not_count() -> None:
    gold = build([(["ab c", "d"], ["N", "V"])])
    pred = build([(["a", "b"], ["N", "V"]), ([" ", "cd "], ["V", "N"])])
    found = evaluation.evaluate(gold, pred)
    same(found["ws"], {"p": 0.0, "r": 0.0, "f": 0.0})
    pred = build([(["a bc"], ["N"]), ([" ", "\u3000d "], ["X", "V"])])
    found = evaluation.evaluate(gold, pred, train_words=["a bc"])
    same(found["ws"], {"p": 100.0, "r": 100.0, "f": 100.0})
    assert found["accuracy"] == pytest.approx(100.0, abs=CLOSE)
    assert found["oov_rate"] == pytest.approx(50.0, abs=CLOSE)


def test_words_that_share_a_span_are_matched_in_order() -> None:
    """French du = de + le: both words stand on the same two characters."""
    both = build([(["du", "x"], ["A", "B"])])
    layer = both.layer()
    doubled = replace(
        layer,
        offsets=np.array([0, 3]),
        starts=np.array([0, 0, 2]),
        ends=np.array([2, 2, 3]),
        labels=np.array([0, 1, 1], dtype=np.int32),
    )
    swapped = replace(doubled, labels=np.array([1, 1, 1], dtype=np.int32))
    gold, pred = replace(both, layers=(doubled,)), replace(both, layers=(swapped,))
    assert evaluation.evaluate(gold, gold)["accuracy"] == pytest.approx(100.0, abs=CLOSE)
    assert evaluation.evaluate(gold, pred)["accuracy"] == pytest.approx(200 / 3, abs=CLOSE)
    once = evaluation.evaluate(gold, both)
    same(once["ws"], {"p": 100.0, "r": 200 / 3, "f": 80.0})
    assert once["accuracy"] is None


@given(pair=pairs(), train=st.one_of(st.none(), st.sets(st.text("ab", min_size=1, max_size=3))))
def test_scores_agree_with_the_twin(
    pair: tuple[list[naive.Sentence], list[naive.Sentence]], train: set[str] | None
) -> None:
    gold, pred = pair
    same(evaluation.evaluate(corpus(gold), corpus(pred), train_words=train), naive.evaluate(gold, pred, train))


@given(pair=pairs())
def test_per_tag_agrees_with_the_twin_and_adds_up(pair: tuple[list[naive.Sentence], list[naive.Sentence]]) -> None:
    gold, pred = pair
    alignment = evaluation.align(corpus(gold), corpus(pred))
    confusion = evaluation.confusion(alignment)
    found = confusion.per_tag()
    assert {tag: (one.correct, one.pred, one.gold) for tag, one in found.items()} == naive.per_tag(gold, pred)
    joint = evaluation.joint(alignment)
    assert sum(one.correct for one in found.values()) == joint.correct
    assert sum(one.gold for one in found.values()) == joint.gold
    wrong = sum(n for _, _, n in confusion.most_confused(1000))
    assert wrong == int(confusion.counts.sum()) - joint.correct


def test_confusion_by_hand() -> None:
    gold = build([(["a", "b", "cd", "e"], ["N", "V", "N", "V"]), (["f", "g"], ["N", None])])
    pred = build([(["a", "b", "c", "d", "e"], ["V", "V", "N", "X", "N"]), (["f", "g"], ["V", "N"])])
    confusion = evaluation.confusion(evaluation.align(gold, pred))
    assert confusion.tags == ("N", "V", "X")
    assert confusion.counts.tolist() == [[0, 2, 0], [1, 1, 0], [0, 0, 0]]
    assert confusion.missed.tolist() == [1, 0, 0]
    assert confusion.extra.tolist() == [1, 0, 1]
    assert confusion.most_confused(1) == [("N", "V", 2)]
    assert confusion.most_confused() == [("N", "V", 2), ("V", "N", 1)]
    assert confusion.per_tag()["V"] == evaluation.Found(correct=1, pred=3, gold=2)
    assert isinstance(confusion, per_tag.Confusion)


@given(pair=pairs())
def test_exchanging_the_sides_exchanges_precision_and_recall(
    pair: tuple[list[naive.Sentence], list[naive.Sentence]],
) -> None:
    one, other = corpus(pair[0]), corpus(pair[1])
    forward, back = evaluation.evaluate(one, other)["ws"], evaluation.evaluate(other, one)["ws"]
    same(forward, {"p": back["r"], "r": back["p"], "f": back["f"]})
    itself = evaluation.evaluate(one, one)
    assert itself["ws"]["f"] == (100.0 if itself["tokens"] else 0.0)


@given(pair=pairs())
def test_sentence_counts_add_up_to_the_scores(pair: tuple[list[naive.Sentence], list[naive.Sentence]]) -> None:
    alignment = evaluation.align(corpus(pair[0]), corpus(pair[1]))
    found = evaluation.score(alignment)
    assert evaluation.sentence_counts(alignment, "ws_f").f() == pytest.approx(found["ws"]["f"], abs=CLOSE)
    joint = evaluation.sentence_counts(alignment, "joint_f")
    assert joint.f() == pytest.approx(evaluation.joint(alignment).f, abs=CLOSE)
    if found["accuracy"] is not None:
        assert evaluation.sentence_counts(alignment, "accuracy").f() == pytest.approx(found["accuracy"], abs=CLOSE)


def test_token_accuracy_on_arrays() -> None:
    sets = Ragged.from_rows([[0, 2], [1]], np.int32)
    gold = np.array([0, 1, -1, -2, -2, -3, -3], dtype=np.int32)
    pred = np.array([0, 0, 0, 2, 1, 1, -1], dtype=np.int32)
    assert evaluation.token_accuracy(gold, pred, sets) == evaluation.Share(3, 6)
    empty = np.zeros(0, np.int32)
    assert evaluation.token_accuracy(empty, empty).value is None


def test_tasks_have_their_keys() -> None:
    gold = build([(["a", "bc"], ["N", "V"])])
    cut = build([(["ab", "c"], ["N", "V"])])
    general = {"tokens", "sentences", "oov_recall", "iv_recall", "oov_rate"}
    assert set(evaluation.evaluate(gold, gold, task="pos")) == general | {"accuracy"}
    assert set(evaluation.evaluate(gold, cut, task="seg")) == general | {"ws"}
    assert set(evaluation.evaluate(gold, cut, task="segpos")) == general | {"ws", "joint"}
    with pytest.raises(MismatchError, match=r"sentence 1, word 1: gold has 'a'"):
        evaluation.evaluate(gold, cut, task="pos")
    with pytest.raises(MismatchError, match="words differ"):
        evaluation.evaluate(build([(["a b"], ["N"])]), build([([" ", "a", "b"], ["N", "N", "N"])]), task="pos")
    # with the words the same, new words count by their tags; in seg by their characters
    wrong = build([(["a", "bc"], ["N", "N"])])
    assert evaluation.evaluate(gold, wrong, train_words=["a"], task="pos")["oov_recall"] == 0.0
    assert evaluation.evaluate(gold, wrong, train_words=["a"], task="seg")["oov_recall"] == 100.0


@pytest.mark.parametrize(
    ("other", "place"),
    [
        ([["ab"], ["cx"]], r"sentence 2, character 2 .*gold has 'd', pred has 'x'"),
        ([["ab"], ["c"]], r"sentence 2, character 2 .*gold has 'd', pred has nothing more"),
        ([["ab"], ["cd", "e"]], r"sentence 2, character 3 .*gold has nothing more, pred has 'e'"),
        ([["xb"], ["cd"]], r"sentence 1, character 1 .*gold has 'abcd', pred has 'xbcd'"),
    ],
)
def test_different_texts_are_named_with_the_place(other: list[list[str]], place: str) -> None:
    gold = build([(["a", "b"], None), (["c d"], None)])
    with pytest.raises(MismatchError, match=place):
        evaluation.evaluate(gold, build([(words, None) for words in other]))
    with pytest.raises(MismatchError, match=r"g.txt has .*p.txt has"):
        evaluation.evaluate(gold, build([(words, None) for words in other]), names=("g.txt", "p.txt"))


def test_japanese_segmentations_against_each_other(data_folder: Path) -> None:
    """The short unit words of the test file scored as if they were long ones; figures counted by another program."""

    def read(path: Path) -> Corpus:
        sentences: list[naive.Sentence] = [([], [])]
        for line in path.read_text(encoding="utf-8").splitlines():
            fields = line.split("\t")
            if not line:
                sentences.append(([], []))
            elif len(fields) == 10 and fields[0].isdigit():
                sentences[-1][0].append(fields[1])
                sentences[-1][1].append(fields[4])
        return corpus(sentences)

    files = [data_folder / "ja_gsd" / f"ja_gsd_{name}-test.conllu" for name in ("luw", "suw")]
    if not all(path.exists() for path in files):
        pytest.skip("no ja_gsd")
    found = evaluation.evaluate(read(files[0]), read(files[1]))
    assert round(found["ws"]["f"], 2) == 72.33
    assert round(found["joint"]["f"], 2) == 64.30


def test_nothing_at_all() -> None:
    nothing = build([])
    found = evaluation.evaluate(nothing, nothing, train_words=["a"])
    assert found == {
        "tokens": 0,
        "sentences": 0,
        "ws": {"p": 0.0, "r": 0.0, "f": 0.0},
        "joint": None,
        "accuracy": None,
        "oov_recall": None,
        "iv_recall": None,
        "oov_rate": None,
    }
    empty_sentences = build([([], None), ([], None)])
    assert evaluation.evaluate(empty_sentences, nothing)["tokens"] == 0
    with pytest.raises(MismatchError, match="sentence 1, character 1"):
        evaluation.evaluate(nothing, build([(["a"], None)]))


def test_vocabulary_is_without_spaces() -> None:
    assert evaluation.vocabulary(build([(["a b", " ", "c"], None)])) == {"ab", "c"}


def test_a_million_words_in_a_few_seconds() -> None:
    """Measured 0.6 s on an idle core; the bound leaves room for a busy machine."""
    n = 300_000 if "coverage" not in sys.modules else 3_000
    rng = np.random.default_rng(1)
    text = rng.integers(0x4E00, 0x5000, size=2 * n).astype(np.uint32)
    one = build([(["ab"], ["N"])]).layer()

    def random_layer() -> Corpus:
        cuts = np.unique(np.concatenate([[0, 2 * n], rng.integers(0, 2 * n, size=n)]))
        units = len(cuts) - 1
        layer = replace(
            one,
            tags=("N", "V"),
            offsets=np.array([0, units]),
            starts=cuts[:-1],
            ends=cuts[1:],
            labels=rng.integers(0, 2, size=units).astype(np.int32),
        )
        return Corpus(text, np.array([0, 2 * n]), (layer,))

    gold, pred = random_layer(), random_layer()
    begin = time.perf_counter()
    found = evaluation.evaluate(gold, pred, train_words=["一"])
    assert time.perf_counter() - begin < 3.0
    assert 0 < found["joint"]["f"] < found["ws"]["f"] < 100


def test_importing_evaluation_and_standards_loads_no_compiler() -> None:
    code = "import duilian.evaluation, duilian.standards.schemes, sys; print('numba' in sys.modules)"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "False"
