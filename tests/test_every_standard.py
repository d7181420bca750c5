"""What must hold for every standard that is shipped: a new TOML file in the folder is tested by being there."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from duilian import standards
from duilian.standards.registry import SHIPPED

SHIPPED_NAMES = sorted(path.stem for path in SHIPPED.glob("*.toml"))

COVERS = [
    ("zh-ud", "zh_ud/zh_ud-*.conllu", 4),
    ("ud", "zh_ud/zh_ud-*.conllu", 3),
    ("ptb", "en_ewt/en_ewt-*.conllu", 4),
    ("ud", "en_ewt/en_ewt-*.conllu", 3),
    ("unidic-suw", "ja_gsd/ja_gsd_suw-*.conllu", 4),
    ("unidic-luw", "ja_gsd/ja_gsd_luw-*.conllu", 4),
    ("ud", "ja_gsd/ja_gsd_*.conllu", 3),
]
PEOPLES_DAILY = (
    "a ad Ag an b Bg c d Dg e f h i j k l m Mg n na Ng nr ns nt nx nz o p q r Rg s t Tg u v vd Vg vn vvn w y Yg z"
)


@pytest.fixture(autouse=True)
def only_shipped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("DUILIAN_STANDARDS", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


def test_all_the_promised_ones_are_there() -> None:
    promised = {"ctb", "pku", "ud", "ptb", "brown", "universal", "unidic-suw", "unidic-luw", "zh-ud"}
    assert promised <= set(SHIPPED_NAMES)
    assert standards.names() == SHIPPED_NAMES


@pytest.mark.parametrize("name", SHIPPED_NAMES)
def test_says_what_it_is(name: str) -> None:
    standard = standards.get(name)
    assert standard.name == name
    for text in (standard.title, standard.language, standard.version, standard.source, standard.licence):
        assert text.strip()
    assert len(standard.segmentation.split()) > 3
    assert standard.unit == "word"


@pytest.mark.parametrize("name", SHIPPED_NAMES)
def test_is_documented_with_its_size(name: str) -> None:
    page = (Path(__file__).parents[1] / "docs" / "standards.md").read_text(encoding="utf-8")
    (row,) = [line for line in page.splitlines() if line.startswith(f"| `{name}` |")]
    assert int(row.split("|")[3]) == len(standards.get(name).tags)


@pytest.mark.parametrize("name", SHIPPED_NAMES)
def test_every_tag_has_a_gloss_that_says_more_than_the_tag(name: str) -> None:
    standard = standards.get(name)
    assert standard.tags
    for table in (standard.tags, standard.slips, standard.prefixes, standard.suffixes, standard.joins):
        for tag, gloss in table.items():
            assert gloss.strip(), f"{tag} has no gloss"
            assert gloss != tag
            assert "\n" not in gloss
    glosses = list(standard.tags.values())
    assert len(set(glosses)) == len(glosses), "two tags with one gloss cannot be told apart"


@pytest.mark.parametrize("name", SHIPPED_NAMES)
def test_tags_are_unique_and_usable_in_every_format(name: str) -> None:
    standard = standards.get(name)
    tags = [*standard.tags, *standard.slips]
    assert len(set(tags)) == len(tags)
    for tag in tags:
        assert tag.split() == [tag], f"{tag!r} holds a space"
        assert standard.knows(tag)
        assert str(standard.nearest(tag.upper())).upper() == tag.upper()
    assert not standard.knows("no such tag")
    assert not standard.knows("")


@pytest.mark.parametrize("name", SHIPPED_NAMES)
def test_toml_round_trip(name: str, tmp_path: Path) -> None:
    standard = standards.get(name)
    path = tmp_path / "copy.toml"
    path.write_text(standard.to_toml(), encoding="utf-8")
    again = standards.load(path)
    assert again == standard
    assert list(again.tags) == list(standard.tags)
    assert standards.Standard.from_dict(standard.to_dict()) == standard
    assert tomllib.loads(standard.to_toml())["name"] == name


@pytest.mark.parametrize("name", SHIPPED_NAMES)
def test_sub_categories_end(name: str) -> None:
    standard = standards.get(name)
    for tag in standard.tags:
        expanded = standard.expand(tag)
        assert expanded[0] == tag
        assert len(set(expanded)) == len(expanded)
        assert set(expanded) <= set(standard.tags)


def test_sizes_that_the_literature_gives() -> None:
    added_later = {"EM", "IC", "NOI", "URL", "X"}
    assert len(set(standards.get("ctb").tags) - added_later) == 33
    assert len(standards.get("ud").tags) == 17
    assert len(standards.get("universal").tags) == 12


def test_pku_covers_the_peoples_daily() -> None:
    pku = standards.get("pku")
    tags = PEOPLES_DAILY.split()
    assert len(tags) == 44
    assert [tag for tag in tags if not pku.knows(tag)] == []
    assert set(pku.slips) == {"vvn", "na"}
    assert pku.children("nr") == ("nrf", "nrg")
    assert set(pku.expand("n")) == {"n", "nr", "nrf", "nrg", "ns", "nt", "nx", "nz"}


@pytest.mark.parametrize(
    "tag", ["np-tl", "NP$-HL", "PPSS+BEM", "MD*+HV", "FW-IN+AT-T", "CD-TL-HL", "WRB+DOD*", "FW-*-TL", "---HL"]
)
def test_brown_composes_tags(tag: str) -> None:
    assert standards.get("brown").knows(tag)


@pytest.mark.parametrize("tag", ["NN-XX", "FW-", "-TL", "NN+", "+NN", "XX-TL", "*" * 300, "NN+" * 90])
def test_brown_does_not_compose_anything(tag: str) -> None:
    assert not standards.get("brown").knows(tag)


@pytest.mark.parametrize(("name", "files", "column"), COVERS)
def test_covers_the_corpora_at_hand(name: str, files: str, column: int, data_folder: Path) -> None:
    standard = standards.get(name)
    paths = sorted(data_folder.glob(files))
    if not paths:
        pytest.skip(f"no {files}")
    used = {tag for path in paths for tag in _column(path, column)}
    assert len(used) > 10
    assert [tag for tag in sorted(used) if not standard.knows(tag)] == []


def _column(path: Path, column: int) -> Iterator[str]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            fields = line.rstrip("\n").split("\t")
            if len(fields) == 10 and fields[0].isdigit():
                yield fields[column]
