"""A call that is made twice: what is remembered of the first run, and how the second is compared.

While the first run is under way, a keeper forgets what its operations save and notes what they are;
in the second, another one compares them. What differs is an error, named by its first operation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType, ModuleType, NoneType
from typing import Any

import numpy as np

from optlab.autograd import saving, trees, writes
from optlab.autograd.fingerprints import Fingerprint, fingerprint
from optlab.autograd.halves import halves
from optlab.autograd.mode import RecomputationError, grad_mode, recomputing
from optlab.autograd.tape import Leaf, Node
from optlab.autograd.tensor import Tensor
from optlab.autograd.written_inside import WrittenInside
from optlab.backend import random
from optlab.backend.callers import location


class Twice:
    """A call that will be made a second time, and what is remembered of the first.

    Attributes
    ----------
    arrays : tuple
        The arrays among the arguments, which the call needs again.
    log : list of Fingerprint
        One for each operation of the first run.
    ended : int
        When the first run was over, 0 if it is not.
    more : int
        How often backward will make the call again.
    """

    takes_gradients_as_they_are = True  # the walk through the second run widens where that is due

    def __init__(
        self,
        function: Callable[..., Any],
        args: Any,
        kwargs: Any,
        preserve_rng_state: bool,
        more: int = 1,
    ) -> None:
        self.function = function
        self.parts, self.build = trees.flatten((list(args), kwargs))
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
        self.policy = halves.policy
        self.made_at = next(writes.clock)
        self.log: list[Fingerprint] = []
        self.ended = 0
        self.more = more
        self.written = WrittenInside(function)

    @property
    def name(self) -> str:
        """What the function is called, and where it stands."""
        name = str(getattr(self.function, "__name__", type(self.function).__name__))
        code = getattr(self.function, "__code__", None)
        return f"{name} ({location(code.co_filename, code.co_firstlineno)})" if code else name

    @property
    def read_from_around(self) -> str:
        """Say which names of around it a function reads when it runs."""
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
    def first_run(self, keeper: Forgetting) -> Iterator[None]:
        """Remember what runs inside, and what it writes to."""
        with saving.Keeping(keeper), self.written.noted():
            yield
        self.ended = next(writes.clock)

    def note(self, node: Node, values: Any) -> None:
        """Remember an operation of the first run."""
        self.log.append(self._fingerprint(node, values))

    def _fingerprint(self, node: Node, values: Any) -> Fingerprint:
        name = node.operation.name
        if self.bookmark is None or not len(values):  # its numbers are free to differ
            return Fingerprint(name, node.shape, str(node.dtype), 0)
        return fingerprint(name, values[len(node.edges)])

    def check(self, number: int, node: Node, values: Any) -> None:
        """Compare an operation of the second run with that of the first."""
        self.compare(number, self._fingerprint(node, values))

    def compare(self, number: int, again: Fingerprint) -> None:
        """Compare what is remembered of the second run with what is of the first."""
        if number >= len(self.log):
            raise self.differs(
                f"the first run ended after {len(self.log)} operations, the second went on with "
                f"{again.operation!r}"
            )
        if again != self.log[number]:
            raise self.differs(
                f"operation {number + 1} of {len(self.log)}: {self.log[number].difference(again)}"
            )

    def differs(self, how: str) -> RecomputationError:
        """Give the error for a second run that is not like the first."""
        return RecomputationError(
            f"recompute ran {self.name} again for backward, and it was not the same: {how}. The "
            "second run has to be like the first: let it read nothing that changes in between "
            "(buffers, counters, switches such as training), and draw random numbers from "
            f"optlab, with preserve_rng_state=True.{self.read_from_around}"
        )

    def again(self, arrays: Any, keeper: Comparing, made_at: int | None = None) -> Any:
        """Make the call a second time, with arrays that have stood since it was made."""
        writer = writes.writer_since(self.made_at if made_at is None else made_at, arrays)
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
                writes.stands_at(array, node.order)
        args, kwargs = self.build(parts)
        with saving.Keeping(keeper), grad_mode(True), self.as_before():
            returned = self.function(*args, **kwargs)
        keeper.check_complete()
        return returned

    @contextmanager
    def as_before(self) -> Iterator[None]:
        """Put back what the first run met: the random stream, what casts, what it writes to."""
        policy, halves.policy = halves.policy, self.policy
        recomputing.depth += 1
        recomputing.apart += 1
        try:
            with self.written.again(self.differs):
                if self.bookmark is None:
                    yield
                else:
                    with random.replayed(self.bookmark):
                        yield
        finally:
            halves.policy = policy
            recomputing.depth -= 1
            recomputing.apart -= 1


#: What backward says inside a first run.
INSIDE = (
    "backward reached what was computed inside a function that recompute runs, which kept nothing "
    "of it. Return it from that function, by itself or in a list, tuple or dict (other objects are "
    "not looked into), and call backward() outside; inside, take gradients by ol.grad."
)


class _Forgotten:
    """What an operation inside a recomputed function keeps: nothing."""

    values = ()

    def restored(self) -> tuple[Any, ...]:
        raise RuntimeError(INSIDE)


_FORGOTTEN = _Forgotten()


class Forgetting:
    """The keeper of a first run: it remembers what ran, and keeps nothing."""

    def __init__(self, twice: Twice) -> None:
        self.twice = twice
        self.outer = saving.innermost()
        #: Second runs of functions around this one.
        self.within: list[Comparing] = []
        around: Any = self.outer
        while around is not None:
            if isinstance(around, Comparing):
                self.within.append(around)
            around = getattr(around, "outer", None)

    def note(self, node: Node, values: Any) -> None:
        """Remember an operation; it may also be one of second runs around this one."""
        for one in self.within:
            one.check_unwritten(node, values)
        self.twice.note(node, values)

    def keep(self, node: Node, saved: Any, forward: Any, values: Any) -> Any:
        """Keep nothing."""
        self.note(node, values)
        return _FORGOTTEN


class Comparing:
    """Compares the second run with the first; what is saved is kept as it would be without."""

    def __init__(self, twice: Twice) -> None:
        self.twice = twice
        self.count = 0
        self.started = next(writes.clock)
        self.outer = saving.innermost()

    def keep(self, node: Node, saved: Any, forward: Any, values: Any) -> Any:
        """Compare, and keep."""
        self.check_unwritten(node, values)
        self.twice.check(self.count, node, values)
        self.count += 1
        return saved if self.outer is None else self.outer.keep(node, saved, forward, values)

    def check_unwritten(self, node: Node, values: Any) -> None:
        """Make sure that nobody wrote between the runs to what an operation reads."""
        first, ended = self.twice.made_at, self.twice.ended
        if writes.times.last_write < first:
            return
        for i, edge in enumerate(node.edges):
            leaf = None if edge is None else edge.source
            if leaf is not None and leaf.made_at < first < leaf.overwritten_at:
                raise node.overwritten(leaf.writer, leaf.name or "a Tensor", leaf.shape)
            record = writes.record_of(values[i]) if edge is None and i < len(values) else None
            if record is not None and ended < record.time < self.started:
                raise self.twice.differs(
                    f"operation {self.count + 1} of {len(self.twice.log)}: {node.operation.name!r} "
                    f"reads an array of shape {np.shape(values[i])} that {record.writer} has "
                    "written to since"
                )

    def check_complete(self) -> None:
        """Make sure that the second run did not end before the first."""
        log = self.twice.log
        if self.count < len(log):
            raise self.twice.differs(
                f"the second run ended after {self.count} operations, the first went on with "
                f"{log[self.count].operation!r}"
            )
