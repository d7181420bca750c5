"""Settings: what is read from texts, what is refused and how, and that a misspelt name is an error."""

from __future__ import annotations

from typing import Any

import pytest

from duilian.errors import SettingError
from duilian.settings import Setting, resolve

EPOCHS = Setting("epochs", 20, "passes", low=1, high=99)
RATE = Setting("rate", 0.5, "step", low=0)
FOLD = Setting("fold", True, "half-width")
LEARNER = Setting("learner", "crf", "which", choices=("crf", "pa"))
MARKS = Setting("marks", ("a",), "several")
TABLE = (EPOCHS, RATE, FOLD, LEARNER, MARKS)


@pytest.mark.parametrize(
    ("setting", "given", "value"),
    [
        (EPOCHS, "7", 7),
        (EPOCHS, 7, 7),
        (EPOCHS, "1", 1),
        (RATE, "1e-3", 0.001),
        (RATE, 2, 2.0),
        (FOLD, "no", False),
        (FOLD, "TRUE", True),
        (FOLD, False, False),
        (FOLD, "0", False),
        (LEARNER, "pa", "pa"),
        (MARKS, "x,y", ("x", "y")),
        (MARKS, ["x"], ("x",)),
    ],
)
def test_values_are_read_in_the_type_of_the_default(setting: Setting, given: Any, value: Any) -> None:
    found = setting.read(given)
    assert found == value
    assert type(found) is type(setting.default)


@pytest.mark.parametrize(
    ("setting", "given", "expected"),
    [
        (EPOCHS, "many", "epochs=many: expected a whole number of at least 1 and at most 99"),
        (EPOCHS, "1.5", "a whole number"),
        (EPOCHS, 0, "epochs=0: expected a whole number of at least 1"),
        (EPOCHS, 100, "at most 99"),
        (EPOCHS, True, "a whole number"),
        (EPOCHS, None, "a whole number"),
        (RATE, "-0.1", "rate=-0.1: expected a number of at least 0"),
        (RATE, "nan", "a number"),
        (RATE, "inf", "a number"),
        (RATE, "", "a number"),
        (FOLD, "maybe", "fold=maybe: expected yes or no"),
        (LEARNER, "svm", "learner=svm: expected one of crf, pa"),
    ],
)
def test_wrong_values_are_told_what_was_expected(setting: Setting, given: Any, expected: str) -> None:
    with pytest.raises(SettingError, match=expected):
        setting.read(given)


def test_what_is_not_given_has_its_default_and_nothing_is_changed() -> None:
    given = {"rate": "0.25"}
    found = resolve(TABLE, given, "crf")
    assert found == {"epochs": 20, "rate": 0.25, "fold": True, "learner": "crf", "marks": ("a",)}
    assert given == {"rate": "0.25"}


def test_a_misspelt_name_is_an_error_with_a_guess() -> None:
    with pytest.raises(SettingError, match=r"crf has no setting 'epoch'\. Did you mean epochs\? It has epochs, fold"):
        resolve(TABLE, {"epoch": 3}, "crf")
    with pytest.raises(SettingError, match=r"no setting 'zzz'\. It has"):
        resolve(TABLE, {"zzz": 3}, "crf")


def test_every_default_of_every_method_may_be_given() -> None:
    """Also as a text, as the command line gives it."""
    from duilian.methods import METHODS

    for method in METHODS.values():
        for setting in method.settings:
            if setting.default is not None:
                assert setting.read(setting.default) == setting.default
                assert setting.help
                if not isinstance(setting.default, tuple):
                    assert setting.read(str(setting.default)) == setting.default
