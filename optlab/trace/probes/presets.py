"""Probes by name: "toy", "light", "full", and what is recorded by default."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from inspect import signature
from typing import Any

from optlab.trace.probes.base import Probe
from optlab.trace.probes.outside import Memory, Time
from optlab.trace.probes.rows import Histogram, Norms, Values
from optlab.trace.probes.sketches import Projection
from optlab.trace.probes.updates import Angle, EffectiveRate, GradientNoise, UpdateRatio

_SETS = ("toy", "light", "full")
#: What `ol.probes` has besides probes.
_NO_PROBES = ("Probe", "Run", "Step")
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
    hint = _hint_alone(probes) or _hint([probes] if isinstance(probes, str) else chosen)
    raise ValueError(
        "probes must be 'toy', 'light', 'full' or a list of ol.probes.* and of 'values', 'norms' "
        f"and 'memory'; got {probes!r}.{hint}"
    )


def _hint_alone(probes: Any) -> str:
    """Return what to write for what stands alone and should be in a list, or is misspelled."""
    if isinstance(probes, Probe):
        return f" Write a list: probes=[{probes!r}]."
    if isinstance(probes, str) and probes in ("values", "norms", "memory"):
        return f" Write a list: probes=[{probes!r}]."
    near = get_close_matches(str(probes).lower(), _SETS, n=1) if isinstance(probes, str) else []
    return f" Did you mean {near[0]!r}?" if near else ""


def _hint(given: list[Any]) -> str:
    """Return what to write for the first of these that means a probe and is none."""
    public = {_plain(name): probe for name, probe in _classes().items()}
    for one in given:
        if isinstance(one, type) and issubclass(one, Probe):
            return f" Give an instance: probes=[ol.probes.{one.__name__}({_needed(one)})]."
        if isinstance(one, str) and one not in ("values", "norms", "memory"):
            if one in _SETS:
                return f" A set of probes stands alone: probes={one!r}."
            for name in get_close_matches(_plain(one), public, n=1, cutoff=0.75):
                probe = public[name]
                said = f" Write probes=[ol.probes.{probe.__name__}({_needed(probe)})]"
                return said + (", and model=net." if probe.__name__ == "Activations" else ".")
    return ""


def _plain(name: str) -> str:
    """Return a name without what distinguishes "update ratio" from "UpdateRatio".

    Examples
    --------
    >>> _plain("update ratio") == _plain("UpdateRatio")
    True
    """
    return "".join(letter for letter in name.lower() if letter.isalnum())


def _classes() -> dict[str, type[Probe]]:
    """Return the probes of the library by their names."""
    from optlab.trace import probes

    return {name: getattr(probes, name) for name in probes.__all__ if name not in _NO_PROBES}


def _needed(probe: type[Probe]) -> str:
    """Return the arguments that a probe cannot do without, as they are written."""
    parameters = signature(probe).parameters.values()
    needed = [p for p in parameters if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
    return ", ".join(p.name for p in needed)


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
