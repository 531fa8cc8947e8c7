"""Entries of the reference: how Tensors support each function, read from the engine's tables.

``optlab rules tanh`` prints one entry with the source of its rules, ``optlab rules`` the table.
"""

from __future__ import annotations

import inspect
import re
import sys
from dataclasses import dataclass
from functools import lru_cache
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from optlab.autograd import random
from optlab.autograd.composed import COMPOSED
from optlab.autograd.dispatch.array_protocols import PLAIN, REDUCTIONS, WHOLE_NUMBERS
from optlab.autograd.operation import TABLE, Operation
from optlab.autograd.reference.notes import ELSEWHERE
from optlab.autograd.rules import elementwise
from optlab.autograd.rules.source import rule_text

#: The kinds of support for a function, in the order of the reference.
KINDS = {
    "rule": "one operation with a derivative rule",
    "zero": "one operation, flat almost everywhere: its derivative is zero",
    "composed": "written with other functions, so it needs no rule of its own",
    "random": "drawn from a random key, with a derivative where the docstring says so",
    "optlab.numpy": "NumPy asks no Tensor about it; that of optlab.numpy keeps the gradient",
    "plain": "no derivative: it sees the values and gives plain arrays",
    "whole numbers": "refused: it is for whole numbers and truth values",
    "no rule": "refused by name: there is no rule",
}

#: Operators and other common names, and the operation behind them.
ALSO_KNOWN_AS = {
    "+": "add", "-": "subtract", "*": "multiply", "/": "divide", "@": "matmul", "**": "power",
    "//": "floor_divide", "%": "remainder", "[]": "getitem", "__getitem__": "getitem",
    "indexing": "getitem", "setitem": "assign", "__setitem__": "assign", "T": "transpose",
    "astype": "cast", "copy": "copied",
}  # fmt: skip

#: The user's spelling of operations for which NumPy has no function.
SPELLED = {
    "getitem": "t[index]",
    "assign": "t[index] = value",
    "cast": "t.astype(dtype)",
    "copied": "t.copy(order)",
    "integer_power": "t ** n, for a Python int",
    "number_power": "t ** c, for a Python float",
}


#: Functions of NumPy that bypass its array protocols; `optlab.numpy`, above this package, has them.
IN_OPTLAB_NUMPY = frozenset(
    "array asarray asanyarray asarray_chkfinite ascontiguousarray asfortranarray fromiter full "
    "r_ c_".split()
)


@dataclass(frozen=True)
class Entry:
    """Support for one function.

    Attributes
    ----------
    name : str
        The user's spelling, ``"np.linalg.svd"``; the bare name of an operation of the engine.
    kind : str
        One of `KINDS`.
    function
        The function itself.
    operation : Operation or None
        Its row in the table of rules.
    written : callable or None
        The Python function that reads its arguments, or composes it of others.
    """

    name: str
    kind: str
    function: Any
    operation: Operation | None = None
    written: Any = None

    @property
    def is_of_the_engine(self) -> bool:
        """Whether it is an operation of the engine, which users spell differently."""
        return not self.name.startswith(("np.", "ol."))

    @property
    def inputs(self) -> str:
        """Names of its inputs, and after a semicolon of the arguments that are not arrays."""
        if self.operation is None:
            return ""
        static = ", ".join(self.operation.static)
        return ", ".join(self.operation.inputs) + (f"; {static}" if static else "")

    def rules(self) -> list[tuple[str, Any]]:
        """Return the inputs (those of a joint rule in one text), each with its rule or None."""
        operation = self.operation
        if operation is None:
            return []
        if not operation.pullbacks:
            return [(", ".join(operation.inputs), operation.joint)]
        return list(zip(operation.inputs, operation.pullbacks, strict=True))


# Naming -------------------------------------------------------------------------------------------


def name_of(function: Any) -> str:
    """Return the name by which a user calls a function.

    Examples
    --------
    >>> name_of(np.linalg.svd), name_of(np.exp)
    ('np.linalg.svd', 'np.exp')
    """
    name = str(function.__name__)
    module = getattr(function, "__module__", None) or "numpy"
    if module.split(".")[0] == "numpy":
        return f"np{module.removeprefix('numpy')}.{name}"
    if getattr(random, name, None) is function:
        return f"ol.numpy.random.{name}"
    return name.removeprefix("_")


def is_ours(function: Any) -> bool:
    """Return whether a function is from NumPy or optlab, not of SciPy, a user or a doctest."""
    if isinstance(function, np.ufunc):  # has no module
        return getattr(np, function.__name__, None) is function
    module = getattr(function, "__module__", None) or "numpy"
    if module.split(".")[0] == "numpy":
        return True
    home = sys.modules.get(module)
    return module.startswith("optlab.") and getattr(home, function.__name__, None) is function


def _kind(function: Any) -> str:
    """Return the kind of a function with a rule, or composed of others."""
    if function in TABLE:
        texts = [rule_text(one) for one in TABLE[function].pullbacks]
        flat = bool(texts) and all(text.endswith(": zeros_of(g)") for text in texts)
        return "zero" if flat else "rule"
    return "composed"


@lru_cache(maxsize=1)
def _reducing() -> dict[Any, str]:
    """Return the names of reductions that are methods of a ufunc: ``np.hypot.reduce``."""
    return {
        function: f"np.{ufunc.__name__}.{method}"
        for method, functions in REDUCTIONS.items()
        for ufunc, function in functions.items()
    }


def entry_of(function: Any) -> Entry | None:
    """Return the entry of a function, or None if optlab does not know it."""
    name = name_of(function)
    if name[:3] != "np." and function in _reducing():
        name = _reducing()[function]
    if function in TABLE or function in COMPOSED:
        written = COMPOSED.get(function)
        operation = TABLE.get(function) or _operation_within(written)
        kind = "rule" if operation is not None and function not in TABLE else _kind(function)
        return Entry(name, kind, function, operation, written)
    without = {"plain": PLAIN, "whole numbers": WHOLE_NUMBERS}
    for kind, functions in without.items():
        if function in functions:
            return Entry(name, kind, function)
    if name.startswith("ol.numpy.random.") and isinstance(function, FunctionType):
        return Entry(name, "random", function, None, function)
    return None


def _operation_within(written: Any) -> Operation | None:
    """Return the operation for which a function reads arguments: for np.amax that of np.max."""
    if not isinstance(written, FunctionType):
        return None
    inside = inspect.getclosurevars(written).nonlocals.values()
    return next((one for one in inside if isinstance(one, Operation)), None)


def entries() -> list[Entry]:
    """Return the entries of all functions that the engine knows: NumPy's first, sorted by name.

    Examples
    --------
    >>> next(entry.kind for entry in entries() if entry.name == "np.floor")
    'zero'
    """
    functions = [*TABLE, *COMPOSED, *PLAIN, *WHOLE_NUMBERS]
    functions += [getattr(random, name) for name in random.__all__]
    found = {f: entry_of(f) for f in functions if is_ours(f)}
    known = {entry.name: entry for entry in found.values() if entry is not None}
    return sorted(known.values(), key=lambda entry: (entry.is_of_the_engine, entry.name))


# Finding ------------------------------------------------------------------------------------------

_PREFIX = re.compile(r"^(optlab\.numpy\.|ol\.numpy\.|optlab\.|ol\.|numpy\.|np\.|Tensor\.|t\.)")


def find(wanted: str) -> Entry | None:
    """Return the entry of a name such as ``np.tanh``, ``tanh``, ``svd`` or ``add.reduce``.

    Examples
    --------
    >>> find("svd").name, find("abs").name, find("[]").name, find("tanhh")
    ('np.linalg.svd', 'np.absolute', 'getitem', None)
    """
    bare = _PREFIX.sub("", wanted.strip().removesuffix("()"))
    spelled = ALSO_KNOWN_AS.get(bare, bare)
    known = {entry.name: entry for entry in entries()}
    for name in (
        f"np.{spelled}",
        spelled,
        f"np.linalg.{spelled}",
        f"ol.numpy.{spelled}",
        f"ol.numpy.random.{spelled}",
    ):
        if name in known:
            return known[name]
    ufunc, _, method = bare.rpartition(".")
    if method in REDUCTIONS and (function := REDUCTIONS[method].get(getattr(np, ufunc, None))):
        return entry_of(function)
    found = _of_numpy(bare) or _of_numpy(f"linalg.{bare}") or _of_numpy(f"fft.{bare}")
    last = (entry for name, entry in known.items() if name.rpartition(".")[2] == bare)
    return found or next(last, None)


def _of_numpy(path: str) -> Entry | None:
    """Return the entry of an alias in NumPy (np.abs), or of a function that is not covered."""
    function: Any = np
    for part in path.split("."):
        function = getattr(function, part, None)
    if path in IN_OPTLAB_NUMPY:
        return Entry(f"np.{path}", "optlab.numpy", function)
    if not callable(function) or isinstance(function, (type, ModuleType)):
        return None
    entry = entry_of(function)
    if entry is not None:
        return entry
    return Entry(f"np.{path}", "no rule", function)


def helper_of(wanted: str) -> FunctionType | None:
    """Return a function that rules call, by its name: ``inverse_gaps``.

    Examples
    --------
    >>> helper_of("inverse_gaps").__module__, helper_of("tanhh")
    ('optlab.autograd.rules.linalg.matrices', None)
    """
    for module in [name for name in sys.modules if name.startswith("optlab.autograd.")]:
        found = getattr(sys.modules[module], wanted, None)
        if isinstance(found, FunctionType) and found.__module__ == module:
            return found
    return None


def near(wanted: str) -> list[str]:
    """Return known names that are similar to `wanted`.

    Examples
    --------
    >>> near("tanhh")[0]
    'np.tanh'
    """
    from difflib import get_close_matches

    bare = _PREFIX.sub("", wanted).rpartition(".")[2].lower()
    names: dict[str, str] = {}
    for entry in entries():
        names.setdefault(entry.name.rpartition(".")[2].lower(), entry.name)
    return [names[name] for name in get_close_matches(bare, names, n=4, cutoff=0.65)]


# Where there is no derivative ---------------------------------------------------------------------


@lru_cache(maxsize=1)
def conventions() -> list[tuple[str, str]]:
    """Return the table of conventions, read from the docstring of `rules.elementwise`.

    Examples
    --------
    >>> conventions()[0]
    ('``abs(x)`` and ``fabs`` at 0', '0')
    """
    lines = (elementwise.__doc__ or "").split("\n")
    borders = [i for i, line in enumerate(lines) if line.startswith("====")]
    split = lines[borders[0]].index(" =") + 1
    rows: list[tuple[str, str]] = []
    for line in lines[borders[1] + 1 : borders[2]]:
        left, right = line[:split].strip(), line[split:].strip()
        if rows and (not left or rows[-1][0].endswith(",")):
            rows[-1] = (f"{rows[-1][0]} {left}".strip(), f"{rows[-1][1]} {right}".strip())
        else:
            rows.append((left, right))
    return rows


def convention_of(entry: Entry) -> list[str]:
    """Return the conventions of a function."""
    names = {entry.name.removeprefix("np."), {"np.absolute": "abs"}.get(entry.name, "")}
    names |= {"**"} if entry.name in ("np.power", "np.float_power", "number_power") else set()
    names |= {"//"} if entry.name == "np.floor_divide" else set()
    found = []
    for where, what in conventions():
        meant = {re.split(r"[(\s]", name)[0] for name in re.findall(r"``(.+?)``", where)}
        if names & meant or ("**" in names and "**" in where):
            found.append(f"{where}: {what}".replace("``", "`"))
    also = [f"{where}: {what}" for where, what, _, users in ELSEWHERE if entry.name in users]
    return found + also
