"""Broken model files: a thousand ways to damage a good one, and the check that each is read or refused, never worse.

run(2000, seed=0)                                  the file format alone
run(2000, seed=0, load=load_model, originals=...)  a whole model: the same damage, read by the model's own loader
python -m fuzz.models 2000 [seed]                  from the tests folder
"""

from __future__ import annotations

import json
import math
import random
import signal
import struct
import sys
import tempfile
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from duilian import storage
from duilian.errors import ModelFileError

SECONDS = 5.0
"""What one file may take; the slowest seen takes a hundredth of it."""

HOSTILE = (
    None, True, False, 0, 1, -1, 7, 8, 2**31, 2**32 - 1, 2**53, 2**60, 2**63 - 1, 2**63, 2**64, 10**40, -(2**63),
    0.5, 1e308, -0.0, "", "F32", "I64", "F7", "a", "\u0000", "名", "x" * 5000, [], [0], [0, 8], [8, 0], [-8, 8],
    [2**62, 4], [2**32, 2**32], [0, 2**60], [1] * 40, [[]], {}, {"duilian": "{}"}, {"a": {"b": {}}},
)  # fmt: skip
"""What a field is replaced with."""


def sample() -> bytes:
    """A small model file with every kind of tensor."""
    header = {
        "method": "crf",
        "sides": [{"name": "ctb", "tags": ["AD", "NN", "VV"], "licence": "CC BY-SA 4.0"}],
        "settings": {"epochs": 6, "l2": 0.1, "seed": 1},
        "history": [{"epoch": 1, "dev": 91.5}, {"epoch": 2, "dev": 92.25}],
    }
    tensors = {
        "weights": np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3),
        "transitions": np.zeros((3, 3), np.float64),
        "offsets": np.array([0, 2, 2, 5], np.int64),
        "ids": np.array([0, 2, 1, 1, 0], np.int32),
        "text": np.array([0x540D, 0x8BCD], np.uint32),
        "seen": np.array([True, False, True]),
        "none": np.zeros((0, 3), np.int16),
        "one": np.array(7, np.uint8),
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sample"
        storage.save(path, header, tensors)
        return path.read_bytes()


# Damage: (random numbers, the whole file) -> the damaged file -------------------------------------------------------


def flip_bits(rng: random.Random, data: bytes) -> bytes:
    """One to eight bits anywhere, or in the table alone."""
    damaged = bytearray(data)
    end = len(data) if rng.random() < 0.5 else _table_end(data)
    for _ in range(rng.randint(1, 8)):
        damaged[rng.randrange(end)] ^= 1 << rng.randrange(8)
    return bytes(damaged)


def cut(rng: random.Random, data: bytes) -> bytes:
    """The file ends early, most often near an edge."""
    end = _table_end(data)
    return data[: rng.choice([rng.randrange(len(data)), rng.randrange(16), end, end - 1, end + 1, len(data) - 1])]


def append(rng: random.Random, data: bytes) -> bytes:
    """Something follows the file."""
    return data + rng.choice([b"\0", b"\n", rng.randbytes(rng.randint(1, 64)), data])


def move_chunk(rng: random.Random, data: bytes) -> bytes:
    """A piece is taken out, doubled, or overwritten by another."""
    begin = rng.randrange(len(data))
    end = min(len(data), begin + rng.randint(1, 64))
    to = rng.randrange(len(data))
    return rng.choice(
        [
            data[:begin] + data[end:],
            data[:end] + data[begin:],
            (data[:to] + data[begin:end] + data[to + end - begin :])[: len(data)],
        ]
    )


def lie_about_length(rng: random.Random, data: bytes) -> bytes:
    """The length of the table is not what it says."""
    true = struct.unpack("<Q", data[:8])[0]
    claims = [0, 1, 2, 7, 8, true - 8, true + 8, true + 1, len(data) - 8, len(data), storage.MAX_TABLE, 2**31, 2**60]
    return struct.pack("<Q", rng.choice([*claims, 2**63, 2**64 - 1])) + data[8:]


def edit_table(rng: random.Random, data: bytes) -> bytes:
    """One to three values of the table are replaced, dropped, swapped or doubled."""
    table = _table(data)
    for _ in range(rng.randint(1, 3)):
        _edit(rng, table)
    return _join(table, data)


def edit_header(rng: random.Random, data: bytes) -> bytes:
    """The same in our own header inside the table."""
    table = _table(data)
    header = json.loads(table["__metadata__"][storage.KEY])
    for _ in range(rng.randint(1, 3)):
        _edit(rng, header)
    table["__metadata__"][storage.KEY] = json.dumps(header)
    return _join(table, data)


def swap_tensors(rng: random.Random, data: bytes) -> bytes:
    """Two tensors exchange their place, shape, dtype or name: often a file that is whole, and wrong."""
    table = _table(data)
    names = [name for name in table if name != "__metadata__"]
    if len(names) < 2:
        return edit_table(rng, data)
    one, two = rng.sample(names, 2)
    field = rng.choice(["data_offsets", "shape", "dtype", None])
    if field is None:
        table[one], table[two] = table[two], table[one]
    else:
        table[one][field], table[two][field] = table[two][field], table[one][field]
    return _join(table, data)


def retype(rng: random.Random, data: bytes) -> bytes:
    """A tensor of the same size under another dtype or shape: whole, and wrong."""
    table = _table(data)
    row = table[rng.choice([name for name in table if name != "__metadata__"] or ["__metadata__"])]
    if "dtype" not in row:
        return edit_table(rng, data)
    size = storage.DTYPES[row["dtype"]].itemsize
    if rng.random() < 0.5:
        row["dtype"] = rng.choice([code for code, dtype in storage.DTYPES.items() if dtype.itemsize == size])
    else:
        row["shape"] = rng.choice([[math.prod(row["shape"])], [1, *row["shape"]], row["shape"][::-1]])
    return _join(table, data)


def poison_values(rng: random.Random, data: bytes) -> bytes:
    """The file is whole; numbers in one tensor are not what a model may hold."""
    table = _table(data)
    rows = [
        row for name, row in table.items() if name != "__metadata__" and row["data_offsets"][0] < row["data_offsets"][1]
    ]
    if not rows:
        return flip_bits(rng, data)
    row = rng.choice(rows)
    begin, end = (offset + _table_end(data) for offset in row["data_offsets"])
    dtype = storage.DTYPES[row["dtype"]]
    values = np.frombuffer(data[begin:end], dtype).copy()
    if dtype.kind == "f":
        poison: Sequence[Any] = [np.nan, np.inf, -np.inf, np.finfo(dtype).max, 0.0]
    elif dtype.kind == "b":
        poison = [True, False]
    else:
        info = np.iinfo(dtype)
        poison = [info.min, info.max, 0, 1, info.max // 2, len(values), len(values) - 1]
    at = rng.sample(range(len(values)), min(len(values), rng.choice([1, 2, 5])))
    values[at] = dtype.type(rng.choice(poison))
    return data[:begin] + values.tobytes() + data[end:]


def say_it_twice(rng: random.Random, data: bytes) -> bytes:
    """A name stands twice in the table, or in the header."""
    end = _table_end(data)
    table = data[8:end].rstrip(b" ")
    first = table.index(b":")
    again = rng.choice([b',"__metadata__":{}}', b"," + table[1:first] + b":1}", b',"one":{},"one":{}}'])
    return _with_table(table[:-1] + again, data[end:])


def nest(rng: random.Random, data: bytes) -> bytes:
    """JSON that is deep, or broad, where a small value was expected."""
    deep = rng.choice(["[" * n + "]" * n for n in (10, 900, 100_000)] + ["[" + "[]," * 60_000 + "[]]", "9" * 5000])
    place = rng.choice([f'{{"__metadata__":{deep}}}', f'{{"__metadata__":{{"duilian":{json.dumps(deep)}}}}}'])
    return _with_table(place.encode(), data[_table_end(data) :])


def spoil_text(rng: random.Random, data: bytes) -> bytes:
    """Bytes in the table that are no UTF-8, or no JSON."""
    at = rng.randrange(8, _table_end(data))
    spoilt = rng.choice(
        [b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\0", b"NaN", b"Infinity", b"-", b"\\ud800", b'"', b"}"]
    )
    return data[:at] + spoilt + data[at + len(spoilt) :]


def disguise(rng: random.Random, data: bytes) -> bytes:
    """Another kind of file altogether."""
    kinds = [b"PK\x03\x04" + data, b"\x80\x04\x95" + data, b"", b"{}", b"hello\n" * 50, data[:8], rng.randbytes(200)]
    return rng.choice([*kinds, bytes(300), b"\xef\xbb\xbf" + data, data[::-1]])


DAMAGE = (
    flip_bits, cut, append, move_chunk, lie_about_length, edit_table, edit_header, edit_header, swap_tensors, retype,
    poison_values, poison_values, say_it_twice, nest, spoil_text, disguise,
)  # fmt: skip


# The check ----------------------------------------------------------------------------------------------------------


def run(
    n: int,
    seed: int = 0,
    load: Callable[[Path], Any] = storage.load,
    originals: Sequence[bytes] | None = None,
) -> Counter[str]:
    """Damage n files and read each: a result or ModelFileError, within SECONDS and 50 MB + 20 times the file.

    Returns how many were read and refused. A failure names the damage and its seed and re-raises what happened.
    """
    originals = originals or [sample()]
    outcomes: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "damaged.duilian"
        for original in originals:
            path.write_bytes(original)
            load(path)  # whatever is slow the first time: compilation, imports
        started = not tracemalloc.is_tracing()
        if started:
            tracemalloc.start()
        try:
            for index in range(n):
                rng = random.Random(f"{seed}/{index}")
                damage = rng.choice(DAMAGE)
                data = damage(rng, rng.choice(originals))
                path.write_bytes(data)
                outcomes[_read_one(path, load, f"{damage.__name__}, seed {seed}, file {index}")] += 1
        finally:
            if started:
                tracemalloc.stop()
    return outcomes


def _read_one(path: Path, load: Callable[[Path], Any], what: str) -> str:
    """Read one damaged file: "read" or "refused", or an AssertionError that says what happened instead."""
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    begin = time.monotonic()
    outcome = "read"
    try:
        with _Alarm(4 * SECONDS):
            load(path)
    except ModelFileError as error:
        outcome = "refused"
        message = str(error)
        assert message.startswith(str(path)), f"{what}: the error does not name the file: {message[:300]!r}"
        assert len(message) < 1000 + len(str(path)), f"{what}: an error of {len(message)} characters"
        assert message.isprintable(), f"{what}: an error with control characters: {message[:300]!r}"
    except Exception as error:
        raise AssertionError(f"{what}: {type(error).__name__} instead of ModelFileError: {str(error)[:300]}") from error
    seconds = time.monotonic() - begin
    peak = tracemalloc.get_traced_memory()[1] - before
    allowed = 50_000_000 + 20 * path.stat().st_size
    assert seconds < SECONDS, f"{what}: {seconds:.1f} s"
    assert peak < allowed, f"{what}: {peak:,} bytes of memory where {allowed:,} are allowed"
    return outcome


class _Alarm:
    """Break out of a hang, where the system has an alarm to set."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __enter__(self) -> None:
        if hasattr(signal, "setitimer"):
            self.old = signal.signal(signal.SIGALRM, self._ring)
            signal.setitimer(signal.ITIMER_REAL, self.seconds)

    def __exit__(self, *_: object) -> None:
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, self.old)

    def _ring(self, *_: object) -> None:
        raise TimeoutError(f"still reading after {self.seconds:.0f} s")


# Taking a file apart ------------------------------------------------------------------------------------------------


def _table_end(data: bytes) -> int:
    return 8 + int(struct.unpack("<Q", data[:8])[0])


def _table(data: bytes) -> Any:
    return json.loads(data[8 : _table_end(data)])


def _join(table: Any, data: bytes) -> bytes:
    return _with_table(json.dumps(table, ensure_ascii=False).encode("utf-8", "surrogatepass"), data[_table_end(data) :])


def _with_table(table: bytes, tensors: bytes) -> bytes:
    table += b" " * (-len(table) % 8)
    return struct.pack("<Q", len(table)) + table + tensors


def _edit(rng: random.Random, value: Any) -> None:
    """Change one place somewhere below a list or an object, in place."""
    places: list[tuple[Any, Any]] = []
    stack = [value]
    while stack:
        node = stack.pop()
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        places += [(node, key) for key in keys]
        stack += [node[key] for key in keys if isinstance(node[key], dict | list)]
    if not places:
        return
    node, key = rng.choice(places)
    action = rng.randrange(5)
    if action == 0:
        del node[key]
    elif action == 1:
        other, place = rng.choice(places)
        if not isinstance(other, list) or place < len(other):
            node[key] = json.loads(json.dumps(other.get(place) if isinstance(other, dict) else other[place]))
    elif action == 2 and isinstance(node[key], int | float):
        node[key] = rng.choice(
            [node[key] + 1, node[key] - 1, -node[key], node[key] * 8, node[key] + 2**61, str(node[key])]
        )
    else:
        node[key] = rng.choice(HOSTILE)


if __name__ == "__main__":
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    print(dict(run(number, seed=int(sys.argv[2]) if len(sys.argv) > 2 else 0)))
