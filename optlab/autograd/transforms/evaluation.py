"""Evaluation of a function with its arguments on the tape, from which every transform starts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np

from optlab.autograd import pytrees
from optlab.autograd.rules.elementwise import POSITIVE
from optlab.autograd.tape import backward, views
from optlab.autograd.tape.grad_mode import grad_mode, recomputing, recording
from optlab.autograd.tape.nodes import InputLeaf
from optlab.autograd.tape.row_sparse import dense
from optlab.autograd.tape.slow_path import slow_path
from optlab.autograd.tensor.tensor import Tensor, apply, raw
from optlab.backend.arrays import as_array, copied
from optlab.backend.call_recorder import handed_out, values_of
from optlab.backend.dtypes import is_floating, is_real
from optlab.backend.wrong_arguments import explained, shown

Argnums = int | Sequence[int]

P = ParamSpec("P")
R = TypeVar("R")

_OF_PADDLE = (
    "A transform takes a function: ol.grad(f)(x), with f the function that computes y from x. "
    "paddle.grad(outputs=y, inputs=x) is written y.backward(), and then x.grad, to which gradients "
    "add up; with create_graph=True, y.backward(create_graph=True)."
)

_NAMES_OF_PADDLE = (
    "outputs", "inputs", "grad_outputs", "create_graph", "retain_graph", "allow_unused",
    "only_inputs", "no_grad_vars",
)  # fmt: skip


def _hint(name: str, value: Any, known: Collection[str]) -> str:
    """Return what to write for an argument that transforms do not have."""
    if name in _NAMES_OF_PADDLE:
        return _OF_PADDLE
    if name in ("func", "fun", "function", "fn", "xs") and "f" in known:
        return "Write f=..., or give it by position."
    if name in ("argnum", "wrt") and "argnums" in known:
        return f"Write argnums={value!r}."
    if name in ("primals", "tangent") and "args" in known:
        return "Write ol.jvp(f, (x,), (v,))."
    return {"in_dims": "Write in_axes=...", "out_dims": "Write out_axes=..."}.get(name, "")


#: Transforms that take the point together with the function.
_AT_ONCE = ("vjp", "jvp", "hvp", "check_grad")


def explained_transform(transform: Callable[P, R]) -> Callable[P, R]:
    """Decorate a transform to say what to write for the arguments of other libraries."""
    return explained(transform, _hint)


def check_callable(f: Any, name: str) -> None:
    """Raise TypeError if what a transform takes is no function."""
    if callable(f):
        return
    if isinstance(f, Tensor):
        raise TypeError(f"{name} takes a function; got a Tensor of shape {f.shape}. {_OF_PADDLE}")
    call = f"{name}(f, x)" if name in _AT_ONCE else f"{name}(f)(x)"
    raise TypeError(
        f"{name} takes a function; got {shown(f)} of type {type(f).__name__}. Write ol.{call}."
    )


class Evaluation:
    """One evaluation of a function, with its arguments on the tape.

    Attributes
    ----------
    inputs : list of Tensor
        Stand-ins for the arrays that are differentiated, of all arguments in order, containers
        flattened. `nodes` are their nodes on the tape, `given` their values.
    value : Tensor
        The result; if that is a container, its parts concatenated into one vector.
    traced : bool
        Whether something outside traces the result, so that derivatives must be recorded too.
    """

    def __init__(
        self, f: Callable[..., Any], args: tuple[Any, ...], argnums: Sequence[int], kwargs: Any
    ) -> None:
        if not callable(f):
            raise TypeError(
                f"a transform takes a function; got {type(f).__name__}. Write ol.grad(f)(x), not "
                "ol.grad(f(x))."
            )
        enabled = recording.on
        filled = list(args)
        self.inputs: list[Tensor] = []
        self.counts: list[int] = []
        self.builds: list[pytrees.Build] = []
        with grad_mode(True):
            for i in argnums:
                parts, build = pytrees.flatten(args[i])
                entries = [_entry(part, traced=enabled) for part in parts]
                filled[i] = build(list(entries))
                self.inputs += entries
                self.counts.append(len(entries))
                self.builds.append(build)
            self.gives_tensors = any(
                isinstance(part, Tensor) for i in argnums for part in pytrees.flatten(args[i])[0]
            )
            # Kept separately: an in-place write to an argument gives its Tensor another node.
            self.nodes = [t.node for t in self.inputs]
            self.given = [t.data for t in self.inputs]
            InputLeaf.transforms += 1
            try:
                returned = f(*filled, **kwargs)
            finally:
                InputLeaf.transforms -= 1
                # Nothing outside of this evaluation needs the gradients of its own leaves.
                for node in self.nodes:
                    if not node.order:
                        node.live = False
            self.value = self._take(f, returned)
        own = set(self.nodes)
        self.traced = False
        if enabled and self.value.node is not None:
            # The outer leaves of the first run are gone in a replay.
            self.traced = backward.reaches_leaf(self.value.node, own, live=not recomputing.depth)

    def _take(self, f: Callable[..., Any], returned: Any) -> Tensor:
        """Return the result of the function as one Tensor; concatenate a container."""
        self.returned = type(returned)
        parts, self.build_value = pytrees.flatten(returned)
        self.parts = [_result(f, part) for part in parts]
        if slow_path.any:
            views.check_fresh(self.parts)
        self.returns_container = pytrees.is_container(returned)
        if not self.returns_container:
            return self.parts[0]
        if not self.parts:
            raise TypeError(f"{name_of(f)} returned an empty {type(returned).__name__}.")
        return np.concatenate([np.reshape(part, (-1,)) for part in self.parts])  # type: ignore[return-value]

    def pull(self, seed: Any, retain_graph: bool = False) -> list[Any]:
        """Return the gradient of <seed, value> for each input, in the form for the caller."""
        found: list[Any] = [None] * len(self.nodes)
        if self.value.node is not None:
            found = backward.backpropagate(
                self.value.node,
                Tensor(raw(seed), getattr(seed, "node", None)) if self.traced else raw(seed),
                targets=self.nodes,
                create_graph=self.traced,
                retain_graph=retain_graph or self.traced,
            )
        # The caller may write to gradients: no two of them, nor the seed, share memory.
        shared = {id(raw(seed)), id(self.value.data)}
        gradients = []
        for x, g in zip(self.given, found, strict=True):
            handed = self.hand_out(np.zeros_like(x) if g is None else g)
            gradients.append(_unshared(handed, shared))
            shared.add(id(raw(handed)))
        return gradients

    def built(self, parts: list[Any]) -> list[Any]:
        """Unflatten one value an input into one container an argument."""
        arguments, start = [], 0
        for build, n in zip(self.builds, self.counts, strict=True):
            arguments.append(build(parts[start : start + n]))
            start += n
        return arguments

    def hand_out(self, value: Any) -> Any:
        """Return a Tensor if the arguments were Tensors or something traces it, else an array."""
        if isinstance(value, Tensor):
            if value.node is not None and self.traced:
                return value
            value = value.data
        value = dense(value)
        return Tensor(value) if self.gives_tensors else handed_out(value)

    def result(self) -> Any:
        """Return the value of the function, in the form for the caller."""
        return self.build_value(
            [self.hand_out(part if self.traced else part.data) for part in self.parts]
        )

    def in_parts(self, joined: Any) -> list[Any]:
        """Split an array of the size of `value` into the shapes of its parts."""
        if not self.returns_container:
            return [joined]
        cut, start = [], 0
        for part in self.parts:
            cut.append(np.reshape(joined[start : start + part.size], part.shape))
            start += part.size
        return cut


def _unshared(handed: Any, shared: set[int]) -> Any:
    """Return a gradient in memory of its own, as a copy if necessary."""
    array = raw(handed)
    if not isinstance(array, np.ndarray) or getattr(handed, "node", None) is not None:
        return handed  # the tape checks writes to recorded values
    if id(array) not in shared and array.base is None and array.flags.writeable:
        return handed
    return Tensor(array.copy()) if isinstance(handed, Tensor) else array.copy()


def _result(f: Callable[..., Any], value: Any) -> Tensor:
    """Return the result of a function as a Tensor; raise TypeError if it is no number."""
    t = value if isinstance(value, Tensor) else Tensor(as_array(value))
    if not is_real(t.dtype):
        raise TypeError(
            f"{name_of(f)} returned {value!r} of type {type(value).__name__}; a function to "
            "differentiate returns numbers: an array, or a container of arrays. (A missing return?)"
        )
    return t


def _entry(x: Any, traced: bool) -> Tensor:
    """Put an argument on the tape: as a leaf, or as a node of its own if it is traced already."""
    if isinstance(x, Tensor):
        if x.node is not None and traced:
            return apply(POSITIVE, (x,))
        x = values_of(x)
    if isinstance(x, float):
        return Tensor(np.float64(x), InputLeaf((), np.dtype(float)))
    # A copy: the function may write to its argument in place without changing the caller's.
    array = copied(x)
    if not is_floating(array.dtype):
        hint = (
            "Write 2.0 instead of 2, or convert with .astype(float)."
            if array.dtype.kind in "iub"
            else "Complex numbers are not covered; split them into real and imaginary parts."
            if array.dtype.kind == "c"
            else "Give numbers."
        )
        raise TypeError(
            f"derivatives are with respect to floating numbers; got {array.dtype} ({x!r}). {hint}"
        )
    return Tensor(array, InputLeaf(array.shape, array.dtype))


def positions(argnums: Argnums, args: tuple[Any, ...]) -> tuple[list[int], bool]:
    """Return the positions in `argnums`, and whether it is a single number."""
    single = isinstance(argnums, (int, np.integer))
    if not single and (isinstance(argnums, str) or not hasattr(argnums, "__iter__")):
        raise TypeError(
            f"argnums says which positional arguments, as a number or several; got {argnums!r}."
        )
    numbers = [int(argnums)] if single else [int(i) for i in argnums]  # type: ignore[arg-type, union-attr]
    for i in numbers:
        if not -len(args) <= i < len(args):
            raise TypeError(f"argnums names argument {i}, but {len(args)} were given.")
    places = [i % len(args) for i in numbers]
    if len(set(places)) < len(places):
        raise TypeError(f"argnums names an argument twice: {argnums!r}.")
    return places, single


def name_of(f: Callable[..., Any]) -> str:
    """Return the name of a function, for messages."""
    return getattr(f, "__name__", type(f).__name__)
