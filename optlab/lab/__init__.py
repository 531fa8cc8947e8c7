"""Problems, data sets and models, and experiments on them."""

from optlab.lab import data, models
from optlab.lab.compare import Comparison, RaceWarning, compare
from optlab.lab.memory_results import MemoryStudy
from optlab.lab.memory_rows import MemoryRun
from optlab.lab.memory_studies import memory_study
from optlab.lab.rates import RateSearch, best_rate
from optlab.lab.sweep import LADDER, Sweep, sweep

__all__ = [
    "LADDER", "Comparison", "MemoryRun", "MemoryStudy", "RaceWarning", "RateSearch", "Sweep",
    "best_rate", "compare", "data", "memory_study", "models", "sweep",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__
