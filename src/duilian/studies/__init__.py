"""Studies: the papers' tables and figures on the user's corpora, as runs that can be interrupted and traced.

results.py   the folder of a study, read (docs/studies.md)
"""
