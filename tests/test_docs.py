"""The documents are true: pages are up to date, commands and files that they name exist, versions agree."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

import duilian

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def generator() -> ModuleType:
    specification = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


GENERATE = generator()
COMMANDS = dict(GENERATE.commands())


def unknown_commands(text: str) -> list[str]:
    """Lines of code that call a command, an option or a make word that does not exist."""
    words = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    found = []
    for line in code_of(text):
        if make := re.match(r"make ([a-z]+)", line):
            found += [line] if make[1] not in words else []
        if not line.startswith("duilian "):
            continue
        line = line.split("  #")[0].strip()
        command = next((name for name in COMMANDS if line == name or line.startswith(f"{name} ")), None)
        if command is None:
            if line not in ("duilian --help", "duilian --version"):
                found.append(line)
            continue
        options = {option for parameter in COMMANDS[command].params for option in parameter.opts} | {"--help"}
        found += [f"{line}: {o}" for o in re.findall(r"(?<=\s)--?[a-z][a-z-]*", line) if o not in options]
    return found


def code_of(text: str) -> list[str]:
    """The lines of code blocks and of inline code, with what follows a backslash joined on."""
    text = text.replace("\\\n", " ")
    blocks = re.findall(r"```[a-z]*\n(.*?)```", text, re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    lines += [line for line in text.splitlines() if line.startswith("    ")]
    lines += re.findall(r"`([^`\n]+)`", text)
    return [" ".join(re.sub(r"^\$ ", "", line.strip()).split()) for line in lines]


def broken_links(path: Path, text: str) -> list[str]:
    """Links to files that do not exist."""
    links = [link.split("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]
    return [link for link in links if link and not (path.parent / link).exists()]


def missing_code(text: str) -> list[str]:
    """References such as `inference/chain.py::forward` that lead nowhere."""
    found = []
    for reference in re.findall(r"`([\w/]+\.py(?:::\w+)?)`", text):
        file, _, name = reference.partition("::")
        places = [folder / file for folder in (ROOT / "src/duilian", ROOT) if (folder / file).is_file()]
        if not places or (
            name and not re.search(rf"(def|class) {name}\b|^{name}\b", places[0].read_text(), re.MULTILINE)
        ):
            found.append(reference)
    return found


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_says_what_it_does_and_shows_an_example(name: str) -> None:
    text, examples = GENERATE.help_and_examples(COMMANDS[name])
    assert len(text.split()) > 5
    assert any(line.startswith(name) for line in examples.splitlines())
    assert unknown_commands("```\n" + examples + "\n```") == []
    assert all(parameter.help for parameter in COMMANDS[name].params if parameter.name != "help")


def test_the_command_pages_are_up_to_date() -> None:
    assert GENERATE.differences() == []


def test_an_outdated_page_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GENERATE, "FOLDER", tmp_path)
    assert GENERATE.main([]) == 0
    assert GENERATE.differences() == []
    (tmp_path / "index.md").write_text("old")
    (tmp_path / "gone.md").write_text("no such command")
    assert GENERATE.differences() == ["docs/cli/index.md is out of date", "docs/cli/gone.md has no command"]
    assert GENERATE.main(["--check"]) == 1


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_documents_name_what_exists(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert unknown_commands(text) == []
    assert broken_links(path, text) == []
    assert missing_code(text) == []


def test_a_false_document_is_found() -> None:
    assert unknown_commands("```\nduilian frobnicate x\n```\nand `make nothing`") == [
        "duilian frobnicate x",
        "make nothing",
    ]
    assert unknown_commands("    duilian data get x --nonsense\n") == ["duilian data get x --nonsense: --nonsense"]
    assert unknown_commands("    duilian data get x --to a\n`make test`") == []
    assert broken_links(ROOT / "README.md", "[a](docs/nowhere.md) [b](https://example.org) [c](docs/index.md#x)") == [
        "docs/nowhere.md"
    ]
    assert missing_code("`corpus.py::Corpus` `corpus.py::Nothing` `nowhere.py` `tests/conftest.py`") == [
        "corpus.py::Nothing",
        "nowhere.py",
    ]


def test_versions_agree() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == duilian.__version__
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert newest is not None
    assert newest[1] == duilian.__version__
    assert f"\nversion: {duilian.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_both_readmes_show_the_same_commands() -> None:
    english, chinese = (
        [line for line in code_of((ROOT / name).read_text(encoding="utf-8")) if line.startswith(("duilian ", "make "))]
        for name in ("README.md", "README.zh.md")
    )
    assert english
    assert [line.split("  #")[0].split(" #")[0] for line in english] == [line.split(" #")[0] for line in chinese]
