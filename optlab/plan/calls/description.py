"""A plan as text, as a table and as a figure."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from optlab.autograd.tape.base import TensorBase
from optlab.autograd.tape.nodes import Leaf
from optlab.backend.call_recorder import LiveCount
from optlab.backend.display import renderer
from optlab.backend.memory.sizes import in_words
from optlab.plan.calls.entries import Entry, OfTensor
from optlab.plan.calls.memory import Memory, name_of
from optlab.plan.calls.places import places_in
from optlab.plan.plan import Place

#: The longest text of an operation and its operands.
_WIDTH = 72


#: Returns the operations of a rule; `optlab.plan.calls.step_description`, which stands above,
#: registers it.
_operations_inside: Callable[[Any], list[str]]


def describe_steps_with(function: Callable[[Any], list[str]]) -> None:
    """Register the function that returns the operations inside a step of an optimizer."""
    global _operations_inside
    _operations_inside = function


class Description:
    """What a plan says of itself."""

    entries: list[Entry]
    inputs: list[Place]
    buffers: list[Any]
    buffer_of: dict[Place, int]
    values: dict[Place, Any]
    output: Any
    memory: Memory
    #: What replays it on fixed memory, and knows its groups.
    binding: Any
    #: The names of the inputs in the call, once it is known.
    input_names: Sequence[str] = ()

    @property
    def peak_bytes(self) -> int:
        """The most memory that a replay takes: its buffers, results, and temporaries inside NumPy.

        Arguments, parameters and slots, which stand before, do not count; gradients that a call
        leaves behind do. It is predicted from when results are needed for the last time.
        """
        return self.memory.peak

    def groups(self) -> list[int | None]:
        """Return the number of the fused group of each entry; None outside of groups.

        The operations of a group are one compiled function (`optlab.plan.numba_steps`), as soon as
        numba has compiled it in another process; until then NumPy runs them.
        """
        found: list[int | None] = [None] * len(self.entries)
        fused = [] if self.binding is None else self.binding.groups()
        for number, members in enumerate(fused):
            for i in members:
                found[i] = number
        return found

    def table(self) -> Any:
        """Return the operations as a pandas DataFrame.

        Returns
        -------
        pandas.DataFrame
            A row for each input, each result, and each effect: ``operation``, ``shape``, ``dtype``
            and ``bytes`` of the result, the number of the ``buffer`` that it lies in and of its
            elementwise ``group`` (missing where there is none), the user's ``line``. What is read
            of a parameter, or collected as its gradient, has its name.

        Raises
        ------
        ModuleNotFoundError
            If pandas, which comes with the extra ``lab``, is not installed.

        Examples
        --------
        >>> import numpy as np
        >>> import optlab as ol
        >>> f = ol.capture(lambda x: (np.exp(x) * x - 1).sum())
        >>> _ = f(np.ones((2, 3)))
        >>> f.plan.table()[["operation", "shape", "bytes", "buffer", "group"]]
          operation   shape  bytes  buffer  group
        0   input x  (2, 3)     48    <NA>   <NA>
        1       exp  (2, 3)     48       0   <NA>
        2       mul  (2, 3)     48       0      0
        3       sub  (2, 3)     48       0      0
        4       sum      ()      8    <NA>   <NA>
        """
        return renderer("memory").table(self.memory)  # type: ignore[attr-defined]

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of `table` as plain values; None where there is nothing."""
        rows: list[dict[str, Any]] = [
            {
                "operation": f"input {name}", "shape": shape, "dtype": dtype, "bytes": nbytes,
                "buffer": None, "group": None, "line": "",
            }
            for _, name, (shape, dtype, nbytes) in self._named_inputs()
        ]  # fmt: skip
        for entry, group in zip(self.entries, self.groups(), strict=True):
            named = next(filter(None, map(_name_of_tensor, entry.arguments)), "")
            line = f"{Path(entry.where[0]).name}:{entry.where[1]}"
            known = [p for p in entry.results if p in self.values]
            places: list[Place | None] = [*known] or [None]
            for place in places:
                value = self.values[place] if place is not None else None
                about = (None, None, 0) if value is None else _about(value)
                shape, dtype, nbytes = about
                buffer = self.buffer_of.get(place) if place is not None else None
                operation = f"{name_of(entry)} {named}".rstrip()
                rows.append({
                    "operation": operation, "shape": shape, "dtype": dtype, "bytes": nbytes,
                    "buffer": buffer, "group": group, "line": line,
                })  # fmt: skip
        return rows

    def figure(self, **options: Any) -> Any:
        """Draw the memory of a replay over its operations as a plotly figure.

        Raises
        ------
        ModuleNotFoundError
            If no renderer is installed (it comes with the extra ``lab``).
        """
        return self.memory.figure(**options)

    def save(self, path: str | Path) -> Path:
        """Write the figure to a file: ``.png``, or ``.html`` with the live figure."""
        return self.memory.save(path)

    def __str__(self) -> str:
        buffers = sum(buffer.nbytes for buffer in self.buffers)
        count = len(self.buffers)
        head = (
            f"{len(self.inputs)} inputs, {len(self.entries)} operations, {count} "
            f"buffer{'s' * (count != 1)} of {in_words(buffers)}, peak {in_words(self.peak_bytes)}"
        )
        groups = self.groups()
        number = len(set(groups) - {None})
        if number and self.binding is not None:
            how = "compiled" if self.binding.compiled else "by NumPy until they are compiled"
            head += f", {number} fused group{'s' * (number != 1)}, {how}"
        lines = []
        for place, name, (shape, dtype, nbytes) in self._named_inputs():
            lines.append((f"v{place.number} = input {name}", f"{shape} {dtype}", in_words(nbytes)))
        for entry, group in zip(self.entries, groups, strict=True):
            known = [p for p in entry.results if p in self.values]
            said = [f"{self.values[p].shape} {self.values[p].dtype}" for p in known]
            notes = [in_words(self.values[p].nbytes) for p in known]
            notes += [f"buffer {self.buffer_of[p]}" for p in known if p in self.buffer_of]
            notes += [f"group {group}"] if group is not None else []
            shapes = _shortened(", ".join(said), 60)
            lines.append((_shortened(_call(entry), _WIDTH), shapes, ", ".join(notes[:4])))
            if entry.kind == "effect" and name_of(entry) == "step" and entry.arguments:
                lines += [
                    (f"    {call}", "", "") for call in _operations_inside(entry.arguments[0])
                ]
        widths = [max((len(line[i]) for line in lines), default=0) for i in (0, 1)]
        rows = [
            f"  {call:<{widths[0]}}  {shapes:<{widths[1]}}  {notes}".rstrip()
            for call, shapes, notes in lines
        ]
        return "\n".join([head, *rows, f"return {_returned(self.output)}"])

    def _named_inputs(self) -> Iterator[tuple[Place, str, tuple[tuple[int, ...], str, int]]]:
        """Yield inputs, their names (or numbers), and shape, dtype and bytes of each."""
        names = self.input_names
        if len(names) != len(self.inputs):
            names = [str(number) for number in range(len(self.inputs))]
        for place, name in zip(self.inputs, names, strict=True):
            value = self.values.get(place)
            yield place, name, ((), "float64", 8) if value is None else _about(value)

    def calls(self) -> list[str]:
        """Return the operations and their operands, a line for each."""
        return [_shortened(_call(entry), _WIDTH) for entry in self.entries]

    def __repr__(self) -> str:
        return f"<plan of {len(self.entries)} operations, {len(self.buffers)} buffers>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return self.memory._repr_mimebundle_(include, exclude)


def _call(entry: Entry) -> str:
    """Return an entry as text: result, name, operands."""
    given = [_operand(x) for x in entry.arguments]
    given += [f"{name}={_operand(x)}" for name, x in entry.keywords.items()]
    call = f"{name_of(entry)}({', '.join(given)})"
    if entry.kind == "effect" and entry.values in ((None,), ()) and not entry.several:
        return call
    return f"{', '.join(f'v{place.number}' for place in entry.results)} = {call}"


def _operand(x: Any) -> str:
    """Return an operand as text that is the same in every process."""
    if isinstance(x, Place):
        return f"v{x.number}"
    if isinstance(x, OfTensor):
        return f"v{x.place.number}"
    if isinstance(x, (TensorBase, Leaf)):
        shape = x.data.shape if isinstance(x, TensorBase) else x.shape
        return _name_of_tensor(x) or f"{type(x).__name__} {shape}"
    if x is None or isinstance(x, (bool, int, float, complex, str, type(Ellipsis), slice)):
        return repr(x)
    if type(x) in (tuple, list):
        parts = ", ".join(map(_operand, x))
        return f"({parts})" if type(x) is tuple else f"[{parts}]"
    if type(x) is dict:
        return "{" + ", ".join(f"{name}: {_operand(part)}" for name, part in x.items()) + "}"
    if isinstance(x, (np.dtype, type)):
        return str(getattr(x, "name", None) or getattr(x, "__name__", x))
    found = places_in([x])
    if found:
        return ", ".join(f"v{place.number}" for place in found)
    if callable(x):
        return str(getattr(x, "__name__", type(x).__name__))
    return type(x).__name__


def _about(value: Any) -> tuple[tuple[int, ...], str, int]:
    """Return shape, dtype and bytes of a value."""
    return value.shape, str(value.dtype), value.nbytes


def _name_of_tensor(x: Any) -> str:
    """Return the name of a parameter, or of its leaf, in the model; empty of anything else."""
    if isinstance(x, TensorBase):
        return str(getattr(x, "structural_name", None) or getattr(x.node, "name", None) or "")
    return str(x.name or "") if isinstance(x, Leaf) else ""


def names_of_inputs(
    f: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], numbers: bool = True
) -> list[str]:
    """Return the names of the arrays among the arguments of a call, and of numbers, in order.

    Examples
    --------
    >>> def step(x, pair, *more, rate): ...
    >>> names_of_inputs(step, (np.ones(2), [np.ones(1), 2.0], np.ones(1)), {"rate": 0.1})
    ['x', 'pair[0]', 'pair[1]', 'more[0]', 'rate']
    """
    found: list[str] = []
    try:
        parameters = [*inspect.signature(getattr(f, "forward", f)).parameters.values()]
    except (TypeError, ValueError):  # a function of C
        parameters = []
    for i, x in enumerate(args):
        name = f"argument {i}"
        before = parameters[: i + 1]
        spread = next((k for k, p in enumerate(before) if p.kind is p.VAR_POSITIONAL), None)
        if spread is not None:
            name = f"{before[spread].name}[{i - spread}]"
        elif len(before) > i:
            name = before[i].name
        _name_inputs(x, name, found, numbers)
    for name in sorted(kwargs):
        _name_inputs(kwargs[name], name, found, numbers)
    return found


def _name_inputs(x: Any, name: str, found: list[str], numbers: bool) -> None:
    if isinstance(x, (TensorBase, np.ndarray)):
        found.append(name)
    elif isinstance(x, np.generic) or type(x) in (float, LiveCount):
        found += [name] if numbers else []
    elif isinstance(x, dict):
        for key, part in x.items():
            _name_inputs(part, f"{name}[{key!r}]", found, numbers)
    elif isinstance(x, (tuple, list)):
        fields = [f".{field}" for field in getattr(x, "_fields", ())]
        for i, part in enumerate(x):
            _name_inputs(part, f"{name}{fields[i] if fields else f'[{i}]'}", found, numbers)


def _returned(output: Any) -> str:
    """Return the places of the result as text."""
    return ", ".join(f"v{place.number}" for place in places_in([output])) or "no value of the call"


def _shortened(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."
