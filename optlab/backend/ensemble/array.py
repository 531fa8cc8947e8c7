"""EnsembleArray: one array per member; a function sees the shape of one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from optlab.backend.errors import EnsembleError

_Handler = TypeVar("_Handler", bound=Callable[..., Any])
_numpy: Any = np  # NumPy's annotations do not cover arrays with protocols


#: What to write instead of one Python number.
_GO_ON = (
    "Go on with the array itself (np.sqrt(x), not math.sqrt(float(x))), and return what you want "
    "to see: what vmap gives is a plain array of all examples. (Of an ensemble, .members[k] is "
    "the k-th.)"
)


#: What to write for the methods of Tensors, which an array does not have.
_OF_TENSORS = {
    "detach": "leave .detach() out: an array has no gradient to be cut off from",
    "numpy": "leave .numpy() out: it is an array",
    "clone": "write x.copy()",
    "backward": "write ol.grad inside: ol.vmap(ol.grad(loss))(batch)",
    "grad": "write ol.grad inside: ol.vmap(ol.grad(loss))(batch)",
    "requires_grad": "leave it out: an array has no gradient; ol.vmap(ol.grad(loss)) returns some",
}


def _missing(x: EnsembleArray, name: str) -> str:
    """Return the message for an attribute that an ensemble does not have."""
    said = f"{type(x).__name__!r} object has no attribute {name!r}"
    if name.startswith("__"):
        return said
    who = "what a function inside ol.vmap gets" if x.level else "an ensemble"
    one = "an array that stands for one example" if x.level else "an array of many members"
    said = f"{who} is {one}, of shape {x.shape}, and has no attribute {name!r}"
    instead = _OF_TENSORS.get(name)
    if instead is None and callable(getattr(np, name, None)):
        instead = f"write np.{name}(x)"
    return f"{said}; {instead}." if instead else f"{said}."


class EnsembleArray(np.lib.mixins.NDArrayOperatorsMixin):
    """K arrays of one shape that pass through a computation together, each as if it were alone.

    Shape, axes and indices are those of one member. A plain array beside it is shared by all
    members and is broadcast against one member: the member axis never meets an axis of data,
    whatever the sizes.

    Parameters
    ----------
    members : array
        The members, stacked along the first axis; not copied.
    level : int
        Ensembles of one level must have the same number of members. One level inside another
        (`optlab.vmap` in `optlab.vmap`) is an ensemble of ensembles.

    Attributes
    ----------
    members : array
        The members, stacked along the first axis.

    Notes
    -----
    Elementwise functions, functions that move elements, sorting, sums, and products of two
    matrices compute for each member the same bits as alone, given the same memory layout. Sums
    over all elements of transposed arrays, products with vectors, `einsum`, `tensordot` and norms
    may add in another order, and agree within rounding.

    Examples
    --------
    >>> import numpy as np
    >>> x = EnsembleArray(np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
    >>> x.shape, x.member_count
    ((3,), 2)
    >>> np.sum(x * x)
    EnsembleArray(2 members of shape (), float64: [14. 77.])
    """

    __slots__ = ("__weakref__", "level", "members")

    #: The attribute that holds the array.
    holds = "members"

    def __init__(self, members: Any, level: int = 0) -> None:
        if not hasattr(members, "__array_function__"):
            members = np.asarray(members)
        if not members.ndim or not members.shape[0]:
            raise ValueError(
                "an ensemble needs an array whose first axis counts one member or more; got "
                f"shape {members.shape}."
            )
        self.members = members
        self.level = level

    if not TYPE_CHECKING:  # type checkers would accept every attribute

        def __getattr__(self, name: str) -> Any:
            raise AttributeError(_missing(self, name), name=name, obj=None)

    # What it is ---------------------------------------------------------------------------------

    @property
    def member_count(self) -> int:
        """Number of members."""
        return self.members.shape[0]  # type: ignore[no-any-return]

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes of one member."""
        return self.members.shape[1:]  # type: ignore[no-any-return]

    @property
    def ndim(self) -> int:
        """Number of axes of one member."""
        return self.members.ndim - 1  # type: ignore[no-any-return]

    @property
    def size(self) -> int:
        """Number of elements of one member."""
        return self.members.size // self.member_count  # type: ignore[no-any-return]

    @property
    def dtype(self) -> Any:
        """Type of the elements."""
        return self.members.dtype

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.members.dtype.itemsize  # type: ignore[no-any-return]

    @property
    def nbytes(self) -> int:
        """Bytes of all members together."""
        return self.members.nbytes  # type: ignore[no-any-return]

    @property
    def strides(self) -> Any:
        """Bytes from one element to the next along each axis of a member."""
        return self.members.strides[1:]

    @property
    def flags(self) -> Any:
        """Memory layout of one member (all are alike)."""
        return self.members[0, ...].flags

    @property
    def T(self) -> Any:
        """The axes of each member in reverse order."""
        return _numpy.transpose(self)

    @property
    def mT(self) -> Any:
        """The last two axes of each member exchanged."""
        return _numpy.swapaxes(self, -1, -2)

    @property
    def real(self) -> EnsembleArray:
        """The real parts."""
        return self._like(self.members.real)

    @property
    def imag(self) -> EnsembleArray:
        """The imaginary parts."""
        return self._like(self.members.imag)

    def _like(self, members: Any) -> EnsembleArray:
        return EnsembleArray(members, self.level)

    def __repr__(self) -> str:
        values = np.array2string(self.members, separator=" ", threshold=20)
        values = " ".join(values.split())
        return (
            f"EnsembleArray({self.member_count} members of shape {self.shape}, {self.dtype}: "
            f"{values})"
        )

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("a member of this ensemble is a single number: it has no length.")
        return self.shape[0]

    # One answer for all members -----------------------------------------------------------------

    def _refused(self, call: str, instead: str) -> EnsembleError:
        return EnsembleError(
            f"{call} needs one answer, but this array stands for {self.member_count} examples at "
            "once, each with a value of its own: so it is inside vmap, and for the members of an "
            f"ensemble. {instead}"
        )

    def __bool__(self) -> bool:
        raise self._refused(
            "a condition (if, while, and, or, not)",
            "Choose for each by itself: np.where(x > 0, a, b) in place of `a if x > 0 else b`.",
        )

    def __float__(self) -> float:
        raise self._refused("float()", _GO_ON)

    def __int__(self) -> int:
        raise self._refused("int()", _GO_ON)

    def __complex__(self) -> complex:
        raise self._refused("complex()", _GO_ON)

    def __index__(self) -> int:
        raise self._refused(
            "an index into a plain array, or a number of times",
            "Read with optlab.numpy.take(array, index), which takes one index a member.",
        )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        raise self._refused(
            "making one plain array of it (np.array, np.asarray, writing into a plain array, an "
            "index of a plain array)",
            "Use .members (ol.members of a Tensor) for all members stacked along a first axis, "
            "np.stack([...]) to join ensembles, and optlab.numpy.take(array, index) or "
            "ol.to_tensor(array)[index] to read a plain array.",
        )

    def item(self, *index: Any) -> Any:
        """Refuse: there is one number per member (``.members`` has all)."""
        raise self._refused(".item()", _GO_ON)

    def tolist(self) -> Any:
        """Refuse: there is one list per member (``.members`` has all)."""
        raise self._refused(".tolist()", _GO_ON)

    # Copies, dtypes, shapes ---------------------------------------------------------------------

    def astype(self, dtype: Any, copy: bool = True) -> EnsembleArray:
        """Return the values in another dtype."""
        return self._like(self.members.astype(dtype, copy=copy))

    def copy(self, order: Any = "C") -> EnsembleArray:
        """Return a copy."""
        return self._like(self.members.copy())

    def view(self) -> EnsembleArray:
        """Return a view of the same memory."""
        return self._like(self.members.view())

    def fill(self, value: Any) -> None:
        """Fill with one value."""
        self[...] = value

    def reshape(self, *shape: Any, order: str = "C") -> Any:
        """Reshape each member."""
        return _numpy.reshape(self, shape[0] if len(shape) == 1 else shape, order=order)

    def transpose(self, *axes: Any) -> Any:
        """Reorder the axes of each member; without arguments, reverse them."""
        if len(axes) == 1 and not isinstance(axes[0], (int, np.integer)):
            axes = axes[0]
        return _numpy.transpose(self, axes or None)

    def flatten(self) -> Any:
        """Return a flattened copy of each member."""
        return _numpy.ravel(self).copy()

    def sort(self, axis: int = -1, **options: Any) -> None:
        """Sort each member in place."""
        self[...] = _numpy.sort(self, axis, **options)

    # Elements -----------------------------------------------------------------------------------

    def __getitem__(self, index: Any) -> EnsembleArray:
        return _getitem(self, index)  # type: ignore[no-any-return]

    def __setitem__(self, index: Any, value: Any) -> None:
        _setitem(self, index, value)

    def __iter__(self) -> Iterator[EnsembleArray]:
        return (self[i] for i in range(len(self)))

    # Arithmetic: NDArrayOperatorsMixin passes the operators to the ufuncs. ---------------------

    def __imatmul__(self, other: Any) -> EnsembleArray:
        self[...] = np.matmul(self, other)
        return self

    def __pow__(self, other: Any) -> Any:
        if isinstance(other, (int, float)):  # NumPy's operator is faster and rounds differently
            return self._like(self.members**other)
        return np.power(self, other)

    def clip(self, min: Any = None, max: Any = None, **options: Any) -> Any:
        """Return ``np.clip(self, min, max, ...)``."""
        return np.clip(self, min, max, **options)

    # NumPy's protocols (NEP 13, NEP 18) ---------------------------------------------------------

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return _universal_function(ufunc, method, inputs, kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return _array_function(function, types, args, kwargs)


# The handlers are registered from above, so that this module imports no rule: indexing when the
# package is imported, the rest when NumPy first meets an ensemble.

_getitem: Any = None
_setitem: Any = None
_load_rules: Any = None


def _universal_function(*call: Any) -> Any:
    """Import the rules, which register a handler that replaces this one, and call it."""
    _load_rules()
    return _universal_function(*call)


def _array_function(*call: Any) -> Any:
    """Import the rules, which register a handler that replaces this one, and call it."""
    _load_rules()
    return _array_function(*call)


def register(handler: _Handler) -> _Handler:
    """Register a function that answers for ensembles, under its name.

    ``getitem``, ``setitem``, ``universal_function``, ``array_function``, and ``load_rules``, which
    imports the module of the last two.
    """
    globals()[f"_{handler.__name__}"] = handler
    return handler


def _method(name: str) -> Callable[..., Any]:
    function = getattr(np, name)

    def method(self: EnsembleArray, *args: Any, **kwargs: Any) -> Any:
        return function(self, *args, **kwargs)

    method.__name__ = name
    method.__qualname__ = f"EnsembleArray.{name}"
    method.__doc__ = f"Return ``np.{name}(self, ...)``."
    return method


for name in (
    "all", "any", "argmax", "argmin", "argpartition", "argsort", "choose", "conj",
    "conjugate", "cumprod", "cumsum", "diagonal", "dot", "max", "mean", "min", "prod", "ptp",
    "ravel", "repeat", "round", "searchsorted", "squeeze", "std", "sum", "swapaxes", "take",
    "trace", "var",
):  # fmt: skip
    if not hasattr(np.ndarray, name) and name != "ptp":
        continue
    setattr(EnsembleArray, name, _method(name))


def _compress(self: EnsembleArray, condition: Any, axis: Any = None) -> Any:
    """Return ``np.compress(condition, self, axis)``."""
    return np.compress(condition, self, axis)


EnsembleArray.compress = _compress  # type: ignore[attr-defined]
