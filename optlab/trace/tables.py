"""Traces in other forms: xarray and back, pandas, a selection, a page for notebooks."""

from __future__ import annotations

import ast
import html
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from optlab.backend.extras import needed_for
from optlab.backend.memory.ledger import ROLES
from optlab.trace.columns import Column
from optlab.trace.records import Record

_SCALARS = ("loss", "learning_rate", "seconds")
#: What stands for a slash in the names of nodes and variables of a DataTree.
_SLASH = "\N{DIVISION SLASH}"


class _Variable(NamedTuple):
    """One array of a trace: its clock, its column kind, its label, its parameter."""

    clock: str
    kind: str
    label: str
    parameter: str
    array: np.ndarray


def _variables(trace: Any) -> Iterator[_Variable]:
    """Yield all values and norms of a trace."""
    for clock, prefix in (("values", ""), ("norms", "norm ")):
        groups = trace._groups(prefix)
        labels = trace._recorded() if clock == "values" else trace._recorded_norms()
        for (kind, arrays), label in zip(groups.items(), labels, strict=True):
            for name, array in arrays.items():
                shown = label if clock == "values" else f"norm of {label}"
                yield _Variable(clock, prefix + kind, shown, name, array)


def to_xarray(trace: Any) -> Any:
    """Return a Dataset, or a DataTree where something has steps of its own."""
    with needed_for("Trace.to_xarray()"):
        import xarray

    steps = trace.step
    scalars: dict[str, Any] = {name: (("step",), trace[name]) for name in _SCALARS}
    roles: dict[str, Any] = {}
    if trace.memory:
        scalars["memory"] = (("step", "role"), np.stack(list(trace.memory.values()), axis=1))
        roles = {"role": list(ROLES)}
    attributes = _attributes(trace)
    records = {k: r for k, r in trace.records.items() if r.columns or r.results()}
    clocks = {clock: trace.steps(clock) for clock in ("values", "norms") if clock in trace.layouts}
    flat = not records and all(np.array_equal(own, steps) for own in clocks.values())
    nodes: dict[str, dict[str, Any]] = {}
    for one in _variables(trace):
        where, name = f"{one.clock}/{_quoted(one.label)}", _quoted(one.parameter)
        start = f"{one.clock}/start"
        if flat:
            where, name, start = "", f"{one.label}/{one.parameter}", ""
        into = nodes.setdefault(where, {})
        axes = tuple(f"{one.parameter} axis {i}" for i in range(one.array.ndim - 1))
        array = one.array
        if one.kind == "parameter":
            first = f"start/{one.parameter}" if flat else name
            nodes.setdefault(start, {})[first] = (axes, array[0])
            array = array[1:]
        into[name] = (("step", *axes), array, {"kind": one.kind})
    if flat:
        variables = {**scalars, **nodes.get("", {})}
        return xarray.Dataset(variables, coords={"step": steps, **roles}, attrs=attributes)
    tree: dict[str, Any] = {
        "/": xarray.Dataset(attrs=attributes),
        "/scalars": xarray.Dataset(scalars, coords={"step": steps, **roles}),
    }
    for clock, own in clocks.items():
        tree[f"/{clock}"] = xarray.Dataset(coords={"step": own})
    tree |= {f"/{where}": xarray.Dataset(variables) for where, variables in nodes.items()}
    for label, record in records.items():
        place = f"/probes/{_quoted(label)}"
        own = record.steps.array(np.int64)
        tree[place] = xarray.Dataset(coords={"step": own}, attrs={"label": label})
        for quantity, arrays in record.arrays().items():
            tree[f"{place}/{_quoted(quantity)}"] = xarray.Dataset(
                {
                    _quoted(name) or "value": (
                        ("step", *(f"{quantity} {name} axis {i}" for i in range(array.ndim - 1))),
                        array,
                    )
                    for name, array in arrays.items()
                },
                attrs={"quantity": quantity, "parameters": list(arrays)},
            )
        for quantity, array in record.results().items():
            axes = tuple(f"result {quantity} axis {i}" for i in range(array.ndim))
            tree[f"{place}/result {_quoted(quantity)}"] = xarray.Dataset(
                {"value": (axes, array)}, attrs={"result": quantity}
            )
    return xarray.DataTree.from_dict(tree)


def _attributes(trace: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"name": trace.name, **{k: str(v) for k, v in trace.settings.items()}}
    if trace.stopped:
        found["stopped"] = trace.stopped
    if trace.left_out:
        found["left_out"] = "\n".join(trace.left_out)
    if trace.marks:
        found["marks"] = repr(trace.marks)
    return found


def _quoted(name: str) -> str:
    """Return a name for a DataTree, in which a slash would begin another node."""
    return name.replace("/", _SLASH)


def from_xarray(make: Any, data: Any) -> Any:
    """Return the trace of a Dataset or DataTree of `to_xarray`; `make` is the class of traces."""
    with needed_for("Trace.from_xarray()"):
        import xarray

    if not isinstance(data, (xarray.Dataset, xarray.DataTree)):
        raise TypeError(
            "from_xarray takes what trace.to_xarray() gave, a Dataset or a DataTree; got "
            f"{type(data).__name__}."
        )
    attributes = dict(data.attrs)
    if "name" not in attributes:
        raise ValueError("this is no Dataset of a trace: it has no attribute 'name'.")
    trace = make(attributes.pop("name"))
    trace.stopped = attributes.pop("stopped", None)
    trace.sentences += attributes.pop("left_out", "").splitlines()
    trace.marks += ast.literal_eval(attributes.pop("marks", "[]"))
    trace.settings = {name: _read(text) for name, text in attributes.items()}
    if isinstance(data, xarray.Dataset):
        scalars = data
        clocks = {"values": data, "norms": data}
        pairs = {
            (str(name).partition("/")[0], str(name).partition("/")[2]): x
            for name, x in data.data_vars.items()
            if "/" in str(name)
        }
    else:
        scalars = data["scalars"].to_dataset()
        clocks = {c: data[c].to_dataset() for c in ("values", "norms") if c in data.children}
        pairs = {
            (kind, _plain(str(name))): x
            for c in clocks
            for kind, node in data[c].children.items()
            for name, x in node.to_dataset(inherit=False).data_vars.items()
        }
    steps = np.asarray(scalars["step"])
    trace.columns["step", 0].extend(steps)
    for name in _SCALARS:
        trace.columns[name, 0].extend(np.asarray(scalars[name]))
    if "memory" in scalars:
        trace.columns["memory", 0].extend(np.asarray(scalars["memory"]))
    places: dict[str, dict[str, int]] = {}
    for (kind, name), x in pairs.items():
        if kind == "start":
            continue
        array, column = np.asarray(x), x.attrs["kind"]
        clock = "norms" if column.startswith("norm ") else "values"
        numbers = places.setdefault(clock, {})
        i = numbers.setdefault(name, len(numbers))
        layouts = trace.layouts.setdefault(clock, [])
        if i == len(layouts):
            shape = array.shape[1:]
            layouts.append([(name, 0, int(np.prod(shape)), shape)])
        if column == "parameter":
            array = np.concatenate([np.asarray(pairs["start", name])[None], array])
        trace.columns[column, i].extend(_flat(array))
    for clock, own in clocks.items():
        if clock in trace.layouts and not np.array_equal(np.asarray(own["step"]), steps):
            trace.columns[f"steps of {clock}", 0].extend(np.asarray(own["step"]))
    if isinstance(data, xarray.DataTree) and "probes" in data.children:
        for node in data["probes"].children.values():
            label = node.attrs["label"]
            trace.records[label] = _record_of(label, node)
    trace.steps_taken = int(steps[-1]) if len(steps) else 0
    return trace


def _record_of(label: str, node: Any) -> Record:
    """Return the record of a node of a probe."""
    record = Record(label, label)
    record.steps.extend(np.asarray(node["step"]))
    for child in node.children.values():
        data = child.to_dataset(inherit=False)
        if "result" in data.attrs:
            record.stored_results[data.attrs["result"]] = np.asarray(data["value"])
            continue
        for name in data.attrs["parameters"]:
            column = record.columns[data.attrs["quantity"], name] = Column()
            column.extend(np.asarray(data[_quoted(name) or "value"]))
    return record


def _plain(name: str) -> str:
    return name.replace(_SLASH, "/")


def _read(text: Any) -> Any:
    """Return a setting of its text: numbers, lists and the like; other text as it is."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError):
        return text


def to_dataframe(trace: Any) -> Any:
    """Return what has one number a step as a DataFrame."""
    with needed_for("Trace.to_dataframe()"):
        import pandas

    steps = trace.step
    columns = {name: pandas.Series(trace[name], index=steps) for name in _SCALARS}

    def put(name: str, array: np.ndarray, own: np.ndarray) -> None:
        if array.ndim and len(array) == len(own) and array.size == len(own):
            columns[name] = pandas.Series(array.reshape(-1), index=own).groupby(level=0).last()

    values, norms = trace.steps("values"), trace.steps("norms")
    for one in _variables(trace):
        array = one.array[1:] if one.kind == "parameter" else one.array
        put(f"{one.label}/{one.parameter}", array, values if one.clock == "values" else norms)
    if not trace._recorded_norms():
        for kind, arrays in trace.norms.items():
            for name, array in arrays.items():
                put(f"norm of {kind}/{name}", array, values)
    for role, array in trace.memory.items():
        put(f"bytes of {role}", array, steps)
    for name, (record, quantity) in trace._observed().items():
        own = record.steps.array(np.int64)
        for parameter, array in record.arrays().get(quantity, {}).items():
            put(f"{name}/{parameter}" if parameter else name, array, own)
    frame = pandas.DataFrame(columns)
    frame.index.name = "step"
    return frame.sort_index()


def select(trace: Any, step: Any = None, parameter: Any = None) -> Any:
    """Return the trace of some steps and parameters."""
    trace.complete()
    found = type(trace)(trace.name, dict(trace.settings))
    for name in ("stopped", "error", "problem", "optimizer", "steps_taken"):
        setattr(found, name, getattr(trace, name))
    found.sentences += trace.left_out
    known = _all_steps(trace)
    wanted = _wanted(step, known)
    found.marks += [(n, text) for n, text in trace.marks if wanted is None or n in wanted]
    names = _wanted_names(trace, parameter)

    def rows(own: np.ndarray) -> Any:
        return slice(None) if wanted is None else np.isin(own, list(wanted))

    steps = trace.step
    for kind in ("step", *_SCALARS, "memory"):
        if (kind, 0) in trace.columns:
            found.columns[kind, 0].extend(trace.columns[kind, 0].array()[rows(steps)])
    for clock, layouts in trace.layouts.items():
        own = trace.steps(clock)
        chosen = rows(own)
        if (f"steps of {clock}", 0) in trace.columns:
            found.columns[f"steps of {clock}", 0].extend(own[chosen])
        found.layouts[clock] = [[part] for layout in layouts for part in layout if part[0] in names]
    places: dict[tuple[str, str], int] = {
        (clock, layout[0][0]): i
        for clock, layouts in found.layouts.items()
        for i, layout in enumerate(layouts)
    }
    for clock, layouts in found.layouts.items():
        found.layouts[clock] = [
            [(name, 0, int(np.prod(shape)), shape)] for [(name, _, _, shape)] in layouts
        ]
    for one in _variables(trace):
        if one.parameter not in names:
            continue
        chosen = rows(trace.steps(one.clock))
        array = one.array
        if one.kind == "parameter":
            after = array[1:][chosen]
            first = 0 if wanted is None else int(np.argmax(chosen)) if len(chosen) else 0
            array = np.concatenate([array[first : first + 1], after])
        else:
            array = array[chosen]
        i = places[one.clock, one.parameter]
        found.columns[one.kind, i].extend(_flat(array))
    for label, record in trace.records.items():
        copy = found.records[label] = Record(label, record.text)
        copy.seconds, copy.bytes = record.seconds, record.bytes
        own = record.steps.array(np.int64)
        chosen = rows(own)
        copy.steps.extend(own[chosen])
        for quantity, arrays in record.arrays().items():
            for name, array in arrays.items():
                if name in names or not name or name not in _names_of(trace):
                    column = copy.columns[quantity, name] = Column()
                    column.extend(array[chosen])
        copy.stored_results = {
            name: array[chosen] if array.ndim and len(array) == len(own) else array
            for name, array in record.results().items()
        }
    return found


def _flat(array: np.ndarray) -> np.ndarray:
    """Return an array with one flat row a step."""
    return array.reshape(len(array), math.prod(array.shape[1:]))


def _all_steps(trace: Any) -> set[int]:
    clocks = [trace.step, *(trace.steps(clock) for clock in trace.layouts)]
    clocks += [record.steps.array(np.int64) for record in trace.records.values()]
    return {int(n) for own in clocks for n in own}


def _wanted(step: Any, known: set[int]) -> set[int] | None:
    """Return the chosen steps; None for all."""
    if step is None:
        return None
    if isinstance(step, slice):
        low = -np.inf if step.start is None else step.start
        high = np.inf if step.stop is None else step.stop
        inside = sorted(n for n in known if low <= n <= high)
        return set(inside[:: step.step or 1])
    wanted = {int(n) for n in np.atleast_1d(step)}
    missing = sorted(wanted - known)
    if missing:
        nearest = min(known, key=lambda n: abs(n - missing[0]), default=None)
        beside = "" if nearest is None else f"; the nearest is {nearest}"
        raise KeyError(f"step {missing[0]} was not recorded{beside}")
    return wanted


def _names_of(trace: Any) -> list[str]:
    """Return the names of all parameters of a trace."""
    named = [part[0] for layouts in trace.layouts.values() for layout in layouts for part in layout]
    return list(dict.fromkeys(named))


def _wanted_names(trace: Any, parameter: Any) -> set[str]:
    names = _names_of(trace)
    if parameter is None:
        return set(names)
    wanted = [parameter] if isinstance(parameter, str) else list(parameter)
    for name in wanted:
        if name not in names:
            raise KeyError(f"there is no parameter {name!r}; there is {', '.join(names)}")
    return set(wanted)


def to_html(trace: Any) -> str:
    """Return a page for a notebook: a small picture of the loss, and what there is."""
    rows = []
    if trace.settings:
        settings = ", ".join(f"{k}={v}" for k, v in trace.settings.items() if k != "class")
        rows.append(("optimizer", f"{trace.settings.get('class', '')}({settings})"))
    steps = trace.step
    if len(steps):
        first, last = trace.loss[0], trace.loss[-1]
        rows.append(("steps", f"{len(steps)} recorded, {steps[0]} to {steps[-1]}"))
        rows.append(("loss", f"{first:.4g} to {last:.4g}"))
    for label, cost in trace.costs.items():
        rows.append(
            (label, f"{cost['steps']} steps, {cost['seconds']:.3g} s, {cost['bytes']:,} bytes")
        )
    rows += [(f"step {n}", text) for n, text in trace.marks]
    rows += [("left out", text) for text in trace.left_out]
    if trace.stopped:
        rows.append(("stopped", trace.stopped))
    table = "".join(
        f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
        f"<td style='text-align:left'>{html.escape(str(text))}</td></tr>"
        for name, text in rows
    )
    return (
        f"<div><strong>{html.escape(trace.name)}</strong>{_sparkline(steps, trace.loss)}"
        f"<table>{table}</table></div>"
    )


def _sparkline(steps: np.ndarray, loss: np.ndarray, width: int = 240, height: int = 48) -> str:
    """Return the loss over the steps as a small SVG; logarithmic where it is positive."""
    good = np.isfinite(loss)
    x, y = steps[good].astype(float), loss[good].astype(float)
    if len(x) < 2:
        return ""
    if (y > 0).all():
        y = np.log10(y)
    if len(x) > 2 * width:  # the lowest and the highest of each column of pixels
        parts = np.array_split(np.arange(len(x)), width)
        chosen = np.unique([f(y[p]) + p[0] for p in parts for f in (np.argmin, np.argmax)])
        x, y = x[chosen], y[chosen]
    x = (x - x[0]) / (x[-1] - x[0]) * (width - 4) + 2
    spread = y.max() - y.min()
    y = height - 3 - (y - y.min()) / (spread or 1.0) * (height - 6)
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
    return (
        f"<svg width='{width}' height='{height}' role='img' aria-label='loss over the steps' "
        "style='display:block'>"
        f"<polyline points='{points}' fill='none' stroke='currentColor' stroke-width='1.5'/></svg>"
    )
