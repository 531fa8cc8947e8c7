"""Probes by name: "toy", "light", "full", and what is recorded by default."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from optlab.trace.probes.base import Probe
from optlab.trace.probes.outside import Memory, Time
from optlab.trace.probes.rows import Histogram, Norms, Values
from optlab.trace.probes.sketches import Projection
from optlab.trace.probes.updates import Angle, EffectiveRate, GradientNoise, UpdateRatio

#: Up to this many elements everything is recorded by default; of larger parameters, norms.
SMALL = 1000


def read_probes(probes: Any, sizes: list[int], every: int = 1) -> list[Probe]:
    """Return the probes for a run of parameters of these sizes.

    Raises
    ------
    ValueError
        For an unknown name, or something that is no probe.
    """
    if probes is None:
        if sum(sizes) <= SMALL:
            return [Values()]
        return [Values(elements=SMALL), Norms()]
    if isinstance(probes, str):
        made = {"toy": _toy, "light": _light, "full": _full}.get(probes)
        if made is not None:
            return made(every)
        chosen: list[Any] = []
    else:
        chosen = list(probes) if isinstance(probes, Iterable) else []
    named = {"values": Values, "norms": Norms, "memory": Memory}
    found = []
    for probe in chosen:
        if isinstance(probe, str) and probe in named:
            found.append(named[probe]())
        elif isinstance(probe, Probe):
            found.append(probe)
        else:
            break
    else:
        if chosen:
            return found
    raise ValueError(
        "probes must be 'toy', 'light', 'full' or a list of ol.probes.* and of 'values', 'norms' "
        f"and 'memory'; got {probes!r}."
    )


def _toy(every: int) -> list[Probe]:
    return [Values()]


def _light(every: int) -> list[Probe]:
    return [Norms(terms=False, every=10 * every)]


def _full(every: int) -> list[Probe]:
    return [
        Values(elements=SMALL),
        Norms(),
        Angle(),
        UpdateRatio(),
        EffectiveRate(),
        GradientNoise(),
        Histogram(),
        Projection(),
        Time(),
    ]
