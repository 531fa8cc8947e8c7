"""Floor 5: problems, data sets and models, and experiments on them."""

from optlab.lab import data, models
from optlab.lab.compare import Comparison, RaceWarning, compare
from optlab.lab.rates import RateSearch, best_rate
from optlab.lab.sweep import LADDER, Sweep, sweep

__all__ = [
    "LADDER", "Comparison", "RaceWarning", "RateSearch", "Sweep", "best_rate", "compare", "data",
    "models", "sweep",
]  # fmt: skip
