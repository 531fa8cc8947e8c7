"""Applying a rule to arrays, as it is written, and checking what it gives back."""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

import numpy as np

from optlab.backend.arrays import as_float, copied, readonly, unwrapped
from optlab.optimizer.rule.members import PerMember, each_member, gather_members
from optlab.optimizer.rule.namespaces import HyperParameters, Scalars, Slots
from optlab.optimizer.rule.protocols import UpdateRule
from optlab.optimizer.step.elementwise_check import verify_elementwise

_SCALAR_TYPES = (float, int, bool, PerMember)
_array = np.ndarray


def scalars_of(
    optimizer: UpdateRule, t: int, h: HyperParameters, place: tuple[Any, int] | None = None
) -> dict[str, Any]:
    """Give the scalars of step t, floats as Python floats, and the random key if the rule draws."""
    each = None
    if type(h) is HyperParameters and not isinstance(h.learning_rate, PerMember):
        scalars = optimizer.scalars(t, h)  # the usual case: one run
    else:
        each = [optimizer.scalars(t, one) for one in each_member(h)]
        scalars = each[0]
    if type(scalars) is not dict:
        raise TypeError(
            f"{type(optimizer).__name__}.scalars(t, h) must return a dict of names and numbers; it "
            f"returned a {type(scalars).__name__}."
        )
    if each is not None:
        scalars = gather_members(each)
    for name, scalar in scalars.items():
        if type(scalar) not in _SCALAR_TYPES:
            # A NumPy number would widen float32 parameters.
            scalars[name] = as_float(scalar, f"{name}, of {type(optimizer).__name__}.scalars(),")
    if optimizer.draws and place is not None and optimizer.key is not None:
        arena, first = place
        name = getattr(arena.parameters[first], "name", None) or ""
        number = 0
        if not name:
            number = arena.places[first]
            for group in optimizer.groups:
                if any(one is arena for one in group.arenas):
                    break
                number += len(group.parameters)
        scalars["key"] = optimizer.key.fold(name, number, t)
    return scalars


def apply_rule(
    optimizer: UpdateRule,
    p: Any,
    g: Any,
    slots: dict[str, Any],
    h: HyperParameters,
    t: int,
    shape: tuple[int, ...] | None,
    place: tuple[Any, int],
    has_listeners: bool,
) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """Give new parameter, new slots and terms, flat, in memory of their own.

    Parameters
    ----------
    optimizer
        The rule.
    p, g : array
        Flat parameter and gradient.
    slots : dict of str to array
    h : HyperParameters
    t : int
        The number of this step, from 1.
    shape : tuple of int, optional
        What the rule is to see in place of flat arrays.
    place : tuple of FlatParameters and int
        Which parameter it is.
    has_listeners : bool
        Whether the terms will be kept.

    Raises
    ------
    TypeError, ValueError
        If what the rule gives back does not fit.
    """
    c = Scalars(**scalars_of(optimizer, t, h, place))
    narrow = p.dtype if p.dtype.itemsize < 4 else None
    if narrow is not None:  # computed in float32 and rounded once, like every operation
        p, g = p.astype(np.float32), g.astype(np.float32)
    if shape is not None:
        p, g = p.reshape(shape), g.reshape(shape)
        slots = {name: array.reshape(shape) for name, array in slots.items()}
    try:
        if optimizer.elementwise_verified:
            result = optimizer.update(p, g, Slots(**slots), h, c)
        else:
            result = verify_elementwise(
                optimizer, p, g, slots, h, c, check_result, _shapes(p, place)
            )
    except (TypeError, ValueError) as error:
        if "read-only" not in str(error):
            _explain_array_error(f"{type(optimizer).__name__}.update", error)
            raise
        raise TypeError(
            f"{type(optimizer).__name__}.update writes into its arguments; they are the engine's. "
            "Write m = m + g in place of m += g, and give what is new back."
        ) from error
    new, made, terms = check_result(optimizer, p, slots, result)
    if shape is not None:
        g, new = g.reshape(-1), new.reshape(-1)
        made = {name: array.reshape(-1) for name, array in made.items()}
        terms = {
            name: np.reshape(array, -1) if np.shape(array) == shape else array
            for name, array in terms.items()
        }
    if narrow is not None:
        new = new.astype(narrow)
    # What the rule handed back unchanged is still the arena's own memory, which will be written to.
    if (new.base if new.__class__ is _array else _base(new)) is not None:
        new = new.copy()
    for name, array in made.items():
        plain = array.__class__ is _array
        if (array.base if plain else _base(array)) is not None or array is g:
            made[name] = array = array.copy()
        if plain:
            array.setflags(False)  # as `readonly` does
        else:
            readonly(array)
    if has_listeners:
        for name, term in terms.items():
            if (term.base if term.__class__ is _array else _base(term)) is not None:
                terms = terms | {name: copied(term)}
    return new, made, terms


def _shapes(p: Any, place: tuple[Any, int]) -> list[tuple[int, ...]]:
    """Give the shapes of the parameters that lie side by side in a flat array."""
    arena, first = place
    stop = arena.bounds[first] + p.size
    last = bisect_left(arena.bounds, stop, first)
    return [one.shape for one in arena.parameters[first:last]]


def _explain_array_error(name: str, error: Exception) -> None:
    """Say what NumPy's words mean for a rule that treats arrays as single numbers."""
    said = str(error)
    if "truth value" in said:
        error.add_note(
            f"In {name} the parameter, gradient and slots are arrays, for which `if`, `and`, `max` "
            "have no one answer. Write np.where(g > 0, a, b) in place of `a if g > 0 else b`, and "
            "np.maximum(a, b) in place of max(a, b)."
        )
    elif isinstance(error, TypeError) and "converted to" in said and "scalar" in said:
        error.add_note(
            f"In {name} the parameter, gradient and slots are arrays; the functions of math take "
            "one number. Write np.sqrt(g) in place of math.sqrt(g)."
        )


def _base(array: Any) -> Any:
    """Give the array whose memory this one looks into, if it does."""
    return getattr(unwrapped(array), "base", None)  # a term may be a number


def check_result(
    optimizer: UpdateRule, p: Any, slots: dict[str, Any], result: Any
) -> tuple[Any, ...]:
    """Give what a rule returned, or say what is wrong with it before it is written anywhere."""
    try:
        new, made, terms = result if len(result) == 3 else (*result, {})
        if made.keys() == slots.keys() and isinstance(terms, dict):
            shape, dtype = p.shape, p.dtype
            if new.shape == shape and new.dtype == dtype:
                for array in made.values():
                    if array.shape != shape or array.dtype != dtype:
                        break
                else:
                    return new, made, terms
    except (TypeError, ValueError, AttributeError):
        pass
    raise _result_error(f"{type(optimizer).__name__}.update", p, slots, result)


def _result_error(name: str, p: Any, slots: dict[str, Any], result: Any) -> Exception:
    """Say what is wrong with what a rule returned."""
    if not (
        isinstance(result, tuple)
        and len(result) in (2, 3)
        and all(isinstance(part, dict) for part in result[1:])
    ):
        kind = type(result).__name__
        many = f" of {len(result)}" if isinstance(result, tuple) else ""
        return TypeError(
            f"{name} must return (parameter, slots) or (parameter, slots, terms), slots and terms "
            f"as dicts; it returned a {kind}{many}."
        )
    new, made = result[:2]
    if made.keys() != slots.keys():
        return ValueError(
            f"{name} returned slots {sorted(made)}, but the class declares {sorted(slots)}. "
            "Return every slot, also one that did not change."
        )
    for label, array in {"parameter": new, **made}.items():
        if not hasattr(array, "dtype"):
            return TypeError(f"{name} returned the {label} as {array!r}, which is not an array.")
        if array.shape != p.shape:
            return ValueError(
                f"{name} returned the {label} with shape {array.shape} in place of {p.shape}. "
                "If the rule needs a parameter's own shape, set kind = 'tensor' in the class."
            )
        if array.dtype != p.dtype:
            break
    return TypeError(
        f"{name} returned the {label} as {array.dtype} for parameters of {p.dtype}: a NumPy number "
        "or array of another dtype entered the rule. Use Python floats for constants."
    )
