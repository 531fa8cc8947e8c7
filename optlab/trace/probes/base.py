"""What a probe is: a schedule, and a function from a step to named arrays."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from optlab.backend.arrays import on_host
from optlab.nn.docstrings import documented_with

Arrays = dict[str, np.ndarray]


class Schedule:
    """The steps at which a probe observes: every k-th, chosen ones, or in geometric progression.

    Parameters
    ----------
    every : int, optional
        Steps 1, 1 + every, 1 + 2 every, ...
    steps : collection of int, optional
        These steps.
    geometric : float, optional
        A ratio r above 1: the steps 1, r, r^2, ..., rounded up.

    Raises
    ------
    TypeError, ValueError
        If more than one is given, or one is not as described.

    Examples
    --------
    >>> doubling = Schedule(geometric=2.0)
    >>> [n for n in range(1, 20) if doubling.is_due(n)]
    [1, 2, 4, 8, 16]
    """

    def __init__(
        self,
        every: int | None = None,
        steps: Collection[int] | None = None,
        geometric: float | None = None,
    ) -> None:
        given = [name for name, x in (("every", every), ("steps", steps), ("geometric", geometric))
                 if x is not None]  # fmt: skip
        if len(given) > 1:
            raise TypeError(f"a probe has one schedule; got {' and '.join(given)}.")
        self.every = None if every is None else checked_count("every", every)
        self.steps = None if steps is None else _checked_steps(steps)
        if geometric is not None and not (
            isinstance(geometric, (int, float))
            and not isinstance(geometric, bool)
            and geometric > 1
        ):
            raise ValueError(f"geometric is a ratio above 1, such as 2.0; got {geometric!r}.")
        self.geometric = geometric
        self._reached: set[int] = set()
        self._power = 1.0

    @property
    def is_given(self) -> bool:
        """Whether the probe has a schedule of its own, not that of the recording."""
        return any(x is not None for x in (self.every, self.steps, self.geometric))

    def with_default(self, every: int) -> Schedule:
        """Return this schedule, or every k-th step if none was given."""
        return self if self.is_given else Schedule(every=every)

    @property
    def spacing(self) -> int:
        """The distance of the steps that are observed, if they all have one; otherwise 0."""
        return 0 if self.steps is not None or self.geometric is not None else self.every or 1

    def is_due(self, number: int) -> bool:
        """Return whether step `number`, from 1, is observed."""
        if self.steps is not None:
            return number in self.steps
        if self.geometric is not None:
            while self._power <= number:
                self._reached.add(int(np.ceil(self._power)))
                self._power *= self.geometric
            return number in self._reached
        return (number - 1) % (self.every or 1) == 0

    def next_after(self, number: int) -> float:
        """Return the first step after step `number` that is observed; infinity if there is none."""
        if self.steps is not None:
            return min((n for n in self.steps if n > number), default=math.inf)
        if self.geometric is not None:
            following = number + 1
            while not self.is_due(following):
                following += 1
            return following
        every = self.every or 1
        return number + every - (number - 1) % every

    def __repr__(self) -> str:
        if self.steps is not None:
            return f"steps={sorted(self.steps)}"
        if self.geometric is not None:
            return f"geometric={self.geometric:g}"
        return "" if self.every is None else f"every={self.every}"


def checked_count(name: str, value: Any, least: int = 1) -> int:
    """Return a whole number of at least `least`."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}; got {value!r}.")
    return int(value)


def takes(f: Callable[..., Any], count: int) -> bool:
    """Return whether a function may be called with so many arguments, as far as it tells.

    Examples
    --------
    >>> takes(lambda: 0.5, 0), takes(lambda: 0.5, 1), takes(max, 1)
    (True, False, True)
    """
    try:
        inspect.signature(f).bind(*range(count))
    except TypeError:
        return False
    except ValueError:  # of some functions in C nothing is known
        pass
    return True


def _checked_steps(steps: Any) -> frozenset[int]:
    try:
        found = [checked_count("a step", step) for step in steps]
    except TypeError as error:
        raise TypeError(f"steps is a list of step numbers, from 1; got {steps!r}.") from error
    return frozenset(found)


class Part(NamedTuple):
    """Neighboring parameters that are recorded as one flat row."""

    names: list[str]
    bounds: list[int]
    shapes: list[tuple[int, ...]]
    #: Returns the live values of the row.
    values: Callable[[], Any]
    #: Returns the live slots of the row.
    slots: Callable[[], dict[str, Any]]
    #: Returns the live gradients (or those that are given) in pieces, and whether one is missing:
    #: then they are one flat array.
    gradients: Callable[[Any], tuple[list[Any], bool]]

    def split(self, row: Any) -> Iterator[tuple[str, np.ndarray]]:
        """Yield each parameter's name and its part of a flat row, in its shape."""
        for i, name in enumerate(self.names):
            yield name, row[self.bounds[i] : self.bounds[i + 1]].reshape(self.shapes[i])


class Run:
    """The run that is recorded, as probes see it when the recording begins.

    Attributes
    ----------
    optimizer
        The optimizer that takes the steps.
    model
        What was given to ``ol.record(model=...)``; None without.
    """

    def __init__(self, optimizer: Any, parts: list[Part], model: Any = None) -> None:
        self.optimizer, self.parts, self.model = optimizer, parts, model

    @property
    def names(self) -> list[str]:
        """The names of all parameters."""
        return [name for part in self.parts for name in part.names]

    @property
    def parameters(self) -> Arrays:
        """The current values of all parameters: read them, and copy what is kept."""
        return self.split([part.values() for part in self.parts])

    @property
    def slots(self) -> dict[str, Arrays]:
        """The current slots of the optimizer, by their names: copy what is kept."""
        return self.split_named([part.slots() for part in self.parts])

    def split(self, rows: Sequence[Any]) -> Arrays:
        """Return the parameters' parts of flat rows, one row for each part of the run."""
        return {
            name: array
            for part, row in zip(self.parts, rows, strict=True)
            for name, array in part.split(on_host(row))
        }

    def split_named(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Arrays]:
        """Return the parameters' parts of named flat rows."""
        found: dict[str, Arrays] = {}
        for part, named in zip(self.parts, rows, strict=True):
            for name, row in named.items():
                found.setdefault(name, {}).update(part.split(on_host(row)))
        return found


class Step:
    """One step of a recorded run, as a probe sees it.

    Arrays are those of the run: read them, and copy what is kept. What is not asked for is not
    computed.

    Attributes
    ----------
    number : int
        The step, from 1.
    loss : float
        The loss before it; NaN if there was none.
    learning_rate : float
    seconds : float
        Since the start of the recording.
    run : Run
    """

    def __init__(
        self,
        run: Run,
        number: int,
        loss: float,
        learning_rate: float,
        seconds: float,
        rows: Sequence[Any] | None,
    ) -> None:
        self.run, self.number, self.loss = run, number, loss
        self.learning_rate, self.seconds = learning_rate, seconds
        self._rows = rows

    def _updates(self, what: str) -> Sequence[Any]:
        if self._rows is None:
            raise AttributeError(
                f"the {what} of a step are seen by probes with needs_update = True; this one has "
                "needs_update = False, and the step ran at full speed."
            )
        return self._rows

    @cached_property
    def parameters(self) -> Arrays:
        """The parameters after the step, by name."""
        if self._rows is None:
            return self.run.parameters
        return self.run.split([row.parameter for row in self._rows])

    @cached_property
    def slots(self) -> dict[str, Arrays]:
        """The optimizer's slots after the step: ``step.slots["moment1"]["w"]``."""
        if self._rows is None:
            return self.run.slots
        return self.run.split_named([row.slots for row in self._rows])

    @cached_property
    def gradients(self) -> Arrays:
        """The raw gradients, by name; NaN where the step had none."""
        return self.run.split([row.raw_gradient for row in self._updates("gradients")])

    @cached_property
    def terms(self) -> dict[str, Arrays]:
        """The named terms of the rule: ``step.terms["update"]["w"]``; NaN where left alone."""
        rows = self._updates("terms")
        known = dict.fromkeys(name for row in rows for name in row.terms)
        return self.run.split_named([
            {
                # A part that the step left alone has no terms.
                name: np.broadcast_to(row.terms.get(name, np.nan), row.parameter.shape)
                for name in known
            }
            for row in rows
        ])  # fmt: skip

    @cached_property
    def updates(self) -> Arrays:
        """The change of each parameter in the step; empty if the rule does not name it."""
        return self.terms.get("update", {})

    def named(self, what: str) -> Arrays:
        """Return parameters, gradients, updates, a slot or another term by its name.

        Raises
        ------
        KeyError
            If the step has nothing of that name; the message lists the names.
        """
        plain = {"parameter": "parameters", "gradient": "gradients", "update": "updates"}
        if what in plain:
            found: Arrays = getattr(self, plain[what])
            return found
        named = {**({} if self._rows is None else self.terms), **self.slots}
        if what not in named:
            raise KeyError(f"the step has no {what!r}; it has {', '.join([*plain, *named])}")
        return named[what]


class Probe:
    """The base class of probes: an event in, named arrays out.

    A subclass gives `observe`, which takes a `Step` and returns arrays by name; an entry may be a
    dict of arrays by the names of parameters. Each array has one shape in the whole run. It must
    not change what it is given; random draws inside do not touch those of the run.

    Parameters
    ----------
    every : int, optional
        Observe steps 1, 1 + every, ...; by default those of the recording.
    steps : collection of int, optional
        Observe these steps.
    geometric : float, optional
        Observe the steps 1, r, r^2, ... of this ratio.

    Attributes
    ----------
    label : str
        Its name in the trace.
    needs_update : bool
        Whether it reads gradients or terms of the update rule. A step that such a probe observes
        runs as it is written, without the fused loops; others run at full speed.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> class Largest(ol.probes.Probe):
    ...     needs_update = False
    ...     def observe(self, step):
    ...         return {"largest": {name: np.abs(w).max() for name, w in step.parameters.items()}}
    >>> w = ol.Parameter([3.0, -4.0], name="w")
    >>> optimizer = ol.optimizer.SGD(0.25, parameters=[w])
    >>> with ol.record(optimizer, probes=[Largest(every=2)]) as trace:
    ...     for _ in range(3):
    ...         optimizer.clear_grad()
    ...         (w * w).sum().backward()
    ...         optimizer.step()
    >>> trace["largest"]["w"], trace.steps("largest")
    (array([2. , 0.5], dtype=float32), array([1, 3]))
    """

    needs_update: bool = True
    #: Whether it has nothing to do with steps that it does not observe: then those may be replayed
    #: by a plan of `optlab.capture`.
    fits_plans: ClassVar[bool] = False
    #: Whether what it records of a resumed run goes on where it was interrupted.
    resumes: ClassVar[bool] = True

    def __init__(
        self,
        *,
        every: int | None = None,
        steps: Collection[int] | None = None,
        geometric: float | None = None,
    ) -> None:
        self.schedule = Schedule(every, steps, geometric)

    @property
    def label(self) -> str:
        """Its name in the trace."""
        return type(self).__name__

    def start(self, run: Run) -> None:
        """Prepare for a run, before its first step. Subclasses override this."""

    def observe(self, step: Step) -> Mapping[str, Any]:
        """Return arrays by name. Subclasses override this."""
        raise NotImplementedError(
            f"{type(self).__name__} has no observe(self, step) method; it returns arrays by name."
        )

    def result(self) -> Mapping[str, np.ndarray]:
        """Return arrays of the whole run so far, such as the axes of a plane. Most have none."""
        return {}

    def before_step(self, number: int, due: bool) -> None:
        """Prepare for step `number`, which is observed if `due`. Subclasses override this."""

    def stop(self) -> None:
        """Release what `start` took, after the last step. Subclasses override this."""

    def left_out(self) -> list[str]:
        """Return what it does not record of this run, in sentences."""
        return []

    def __repr__(self) -> str:
        own = {name: getattr(self, name) for name in self.shown}
        shown = [f"{name}={x!r}" for name, x in own.items() if x is not None]
        if repr(self.schedule):
            shown.append(repr(self.schedule))
        return f"{type(self).__name__}({', '.join(shown)})"

    #: The attributes that `repr` shows.
    shown: ClassVar[tuple[str, ...]] = ()


#: Completes the docstring of a probe by the arguments that probes share.
documented = documented_with(
    """parameters : str or list of str, optional
    The names of the parameters; all by default.
every, steps, geometric
    The schedule, as of every `Probe`.""",
    rest=("every", "steps", "geometric"),
)


def chosen_names(parameters: Any, run: Run, who: str) -> list[str]:
    """Return the names of the chosen parameters, all without a choice.

    Raises
    ------
    ValueError
        If one is not a parameter of the run; the message lists the names.
    """
    names = run.names
    if parameters is None:
        return names
    wanted = [parameters] if isinstance(parameters, str) else list(parameters)
    unknown = [name for name in wanted if name not in names]
    if unknown:
        raise ValueError(
            f"{who}: the run has no parameter {unknown[0]!r}; it has {', '.join(names)}."
        )
    return [name for name in names if name in wanted]
