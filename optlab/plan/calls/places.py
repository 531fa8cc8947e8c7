"""Places of a plan among the arguments and results of its entries."""

from __future__ import annotations

from typing import Any

from optlab.plan.calls.entries import OfTensor
from optlab.plan.plan import Place


def places_in(values: Any) -> list[Place]:
    """Return the places among arguments, nested too."""
    found: list[Place] = []
    for x in values:
        if isinstance(x, Place):
            found.append(x)
        elif isinstance(x, OfTensor):
            found.append(x.place)
        elif isinstance(x, (tuple, list)):
            found += places_in(x)
        elif isinstance(x, dict):
            found += places_in(x.values())
        elif hasattr(x, "holds_places"):
            found += x.holds_places()
    return found


def is_made_anew(x: Any) -> bool:
    """Return whether every call makes a value anew: of places, or a list or dict to write to."""
    if isinstance(x, (Place, OfTensor, list, dict)) or hasattr(x, "holds_places"):
        return True
    return isinstance(x, tuple) and any(map(is_made_anew, x))


def arrays_at(recorder: Any, places: Any) -> dict[Place, Any]:
    """Return what the values of some places were, while the recorder keeps them."""
    wanted = set(places)
    found: dict[Place, Any] = {}
    for x in recorder._kept:
        place = recorder.known(x)
        if place in wanted:
            found.setdefault(place, x)
    return found
