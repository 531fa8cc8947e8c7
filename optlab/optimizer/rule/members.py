"""Hyper-parameters with one value per member of an ensemble, such as a hundred learning rates."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from optlab.autograd.tensor.tensor import raw
from optlab.backend.ensemble import EnsembleArray, EnsembleError
from optlab.optimizer.rule.namespaces import HyperParameters


class PerMember:
    """Python floats, one per member, that behave as one float does in an update rule.

    Among themselves and with numbers they are computed in float64, as single settings are; with an
    array they take its dtype. So the results of every member are those of its own run, to the bit.

    Examples
    --------
    >>> rates = PerMember([0.1, 0.2])
    >>> (1 - rates**2).values
    [0.99, 0.96]
    >>> (rates * EnsembleArray(np.ones((2, 3), np.float32))).dtype
    dtype('float32')
    """

    __slots__ = ("level", "values")

    def __init__(self, values: Sequence[float], level: int = 0) -> None:
        self.values = [float(value) for value in values]
        self.level = level

    def __len__(self) -> int:
        return len(self.values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PerMember) and other.values == self.values

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        low, high = min(self.values), max(self.values)
        return f"<{len(self)} values from {low:g} to {high:g}>"

    def map(self, f: Callable[[float], Any]) -> PerMember:
        """Return f of each value."""
        return PerMember([f(value) for value in self.values], self.level)

    def beside(self, array: Any) -> EnsembleArray:
        """Return the values as an ensemble of numbers in the dtype of `array`."""
        if not isinstance(array, EnsembleArray):
            raise EnsembleError(
                f"a setting with {len(self)} values, one a member, needs parameters that are "
                "ensembles: ol.Parameter(ol.ensemble(array)), its first axis counting the members."
            )
        like = array.members
        values = np.asarray(self.values, dtype=like.dtype, like=like)
        return EnsembleArray(values, array.level)

    def _refuse_choice(self, *_: Any) -> Any:
        raise EnsembleError(
            f"a choice by a setting that has {len(self)} values, one a member: the members of an "
            "ensemble go through the same operations. Run those that differ apart."
        )

    __bool__ = __float__ = __int__ = __index__ = _refuse_choice
    __lt__ = __le__ = __gt__ = __ge__ = _refuse_choice

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        array = next((x for x in inputs if not isinstance(x, (PerMember, int, float))), None)
        if array is None:
            self._refuse_choice()
        given = [x.beside(array) if isinstance(x, PerMember) else x for x in inputs]
        return getattr(ufunc, method)(*given, **kwargs)

    def __neg__(self) -> PerMember:
        return self.map(operator.neg)


#: A multiplier of 1, which most groups and parameters have, changes no bit.
_UNCHANGED_BY_ONE = (np.multiply, np.divide)


def _binary(compute: Any, ufunc: Any) -> Any:
    def apply(self: PerMember, one: Any, other: Any) -> Any:
        if all(isinstance(x, (PerMember, int, float)) for x in (one, other)):
            columns = [
                x.values if isinstance(x, PerMember) else [x] * len(self) for x in (one, other)
            ]
            return PerMember([compute(a, b) for a, b in zip(*columns, strict=True)], self.level)
        return self.__array_ufunc__(ufunc, "__call__", one, other)

    def forward(self: PerMember, other: Any) -> Any:
        if type(other) is float and other == 1.0 and ufunc in _UNCHANGED_BY_ONE:
            return self
        return apply(self, self, other)

    def backward(self: PerMember, other: Any) -> Any:
        return apply(self, other, self)

    return forward, backward


for _name, _ufunc in {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.divide, "pow": np.power,
}.items():  # fmt: skip
    _forward, _backward = _binary(getattr(operator, _name), _ufunc)
    setattr(PerMember, f"__{_name}__", _forward)
    setattr(PerMember, f"__r{_name}__", _backward)


def read_members(value: Any) -> PerMember | None:
    """Return the values of an ensemble of numbers (or a Tensor of one); None for anything else."""
    array = raw(value)
    if isinstance(array, PerMember):
        return array
    if not isinstance(array, EnsembleArray) or array.size != 1 or array.members.ndim < 1:
        return None
    if isinstance(array.members, EnsembleArray):
        return None
    return PerMember(array.members.reshape(-1).tolist(), array.level)


def each_member(h: HyperParameters) -> list[HyperParameters]:
    """Return the settings of each member, or of a single run the settings themselves.

    Raises
    ------
    ValueError
        If two settings have different numbers of values.
    """
    if PerMember not in map(type, vars(h).values()):
        return [h]
    spread = {name: x for name, x in vars(h).items() if isinstance(x, PerMember)}
    counts = {name: len(x) for name, x in spread.items()}
    if len(set(counts.values())) > 1:
        found = ", ".join(f"{name} has {n}" for name, n in counts.items())
        raise ValueError(f"settings with one value a member must have equally many: {found}.")
    return [
        HyperParameters(**vars(h) | {name: x.values[k] for name, x in spread.items()})
        for k in range(next(iter(counts.values())))
    ]


def gather_members(each: list[dict[str, Any]], level: int = 0) -> dict[str, Any]:
    """Return scalars that were computed member by member as one dict.

    Raises
    ------
    EnsembleError
        If members differ in something that is no float, so that their rules would branch apart.
    """
    if len(each) == 1:
        return each[0]
    found: dict[str, Any] = {}
    for name, first in each[0].items():
        values = [scalars[name] for scalars in each]
        if all(type(value) is type(first) and value == first for value in values):
            found[name] = first
        elif all(isinstance(value, (float, np.floating)) for value in values):
            found[name] = PerMember(values, level)
        else:
            raise EnsembleError(
                f"{name} differs between the members of an ensemble, so that the rule would take "
                "other paths for some of them. Run these apart."
            )
    return found
