"""Floor 5: problems, and experiments on them."""

from optlab.lab.compare import Comparison, RaceWarning, compare

__all__ = ["Comparison", "RaceWarning", "compare"]
