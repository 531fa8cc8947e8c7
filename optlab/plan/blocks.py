"""Block plans: an elementwise function, captured once and replayed over blocks that fit a cache.

An update of ten million parameters in NumPy passes through memory once per operation. Replayed over
blocks of some ten thousand elements, it passes through memory once per array: intermediate values
are written to scratch arrays that stay in the cache, and results replace the old values as soon as
these are not needed any more. The numbers are the same to the bit, because every element goes
through the same operations. `block_capture` captures functions for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Any, Protocol

import numpy as np

from optlab.plan import sizes
from optlab.plan.buffer_allocation import Layout
from optlab.plan.passes import Phase, divided
from optlab.plan.plan import Instruction, Place, needed
from optlab.plan.progress import Call, Progress
from optlab.plan.reductions import Reduction
from optlab.plan.scratch import scratch

#: Operators of a plan as functions of arrays.
UFUNCS: dict[str, Any] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.divide,
    "mod": np.remainder, "neg": np.negative, "lt": np.less, "le": np.less_equal,
    "gt": np.greater, "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal,
    "and": np.bitwise_and, "or": np.bitwise_or,
}  # fmt: skip

#: Functions whose `out` NumPy wants by name; by position it is faster.
_BY_NAME = (np.maximum, np.minimum)

_SYMBOLS = {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "pow": "**"}


class RunsBlock(Protocol):
    """Runs a phase on a block, and returns the block's part of each reduction."""

    def __call__(self, arrays: Sequence[Any], progress: Progress | None = None) -> list[Any]:
        """Run on the arrays of a block; with a record, go on from what was done of it."""


class BlockPlan:
    """An elementwise function of arrays and numbers that runs in place, block by block.

    If it needs a reduction of a whole array (a norm), it passes over the blocks in several phases;
    see `optlab.plan.passes`.

    Attributes
    ----------
    arrays : list of str
        The arrays that it is called with, in order.
    numbers : list of str
        The Python floats that may differ between calls, in order.
    prepare : callable
        Maps the numbers to what is computed from them, once per call.
    phases : list of Phase
        What is done to the blocks between two reductions.
    runs : list of callable
        One per phase: takes the arrays of a block, kept arrays, scratch arrays, and the results of
        `prepare` and the functions of `afters`; writes in place.
    calls : list of callable
        One per phase: takes what a function of `runs` takes, and returns its calls in place of
        making them, for `optlab.plan.progress`.
    afters : list of callable
        One per phase but the last: maps the sums of `parts` and what was prepared to the prepared
        numbers of the next phase.
    kept : list of dtype
        Of the block-length arrays that hold what is reduced after a phase.
    scratch : list of dtype
        Of the scratch arrays.
    source : str
        The source of all these functions.
    outputs : dict of str to Place
        The value that each array gets.
    instructions, sums : list of Instruction
        On arrays, and on the numbers alone, in order.
    repeats : callable
        Runs the function again on examples, and returns whether it still does what was captured: it
        may read a variable whose value has changed.
    """

    repeats: Callable[[], bool]

    def __init__(
        self,
        arrays: Mapping[str, Any],
        numbers: list[str],
        instructions: list[Instruction],
        outputs: dict[str, Any],
    ) -> None:
        self.arrays, self.numbers, self.outputs = list(arrays), numbers, outputs
        kept = needed(instructions, tuple(outputs.values()))
        self.instructions = [step for step in kept if step.shape is not None]
        self._constants: dict[str, Any] = {}
        #: State of `optlab.plan.executors`: work done so far, the machine loops that are on their
        #: way, and those that run (False: none will).
        self.worked = 0
        self.loops_wanted: Any = None
        self.loops: Any = None
        #: Runs the plan on rows, the members of an ensemble (`optlab.plan.members.blocks`).
        self.rows: Any = None
        dtypes = {name: value.dtype for name, value in arrays.items()}
        places = {Place(i): name for i, name in enumerate(self.arrays)}
        self.dtypes = {place: dtypes[name] for place, name in places.items()}
        self.dtypes |= {step.result: step.dtype for step in kept}
        self.phases = phases = divided(places, self.instructions, outputs)
        memory: dict[str, Place] = {}
        names = (_unused(f"kept{i}", self.arrays) for i in count())
        for phase in phases:
            memory |= phase.keep(names)
        dtypes |= {name: self.dtypes[place] for name, place in memory.items()}
        self.kept = [dtypes[name] for name in memory]
        #: The arrays of a block and the kept ones, by name, in the order of the functions.
        self.held = [*self.arrays, *memory]
        first = len(self.arrays)
        self._named = {Place(first + i): f"n{i}" for i in range(len(numbers))}
        self.dtypes |= dict.fromkeys(self._named, float)
        self.sums = sums = [step for step in kept if step.shape is None]
        self._named |= {step.result: f"s{i}" for i, step in enumerate(sums)}
        parts = [self._prepare_source(sums)]
        # Kept memory is empty at first: a place that no instruction reads.
        empty = {Place(-1 - i): name for i, name in enumerate(memory)}
        layouts = [
            Layout(phase.inputs | empty, dtypes, phase.instructions, phase.outputs)
            for phase in phases
        ]
        self.scratch: list[Any] = []
        for layout in layouts:
            self.scratch = _common(self.scratch, layout)
        #: The arguments of each phase after the arrays, in order.
        self.prepared: list[list[Place]] = []
        calls: list[str] = []
        for number, (phase, layout) in enumerate(zip(phases, layouts, strict=True)):
            self.prepared.append(list(self._named))
            parts.append(self._run_source(number, phase, layout))
            calls.append(self._calls_source(number, phase, layout))
            if number < len(phases) - 1:
                parts.append(self._after_source(number, phase))
        self.source = "\n".join(parts)
        scope = dict(self._constants)
        exec(compile("\n".join([self.source, *calls]), "<optlab block plan>", "exec"), scope)
        self.prepare: Callable[..., Any] = scope["prepare"]
        self.runs: list[Callable[..., Any]] = [scope[f"run{i}"] for i in range(len(phases))]
        self.calls: list[Callable[..., Any]] = [scope[f"calls{i}"] for i in range(len(phases))]
        self.afters: list[Callable[..., Any]] = [scope[f"after{i}"] for i in range(len(phases) - 1)]
        self._partials = [
            [
                (step.function.partial, self.held.index(phase.holder(*step.reads())))
                for step in phase.reductions
                if isinstance(step.function, Reduction)
            ]
            for phase in phases
        ]

    @property
    def block(self) -> int:
        """The number of elements of a block."""
        return sizes.BLOCK

    def phase(self, number: int, prepared: Sequence[Any]) -> RunsBlock:
        """Return the function that runs a phase on a block, and returns its part of each reduction.

        It takes the arrays of the block, and a record to go on from after an exception.
        """
        calls, dtypes = self.calls[number], [*self.kept, *self.scratch]
        partials = self._partials[number]

        def block(arrays: Sequence[Any], progress: Progress | None = None) -> list[Any]:
            progress = progress or Progress()
            memory = scratch(dtypes, len(arrays[0]))
            made = calls(*arrays, *memory, *prepared)
            if not partials:
                progress.do(made)
                return []
            # Together: the memory would be another one after an exception.
            held = (*arrays, *memory)
            results = progress.do((*made, *[(reduce, held[place]) for reduce, place in partials]))
            return results[-len(partials) :]

        return block

    def reductions(self, number: int, held: Sequence[Any]) -> list[Call]:
        """Return the calls that reduce a block, after the instructions of a phase."""
        return [(partial, held[place]) for partial, place in self._partials[number]]

    def __repr__(self) -> str:
        return f"<BlockPlan of {len(self.instructions)} operations, {len(self.scratch)} scratch>"

    def __str__(self) -> str:
        return self.source

    def _prepare_source(self, sums: list[Instruction]) -> str:
        given = [f"n{i}" for i in range(len(self.numbers))]
        lines = [f"def prepare({', '.join(given)}):"]
        for step in sums:
            args = [self._name(x) for x in step.arguments]
            text = f" {_SYMBOLS[step.name]} ".join(args) if len(args) == 2 else f"-{args[0]}"
            lines.append(f"    {self._named[step.result]} = {text}")
        lines.append(f"    return {_tuple_of(self._named.values())}")
        return "\n".join(lines) + "\n"

    def _run_source(self, number: int, phase: Phase, layout: Layout) -> str:
        lines = [f"def run{number}({self._parameters()}):"]
        for function, args, options in self._operations(phase, layout):
            lines.append(f"    {self._name(function)}({', '.join([*args, *options])})")
        return "\n".join(lines if len(lines) > 1 else [*lines, "    pass"]) + "\n"

    def _calls_source(self, number: int, phase: Phase, layout: Layout) -> str:
        """Return the source of a function that returns the calls of `_run_source`, not made yet."""
        calls = []
        for function, args, options in self._operations(phase, layout):
            name = self._name(function)
            if isinstance(function, np.ufunc) and function not in _BY_NAME and len(options) == 1:
                calls.append(f"({name}, {', '.join(args)}, {options[0].removeprefix('out=')})")
            elif options:
                calls.append(f"({self._name(partial)}({', '.join([name, *args, *options])}),)")
            else:
                calls.append(f"({name}, {', '.join(args)})")
        return f"def calls{number}({self._parameters()}):\n    return {_tuple_of(calls)}\n"

    def _parameters(self) -> str:
        """Return the parameters of the functions that run a phase."""
        memory = [f"a_{name}" for name in self.held]
        memory += [f"t{i}" for i in range(len(self.scratch))]
        return ", ".join([*memory, *self._named.values()])

    def _operations(
        self, phase: Phase, layout: Layout
    ) -> Iterator[tuple[Any, list[str], list[str]]]:
        """Yield what a phase does to a block: functions, arguments and options, as source."""
        for step in phase.instructions:
            args = [self._name(x, layout) for x in step.arguments]
            out = layout.where[step.result]
            if step.function is np.where:
                condition, chosen, other = args
                if other != out:
                    yield np.copyto, [out, other], []
                yield np.copyto, [out, chosen], [f"where={condition}"]
            elif step.function is np.astype:
                yield np.copyto, [out, args[0]], ["casting='unsafe'"]
            else:
                options = [f"{name}={self._name(x, layout)}" for name, x in step.keywords]
                yield step.function or UFUNCS[step.name], args, [*options, f"out={out}"]
        for target, source in layout.copies:
            yield np.copyto, [target, source], []

    def _after_source(self, number: int, phase: Phase) -> str:
        """Return the source of what runs between two phases, and name its numbers."""
        before = list(self._named.values())
        totals = [f"r{step.result.number}" for step in phase.reductions]
        lines = [f"def after{number}({', '.join([*totals, *before])}):"]
        for step, total in zip(phase.reductions, totals, strict=True):
            assert isinstance(step.function, Reduction)
            self._named[step.result] = name = f"m{step.result.number}"
            finish = self._name(step.function.finish)
            lines.append(f"    {name} = {finish}({total}, {self._name(step.dtype)})")
        for step in phase.after:
            self._named[step.result] = name = f"m{step.result.number}"
            lines.append(
                f"    {name} = {self._call(step, [self._name(x) for x in step.arguments])}"
            )
        return "\n".join([*lines, f"    return {_tuple_of(self._named.values())}"]) + "\n"

    def _call(self, step: Instruction, args: list[str]) -> str:
        """Return the source of a call on single numbers."""
        options = [f"{name}={self._name(x)}" for name, x in step.keywords]
        function = step.function or UFUNCS[step.name]
        return f"{self._name(function)}({', '.join(args + options)})"

    def _name(self, value: Any, layout: Layout | None = None) -> str:
        if isinstance(value, Place):
            if value in self._named:
                return self._named[value]
            assert layout is not None
            return layout.where[value]
        if type(value) in (int, float, bool):
            text = repr(value)
            if text.lstrip("-")[0].isdigit() or isinstance(value, bool):
                return f"({text})" if text.startswith("-") else text
        for name, known in self._constants.items():
            if known is value:
                return name
        label = getattr(value, "__name__", "")
        name = label if label.isidentifier() and label not in self._constants else ""
        name = name or f"c{len(self._constants)}"
        self._constants[name] = value
        return name


def _tuple_of(names: Any) -> str:
    """Return the source of a tuple of variables."""
    return f"({''.join(f'{name}, ' for name in names)})"


def _unused(name: str, taken: Sequence[str]) -> str:
    return name if name not in taken else _unused(f"{name}_", taken)


def _common(scratch: list[Any], layout: Layout) -> list[Any]:
    """Return scratch arrays that another phase shares, whose arrays are renamed to them."""
    merged, taken = list(scratch), set()
    names = {}
    for number, dtype in enumerate(layout.scratch):
        place = next(
            (i for i, kind in enumerate(merged) if kind == dtype and i not in taken), len(merged)
        )
        if place == len(merged):
            merged.append(dtype)
        taken.add(place)
        names[f"t{number}"] = f"t{place}"
    layout.rename(names)
    return merged
