"""Standards: the registry and its folders, broken files, corpora against their standard, standards from corpora."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duilian import standards
from duilian.corpus import build
from duilian.errors import StandardError, TagError, UsageError
from duilian.standards.standard import edit_distance

MINIMAL = """\
name = "toy"
title = "a toy"
language = "en"
unit = "word"
source = "this test"
licence = "none"
[tags]
N = "noun"
V = "verb"
"PRP$" = "possessive"
"""


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder of the user's, registered, with the toy standard in it."""
    monkeypatch.setenv("DUILIAN_STANDARDS", str(tmp_path / "mine"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "toy.toml").write_text(MINIMAL, encoding="utf-8")
    return tmp_path / "mine"


def toy(text: str = MINIMAL) -> standards.Standard:
    import tomllib

    return standards.Standard.from_dict(tomllib.loads(text))


def test_users_folders_come_first(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert "toy" in standards.names()
    assert "ctb" in standards.names()
    config = tmp_path / "config" / "duilian" / "standards"
    config.mkdir(parents=True)
    (config / "toy.toml").write_text(MINIMAL.replace("a toy", "hidden"), encoding="utf-8")
    (config / "ud.toml").write_text(MINIMAL.replace('"toy"', '"ud"'), encoding="utf-8")
    assert standards.get("toy").title == "a toy"
    assert set(standards.get("ud").tags) == {"N", "V", "PRP$"}
    second = tmp_path / "second"
    second.mkdir()
    (second / "toy.toml").write_text(MINIMAL.replace("a toy", "the first"), encoding="utf-8")
    monkeypatch.setenv("DUILIAN_STANDARDS", f"{second}{os.pathsep}{folder}")
    assert standards.get("toy").title == "the first"


def test_an_unknown_name_lists_the_known(folder: Path) -> None:
    with pytest.raises(UsageError, match=r"'ptp'.*brown, ctb.*mean 'ptb'.*DUILIAN_STANDARDS"):
        standards.get("ptp")


def test_extends(folder: Path) -> None:
    text = 'name = "mine"\nextends = "toy"\ndrop = ["V"]\n[tags]\nX = "other"\nN = "name"\n[slips]\nn = "N"\n'
    (folder / "mine.toml").write_text(text, encoding="utf-8")
    mine = standards.get("mine")
    assert mine.tags == {"N": "name", "PRP$": "possessive", "X": "other"}
    assert mine.slips == {"n": "N"}
    assert mine.title == "a toy"
    assert standards.load(folder / "mine.toml") == mine


def test_extends_in_a_circle(folder: Path) -> None:
    for one, other in (("one", "two"), ("two", "one")):
        (folder / f"{one}.toml").write_text(f'name = "{one}"\nextends = "{other}"\n', encoding="utf-8")
    with pytest.raises(StandardError, match="one -> two -> one"):
        standards.get("one")
    (folder / "self.toml").write_text('name = "self"\nextends = "self"\n', encoding="utf-8")
    with pytest.raises(StandardError, match="circle"):
        standards.get("self")


def test_tails() -> None:
    tails = '[[tails]]\nafter = ["N", "V"]\n[tails.glosses]\n1 = "first"\n2 = "second"\n'
    standard = toy(MINIMAL + tails)
    assert list(standard.tags) == ["N", "V", "PRP$", "N-1", "N-2", "V-1", "V-2"]
    assert standard.gloss("V-2") == "verb; second"
    assert not standard.knows("PRP$-1")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'name' is missing"),
        ("name = 3", "name must be a text, found 3"),
        ('name = "toy\n"x"', "is not TOML.*line 1"),
        (MINIMAL + 'N = "again"', "is not TOML"),
        (MINIMAL + "PRP$ = 'unquoted'", "needs quotes"),
        (MINIMAL.replace('"word"', '"sentence"'), "unit must be one of word, character, found 'sentence'"),
        (MINIMAL.replace("title", "titel"), "unknown key 'titel'; the keys are name, title"),
        (MINIMAL.replace('"toy"', '"a toy"'), "name must be of letters"),
        (MINIMAL.replace('"noun"', "7"), r"\[tags\] 'N' must have a text, found 7"),
        (MINIMAL + 'a.b = "c"', r"\[tags\] 'a' must have a text"),
        (MINIMAL.split("[tags]")[0], r"\[tags\] is empty"),
        (MINIMAL.split("[tags]")[0] + "tags = 3", "tags must be a table"),
        (MINIMAL + '[slips]\nN = "x"', r"'N' is in \[tags\] and in \[slips\]"),
        (MINIMAL + '[parents]\nN = "Z"', "names 'Z', which is not in"),
        (MINIMAL + '[parents]\nN = "V"\nV = "N"', "sub-category of itself"),
        (MINIMAL + '[joins]\n"" = "x"', "empty mark"),
        ("drop = 'N'\n" + MINIMAL, "drop must be a list of texts"),
        ("drop = ['Z']\n" + MINIMAL, "drop names 'Z'"),
        ("fold_case = 1\n" + MINIMAL, "fold_case must be true or false"),
        ("tails = 3\n" + MINIMAL, "tails must be written as"),
        (MINIMAL + "[[tails]]\nafter = ['N']", "keys after and glosses"),
        (MINIMAL + "[[tails]]\nafter = ['Z']\n[tails.glosses]\na = 'b'", "'Z', which is not in"),
        ("extends = 3\n" + MINIMAL, "extends must be the name"),
        ("extends = 'nothing'\n" + MINIMAL, "no standard 'nothing'"),
        ("x = " + "[" * 3000, "not TOML|nested too deeply"),
    ],
)
def test_a_broken_file_is_named_with_what_is_wrong(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "broken.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(StandardError, match=message) as caught:
        standards.load(path)
    if "nothing" not in message:
        assert str(path) in str(caught.value)


def test_a_file_that_is_no_text_or_not_there(tmp_path: Path) -> None:
    path = tmp_path / "latin.toml"
    path.write_bytes(b'name = "\xff"')
    with pytest.raises(StandardError, match=r"latin.toml: is not UTF-8 \(byte 8\)"):
        standards.load(path)
    with pytest.raises(StandardError, match="cannot be read"):
        standards.load(tmp_path / "absent.toml")
    path.write_bytes(b"\xef\xbb\xbf" + MINIMAL.encode())
    assert standards.load(path).name == "toy"


def test_a_file_is_called_after_its_standard(folder: Path) -> None:
    (folder / "other.toml").write_text(MINIMAL, encoding="utf-8")
    with pytest.raises(StandardError, match="called after its standard"):
        standards.get("other")


def test_check_accepts_what_is_known_and_what_is_not_used() -> None:
    corpus = build([(["a", "b"], ["N", None]), (["c"], [frozenset({"N", "V"})])])
    standards.check(corpus.layer(), toy(), "f.txt")
    from duilian.corpus import with_tags

    standards.check(with_tags(corpus.layer(), ("N", "V", "unused")), toy(), "f.txt")


def test_check_names_the_first_unknown_tag_its_place_and_the_nearest() -> None:
    corpus = build(
        [
            (["der", "Hund"], ["N", "N"]),
            (["bellt", "laut", "nachts"], ["V", "prp$", "VV"]),
            (["immer"], ["prp$"]),
        ]
    )
    with pytest.raises(TagError) as caught:
        standards.check(corpus.layer(), toy(), "f.txt", corpus.text)
    message = str(caught.value)
    assert message.startswith("f.txt: sentence 2, word 2 ('laut'): tag 'prp$' is not in the standard 'toy' of 3 tags")
    assert "2 such tokens" in message
    assert "nearest known tag is 'PRP$' (possessive)" in message
    assert "1 more unknown tags: 'VV' (1)" in message
    assert "--standard auto" in message
    with pytest.raises(TagError, match=r"sentence 2, word 2: tag"):
        standards.check(corpus.layer(), toy())


def test_unknown_tags_in_sets_are_found() -> None:
    corpus = build(
        [(["a"], [frozenset({"N", "V"})]), (["b", "c"], [frozenset({"V", "Q"}), "Q"]), (["d"], [frozenset({"V", "Q"})])]
    )
    (found,) = standards.unknown_tags(corpus.layer(), toy())
    assert (found.tag, found.sentence, found.word, found.count) == ("Q", 2, 1, 3)


def test_from_corpus() -> None:
    corpus = build([(["a", "bb", "a"], ["N", "V", "N"]), (["c"], [frozenset({"V", "Z"})]), (["d"], [None])])
    standard = standards.from_corpus(corpus.layer(), "mine", corpus.text)
    assert list(standard.tags) == ["N", "V", "Z"]
    assert standard.tags["N"] == "seen 2 times, as in a"
    assert standard.tags["V"] == "seen 2 times, as in bb, c"
    assert standard.tags["Z"] == "seen 1 time, as in c"
    standards.check(corpus.layer(), standard, "f.txt")
    assert standards.from_corpus(corpus.layer(), "mine").tags["N"] == "seen 2 times"
    import tomllib

    assert standards.Standard.from_dict(tomllib.loads(standard.to_toml())) == standard


def test_nearest() -> None:
    standard = toy(MINIMAL + 'PRP = "pronoun"\n[suffixes]\n-TL = "title"\n')
    assert standard.nearest("prp$") == "PRP$"
    assert standard.nearest("PRPS") in ("PRP$", "PRP")
    assert standard.nearest("PRB-TL") == "PRP-TL"
    assert standard.nearest("名詞") is None


@given(st.text("ab", max_size=5), st.text("ab", max_size=5))
def test_edit_distance_is_a_shortest_path(one: str, other: str) -> None:
    def steps(a: str, b: str) -> int:
        if not a or not b:
            return len(a) + len(b)
        if a[0] == b[0]:
            return steps(a[1:], b[1:])
        return 1 + min(steps(a[1:], b), steps(a, b[1:]), steps(a[1:], b[1:]))

    assert edit_distance(one, other) == steps(one, other)


PRINTABLE = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)


@given(tags=st.dictionaries(PRINTABLE, PRINTABLE, min_size=1, max_size=5), title=PRINTABLE)
def test_any_text_survives_toml(tags: dict[str, str], title: str) -> None:
    import tomllib

    standard = standards.Standard("any", title.strip(), "und", "word", tags, source="", licence="")
    assert standards.Standard.from_dict(tomllib.loads(standard.to_toml())) == standard


def test_the_example_of_the_documentation_is_a_standard(folder: Path) -> None:
    page = (Path(__file__).parents[1] / "docs" / "standards.md").read_text(encoding="utf-8")
    blocks = [part.split("```")[0] for part in page.split("```toml\n")[1:]]
    (folder / "our-pku.toml").write_text(blocks[0], encoding="utf-8")
    ours = standards.get("our-pku")
    assert "vx" not in ours.tags
    assert ours.expand("nr") == ("nr", "nrf", "nrg", "nrx")
    (folder / "more.toml").write_text(
        MINIMAL.split("[tags]")[0].replace("toy", "more") + blocks[1] + "[tags]\nN = 'noun'"
    )
    assert standards.get("more").knows("fw-n-tl")
    assert standards.get("more").knows("N*+N")
