"""Probes (``ol.probes``): what a recording sees of each step. An event in, named arrays out."""

from optlab.backend.namespaces import set_module as _set_module
from optlab.backend.wrong_arguments import explain_class as _explain_class
from optlab.trace.probes.base import Probe, Run, Step
from optlab.trace.probes.curvature import Curvature
from optlab.trace.probes.outside import Activations, Memory, Metric, Time
from optlab.trace.probes.rows import Histogram, Norms, Snapshots, Values
from optlab.trace.probes.sketches import PCA, Projection
from optlab.trace.probes.updates import (
    Angle,
    Compression,
    EffectiveRate,
    GradientNoise,
    UpdateRatio,
)

__all__ = [
    "PCA",
    "Activations",
    "Angle",
    "Compression",
    "Curvature",
    "EffectiveRate",
    "GradientNoise",
    "Histogram",
    "Memory",
    "Metric",
    "Norms",
    "Probe",
    "Projection",
    "Run",
    "Snapshots",
    "Step",
    "Time",
    "UpdateRatio",
    "Values",
]

for _cls in (Activations, Curvature, Metric):  # what they need has no default
    _explain_class(_cls)
_set_module(__name__)


def __dir__() -> list[str]:
    return __all__
