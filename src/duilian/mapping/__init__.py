"""Mappings: which labels of different standards may be bundled; induced, written by hand, counted, shown.

table.py     Mapping, and where one comes from: complete, automatic, loose
lifts.py     from tags to labels of characters
rules.py     rule files: read, written, with counts as comments
counting.py  pairs of labels over one text, words common to two corpora, examples in context
drawing.py   a mapping as a picture: SVG and HTML
"""

from duilian.mapping.counting import Example, common_words, examples, from_overlaps, overlaps
from duilian.mapping.drawing import page, picture, shares
from duilian.mapping.lifts import LIFTS, lift
from duilian.mapping.rules import Rules, from_rules, parse_rules, read_rules, to_rules
from duilian.mapping.table import Mapping, Sides, automatic, complete, from_layers, loose, make, mark_weak

__all__ = [
    "LIFTS",
    "Example",
    "Mapping",
    "Rules",
    "Sides",
    "automatic",
    "common_words",
    "complete",
    "examples",
    "from_layers",
    "from_overlaps",
    "from_rules",
    "lift",
    "loose",
    "make",
    "mark_weak",
    "overlaps",
    "page",
    "parse_rules",
    "picture",
    "read_rules",
    "shares",
    "to_rules",
]
