"""The model file: exact bytes, round trips, interoperability, attacks, and writing that never loses the old file."""

from __future__ import annotations

import io
import json
import math
import os
import pickle
import stat
import struct
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from fuzz import models as fuzz
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from duilian import storage, tensors
from duilian.errors import ModelFileError

HEADER = {"method": "crf", "sides": [{"name": "pku", "tags": ["n", "v"]}], "名": "对联", "rate": 0.1}


def file_of(table: Any, data: bytes = b"", length: int | None = None) -> bytes:
    """A model file made by hand."""
    text = table if isinstance(table, bytes) else json.dumps(table).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def metadata(**changes: Any) -> dict[str, str]:
    return {"duilian": json.dumps({"format_version": 1, "method": "crf", **changes})}


def entry(dtype: Any, shape: Any, *offsets: Any) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": list(offsets)}


def refused(tmp_path: Path, data: bytes) -> str:
    path = tmp_path / "model"
    path.write_bytes(data)
    with pytest.raises(ModelFileError) as caught:
        storage.load(path)
    assert str(caught.value).startswith(f"{path}: ")
    return str(caught.value)


# What is written ----------------------------------------------------------------------------------------------------


def test_the_bytes_are_those_of_the_format_page(tmp_path: Path) -> None:
    # Written out from docs/model-file.md, not from the code: wide items first, then by name, table padded to 8.
    header = (
        '{"format_version":1,"method":"crf","needs":"0.1.0","rate":0.1,"sides":[{"name":"pku","tags":["n","v"]}],'
        '"名":"对联"}'
    )
    table = (
        '{"__metadata__":{"duilian":' + json.dumps(header, ensure_ascii=False) + "},"
        '"b":{"dtype":"I64","shape":[2],"data_offsets":[0,16]},'
        '"a":{"dtype":"F32","shape":[1,2],"data_offsets":[16,24]},'
        '"c":{"dtype":"U8","shape":[3],"data_offsets":[24,27]}}'
    ).encode()
    table += b" " * (-len(table) % 8)
    data = struct.pack("<2q", 5, -6) + struct.pack("<2f", 0.5, -math.inf) + bytes([7, 8, 9])
    path = tmp_path / "model"
    storage.save(
        path,
        HEADER,
        {
            "a": np.array([[0.5, -np.inf]], np.float32),
            "b": np.array([5, -6], np.int64),
            "c": np.array([7, 8, 9], np.uint8),
        },
    )
    assert path.read_bytes() == struct.pack("<Q", len(table)) + table + data


def test_same_input_same_bytes_whatever_the_order_and_layout(tmp_path: Path) -> None:
    one, two = np.arange(6.0).reshape(2, 3), np.arange(4, dtype=np.int32)
    storage.save(tmp_path / "a", {"x": 1, "y": {"p": 1, "q": 2}}, {"one": one, "two": two})
    big_endian, strided = one.astype(">f8"), np.repeat(two, 2)[::2]
    storage.save(
        tmp_path / "b", {"y": {"q": 2, "p": 1}, "x": 1}, {"two": strided, "one": np.asfortranarray(big_endian)}
    )
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


DTYPES = st.sampled_from(sorted(storage.DTYPES.values(), key=str))
NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=4).filter(lambda name: name != "__metadata__")
ANY_TENSORS = st.dictionaries(
    NAMES, DTYPES.flatmap(lambda dtype: arrays.arrays(dtype, arrays.array_shapes(min_dims=0, min_side=0, max_side=4)))
)
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(header=st.dictionaries(st.text(), ANY_JSON, max_size=4), named=ANY_TENSORS)
def test_what_is_saved_is_loaded_and_any_safetensors_program_reads_it(
    tmp_path_factory: pytest.TempPathFactory, header: dict[str, Any], named: dict[str, Any]
) -> None:
    path = tmp_path_factory.mktemp("round") / "model"
    storage.save(path, header, named)
    header_back, back = storage.load(path)
    assert header_back == {**header, "format_version": 1, "needs": "0.1.0"}
    others = safetensors.numpy.load_file(path)
    assert set(back) == set(others) == set(named)
    for name, array in named.items():
        assert back[name].dtype == array.dtype
        assert back[name].shape == array.shape
        assert back[name].tobytes() == others[name].tobytes() == array.tobytes()
        assert back[name].flags.aligned
        assert back[name].flags.writeable


def test_the_header_may_hold_half_a_surrogate_pair(tmp_path: Path) -> None:
    storage.save(tmp_path / "model", {"tags": ["\ud800", "\\ud800", "名"]}, {})
    assert storage.load(tmp_path / "model")[0]["tags"] == ["\ud800", "\\ud800", "名"]


def test_changing_a_loaded_tensor_leaves_the_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "model"
    storage.save(path, {}, {"w": np.zeros(3)})
    loaded = storage.load(path)[1]
    loaded["w"][:] = 1
    assert storage.load(path)[1]["w"].tolist() == [0, 0, 0]
    storage.save(path, {}, {"w": np.full(3, 2.0)})
    assert loaded["w"].tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("header", "named"),
    [
        ({"x": math.nan}, {}),
        ({}, {"w": np.array(["text"])}),
        ({}, {"w": np.zeros(1, complex)}),
        ({}, {"__metadata__": np.zeros(1)}),
        ({}, {"w": np.zeros([1] * 9)}),
        ({"list": list(range(200_001))}, {}),
        ({"text": "x" * (8 << 20)}, {}),
    ],
)
def test_what_could_not_be_read_again_is_not_written(tmp_path: Path, header: Any, named: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        storage.save(tmp_path / "model", header, named)
    assert list(tmp_path.iterdir()) == []


# Writing is all or nothing ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, "No space left on device"), MemoryError])
@pytest.mark.parametrize("function", ["fsync", "write"])
def test_a_broken_save_keeps_the_old_file_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Any, function: str
) -> None:
    path = tmp_path / "model"
    storage.save(path, {"n": 1}, {"w": np.zeros(3)})
    old = path.read_bytes()

    def fail(*_: Any) -> None:
        raise error

    if function == "fsync":
        monkeypatch.setattr(os, "fsync", fail)
    else:
        monkeypatch.setattr(np, "ascontiguousarray", fail)
    with pytest.raises(ModelFileError if isinstance(error, OSError) else error):
        storage.save(path, {"n": 2}, {"w": np.ones(3)})
    assert path.read_bytes() == old
    assert [found.name for found in tmp_path.iterdir()] == ["model"]


def test_permissions_and_links_are_kept(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    storage.save(real, {}, {})
    real.chmod(0o640)
    link.symlink_to(real)
    storage.save(link, {"n": 2}, {})
    assert link.is_symlink()
    assert storage.load(real)[0]["n"] == 2
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


@pytest.mark.parametrize("target", ["", "missing/model"])
def test_places_that_cannot_hold_a_model(tmp_path: Path, target: str) -> None:
    with pytest.raises(ModelFileError, match="cannot be written there"):
        storage.save(tmp_path / target, {}, {})
    with pytest.raises(ModelFileError, match="not a regular file"):
        storage.save(Path(os.devnull), {}, {})


# Files that are no models -------------------------------------------------------------------------------------------


def _pickle() -> bytes:
    return pickle.dumps({"weights": list(range(100))})


def _zip() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("data.pkl", _pickle())
    return buffer.getvalue()


GOOD = file_of({"__metadata__": metadata(), "w": entry("F32", [2], 0, 8)}, bytes(8))

FOREIGN = {
    "empty": (b"", "the file is empty"),
    "short": (b"\1\0\0", "more than 8"),
    "text": ("迈向/v 充满/v 希望/n\n".encode() * 50, "it is a text file"),
    "pickle": (_pickle(), "it is a Python pickle"),
    "zip": (_zip(), "it is a zip archive"),
    "gzip": (b"\x1f\x8b\x08\0" + bytes(range(60)), "gzip-compressed"),
    "noise": (bytes(range(255, 0, -1)), "cut short or damaged"),
    "zeros": (bytes(4096), "its table is not JSON"),
    "safetensors": (safetensors.numpy.save({"w": np.zeros(2)}), "duilian did not write"),
    "other metadata": (safetensors.numpy.save({"w": np.zeros(2)}, {"format": "np"}), "duilian did not write"),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_foreign_files_are_named(tmp_path: Path, kind: str) -> None:
    data, expected = FOREIGN[kind]
    assert expected in refused(tmp_path, data)


def test_folders_and_devices_and_nothing(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, expected in (
        (tmp_path, "it is a folder"),
        (tmp_path / "pipe", "not a regular file"),
        (tmp_path / "none", "there is no such file"),
        (tmp_path / "a\0b", "cannot be read"),
        (tmp_path / ("x" * 300), "cannot be read"),
    ):
        with pytest.raises(ModelFileError, match=expected):
            storage.load(path)


# Files that were damaged, or made to do harm ------------------------------------------------------------------------

W = entry("F32", [2], 0, 8)
ATTACKS: dict[str, tuple[bytes, str]] = {
    "length 2^60": (struct.pack("<Q", 2**60) + GOOD[8:], "cut short or damaged"),
    "length 2^64-1": (struct.pack("<Q", 2**64 - 1) + GOOD[8:], "cut short or damaged"),
    "length over the limit": (file_of(b" " * ((8 << 20) + 8)), "at most 8,388,608 are allowed"),
    "length not aligned": (struct.pack("<Q", 9) + GOOD[8:], "not a multiple of 8"),
    "no table": (file_of(b""), "more than 8"),
    "blank table": (file_of(b" "), "its table is not JSON"),
    "list as table": (file_of([]), "a JSON object was expected"),
    "not UTF-8": (file_of(b'{"\xff":1}'), "is not UTF-8"),
    "NaN in the table": (file_of(b'{"w":NaN}'), "NaN"),
    "deep table": (file_of(b"[" * 100_000 + b"]" * 100_000), "nested too deeply"),
    "deep object": (file_of(b'{"a":' * 60_000 + b"1" + b"}" * 60_000), "nested too deeply"),
    "deep header": (file_of({"__metadata__": {"duilian": "[" * 99_999}}), "nested too deeply"),
    "broad table": (file_of(b"[" + b"[]," * 1_000_000 + b"[]]"), "more than 200,000 items"),
    "broad header": (file_of({"__metadata__": {"duilian": "[" + "1," * 200_000 + "1]"}}), "more than 200,000 items"),
    "integer of 5000 digits": (file_of(b'{"w":' + b"9" * 5000 + b"}"), "is not JSON"),
    "name twice": (file_of(b'{"__metadata__":{},"w":1,"w":1}'), "'w' occurs twice in its table"),
    "metadata twice": (file_of(b'{"__metadata__":{},"__metadata__":{}}'), "occurs twice"),
    "field twice": (
        file_of({"__metadata__": {"duilian": '{"format_version":1,"a":1,"a":2}'}}),
        "'a' occurs twice in its header",
    ),
    "metadata is a number": (file_of({"__metadata__": 7}), "a JSON object was expected"),
    "header is a number": (file_of({"__metadata__": {"duilian": 7}}), "a text was expected"),
    "header is no JSON": (file_of({"__metadata__": {"duilian": "x"}}), "its header is not JSON"),
    "header is a list": (file_of({"__metadata__": {"duilian": "[]"}}), "a JSON object was expected"),
    "half a surrogate pair in the header": (
        file_of({"__metadata__": {"duilian": "\ud800"}}),
        "its header is not UTF-8",
    ),
    "no version": (file_of({"__metadata__": {"duilian": "{}"}}), "format version is nothing"),
    "version 0": (file_of({"__metadata__": metadata(format_version=0)}), "format version is 0"),
    "version true": (file_of({"__metadata__": metadata(format_version=True)}), "format version is True"),
    "version 2": (file_of({"__metadata__": metadata(format_version=2)}), "reads 1 to 1. It needs a newer one"),
    "version 2, 0.4": (
        file_of({"__metadata__": metadata(format_version=2, needs="0.4.0")}),
        "It needs duilian 0.4.0 or later: pip install --upgrade duilian",
    ),
    "version 10^300": (file_of({"__metadata__": metadata(format_version=10**300)}), "a whole number of 997 bits"),
    "tensor is a list": (file_of({"__metadata__": metadata(), "w": []}), "a JSON object was expected"),
    "field missing": (file_of({"__metadata__": metadata(), "w": {"dtype": "F32"}}), "were expected"),
    "field too many": (file_of({"__metadata__": metadata(), "w": {**W, "x": 1}}, bytes(8)), "were expected"),
    "unknown dtype": (file_of({"__metadata__": metadata(), "w": entry("BF16", [4], 0, 8)}, bytes(8)), "dtype 'BF16'"),
    "dtype is a list": (file_of({"__metadata__": metadata(), "w": entry([], [2], 0, 8)}, bytes(8)), "has the dtype"),
    "wrong dtype": (file_of({"__metadata__": metadata(), "w": entry("F64", [2], 0, 8)}, bytes(8)), "16 bytes by its"),
    "shape is a number": (file_of({"__metadata__": metadata(), "w": entry("F32", 2, 0, 8)}, bytes(8)), "the shape"),
    "shape of floats": (file_of({"__metadata__": metadata(), "w": entry("F32", [2.0], 0, 8)}, bytes(8)), "the shape"),
    "shape of bools": (file_of({"__metadata__": metadata(), "w": entry("F32", [True], 0, 4)}, bytes(4)), "the shape"),
    "negative shape": (file_of({"__metadata__": metadata(), "w": entry("F32", [-1, -2], 0, 8)}, bytes(8)), "the shape"),
    "nine dimensions": (file_of({"__metadata__": metadata(), "w": entry("F32", [1] * 9, 0, 4)}, bytes(4)), "up to 8"),
    "product wraps to 0": (
        file_of({"__metadata__": metadata(), "w": entry("F32", [2**31, 2**31], 0, 0)}),
        "more than the whole file",
    ),
    "product wraps to 8": (
        file_of({"__metadata__": metadata(), "w": entry("F32", [2**62 + 2], 0, 8)}, bytes(8)),
        "more than the whole file",
    ),
    "huge beside zero": (
        file_of({"__metadata__": metadata(), "w": entry("F32", [0, 2**60], 0, 0)}),
        "more than the whole file",
    ),
    "huge number": (
        file_of({"__metadata__": metadata(), "w": entry("F32", [10**300], 0, 8)}, bytes(8)),
        "more than the whole file",
    ),
    "offsets beyond": (file_of({"__metadata__": metadata(), "w": W}, bytes(4)), "the file has 4 bytes of data"),
    "offsets backwards": (file_of({"__metadata__": metadata(), "w": entry("F32", [2], 8, 0)}, bytes(8)), "lies at"),
    "offsets negative": (file_of({"__metadata__": metadata(), "w": entry("F32", [2], -8, 0)}, bytes(8)), "lies at"),
    "offsets of three": (file_of({"__metadata__": metadata(), "w": entry("F32", [2], 0, 8, 8)}, bytes(8)), "lies at"),
    "overlap": (
        file_of({"__metadata__": metadata(), "v": W, "w": entry("F32", [2], 4, 12)}, bytes(12)),
        "a gap or an overlap",
    ),
    "the same place": (file_of({"__metadata__": metadata(), "v": W, "w": W}, bytes(8)), "a gap or an overlap"),
    "gap": (file_of({"__metadata__": metadata(), "w": entry("F32", [2], 8, 16)}, bytes(16)), "a gap or an overlap"),
    "unaligned": (
        file_of({"__metadata__": metadata(), "v": entry("U8", [1], 0, 1), "w": entry("F32", [1], 1, 5)}, bytes(5)),
        "no multiple of its item size",
    ),
    "appended": (GOOD + b"\0", "something was appended"),
    "cut": (GOOD[:-1], "the file has 7 bytes of data"),
    "BOOL of 2": (
        file_of({"__metadata__": metadata(), "w": entry("BOOL", [3], 0, 3)}, b"\1\0\2"),
        "other than 0 and 1",
    ),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_attacks_are_refused(tmp_path: Path, attack: str) -> None:
    data, expected = ATTACKS[attack]
    assert expected in refused(tmp_path, data)


def test_the_good_file_of_the_attacks_is_read(tmp_path: Path) -> None:
    (tmp_path / "model").write_bytes(GOOD)
    header, named = storage.load(tmp_path / "model")
    assert header == {"format_version": 1, "method": "crf"}
    assert named["w"].tolist() == [0, 0]


def test_every_cut_of_a_real_file_is_refused(tmp_path: Path) -> None:
    data = fuzz.sample()
    for length in range(len(data)):
        message = refused(tmp_path, data[:length])
        assert "pickle" not in message
        assert "text file" not in message or length < 8, message


def test_a_file_with_a_huge_hole_is_not_read_into_memory(tmp_path: Path) -> None:
    path = tmp_path / "model"
    with path.open("wb") as file:
        file.write(GOOD)
        file.truncate(1 << 40)
    with pytest.raises(ModelFileError, match="something was appended"):
        storage.load(path)


# Fuzz ---------------------------------------------------------------------------------------------------------------


@pytest.mark.fuzz
def test_damaged_files_are_read_or_refused() -> None:
    n = 2000 if os.environ.get("DUILIAN_FUZZ") == "full" else 100
    outcomes = fuzz.run(n, seed=2)
    assert outcomes["refused"] > n / 3
    assert outcomes["read"] > n / 20  # damage that a model's own checks must find


@pytest.mark.parametrize(
    ("load", "complaint"),
    [
        (lambda path: json.loads(path.read_bytes()), "instead of ModelFileError"),
        (lambda path: tensors.reject(None, "damaged"), "does not name the file"),
        (lambda path: np.zeros(100_000_000, np.uint8), "bytes of memory"),
        (lambda path: tensors.reject(Path("x"), "x" * 2000), "does not name the file"),
    ],
)
def test_the_fuzzer_finds_loaders_that_misbehave(load: Any, complaint: str) -> None:
    calls = iter([True])  # the first call, on the whole file, is not judged
    with pytest.raises(AssertionError, match=complaint):
        fuzz.run(3, load=lambda path: None if next(calls, False) else load(path))


def test_the_fuzzer_finds_a_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz, "SECONDS", 0.05)
    calls = iter([True])
    with pytest.raises(AssertionError, match="still reading"):
        fuzz.run(1, load=lambda path: None if next(calls, False) else time.sleep(60))


# What models check --------------------------------------------------------------------------------------------------

NAMED = tensors.Tensors(
    "the file",
    {
        "w": np.zeros((2, 3), np.float32),
        "nan": np.array([0, np.nan]),
        "low": np.array([-np.inf, 1e308]),
        "inf": np.array([np.inf, 0]),
        "ids": np.array([-1, 0, 2], np.int32),
        "empty": np.zeros(0, np.int64),
        "offsets": np.array([0, 1, 1, 4]),
        "falling": np.array([0, 2, 1, 4]),
        "late": np.array([1, 4]),
    },
)


def test_tensors_that_fit_pass() -> None:
    assert tensors.require(NAMED, "w", np.float32, (2, None)) is NAMED["w"]
    assert tensors.require_ids(NAMED, "ids", np.int32, 3, lowest=-1) is NAMED["ids"]
    assert tensors.require_offsets(NAMED, "offsets", 4, n_rows=3) is NAMED["offsets"]
    assert tensors.require_scores(NAMED, "low", np.float64, (2,)) is NAMED["low"]
    assert tensors.require_ids(NAMED, "empty", np.int64, 0).size == 0


@pytest.mark.parametrize(
    ("call", "found"),
    [
        (lambda: tensors.require(NAMED, "x", np.float32, (2,)), "it has no tensor 'x'"),
        (lambda: tensors.require(NAMED, "w", np.float64, (2, 3)), "float64 \\(2, 3\\) was expected"),
        (lambda: tensors.require(NAMED, "w", np.float32, (3, None)), "float32 \\(3, any\\) was expected"),
        (lambda: tensors.require(NAMED, "w", np.float32, (6,)), "is float32 \\(2, 3\\)"),
        (lambda: tensors.require_ids(NAMED, "ids", np.int32, 3), "outside 0 to 2"),
        (lambda: tensors.require_ids(NAMED, "ids", np.int32, 2, lowest=-1), "outside -1 to 1"),
        (lambda: tensors.require_scores(NAMED, "nan", np.float64, (2,)), "NaN"),
        (lambda: tensors.require_scores(NAMED, "inf", np.float64, (2,)), "infinity"),
        (lambda: tensors.require_offsets(NAMED, "offsets", 5), "from 0 to 5"),
        (lambda: tensors.require_offsets(NAMED, "offsets", 4, n_rows=2), "int64 \\(3\\) was expected"),
        (lambda: tensors.require_offsets(NAMED, "falling", 4), "without falling"),
        (lambda: tensors.require_offsets(NAMED, "late", 4), "from 0"),
        (lambda: tensors.require_offsets(NAMED, "empty", 0), "from 0"),
    ],
)
def test_tensors_that_do_not_fit_are_refused(call: Any, found: str) -> None:
    with pytest.raises(ModelFileError, match=f"^the file: .*{found}"):
        call()


def test_fields_of_the_header() -> None:
    header = tensors.Header(
        "the file", {"n": 3, "flag": True, "tags": ["n", "v"], "twice": ["n", "n"], "mixed": ["n", 1]}
    )
    assert tensors.require_field(header, "n", int) == 3
    assert tensors.require_field(header, "flag", bool) is True
    assert tensors.require_names(header, "tags") == ("n", "v")
    for name, kind, found in (
        ("x", int, "its header has no 'x'"),
        ("flag", int, "'flag' in its header is True where int was expected"),
        ("n", str, "'n' in its header is 3 where str was expected"),
    ):
        with pytest.raises(ModelFileError, match=f"^the file: {found}"):
            tensors.require_field(header, name, kind)
    for name in ("twice", "mixed", "n"):
        with pytest.raises(ModelFileError, match=f"^the file: '{name}'"):
            tensors.require_names(header, name)


# Speed --------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_loading_a_large_file_takes_no_time(tmp_path: Path) -> None:
    path = tmp_path / "model"
    storage.save(path, {}, {"w": np.ones((25_000_000, 2), np.float32)})
    begin = time.perf_counter()
    named = storage.load(path)[1]
    assert time.perf_counter() - begin < 0.2
    assert named["w"][-1].tolist() == [1, 1]
