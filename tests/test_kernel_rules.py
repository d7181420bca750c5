"""The rules that keep compiled kernels sound, checked on the source text (docs/decisions/0001-kernels-across-files.md).

1. Only duilian/kernels.py and vectors.py import Numba; everywhere else a kernel wears the bare ``@kernel`` or
   ``@fast_kernel``.
2. Kernels are top-level functions, hold no functions, take no ``*args`` and receive no kernel as an argument.
3. From outside itself a kernel uses constants, kernels, ``np``, ``math``, all from files that the cache stamp covers.
4. No automatic parallel loops: threads work on blocks of sentences with buffers of their own.
5. A fast kernel does not ask ``isfinite``: it is computed as x - x == 0, and where sums may be reordered that is true.
"""

from __future__ import annotations

import ast
import builtins
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from sources import Sources, imported, package_sources

import duilian

DECORATORS = {"kernel", "fast_kernel"}
BANNED = {"njit", "jit", "prange", "vectorize", "guvectorize", "cfunc", "stencil", "generated_jit", "jitclass"}
LIBRARIES = {"np", "math"}
COMPILERS = {"duilian.kernels", "duilian.vectors"}
"""The modules that may speak to the compiler."""
VECTORS = {("duilian.vectors", name) for name in ("multiply", "prefetch", "count_bits")}
"""What kernels may call like kernels although it is code for the processor."""


def complaints_about(sources: Sources) -> list[str]:
    """Every broken rule, as module:line: what is wrong."""
    trees = {module: ast.parse(source) for module, source in sources.items()}
    kernels = {(module, function.name) for module, tree in trees.items() for function in _kernels(tree)} | VECTORS
    found: list[str] = []
    for module, tree in trees.items():
        if module in COMPILERS:
            continue
        found += [f"{module}:{line}: {text}" for line, text in _stray_numba(tree, sources)]
        found += [f"{module}:{line}: {text}" for line, text in _decorators(tree)]
        for function in _kernels(tree):
            names = _outer_names(module, tree, kernels, sources)
            found += [f"{module}:{line}: {function.name}: {text}" for line, text in _body(function, names)]
    return found


def _kernels(tree: ast.AST) -> list[ast.FunctionDef]:
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return [f for f in functions if any(isinstance(d, ast.Name) and d.id in DECORATORS for d in f.decorator_list)]


def _stray_numba(tree: ast.Module, sources: Sources) -> list[tuple[int, str]]:
    found = [
        (line, f"imports {target}; only duilian/kernels.py and vectors.py do")
        for target, line in imported(tree, sources)
        if target.split(".")[0] == "numba"
    ]
    for node in ast.walk(tree):
        name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
        if name in BANNED:
            found.append((node.lineno, f"uses {name}; wear @kernel or @fast_kernel, and no parallel loops"))
    return found


def _decorators(tree: ast.Module) -> list[tuple[int, str]]:
    found = []
    top = {id(node) for node in tree.body}
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        for decorator in node.decorator_list:
            if isinstance(decorator, ast.Call) and isinstance(decorator.func, ast.Name):
                if decorator.func.id in DECORATORS:
                    found.append((node.lineno, f"@{decorator.func.id} takes no options"))
            elif isinstance(decorator, ast.Attribute) and decorator.attr in DECORATORS:
                found.append((node.lineno, f"import the decorator by name: duilian.kernels.{decorator.attr}"))
            elif isinstance(decorator, ast.Name) and decorator.id in DECORATORS:
                if id(node) not in top:
                    found.append((node.lineno, f"{node.name}: a kernel must be a top-level function"))
                if len(node.decorator_list) > 1:
                    found.append((node.lineno, f"{node.name}: a kernel wears one decorator"))
    return found


def _outer_names(module: str, tree: ast.Module, kernels: set[tuple[str, str]], sources: Sources) -> dict[str, str]:
    """What a module's names mean to its kernels: "kernel", "constant", "library", or why they may not be used."""
    names: dict[str, str] = {}
    assigned: dict[str, int] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            names[node.name] = "kernel" if (module, node.name) in kernels else "an ordinary function"
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                for leaf in ast.walk(target):
                    if isinstance(leaf, ast.Name):
                        assigned[leaf.id] = assigned.get(leaf.id, 0) + 1
                        names[leaf.id] = "constant" if leaf.id.isupper() else "a variable: write constants in capitals"
        elif isinstance(node, ast.Import):
            for alias in node.names:
                names[alias.asname or alias.name] = "library"
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                names[alias.asname or alias.name] = _imported_name(node.module, alias.name, kernels, sources)
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            names.update(dict.fromkeys(node.names, "a global that functions change"))
    names.update({name: "assigned twice" for name, times in assigned.items() if times > 1})
    return names


def _imported_name(module: str, name: str, kernels: set[tuple[str, str]], sources: Sources) -> str:
    if (module, name) in kernels:
        return "kernel"
    if name.isupper() and module in sources:
        covered = "kernel" in sources[module]
        return "constant" if covered else f"a constant of {module}, which the cache stamp does not cover"
    return "library" if name in LIBRARIES else "an imported object"


def _body(function: ast.FunctionDef, names: dict[str, str]) -> list[tuple[int, str]]:
    found = []
    arguments = function.args
    own = {argument.arg for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    if arguments.vararg or arguments.kwarg:
        found.append((function.lineno, "takes *args or **kwargs"))
    inner = [node for statement in function.body for node in ast.walk(statement)]
    own |= {node.id for node in inner if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    called = {id(node.func) for node in inner if isinstance(node, ast.Call)}
    annotations = {id(leaf) for node in inner if isinstance(node, ast.AnnAssign) for leaf in ast.walk(node.annotation)}
    fast = any(isinstance(d, ast.Name) and d.id == "fast_kernel" for d in function.decorator_list)
    for node in inner:
        if fast and isinstance(node, ast.Attribute) and node.attr == "isfinite":
            found.append((node.lineno, "uses isfinite, which is always true where x - x may be simplified: compare"))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            found.append((node.lineno, "defines a function or class inside a kernel"))
        if isinstance(node, ast.Global | ast.Nonlocal):
            found.append((node.lineno, "declares a global"))
        if not isinstance(node, ast.Name) or node.id in own or id(node) in annotations:
            continue
        meaning = names.get(node.id, "builtin" if hasattr(builtins, node.id) else "unknown")
        if meaning == "kernel" and id(node) not in called:
            found.append((node.lineno, f"passes the kernel {node.id} around: such a call is never cached"))
        if meaning == "library" and node.id not in LIBRARIES:
            found.append((node.lineno, f"uses {node.id}; kernels know {', '.join(sorted(LIBRARIES))}"))
        if meaning not in ("kernel", "constant", "library", "builtin"):
            found.append((node.lineno, f"uses {node.id}, {meaning}"))
    return found


def test_every_kernel_keeps_the_rules() -> None:
    assert complaints_about(package_sources()) == []


GOOD = """
import numpy as np
from duilian.kernels import kernel
from duilian.other import SIZE, callee
LIMIT = 3
@kernel
def add(a: float, out):
    b: int = SIZE + LIMIT
    for i in range(len(out)):
        out[i] = callee(a) + np.log(b)
"""
OTHER = """
from duilian.kernels import kernel
SIZE = 4
@kernel
def callee(a):
    return a
"""


def test_a_good_kernel_is_not_blamed() -> None:
    assert complaints_about({"duilian.good": GOOD, "duilian.other": OTHER}) == []


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("import numpy as np", "import numba", "only duilian/kernels.py and vectors.py do"),
        ("import numpy as np", "from numba import prange", "only duilian/kernels.py and vectors.py do"),
        ("range(len(out))", "nb.prange(len(out))", "uses prange"),
        ("@kernel", "@kernel(parallel=True)", "takes no options"),
        ("@kernel", "@kernels.kernel", "import the decorator by name"),
        ("@kernel", "@cache\n@kernel", "one decorator"),
        ("callee(a)", "np.sum(callee)", "passes the kernel callee around"),
        ("LIMIT = 3", "LIMIT = 3\nLIMIT = 4", "assigned twice"),
        ("LIMIT", "limit", "write constants in capitals"),
        ("callee(a)", "missing(a)", "uses missing, unknown"),
        ("callee(a)", "(lambda: a)()", "defines a function"),
        ("(a: float, out)", "(a, *out)", "takes *args"),
        ("import numpy as np", "import scipy as np2", "uses np, unknown"),
        ("import numpy as np", "import os as np3, numpy as np\nLIMIT2 = 1\ndef change():\n    global LIMIT", "change"),
        ("np.log(b)", "plain(b)\ndef plain(x):\n    return x", "an ordinary function"),
        (
            "@kernel\ndef add(a: float, out):",
            "@fast_kernel\ndef add(a: float, out):\n    np.isfinite(a)",
            "uses isfinite",
        ),
    ],
)
def test_a_broken_rule_is_found(old: str, new: str, complaint: str) -> None:
    assert old in GOOD
    found = complaints_about({"duilian.bad": GOOD.replace(old, new), "duilian.other": OTHER})
    assert any(complaint in line for line in found), found


def test_a_kernel_in_a_class_or_function_is_found() -> None:
    source = "class A:\n    @kernel\n    def f(self):\n        return 1\n"
    assert "top-level function" in complaints_about({"duilian.bad": source})[0]


def test_a_constant_from_a_file_without_kernels_is_found() -> None:
    source = "from duilian.plain import SIZE\n@kernel\ndef f():\n    return SIZE\n"
    assert "does not cover" in complaints_about({"duilian.bad": source, "duilian.plain": "SIZE = 1"})[0]


CALLER = """
from toy.kernels import kernel
from toy.callee import CALLEES
from toy.callee import double
@kernel
def caller(x):
    return double(x) + 1
if __name__ == "__main__":
    print(caller(10), sum(caller.stats.cache_hits.values()), CALLEES)
"""
CALLEE = """
from toy.kernels import kernel
CALLEES = 1
@kernel
def double(x):
    return x * 2
"""


@pytest.mark.compiled
@pytest.mark.parametrize("stamped", [True, False])
def test_an_edited_callee_in_another_file_reaches_the_cached_caller(tmp_path: Path, stamped: bool) -> None:
    """With Numba's own time stamp the caller stays stale: that half shows that the other half can fail."""
    toy = tmp_path / "toy"
    toy.mkdir()
    (toy / "__init__.py").write_text("")
    (toy / "caller.py").write_text(CALLER)
    (toy / "callee.py").write_text(CALLEE)
    shutil.copy(Path(duilian.__file__).parent / "kernels.py", toy / "kernels.py")
    if not stamped:
        source = (toy / "kernels.py").read_text()
        assert "if cache_file is not None:" in source
        (toy / "kernels.py").write_text(source.replace("if cache_file is not None:", "if False:"))

    assert _run_toy(tmp_path) == "21 0 1"
    assert _run_toy(tmp_path) == "21 1 1", "the second run must come from the cache"
    (toy / "callee.py").write_text(CALLEE.replace("x * 2", "x * 3"))
    assert _run_toy(tmp_path) == ("31 0 1" if stamped else "21 1 1")


def _run_toy(folder: Path) -> str:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": str(folder)}
    environment.pop("NUMBA_DISABLE_JIT", None)
    command = [sys.executable, "-m", "toy.caller"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
