"""The model file: a safetensors file whose metadata holds our JSON header. Strict to read, atomic to write, no pickle.

    8 bytes   length of the table, little-endian
    table     JSON: {"__metadata__": {"duilian": HEADER}, "name": {"dtype", "shape", "data_offsets"}, ...}
    data      the tensors one after the other, no gaps

docs/model-file.md describes every field; ``duilian.tensors`` has the checks a model makes on what it gets from here.
"""

from __future__ import annotations

import contextlib
import json
import math
import mmap
import os
import re
import secrets
import stat
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np
from numpy.typing import NDArray

from duilian.errors import ModelFileError
from duilian.tensors import Header, Tensors, short

FORMAT_VERSION = 1
FIRST_READER = {1: "0.1.0"}
"""Format version -> the first version of duilian that reads it; written into the file for older programs to quote."""

MAX_TABLE = 8 << 20
"""Bytes that the JSON table may have: long lists belong into tensors."""

MAX_ITEMS = 200_000
"""Brackets, commas and colons in the table: what bounds the memory that parsing it can take."""

MAX_DIMENSIONS = 8
KEY = "duilian"

DTYPES: dict[str, np.dtype[Any]] = {
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "I64": np.dtype("<i8"),
    "I32": np.dtype("<i4"),
    "I16": np.dtype("<i2"),
    "I8": np.dtype("i1"),
    "U64": np.dtype("<u8"),
    "U32": np.dtype("<u4"),
    "U16": np.dtype("<u2"),
    "U8": np.dtype("u1"),
    "BOOL": np.dtype("?"),
}
_NAMES = {dtype: name for name, dtype in DTYPES.items()}
_SURROGATE = re.compile("[\ud800-\udfff]")

_FOREIGN = (
    (b"PK\x03\x04", "a zip archive (perhaps a PyTorch or NumPy file)"),
    (b"\x80\x02", "a Python pickle"),
    (b"\x80\x03", "a Python pickle"),
    (b"\x80\x04", "a Python pickle"),
    (b"\x80\x05", "a Python pickle"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"\x1f\x8b", "gzip-compressed"),
    (b"\xfd7zXZ", "xz-compressed"),
    (b"BZh", "bzip2-compressed"),
    (b"SQLite format 3", "an SQLite database"),
    (b"lCRF", "a CRFsuite model"),
    (b"\x7fELF", "a program"),
)


def save(path: str | Path, header: Mapping[str, Any], tensors: Mapping[str, NDArray[Any]]) -> None:
    """Write a model file: the old file stays whole until the new one is complete.

    header: what JSON can hold; the format version is added here
    tensors: name -> array of a dtype in DTYPES
    """
    table, ordered = _table(header, tensors)
    with _replacing(Path(path)) as file:
        file.write(table)
        for array in ordered:
            if array.size:
                file.write(np.ascontiguousarray(array).data)


def load(path: str | Path) -> tuple[Header, Tensors]:
    """Read a model file -> (header, tensors); anything but a whole model file raises ModelFileError.

    The tensors are private, writable maps of the file: nothing is read before it is used.
    """
    path = Path(path)
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            _fail(
                path, "it is a folder" if path.is_dir() else "it is not a regular file", "Give the model file itself."
            )
        with path.open("rb") as file:
            n_bytes = os.fstat(file.fileno()).st_size
            start, entries, header = _parse(path, file, n_bytes)
            data = _map(file, n_bytes)
    except FileNotFoundError:
        _fail(path, "there is no such file", "Check the name, or train a model first: duilian train --help")
    except RecursionError:
        _fail(path, "its JSON table is nested too deeply")
    except MemoryError:
        _fail(path, "there is not enough memory to read it", "Close other programs or use a smaller model.")
    except (OSError, ValueError) as error:
        _fail(path, f"it cannot be read: {getattr(error, 'strerror', None) or error}")
    tensors = Tensors(path)
    for name, dtype, shape, begin in entries:
        count = math.prod(shape)
        tensors[name] = (
            np.frombuffer(data, dtype, count, start + begin).reshape(shape) if count else np.empty(shape, dtype)
        )
        if dtype.kind == "b" and np.any(tensors[name].view(np.uint8) > 1):
            _fail(path, f"tensor {name!r} is BOOL but has bytes other than 0 and 1")
    return header, tensors


def canonical(value: Any) -> str:
    """JSON with sorted keys, no spaces, no NaN: one text for one value."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


# Writing ------------------------------------------------------------------------------------------------------------


def _table(header: Mapping[str, Any], tensors: Mapping[str, NDArray[Any]]) -> tuple[bytes, list[NDArray[Any]]]:
    """The file up to its data, and the tensors in file order: wide items first, so that every tensor is aligned."""
    for name, array in tensors.items():
        if array.dtype.newbyteorder("<") not in _NAMES or array.ndim > MAX_DIMENSIONS or name in ("", "__metadata__"):
            raise ValueError(f"tensor {name!r} of dtype {array.dtype} with {array.ndim} dimensions cannot be saved")
    names = sorted(tensors, key=lambda name: (-tensors[name].dtype.itemsize, name))
    ordered = [tensors[name].astype(tensors[name].dtype.newbyteorder("<"), copy=False) for name in names]
    described = {**header, "format_version": FORMAT_VERSION, "needs": FIRST_READER[FORMAT_VERSION]}
    rows: dict[str, Any] = {}
    end = 0
    for name, array in zip(names, ordered, strict=True):
        begin, end = end, end + array.nbytes
        rows[name] = {"dtype": _NAMES[array.dtype], "shape": list(array.shape), "data_offsets": [begin, end]}
    metadata = json.dumps({KEY: canonical(described)}, ensure_ascii=False, separators=(",", ":"))
    parts = [f'"__metadata__":{metadata}']
    parts += [f"{json.dumps(n, ensure_ascii=False)}:{json.dumps(r, separators=(',', ':'))}" for n, r in rows.items()]
    table = ("{" + ",".join(parts) + "}").encode()
    table += b" " * (-len(table) % 8)
    if len(table) > MAX_TABLE or _count_items(table) > MAX_ITEMS:
        raise ValueError(f"a header of {len(table):,} bytes is too large to be read again: put long lists into tensors")
    return struct.pack("<Q", len(table)) + table, ordered


@contextlib.contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    """A new file that takes the place of the old one when all is written, and leaves nothing behind otherwise."""
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        _fail(path, "a model cannot be written there: it is not a regular file", "Give the name of a file.")
    if not target.parent.is_dir():
        _fail(path, "a model cannot be written there: the folder does not exist", f"Make it: mkdir -p {target.parent}")
    temporary = target.parent / f".duilian-{secrets.token_hex(8)}.tmp"
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            temporary.chmod(stat.S_IMODE(target.stat().st_mode))
        temporary.replace(target)
    except OSError as error:
        _fail(path, f"the model could not be written: {error.strerror or error}", "The old file, if any, is untouched.")
    finally:
        # After a successful rename there is nothing under this name any more.
        with contextlib.suppress(OSError):
            temporary.unlink()
    with contextlib.suppress(OSError):  # some file systems cannot sync a folder
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


# Reading ------------------------------------------------------------------------------------------------------------


def _map(file: BinaryIO, n_bytes: int) -> mmap.mmap | bytearray:
    """The whole file as a private writable map (a plain read where the file system cannot map)."""
    try:
        return mmap.mmap(file.fileno(), n_bytes, access=mmap.ACCESS_COPY)
    except OSError:
        file.seek(0)
        data = bytearray(n_bytes)
        if file.readinto(data) != n_bytes:  # type: ignore[attr-defined]
            raise OSError("the file became shorter while it was read") from None
        return data


def _parse(
    path: Path, file: BinaryIO, n_bytes: int
) -> tuple[int, list[tuple[str, np.dtype[Any], tuple[int, ...], int]], Header]:
    """The checked table: (where the data starts, [(name, dtype, shape, begin)], header)."""
    start = file.read(256)
    if n_bytes <= 8:
        _fail(path, f"it has {n_bytes} bytes, and a model file has more than 8" if start else "the file is empty")
    (length,) = struct.unpack("<Q", start[:8])
    if length > n_bytes - 8:
        kind = _foreign_kind(start, n_bytes)
        if kind:
            _fail(path, f"it is {kind}, not a model file")
        _fail(path, f"it is cut short or damaged: its table should have {length:,} bytes, {n_bytes - 8:,} are there")
    if length > MAX_TABLE:
        _fail(path, f"its table claims {length:,} bytes, and at most {MAX_TABLE:,} are allowed")
    if length % 8:
        _fail(path, f"its table has {length:,} bytes, not a multiple of 8")
    file.seek(8)
    table = _object(path, _json(path, file.read(length), "table"), "the table")
    metadata = _object(path, table.pop("__metadata__", {}), '"__metadata__"')
    if KEY not in metadata:
        _fail(path, f"it is a safetensors file that duilian did not write: no {KEY!r} in its metadata")
    if not isinstance(metadata[KEY], str):
        _fail(path, f"its metadata {KEY!r} is {short(metadata[KEY])} where a text was expected")
    header = _object(path, _json(path, metadata[KEY].encode("utf-8", "surrogatepass"), "header"), "the header")
    _check_version(path, header)
    return 8 + length, _check_entries(path, table, n_bytes - 8 - length), Header(path, header)


def _json(path: Path, text: bytes, what: str) -> Any:
    """Parsed JSON; names twice, NaN and more items than we ever write are errors."""

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(items)
        if len(result) < len(items):
            seen: set[str] = set()
            twice = next(name for name, _ in items if name in seen or seen.add(name))  # type: ignore[func-returns-value]
            _fail(path, f"the name {short(twice)} occurs twice in its {what}")
        return result

    def constant(name: str) -> NoReturn:
        _fail(path, f"its {what} holds {name}, which is no JSON number")

    if _count_items(text) > MAX_ITEMS:
        _fail(path, f"its {what} has more than {MAX_ITEMS:,} items")
    try:
        return json.loads(text.decode("utf-8"), object_pairs_hook=pairs, parse_constant=constant)
    except UnicodeDecodeError as error:
        _fail(path, f"its {what} is not UTF-8: byte {text[error.start]:#04x} at {error.start}")
    except ValueError as error:  # also integers of thousands of digits
        _fail(path, f"its {what} is not JSON: {str(error)[:200]}")


def _check_version(path: Path, header: dict[str, Any]) -> None:
    version = header.get("format_version")
    if type(version) is not int or version < 1:
        _fail(path, f"its format version is {short(version)}, and a number from 1 was expected")
    if version > FORMAT_VERSION:
        needs = header.get("needs")
        newer = f"duilian {needs}" if isinstance(needs, str) and re.fullmatch(r"[0-9.]{1,20}", needs) else "a newer one"
        _fail(
            path,
            f"its format version is {short(version)}, and this duilian reads 1 to {FORMAT_VERSION}",
            f"It needs {newer} or later: pip install --upgrade duilian",
        )


def _check_entries(
    path: Path, table: dict[str, Any], n_bytes: int
) -> list[tuple[str, np.dtype[Any], tuple[int, ...], int]]:
    """Every tensor inside the data, of the size its shape says, aligned; together they cover the data exactly."""
    entries = []
    spans = []
    for name, row in table.items():
        where = f"tensor {short(name)}"
        row = _object(path, row, where)
        if set(row) != {"dtype", "shape", "data_offsets"}:
            _fail(path, f"{where} has the fields {short(sorted(row))}; dtype, shape and data_offsets were expected")
        code, shape, offsets = row["dtype"], row["shape"], row["data_offsets"]
        if not isinstance(code, str) or code not in DTYPES:
            _fail(path, f"{where} has the dtype {short(code)}; expected one of {', '.join(DTYPES)}")
        if not _is_sizes(shape) or len(shape) > MAX_DIMENSIONS:
            _fail(path, f"{where} has the shape {short(shape)}; up to {MAX_DIMENSIONS} whole numbers were expected")
        if not _is_sizes(offsets) or len(offsets) != 2 or not offsets[0] <= offsets[1] <= n_bytes:
            _fail(path, f"{where} lies at {short(offsets)}, and the file has {n_bytes:,} bytes of data")
        dtype = DTYPES[code]
        claimed = dtype.itemsize
        for extent in shape:
            # Beside a zero, an extent could be anything; later code may allocate by it.
            if extent > max(n_bytes, 1 << 16):
                _fail(path, f"{where} has the shape {short(shape)}, more than the whole file holds")
            claimed *= extent
        if claimed != offsets[1] - offsets[0]:
            _fail(path, f"{where} takes {claimed:,} bytes by its shape, {offsets[1] - offsets[0]:,} by its place")
        if offsets[0] % dtype.itemsize:
            _fail(path, f"{where} starts at {offsets[0]}, no multiple of its item size {dtype.itemsize}")
        entries.append((name, dtype, tuple(shape), offsets[0]))
        spans.append((offsets[0], offsets[1], name))
    at = 0
    for begin, end, name in sorted(spans):
        if begin != at:
            _fail(path, f"tensor {short(name)} starts at {begin:,} where {at:,} was expected: a gap or an overlap")
        at = end
    if at != n_bytes:
        _fail(path, f"its tensors take {at:,} bytes and {n_bytes:,} are there: it is damaged or something was appended")
    return entries


def _is_sizes(value: Any) -> bool:
    """Whether value is a list of whole numbers from 0 (True is not a number here)."""
    return isinstance(value, list) and all(type(item) is int and item >= 0 for item in value)


def _object(path: Path, value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        _fail(path, f"{what} is {short(value)} where a JSON object was expected")
    return value


def _count_items(text: bytes) -> int:
    return sum(text.count(sign) for sign in (b"{", b"[", b",", b":"))


def _foreign_kind(start: bytes, n_bytes: int) -> str | None:
    """What a file that begins so and is no model seems to be, if that can be told."""
    # The length of a table of ours fits into three bytes: five zeros behind them are a model that was cut short.
    if start[3:8] == bytes(5):
        return None
    for magic, kind in _FOREIGN:
        if start.startswith(magic):
            return kind
    # The last character may be cut in two; anything else that is not UTF-8, or a zero byte, is not a text.
    text = start.decode("utf-8", "ignore")
    is_text = "\0" not in text and len(start) - len(text.encode()) <= (3 if n_bytes > len(start) else 0)
    return "a text file" if is_text else None


def _fail(path: Path, found: str, hint: str = "") -> NoReturn:
    hint = hint or "Expected a model written by `duilian train`: copy it again, or train it again."
    raise ModelFileError(f"{path}: {found}. {hint}") from None
