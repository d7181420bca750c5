"""Index: feature hash -> row number, an open-addressed table that grows while training and is frozen afterwards."""

from __future__ import annotations

from typing import Any

import numpy as np

from duilian.kernels import kernel
from duilian.vectors import prefetch

SLOT = np.dtype([("key", np.uint64), ("row", np.int32), ("count", np.int32)], align=True)
AHEAD = 16
"""So many keys ahead a slot is asked for, so that its memory is there when its turn comes."""
_SPREAD = np.uint64(0x9E3779B97F4A7C15)


@kernel
def place(key: Any, bits: Any) -> Any:
    """Where the search for a key begins in a table of 2 ** bits slots."""
    return np.int64((key * _SPREAD) >> np.uint64(64 - bits))


@kernel
def insert_all(table: Any, bits: Any, keys: Any, begin: Any, n_rows: Any, rows: Any) -> Any:
    """Look up keys from begin on, adding new ones and counting all, until the table is half full.

    table (2 ** bits,) SLOT, an empty slot has count 0; keys (n,) uint64; rows (n,) int32 out;
    n_rows (1,) int64 in and out. Returns the first key that was not done (n when all were).
    """
    mask = len(table) - 1
    limit = len(table) // 2
    used = n_rows[0]
    last = len(keys) - 1
    for k in range(begin, len(keys)):
        prefetch(table, place(keys[min(k + AHEAD, last)], bits))
        key = keys[k]
        at = place(key, bits)
        while table[at]["count"] != 0 and table[at]["key"] != key:
            at = (at + 1) & mask
        if table[at]["count"] == 0:
            if used >= limit:
                n_rows[0] = used
                return k
            table[at]["key"] = key
            table[at]["row"] = used
            used += 1
        table[at]["count"] += 1
        rows[k] = table[at]["row"]
    n_rows[0] = used
    return len(keys)


@kernel
def rehash(old: Any, table: Any, bits: Any) -> None:
    """Move every slot of the old table into a larger, empty one."""
    mask = len(table) - 1
    for k in range(len(old)):
        if old[k]["count"] != 0:
            at = place(old[k]["key"], bits)
            while table[at]["count"] != 0:
                at = (at + 1) & mask
            table[at] = old[k]


@kernel
def fill(table: Any, bits: Any, keys: Any) -> Any:
    """Put keys[row] -> row into an empty table. Returns the number of a key that stands twice, or -1."""
    mask = len(table) - 1
    last = len(keys) - 1
    for row in range(len(keys)):
        prefetch(table, place(keys[min(row + AHEAD, last)], bits))
        key = keys[row]
        at = place(key, bits)
        while table[at]["count"] != 0:
            if table[at]["key"] == key:
                return row
            at = (at + 1) & mask
        table[at]["key"] = key
        table[at]["row"] = row
        table[at]["count"] = 1
    return -1


@kernel
def set_bits(keys: Any, bits: Any, sieve: Any) -> None:
    """Mark every key in a sieve of 2 ** bits bits, (2 ** bits / 64,) uint64 all 0."""
    for k in range(len(keys)):
        at = place(keys[k], bits)
        sieve[at >> 6] |= np.uint64(1) << np.uint64(at & 63)


@kernel
def may_have(sieve: Any, bits: Any, key: Any) -> Any:
    """False if a key is surely not in the table: one look at a few bits instead of a walk over slots."""
    at = place(key, bits)
    return (sieve[at >> 6] >> np.uint64(at & 63)) & np.uint64(1) != 0


@kernel
def look_up(table: Any, bits: Any, keys: Any, key_offsets: Any, rows: Any, row_offsets: Any) -> Any:
    """Rows of the keys that the table knows, unit by unit; returns how many.

    keys (n,) uint64 with key_offsets (U + 1,) int64; rows (n,) int32, row_offsets (U + 1,) int64 out.
    """
    mask = len(table) - 1
    n = 0
    last = len(keys) - 1
    row_offsets[0] = 0
    for u in range(len(key_offsets) - 1):
        for k in range(key_offsets[u], key_offsets[u + 1]):
            prefetch(table, place(keys[min(k + AHEAD, last)], bits))
            key = keys[k]
            at = place(key, bits)
            while table[at]["count"] != 0:
                if table[at]["key"] == key:
                    rows[n] = table[at]["row"]
                    n += 1
                    break
                at = (at + 1) & mask
        row_offsets[u + 1] = n
    return n


@kernel
def keep_frequent(rows: Any, row_offsets: Any, renumber: Any) -> Any:
    """Renumber rows in place, without those whose new number is -1, and rewrite row_offsets; returns how many stay."""
    n = 0
    begin = row_offsets[0]
    for u in range(len(row_offsets) - 1):
        end = row_offsets[u + 1]
        for k in range(begin, end):
            row = renumber[rows[k]]
            if row >= 0:
                rows[n] = row
                n += 1
        begin = end
        row_offsets[u + 1] = n
    return n


class Index:
    """Feature hash -> row number.

    keys: (n_rows,) uint64, the hash of each row, in order of first occurrence
    """

    def __init__(self, keys: Any = None) -> None:
        keys = np.zeros(0, np.uint64) if keys is None else np.ascontiguousarray(keys, np.uint64)
        self.bits = max(4, int(2 * max(len(keys), 1) - 1).bit_length())
        self.table = np.zeros(1 << self.bits, SLOT)
        self.keys = keys
        self.n_rows = np.array([len(keys)], np.int64)
        if fill(self.table, self.bits, keys) >= 0:
            raise ValueError("a feature hash stands twice in the index")

    def sieve(self) -> tuple[Any, int]:
        """What tells most keys that are not here apart from those that are, and the logarithm of its size in bits."""
        bits = max(6, int(16 * max(len(self), 1) - 1).bit_length())
        sieve = np.zeros(1 << (bits - 6), np.uint64)
        set_bits(self.keys, bits, sieve)
        return sieve, bits

    def __len__(self) -> int:
        return int(self.n_rows[0])

    def add(self, keys: Any) -> Any:
        """Rows of the keys, new rows for new keys: (n,) uint64 -> (n,) int32."""
        rows = np.empty(len(keys), np.int32)
        done = 0
        while (done := insert_all(self.table, self.bits, keys, done, self.n_rows, rows)) < len(keys):
            self.bits += 1
            table = np.zeros(1 << self.bits, SLOT)
            rehash(self.table, table, self.bits)
            self.table = table
        return rows

    def freeze(self, cutoff: int = 1) -> Any:
        """Drop rows seen fewer than cutoff times; returns (old rows,) int32 new numbers, -1 for the dropped."""
        used = self.table[self.table["count"] != 0]
        keys = np.empty(len(self), np.uint64)
        counts = np.empty(len(self), np.int32)
        keys[used["row"]] = used["key"]
        counts[used["row"]] = used["count"]
        keep = counts >= cutoff
        if keep.all():
            self.keys = keys
            return np.arange(len(keys), dtype=np.int32)
        renumber = np.where(keep, np.cumsum(keep) - 1, -1).astype(np.int32)
        self.__init__(keys[keep])  # type: ignore[misc]
        return renumber

    def find(self, keys: Any, key_offsets: Any) -> tuple[Any, Any]:
        """Rows of the known keys of each unit, as flat rows and offsets."""
        rows = np.empty(len(keys), np.int32)
        row_offsets = np.empty(len(key_offsets), np.int64)
        n = look_up(self.table, self.bits, keys, key_offsets, rows, row_offsets)
        return rows[:n], row_offsets
