"""Imports point downwards only, the light doors stay light, and every module says what it is for.

Each rule is a function from sources to complaints, so that each has a case that must complain.
"""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys

import pytest
from sources import Sources, imported, package_sources

# From the ground up. A module imports from lines above its own, or from its own folder; never from its neighbours.
LAYERS = (
    ("errors",),
    ("ragged",),
    ("kernels", "vectors", "tensors", "settings"),
    ("corpus",),
    ("standards",),
    ("lifting", "mapping"),
    ("guidelines",),
    ("formats", "features", "inference", "storage", "evaluation", "inspection", "datasets"),
    ("stages",),
    ("models",),
    ("training",),
    ("tagger",),
    ("methods", "induction"),
    ("estimator",),
    ("benchmarks",),
    ("studies",),
    ("report",),
    ("annotate",),
    ("cli",),
    ("__main__",),
)
RANK = {name: rank for rank, line in enumerate(LAYERS) for name in line}

# Importing these must not import Numba, however deep: a script that only scores files, say, needs none.
LIGHT = ("duilian", "duilian.cli", "duilian.corpus", "duilian.errors", "duilian.standards", "duilian.evaluation")
HEAVY = ("numba", "scipy", "matplotlib", "jinja2", "fastapi", "starlette", "uvicorn", "sqlalchemy")


def upward_imports(sources: Sources, everywhere: bool = True) -> list[str]:
    """Imports of the package's own modules that do not point downwards."""
    complaints = []
    for module, source in sources.items():
        if module == "duilian":
            continue
        own = module.split(".")[1]
        if own not in RANK:
            complaints.append(f"{module}: {own!r} has no line in LAYERS (tests/test_imports.py)")
            continue
        for target, line in imported(ast.parse(source), sources, everywhere):
            if not target.startswith("duilian."):
                continue
            other = target.split(".")[1]
            if other != own and RANK.get(other, len(LAYERS)) >= RANK[own]:
                complaints.append(f"{module}:{line}: imports {target}, which is not below {own}")
    return complaints


def heavy_roads(sources: Sources, doors: tuple[str, ...] = LIGHT) -> list[str]:
    """Chains of imports from a light module to a heavy library."""
    complaints = []
    for door in doors:
        if door not in sources:
            continue
        waiting, seen = [(door,)], {door}
        while waiting:
            road = waiting.pop()
            for target, _ in imported(ast.parse(sources[road[-1]]), sources, everywhere=False):
                if target.split(".")[0] in HEAVY:
                    complaints.append(" -> ".join((*road, target)))
                parents = [target.rsplit(".", n)[0] for n in range(target.count(".") + 1)]
                for step in parents:
                    if step in sources and step not in seen:
                        seen.add(step)
                        waiting.append((*road, step))
    return complaints


def silent_modules(sources: Sources) -> list[str]:
    """Modules whose first line is not a docstring that says something."""
    complaints = []
    for module, source in sources.items():
        docstring = ast.get_docstring(ast.parse(source)) or ""
        first = docstring.splitlines()[0] if docstring else ""
        if not source.startswith(('"""', 'r"""')) or len(first.split()) < 3:
            complaints.append(f"{module}: the first line must be a docstring that says what the module is for")
    return complaints


def test_imports_point_downwards() -> None:
    assert upward_imports(package_sources()) == []


def test_an_upward_import_is_found() -> None:
    sources = {"duilian.corpus": '"""Low."""\ndef f():\n    from duilian.cli import main\n', "duilian.cli": ""}
    assert upward_imports(sources) == ["duilian.corpus:3: imports duilian.cli, which is not below corpus"]
    neighbours = {"duilian.formats.x": "import duilian.evaluation.y", "duilian.evaluation.y": ""}
    assert len(upward_imports(neighbours)) == 1
    assert "has no line" in upward_imports({"duilian.helpers": ""})[0]
    assert upward_imports({"duilian.cli": "import duilian.corpus", "duilian.corpus": ""}) == []


def test_no_light_module_leads_to_a_heavy_one() -> None:
    assert heavy_roads(package_sources()) == []


def test_a_heavy_road_is_found() -> None:
    sources = {
        "duilian.corpus": "from duilian import lifting",
        "duilian.lifting": "from duilian.kernels import kernel",
        "duilian.kernels": "def late():\n    import scipy\nfrom numba import njit\n",
    }
    assert heavy_roads(sources) == ["duilian.corpus -> duilian.lifting -> duilian.kernels -> numba"]
    sources["duilian.lifting"] = "def door():\n    from duilian.kernels import kernel\n"
    assert heavy_roads(sources) == []


def test_every_module_says_what_it_is_for() -> None:
    assert silent_modules(package_sources()) == []


def test_a_silent_module_is_found() -> None:
    assert len(silent_modules({"a": "import os\n", "b": '"""Things."""\n', "c": '# x\n"""Reads a thing."""\n'})) == 3
    assert silent_modules({"d": '"""Reads a thing."""\n'}) == []


@pytest.mark.parametrize("module", sorted(package_sources()))
def test_every_module_can_be_imported(module: str) -> None:
    if module == "duilian.__main__":
        return  # runs the command line
    assert importlib.import_module(module).__doc__


@pytest.mark.parametrize(
    "program",
    [
        "import duilian",
        "import duilian.evaluation, duilian.standards, duilian.corpus",
        "from duilian.cli import main; main(['--help'])",
        "from duilian.cli import main; main(['evaluate', '--help'])",
    ],
)
def test_light_doors_load_nothing_heavy(program: str) -> None:
    loaded = _modules_after(program)
    assert "duilian" in loaded
    assert loaded.isdisjoint(HEAVY)


def test_help_loads_no_arrays() -> None:
    assert "numpy" not in _modules_after("from duilian.cli import main; main(['--help'])")


def _modules_after(program: str) -> set[str]:
    """The top-level names of all modules that a fresh interpreter holds after a program."""
    code = f"import sys\ntry:\n    {program}\nexcept SystemExit:\n    pass\nprint('\\n' + ' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {name.split(".")[0] for name in done.stdout.splitlines()[-1].split()}
