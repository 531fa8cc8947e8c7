"""Traces in other forms: xarray and back, pandas."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np

from optlab.backend.extras import needed_for
from optlab.backend.memory.ledger import ROLES
from optlab.trace.columns import Column
from optlab.trace.records import Record
from optlab.trace.variables import SCALARS, flat_rows, variables_of

#: What stands for a slash in the names of nodes and variables of a DataTree.
_SLASH = "\N{DIVISION SLASH}"


def to_xarray(trace: Any) -> Any:
    """Return a Dataset, or a DataTree where something has steps of its own."""
    with needed_for("Trace.to_xarray()"):
        import xarray

    steps = trace.step
    scalars: dict[str, Any] = {name: (("step",), trace[name]) for name in SCALARS}
    roles: dict[str, Any] = {}
    if trace.memory:
        scalars["memory"] = (("step", "role"), np.stack(list(trace.memory.values()), axis=1))
        roles = {"role": list(ROLES)}
    attributes = _attributes(trace)
    records = {k: r for k, r in trace.records.items() if r.columns or r.results()}
    clocks = {clock: trace.steps(clock) for clock in ("values", "norms") if clock in trace.layouts}
    flat = not records and all(np.array_equal(own, steps) for own in clocks.values())
    nodes: dict[str, dict[str, Any]] = {}
    for one in variables_of(trace):
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
    for name in SCALARS:
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
        trace.columns[column, i].extend(flat_rows(array))
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
    columns = {name: pandas.Series(trace[name], index=steps) for name in SCALARS}

    def put(name: str, array: np.ndarray, own: np.ndarray) -> None:
        if array.ndim and len(array) == len(own) and array.size == len(own):
            columns[name] = pandas.Series(array.reshape(-1), index=own).groupby(level=0).last()

    values, norms = trace.steps("values"), trace.steps("norms")
    for one in variables_of(trace):
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
