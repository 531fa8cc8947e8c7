"""Problems, data sets and models, and experiments on them."""

from optlab.backend.namespaces import set_module as _set_module
from optlab.lab import data, models
from optlab.lab.attraction import Basins, basins
from optlab.lab.compare import Comparison, RaceWarning
from optlab.lab.fair_comparisons.compare import compare
from optlab.lab.fair_comparisons.profiles import Profile, performance_profile
from optlab.lab.fair_comparisons.result import FairComparison
from optlab.lab.fair_comparisons.training import FairRun
from optlab.lab.landscapes.connection import Connection, connect
from optlab.lab.landscapes.landscape import Landscape, landscape
from optlab.lab.landscapes.runs import RunPath
from optlab.lab.lr_range import RateRange, lr_range_test
from optlab.lab.lr_search import RateSearch, best_rate
from optlab.lab.memory_studies.result import MemoryStudy
from optlab.lab.memory_studies.rows import MemoryRun
from optlab.lab.memory_studies.study import memory_study
from optlab.lab.network_sweep import NetworkSweep
from optlab.lab.quadratics import ClosedForm, Curvature, closed_form, curvature
from optlab.lab.recipes.catalogue import recipe
from optlab.lab.recipes.recipe import Recipe, Training
from optlab.lab.reference_methods import ConjugateGradient, Newton, SteepestDescent
from optlab.lab.sweep import LADDER, Sweep, sweep

__all__ = [
    "LADDER", "Basins", "ClosedForm", "Comparison", "ConjugateGradient", "Connection", "Curvature",
    "FairComparison", "FairRun", "Landscape", "MemoryRun", "MemoryStudy", "NetworkSweep", "Newton",
    "Profile", "RaceWarning", "RateRange", "RateSearch", "Recipe", "RunPath", "SteepestDescent",
    "Sweep", "Training", "basins", "best_rate", "closed_form", "compare", "connect", "curvature",
    "data", "landscape", "lr_range_test", "memory_study", "models", "performance_profile", "recipe",
    "sweep",
]  # fmt: skip

_set_module(__name__)


def __dir__() -> list[str]:
    return __all__
