"""Floor 5: problems, and experiments on them."""

from optlab.lab.compare import Comparison, RaceWarning, compare
from optlab.lab.sweep import LADDER, Sweep, sweep

__all__ = ["LADDER", "Comparison", "RaceWarning", "Sweep", "compare", "sweep"]
