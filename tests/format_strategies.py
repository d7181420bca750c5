"""Hypothesis strategies for corpus formats: texts that look like each format, broken or not, and corpora to write."""

from __future__ import annotations

from hypothesis import strategies as st

from duilian.corpus import Label

SPACES = " \t\r\x0b\x0c\x1c\x85\xa0\u2003\u3000"
"""White space of all kinds but the line feed."""

lines = st.text(alphabet="ab/_[]\t \r\n\u3000中😀^*#", max_size=40)
"""Anything that lines of tokens are made of, broken more often than not."""

slash_tokens = st.sampled_from(
    [
        "a/n",
        "中/v",
        "a/b/c",
        "[a/n",
        "a/n]x",
        "a/n]/x",
        "[",
        "]",
        "]x",
        "[/w",
        "]/w",
        "[1]/m",
        "[[a/n",
        "a/n]x]y",
        "[a/n]x",
        "a/b]",
    ]
)

slash_texts = st.lists(
    st.lists(st.tuples(slash_tokens, st.sampled_from([" ", "  ", "\t"])).map("".join), max_size=6).map("".join),
    max_size=4,
).map("\n".join)
"""Compounds, often whole ones."""

row_texts = st.lists(
    st.sampled_from(["a\tb", "中\tNN", "a", "a\tb\tc", "", "", "\t", "a\t", "x y\tz", "a\tb\r", "\r"]), max_size=7
).map("\n".join)

_conllu_rows = [
    ("1", "a", "X", "Y"),
    ("1", "中 b", "_", "Y"),
    ("2", "b", "X", "_"),
    ("3", "c", "_", "_"),
    ("1-2", "ab", "_", "_"),
    ("1-2", "q", "_", "_"),
    ("2-3", "bc", "_", "_"),
    ("1.1", "e", "_", "_"),
    ("0", "e", "_", "_"),
    ("2", "", "X", "Y"),
]

conllu_texts = st.lists(
    st.sampled_from(
        [f"{n}\t{form}\t_\t{upos}\t{xpos}\t_\t_\t_\t_\t_" for n, form, upos, xpos in _conllu_rows]
        + ["# c", "", "", "1\ta", "1\ta\t_\tX\tY\t_\t_\t_\t_\t_\r", "\r"]
    ),
    max_size=8,
).map("\n".join)

_characters = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
words = st.text(
    alphabet=st.one_of(st.sampled_from("ab中文/_[]^*#(){}\"'|,.\ufeff"), _characters), min_size=1, max_size=4
)
"""Any word at all; a format may refuse some."""

tags = st.text(alphabet=st.one_of(st.sampled_from("NVR$-.`'*_^"), _characters), min_size=1, max_size=3)

labels: st.SearchStrategy[Label] = st.one_of(
    tags, st.none(), st.frozensets(st.sampled_from(["NN", "VV", "R"]), min_size=1, max_size=3)
)


@st.composite
def sentences(draw: st.DrawFn, plain: bool) -> list[tuple[list[str], list[Label]]]:
    """Sentences of words with labels; ``plain``: words without white space and one known tag for each."""
    some_words = words.filter(lambda word: word.split() == [word]) if plain else words
    some_labels: st.SearchStrategy[Label] = st.sampled_from(["NN", "VV", "n.r", "P-x"]) if plain else labels
    found = draw(st.lists(st.lists(st.tuples(some_words, some_labels), max_size=5), max_size=4))
    return [([word for word, _ in sentence], [label for _, label in sentence]) for sentence in found]
