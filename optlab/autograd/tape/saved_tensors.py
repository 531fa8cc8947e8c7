"""Who keeps what operations save for backward: the tape itself, unless a policy was asked to.

A policy is given the saved values of every operation as it is recorded, and says what the node has
in their place: the user's hooks pack them; `recompute` forgets them; `rematerialize` remembers how
they were made. The innermost policy of the thread decides.
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
    """What says how the saved values of operations are kept."""

    def keep(self, node: Any, saved: Any, forward: Any, values: Any) -> Any:
        """Give what is kept in place of `saved`.

        Parameters
        ----------
        node : Node
        saved : tuple
            What the rules of its operation read.
        forward : callable or None
            What gives the output again from the inputs, with ``node.static``; None where nothing
            does, as for a `Function` of the user.
        values : sequence
            The inputs, the output, and shapes, as the operation met them.

        Returns
        -------
        tuple or object
            Something else than a tuple has ``restored()``, which gives the saved values back, and
            ``values``, the arrays that it holds meanwhile.
        """


class _Here(threading.local):
    policies: tuple[SavePolicy | None, ...] = ()
    alone = False


_here = _Here()


class use_policy:
    """A ``with`` block inside which a policy decides; it counts itself among the extras."""

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


#: Keepers of the whole program, for all threads, where no other was asked to (see `ambient`).
_everywhere: list[SavePolicy] = []


def ambient(policy: SavePolicy) -> Callable[[], None]:
    """Let a policy decide wherever no other does, until the function that is given is called."""
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
    """Give the policy that decides now."""
    if _here.policies:
        return _here.policies[-1]
    return _everywhere[-1] if _everywhere and not _here.alone else None


def entered(*kinds: type) -> bool:
    """Say whether a policy that this thread has entered is of one of these kinds."""
    return any(isinstance(policy, kinds) for policy in _here.policies)


def entered_since(policy: SavePolicy) -> tuple[SavePolicy | None, ...]:
    """Give the keepers that this thread has entered after another, the outermost first."""
    policies = _here.policies
    return policies[policies.index(policy) + 1 :]


def vmap_level(opened: int) -> int:
    """Give the level of a `vmap` that opens now: in a second run, that of the first.

    What the second run saves serves operations of the first, so levels have to agree.
    """
    level = opened
    for policy in _here.policies:
        agreed = getattr(policy, "level", None)
        if agreed is not None:
            level = agreed(level)
    return level


@contextmanager
def without_ambient() -> Iterator[None]:
    """Inside, keepers of the whole program decide nothing in this thread."""
    before, _here.alone = _here.alone, True
    try:
        yield
    finally:
        _here.alone = before


def outside_recompute(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a transform: what it records to walk back at once is kept, also inside `recompute`.

    Keepers that `recompute` puts around a run say by ``outer`` who would decide without them.
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
    """Give what a node keeps in place of `saved`: itself, where no policy was asked to."""
    policy = innermost()
    return saved if policy is None else policy.keep(node, saved, forward, values)


class saved_tensors_hooks(use_policy):
    """Let two functions keep and bring back what operations save for backward.

    Parameters
    ----------
    pack : callable
        Is given each value that is saved, a Tensor without gradient, and returns anything: the
        Tensor itself, a name of a file, the same numbers in float16.
    unpack : callable
        Is given what `pack` returned and gives the values back: a Tensor or an array of the same
        shape and dtype.

    Notes
    -----
    The innermost pair of hooks applies, in the thread that entered it. Backward may run after the
    block is left. Whoever writes in place to what was packed answers for it himself.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> kept = []
    >>> x = ol.to_tensor([1.0, 2.0], requires_grad=True)
    >>> with ol.autograd.saved_tensors_hooks(
    ...     lambda t: kept.append(t.numpy()) or len(kept) - 1, lambda place: kept[place]
    ... ):
    ...     y = np.sum(x * x)
    >>> [array.tolist() for array in kept]
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
    """The saved values of a node, as hooks keep them."""

    __slots__ = ("unpack", "values")

    def __init__(self, values: tuple[Any, ...], unpack: Unpack) -> None:
        self.values = values
        self.unpack = unpack

    def restored(self) -> tuple[Any, ...]:
        """Give the saved values back."""
        was_on, recording.on = recording.on, False
        try:
            return tuple(_restored(value, self.unpack) for value in self.values)
        finally:
            recording.on = was_on


def _packed(value: Any, pack: Pack) -> Any:
    """Pack an array, or each of several outputs; shapes and numbers stay as they are."""
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
    """The policy behind the user's hooks."""

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
