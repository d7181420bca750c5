"""Studies: the papers' tables and figures on the user's corpora, as runs that can be interrupted and traced.

results.py      the folder of a study, read            corpora.py    sides from files, or from the corpora at hand
engine.py       cells one after another, resumable     ctb.py        the Chinese Treebank as it comes
cell.py         one cell, in its own process           recipe.py     what recipes are written in
all_methods.py, li2015.py, li2016.py, jiang2012.py, qiu2013.py, correspondence.py    the recipes
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duilian.studies.recipe import Kind

FILES = {
    "all": "all_methods",
    "li2015": "li2015",
    "li2016": "li2016",
    "jiang2012": "jiang2012",
    "qiu2013": "qiu2013",
    "correspondence": "correspondence",
}
"""Study -> the file of its recipe."""


def find(name: str) -> Kind:
    """The study of that name."""
    kind: Kind = import_module(f"duilian.studies.{FILES[name]}").KIND
    return kind
