"""adapt: annotation adaptation as jiang2012 compares it: the cascade of ``guide`` by perceptrons.

Templates are those of all methods; ``templates=jiang2012`` gives Tables 1 and 2 of the paper, which know no word list
and on zh_ud stay behind the target alone that has one.
"""

from __future__ import annotations

from duilian.methods.guide import cascade

METHOD = cascade("adapt", "cascade of perceptrons (Jiang et al. 2009, as in jiang2012)", "perceptron")
