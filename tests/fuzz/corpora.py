"""Broken corpus files: a thousand ways to damage good ones of every format, and the check that each is read or refused.

run(10_000, seed=0)
python -m fuzz.corpora 10000 [seed]        from the tests folder

A file that is read must also hold together: units inside the text, labels inside their lists; written back with its
source it is the same bytes, and written anew it is refused or read again with the same words and labels.
"""

from __future__ import annotations

import gzip
import io
import lzma
import random
import sys
import time
import tracemalloc
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from duilian import formats
from duilian.corpus import Corpus
from duilian.errors import DuilianError, FormatError
from fuzz.models import _Alarm

SECONDS = 10.0
"""What one file may take to read and write, of the processor's time, traced; the slowest seen takes a third of it."""

GOLDEN = Path(__file__).parents[1] / "golden" / "formats"

HOSTILE = (
    b"\0", b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe4\xb8", b"\xef\xbb\xbf", b"\r", b"\n",
    b"\r\n", b"\n\n", b"\n\n\n\n", b"\t", b"\t\t", b" ", b"\x0b", b"\x0c", b"\x1c", b"\xc2\x85", b"\xc2\xa0",
    b"\xe3\x80\x80", b"\xe2\x80\xa8", b"/", b"//", b"_", b"[", b"]", b"]nt", b"[[", b"]/nt ", b"(", b")", b"()",
    b"((", b"(A", b"(A b)", b"^", b"*^*", b"^^", b"#", b"# text", b"1-2", b"2-1", b"1.1", b"999999999",
    b"99999999999999999999999", b"-1", b"1e999", b"NaN", b"-0", b"9" * 5000, b"null", b"{}", b"[]", b'"', b"\\",
    b"\\ud800", b"\\u0000", b'{"text": 1}', b'"units": [[0, 9]]', b'{"duilian": {}}', b"Conf=", b"Conf=2",
    b"Conf=nan|", b"SpaceAfter=No", b"<S ID=1>", b"<", b"-NONE-", b"-SHORT", b"_\t_", "😀".encode(),
    "e\u0301".encode(), "\u200b".encode(), "\u202e".encode(), b"\x1b[31m", b"\x1f\x8b\x08", b"\xfd7zXZ\x00",
)  # fmt: skip
"""What is put into a file."""


def samples() -> list[tuple[str, bytes]]:
    """(name of the format, a whole small file) for every format."""
    found = []
    for path in sorted(GOLDEN.iterdir()):
        name = path.name.split(".")[0].split("-")[0]
        if name in formats.FORMATS and path.suffix != ".json":
            found.append((name, path.read_bytes()))
    assert {name for name, _ in found} == set(formats.FORMATS)
    return found


SAMPLES = samples()


# Damage: (random numbers, the whole file) -> the damaged file -------------------------------------------------------


def flip_bits(rng: random.Random, data: bytes) -> bytes:
    """One to eight bits anywhere."""
    damaged = bytearray(data)
    for _ in range(rng.randint(1, 8)):
        if damaged:
            damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
    return bytes(damaged)


def cut(rng: random.Random, data: bytes) -> bytes:
    """The file begins late or ends early."""
    at = rng.randint(0, len(data))
    return data[:at] if rng.random() < 0.7 else data[at:]


def put_in(rng: random.Random, data: bytes) -> bytes:
    """Hostile bytes between others, or in their place; up to five times."""
    for _ in range(rng.randint(1, 5)):
        at = rng.randint(0, len(data))
        data = data[:at] + rng.choice(HOSTILE) + data[at + rng.choice([0, 0, 1, 3]) :]
    return data


def move_chunk(rng: random.Random, data: bytes) -> bytes:
    """A piece is taken out, doubled, or put somewhere else."""
    begin, end = sorted((rng.randint(0, len(data)), rng.randint(0, len(data))))
    end = min(end, begin + rng.choice([1, 3, 30, 300]))
    to = rng.randint(0, len(data))
    return rng.choice([data[:begin] + data[end:], data[:end] + data[begin:], data[:to] + data[begin:end] + data[to:]])


def move_lines(rng: random.Random, data: bytes) -> bytes:
    """Lines are dropped, doubled or shuffled."""
    lines = data.split(b"\n")
    for _ in range(rng.randint(1, 3)):
        k = rng.randrange(len(lines))
        action = rng.randrange(4)
        if action == 0 and len(lines) > 1:
            del lines[k]
        elif action == 1:
            lines.insert(rng.randint(0, len(lines)), lines[k])
        elif action == 2:
            rng.shuffle(lines)
        else:
            lines[k] = lines[k] * 2
    return b"\n".join(lines)


def move_columns(rng: random.Random, data: bytes) -> bytes:
    """Columns are dropped, doubled or swapped in some lines."""
    mark = rng.choice([b"\t", b" ", b"/", b"_"])
    lines = data.split(b"\n")
    for k in rng.sample(range(len(lines)), min(len(lines), rng.randint(1, 4))):
        fields = lines[k].split(mark)
        place = rng.randrange(len(fields))
        action = rng.randrange(4)
        if action == 0:
            del fields[place]
        elif action == 1:
            fields.insert(place, fields[place])
        elif action == 2:
            fields[place] = b""
        else:
            rng.shuffle(fields)
        lines[k] = mark.join(fields)
    return b"\n".join(lines)


def splice(rng: random.Random, data: bytes) -> bytes:
    """One file runs into another, often of another format."""
    other = rng.choice(SAMPLES)[1]
    at, to = rng.randint(0, len(data)), rng.randint(0, len(other))
    return rng.choice([data + other, data[:at] + other[to:], data[:at] + other[to : to + 40] + data[at:]])


def new_number(rng: random.Random, data: bytes) -> bytes:
    """A digit becomes another number."""
    places = [k for k, byte in enumerate(data) if 48 <= byte <= 57]
    if not places:
        return put_in(rng, data)
    at = rng.choice(places)
    numbers = [
        b"-1",
        b"0",
        b"1",
        b"2",
        b"99",
        b"2147483648",
        b"9223372036854775808",
        b"1" * 400,
        b"0.5",
        b"1e5",
        b"true",
    ]
    return data[:at] + rng.choice(numbers) + data[at + 1 :]


def line_ends(rng: random.Random, data: bytes) -> bytes:
    """Other line ends, some of them mixed; a byte order mark; no final line end."""
    data = rng.choice([data.replace(b"\n", b"\r\n"), data.replace(b"\n", b"\r"), data.replace(b"\n", b"\r\n", 2), data])
    if rng.random() < 0.5:
        data = b"\xef\xbb\xbf" + data
    return data.rstrip(b"\r\n") if rng.random() < 0.5 else data + rng.choice([b"", b"\n", b"\n\n\n"])


def recode(rng: random.Random, data: bytes) -> bytes:
    """Another encoding."""
    text = data.decode("utf-8", "replace")
    return text.encode(rng.choice(["gb18030", "utf-16", "utf-16-le", "utf-32", "utf-7"]))


def swell(rng: random.Random, data: bytes) -> bytes:
    """Something goes on for 100,000 characters and more."""
    n = rng.choice([10_000, 100_000, 130_000])
    many = rng.choice([
        b"a", b" ", b"\t", b"\n", b"\r\n", b"/", b"_", b"[", b"]", b"(", b")", b"(A ", b"{", b'"', b"0", b"^",
        b"a/n ", b"a/n]x ", b"[a/n ", b"[ ", b"] ", b"a\tb\n", b"1\t", b"(A b) ", b"#\n", b'{"text":"a"}\n',
        "中".encode(), "中/n ".encode(), b"1\ta\t_\tb\tc\t_\t_\t_\t_\t_\n", b"\t\n", b"[[],",
    ])  # fmt: skip
    at = rng.randint(0, len(data))
    return data[:at] + many * (n // len(many)) + data[at:]


def nest(rng: random.Random, data: bytes) -> bytes:
    """Brackets in brackets, 10,000 deep and more."""
    n = rng.choice([100, 10_000, 50_000])
    open_, middle, close = rng.choice(
        [(b"(A ", b"(B c)", b")"), (b"(", b"(B c)", b")"), (b"[", b"a/n", b"]x"), (b"[ ", b"a/n", b" ]x"),
         (b'{"text":', b"1", b"}"), (b"[", b"1", b"]"), (b'{"text":"a","meta":' + b"[", b"1", b"]")]
    )  # fmt: skip
    deep = open_ * n + middle + close * rng.choice([n, n - 1, n + 1, 0])
    at = rng.choice([0, len(data), rng.randint(0, len(data))])
    return data[:at] + deep + b"\n" + data[at:]


def pack(rng: random.Random, data: bytes) -> bytes:
    """Compressed, and then often damaged; sometimes far larger than it looks."""
    if rng.random() < 0.2:
        data = rng.choice([b"a", b"\n", b"a/n ", b"(", b"\0", data]) * rng.choice([10**5, 10**6])
        data = data[: 2 << 20]
    packed = gzip.compress(data, 1) if rng.random() < 0.5 else lzma.compress(data, preset=0)
    if rng.random() < 0.6:
        packed = rng.choice([flip_bits, cut, move_chunk])(rng, packed)
    return packed + rng.choice([b"", b"", b"\0" * 4, packed, b"junk"])


def disguise(rng: random.Random, data: bytes) -> bytes:
    """Another kind of file altogether."""
    return rng.choice([b"", b"\n", b"\xef\xbb\xbf", bytes(300), rng.randbytes(300), data[::-1], b"PK\x03\x04" + data,
                       b"%PDF-1.4\n" + data, b"\x1f\x8b", b"\xfd7zXZ\x00", b" ", b"\r"])  # fmt: skip


DAMAGE: tuple[Callable[[random.Random, bytes], bytes], ...] = (
    flip_bits, cut, put_in, put_in, put_in, move_chunk, move_lines, move_columns, move_columns, splice, new_number,
    line_ends, recode, swell, nest, pack, disguise,
)  # fmt: skip


# The check ----------------------------------------------------------------------------------------------------------


def run(n: int, seed: int = 0, read: Callable[..., Any] = formats.read) -> Counter[str]:
    """Damage n files and read each: a corpus or a DuilianError, within SECONDS and 50 MB + 20 times the file.

    Returns how many were read and refused. A failure names the damage and its seed and re-raises what happened.
    """
    for name, data in SAMPLES:
        _use(data, {"format": name, "keep_source": True}, formats.read, [])  # whatever is slow the first time
    outcomes: Counter[str] = Counter()
    started = not tracemalloc.is_tracing()
    if started:
        tracemalloc.start()
    try:
        for index in range(n):
            rng = random.Random(f"{seed}/{index}")
            name, data = rng.choice(SAMPLES)
            damages = rng.sample(DAMAGE, rng.choice([1, 1, 2]))
            for damage in damages:
                data = damage(rng, data)
            options = {
                "format": rng.choice([name, name, "auto", rng.choice(list(formats.FORMATS))]),
                "encoding": rng.choice(["utf-8", "utf-8", "utf-8", "gb18030", "utf-16"]),
                "on_error": rng.choice(["stop", "skip"]),
                "keep_source": rng.random() < 0.7,
                "labels": rng.random() < 0.9,
                "compounds": rng.choice(["flatten", "keep"]),
            }
            what = f"{name}, {'+'.join(damage.__name__ for damage in damages)}, seed {seed}, file {index}, {options}"
            outcomes[_read_one(data, options, read, what)] += 1
    finally:
        if started:
            tracemalloc.stop()
    return outcomes


def _read_one(data: bytes, options: dict[str, Any], read: Callable[..., Any], what: str) -> str:
    """Read one damaged file: "read" or "refused", or an AssertionError that says what happened instead."""
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    begin = time.process_time()
    outcome, held, bomb = "read", 0, False
    peaks: list[int] = []
    try:
        with _Alarm(4 * SECONDS):
            held = _use(data, options, read, peaks)
    except DuilianError as error:
        outcome = "refused"
        message = str(error)
        bomb = "expands to more" in message
        assert len(message) < 1000, f"{what}: an error of {len(message)} characters"
        assert message.isprintable(), f"{what}: an error with control characters: {message[:300]!r}"
        if isinstance(error, FormatError):
            assert message.startswith(("<bytes>", "<output>")), f"{what}: the error does not name the file: {message!r}"
    except Exception as error:
        raise AssertionError(f"{what}: {type(error).__name__} instead of DuilianError: {str(error)[:300]}") from error
    seconds = time.process_time() - begin
    peak = (peaks or [tracemalloc.get_traced_memory()[1]])[0] - before + held
    expanded = 0 if bomb else _plain_size(data)
    allowed = 50_000_000 + 20 * max(len(data), expanded)
    assert seconds < SECONDS, f"{what}: {seconds:.1f} s"
    assert peak < allowed, f"{what}: {peak:,} bytes of memory where {allowed:,} are allowed"
    return outcome


def _plain_size(data: bytes) -> int:
    """How large a file is, expanded as far as that goes."""
    size = 0
    try:
        if data.startswith(b"\x1f\x8b"):
            with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
                while part := file.read(1 << 20):
                    size += len(part)
        elif data.startswith(b"\xfd7zXZ\x00"):
            with lzma.LZMAFile(io.BytesIO(data)) as squeezed:
                while part := squeezed.read(1 << 20):
                    size += len(part)
    except (OSError, EOFError, zlib.error, lzma.LZMAError):
        pass
    return size


def _use(data: bytes, options: dict[str, Any], read: Callable[..., Any], peaks: list[int]) -> int:
    """Read, check, write back, write anew; returns the bytes of arrays, as those of compiled code are not traced."""
    stream = io.BytesIO(data)
    stream.name = "<bytes>"  # type: ignore[attr-defined]
    skipped = Skipped()
    corpus = read(stream, on_skip=skipped, **options)
    peaks.append(tracemalloc.get_traced_memory()[1])
    assert options.get("on_error") == "skip" or not skipped.count
    _hold_together(corpus)
    held = _bytes_of(corpus)
    if corpus.source is not None:
        plain = _plain(data)
        if not skipped.count and options.get("encoding", "utf-8") == "utf-8" and (options.get("labels", True)):
            again = io.BytesIO()
            with formats.open_writer(again, corpus.source.format) as writer:
                writer.write(corpus)
            assert again.getvalue() == plain, "written back, it is not what was read"
        name = corpus.source.format
        if len(data) < 3000 and len(plain) < 3000:
            _write_anew(replace(corpus, source=None), name)
    return held


class Skipped:
    """Counts what was skipped; holds the last message only."""

    def __init__(self) -> None:
        self.count, self.line = 0, 0

    def __call__(self, error: FormatError) -> None:
        assert error.line is not None
        assert error.line >= self.line, f"line {error.line} was reported after line {self.line}"
        self.count, self.line = self.count + 1, error.line


def _write_anew(corpus: Corpus, name: str) -> None:
    out = io.BytesIO()
    try:
        with formats.open_writer(out, name) as writer:
            writer.write(corpus)
    except DuilianError:
        return
    again = formats.read(io.BytesIO(out.getvalue()), format=name)
    for layer in corpus.layers:
        if name == "slash" and layer.name == "compounds":
            continue
        if name == "conllu" and any(_shared(part) for part in corpus.layers):
            continue
        assert again.words(layer.name) == corpus.words(layer.name), "written anew, it has other words"
        assert again.tags(layer.name) == corpus.tags(layer.name), "written anew, it has other labels"


def _shared(layer: Any) -> bool:
    return bool(np.any((layer.starts[1:] == layer.starts[:-1]) & (layer.ends[1:] == layer.ends[:-1])))


def _plain(data: bytes) -> bytes:
    """The file without compression; several members one after the other."""
    if data.startswith(b"\x1f\x8b"):
        return gzip.decompress(data)
    return lzma.decompress(data.rstrip(b"\0")) if data.startswith(b"\xfd7zXZ\x00") else data


def _hold_together(corpus: Corpus) -> None:
    """What every corpus promises."""
    n = len(corpus.text)
    assert corpus.offsets[0] == 0
    assert corpus.offsets[-1] == n
    assert np.all(np.diff(corpus.offsets) >= 0)
    for layer in corpus.layers:
        assert len(layer.offsets) == len(corpus) + 1
        assert np.all(np.diff(layer.offsets) >= 0)
        edges = np.repeat(corpus.offsets[:-1], np.diff(layer.offsets))
        stops = np.repeat(corpus.offsets[1:], np.diff(layer.offsets))
        assert np.all((edges <= layer.starts) & (layer.starts < layer.ends) & (layer.ends <= stops))
        assert np.all(layer.labels < len(layer.tags))
        assert np.all(layer.labels >= -1 - len(layer.sets))
        assert list(layer.tags) == sorted(set(layer.tags))
        assert "" not in layer.tags


def _bytes_of(corpus: Corpus) -> int:
    """About the size of what compiled code made of it."""
    arrays: list[Any] = [corpus.text, *(layer.offsets for layer in corpus.layers)]
    if corpus.source is not None:
        slots = corpus.source.slots.values()
        arrays += [place for slot in slots for place in slot]
    return sum({id(array): array.nbytes for array in arrays}.values())


if __name__ == "__main__":
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    print(dict(run(number, seed=int(sys.argv[2]) if len(sys.argv) > 2 else 0)))
