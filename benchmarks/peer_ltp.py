"""A peer: ltp-extension's perceptron in Rust. Its training paused between epochs, and a small command line.

    python benchmarks/peer_ltp.py train TASK FILE DEV MODEL EPOCHS  annotated file -> model
    python benchmarks/peer_ltp.py tag TASK MODEL FILE OUT THREADS   text file -> annotated file
    python benchmarks/peer_ltp.py epochs TASK FILE EPOCHS           keeps nothing; prints a line behind each epoch

For ``pos`` files of words with tags, for ``seg`` segmented ones; it has no joint task. Its features are its own:
windows of five characters with their pairs, much as in jiang2012; windows of five words with their pairs, prefixes,
suffixes and length. It keeps the epoch that is best on DEV; without a dev file it would keep the first.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from duilian.errors import DuilianError

TASKS = ("pos", "seg")
LINES = 1 << 12
"""It gets so many sentences at once."""


def trainer(task: str, files: Sequence[str], epochs: int) -> Any:
    """A trainer on one thread. Tags have to be told; one that only dev has would end the process."""
    from ltp_extension.perceptron import Algorithm, CWSTrainer, POSTrainer

    if task == "seg":
        found = CWSTrainer()
    else:
        tags = set()
        for file in files:
            with Path(file).open(encoding="utf-8") as lines:
                for line in lines:
                    tags.update([token.rpartition("/")[2] for token in line.split()])
        found = POSTrainer(sorted(tags))
    found.algorithm = Algorithm("AP", 1)
    found.epoch = epochs
    found.eval_threads = 1
    found.load_train_data(files[0])
    return found


def train_file(task: str, path: str, dev: str, model: str, epochs: int) -> None:
    """An annotated file to a model file, compressed as it does by default."""
    ready = trainer(task, [path, dev], epochs)
    ready.load_eval_data(dev)
    ready.train().save(model)


def tag_file(task: str, model: str, path: str, output: str, threads: int) -> None:
    """A segmented file to a word/tag file, or a raw one to a segmented one."""
    os.environ["RAYON_NUM_THREADS"] = str(threads)
    from ltp_extension.perceptron import CWSModel, POSModel

    found = (POSModel if task == "pos" else CWSModel).load(model)
    with Path(path).open(encoding="utf-8") as stream, Path(output).open("w", encoding="utf-8") as out:
        while lines := [line.rstrip("\n") for line in islice(stream, LINES)]:
            given: list[Any] = [line.split() for line in lines] if task == "pos" else lines
            answers = found.batch_predict(given, parallelism=threads > 1)
            if task == "pos":
                for words, tags in zip(given, answers, strict=True):
                    out.write("  ".join([f"{word}/{tag}" for word, tag in zip(words, tags, strict=True)]) + "\n")
            else:
                out.writelines(["  ".join(words) + "\n" for words in answers])


READY = "ready"


def train_and_tell(task: str, path: str, epochs: int) -> None:
    """Train without dev; the trainer prints a line behind each epoch."""
    ready = trainer(task, [path], epochs)
    ready.compress = False
    sys.stdout.write(READY + "\n")
    sys.stdout.flush()
    ready.train()


def clock_of(process: int) -> Callable[[], float]:
    """CPU seconds of a process, where the system tells them (Linux); else the wall clock."""
    clock = (~process << 3) | 2
    try:
        time.clock_gettime(clock)
    except (AttributeError, OSError, OverflowError):
        return time.perf_counter
    return lambda: time.clock_gettime(clock)


def epochs(task: str, path: Path, n: int) -> Iterator[float]:
    """Train n epochs in a child; yields the CPU seconds of each, and stops the child until the next is asked for.

    Reading and feature strings are no part of it; numbering the features counts as part of the first epoch.
    The stop takes a moment: epochs of a few milliseconds run into each other, and one of them may take no time at all.
    """
    command = [sys.executable, __file__, "epochs", task, str(path), str(n)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        count, ended = 0, False
        try:
            clock, began = clock_of(child.pid), 0.0
            for line in child.stdout:
                now = clock()
                if line.startswith("epoch:"):
                    child.send_signal(signal.SIGSTOP)
                    count += 1
                    yield now - began
                    child.send_signal(signal.SIGCONT)
                if line.startswith(("epoch:", READY)):
                    began = now if clock is not time.perf_counter else clock()
            ended = True
        finally:
            if not ended:
                child.kill()
    if child.returncode or count < n:
        raise DuilianError(f"{' '.join(command)}: {count} of {n} epochs, exit status {child.returncode}.")


def main(arguments: Sequence[str]) -> None:
    """The command line."""
    word, task, *files, number = arguments
    table: dict[str, Callable[..., None]] = {"train": train_file, "tag": tag_file, "epochs": train_and_tell}
    table[word](task, *files, int(number))


if __name__ == "__main__":
    main(sys.argv[1:])
