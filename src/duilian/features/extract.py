"""Feature extraction: units and templates in, 64-bit hashes of (template, values) out. No feature string is ever built.

The slow twin that builds readable names is ``duilian.features.names``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from duilian.kernels import kernel

BEFORE = np.uint64(0x9E3779B97F4A7C15)
BEHIND = np.uint64(0xD1B54A32D192ED03)
ABSENT = np.uint64(0)
_A = np.uint64(0xBF58476D1CE4E5B9)
_B = np.uint64(0x94D049BB133111EB)


@kernel
def mix(state: Any, value: Any) -> Any:
    """One step of the hash: state and value, both uint64 -> uint64 (a multiply-xorshift finaliser)."""
    x = (state ^ value) * _A
    x ^= x >> np.uint64(29)
    x *= _B
    return x ^ (x >> np.uint64(32))


@kernel
def hash_spans(text: Any, starts: Any, ends: Any, out: Any) -> None:
    """Hash of each span's code points. text (n,) uint32; starts, ends (U,) int64; out (U,) uint64."""
    for u in range(len(starts)):
        h = np.uint64(1)
        for k in range(starts[u], ends[u]):
            h = mix(h, np.uint64(text[k]))
        out[u] = h


@kernel
def extract(
    atoms: Any,
    table: Any,
    table_offsets: Any,
    expansions: Any,
    seeds: Any,
    text: Any,
    starts: Any,
    ends: Any,
    sentences: Any,
    out: Any,
    out_offsets: Any,
) -> Any:
    """Hashes of all features of all units; returns how many.

    atoms (n_kinds, U) uint64 the value of each atom at each unit; table (n_atoms, 2), table_offsets (n_templates + 1,),
    expansions (n_templates,): a TemplateTable; seeds (n_templates,) uint64; text (n,) uint32, starts, ends (U,) int64
    the units' characters, for the expansions; sentences (S + 1,) int64 into the units;
    out (enough,) uint64, out_offsets (U + 1,) int64. Called by ``features.featurize``.
    """
    n = 0
    out_offsets[0] = 0
    for s in range(len(sentences) - 1):
        first, last = sentences[s], sentences[s + 1]
        for u in range(first, last):
            begin, end = starts[u], ends[u]
            for k in range(len(expansions)):
                h = seeds[k]
                absent = False
                for a in range(table_offsets[k], table_offsets[k + 1]):
                    v = u + table[a, 1]
                    if v < first:
                        value = BEFORE
                    elif v >= last:
                        value = BEHIND
                    else:
                        value = atoms[table[a, 0], v]
                        if value == ABSENT:
                            absent = True
                            break
                    h = mix(h, value)
                if absent:
                    continue
                expansion = expansions[k]
                if expansion == 0:
                    out[n] = h
                    n += 1
                elif expansion == 1:
                    for c in range(begin + 1, end - 1):
                        out[n] = mix(h, np.uint64(text[c]))
                        n += 1
                elif expansion == 2:
                    for c in range(begin, end - 1):
                        if text[c] == text[c + 1]:
                            out[n] = mix(h, np.uint64(text[c]))
                            n += 1
                elif expansion == 3:
                    for c in range(begin, min(begin + 4, end)):
                        h = mix(h, np.uint64(text[c]))
                        out[n] = h
                        n += 1
                else:
                    for c in range(end - 1, max(end - 5, begin - 1), -1):
                        h = mix(h, np.uint64(text[c]))
                        out[n] = h
                        n += 1
            out_offsets[u + 1] = n
    return n
