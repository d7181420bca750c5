"""Benchmarks: how fast this installation is. Other programs beside it are compared by ``benchmarks/peers.py``.

table.py      BENCHMARKS: name -> what it measures; one after the other
measure.py    Measurement, clocks, child processes    machine.py   what it was measured on; the history file
data.py       the corpora and files that are measured on
training.py   epochs     two_sides.py   passes over two standards     coupled.py   the coupled model, space by space
pairs.py      every method of two standards: our commands on files
files.py      whole commands, from file to file     parts.py   features, rows, phases, start-up
"""
