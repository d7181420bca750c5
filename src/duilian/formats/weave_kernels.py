"""The one kernel that writes: spans of text and strings of a table, in turn."""

from __future__ import annotations

from typing import Any

import numpy as np

from duilian.kernels import kernel


@kernel
def weave(text: Any, starts: Any, ends: Any, table: Any, table_offsets: Any, which: Any) -> Any:
    """For each piece, a span of the text and then a string of the table.

    Fresh output is words and what follows them; patched output is what stands between labels and new labels.
    text (n,) uint32; starts, ends, which (m,) int64; table uint32, its string k is table[table_offsets[k]:
    table_offsets[k + 1]] -> (total,) uint32. Called by weaving.render.
    """
    total = 0
    for k in range(len(starts)):
        total += ends[k] - starts[k] + table_offsets[which[k] + 1] - table_offsets[which[k]]
    out = np.empty(total, np.uint32)
    at = 0
    for k in range(len(starts)):
        for i in range(starts[k], ends[k]):
            out[at] = text[i]
            at += 1
        for i in range(table_offsets[which[k]], table_offsets[which[k] + 1]):
            out[at] = table[i]
            at += 1
    return out
