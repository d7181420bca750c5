"""What all tests share: Hypothesis profiles, the cache folder of compiled kernels, and the data folder.

NUMBA_CACHE_DIR   set by this file unless it is set already: .numba-cache/<kernel sources>-<numba>-<lane>
DUILIAN_DATA      the folder of corpora; else ../shared/data beside the checkout; tests that need it skip without it
DUILIAN_FUZZ      "full" for the thousands of `make fuzz`; else a small sample
"""

from __future__ import annotations

import importlib.metadata
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from commands import Run
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).parents[1]
JIT = os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0")

# The first example of a kernel pays for its compilation: no deadline, and slowness is not a health problem.
# Without the compiler kernels are about 120 times slower.
settings.register_profile(
    "duilian",
    deadline=None,
    print_blob=True,
    max_examples=50 if JIT else 8,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=os.environ.get("CI", "") not in ("", "0", "false"),
)
settings.register_profile("thorough", settings.get_profile("duilian"), max_examples=1000, derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "duilian"))


def use_own_numba_cache(folder: Path, keep: int = 4) -> Path:
    """Point Numba at a folder named after all that its compiled code depends on; delete all but the newest few."""
    assert "duilian.kernels" not in sys.modules, "a kernel was defined before its cache folder was chosen"
    stamp = _source_stamp()
    lane = "bounds" if os.environ.get("NUMBA_BOUNDSCHECK", "0") not in ("", "0") else "plain"
    chosen = folder / f"{stamp[:16]}-{importlib.metadata.version('numba')}-{lane}"
    chosen.mkdir(parents=True, exist_ok=True)
    chosen.touch()
    newest_first = sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
    for old in newest_first[keep:]:
        if old != chosen:
            shutil.rmtree(old, ignore_errors=True)
    os.environ["NUMBA_CACHE_DIR"] = str(chosen)
    return chosen


def _source_stamp() -> str:
    """The stamp that the kernels get, asked of a child: in this process Numba would read its settings too early."""
    command = [sys.executable, "-c", "from duilian.kernels import source_stamp; print(source_stamp())"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


if "NUMBA_CACHE_DIR" not in os.environ:
    use_own_numba_cache(ROOT / ".numba-cache")


def pytest_configure(config: pytest.Config) -> None:
    for line in (
        "slow: more than about ten seconds; left out of the lanes without the compiler",
        "compiled: about compilation itself; left out where the compiler is switched off",
        "fuzz: broken files; a sample unless DUILIAN_FUZZ=full",
    ):
        config.addinivalue_line("markers", line)
    if not JIT:
        # Hashes wrap around: compiled code does so in silence, NumPy's scalars warn.
        config.addinivalue_line("filterwarnings", "ignore:overflow encountered in scalar:RuntimeWarning")


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of corpora (zh_ud, en_ewt, ja_gsd); the test is skipped where there is none."""
    named = os.environ.get("DUILIAN_DATA")
    folder = Path(named) if named else ROOT.parent / "shared" / "data"
    if named and not folder.is_dir():
        pytest.fail(f"DUILIAN_DATA names {folder}, which is no folder; unset it to skip the tests that need corpora")
    if not folder.is_dir():
        pytest.skip("no folder of corpora: set DUILIAN_DATA to run this test")
    return folder


@pytest.fixture(scope="session")
def corpus_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of thirty short sentences of words whose tags follow from them."""
    chance = random.Random(3)
    lexicon = {"我": "r", "北京": "ns", "上海": "ns", "爱": "v", "去": "v", "很": "d", "好": "a", "。": "w"}
    lines = [
        "  ".join(f"{word}/{lexicon[word]}" for word in chance.choices(list(lexicon), k=chance.randint(1, 6)))
        for _ in range(30)
    ]
    path = tmp_path_factory.mktemp("corpus") / "corpus.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command in this process: (exit status, stdout, stderr)."""
    from duilian.cli import main

    def run(*arguments: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as exit:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        code = exit.value.code
        return (code if isinstance(code, int) else int(bool(code))), captured.out, captured.err

    return run
