"""Arguments of several parts: what is accepted, and what the error says of what is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from duilian.cli.arguments import Reading, SideFiles, parse_settings, parse_sides
from duilian.errors import SettingError, UsageError


def test_sides_keep_their_order_and_gather_their_files() -> None:
    found = parse_sides(["ctb=a.txt", "pd:pku=b=c.txt#xpos", "ctb:ctb=d.txt"])
    assert found == [SideFiles("ctb", "ctb", ("a.txt", "d.txt")), SideFiles("pd", "pku", ("b=c.txt#xpos",))]


@pytest.mark.parametrize("text", ["train.txt", "=train.txt", "pku=", "pku:=train.txt", ":pku=train.txt", ""])
def test_a_side_that_is_none_says_what_was_expected(text: str) -> None:
    with pytest.raises(UsageError, match="expected NAME=FILE"):
        parse_sides([text])


def test_one_side_has_one_standard() -> None:
    with pytest.raises(UsageError, match="already has the standard pku"):
        parse_sides(["a:pku=1", "a:ctb=2"])


def test_settings_override_the_recipe(tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text('epochs = 10\nlearner = "crf"\ntemplates = ["w0", "w-1 w0"]\n')
    found = parse_settings(["epochs=3", "mapping=a=b"], recipe)
    assert found == {"epochs": "3", "learner": "crf", "templates": ["w0", "w-1 w0"], "mapping": "a=b"}


@pytest.mark.parametrize("text", ["[table]\nx = 1\n", "x = = 1", "x = 1\nx = 2"])
def test_a_broken_recipe_is_named(tmp_path: Path, text: str) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(text)
    with pytest.raises(SettingError, match=r"recipe\.toml"):
        parse_settings([], recipe)


def test_a_broken_setting_says_what_was_expected() -> None:
    with pytest.raises(SettingError, match="expected key=value"):
        parse_settings(["epochs"])
    with pytest.raises(UsageError, match="expected stop or skip"):
        Reading(on_error="ignore")
