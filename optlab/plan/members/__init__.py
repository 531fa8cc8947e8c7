"""Block plans for the members of an ensemble: rows of blocks, by NumPy or by numba."""
