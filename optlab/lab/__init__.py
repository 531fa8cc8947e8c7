"""Floor 5: problems, and experiments on them."""

from optlab.lab.compare import Comparison, compare

__all__ = ["Comparison", "compare"]
