"""Verification that a user's rule of kind "elementwise" is elementwise, at its first application.

All parameters of an elementwise rule are stored in one array, so a norm or a mean would be taken
over all of them, and the result would depend on the other parameters. At its first application a
rule gets traced arrays, which compute the same bits and record what they were computed with. The
rule is called once, as always. If it uses more than elements (a shape, an unknown function, a plain
array made of a traced one), a copy of the optimizer takes the step again, for parts of the arrays
and for parameters in their own shapes, and all results must agree.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, starmap
from typing import Any

import numpy as np

from optlab.optimizer.rule.namespaces import HyperParameters, Scalars, Slots
from optlab.optimizer.rule.protocols import UpdateRule

#: The most parameters whose update is computed separately.
_MOST_PARTS = 4
#: Functions that compute an element of the result from several elements.
_ACROSS_ELEMENTS = {
    "all", "amax", "amin", "any", "argmax", "argmin", "argsort", "average", "corrcoef",
    "count_nonzero", "cov", "cumprod", "cumsum", "diff", "dot", "einsum", "gradient", "inner",
    "max", "mean", "median", "min", "nanmax", "nanmean", "nanmedian", "nanmin", "nanstd", "nansum",
    "nanvar", "norm", "partition", "percentile", "prod", "ptp", "quantile", "roll", "sort", "std",
    "sum", "tensordot", "vdot", "vecdot", "vector_norm", "var",
}  # fmt: skip


#: Functions that are elementwise, or that use no elements.
_BY_ELEMENT = {
    "angle", "around", "astype", "clip", "copy", "copyto", "empty_like", "fix", "full_like",
    "heaviside", "i0", "imag", "iscomplexobj", "isclose", "isneginf", "isposinf", "isreal",
    "nan_to_num", "ones_like", "real", "real_if_close", "result_type", "round", "select", "sinc",
    "where", "zeros_like",
}  # fmt: skip


class TracedArray(np.ndarray):
    """An array that records with which function of a whole array it was computed, if any."""

    reduction: str
    log: list[str]

    def __array_finalize__(self, origin: Any) -> None:
        self.reduction = getattr(origin, "reduction", "")
        self.log = getattr(origin, "log", [])

    def _trace(self, value: Any, reduction: str) -> Any:
        """Return a result as a traced array."""
        if isinstance(value, (tuple, list)):
            return type(value)(self._trace(one, reduction) for one in value)
        if not isinstance(value, (np.ndarray, np.generic)):
            return value
        made = np.asarray(value).view(TracedArray)
        made.reduction, made.log = reduction, self.log
        return made

    def __array_ufunc__(
        self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **kwargs: Any
    ) -> Any:
        reduces = method in ("reduce", "accumulate", "reduceat") or ufunc.signature is not None
        reduction = _reduction_in((inputs, kwargs)) or (
            f"np.{_NAMES_OF_REDUCTIONS.get(ufunc, ufunc.__name__)}" * reduces
        )
        if any(
            isinstance(x, (np.ndarray, np.generic)) and type(x) is not TracedArray for x in inputs
        ):
            self.log.append("np.asarray()")
        if out is not None:
            kwargs["out"] = untraced(out)
        result = getattr(ufunc, method)(*untraced(inputs), **untraced(kwargs))
        if out is None:
            return self._trace(result, reduction)
        for one in out:
            if isinstance(one, TracedArray):
                one.reduction = one.reduction or reduction
        return out[0] if len(out) == 1 else out

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        reduction = _reduction_in((args, kwargs))
        name = getattr(function, "__name__", "")
        of_linalg = getattr(np.linalg, name, None) is function
        if not reduction and (name in _ACROSS_ELEMENTS or of_linalg):
            reduction = f"np.{'linalg.' * of_linalg}{name}"
        elif name not in _BY_ELEMENT:
            self.log.append(f"np.{name}")
        return self._trace(function(*untraced(args), **untraced(kwargs)), reduction)

    def dot(self, other: Any, out: Any = None) -> Any:
        """Return ``np.dot``, which is traced."""
        return np.dot(self, other)

    def mean(self, *args: Any, **kwargs: Any) -> Any:
        """Return ``np.mean``, which is traced by name."""
        return np.mean(self, *args, **kwargs)

    def std(self, *args: Any, **kwargs: Any) -> Any:
        """Return ``np.std``, which is traced by name."""
        return np.std(self, *args, **kwargs)

    def var(self, *args: Any, **kwargs: Any) -> Any:
        """Return ``np.var``, which is traced by name."""
        return np.var(self, *args, **kwargs)

    def __len__(self) -> int:
        self.log.append("len()")
        return int(np.ndarray.__len__(self))

    @property  # type: ignore[misc]
    def shape(self) -> Any:
        """The shape, which is not that of one parameter."""
        self.log.append(".shape")
        return untraced(self).shape

    @property
    def ndim(self) -> int:
        """The number of axes, which is not that of one parameter."""
        self.log.append(".ndim")
        return int(untraced(self).ndim)

    @property
    def size(self) -> int:
        """The number of elements, which is that of all parameters."""
        self.log.append(".size")
        return int(untraced(self).size)

    def __getitem__(self, index: Any) -> Any:
        if getattr(index, "dtype", None) != np.bool_:
            self.log.append("[...]")
        return self._trace(untraced(self)[untraced(index)], self.reduction or _reduction_in(index))

    def __setitem__(self, index: Any, value: Any) -> None:
        self.reduction = self.reduction or _reduction_in((index, value))
        super().__setitem__(untraced(index), untraced(value))

    def _untraced_value(self) -> Any:
        """Return the plain array, and log that values become Python numbers."""
        self.log.append(self.reduction or ".tolist() or float()")
        return self.view(np.ndarray)

    def __float__(self) -> float:
        return float(self._untraced_value())

    def __int__(self) -> int:
        return int(self._untraced_value())

    def __bool__(self) -> bool:
        return bool(self._untraced_value())

    def item(self, *place: Any) -> Any:
        """Return an element as a Python number."""
        return self._untraced_value().item(*place)

    def tolist(self) -> Any:
        """Return the elements as Python numbers."""
        return self._untraced_value().tolist()


_NAMES_OF_REDUCTIONS = {
    np.add: "sum", np.multiply: "prod", np.maximum: "max", np.minimum: "min",
    np.logical_and: "all", np.logical_or: "any",
}  # fmt: skip


def untraced(value: Any) -> Any:
    """Return arrays, also in tuples, lists and dicts, without tracing."""
    if isinstance(value, TracedArray):
        return value.view(np.ndarray)
    if isinstance(value, (tuple, list)):
        return type(value)(untraced(one) for one in value)
    if isinstance(value, dict):
        return {name: untraced(one) for name, one in value.items()}
    return value


def _reduction_in(value: Any) -> str:
    """Return the function of a whole array that something was computed with, or an empty text."""
    if isinstance(value, TracedArray):
        return value.reduction
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return next((found for one in value if (found := _reduction_in(one))), "")
    return ""


def _all_traced(value: Any) -> bool:
    """Return whether all arrays in something are traced."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return all(map(_all_traced, value))
    return isinstance(value, TracedArray) or not isinstance(value, (np.ndarray, np.generic))


def verify_elementwise(
    optimizer: UpdateRule,
    p: Any,
    g: Any,
    slots: dict[str, Any],
    h: HyperParameters,
    c: Scalars,
    check: Callable[..., Any],
    shapes: Sequence[tuple[int, ...]],
) -> Any:
    """Apply a rule for the first time, and verify that it is elementwise if its kind is.

    `check` raises for other faults of the result; `shapes` are those of the parameters that the
    arrays hold.

    Raises
    ------
    ValueError
        If it is not elementwise. Nothing has changed then.
    """
    if optimizer.kind != "elementwise" or type(p) is not np.ndarray:
        optimizer.elementwise_verified = True
        return optimizer.update(p, g, Slots(**slots), h, c)
    log: list[str] = []

    def traced(array: Any) -> Any:
        view = array.view(TracedArray)
        view.log = log
        return view

    traced_slots = {name: traced(array) for name, array in slots.items()}
    try:
        result = optimizer.update(traced(p), traced(g), Slots(**traced_slots), h, c)
    except Exception:  # noqa: BLE001  # a function that it calls may take plain arrays only
        result = optimizer.update(p, g, Slots(**slots), h, c)
        log[:] = ["a number"]
    # Terms are only displayed, so they may depend on the whole array.
    reduction = _reduction_in(result[:2]) if isinstance(result, tuple) else ""
    if not reduction and isinstance(result, tuple) and not _all_traced(result[:2]):
        log.append("np.asarray()")
    result = untraced(result)
    if not reduction and log and _differs(optimizer, p, g, slots, h, c, result, shapes):
        reduction = log[0]
    if reduction:
        check(optimizer, p, slots, result)
        name = type(optimizer).__name__
        raise ValueError(
            f"{name} is of kind 'elementwise' (which is the default), but {name}.update computes "
            f"with {reduction} of a whole array. All parameters of an elementwise rule lie side by "
            "side in one array, so that would be the one of all parameters together. Write "
            "kind = 'tensor' in the class: the rule is then given one parameter at a time. "
            "Nothing was changed."
        )
    optimizer.elementwise_verified = True
    return result


def _one_of_each_rank(shapes: Sequence[tuple[int, ...]]) -> Iterator[tuple[slice, tuple[int, ...]]]:
    """Yield the location and shape of the first parameter of each number of axes."""
    start, seen = 0, set()
    for shape in shapes:
        stop = start + math.prod(shape)
        if len(shape) not in seen and stop > start:
            seen.add(len(shape))
            yield slice(start, stop), shape
        start = stop


def _differs(
    optimizer: UpdateRule,
    p: Any,
    g: Any,
    slots: dict[str, Any],
    h: HyperParameters,
    c: Scalars,
    result: Any,
    shapes: Sequence[tuple[int, ...]],
) -> bool:
    """Return whether a rule gives other numbers for parts of the arrays than for all together."""
    twin = copy.copy(optimizer)

    def arrays_of(result: Any) -> list[Any]:
        new, made = result[:2]
        return [np.asarray(new), *(np.asarray(made[name]) for name in slots)]

    def same(part: slice, shape: tuple[int, ...] = (-1,)) -> bool:
        given = {name: array[part].reshape(shape) for name, array in slots.items()}
        few = p[part].reshape(shape), g[part].reshape(shape)
        found = arrays_of(twin.update(*few, Slots(**given), h, c))
        return all(
            np.array_equal(np.ravel(a), b[part], equal_nan=True)
            for a, b in zip(found, together, strict=True)
        )

    half = len(p) // 2
    try:
        with np.errstate(all="ignore"):
            together = arrays_of(result)
            if not half or not same(slice(None)):
                return False  # it differs from call to call
            own = islice(_one_of_each_rank(shapes), _MOST_PARTS)
            return not (same(slice(half)) and same(slice(half, None)) and all(starmap(same, own)))
    except Exception:  # noqa: BLE001  # `check` reports what is wrong with the whole
        return False
