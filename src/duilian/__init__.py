"""duilian: one resource out of corpora annotated to different standards.

    read, write          corpora in any format             Corpus, build   corpora in the hand
    train, load, Side    methods and their taggers         Estimator       lists in, lists out, as in scikit-learn
    evaluate, compare    scores and significance           standards       tag sets as data

Names are looked up when they are first used, so that ``import duilian`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "Corpus": "duilian.corpus",
    "build": "duilian.corpus",
    "DuilianError": "duilian.errors",
    "read": "duilian.formats",
    "read_blocks": "duilian.formats",
    "write": "duilian.formats",
    "open_writer": "duilian.formats",
    "Side": "duilian.methods",
    "METHODS": "duilian.methods",
    "train": "duilian.methods",
    "load": "duilian.methods",
    "Tagger": "duilian.tagger",
    "evaluate": "duilian.evaluation",
    "compare": "duilian.evaluation",
    "Estimator": "duilian.estimator",
}

__all__ = [
    "METHODS",
    "Corpus",
    "DuilianError",
    "Estimator",
    "Side",
    "Tagger",
    "__version__",
    "build",
    "compare",
    "evaluate",
    "load",
    "open_writer",
    "read",
    "read_blocks",
    "train",
    "write",
]

if TYPE_CHECKING:
    from duilian.corpus import Corpus, build
    from duilian.errors import DuilianError
    from duilian.estimator import Estimator
    from duilian.evaluation import compare, evaluate
    from duilian.formats import open_writer, read, read_blocks, write
    from duilian.methods import METHODS, Side, load, train
    from duilian.tagger import Tagger


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'duilian' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
