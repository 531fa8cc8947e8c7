"""Names of parameters in state dicts, also where one side was made before they had names.

Layers name their parameters when these are first listed. A state that was saved before refers to
them by position, and so does an optimizer that was made before.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from optlab.autograd.tensor.tensor import raw

_MOST_LISTED = 4
_NOT_OF_PARAMETERS = ("LR_Scheduler", "extra")

#: Entries of a parameter in a state beside its slots.
RESERVED = {"t": "its step count"}


def check_slot_names(owner: str, slots: Any) -> None:
    """Check that the names of slots are unambiguous in a state.

    Raises
    ------
    ValueError
        If a slot has a reserved name, or a dot in it.

    Examples
    --------
    >>> check_slot_names("Mine", {"t": 0.0})
    Traceback (most recent call last):
        ...
    ValueError: Mine has a slot 't': in its state "w.t" is of each parameter w its step count. ...
    """
    for name in slots if isinstance(slots, Mapping) else ():
        if "." in str(name):
            raise ValueError(
                f"{owner} has a slot {name!r}: in a state the dot stands between the name of a "
                f"parameter and that of a slot. Write {str(name).replace('.', '_')!r}."
            )
        if name in RESERVED:
            raise ValueError(
                f'{owner} has a slot {name!r}: in its state "w.{name}" is of each parameter w '
                f"{RESERVED[name]}. Give the slot a longer name, such as 'own_{name}'; the step "
                "count itself is what scalars(self, t, h) is called with."
            )


def renamed(state: Mapping[str, Any], own: Sequence[str]) -> dict[str, Any]:
    """Return a state with the names of these parameters, if one of the two has positions only.

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
    there = list(dict.fromkeys(_parameter_names_in(state)))
    new = {}
    if len(there) == len(own) and set(there) != set(own):
        for position, (name, wanted) in enumerate(zip(there, own, strict=True)):
            if f"parameter {position}" in (name, wanted):
                new[name] = wanted
        if {new.get(name, name) for name in there} != set(own):
            new = {}
    return _rename_keys(state, new)


def warn_if_told_apart_by_order(
    state: Mapping[str, Any],
    parameters: Sequence[Any],
    names: Sequence[str],
    by_position: bool,
    depth: int = 3,
) -> None:
    """Warn if only the order tells which parameter an entry of a state belongs to.

    That is so if parameters share name, shape and dtype (as those of two models of one structure
    do), and their values in the state differ.

    Parameters
    ----------
    state : mapping
        With the names of these parameters.
    parameters : sequence of Tensor
    names : sequence of str
        Their names, of `parameter_names`.
    by_position : bool
        Whether only one side has names, so that parameters are matched by their order.
    depth : int
        The `stacklevel` of the user's call.
    """
    alike: dict[Any, list[str]] = {}
    for p, name in zip(parameters, names, strict=True):
        given = "" if by_position else getattr(p, "structural_name", None)
        if given or by_position:
            alike.setdefault((given, p.shape, str(p.dtype)), []).append(name)
    several = {which: same for which, same in alike.items() if len(same) > 1}
    own = _entries_by_name(state) if several else {}
    doubtful = [
        given
        for (given, _, _), same in several.items()
        if any(not _equal(own.get(same[0], []), own.get(name, [])) for name in same[1:])
    ]
    if doubtful and by_position:
        warnings.warn(
            "only one of the two knows names of parameters, this optimizer or the state, so their "
            "order says whose state is whose, and several are of one shape: if they were given in "
            "another order when it was saved, theirs is now swapped. A model names its parameters "
            "when it is asked for them: call model.parameters() before the optimizer is made, on "
            "both sides.",
            UserWarning,
            stacklevel=depth,
        )
    elif doubtful:
        listed = ", ".join(map(repr, list(dict.fromkeys(doubtful))[:_MOST_LISTED]))
        warnings.warn(
            f"several parameters are called {listed}, and only their order says whose state is "
            "whose: if the models were given in another order when it was saved, theirs is now "
            "swapped. Give names of their own, before the optimizer's state is saved: for name, p "
            'in model.named_parameters(): p.name = f"actor.{name}"; or put the models into one '
            'ol.nn.LayerDict({"actor": actor, ...}) before anything else asks for their '
            "parameters.",
            UserWarning,
            stacklevel=depth,
        )


def _entries_by_name(
    state: Mapping[str, Any], path: tuple[str, ...] = ()
) -> dict[str, list[tuple[Any, ...]]]:
    """Return all entries of a state by the name of their parameter, without the name."""
    found: dict[str, list[tuple[Any, ...]]] = {}
    for key, value in state.items():
        if isinstance(value, Mapping):
            for name, own in _entries_by_name(value, (*path, str(key))).items():
                found.setdefault(name, []).extend(own)
        elif isinstance(key, str):
            base, _, slot = key.rpartition(".")
            found.setdefault(key, []).append((*path, "", value))
            found.setdefault(base, []).append((*path, slot, value))
    return found


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(_equal, one, other))
    if isinstance(one, str) or isinstance(other, str):
        return bool(one == other)
    one, other = raw(one), raw(other)
    if not hasattr(one, "shape") or not hasattr(other, "shape"):
        return bool(one == other)
    return one.shape == other.shape and bool((one == other).all())


def _parameter_names_in(state: Mapping[str, Any]) -> Iterator[str]:
    for key, value in state.items():
        if key in _NOT_OF_PARAMETERS:
            continue
        if isinstance(value, Mapping):
            yield from _parameter_names_in(value)
        elif isinstance(key, str) and "." in key:
            yield key.rpartition(".")[0]


def _rename_keys(state: Mapping[str, Any], new: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in state.items():
        if isinstance(value, Mapping) and key not in _NOT_OF_PARAMETERS:
            value = _rename_keys(value, new)
        if isinstance(key, str):
            name, dot, slot = key.rpartition(".")
            key = new.get(key, f"{new.get(name, name)}{dot}{slot}")
        found[key] = value
    return found
