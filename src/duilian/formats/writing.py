"""From corpora to a file: encoding, compression, provenance, and a file that appears only when it is complete."""

from __future__ import annotations

import codecs
import gzip
import lzma
import secrets
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, cast

from duilian.corpus import Corpus
from duilian.errors import DataError, FormatError, UsageError
from duilian.formats.base import Format, NBest, WriteOptions
from duilian.formats.files import decoder_of


class Writer:
    """Writes corpora, one after the other, to one stream in one format."""

    def __init__(
        self,
        stream: IO[bytes],
        format: Format,
        layer: str | None,
        options: WriteOptions,
        encoding: str | None,
        provenance: Sequence[str],
    ) -> None:
        self.stream, self.format, self.layer, self.options = stream, format, layer, options
        self.encoding = encoding
        self.provenance = list(provenance)
        self.begun = False

    def write(self, corpus: Corpus, nbest: NBest | None = None) -> None:
        """Write a block of sentences. nbest: as in WriteOptions; JSONL only."""
        assert self.format.write is not None
        options = self.options if nbest is None else replace(self.options, nbest=nbest)
        if options.nbest and "nbest" not in self.format.holds:
            raise UsageError(f"{self.format.name} cannot hold several answers. Use --format jsonl.")
        text = self.format.write(corpus, self.layer, options)
        style: dict[str, Any] = {}
        if corpus.source is not None and corpus.source.format == self.format.name:
            style = corpus.source.style
        if not self.begun:
            self._begin(style, text.startswith("\ufeff"))
        self._put(text)

    def finish(self) -> None:
        """Write what a file without sentences has."""
        if not self.begun:
            self._begin({}, False)

    def _begin(self, style: dict[str, Any], marked: bool) -> None:
        self.begun = True
        self.encoding = self.encoding or style.get("encoding") or "utf-8"
        self.encoder = codecs.getincrementalencoder(self.encoding)()
        if style.get("bom") or (marked and self.encoding not in ("utf-16", "utf-32")):
            self._put("\ufeff")
        if self.provenance and self.format.comment is not None:
            newline = style.get("newline", "\n")
            self._put("".join(comment_line(self.format, line) + newline for line in self.provenance))

    def _put(self, text: str) -> None:
        try:
            data = self.encoder.encode(text)
        except UnicodeEncodeError as error:
            wrong = text[error.start]
            raise FormatError(
                self.options.where, None, f"{self.encoding} has no U+{ord(wrong):04X}.", "Write with --encoding utf-8."
            ) from None
        self.stream.write(data)


def comment_line(format: Format, line: str) -> str:
    """A line of provenance as a comment."""
    line = " ".join(line.split())
    if format.name == "jsonl":
        import json

        return json.dumps({"duilian": {"provenance": line}}, ensure_ascii=False)
    return f"{format.comment}{line}"


@contextmanager
def open_writer(
    path: Any,
    format: str = "auto",
    layer: str | None = None,
    *,
    confidence: bool = False,
    provenance: Sequence[str] = (),
    encoding: str | None = None,
) -> Iterator[Writer]:
    """Open a file to write corpora to: a path (.gz and .xz are compressed), ``-``, or a binary stream.

    A regular file is written under another name and renamed at the end, so that it is never half there. Where the
    format has no comments, the lines of provenance go to ``PATH.source.txt``. encoding=None takes that of the source
    when the format is the source's, else UTF-8. format="auto" goes by the suffix.
    """
    from duilian.formats import find

    chosen = find(by_suffix(str(path)) if format == "auto" else format)
    if chosen.write is None:
        raise UsageError(f"{chosen.name} can be read but not written. Use --format jsonl, conllu or another.")
    if encoding is not None:
        encoding = decoder_of(encoding)[0]
    if confidence and "confidence" not in chosen.holds:
        from duilian.formats.weaving import others

        raise UsageError(f"{chosen.name} has no place for confidences. {others('confidence')}")
    where = "<output>" if hasattr(path, "write") else "<stdout>" if str(path) == "-" else str(path)
    options = WriteOptions(confidence=confidence, where=where)
    with created(path) as stream:
        writer = Writer(stream, chosen, layer, options, encoding, provenance)
        yield writer
        writer.finish()
    if provenance and chosen.comment is None and where not in ("<output>", "<stdout>"):
        with created(where + ".source.txt") as stream:
            stream.write("".join(" ".join(line.split()) + "\n" for line in provenance).encode())


def write(path: Any, corpus: Corpus, format: str = "auto", layer: str | None = None, **options: Any) -> None:
    """Write one corpus to a file; the options are those of ``open_writer``."""
    with open_writer(path, format, layer, **options) as writer:
        writer.write(corpus)


def by_suffix(path: str) -> str:
    """The format that a file name means."""
    from duilian.formats import FORMATS

    name = Path(path).name.removesuffix(".gz").removesuffix(".xz")
    for format in FORMATS.values():
        if format.write is not None and name.endswith(format.suffixes) and format.name != "raw":
            return format.name
    raise UsageError(f"{path}: cannot tell the format from this name. Name it with --format.")


@contextmanager
def created(path: Any) -> Iterator[IO[bytes]]:
    """A stream to write to; a regular file gets its name only if all went well."""
    if hasattr(path, "write"):
        stream = getattr(path, "buffer", path)
        yield stream
        stream.flush()
        return
    if str(path) == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    target = Path(path)
    try:
        if target.exists() and not stat.S_ISREG(target.stat().st_mode):
            with target.open("wb") as file, compressed(file, target.name) as stream:
                yield stream
            return
        target = target.resolve()
        temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
        file = temporary.open("wb")
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be written: {getattr(error, 'strerror', None) or error}.") from None
    try:
        with file, compressed(file, target.name) as stream:
            yield stream
        temporary.replace(target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


@contextmanager
def compressed(file: IO[bytes], name: str) -> Iterator[IO[bytes]]:
    """The stream to write to, which compresses if the name says so; the same input gives the same bytes."""
    if name.endswith(".gz"):
        with gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0, compresslevel=6) as packed:
            yield cast(IO[bytes], packed)
    elif name.endswith(".xz"):
        with lzma.LZMAFile(file, "wb") as squeezed:
            yield cast(IO[bytes], squeezed)
    else:
        yield file
