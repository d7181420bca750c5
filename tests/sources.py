"""The package's own source, for tests of its shape: texts by module name, and the imports they make."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import duilian

PACKAGE = Path(duilian.__file__).parent
Sources = Mapping[str, str]


def package_sources(folder: Path = PACKAGE, name: str = "duilian") -> dict[str, str]:
    """Dotted name -> source text of every module below a folder."""
    sources = {}
    for path in sorted(folder.rglob("*.py")):
        parts = [name, *path.relative_to(folder).with_suffix("").parts]
        if parts[-1] == "__init__":
            parts.pop()
        sources[".".join(parts)] = path.read_text(encoding="utf-8")
    return sources


def imported(tree: ast.AST, known: Sources, everywhere: bool = True) -> Iterator[tuple[str, int]]:
    """(module, line) of each import; with everywhere=False only those that run when the module itself is imported."""
    for node in _nodes(tree, everywhere):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: relative import; write the whole name"
            assert node.module is not None
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield (whole if whole in known else node.module), node.lineno


def _nodes(tree: ast.AST, everywhere: bool) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(tree):
        inner = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for_types_only = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
        if not everywhere and (inner or for_types_only):
            continue
        yield child
        yield from _nodes(child, everywhere)
