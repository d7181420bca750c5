"""From a path or stream to blocks of whole sentences: decompression, decoding, detection, cutting. No format here.

The only place that opens a corpus for reading. Everything streams: a block is as long as asked for, a sentence may be
``SENTENCE_LIMIT`` long, and a compressed file is never expanded further than the next block.
"""

from __future__ import annotations

import codecs
import gzip
import io
import lzma
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Literal, cast

import numpy as np

from duilian.corpus import encode
from duilian.errors import DataError, FormatError, UsageError
from duilian.formats.base import Points

CHUNK = 1 << 20
SAMPLE = 1 << 16
SENTENCE_LIMIT = 1 << 22
XZ_MEMORY = 1 << 27
BOMB_RATIO, BOMB_BYTES = 250, 1 << 23

_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_BROKEN = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)


@contextmanager
def opened(path: Any) -> Iterator[tuple[IO[bytes], str]]:
    """A binary stream and its name, from a path, ``-`` or a stream (which stays open)."""
    if hasattr(path, "read"):
        stream = path.buffer if isinstance(path, io.TextIOWrapper) else path
        if isinstance(stream, io.TextIOBase):
            stream = io.BytesIO(stream.read().encode("utf-8", "surrogatepass"))
        yield stream, str(getattr(path, "name", "<stream>"))
    elif str(path) == "-":
        yield sys.stdin.buffer, "<stdin>"
    else:
        try:
            file = Path(path).open("rb")  # noqa: SIM115
        except FileNotFoundError:
            raise DataError(f"{path}: there is no such file.") from None
        except IsADirectoryError:
            raise DataError(f"{path}: this is a folder, expected a file.") from None
        except (OSError, ValueError) as error:
            raise DataError(f"{path}: cannot be opened: {getattr(error, 'strerror', None) or error}.") from None
        with file:
            yield file, str(path)


class _Counted(io.RawIOBase):
    """A stream that knows how many bytes were read from it, beginning with some that were read before."""

    def __init__(self, head: bytes, stream: IO[bytes]) -> None:
        self.head, self.stream, self.count = head, stream, 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if self.head:
            size = len(self.head) if size < 0 else size
            data, self.head = self.head[:size], self.head[size:]
        else:
            data = self.stream.read(size)
        self.count += len(data)
        return data


def _unxz(stream: _Counted) -> Iterator[bytes]:
    """Expand xz, stream after stream, with a bound on the memory that its header may ask for."""
    buffer = stream.read(1 << 16)
    while buffer:
        engine = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=XZ_MEMORY)
        out = engine.decompress(buffer, CHUNK)
        while True:
            if out:
                yield out
            if engine.eof:
                break
            more = stream.read(1 << 16) if engine.needs_input else b""
            if engine.needs_input and not more:
                raise EOFError
            out = engine.decompress(more, CHUNK)
        buffer = engine.unused_data.lstrip(b"\0")
        while not buffer:
            more = stream.read(1 << 16)
            if not more:
                return
            buffer = more.lstrip(b"\0")


def expanded(stream: IO[bytes], where: str, whole: bool) -> Iterator[bytes]:
    """The bytes of a stream, decompressed by what they begin with. ``whole``: all of it will be held in memory."""
    head = _read(stream, 6, where)
    counted = _Counted(head, stream)
    parts: Iterator[bytes]
    if head.startswith(b"\x1f\x8b"):
        file = gzip.GzipFile(fileobj=cast(Any, counted), mode="rb")
        parts = iter(lambda: file.read(CHUNK), b"")
    elif head.startswith(b"\xfd7zXZ\x00"):
        parts = _unxz(counted)
    else:
        yield from iter(lambda: counted.read(CHUNK), b"")
        return
    total = 0
    try:
        for part in parts:
            total += len(part)
            if whole and total > BOMB_BYTES and total > BOMB_RATIO * counted.count:
                raise FormatError(
                    where,
                    None,
                    f"expands to more than {BOMB_RATIO} times its size.",
                    "Expand it yourself, or stream it.",
                )
            yield part
    except _BROKEN as error:
        detail = str(error) or "it ends in the middle"
        raise FormatError(
            where,
            None,
            f"the compressed data are damaged after {total} bytes: {detail}.",
            "Fetch or pack the file again.",
        ) from None


def _read(stream: IO[bytes], size: int, where: str) -> bytes:
    data = b""
    while len(data) < size:
        more = stream.read(size - len(data))
        if not more:
            break
        if not isinstance(more, bytes | bytearray):
            raise UsageError(f"{where}: expected a stream of bytes, found one of {type(more).__name__}")
        data += more
    return bytes(data)


def decoder_of(encoding: str) -> tuple[str, Any]:
    """(plain name, incremental decoder class) of a text encoding."""
    try:
        info = codecs.lookup(encoding)
        if not getattr(info, "_is_text_encoding", True):
            raise LookupError
        return info.name, codecs.getincrementaldecoder(encoding)
    except (LookupError, ValueError):
        raise UsageError(f"there is no text encoding {encoding!r}. Usual ones: utf-8, gb18030, utf-16, big5.") from None


def decoded(parts: Iterator[bytes], where: str, encoding: str) -> Iterator[str]:
    """Text from bytes; the first string holds the byte order mark if there is one."""
    name, factory = decoder_of(encoding)
    engine = factory("strict")
    before, lines = 0, 0
    for data, final in _marked(parts):
        pending = len(engine.getstate()[0])
        try:
            text = engine.decode(data, final)
        except UnicodeError as error:
            begin = getattr(error, "start", 0)
            raw: bytes = getattr(error, "object", data)
            raw = raw if isinstance(raw, bytes) else data
            raise FormatError(
                where,
                lines + raw[:begin].count(b"\n") + 1,
                f"byte {raw[begin : begin + 1].hex() or 'order'} at offset {before - pending + begin} is not {name}.",
                _try_instead(raw, name, before - pending == 0),
            ) from None
        if "\0" in text:
            at = text.index("\0")
            raise FormatError(
                where,
                lines + text.count("\n", 0, at) + 1,
                "a NUL character: this is not plain text.",
                "If it is UTF-16, use --encoding utf-16.",
            )
        before += len(data)
        lines += text.count("\n")
        if text:
            yield text


def _marked(parts: Iterator[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Each item, and whether it is behind the last one: an empty one is added."""
    for part in parts:
        yield part, False
    yield b"", True


def _try_instead(raw: bytes, encoding: str, start: bool) -> str:
    """What other encoding to try."""
    if start and encoding != "utf-16" and raw.startswith(_MARKS[1:]):
        return "The file begins like UTF-16: try --encoding utf-16."
    for other in ("utf-8", "gb18030", "big5"):
        if other != encoding:
            try:
                codecs.getincrementaldecoder(other)("strict").decode(raw[: 1 << 16], False)
            except UnicodeError:
                continue
            return f"Try --encoding {other}."
    return "Name the right one with --encoding, or mend the file."


def cut(points: Points, kind: Literal["line", "blank", "tree"], depth: int) -> tuple[int, int]:
    """Where the last whole sentence of these points ends (0: nowhere), and how deep in brackets they end."""
    breaks = np.flatnonzero(points == 10)
    if kind == "line":
        return (int(breaks[-1]) + 1 if len(breaks) else 0), 0
    if kind == "blank":
        gaps = np.diff(breaks)
        blank = (gaps == 1) | ((gaps == 2) & (points[np.minimum(breaks[:-1] + 1, len(points) - 1)] == 13))
        found = np.flatnonzero(blank)
        return (int(breaks[found[-1] + 1]) + 1 if len(found) else 0), 0
    step = (points == 40).astype(np.int8) - (points == 41).astype(np.int8)
    levels = np.cumsum(step, dtype=np.int64) + depth
    outside = breaks[levels[breaks] <= 0]
    return (int(outside[-1]) + 1 if len(outside) else 0), int(levels[-1]) if len(levels) else depth


def blocks(
    texts: Iterator[str], kind: Literal["line", "blank", "tree"], size: int, where: str
) -> Iterator[tuple[Points, int]]:
    """Cut text into blocks of whole sentences of about ``size`` code points: (points, number of the first line)."""
    line = 1
    rest: list[Points] = []
    depth = 0
    for text in _sized(texts, size):
        points = encode(text)
        if kind == "blank" and rest:
            tail = np.concatenate(rest[-3:])[-3:]
            at, _ = cut(np.concatenate([tail, points]), kind, 0)
            at = max(at - len(tail), 0)
        else:
            at, depth = cut(points, kind, depth)
        if at:
            block = np.concatenate([*rest, points[:at]])
            rest = [points[at:]] if at < len(points) else []
            yield block, line
            line += int(np.count_nonzero(block == 10))
            if kind == "tree":
                depth = max(int(np.sum(points[at:] == 40)) - int(np.sum(points[at:] == 41)), 0)
        else:
            rest.append(points)
            if sum(map(len, rest)) > SENTENCE_LIMIT:
                what = {"line": "line", "blank": "sentence", "tree": "tree"}[kind]
                raise FormatError(
                    where,
                    line,
                    f"a {what} of more than {SENTENCE_LIMIT:,} characters.",
                    "Is the format right? Name it with --format.",
                )
    if rest:
        yield np.concatenate(rest), line


def _sized(texts: Iterator[str], size: int) -> Iterator[str]:
    """The same text in strings of about ``size``."""
    held: list[str] = []
    length = 0
    for text in texts:
        held.append(text)
        length += len(text)
        if length >= size:
            whole = "".join(held)
            for at in range(0, len(whole) - size + 1, size):
                yield whole[at : at + size]
            left = whole[len(whole) // size * size :]
            held, length = [left], len(left)
    if length:
        yield "".join(held)
