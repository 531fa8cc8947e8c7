"""The documented path of `RowSparse`, the gradient of a table of which few rows were read."""

from optlab.autograd.rules.manipulation.embedding import take_rows
from optlab.autograd.tape.row_sparse import RowSparse

__all__ = ["RowSparse", "take_rows"]
