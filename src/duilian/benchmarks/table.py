"""BENCHMARKS: everything that can be measured, by name; and the run over some of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from duilian.benchmarks import coupled, files, pairs, parts, training, two_sides
from duilian.benchmarks.data import Bench
from duilian.benchmarks.measure import Measurement
from duilian.errors import UsageError


@dataclass(frozen=True)
class Benchmark:
    """One benchmark: the first line of its function says what it measures."""

    name: str
    run: Callable[[Bench], list[Measurement]]

    @property
    def about(self) -> str:
        """What it measures, in a sentence."""
        return (self.run.__doc__ or "").splitlines()[0]


BENCHMARKS = {
    benchmark.name: benchmark
    for benchmark in (
        Benchmark("help", files.start),
        Benchmark("train-crf", training.train_crf),
        Benchmark("train-perceptron", training.train_perceptron),
        Benchmark("train-seg", training.train_seg),
        Benchmark("train-segpos", training.train_segpos),
        Benchmark("train-hmm", training.train_hmm),
        Benchmark("train-correspondence", two_sides.train_correspondence),
        Benchmark("train-multitask", two_sides.train_multitask),
        Benchmark("rows", training.rows),
        Benchmark("features", parts.features),
        Benchmark("file-to-model", files.file_to_model),
        Benchmark("memory", files.memory),
        Benchmark("tag-pos", files.tag_pos),
        Benchmark("tag-seg", files.tag_seg),
        Benchmark("model-load", files.model_load),
        Benchmark("phases", parts.phases),
        Benchmark("train-pairs", pairs.train_pairs),
        Benchmark("tag-pairs", pairs.tag_pairs),
        Benchmark("train-coupled", coupled.train_coupled),
        Benchmark("tag-coupled", coupled.tag_coupled),
    )
}


def chosen(names: Sequence[str]) -> list[Benchmark]:
    """The benchmarks of these names, in the order of the table; all of them without names."""
    strange = [name for name in names if name not in BENCHMARKS]
    if strange:
        raise UsageError(f"no benchmark {strange[0]!r}. There are {', '.join(BENCHMARKS)}.")
    return [benchmark for name, benchmark in BENCHMARKS.items() if not names or name in names]


def run(names: Sequence[str], bench: Bench, say: Callable[[str], None]) -> Iterator[Measurement]:
    """Run benchmarks one after the other; ``say`` hears which one is running."""
    for benchmark in chosen(names):
        say(f"{benchmark.name}: {benchmark.about}")
        yield from benchmark.run(bench)
