"""Member loops as machine code: one compiled function for all steps of a block of members.

As for updates (`optlab.plan.executors`), it is compiled in a child process once that pays off, into
the cache on disk (`optlab.plan.numba_cache`), and loaded from there without numba. NumPy runs the
members until then, and wherever the bits differ: before a program is used, its results are compared
with NumPy's.
"""

from __future__ import annotations

import ctypes
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from optlab.plan.member_loops.numbers import Floats
from optlab.plan.member_loops.numpy_loop import NumpyLoop
from optlab.plan.member_loops.program import Op, Program, Ref, Variant
from optlab.plan.numba_cache import Kernel, kernel_of
from optlab.plan.numba_codegen import _ARITHMETIC, _CHOICES, _LOGIC, _TIES_TAKE_THE_BOUND
from optlab.plan.numba_kernels import same_bits

#: Members of a block, whose state stays in the L1 cache for all steps.
LANES = 256
#: The distance between the rows of a block: a few more, as powers of two meet in the cache.
_APART = LANES + 8
_LETTERS = {"coordinate": "x", "member": "m", "step": "s", "table": "g", "constant": "k"}
#: Sources of which is known how often they are used.
_MOST_SOURCES = 128
_FORMS = {function: form for function, (form, _) in _ARITHMETIC.items()} | _CHOICES


def can_compile(program: Program) -> bool:
    """Return whether machine code gives NumPy's bits."""
    return not program.inexact


class MachineCode:
    """A program as source, and what is known of its machine code.

    Attributes
    ----------
    source : str
    constants : array
        What the source reads them from; programs that differ in them alone share machine code.
    shared : SharedCode
        What is known of the source, by all programs with it.
    """

    def __init__(self, program: Program) -> None:
        writer = _Writer(program)
        self.program = program
        self.source = writer.source
        self.constants = np.array(writer.constants, np.float64)
        self.shared = _shared_by(self.source, len(program.tables))

    @cached_property
    def loop(self) -> NumbaLoop:
        """The loop of a kernel that is loaded."""
        return NumbaLoop(self.program, self.shared.kernel, self.constants)

    def agrees(self) -> bool:
        """Return whether a kernel that is loaded has NumPy's bits; compare them once."""
        if self.shared.agrees is None:
            self.shared.agrees = _agrees_with_numpy(self.loop)
        return self.shared.agrees


class SharedCode:
    """The kernel of a source, and what is known of it.

    Attributes
    ----------
    kernel : Kernel
    worked : int
        Operations on numbers that programs with this source have had to do so far.
    agrees : bool or None
        Whether it gives NumPy's bits; None before it is known.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.worked = 0
        self.agrees: bool | None = None


#: By source, those used last at the end.
_known: dict[str, SharedCode] = {}


def _shared_by(source: str, tables: int) -> SharedCode:
    found = _known.pop(source, None)
    if found is None:
        arrays = ["float64*", "int64*", "float64*", "int64*", "float64*", "int64*"]
        arrays += ["float64*", "float64*", *["float64*", "int64*"] * tables]
        found = SharedCode(kernel_of(source, [*["int64"] * (4 + 2 * tables), *arrays]))
        if len(_known) >= _MOST_SOURCES:
            del _known[next(iter(_known))]
    _known[source] = found
    return found


class NumbaLoop:
    """A program as a compiled function.

    Parameters
    ----------
    program : Program
    kernel : Kernel
        That of its source; loaded.
    constants : array
        Those that the source reads.
    """

    def __init__(self, program: Program, kernel: Kernel, constants: Floats) -> None:
        assert kernel.function is not None
        self.program = program
        self.kernel = kernel
        self.constants = constants
        numbers = [_stacked(program.member_numbers), _stacked(program.step_numbers)]
        tables = [array for pair in program.tables for array in pair]
        self._kept = [constants, program.kinds, *numbers, *tables]
        widths = [rows.shape[1] for rows, _ in program.tables]
        lengths = [len(columns) for _, columns in program.tables]
        self._sizes = [program.steps, numbers[0].shape[1], *widths, *lengths]

    def run(self, states: Floats, first: int) -> Any:
        """Run all steps of the members from `first` on, as `NumpyLoop.run` does."""
        stopped = np.full(states.shape[1], -1, np.int64)
        own = np.ascontiguousarray(states)
        height = self.program.height + len(self.program.member_numbers) + 1
        tables = len(self.program.tables)
        memory = np.empty((height + tables) * _APART)
        places = np.empty(max(1, tables) * LANES, np.int64)
        arrays = [own, stopped, memory, places, *self._kept]
        self.kernel.function(  # type: ignore[misc]
            ctypes.byref(ctypes.c_int64()), None, own.shape[1], first, *self._sizes,
            *(array.ctypes.data for array in arrays),
        )  # fmt: skip
        if own is not states:
            states[...] = own
        return stopped


def _stacked(arrays: list[Floats]) -> Floats:
    return np.stack(arrays) if arrays else np.empty((0, 0))


def _agrees_with_numpy(loop: NumbaLoop) -> bool:
    """Return whether a loop gives NumPy's bits.

    It takes two steps of each kind, from states that are positive, and of both signs.
    """
    program = loop.program
    firsts = [int(np.argmax(program.kinds == kind)) for kind in np.unique(program.kinds)]
    chosen = [*firsts, *firsts]
    few = replace(
        program,
        kinds=program.kinds[chosen],
        step_numbers=[x[chosen] for x in program.step_numbers],
        tables=[(rows[chosen], columns) for rows, columns in program.tables],
    )
    lengths = [len(x) for x in program.member_numbers]
    lengths += [len(columns) for _, columns in program.tables]
    count = min([LANES + 37, *lengths])
    draw = np.random.default_rng(0)
    for sign in (np.positive, np.absolute):
        values = draw.standard_normal((program.height, count))
        values *= 10.0 ** draw.integers(-6, 3, values.shape)
        special = draw.random(values.shape) < 0.125
        values[special] = draw.choice([0.0, -0.0, 1.0, -1.0, 0.5, 1e-320], special.sum())
        found = []
        for one in (NumpyLoop(few), NumbaLoop(few, loop.kernel, loop.constants)):
            states = sign(values)
            stopped = one.run(states, 0)
            # What a member that has stopped has in its state means nothing.
            found.append((stopped, states[:, stopped < 0]))
        (stopped, expected), (also, got) = found
        if not np.array_equal(stopped, also) or not same_bits(expected, got):
            return False
    return True


class _Writer:
    """Writes a program as Python that numba compiles: the innermost loop runs over members.

    All memory of a block is one array, of which slices are taken: so LLVM knows what does not
    overlap, and that no index is negative, and vectorizes the loop. What a table has for a member
    is picked in a loop of its own, as it would keep the other from that.

    Attributes
    ----------
    constants : list of float
        Of the program, in the order in which the source reads them; it has whole numbers itself.
        So rules with other settings share one source.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.height = program.height
        self.members = len(program.member_numbers)
        self.constants: list[float] = []
        self.source = self._written()

    def _written(self) -> str:
        program = self.program
        tables = range(len(program.tables))
        widths = "".join(f", w{k}" for k in tables) + "".join(f", n{k}" for k in tables)
        pointers = "".join(f", p_t{k}, p_c{k}" for k in tables)
        first_table = self.height + self.members
        slots = first_table + len(tables) + 1
        loops: list[str] = []
        for number, variant in enumerate(program.variants):
            last = number == len(program.variants) - 1
            if len(program.variants) > 1:
                word = "else" if last else f"{'el' * (number > 0)}if kinds[t] == {number}"
                loops.append(f"            {word}:")
                loops += [f"    {line}" for line in self._variant(variant)]
            else:
                loops += self._variant(variant)
        arrays = "p_states, p_stopped, p_memory, p_places, p_constants, p_kinds"
        arrays += ", p_members, p_scalars"
        lines = [
            f"def kernel(count, first, steps, total{widths}, {arrays}{pointers}):",
            f"    states = carray(p_states, ({self.height}, count))",
            "    stopped = carray(p_stopped, count)",
            f"    memory = carray(p_memory, {slots * _APART})",
            "    kinds = carray(p_kinds, steps)",
            f"    members = carray(p_members, ({self.members}, total))",
            f"    scalars = carray(p_scalars, ({len(program.step_numbers)}, steps))",
            f"    constants = carray(p_constants, {len(self.constants)})",
            *(f"    t{k} = carray(p_t{k}, (steps, w{k}))" for k in tables),
            *(f"    c{k} = carray(p_c{k}, n{k})" for k in tables),
            f"    places = carray(p_places, {max(1, len(tables)) * LANES})",
            *(f"    i{k} = places[{k * LANES}:{k * LANES + LANES}]" for k in tables),
            *(f"    b{i} = memory[{i * _APART}:{i * _APART + LANES}]" for i in range(slots)),
            f"    value = b{slots - 1}",
            *(f"    k{i} = constants[{i}]" for i in range(len(self.constants))),
            f"    for start in range(0, count, {LANES}):",
            f"        size = min({LANES}, count - start)",
            f"        for i in range({LANES}):",
            "            j = start + min(i, size - 1)",
            *(f"            b{r}[i] = states[{r}, j]" for r in range(self.height)),
            *(
                f"            b{self.height + m}[i] = members[{m}, first + j]"
                for m in range(self.members)
            ),
            *(f"            i{k}[i] = c{k}[first + j]" for k in tables),
            "        running = size",
            "        for t in range(steps):",
            "            fault = False",
            *loops,
            "            if fault:",
            "                for i in range(size):",
            "                    if stopped[start + i] < 0 and not (abs(value[i]) < np.inf):",
            "                        stopped[start + i] = t",
            "                        running -= 1",
            "                if running == 0:",
            "                    break",
            "        for i in range(size):",
            *(f"            states[{r}, start + i] = b{r}[i]" for r in range(self.height)),
            "    return 0",
        ]
        return "\n".join(lines) + "\n"

    def _variant(self, variant: Variant) -> list[str]:
        used = {x for op in variant.ops for x in op.operands if isinstance(x, Ref)}
        used |= {x for x in (variant.value, *variant.new) if isinstance(x, Ref)}
        steps = sorted({x.number for x in used if x.kind == "step"})
        tables = sorted({x.number for x in used if x.kind == "table"})
        members = sorted({x.number for x in used if x.kind == "member"})
        first_table = self.height + self.members
        lines = [f"            s{i} = scalars[{i}, t]" for i in steps]
        for k in tables:
            lines += [
                f"            r{k} = t{k}[t]",
                f"            for i in range({LANES}):",
                f"                b{first_table + k}[i] = r{k}[i{k}[i]]",
            ]
        lines.append(f"            for i in range({LANES}):")
        body = [f"x{r} = b{r}[i]" for r in range(self.height)]
        body += [f"m{i} = b{self.height + i}[i]" for i in members]
        body += [f"g{k} = b{first_table + k}[i]" for k in tables]
        for op in variant.ops:
            body += self._op(op._replace(operands=tuple(map(self._lifted, op.operands))))
        value = self._operand(variant.value, 0)
        body += [f"loss = {value}", "value[i] = loss", "fault |= not (abs(loss) < np.inf)"]
        for state, place, new in zip(
            self.program.states, self.program.rows, variant.new, strict=True
        ):
            for d in range(self.program.dimension if state.wide else 1):
                text = self._operand(new, d)
                if text != f"x{place.start + d}":
                    body.append(f"b{place.start + d}[i] = {text}")
        return [*lines, *(f"                {line}" for line in body)]

    def _lifted(self, x: Any) -> Any:
        """Return a constant as a reference to those that the source reads, if it is one of them."""
        if not isinstance(x, float) or x.is_integer() or not np.isfinite(x):
            return x
        self.constants.append(float(x))
        return Ref("constant", len(self.constants) - 1)

    def _op(self, op: Op) -> list[str]:
        if op.function == "join":
            return [
                f"v{op.result.number}_{d} = {self._operand(x, d)}"
                for d, x in enumerate(op.operands)
            ]
        if isinstance(op.function, tuple):
            return [f"v{op.result.number} = {self._operand(op.operands[0], op.function[1])}"]
        copies = range(self.program.dimension) if op.result.wide else [0]
        return [f"{self._operand(op.result, d)} = {self._formula(op, d)}" for d in copies]

    def _formula(self, op: Op, d: int) -> str:
        given = [self._operand(x, d) for x in op.operands]
        if op.function is np.where:
            return f"{given[1]} if {given[0]} else {given[2]}"
        if op.function is np.clip:
            x, low, high = given
            if _TIES_TAKE_THE_BOUND:
                raised = f"({x} if {x} > {low} or {x} != {x} else {low})"
                return f"{raised} if {raised} < {high} or {raised} != {raised} else {high}"
            raised = f"({low} if {x} < {low} else {x})"
            return f"{high} if {raised} > {high} else {raised}"
        form = _FORMS.get(op.function) or _LOGIC[op.function]
        return form.format(*given, one="1.0", zero="0.0", inf="np.inf")

    def _operand(self, x: Any, d: int) -> str:
        if not isinstance(x, Ref):
            if isinstance(x, (bool, np.bool_)):
                return repr(bool(x))
            x = float(x)
            text = repr(abs(x)) if np.isfinite(x) else f"np.{abs(x)!r}"
            return f"(-{text})" if np.signbit(x) else text
        if x.kind == "value":
            return f"v{x.number}_{d}" if x.wide else f"v{x.number}"
        if x.kind == "state":
            return f"x{self.program.rows[x.number].start + d * x.wide}"
        return _LETTERS[x.kind] + str(x.number)
