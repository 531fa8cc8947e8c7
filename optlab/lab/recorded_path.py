"""The recorded run of one point on a surface, as a program of Python floats.

A race of an optimizer on a surface takes some hundred steps of two numbers. As Tensors and arrays a
step takes 20 us, of which the arithmetic is 1. Where the surface has a plan and the rule is one of
optlab's own and elementwise, both are run on floats, whose results are the same to the bit, and the
trace is filled with what its recorder would have recorded.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable
from operator import itemgetter
from typing import Any

import numpy as np

from optlab.backend import events
from optlab.lab.evaluation_budget import advance
from optlab.lab.problems.surface import SurfaceRun
from optlab.optimizer import Optimizer
from optlab.optimizer.regularizer import with_decay
from optlab.optimizer.rule.namespaces import HyperParameters, Scalars, Slots
from optlab.plan.float_program import float_program
from optlab.plan.tracer import CaptureError
from optlab.trace import Trace

#: Below so many steps the capture of a rule costs more than it saves.
FEWEST = 100

#: The programs of rules that were captured, the latest last.
_programs: dict[Any, tuple[Callable[..., tuple[float, ...]], list[str]]] = {}
_MOST = 64

_EVENTS = (events.operation_ran, events.operation_recorded, events.step_finished)


def why_general(optimizer: Optimizer, run: Any) -> str:
    """Return why only the general run records what it does, if so: something is not the usual."""
    if type(run) is not SurfaceRun:
        return f"{run.network.title} is a network" if hasattr(run, "network") else "its problem"
    group = optimizer.groups[0]
    flat = group.arenas[0]
    listened = len(events.step_taken.listeners) + len(events.backward_finished.listeners) > 2
    kind = type(optimizer).__name__
    if optimizer.layers():
        return f"{kind} is around another optimizer"
    if not optimizer.built_in:
        return f"{kind} is a rule of your own"
    if optimizer.kind != "elementwise" or optimizer.custom_step:
        return f"{kind} is no elementwise rule"
    if optimizer.draws:
        return f"{kind} draws random numbers"
    if optimizer.not_finite != "pass" or group.grad_clip is not None:
        return "not_finite and grad_clip look at the whole gradient"
    if type(flat.settings[0].h) is not HyperParameters or flat.flat.dtype != np.float64:
        return "settings or dtype are not plain numbers"
    if listened or any(event.listeners for event in _EVENTS):
        return "something else listens to the engine"
    return ""


def why_not(optimizer: Optimizer, run: Any, steps: int) -> str:
    """Return why a run may not be one of floats, if so."""
    why = why_general(optimizer, run)
    if why:
        return why
    if not run.on_floats:
        return f"{run.surface.title} needs more than Python's floats"
    return f"fewer than {FEWEST} steps" if steps < FEWEST else ""


def run_path(
    optimizer: Optimizer, run: SurfaceRun, steps: int, trace: Trace, counts: list[int]
) -> tuple[int, float] | None:
    """Run an optimizer on a surface, and write its trace.

    Parameters
    ----------
    optimizer : Optimizer
    run : SurfaceRun
        At its start; at the end its point is where the run has ended.
    steps : int
        Gradient evaluations.
    trace : Trace
        Of a recorder that has recorded no step yet.
    counts : list of int
        Receives how many gradients were evaluated before each update.

    Returns
    -------
    int and float, or None
        The number of updates, and the loss before the next one if it is not finite, NaN otherwise.
        None if something needs the general run; nothing has changed then.
    """
    flat = optimizer.groups[0].arenas[0]
    (span,) = flat.spans(list(flat.parameters), optimizer.groups[0].regularizer, True)
    rows: list[tuple[float, ...]] = []
    try:
        loop = _Loop(optimizer, run, span)
    except CaptureError:
        return None
    stopped = math.nan
    try:
        stopped = loop.take(steps, rows)
    except (ArithmeticError, ValueError, TypeError):
        return None  # a quotient by 0, for instance, which has a value for NumPy
    except BaseException:  # an interrupt: what there is, is kept
        _write(trace, loop, rows)
        raise
    _write(trace, loop, rows)
    counts += range(1, len(rows) + 1)
    run.point.data[...] = rows[-1][loop.of_point] if rows else run.point.data
    return len(rows), stopped


class _Loop:
    """The steps of a run: gradient, numbers of the step, update."""

    def __init__(self, optimizer: Optimizer, run: SurfaceRun, span: Any) -> None:
        self.optimizer, self.run, self.span = optimizer, run, span
        group = optimizer.groups[0]
        self.flat = group.arenas[0]
        self.schedule = copy.deepcopy(optimizer.schedule)
        self.slots = list(self.flat.slots)
        self.size = self.flat.bounds[-1]
        self.decays = span.regularizer is not None
        # The first columns of a row are loss, rate and time.
        self.of_gradient = slice(3, 3 + self.size)
        self.of_point = slice(3 + self.size, 3 + 2 * self.size)
        self.programs: dict[Any, Any] = {}
        self.names: list[str] = []
        self.order: Any = None

    def take(self, steps: int, rows: list[tuple[float, ...]]) -> float:
        """Take steps and append a row for each; return the loss that stopped it, or NaN."""
        optimizer, run, span, size = self.optimizer, self.run, self.span, self.size
        group, h, schedule = optimizer.groups[0], span.h, self.schedule
        point = tuple(run.point.data.tolist())
        slots = tuple(x for name in self.slots for x in self.flat.slots[name].tolist())
        evaluate, noise = run.evaluate, run.noise
        last = size * (1 + len(self.slots))
        rate_of = optimizer.get_lr if schedule is None else lambda: float(schedule())
        started = time.perf_counter()
        for step in range(steps):
            value, *gradient = evaluate(*point)
            value = float(value)
            if noise is not None:
                gradient = [g + x for g, x in zip(gradient, noise.at(step).tolist(), strict=True)]
            if not math.isfinite(value):
                return value
            rate = rate_of() * group.multiplier
            if not rate:
                raise ValueError  # the general run warns of it
            h.__dict__["learning_rate"] = own = rate * span.multiplier
            scalars = optimizer.scalars(step + 1, h)
            program, numbers = self._program(scalars)
            found = program(*point, *map(float, gradient), *slots, own, *numbers)
            rows.append((value, rate, time.perf_counter() - started, *gradient, *found))
            point = found[:size]
            slots = found[size:last] if self.order is None else self.order(found)
            if schedule is not None:
                advance(schedule, value)
        return math.nan

    def _program(self, scalars: dict[str, Any]) -> tuple[Any, list[float]]:
        """Return the program for the scalars of a step, and the numbers among them."""
        numbers = [x for x in scalars.values() if type(x) is float]
        static = tuple((name, x) for name, x in scalars.items() if type(x) is not float)
        program = self.programs.get(static)
        if program is None:
            program, names = self._captured(scalars, static)
            if self.names not in ([], names):
                raise ValueError  # terms that come and go
            self.names = names
            self.programs[static] = program
            # A rule may return its slots in another order than it declares them.
            own = [f"slot {name}" for name in self.slots]
            if own != names[1 : 1 + len(own)]:
                starts = [names.index(name) * self.size for name in own]
                self.order = itemgetter(*[a + e for a in starts for e in range(self.size)])
        return program, numbers

    def _captured(self, scalars: dict[str, Any], static: tuple[Any, ...]) -> tuple[Any, list[str]]:
        """Return the program of the rule with these settings, and the names of its results."""
        optimizer, span = self.optimizer, self.span
        cls, decay, h = type(optimizer), span.regularizer, span.h
        fixed = tuple((name, x) for name, x in vars(h).items() if name != "learning_rate")
        of_decay = None if decay is None else (type(decay), *vars(decay).items())
        moving = {name: x for name, x in scalars.items() if type(x) is float}
        key = (cls, cls.update, fixed, static, tuple(moving), of_decay, self.size)

        def step(arrays: dict[str, Any], numbers: dict[str, Any]) -> dict[str, Any]:
            numbers = dict(numbers)
            settings = HyperParameters(**vars(h) | {"learning_rate": numbers.pop("learning_rate")})
            p, g = arrays["parameter"], arrays["gradient"]
            g, added = with_decay(decay, g, p, optimizer.separate_decay)
            c = Scalars(**dict(static) | numbers)
            if added is not None:
                c.decay = added
            own = Slots(**{name: arrays[f"slot {name}"] for name in self.slots})
            new, made, *terms = optimizer.update(p, g, own, settings, c)
            named = terms[0] if terms else {}
            used = {"term used_gradient": g} if self.decays else {}
            return {
                "parameter": new,
                **{f"slot {name}": value for name, value in made.items()},
                **used,
                **{f"term {name}": term for name, term in named.items()},
            }

        try:
            if key in _programs:
                return _programs[key]
        except TypeError as error:
            raise CaptureError("a setting cannot be a key of a dict.") from error
        names = ["parameter", "gradient", *(f"slot {name}" for name in self.slots)]
        first = {"learning_rate": h.learning_rate} | moving
        while len(_programs) >= _MOST:
            _programs.pop(next(iter(_programs)), None)
        _programs[key] = program = float_program(step, names, first, self.size)
        return program


def _write(trace: Trace, loop: _Loop, rows: list[tuple[float, ...]]) -> None:
    """Write the rows into the columns of a trace, in the order of the recorder."""
    if not rows:
        return
    table, size, columns = np.array(rows), loop.size, trace.columns
    columns["step", 0].extend(np.arange(1, len(rows) + 1))
    for number, kind in enumerate(("loss", "learning_rate", "seconds")):
        columns[kind, 0].extend(table[:, number].copy())
    first = loop.of_point.start
    columns["parameter", 0].extend(table[:, loop.of_point].copy())
    columns["gradient", 0].extend(table[:, loop.of_gradient].copy())
    for number, kind in enumerate(loop.names[1:], 1):
        start = first + number * size
        columns[kind, 0].extend(table[:, start : start + size].copy())
