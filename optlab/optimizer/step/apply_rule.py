"""Application of a rule to arrays, operation by operation, with checks of its results."""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

import numpy as np

from optlab.backend.arrays import as_float, copied, readonly, unwrapped
from optlab.backend.errors import EnsembleError
from optlab.optimizer.rule.members import PerMember, each_member, gather_members
from optlab.optimizer.rule.namespaces import HyperParameters, Scalars, Slots
from optlab.optimizer.rule.protocols import UpdateRule
from optlab.optimizer.step.elementwise_check import verify_elementwise

_SCALAR_TYPES = (float, int, bool, PerMember)
_array = np.ndarray


def scalars_of(
    optimizer: UpdateRule, t: int, h: HyperParameters, place: tuple[Any, int] | None = None
) -> dict[str, Any]:
    """Return the scalars of step t as Python numbers, and the random key if the rule draws."""
    each = None
    if type(h) is HyperParameters and not isinstance(h.learning_rate, PerMember):
        scalars = optimizer.scalars(t, h)  # the usual case: no ensemble
    elif (together := _scalars_together(optimizer, t, h)) is not None:
        scalars = together
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
        scalars["key"] = optimizer.key.fold(*draw_place(optimizer, *place), t)
    return scalars


def _scalars_together(optimizer: UpdateRule, t: int, h: HyperParameters) -> Any:
    """Return the scalars of all members at once; None if they have to be computed one by one.

    A formula of sums, products, quotients and powers takes a setting with a value a member as it
    takes a float, and computes the same bits; 64 rates take 10 us in place of 200. One that calls
    a function of `math` or asks for a condition does not.
    """
    if not optimizer.built_in:
        return None
    try:
        return optimizer.scalars(t, h)
    except (EnsembleError, TypeError):
        return None


def draw_place(optimizer: UpdateRule, flat: Any, first: int) -> tuple[str, int]:
    """Return the name and the number by which draws for a parameter differ from others."""
    name = getattr(flat.parameters[first], "structural_name", None) or ""
    number = 0
    for group in optimizer.groups:
        own = any(one is flat for one in group.arenas)
        before = group.parameters[: flat.places[first]] if own else group.parameters
        # A name of its own is enough; two models may have the same names.
        number += sum(not name or getattr(p, "structural_name", None) == name for p in before)
        if own:
            break
    return name, number


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
    decay: Any = None,
) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """Return new parameter, new slots and terms, flat and in memory of their own.

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
        The shape in which the rule gets the arrays, in place of flat ones.
    place : tuple of FlatParameters and int
        Where the first of the parameters is stored.
    has_listeners : bool
        Whether the terms will be kept.
    decay : array, optional
        The decay, for a rule that has it apart from the gradient.

    Raises
    ------
    TypeError, ValueError
        If a result of the rule does not fit.
    """
    c = Scalars(**scalars_of(optimizer, t, h, place))
    narrow = p.dtype if p.dtype.itemsize < 4 else None
    if narrow is not None:  # computed in float32 and rounded once, as every operation is
        p, g = p.astype(np.float32), g.astype(np.float32)
    if decay is not None:
        decay = decay.astype(p.dtype, copy=False)
        c.decay = decay if shape is None else decay.reshape(shape)
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
    # An array that the rule returns unchanged is a view of the flat parameters or slots, which are
    # overwritten in later steps.
    if (new.base if new.__class__ is _array else _base(new)) is not None:
        new = new.copy()
    for name, array in made.items():
        plain = array.__class__ is _array
        if (array.base if plain else _base(array)) is not None or array is g:
            made[name] = array = array.copy()
        if plain:
            array.setflags(False)  # `readonly`, without its call
        else:
            readonly(array)
    if has_listeners:
        for name, term in terms.items():
            if (term.base if term.__class__ is _array else _base(term)) is not None:
                terms = terms | {name: copied(term)}
    return new, made, terms


def _shapes(p: Any, place: tuple[Any, int]) -> list[tuple[int, ...]]:
    """Return the shapes of the parameters that a flat array holds."""
    flat, first = place
    stop = flat.bounds[first] + p.size
    last = bisect_left(flat.bounds, stop, first)
    return [one.shape for one in flat.parameters[first:last]]


def _explain_array_error(name: str, error: Exception) -> None:
    """Add a note to the error of a rule that treats arrays as single numbers."""
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
    """Return the array that this one is a view of, or None."""
    return getattr(unwrapped(array), "base", None)  # a term may be a number


def check_result(
    optimizer: UpdateRule, p: Any, slots: dict[str, Any], result: Any
) -> tuple[Any, ...]:
    """Return the three results of a rule; raise if one does not fit, before anything is written."""
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
    """Return the error for results of a rule that do not fit."""
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
