"""HTML pages, for tests of them: is it well formed, what does it say, where do its numbers come from."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

VOID = {"meta", "link", "br", "hr", "img", "input"}
SHAPES = {"path", "rect", "text", "title", "a", "style"}


@dataclass
class Link:
    """An ``a`` with its text."""

    href: str
    title: str
    kind: str
    text: str = ""


class Page(HTMLParser):
    """A page, read. complaints: what is not well formed, or cannot be seen or heard by everybody."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.complaints: list[str] = []
        self.ids: list[str] = []
        self.tags: set[str] = set()
        self.links: list[Link] = []
        self.addresses: list[str] = []
        self.drawings: list[str] = []
        self.words: list[str] = []
        self.by_section: dict[str, list[str]] = {}
        self._section = ""
        if not html.lstrip().lower().startswith("<!doctype html>"):
            self.complaints.append("no doctype")
        self.feed(html)
        self.close()
        self.complaints += [f"never closed: {tag}" for tag in self.open]
        self.complaints += [f"id twice: {id}" for id in sorted(set(self.ids)) if self.ids.count(id) > 1]
        known = {f"#{id}" for id in self.ids}
        self.complaints += [f"leads nowhere: {a}" for a in self.addresses if a.startswith("#") and a not in known]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {key: value or "" for key, value in attrs}
        if len(given) != len(attrs):
            self.complaints.append(f"an attribute twice: {tag}")
        self.tags.add(tag)
        if "id" in given:
            self.ids.append(given["id"])
            if not given["id"] or re.search(r"\s", given["id"]):
                self.complaints.append(f"not an id: {given['id']!r}")
            if tag == "section":
                self._section = given["id"]
        self.addresses += [given[key] for key in ("href", "src", "xlink:href") if key in given]
        if tag == "a":
            self.links.append(Link(given.get("href", ""), given.get("title", ""), given.get("class", "")))
        if tag == "svg":
            if given.get("role") == "img" and given.get("aria-label"):
                self.drawings.append(given["aria-label"])
            elif given.get("aria-hidden") != "true":
                self.complaints.append("a drawing without words")
        if tag in ("script", "iframe", "object", "embed", "form"):
            self.complaints.append(f"not wanted: {tag}")
        self.complaints += [f"not wanted: {key}" for key in given if key.startswith("on")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if "svg" not in self.open and tag not in VOID:
            self.complaints.append(f"closed like a shape: {tag}")
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open[-1] != tag:
            self.complaints.append(f"</{tag}> after {self.open[-1:]}")
            return
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "style":
            return
        self.words.append(data)
        self.by_section.setdefault(self._section, []).append(data)
        if "a" in self.open:
            self.links[-1].text += data

    @property
    def text(self) -> str:
        """All that can be read on it."""
        return " ".join("".join(self.words).split())

    def section(self, id: str) -> str:
        """All that can be read in a section."""
        return " ".join("".join(self.by_section.get(id, [])).split())

    @property
    def foreign(self) -> list[str]:
        """Addresses that are neither on the page nor beside it."""
        return [
            a for a in self.addresses if not a.startswith("#") and a != "data:," and re.match(r"[a-z+.-]+:|//|/", a)
        ]


def untraceable(page: Page, folder: Path) -> list[str]:
    """Numbers on a page that do not stand in the file that they name."""
    complaints = []
    for link in page.links:
        if link.kind != "n" or link.href.startswith("#"):
            continue
        name, _, pointer = link.href.partition("#")
        try:
            value = json.loads((folder / unquote(name)).read_text(encoding="utf-8"))
            for key in unquote(pointer).split("/")[1:]:
                key = key.replace("~1", "/").replace("~0", "~")
                value = value[int(key)] if isinstance(value, list) else value[key]
        except (OSError, LookupError, ValueError):
            complaints.append(f"{link.href}: leads nowhere")
            continue
        if isinstance(value, bool) or not isinstance(value, int | float):
            complaints.append(f"{link.href}: not a number")
        elif not link.title.startswith("from ") and not _says(link.text, value):
            complaints.append(f"{link.href}: says {link.text}, is {value}")
    return complaints


def _says(text: str, value: float) -> bool:
    """Whether a text is a rounded number, as it is or in millions (bytes shown as MB)."""
    plain = text.strip().replace(",", "").removeprefix("+")
    digits = len(plain.partition("e")[0].partition(".")[2])
    power = int(plain.partition("e")[2] or 0)
    half = 0.5000001 * 10 ** (power - digits)
    return any(abs(float(plain) - value * scale) <= half for scale in (1.0, 1e-6))
