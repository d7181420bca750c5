"""Benchmarks: how fast this installation is, and how fast python-crfsuite is beside it, in one run on the same data.

table.py      BENCHMARKS: name -> what it measures    run.py       warm up, run, one after the other
measure.py    Measurement, clocks, child processes    machine.py   what it was measured on; the history file
data.py       the corpora and files that are measured on
training.py   epochs     two_sides.py   methods of two standards
files.py      whole commands, from file to file     parts.py   features, rows, phases, start-up
crfsuite.py   the peer: its feature strings, its training paused between epochs, its own command line

Nothing is imported here: ``crfsuite.py`` runs as a child process of its own, without NumPy.
"""
