"""Whether a rule that says it is elementwise is: its first application is watched.

All parameters of an elementwise rule lie side by side in one array, so a norm or a mean would be
that of all of them, and other numbers would come out with other parameters beside. The first time
that a rule of one's own is applied it is handed arrays that remember what they were computed from;
they compute the same bits. The rule is called once, as always. Where it asks for more than
elements (a shape, an unknown function, a plain array made of one), a copy of the optimizer takes
the step again, for parts of the arrays and for parameters in their own shapes, and all must come to
the same.
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

#: So many parameters are asked for by themselves.
_MOST_PARTS = 4
#: Functions whose result for one element depends on others.
_ACROSS_ELEMENTS = {
    "all", "amax", "amin", "any", "argmax", "argmin", "argsort", "average", "corrcoef",
    "count_nonzero", "cov", "cumprod", "cumsum", "diff", "dot", "einsum", "gradient", "inner",
    "max", "mean", "median", "min", "nanmax", "nanmean", "nanmedian", "nanmin", "nanstd", "nansum",
    "nanvar", "norm", "partition", "percentile", "prod", "ptp", "quantile", "roll", "sort", "std",
    "sum", "tensordot", "vdot", "vecdot", "vector_norm", "var",
}  # fmt: skip


#: Functions whose result for one element is of that element, or is asked for no elements.
_BY_ELEMENT = {
    "angle", "around", "astype", "clip", "copy", "copyto", "empty_like", "fix", "full_like",
    "heaviside", "i0", "imag", "iscomplexobj", "isclose", "isneginf", "isposinf", "isreal",
    "nan_to_num", "ones_like", "real", "real_if_close", "result_type", "round", "select", "sinc",
    "where", "zeros_like",
}  # fmt: skip


class TracedArray(np.ndarray):
    """An array that remembers which function of a whole array it was computed with, if any."""

    reduction: str
    log: list[str]

    def __array_finalize__(self, origin: Any) -> None:
        self.reduction = getattr(origin, "reduction", "")
        self.log = getattr(origin, "log", [])

    def _trace(self, value: Any, whole: str) -> Any:
        """Give what was computed as an array that remembers it."""
        if isinstance(value, (tuple, list)):
            return type(value)(self._trace(one, whole) for one in value)
        if not isinstance(value, (np.ndarray, np.generic)):
            return value
        made = np.asarray(value).view(TracedArray)
        made.reduction, made.log = whole, self.log
        return made

    def __array_ufunc__(
        self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **kwargs: Any
    ) -> Any:
        own = method in ("reduce", "accumulate", "reduceat") or ufunc.signature is not None
        whole = _reduction_in((inputs, kwargs)) or (
            f"np.{_NAMES_OF_REDUCTIONS.get(ufunc, ufunc.__name__)}" * own
        )
        if any(
            isinstance(x, (np.ndarray, np.generic)) and type(x) is not TracedArray for x in inputs
        ):
            self.log.append("np.asarray()")
        if out is not None:
            kwargs["out"] = untraced(out)
        result = getattr(ufunc, method)(*untraced(inputs), **untraced(kwargs))
        if out is None:
            return self._trace(result, whole)
        for one in out:
            if isinstance(one, TracedArray):
                one.reduction = one.reduction or whole
        return out[0] if len(out) == 1 else out

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        whole = _reduction_in((args, kwargs))
        name = getattr(function, "__name__", "")
        of_linalg = getattr(np.linalg, name, None) is function
        if not whole and (name in _ACROSS_ELEMENTS or of_linalg):
            whole = f"np.{'linalg.' * of_linalg}{name}"
        elif name not in _BY_ELEMENT:
            self.log.append(f"np.{name}")
        return self._trace(function(*untraced(args), **untraced(kwargs)), whole)

    def dot(self, other: Any, out: Any = None) -> Any:
        """Give ``np.dot``, which remembers."""
        return np.dot(self, other)

    def mean(self, *args: Any, **kwargs: Any) -> Any:
        """Give ``np.mean``, which has a name."""
        return np.mean(self, *args, **kwargs)

    def std(self, *args: Any, **kwargs: Any) -> Any:
        """Give ``np.std``, which has a name."""
        return np.std(self, *args, **kwargs)

    def var(self, *args: Any, **kwargs: Any) -> Any:
        """Give ``np.var``, which has a name."""
        return np.var(self, *args, **kwargs)

    def __len__(self) -> int:
        self.log.append("len()")
        return int(np.ndarray.__len__(self))

    @property  # type: ignore[misc]
    def shape(self) -> Any:
        """The lengths of the axes, which are not those of one parameter."""
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
        """Give the plain array, and note that a value leaves for Python."""
        self.log.append(self.reduction or ".tolist() or float()")
        return self.view(np.ndarray)

    def __float__(self) -> float:
        return float(self._untraced_value())

    def __int__(self) -> int:
        return int(self._untraced_value())

    def __bool__(self) -> bool:
        return bool(self._untraced_value())

    def item(self, *place: Any) -> Any:
        """Give an element as a Python number."""
        return self._untraced_value().item(*place)

    def tolist(self) -> Any:
        """Give the elements as Python numbers."""
        return self._untraced_value().tolist()


_NAMES_OF_REDUCTIONS = {
    np.add: "sum", np.multiply: "prod", np.maximum: "max", np.minimum: "min",
    np.logical_and: "all", np.logical_or: "any",
}  # fmt: skip


def untraced(value: Any) -> Any:
    """Give what arrays, tuples, lists and dicts are without watching."""
    if isinstance(value, TracedArray):
        return value.view(np.ndarray)
    if isinstance(value, (tuple, list)):
        return type(value)(untraced(one) for one in value)
    if isinstance(value, dict):
        return {name: untraced(one) for name, one in value.items()}
    return value


def _reduction_in(value: Any) -> str:
    """Give which function of a whole array something was computed with, or nothing."""
    if isinstance(value, TracedArray):
        return value.reduction
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return next((found for one in value if (found := _reduction_in(one))), "")
    return ""


def _all_traced(value: Any) -> bool:
    """Say whether all arrays in something are watched."""
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
    """Apply a rule for the first time, and see to it that it is elementwise if it says so.

    `check` says what else is wrong with what it gives; `shapes` are those of the parameters that
    lie side by side in the arrays.

    Raises
    ------
    ValueError
        If it is not. Nothing has changed then.
    """
    if optimizer.kind != "elementwise" or type(p) is not np.ndarray:
        optimizer.elementwise_verified = True
        return optimizer.update(p, g, Slots(**slots), h, c)
    log: list[str] = []

    def watch(array: Any) -> Any:
        seen = array.view(TracedArray)
        seen.log = log
        return seen

    seen = {name: watch(array) for name, array in slots.items()}
    try:
        result = optimizer.update(watch(p), watch(g), Slots(**seen), h, c)
    except Exception:  # noqa: BLE001  # what it calls may take plain arrays only
        result = optimizer.update(p, g, Slots(**slots), h, c)
        log[:] = ["a number"]
    # Terms are only looked at, so they may be of the whole.
    whole = _reduction_in(result[:2]) if isinstance(result, tuple) else ""
    if not whole and isinstance(result, tuple) and not _all_traced(result[:2]):
        log.append("np.asarray()")
    result = untraced(result)
    if not whole and log and _differs(optimizer, p, g, slots, h, c, result, shapes):
        whole = log[0]
    if whole:
        check(optimizer, p, slots, result)
        name = type(optimizer).__name__
        raise ValueError(
            f"{name} is of kind 'elementwise' (which is the default), but {name}.update computes "
            f"with {whole} of a whole array. All parameters of an elementwise rule lie side by "
            "side in one array, so that would be the one of all parameters together. Write "
            "kind = 'tensor' in the class: the rule is then given one parameter at a time. "
            "Nothing was changed."
        )
    optimizer.elementwise_verified = True
    return result


def _one_of_each_rank(shapes: Sequence[tuple[int, ...]]) -> Iterator[tuple[slice, tuple[int, ...]]]:
    """Give where the first parameter of each number of axes lies, and its shape."""
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
    """Say whether parts of the arrays by themselves give other numbers than all together."""
    twin = copy.copy(optimizer)

    def taken(result: Any) -> list[Any]:
        new, made = result[:2]
        return [np.asarray(new), *(np.asarray(made[name]) for name in slots)]

    def same(part: slice, shape: tuple[int, ...] = (-1,)) -> bool:
        given = {name: array[part].reshape(shape) for name, array in slots.items()}
        few = p[part].reshape(shape), g[part].reshape(shape)
        found = taken(twin.update(*few, Slots(**given), h, c))
        return all(
            np.array_equal(np.ravel(a), b[part], equal_nan=True)
            for a, b in zip(found, whole, strict=True)
        )

    half = len(p) // 2
    try:
        with np.errstate(all="ignore"):
            whole = taken(result)
            if not half or not same(slice(None)):
                return False  # it does something else every time
            own = islice(_one_of_each_rank(shapes), _MOST_PARTS)
            return not (same(slice(half)) and same(slice(half, None)) and all(starmap(same, own)))
    except Exception:  # noqa: BLE001  # what is wrong with it is said of the whole
        return False
