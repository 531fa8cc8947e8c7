"""The phases of a block plan that needs reductions of a whole array.

A rule that scales its step by a norm passes over the arrays twice: the first phase computes the
terms of the norm, block by block, and sums them; the second uses the norm. What the second phase
needs of the first is recomputed from the arrays in memory, since storing it would take an array of
the full length.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from optlab.plan.plan import Instruction, Place
from optlab.plan.reductions import Reduction


@dataclass
class Phase:
    """What is done to every block before the next phase begins.

    Attributes
    ----------
    inputs : dict of Place to str
        The contents of the arrays when the phase begins.
    instructions : list of Instruction
        On arrays, in order.
    outputs : dict of str to Place
        The contents of the arrays afterwards.
    reductions : list of Instruction
        Of the values after the instructions of a block.
    after : list of Instruction
        On single numbers, once after all blocks.
    """

    inputs: dict[Place, str]
    instructions: list[Instruction] = field(default_factory=list)
    outputs: dict[str, Place] = field(default_factory=dict)
    reductions: list[Instruction] = field(default_factory=list)
    after: list[Instruction] = field(default_factory=list)

    def keep(self, names: Iterator[str]) -> dict[str, Place]:
        """Add outputs for what is reduced and is in no array at the end, and return them."""
        kept: dict[str, Place] = {}
        for step in self.reductions:
            (place,) = step.reads()
            there = self.inputs.get(place)
            if place in self.outputs.values() or (there is not None and there not in self.outputs):
                continue
            kept[next(names)] = place
            self.outputs |= kept
        return kept

    def holder(self, place: Place) -> str:
        """Return the name of the array that holds a value after the instructions."""
        for name, output in self.outputs.items():
            if output == place:
                return name
        return self.inputs[place]


def is_reduction(step: Instruction) -> bool:
    """Return whether an instruction reduces a whole array to a number."""
    return isinstance(step.function, Reduction)


def divided(
    inputs: dict[Place, str], steps: list[Instruction], outputs: dict[str, Place]
) -> list[Phase]:
    """Divide instructions on arrays, and on reductions of arrays, into phases."""
    level = dict.fromkeys(inputs, 0)
    for step in steps:
        reads = [level.get(place, 0) for place in step.reads()]
        level[step.result] = max(reads, default=0) + is_reduction(step)
    count = 1 + max([level.get(place, 0) for place in outputs.values()], default=0)
    makes = {step.result: step for step in steps}
    early = {
        name: level[place]
        for name, place in outputs.items()
        if level[place] < count - 1 and place in makes
    }
    while True:
        phases = _with(inputs, steps, outputs, level, makes, early, count)
        old = {name: place for place, name in inputs.items()}
        too_early = [
            name
            for name, stored in early.items()
            if any(
                old[name] in _needs(phase, makes, phase.inputs) for phase in phases[stored + 1 :]
            )
        ]
        if not too_early:
            return phases
        for name in too_early:
            del early[name]


def _with(
    inputs: dict[Place, str],
    steps: list[Instruction],
    outputs: dict[str, Place],
    level: dict[Place, int],
    makes: dict[Place, Instruction],
    early: dict[str, int],
    count: int,
) -> list[Phase]:
    """Return the phases if these outputs are stored early."""
    phases = []
    holds = dict(inputs)
    for k in range(count):
        phase = Phase(dict(holds))
        last = k == count - 1
        phase.outputs = {
            name: place
            for name, place in outputs.items()
            if early.get(name, count - 1) == k and holds.get(place) != name
        }
        phase.reductions = [s for s in steps if is_reduction(s) and level[s.result] == k + 1]
        wanted = set(phase.outputs.values()).union(*(s.reads() for s in phase.reductions))
        needed = _closure(wanted, makes, phase.inputs)
        phase.instructions = [
            step
            for step in steps
            if step.result in needed and step.shape != () and not is_reduction(step)
        ]
        if not last:
            phase.after = [
                step
                for step in steps
                if step.shape == () and not is_reduction(step) and level[step.result] == k + 1
            ]
        for name, place in phase.outputs.items():
            holds = {p: n for p, n in holds.items() if n != name}
            holds[place] = name
        phases.append(phase)
    return phases


def _closure(
    wanted: set[Place], makes: dict[Place, Instruction], there: dict[Place, str]
) -> set[Place]:
    """Return the places to compute for the wanted ones, from what is available."""
    found: set[Place] = set()
    waiting = [place for place in wanted if place not in there]
    while waiting:
        place = waiting.pop()
        if place in found or place not in makes:
            continue
        found.add(place)
        if makes[place].shape != ():  # reductions are available from an earlier phase
            waiting += [other for other in makes[place].reads() if other not in there]
    return found


def _needs(phase: Phase, makes: dict[Place, Instruction], there: Any) -> set[Place]:
    """Return all places that the instructions of a phase read, and its outputs."""
    read = set(phase.outputs.values())
    return read.union(*(step.reads() for step in [*phase.instructions, *phase.reductions]))
