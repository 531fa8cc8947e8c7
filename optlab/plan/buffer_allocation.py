"""Allocation of the results of a block plan to memory, by liveness."""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.plan.passes import is_reduction
from optlab.plan.plan import Instruction, Place


class Layout:
    """The memory of every value of a block plan.

    A result takes the array of its output if the old values are not needed any more; else the
    scratch array of an operand that is used for the last time; else a free one.

    Parameters
    ----------
    inputs : dict of Place to str
        The arrays, by name.
    dtypes : dict of str to dtype
    instructions : list of Instruction
        On arrays, in order.
    outputs : dict of str to Place
        The value that each array gets.

    Attributes
    ----------
    where : dict of Place to str
        The name of the array or scratch array that holds a value.
    scratch : list of dtype
    copies : list of (str, str)
        Target and source of the copies at the end.
    """

    def __init__(
        self,
        inputs: dict[Place, str],
        dtypes: dict[str, Any],
        instructions: list[Instruction],
        outputs: dict[str, Place],
    ) -> None:
        self.where = {place: f"a_{name}" for place, name in inputs.items()}
        self.scratch: list[Any] = []
        self.copies: list[tuple[str, str]] = []
        self._free: list[int] = []
        self._last: dict[Place, int] = {}
        end = len(instructions)
        for i, step in enumerate(instructions):
            self._last.update(dict.fromkeys(step.reads(), i))
        self._last.update(dict.fromkeys(outputs.values(), end))
        self._dtypes = dtypes
        targets = {place: name for name, place in outputs.items() if place not in inputs}
        self._own = {name: place for place, name in inputs.items()}
        #: The index and instruction that give each array its new values.
        self._due = {
            targets[step.result]: (i, step)
            for i, step in enumerate(instructions)
            if step.result in targets
        }
        self._guests: dict[str, Place] = {}
        for i, step in enumerate(instructions):
            name = targets.get(step.result)
            may_alias = self._may_alias(step)
            self._release(i, may_alias)
            if is_reduction(step):
                continue
            if name is not None and self._is_done(self._own[name], i, may_alias):
                self.where[step.result] = f"a_{name}"
            else:
                self.where[step.result] = self._take(step, i, may_alias)
            self._release(i, step.reads() - may_alias)
        saved = []
        for name, place in outputs.items():
            source = self.where[place]
            if place in inputs and place != self._own[name] and inputs[place] in outputs:
                # Two arrays may swap: the moved values are saved first.
                self.scratch.append(dtypes[name])
                saved.append((f"t{len(self.scratch) - 1}", source))
                source = saved[-1][0]
            if source != f"a_{name}":
                self.copies.append((f"a_{name}", source))
        self.copies = saved + self.copies

    def rename(self, names: dict[str, str]) -> None:
        """Rename scratch arrays."""
        self.where = {place: names.get(name, name) for place, name in self.where.items()}
        self.copies = [(names.get(a, a), names.get(b, b)) for a, b in self.copies]

    @staticmethod
    def _may_alias(step: Instruction) -> set[Place]:
        """Return the operands whose memory the result may take.

        ``where`` fills its result in two passes; ``sign`` takes eight times as long in place.
        """
        if step.function is np.sign:
            return set()
        if step.function is np.where:
            other = step.arguments[2]
            return {other} if isinstance(other, Place) and other != step.arguments[1] else set()
        return step.reads()

    def _is_done(self, old: Place, i: int, may_alias: set[Place]) -> bool:
        """Return whether the old values of an array are unused after instruction `i`."""
        last = self._last.get(old, -1)
        return last < i or (last == i and old in may_alias)

    def _release(self, i: int, places: set[Place]) -> None:
        """Free the memory of operands that are used for the last time."""
        for place in sorted(places):
            name = self.where.get(place, "")  # numbers have no memory
            if self._last[place] != i:
                continue
            if name.startswith("t") and int(name[1:]) not in self._free:
                self._free.append(int(name[1:]))
            self._guests = {host: guest for host, guest in self._guests.items() if guest != place}

    def _take(self, step: Instruction, i: int, may_alias: set[Place]) -> str:
        """Return memory for a result: an array whose old values are done, or scratch."""
        last = self._last[step.result]
        for name, (due, when) in self._due.items():
            done = self._is_done(self._own[name], i, may_alias)
            leaves = last < due or (last == due and step.result in self._may_alias(when))
            fits = self._dtypes[name] == step.dtype
            if i < due and done and leaves and fits and name not in self._guests:
                self._guests[name] = step.result
                return f"a_{name}"
        for number in reversed(self._free):
            if self.scratch[number] == step.dtype:
                self._free.remove(number)
                return f"t{number}"
        self.scratch.append(step.dtype)
        return f"t{len(self.scratch) - 1}"
