"""Member loops by NumPy: each operation for a block of members, into memory that stays in cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from optlab.plan.member_loops.numbers import Floats
from optlab.plan.member_loops.program import Op, Program, Ref, Variant

#: The most members of a block: fewer cost more in calls, more do not fit the cache.
BLOCK = 12288
#: Steps between two looks whether all members of a block have stopped.
_LOOK = 32


class NumpyLoop:
    """A program as calls of NumPy's functions.

    Attributes
    ----------
    sources : list of str
        One function for each variant.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        writers = [_Writer(program, variant) for variant in program.variants]
        self.sources = [writer.source for writer in writers]
        self._codes = [compile(source, "<optlab member loop>", "exec") for source in self.sources]
        self._writers = writers
        columns: list[list[Any]] = [array.tolist() for array in program.step_numbers]
        self._scalars: list[Any] = []
        kinds = program.kinds.tolist()
        used = [[columns[i] for i in writer.step_numbers] for writer in writers]
        rows = [list(zip(*some, strict=True)) if some else None for some in used]
        empty: tuple[Any, ...] = ()
        self._steps = [
            (kind, rows[kind][t] if rows[kind] else empty) for t, kind in enumerate(kinds)
        ]

    def run(self, states: Floats, first: int) -> Any:
        """Run all steps of the members from `first` on, whose states are the columns, in place.

        Returns the step at which the loss of each was no longer finite, or -1. What such a member
        has in its state then means nothing.
        """
        count = states.shape[1]
        stopped = np.full(count, -1)
        blocks = -(-count // BLOCK)
        for i in range(blocks):
            start, stop = i * count // blocks, (i + 1) * count // blocks
            self._run_block(states[:, start:stop], first + start, stopped[start:stop])
        return stopped

    def _run_block(self, states: Floats, first: int, stopped: Any) -> None:
        program = self.program
        count = states.shape[1]
        own = np.ascontiguousarray(states)
        place = slice(first, first + count)
        memory: dict[Any, Any] = {}
        tables = [(rows, np.ascontiguousarray(columns[place])) for rows, columns in program.tables]
        members = [np.ascontiguousarray(array[place]) for array in program.member_numbers]
        found = np.empty(len(tables) * count).reshape(len(tables), count)
        functions = [
            writer.bind(code, own, members, found, memory)
            for writer, code in zip(self._writers, self._codes, strict=True)
        ]
        finite = np.empty(count, np.bool_)
        isfinite, every = np.isfinite, np.logical_and.reduce
        with np.errstate(all="ignore"):
            for t, (kind, scalars) in enumerate(self._steps):
                for row, (values, columns) in zip(found, tables, strict=True):
                    np.take(values[t], columns, out=row, mode="clip")
                step, value = functions[kind]
                step(*scalars)
                isfinite(value, out=finite)
                if not every(finite):
                    stopped[(stopped < 0) & ~finite] = t
                    if t % _LOOK == 0 and every(stopped >= 0):
                        break
        states[...] = own


class _Writer:
    """Writes the operations of a variant as calls with memory for each result."""

    def __init__(self, program: Program, variant: Variant) -> None:
        self.program = program
        self.variant = variant
        self.step_numbers = sorted(
            {x.number for op in variant.ops for x in _refs(op.operands) if x.kind == "step"}
            | {x.number for x in _refs(variant.new) if x.kind == "step"}
        )
        self._names: dict[Any, str] = {}
        self._where: dict[Ref, str] = {}
        self._buffers: list[tuple[str, bool, Any]] = []
        self._free: dict[Any, list[str]] = {}
        self._held: dict[str, Any] = {}
        self._lines: list[str] = []
        self._write()
        given = ", ".join(f"s{i}" for i in self.step_numbers)
        body = "\n".join(f"    {line}" for line in self._lines) or "    pass"
        self.source = f"def step({given}):\n{body}\n"

    def bind(
        self, code: Any, states: Floats, members: list[Any], tables: Floats, memory: dict[Any, Any]
    ) -> tuple[Callable[..., None], Any]:
        """Return the function of a step over this memory, and the array of the losses."""
        rows = self.program.rows
        scope: dict[str, Any] = {name: function for function, name in self._names.items()}
        for i, (state, place) in enumerate(zip(self.program.states, rows, strict=True)):
            scope[f"a{i}"] = states[place] if state.wide else states[place.start]
        scope |= {f"x{i}": states[i] for i in range(len(states))}
        scope |= {f"m{i}": array for i, array in enumerate(members)}
        scope |= {f"g{i}": row for i, row in enumerate(tables)}
        count = states.shape[1]
        for name, wide, dtype in self._buffers:
            if name not in memory:
                shape = (self.program.dimension, count) if wide else (count,)
                memory[name] = np.empty(shape, dtype)
            scope[name] = memory[name]
            if wide:
                scope |= {f"{name}_{d}": memory[name][d] for d in range(self.program.dimension)}
        value = memory.setdefault("value", np.empty(count))
        scope["value"] = value
        exec(code, scope)
        return scope["step"], value

    def _write(self) -> None:
        variant, states = self.variant, self.program.states
        self._last: dict[Ref, int] = {}
        for i, op in enumerate(variant.ops):
            self._last.update(dict.fromkeys(_refs(op.operands), i))
        last = len(variant.ops)
        self._last.update(dict.fromkeys(_refs([variant.value, *variant.new]), last))
        last_of_state = [
            max((self._last.get(ref, -1) for ref in self._reads_of(i)), default=-1)
            for i in range(len(states))
        ]
        targets: dict[Ref, int] = {}
        for i, new in enumerate(variant.new):
            if isinstance(new, Ref) and new.kind == "value" and new not in targets:
                targets[new] = i
        self._joins = {
            x: (op.result, d)
            for op in variant.ops
            if op.function == "join"
            for d, x in enumerate(op.operands)
            if isinstance(x, Ref) and x.kind == "value" and op.operands.count(x) == 1
        }
        copies = []
        for i, op in enumerate(variant.ops):
            target = targets.get(op.result)
            # A state is overwritten once its old value is read no more.
            # A selection is written in two calls, so that no operand may be its result.
            end = i - (op.function is np.where)
            in_place = target is not None and last_of_state[target] <= end
            out = f"a{target}" if in_place and op.function != "join" else self._memory(op, i)
            self._where[op.result] = out
            if target is not None and out != f"a{target}":
                copies.append((f"a{target}", out))
            self._call(op, out)
            self._release(op, i)
        if self._where.get(variant.value) != "value":
            self._lines.append(f"{self._name(np.copyto)}(value, {self._text(variant.value)})")
        done = {targets[x] for x in targets}
        for i, new in enumerate(variant.new):
            same = isinstance(new, Ref) and new.kind == "state" and new.number == i
            if i not in done and not same:
                copies.append((f"a{i}", self._text(new)))
        if len(copies) > 1:
            # A copy must not overwrite what a later one reads.
            copies = self._staged(copies)
        for target_name, source in copies:
            self._lines.append(f"{self._name(np.copyto)}({target_name}, {source})")

    def _staged(self, copies: list[tuple[str, str]]) -> list[tuple[str, str]]:
        written = {target for target, _ in copies}
        first, second = [], []
        for target, source in copies:
            if source in written or source.startswith("x"):
                i = int(target[1:])
                name = self._new_buffer(self.program.states[i].wide, np.dtype(np.float64))
                first.append((name, source))
                second.append((target, name))
            else:
                second.append((target, source))
        return first + second

    def _reads_of(self, state: int) -> list[Ref]:
        """Return the references that read an old state."""
        wide = self.program.states[state].wide
        place = self.program.rows[state]
        rows = [Ref("coordinate", row) for row in range(place.start, place.stop)] if wide else []
        return [Ref("state", state, wide), *rows]

    def _memory(self, op: Op, i: int) -> str:
        """Return the name of memory for a result."""
        if op.result == self.variant.value:
            return "value"
        if op.result in self._joins:
            whole, d = self._joins[op.result]
            if whole not in self._where:
                self._where[whole] = self._take(True, np.dtype(np.float64))
            return f"{self._where[whole]}_{d}"
        if op.result in self._where:
            return self._where[op.result]
        wide = op.result.wide
        # Elementwise: a result may overwrite an operand that is read for the last time.
        allowed = op.operands if op.function is not np.where else op.operands[2:]
        for x in _refs(allowed):
            name = self._where.get(x, "")
            reusable = name in self._held and self._held[name] == (wide, op.dtype)
            if reusable and x.wide == wide and self._last[x] == i and op.function != "join":
                if op.function is np.where and x in op.operands[:2]:
                    continue
                return name
        return self._take(wide, op.dtype)

    def _take(self, wide: bool, dtype: Any) -> str:
        free = self._free.get((wide, dtype))
        if free:
            return free.pop()
        return self._new_buffer(wide, dtype)

    def _new_buffer(self, wide: bool, dtype: Any) -> str:
        kind = f"{'w' if wide else 'r'}{'b' if dtype == np.bool_ else ''}"
        number = sum(name.startswith(f"{kind}_") for name, *_ in self._buffers)
        name = f"{kind}_{number}_"
        self._buffers.append((name, wide, dtype))
        self._held[name] = (wide, dtype)
        return name

    def _release(self, op: Op, i: int) -> None:
        """Free the memory of operands that are read no more."""
        kept = self._where[op.result]
        for x in set(_refs(op.operands)):
            name = self._where.get(x, "")
            if self._last[x] == i and name in self._held and name != kept:
                self._free.setdefault(self._held[name], []).append(name)

    def _call(self, op: Op, out: str) -> None:
        given = [self._text(x) for x in op.operands]
        if op.function == "join":
            for d, (x, text) in enumerate(zip(op.operands, given, strict=True)):
                if not (isinstance(x, Ref) and self._joins.get(x, (None,))[0] == op.result):
                    self._lines.append(f"{self._name(np.copyto)}({out}_{d}, {text})")
        elif isinstance(op.function, tuple):
            whole = self._where[op.operands[0]]
            part = (
                f"{whole}_{op.function[1]}" if whole in self._held else f"{whole}[{op.function[1]}]"
            )
            self._lines.append(f"{self._name(np.copyto)}({out}, {part})")
        elif op.function is np.where:
            condition, chosen, other = given
            if other != out:
                self._lines.append(f"{self._name(np.copyto)}({out}, {other})")
            self._lines.append(f"{self._name(np.copyto)}({out}, {chosen}, where={condition})")
        else:
            name = self._name(op.function)
            by_name = op.function in (np.maximum, np.minimum, np.clip)
            self._lines.append(f"{name}({', '.join(given)}, {'out=' * by_name}{out})")

    def _text(self, x: Any) -> str:
        if not isinstance(x, Ref):
            return repr(x) if np.isfinite(x) else f"float('{x!r}')"
        if x.kind == "value":
            return self._where[x]
        return {"state": "a", "coordinate": "x", "member": "m", "step": "s", "table": "g"}[
            x.kind
        ] + str(x.number)

    def _name(self, function: Any) -> str:
        return self._names.setdefault(function, function.__name__)


def _refs(values: Any) -> list[Ref]:
    return [x for x in values if isinstance(x, Ref)]
