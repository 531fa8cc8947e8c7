"""Problems, data sets and models, and experiments on them."""

from optlab.backend.namespaces import set_module as _set_module
from optlab.lab import data, models
from optlab.lab.compare import Comparison, RaceWarning, compare
from optlab.lab.lr_search import RateSearch, best_rate
from optlab.lab.memory_studies.result import MemoryStudy
from optlab.lab.memory_studies.rows import MemoryRun
from optlab.lab.memory_studies.study import memory_study
from optlab.lab.sweep import LADDER, Sweep, sweep

__all__ = [
    "LADDER", "Comparison", "MemoryRun", "MemoryStudy", "RaceWarning", "RateSearch", "Sweep",
    "best_rate", "compare", "data", "memory_study", "models", "sweep",
]  # fmt: skip

_set_module(__name__)


def __dir__() -> list[str]:
    return __all__
