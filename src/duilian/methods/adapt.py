"""adapt: annotation adaptation as jiang2012 compares it: the cascade of ``guide`` by perceptrons, Tables 1 and 2."""

from __future__ import annotations

from duilian.methods.guide import cascade

METHOD = cascade(
    "adapt", "cascade of perceptrons, Tables 1 and 2 of jiang2012 (Jiang et al. 2009)", "perceptron", "jiang2012"
)
