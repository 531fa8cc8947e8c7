"""Names of parameters in states: a parameter may have got its name after the state was taken.

Layers name their parameters when somebody asks for them. A state that was taken before calls them
by their position, and so does an optimizer that was made before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_NOT_OF_PARAMETERS = ("LR_Scheduler", "extra")

#: What a state has of each parameter beside its slots, under the same name.
RESERVED = {"t": "its step count"}


def check_slot_names(owner: str, slots: Any) -> None:
    """Refuse slots that a state could not tell from what else it has of each parameter.

    Raises
    ------
    ValueError
        If a slot has a reserved name.

    Examples
    --------
    >>> check_slot_names("Mine", {"t": 0.0})
    Traceback (most recent call last):
        ...
    ValueError: Mine has a slot 't': in its state "w.t" is of each parameter w its step count. ...
    """
    for name in slots if isinstance(slots, Mapping) else ():
        if name in RESERVED:
            raise ValueError(
                f'{owner} has a slot {name!r}: in its state "w.{name}" is of each parameter w '
                f"{RESERVED[name]}. Give the slot a longer name, such as 'own_{name}'; the step "
                "count itself is what scalars(self, t, h) is called with."
            )


def renamed(state: Mapping[str, Any], own: Sequence[str]) -> dict[str, Any]:
    """Give a state with the names of these parameters, where one of the two has positions only.

    Parameters
    ----------
    state : mapping
    own : sequence of str
        The names of the parameters, in order.

    Examples
    --------
    >>> renamed({"parameter 0.t": 3, "parameter 0.m": 1.0, "learning_rate": 0.1}, ["fc.weight"])
    {'fc.weight.t': 3, 'fc.weight.m': 1.0, 'learning_rate': 0.1}
    >>> renamed({"other.weight.t": 3}, ["fc.weight"])
    {'other.weight.t': 3}
    """
    there = list(dict.fromkeys(_names(state)))
    new = {}
    if len(there) == len(own) and set(there) != set(own):
        for position, (name, wanted) in enumerate(zip(there, own, strict=True)):
            if f"parameter {position}" in (name, wanted):
                new[name] = wanted
        if {new.get(name, name) for name in there} != set(own):
            new = {}
    return _with_names(state, new)


def _names(state: Mapping[str, Any]) -> Iterator[str]:
    for key, value in state.items():
        if key in _NOT_OF_PARAMETERS:
            continue
        if isinstance(value, Mapping):
            yield from _names(value)
        elif isinstance(key, str) and "." in key:
            yield key.rpartition(".")[0]


def _with_names(state: Mapping[str, Any], new: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in state.items():
        if isinstance(value, Mapping) and key not in _NOT_OF_PARAMETERS:
            value = _with_names(value, new)
        if isinstance(key, str):
            name, dot, slot = key.rpartition(".")
            key = new.get(key, f"{new.get(name, name)}{dot}{slot}")
        found[key] = value
    return found
