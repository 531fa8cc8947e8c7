"""Saved tensors: policies that replace what operations save for the backward pass.

A policy receives the saved values of every recorded operation and returns what the node stores in
their place: hooks of the user pack them; `recompute` drops them; `rematerialize` stores how to
compute them again. The innermost policy of the thread applies; without one the tape stores them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, ParamSpec, Protocol, TypeVar

from optlab.autograd.tape.base import new_tensor, raw
from optlab.autograd.tape.grad_mode import recording
from optlab.autograd.tape.multi_output import tuple_like
from optlab.autograd.tape.slow_path import slow_path

P = ParamSpec("P")
R = TypeVar("R")
Pack = Callable[[Any], Any]
Unpack = Callable[[Any], Any]


class SavePolicy(Protocol):
    """A policy for the saved values of operations."""

    def keep(self, node: Any, saved: Any, forward: Any, values: Any) -> Any:
        """Return what the node stores in place of `saved`.

        Parameters
        ----------
        node : Node
        saved : tuple
            The values that the rules of its operation read.
        forward : callable or None
            Computes the output again from the inputs and ``node.static``; None if nothing does, as
            for a `Function` of the user.
        values : sequence
            The inputs, the output and the shapes of the operation.

        Returns
        -------
        tuple or object
            An object other than a tuple has ``restored()``, which returns the saved values, and
            ``values``, the arrays that it holds.
        """


class _Here(threading.local):
    policies: tuple[SavePolicy | None, ...] = ()
    alone = False


_here = _Here()


class use_policy:
    """A ``with`` block inside which a policy applies; it counts in `slow_path`."""

    def __init__(self, policy: SavePolicy | None) -> None:
        self.policy = policy
        self.inside = 0

    def __enter__(self) -> None:
        self.inside += 1
        _here.policies = (*_here.policies, self.policy)
        slow_path.enter(needs_values=True)

    def __exit__(self, *error: object) -> None:
        self.inside -= 1
        _here.policies = _here.policies[:-1]
        slow_path.leave(needs_values=True)


#: Policies of all threads, which apply where no other does (see `ambient`).
_everywhere: list[SavePolicy] = []


def ambient(policy: SavePolicy) -> Callable[[], None]:
    """Apply a policy wherever no other applies; return a function that ends this."""
    _everywhere.append(policy)
    slow_path.enter(needs_values=True)

    left = False

    def leave() -> None:
        nonlocal left
        if not left:
            left = True
            _everywhere.remove(policy)
            slow_path.leave(needs_values=True)

    return leave


def innermost() -> SavePolicy | None:
    """Return the policy that applies now."""
    if _here.policies:
        return _here.policies[-1]
    return _everywhere[-1] if _everywhere and not _here.alone else None


def of_this_thread() -> SavePolicy | None:
    """Return the policy that applies now, but for those of all threads (see `ambient`)."""
    return _here.policies[-1] if _here.policies else None


def entered(*kinds: type) -> bool:
    """Return whether this thread has entered a policy of one of these classes."""
    return any(isinstance(policy, kinds) for policy in _here.policies)


def entered_since(policy: SavePolicy) -> tuple[SavePolicy | None, ...]:
    """Return the policies that this thread entered after another, the outermost first."""
    policies = _here.policies
    return policies[policies.index(policy) + 1 :]


def vmap_level(opened: int) -> int:
    """Return the level of a `vmap` that opens now: in a replay, that of the first run.

    Operations of the first run read what the replay saves, so levels have to agree.
    """
    level = opened
    for policy in _here.policies:
        agreed = getattr(policy, "level", None)
        if agreed is not None:
            level = agreed(level)
    return level


@contextmanager
def without_ambient() -> Iterator[None]:
    """Disable the ambient policies in this thread inside a ``with`` block."""
    before, _here.alone = _here.alone, True
    try:
        yield
    finally:
        _here.alone = before


def outside_recompute(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a transform so that its saved values are kept, also inside `recompute`.

    Its backward pass runs at once. In policies of `recompute`, ``outer`` is the policy around them.
    """

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        policy: Any = innermost() if slow_path.any else None
        if not hasattr(policy, "outer"):
            return function(*args, **kwargs)
        while hasattr(policy, "outer"):
            policy = policy.outer
        with use_policy(policy):
            return function(*args, **kwargs)

    return run


def apply_policy(node: Any, saved: Any, forward: Any = None, values: Any = ()) -> Any:
    """Return what a node stores in place of `saved`: `saved` itself without a policy."""
    policy = innermost()
    return saved if policy is None else policy.keep(node, saved, forward, values)


class saved_tensors_hooks(use_policy):
    """Pack and unpack what operations save for the backward pass by two functions.

    Parameters
    ----------
    pack : callable
        Takes each saved value, a Tensor without gradient, and returns any object: the Tensor
        itself, the name of a file, the same numbers in float16.
    unpack : callable
        Takes what `pack` returned and returns the values: a Tensor or an array of the same shape
        and dtype.

    Notes
    -----
    The innermost pair of hooks applies, in the thread that entered it. Backward may run after the
    block has ended. In-place writes to packed values are not detected.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> packed = []
    >>> x = ol.to_tensor([1.0, 2.0], requires_grad=True)
    >>> with ol.autograd.saved_tensors_hooks(
    ...     lambda t: packed.append(t.numpy()) or len(packed) - 1, lambda i: packed[i]
    ... ):
    ...     y = np.sum(x * x)
    >>> [array.tolist() for array in packed]
    [[1.0, 2.0], [1.0, 2.0]]
    >>> y.backward()
    >>> x.grad
    Tensor([2., 4.], dtype=float32)
    """

    def __init__(self, pack: Pack, unpack: Unpack) -> None:
        for name, function in {"pack": pack, "unpack": unpack}.items():
            if not callable(function):
                raise TypeError(f"{name} must be a function; got {function!r}.")
        super().__init__(_PackPolicy(pack, unpack))


class Packed:
    """The saved values of a node, packed by hooks."""

    __slots__ = ("unpack", "values")

    def __init__(self, values: tuple[Any, ...], unpack: Unpack) -> None:
        self.values = values
        self.unpack = unpack

    def restored(self) -> tuple[Any, ...]:
        """Return the unpacked values."""
        was_on, recording.on = recording.on, False
        try:
            return tuple(_restored(value, self.unpack) for value in self.values)
        finally:
            recording.on = was_on


def _packed(value: Any, pack: Pack) -> Any:
    """Pack an array, or each of several outputs; return shapes and numbers unchanged."""
    if isinstance(value, tuple) and any(hasattr(part, "dtype") for part in value):
        return tuple_like(value, [_packed(part, pack) for part in value])
    is_array = hasattr(value, "dtype") and hasattr(value, "shape")
    return _PackedArray(value, pack) if is_array else value


def _restored(value: Any, unpack: Unpack) -> Any:
    if isinstance(value, tuple):
        return tuple_like(value, [_restored(part, unpack) for part in value])
    return value.restored(unpack) if isinstance(value, _PackedArray) else value


class _PackedArray:
    __slots__ = ("dtype", "packed", "shape")

    def __init__(self, array: Any, pack: Pack) -> None:
        self.shape, self.dtype = array.shape, array.dtype
        self.packed = pack(new_tensor(array))

    def restored(self, unpack: Unpack) -> Any:
        array = raw(unpack(self.packed))
        shape, dtype = getattr(array, "shape", None), getattr(array, "dtype", None)
        if shape != self.shape or dtype != self.dtype:
            raise ValueError(
                f"unpack must give back the values that were packed, of shape {self.shape} and "
                f"dtype {self.dtype}; it gave {type(array).__name__} of shape {shape} and dtype "
                f"{dtype}."
            )
        return array


class _PackPolicy:
    """The policy of `saved_tensors_hooks`."""

    def __init__(self, pack: Pack, unpack: Unpack) -> None:
        self.pack = pack
        self.unpack = unpack

    def keep(self, node: Any, saved: Any, forward: Any, values: Any) -> Packed:
        """Pack every array among the saved values."""
        was_on, recording.on = recording.on, False
        try:
            return Packed(tuple(_packed(value, self.pack) for value in saved), self.unpack)
        finally:
            recording.on = was_on
