"""Which parameter of a bound optimizer each leaf of a functional step is.

Leaves of lists and tuples go by their place, those of dicts by name: groups and settings belong to
parameters, and a wrong match would train with those of another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from optlab.nn.clip import ClipGradByGlobalNorm, ClipGradByNorm, ClipGradByValue
from optlab.optimizer.params.groups import parameter_names
from optlab.optimizer.params.labels import names_of
from optlab.optimizer.step.functional import Leaves

#: The number of a group, the group, flat parameters, and the number of a parameter in these.
Place = tuple[int, Any, Any, int]

_MOST_LISTED = 8
#: Clips that do the same to each parameter, whatever it is called.
_BLIND = (type(None), ClipGradByValue, ClipGradByNorm, ClipGradByGlobalNorm)


def correspondence(optimizer: Any, leaves: Leaves) -> tuple[list[Place], bool]:
    """Return the parameter of each leaf, and whether keys that name none were passed over.

    Then they are in the order of the optimizer's, and `refuse_unknown_keys` must be asked.
    """
    places = {
        id(p): (number, group, flat, k)
        for number, group in enumerate(optimizer.groups)
        for flat in group.arenas
        for k, p in enumerate(flat.parameters)
    }
    names = parameter_names(optimizer.groups)
    by_key = any(leaves.labels)
    found = _by_name(optimizer, names, leaves.labels) if by_key else None
    if found is None and len(leaves.parts) != len(names):
        raise ValueError(
            f"this {type(optimizer).__name__} was made for {len(names)} parameters "
            f"({_listed(optimizer)}), but {len(leaves.parts)} were given. Give all of them in "
            "their order, or a dict by these names; or use a template, made without parameters."
        )
    chosen = [places[p] for p in (names if found is None else found)]
    for i, (part, (_, _, flat, k)) in enumerate(zip(leaves.parts, chosen, strict=True)):
        wanted = flat.parameters[k].shape
        if part.shape != wanted:
            raise ValueError(
                f"{leaves.label(i)} has shape {part.shape}; the parameter of the optimizer in its "
                f"place, {names[id(flat.parameters[k])]}, has {wanted}. Give them in the order of "
                f"the optimizer's parameters, or a dict by their names: {_listed(optimizer)}."
            )
    return chosen, by_key and found is None


def _by_name(optimizer: Any, names: dict[int, str], labels: Sequence[str]) -> list[int] | None:
    """Return the parameters (by identity) with these names; None unless each is that of just one.

    A name is that of states, or the parameter's own, such as ``"linear_0.w_0"``.
    """
    if len(set(labels)) != len(labels):
        return None
    in_states = {name: p for p, name in names.items()}
    if in_states.keys() == set(labels):
        return [in_states[label] for label in labels]
    owners: dict[str, set[int]] = {}
    for group in optimizer.groups:
        for p in group.parameters:
            for name in {names[id(p)], *names_of(p)}:
                owners.setdefault(name, set()).add(id(p))
    found = [owners.get(label, set()) for label in labels]
    if any(len(one) != 1 for one in found):
        return None
    chosen = [next(iter(one)) for one in found]
    return chosen if len(set(chosen)) == len(chosen) else None


def refuse_unknown_keys(
    optimizer: Any, leaves: Leaves, settings: Sequence[Any], clips: Sequence[Any]
) -> None:
    """Raise for keys that name no parameter, unless all parameters are updated alike.

    Parameters
    ----------
    optimizer, leaves
    settings
        What each leaf is updated with, comparable.
    clips
        The clip of each group.

    Raises
    ------
    ValueError
        If it makes a difference which parameter is which.
    """
    alike = all(one == settings[0] for one in settings)
    if alike and len(clips) == 1 and type(clips[0]) in _BLIND and not optimizer.draws:
        return
    known = {name for g in optimizer.groups for p in g.parameters for name in names_of(p)}
    known |= set(parameter_names(optimizer.groups).values())
    unknown = [label for label in leaves.labels if label not in known]
    which = f"{unknown[0]!r} is none" if unknown else "more than one have these"
    raise ValueError(
        f"the keys of the parameters do not tell which parameter of this {type(optimizer).__name__}"
        f" each is, and its parameters are not all updated alike: {which} of the names that it "
        f"knows, {_listed(optimizer)}. Give a dict by these names, or a list in this order. "
        "(Parameters are named by the model or layer whose parameters() is called first: call "
        "model.parameters() before that of its layers.)"
    )


def _listed(optimizer: Any) -> str:
    """Return the names of the parameters, for messages."""
    names = parameter_names(optimizer.groups)
    listed = []
    for p in [p for group in optimizer.groups for p in group.parameters][:_MOST_LISTED]:
        own = next(names_of(p), None)
        name = names[id(p)]
        listed.append(name if own in (None, name) else f"{name} ({own})")
    more = len(names) - len(listed)
    return ", ".join(listed) + (f" and {more} more" if more else "")
