"""Replay of a call: the record of its first run, and the comparison of the second with it.

During the first run one save policy drops the saved values and records fingerprints of operations;
during the replay another compares them. A difference is an error that names the first operation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType, ModuleType, NoneType
from typing import Any

import numpy as np

from optlab.autograd import pytrees
from optlab.autograd.checkpoint.fingerprints import Fingerprint, fingerprint
from optlab.autograd.checkpoint.side_effects import SideEffects
from optlab.autograd.tape import saved_tensors, versions
from optlab.autograd.tape.grad_mode import RecomputationError, grad_mode, recomputing
from optlab.autograd.tape.half_precision import halves
from optlab.autograd.tape.nodes import Leaf, Node
from optlab.autograd.tensor.tensor import Tensor
from optlab.backend import random
from optlab.backend.user_frames import location


class ReplayedCall:
    """A call that backward replays, and the record of its first run.

    Attributes
    ----------
    arrays : tuple
        The arrays among the arguments, which the replay needs.
    log : list of Fingerprint
        One for each operation of the first run.
    ended : int
        Time when the first run ended, 0 before.
    replays : int
        Number of replays in one backward pass.
    """

    takes_gradients_as_they_are = True  # the backward pass of the replay widens them if necessary

    def __init__(
        self,
        function: Callable[..., Any],
        args: Any,
        kwargs: Any,
        preserve_rng_state: bool,
        replays: int = 1,
    ) -> None:
        self.function = function
        self.parts, self.build = pytrees.flatten((list(args), kwargs))
        self.places: dict[int, Any] = {}  # of arrays among the parts, with their nodes
        arrays = []
        for i, part in enumerate(self.parts):
            is_tensor = isinstance(part, Tensor)
            if is_tensor and not isinstance(part.node, Leaf):
                self.places[i] = part.node
                arrays.append(part.data)
                self.parts[i] = None
        self.arrays: Any = tuple(arrays)
        self.bookmark = random.bookmark() if preserve_rng_state else None
        self.cast_policy = halves.policy
        self.made_at = next(versions.clock)
        self.log: list[Fingerprint] = []
        self.ended = 0
        self.replays = replays
        self.side_effects = SideEffects(function)

    @property
    def name(self) -> str:
        """Name of the function, and its file and line."""
        name = str(getattr(self.function, "__name__", type(self.function).__name__))
        code = getattr(self.function, "__code__", None)
        return f"{name} ({location(code.co_filename, code.co_firstlineno)})" if code else name

    @property
    def free_variables_hint(self) -> str:
        """Sentence that names the free variables of the function, or an empty string."""
        code = getattr(self.function, "__code__", None)
        if code is None or getattr(self.function, "__self__", None) is not None:
            return ""
        names = list(code.co_freevars)
        if code.co_name == "<lambda>":
            known = self.function.__globals__
            defined = (ModuleType, type, FunctionType, np.ufunc, NoneType)
            names += [n for n in code.co_names if not isinstance(known.get(n), defined)]
        if not names:
            return ""
        first = names[0]
        return (
            f" It reads {', '.join(names[:3])} from around it, as it stands at that time: where a "
            f"loop gives it anew, bind it, lambda x, {first}={first}: ..."
        )

    @contextmanager
    def first_run(self, policy: DropSaved) -> Iterator[None]:
        """Record the operations inside, and their in-place writes."""
        with saved_tensors.use_policy(policy), self.side_effects.recorded():
            yield
        self.ended = next(versions.clock)

    def record(self, node: Node, values: Any) -> None:
        """Record an operation of the first run."""
        self.log.append(self._fingerprint(node, values))

    def _fingerprint(self, node: Node, values: Any) -> Fingerprint:
        name = node.operation.name
        if self.bookmark is None or not len(values):  # its numbers may differ
            return Fingerprint(name, node.shape, str(node.dtype), 0)
        return fingerprint(name, values[len(node.edges)])

    def check(self, number: int, node: Node, values: Any) -> None:
        """Compare an operation of the replay with that of the first run."""
        self.compare(number, self._fingerprint(node, values))

    def compare(self, number: int, replayed: Fingerprint) -> None:
        """Raise RecomputationError if a fingerprint of the replay is not that of the first run."""
        if number >= len(self.log):
            raise self.mismatch(
                f"the first run ended after {len(self.log)} operations, the second went on with "
                f"{replayed.operation!r}"
            )
        if replayed != self.log[number]:
            raise self.mismatch(
                f"operation {number + 1} of {len(self.log)}: "
                f"{self.log[number].difference(replayed)}"
            )

    def mismatch(self, how: str) -> RecomputationError:
        """Return the error for a replay that differs from the first run."""
        return RecomputationError(
            f"recompute ran {self.name} again for backward, and it was not the same: {how}. The "
            "second run has to be like the first: let it read nothing that changes in between "
            "(buffers, counters, switches such as training), and draw random numbers from "
            f"optlab, with preserve_rng_state=True.{self.free_variables_hint}"
        )

    def replay(self, arrays: Any, policy: CompareReplay, made_at: int | None = None) -> Any:
        """Repeat the call with `arrays`; raise RuntimeError if one was overwritten since."""
        writer = versions.writer_since(self.made_at if made_at is None else made_at, arrays)
        if writer is not None:
            raise RuntimeError(
                f"backward has to run {self.name} again, but {writer} has written over an argument "
                "of it since. Make a new value in place of writing (x = x + 1, not x += 1), or run "
                "backward before that."
            )
        parts = list(self.parts)
        for (i, node), array in zip(self.places.items(), arrays, strict=True):
            parts[i] = Tensor(array, node)
            if node is not None:
                versions.attribute_to(array, node.order)
        args, kwargs = self.build(parts)
        with saved_tensors.use_policy(policy), grad_mode(True), self.restored_context():
            returned = self.function(*args, **kwargs)
        policy.check_complete()
        return returned

    @contextmanager
    def restored_context(self) -> Iterator[None]:
        """Restore the context of the first run: random stream, autocast policy, written Tensors."""
        policy, halves.policy = halves.policy, self.cast_policy
        recomputing.depth += 1
        recomputing.apart += 1
        try:
            with self.side_effects.replayed(self.mismatch):
                if self.bookmark is None:
                    yield
                else:
                    with random.replayed(self.bookmark):
                        yield
        finally:
            halves.policy = policy
            recomputing.depth -= 1
            recomputing.apart -= 1


#: The error message of backward inside a first run.
INSIDE = (
    "backward reached what was computed inside a function that recompute runs, which kept nothing "
    "of it. Return it from that function, by itself or in a list, tuple or dict (other objects are "
    "not looked into), and call backward() outside; inside, take gradients by ol.grad."
)


class _Dropped:
    """Saved values of an operation inside a first run: none."""

    values = ()

    def restored(self) -> tuple[Any, ...]:
        raise RuntimeError(INSIDE)


_DROPPED = _Dropped()


class DropSaved:
    """Save policy of a first run: records operations and drops their saved values."""

    def __init__(self, call: ReplayedCall) -> None:
        self.call = call
        self.outer = saved_tensors.innermost()
        #: Replays of enclosing functions.
        self.replays_around: list[CompareReplay] = []
        around: Any = self.outer
        while around is not None:
            if isinstance(around, CompareReplay):
                self.replays_around.append(around)
            around = getattr(around, "outer", None)

    def record(self, node: Node, values: Any) -> None:
        """Record an operation, and check it for the replays of enclosing functions."""
        for one in self.replays_around:
            one.check_unwritten(node, values)
        self.call.record(node, values)

    def keep(self, node: Node, saved: Any, forward: Any, values: Any) -> Any:
        """Record the operation, and drop its saved values."""
        self.record(node, values)
        return _DROPPED


class CompareReplay:
    """Save policy of a replay: compares operations and leaves saving to the enclosing policy."""

    def __init__(self, call: ReplayedCall) -> None:
        self.call = call
        self.count = 0
        self.started = next(versions.clock)
        self.outer = saved_tensors.innermost()

    def keep(self, node: Node, saved: Any, forward: Any, values: Any) -> Any:
        """Compare the operation, and save its values as the enclosing policy does."""
        self.check_unwritten(node, values)
        self.call.check(self.count, node, values)
        self.count += 1
        return saved if self.outer is None else self.outer.keep(node, saved, forward, values)

    def check_unwritten(self, node: Node, values: Any) -> None:
        """Check that no input of an operation was written to between the runs."""
        first, ended = self.call.made_at, self.call.ended
        if versions.times.last_write < first:
            return
        for i, edge in enumerate(node.edges):
            leaf = None if edge is None else edge.source
            if leaf is not None and leaf.made_at < first < leaf.overwritten_at:
                raise node.overwritten_error(leaf.writer, leaf.name or "a Tensor", leaf.shape)
            record = versions.record_of(values[i]) if edge is None and i < len(values) else None
            if record is not None and ended < record.time < self.started:
                raise self.call.mismatch(
                    f"operation {self.count + 1} of {len(self.call.log)}: {node.operation.name!r} "
                    f"reads an array of shape {np.shape(values[i])} that {record.writer} has "
                    "written to since"
                )

    def check_complete(self) -> None:
        """Check that the replay did not end before the first run."""
        log = self.call.log
        if self.count < len(log):
            raise self.call.mismatch(
                f"the second run ended after {self.count} operations, the first went on with "
                f"{log[self.count].operation!r}"
            )
