"""The trace of some steps and some parameters of another one."""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.trace.choices import chosen_names, chosen_rows, chosen_steps, rows_of
from optlab.trace.columns import Column
from optlab.trace.records import Record
from optlab.trace.variables import SCALARS, flat_rows, variables_of


def select(trace: Any, step: Any = None, parameter: Any = None) -> Any:
    """Return the trace of some steps and parameters."""
    trace.complete()
    found = type(trace)(trace.name, dict(trace.settings))
    for name in ("stopped", "error", "problem", "optimizer", "steps_taken", "loss_function"):
        setattr(found, name, getattr(trace, name))
    found.sentences += trace.left_out
    wanted = chosen_steps(step, _all_steps(trace))
    found.marks += [(n, text) for n, text in trace.marks if wanted is None or n in wanted]
    every = _names_of(trace)
    names = set(chosen_names(parameter, every))
    steps = trace.step
    for kind in ("step", *SCALARS, "memory"):
        if (kind, 0) in trace.columns:
            found.columns[kind, 0].extend(trace.columns[kind, 0].array()[rows_of(steps, wanted)])
    for clock, layouts in trace.layouts.items():
        own = trace.steps(clock)
        chosen = rows_of(own, wanted)
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
    for one in variables_of(trace):
        if one.parameter not in names:
            continue
        array = chosen_rows(one.array, rows_of(trace.steps(one.clock), wanted))
        i = places[one.clock, one.parameter]
        found.columns[one.kind, i].extend(flat_rows(array))
    for label, record in trace.records.items():
        copy = found.records[label] = Record(label, record.text)
        copy.seconds, copy.bytes = record.seconds, record.bytes
        own = record.steps.array(np.int64)
        chosen = rows_of(own, wanted)
        copy.steps.extend(own[chosen])
        for quantity, arrays in record.arrays().items():
            for name, array in arrays.items():
                if name in names or name not in every:
                    column = copy.columns[quantity, name] = Column()
                    column.extend(array[chosen])
        copy.stored_results = {
            name: array[chosen] if array.ndim and len(array) == len(own) else array
            for name, array in record.results().items()
        }
    return found


def _all_steps(trace: Any) -> set[int]:
    clocks = [trace.step, *(trace.steps(clock) for clock in trace.layouts)]
    clocks += [record.steps.array(np.int64) for record in trace.records.values()]
    return {int(n) for own in clocks for n in own}


def _names_of(trace: Any) -> list[str]:
    """Return the names of all parameters of a trace."""
    named = [part[0] for layouts in trace.layouts.values() for layout in layouts for part in layout]
    return list(dict.fromkeys(named))
