"""Standards: tag sets and segmentation conventions as data. One TOML file each; a user adds folders of their own.

standard.py   Standard, to and from TOML        registry.py   which there are
check.py      a corpus against its standard     schemes.py    words as labels of characters
"""

from duilian.standards.check import UnknownTag, check, describe, from_corpus, unknown_tags
from duilian.standards.registry import folders, get, load, names, paths
from duilian.standards.standard import Standard

__all__ = [
    "Standard",
    "UnknownTag",
    "check",
    "describe",
    "folders",
    "from_corpus",
    "get",
    "load",
    "names",
    "paths",
    "unknown_tags",
]
