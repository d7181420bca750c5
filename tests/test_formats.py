"""Formats one by one: examples by hand, detection. What holds for all of them is in test_every_format.py."""

from __future__ import annotations

import gzip
import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from format_tools import pairs, read, spans, written
from fuzz import corpora as fuzz

from duilian import formats
from duilian.corpus import build
from duilian.errors import FormatError, UsageError

# Single formats -----------------------------------------------------------------------------------------------------


def test_words_of_a_multi_word_token_share_its_span_unless_they_make_it_up() -> None:
    corpus = read((fuzz.GOLDEN / "conllu.conllu").read_bytes())
    assert corpus.sentence_text(0) == "Theydon'tknow上海"
    assert corpus.words()[0][1:3] == ["do", "n't"]
    assert corpus.sentence_text(1) == "auNew York"
    layer = corpus.layer()
    assert spans(layer.starts[5:7], layer.ends[5:7]) == [(15, 17), (15, 17)]


def test_the_layer_of_conllu_is_xpos_where_it_is_filled() -> None:
    row = "1\ta\t_\t{}\t{}\t_\t_\t_\t_\t_\n\n"
    assert read(row.format("U", "X"), "conllu").layer().name == "xpos"
    assert read(row.format("U", "_"), "conllu").layer().name == "upos"
    assert read(row.format("_", "_"), "conllu").layer().name == "xpos"
    assert read(row.format("U", "X"), "conllu", layer="upos").tags() == [["U"]]
    later = row.format("U", "X") + row.format("U", "_")
    blocks = list(formats.read_blocks(io.BytesIO(later.encode()), format="conllu", block_chars=10))
    assert [block.layer().name for block in blocks] == ["xpos", "xpos"]
    with pytest.raises(UsageError, match="only xpos and upos"):
        read(row, "conllu", layer="deps")


def test_confidence_of_conllu_is_read_and_replaced() -> None:
    corpus = read((fuzz.GOLDEN / "conllu.conllu").read_bytes(), keep_source=True)
    confidence = corpus.layer().confidence
    assert confidence is not None
    np.testing.assert_array_equal(confidence[:5], np.array([np.nan, np.nan, 0.75, 0.5, np.nan], np.float32))
    values = np.linspace(0, 1, len(corpus.layer()), dtype=np.float32)
    values[0] = np.nan
    scored = corpus.with_layer(replace(corpus.layer(), confidence=values))
    text = written(scored, "conllu", confidence=True)
    assert "\tSpaceAfter=No|Conf=0.428571\n" in text  # behind what was there
    assert "\tConf=0.285714\n" in text  # in place of the old one
    assert "\tLang=zh|Conf=0.571429\n" in text
    again = read(text).layer().confidence
    assert again is not None
    np.testing.assert_allclose(again, values, rtol=0, atol=5e-7)
    for line, old in zip(text.split("\n"), (fuzz.GOLDEN / "conllu.conllu").read_text().split("\n"), strict=True):
        assert line.split("\t")[:9] == old.split("\t")[:9]


def test_conllu_segmented_anew_keeps_comments_and_renumbers() -> None:
    text = (
        "# sent_id = 1\n1\tab\tab\tX\tN\t_\t0\troot\t_\tSpaceAfter=No\n2\tc\tc\tX\tV\t_\t1\tobj\t_\t_\n\n"
        "# sent_id = 2\n1\td\td\tX\tN\t_\t0\troot\t_\tGloss=d\n\n"
    )
    corpus = read(text, keep_source=True)
    new = build([(["a", "bc"], ["P", "Q"]), (["d"], ["R"])], name="xpos").layer()
    assert written(corpus.with_layer(new), "conllu") == (
        "# sent_id = 1\n1\ta\t_\t_\tP\t_\t_\t_\t_\tSpaceAfter=No\n2\tbc\t_\t_\tQ\t_\t_\t_\t_\t_\n\n"
        "# sent_id = 2\n1\td\td\tX\tR\t_\t0\troot\t_\tGloss=d\n\n"
    )


def test_both_layers_of_conllu_are_written() -> None:
    corpus = read("1\ta\t_\tU\tX\t_\t_\t_\t_\t_\n\n", keep_source=True)
    upos = replace(corpus.layer("upos"), tags=("V",))
    assert written(corpus.with_layer(upos), "conllu", "xpos") == "1\ta\t_\tV\tX\t_\t_\t_\t_\t_\n\n"
    fresh = replace(corpus.with_layer(upos), source=None)
    assert written(fresh, "conllu", "xpos") == "1\ta\t_\tV\tX\t_\t_\t_\t_\t_\n\n"


def test_compounds_are_written_back_and_left_out_of_new_lines() -> None:
    text = "[中央/n  电视台/n]nt  播/v\n[长江/ns  三峡/ns]ns\n"
    corpus = read(text, keep_source=True)
    relabelled = build([(["中央", "电视台", "播"], ["A", "B", "C"]), (["长江三峡"], ["D"])]).layer()
    assert written(corpus.with_layer(relabelled), "slash") == "[中央/A  电视台/B]nt  播/C\n长江三峡/D\n"


def test_a_word_that_would_be_read_as_a_compound_is_not_written_with_slashes() -> None:
    for word, fine in (("[a", False), ("[", True), ("]", True), ("[1]", True), ("a]", True), ("[http://a]", False)):
        corpus = build([([word], ["x"])])
        if fine:
            assert pairs(read(written(corpus, "slash"), "slash")) == [[(word, "x")]]
        else:
            with pytest.raises(UsageError, match=r"beginning of a compound.*tsv"):
                written(corpus, "slash")


def test_columns_have_numbers() -> None:
    text = "上海\tNR\tB\n好\tVA\tO\n"
    assert read(text, layer="3").tags() == [["B", "O"]]
    assert read(text).layer().name == "2"
    for layer, message in (("x", "number of a column"), ("1", "has the words"), ("0", "number of a column")):
        with pytest.raises(UsageError, match=message):
            read(text, "tsv", layer=layer)
    with pytest.raises(FormatError, match="FILE:1: expected at least 4 columns, found 3"):
        read(text, "tsv", layer="4")


def test_a_column_of_tags_is_added_to_words_alone() -> None:
    corpus = read("上海\r\n好", "tsv", keep_source=True)
    tagged = corpus.with_layer(build([(["上海", "好"], ["NR", "VA"])], name="2").layer())
    assert written(tagged, "tsv") == "上海\tNR\r\n好\tVA"


def test_confidence_is_a_last_column() -> None:
    corpus = read("上海\tNR\tB\n好\tVA\tO\n\n", keep_source=True)
    layer = replace(corpus.layer(), confidence=np.array([0.25, 1], np.float32))
    assert written(corpus.with_layer(layer), "tsv", confidence=True) == "上海\tNR\tB\t0.250000\n好\tVA\tO\t1.000000\n\n"
    fresh = replace(corpus.with_layer(layer), source=None)
    assert written(fresh, "tsv", confidence=True) == "上海\tNR\t0.250000\n好\tVA\t1.000000\n\n"


def test_trees_of_all_shapes() -> None:
    text = (
        "(A (B c)) ( (D\n (E f)\n(-NONE- *) (G-SHORT h)) )\n\n((I j))((-LRB- -LRB-))\n"
        "<S ID=3>\n(X (-NONE- *T*))\n</S>\n"
    )
    found = [[("c", "B")], [("f", "E"), ("h", "G")], [("j", "I")], [("-LRB-", "-LRB-")], []]
    assert pairs(read(text, "brackets")) == found
    with pytest.raises(UsageError, match="can be read but not written"):
        written(read(text, "brackets"), "brackets")


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ("(A (B))", "label and no word"),
        ("(A ())", "nothing in it"),
        ("(A (B c d))", "more than one word"),
        ("(A (B c) d)", "a word beside"),
        ("(A d (B c) e)", "a word beside"),
        ("x (A (B c))", "outside of any tree"),
        ("(A (B c)))", "nothing opened"),
        ("(A (B c)", "never closes"),
    ],
)
def test_broken_trees(tree: str, message: str) -> None:
    text = f"(T (W one))\n\n{tree}\n(T (W two))\n"
    with pytest.raises(FormatError, match=message) as caught:
        read(text, "brackets")
    assert caught.value.line == 3
    skipped: list[FormatError] = []
    corpus = read(text, "brackets", on_error="skip", on_skip=skipped.append)
    assert [error.line for error in skipped] == [3]
    kept = [["c"]] if tree.startswith("x") or tree.endswith(")))") else []
    assert corpus.words() == [["one"], *kept, ["two"]]


def test_both_sides_of_coupled_columns() -> None:
    text = (
        "1\ta\t_\tNR^*\t_\t_\t_\t_\t_\tNR^Ng_NR^nr_VV^v\n"
        "2\tb\t_\t*^*\t_\t_\t_\t_\t_\tA^x_B^x\n3\tc\t_\t_\t_\t_\t_\t_\t_\t_\n"
    )
    corpus = read(text, keep_source=True)
    assert corpus.tags("1") == [["NR", frozenset("AB"), None]]
    assert corpus.tags("2") == [[frozenset({"Ng", "nr"}), frozenset("x"), None]]
    assert [layer.name for layer in read(text, layer="2").layers] == ["2", "1"]
    new = build([(["a", "b", "c"], [frozenset({"Ng", "nr"}), "x", None])], name="2").layer()
    lines_before, lines_after = text.split("\n"), written(corpus.with_layer(new), "coupled10").split("\n")
    assert lines_after[0] == lines_before[0]  # the same labels: the same bytes
    assert lines_after[1].split("\t")[3:] == ["*^x", "_", "_", "_", "_", "_", "A^x_B^x"]
    assert lines_after[2:] == lines_before[2:]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (("NR", "_"), "TAG\\^TAG"),
        (("^a", "_"), "TAG\\^TAG"),
        (("NR^*", "NR"), "bundles"),
        (("NR^*", "NR^*"), "bundles"),
        (("NR^*", "VV^v"), "allows no bundle"),
    ],
)
def test_broken_bundles(columns: tuple[str, str], message: str) -> None:
    text = f"1\ta\t_\tNR^nr\t_\t_\t_\t_\t_\t_\n2\ta\t_\t{columns[0]}\t_\t_\t_\t_\t_\t{columns[1]}\n"
    with pytest.raises(FormatError, match=message) as caught:
        read(text, "coupled10")
    assert caught.value.line == 2


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[1]", "expected an object"),
        ('{"sides": {}}', "key 'text'"),
        ('{"text": 1}', "expected a string"),
        ('{"text": "\\ud800"}', "surrogate"),
        ('{"text": "a\\u0000"}', "NUL"),
        ('{"text": "a", "sides": []}', "sides: expected an object"),
        ('{"text": "a", "sides": {"x": 1}}', "side 'x': expected an object"),
        ('{"text": "a", "sides": {"x": {}}}', "no list of units"),
        ('{"text": "a", "sides": {"x": {"units": [[0, 2]]}}}', "outside of a text of 1"),
        ('{"text": "a", "sides": {"x": {"units": [[0, 0]]}}}', "is empty"),
        ('{"text": "ab", "sides": {"x": {"units": [[1, 2], [0, 1]]}}}', "out of order"),
        ('{"text": "a", "sides": {"x": {"units": [[false, true]]}}}', "expected units"),
        ('{"text": "a", "sides": {"x": {"units": [[0, 1]], "labels": []}}}', "expected 1 labels"),
        ('{"text": "a", "sides": {"x": {"units": [[0, 1]], "labels": [""]}}}', "empty label"),
        ('{"text": "a", "sides": {"x": {"units": [[0, 1]], "labels": [[]]}}}', "empty list"),
        ('{"text": "a", "sides": {"x": {"units": [[0, 1]], "labels": [3]}}}', "expected a string"),
        ('{"text": "a", "sides": {"x": {"units": [[0, 1]], "confidence": [2]}}}', "from 0 to 1"),
        ('{"text": "a", "sides": {"x": {"units": [[0, 1]], "confidence": [NaN]}}}', "NaN"),
        ('{"text": "a"', "no JSON"),
        ('{"text": ' + "9" * 5000 + "}", "no JSON"),
        ('{"text": ' + "[" * 100_000 + "}", "deep"),
    ],
)
def test_broken_json_lines(line: str, message: str) -> None:
    with pytest.raises(FormatError, match=message) as caught:
        read('{"text": "fine"}\n\n' + line + "\n", "jsonl")
    assert caught.value.line == 3


def test_json_lines_keep_what_they_do_not_know() -> None:
    corpus = read((fuzz.GOLDEN / "jsonl.jsonl").read_bytes(), keep_source=True)
    pku = corpus.layer("pku")
    renamed = replace(pku, tags=tuple("x" + tag for tag in pku.tags))
    before = (fuzz.GOLDEN / "jsonl.jsonl").read_text().split("\n")
    after = written(corpus.with_layer(renamed), "jsonl").split("\n")
    assert after[0] == before[0]
    assert '"meta": {"source": "somewhere"}' in after[1]
    assert '"labels": ["xns", "xns"]' in after[1]
    assert '"standard": "ctb"' in after[1]
    assert "nbest" not in after[3]  # they were answers to the labels that are gone
    assert after[4] == before[4]


def test_json_lines_hold_the_n_best() -> None:
    corpus = build([(["ab", "c"], ["X", "Y"])], name="ctb")
    one, two = corpus.layer(), build([(["a", "bc"], ["X", "Z"])]).layer()
    out = io.BytesIO()
    with formats.open_writer(out, "jsonl") as writer:
        writer.write(corpus, nbest={"ctb": [[(0.75, one), (0.25, two)]]})
    answers = (
        '[{"score": 0.75, "labels": ["X", "Y"]}, {"score": 0.25, "units": [[0, 1], [1, 3]], "labels": ["X", "Z"]}]'
    )
    assert f'"nbest": {answers}' in out.getvalue().decode()
    with pytest.raises(UsageError, match="jsonl"), formats.open_writer(io.BytesIO(), "slash") as writer:
        writer.write(corpus, nbest={"ctb": [[(0.75, one)]]})


def test_sides_that_come_late_and_sides_that_are_asked_for() -> None:
    side = '{"x": {"units": [[0, 1]], "labels": ["N"], "confidence": [0.5]}}'
    text = f'{{"text": "a"}}\n{{"text": "b", "sides": {side}}}\n{{"text": "c"}}\n'
    corpus = read(text)
    assert pairs(corpus) == [[], [("b", "N")], []]
    assert corpus.layer().confidence is not None
    with pytest.raises(UsageError, match=r"no side 'y'; it has 'x'"):
        read(text, layer="y")
    blocks = list(formats.read_blocks(io.BytesIO(text.encode()), block_chars=20))
    assert [block.layer().name for block in blocks] == ["tags", "x"]


@pytest.mark.parametrize("text", ["a\nb", "a\r", "\n"])
def test_raw_text_with_a_line_end_inside_is_not_written(text: str) -> None:
    corpus = build([(["fine"], None), ([text], None)])
    with pytest.raises(UsageError, match="sentence 2: there is a line end in it"):
        written(corpus, "raw")
    assert written(build([(["a\rb"], None)]), "raw") == "a\rb\n"


def test_raw_text_keeps_its_spaces() -> None:
    corpus = read(" 上海\u3000好 \r\n\n x", "raw")
    assert [corpus.sentence_text(k) for k in range(3)] == [" 上海\u3000好 ", "", " x"]
    assert corpus.words() == [["上海", "好"], [], ["x"]]
    assert spans(corpus.layer().starts, corpus.layer().ends) == [(1, 3), (4, 5), (7, 8)]


# Detection ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("我/r 爱/v 你/r\n", "slash"),
        ("我_PN 爱_VV 你_PN\n", "underscore"),
        ("我 爱 北京 天安门\n", "segmented"),
        ("我爱北京天安门。\n今天天气很好，我们去公园。\n", "raw"),
        ("我爱北京 今天天气很好我们去公园\n", "raw"),
        ("The cat sat on the mat .\nIt was , as they say , warm .\n", "segmented"),
        ("The cat sat on the mat.\nIt was, as they say, warm.\n", "raw"),
        ("24/7 is a lot\nand/or not\n", "raw"),
        ("我\tPN\n爱\tVV\n\n", "tsv"),
        ("1\ta\t_\tX\tY\t_\t_\t_\t_\t_\n\n", "conllu"),
        ("# text = a\n1\ta\t_\tX\tY\t_\t_\t_\t_\t_\n\n", "conllu"),
        ("1\ta\t_\tX^Y\t_\t_\t_\t_\t_\t_\n\n", "coupled10"),
        ("(IP (NN a))\n", "brackets"),
        ("<DOC>\n<S ID=1>\n( (IP (NN a)))\n", "brackets"),
        ("(a remark in brackets)\n", "raw"),
        ('{"text": "a"}\n', "jsonl"),
        ("我/r 爱/v 你\n" * 9, "slash"),  # broken, and still what it is
    ],
)
def test_detection(text: str, expected: str) -> None:
    assert formats.detect(io.BytesIO(text.encode())) == expected


def test_a_file_without_content_is_what_its_name_says(tmp_path: Path) -> None:
    for name, expected in (("a.conllu", "conllu"), ("a.jsonl.gz", "jsonl"), ("a.unknown", "raw"), ("b.tsv", "tsv")):
        path = tmp_path / name
        path.write_bytes(gzip.compress(b"\n") if name.endswith(".gz") else b"\n")
        assert formats.detect(path) == expected
