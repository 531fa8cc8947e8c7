"""Member loops as machine code: numba compiles one function for all steps of a block of members."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from optlab.plan.member_loops.numbers import Floats
from optlab.plan.member_loops.program import Op, Program, Ref, Variant
from optlab.plan.numba_codegen import _ARITHMETIC, _CHOICES, _LOGIC, _TIES_TAKE_THE_BOUND

#: Members of a block, whose state stays in the L1 cache for all steps.
LANES = 256
_FORMS = {function: form for function, (form, _) in _ARITHMETIC.items()} | _CHOICES
_functions: dict[str, Any] = {}


def can_compile(program: Program) -> bool:
    """Return whether machine code gives NumPy's bits."""
    return not program.inexact


class NumbaLoop:
    """A program as a compiled function, which is loaded from the disk if it was compiled before."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.source = source_of(program)
        self.function = _compiled(self.source)
        self._arguments = [
            program.kinds.astype(np.int64),
            _stacked(program.member_numbers),
            _stacked(program.step_numbers),
            *(array for pair in program.tables for array in pair),
        ]
        self.run(np.empty((program.height, 0)), 0)  # it is compiled, or loaded, now

    def run(self, states: Floats, first: int) -> Any:
        """Run all steps of the members from `first` on, as `NumpyLoop.run` does."""
        stopped = np.full(states.shape[1], -1, np.int64)
        self.function(states, stopped, first, *self._arguments)
        return stopped


def _stacked(arrays: list[Floats]) -> Floats:
    return np.stack(arrays) if arrays else np.empty((0, 0))


def is_cached(program: Program) -> bool:
    """Return whether the machine code of a program is in memory or on the disk."""
    source = source_of(program)
    if source in _functions:
        return True
    path = _path_of(source)
    return path is not None and any((path.parent / "__pycache__").glob(f"{path.stem}.*.nbi"))


def cache_folder() -> Path | None:
    """Return the folder of compiled loops, made if it is not there; None if none can be written.

    The environment variable ``OPTLAB_CACHE_DIR`` names another one.
    """
    given = os.environ.get("OPTLAB_CACHE_DIR")
    if given:
        folder = Path(given)
    elif sys.platform == "win32":
        folder = Path(os.environ.get("LOCALAPPDATA", Path.home())) / "optlab" / "cache"
    else:
        folder = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "optlab"
    folder = folder / "member_loops"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK) else None


def _path_of(source: str) -> Path | None:
    folder = cache_folder()
    digest = hashlib.sha256(source.encode()).hexdigest()[:24]
    return folder and folder / f"optlab_member_loop_{digest}.py"


def _compiled(source: str) -> Callable[..., None]:
    """Return the compiled function of a source."""
    if source not in _functions:
        import numba

        path = _path_of(source)
        scope: dict[str, Any] = {}
        if path is not None:
            _write(path, source)
            spec = importlib.util.spec_from_file_location(path.stem, path)
            assert spec is not None
            assert spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            sys.modules[path.stem] = module  # numba looks it up when it loads machine code
            spec.loader.exec_module(module)
            scope = vars(module)
        else:
            exec(compile(source, "<optlab member loop>", "exec"), scope)
        # No contraction and no reordering, for NumPy's bits.
        make: Any = numba.njit(
            cache=path is not None,
            nogil=True,
            fastmath=False,
            error_model="numpy",
            boundscheck=False,
        )
        _functions[source] = make(scope["loop"])
    found: Callable[..., None] = _functions[source]
    return found


def _write(path: Path, source: str) -> None:
    """Write a source file once: numba's cache compares the time at which it was written."""
    if path.exists() and path.read_text(encoding="utf-8") == source:
        return
    handle, name = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(source)
    Path(name).replace(path)


def source_of(program: Program) -> str:
    """Return the source of the function of a program."""
    return _Writer(program).source()


class _Writer:
    """Writes a program as Python that numba compiles: the innermost loop runs over members.

    All memory of a block is one array, of which slices are taken: so LLVM knows what does not
    overlap, and that no index is negative, and vectorizes the loop.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.height = program.height
        self.members = len(program.member_numbers)

    def source(self) -> str:
        program = self.program
        tables = range(len(program.tables))
        extra = "".join(f", t{k}, c{k}" for k in tables)
        slots = self.height + self.members + 1
        lines = [
            "import numpy as np",
            "",
            "",
            f"def loop(states, stopped, first, kinds, members, scalars{extra}):",
            "    count = states.shape[1]",
            f"    memory = np.empty({slots * (LANES + 8)})",
            *(
                f"    b{i} = memory[{i * (LANES + 8)}:{i * (LANES + 8) + LANES}]"
                for i in range(slots)
            ),
            f"    value = b{slots - 1}",
            *(f"    i{k} = np.empty({LANES}, np.int64)" for k in tables),
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
            "        for t in range(len(kinds)):",
            "            fault = False",
        ]
        for number, variant in enumerate(program.variants):
            last = number == len(program.variants) - 1
            if len(program.variants) > 1:
                word = "else" if last else f"{'el' * (number > 0)}if kinds[t] == {number}"
                lines.append(f"            {word}:")
                lines += [f"    {line}" for line in self._variant(variant)]
            else:
                lines += self._variant(variant)
        lines += [
            "            if fault:",
            "                for i in range(size):",
            "                    if stopped[start + i] < 0 and not (abs(value[i]) < np.inf):",
            "                        stopped[start + i] = t",
            "                        running -= 1",
            "                if running == 0:",
            "                    break",
            "        for i in range(size):",
            *(f"            states[{r}, start + i] = b{r}[i]" for r in range(self.height)),
        ]
        return "\n".join(lines) + "\n"

    def _variant(self, variant: Variant) -> list[str]:
        used = {x for op in variant.ops for x in op.operands if isinstance(x, Ref)}
        used |= {x for x in (variant.value, *variant.new) if isinstance(x, Ref)}
        steps = sorted({x.number for x in used if x.kind == "step"})
        tables = sorted({x.number for x in used if x.kind == "table"})
        members = sorted({x.number for x in used if x.kind == "member"})
        lines = [f"            s{i} = scalars[{i}, t]" for i in steps]
        lines += [f"            r{k} = t{k}[t]" for k in tables]
        lines.append(f"            for i in range({LANES}):")
        body = [f"x{r} = b{r}[i]" for r in range(self.height)]
        body += [f"m{i} = b{self.height + i}[i]" for i in members]
        body += [f"g{k} = r{k}[i{k}[i]]" for k in tables]
        for op in variant.ops:
            body += self._op(op)
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
            text = repr(float(x)) if np.isfinite(x) else f"np.{x!r}".replace("-", "")
            text = f"(-{text})" if x == -np.inf else text
            return f"({text})" if text.startswith("-") else text
        if x.kind == "value":
            return f"v{x.number}_{d}" if x.wide else f"v{x.number}"
        if x.kind == "state":
            return f"x{self.program.rows[x.number].start + d * x.wide}"
        return {"coordinate": "x", "member": "m", "step": "s", "table": "g"}[x.kind] + str(x.number)
