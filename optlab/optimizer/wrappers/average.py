"""The base class of averages of weights over the steps, and an optimizer that also averages.

Averages read parameters and never move them, except in `apply`, which swaps the averages in.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from functools import partial
from types import TracebackType
from typing import Any, ClassVar, NamedTuple, Self, cast

import numpy as np

from optlab.autograd.tensor.tensor import Tensor, raw
from optlab.backend.arrays import copied
from optlab.backend.call_recorder import effect
from optlab.optimizer.interface import clear_gradients_of
from optlab.optimizer.params.flat import FlatParameters
from optlab.optimizer.params.groups import parameter_names
from optlab.optimizer.params.names import renamed, warn_if_told_apart_by_order
from optlab.optimizer.rule.formula import FormulaOfDocstring
from optlab.optimizer.rule.hyperparameters import checked_name
from optlab.optimizer.state_dict import check_is_mapping, raise_faults
from optlab.optimizer.step import functional
from optlab.optimizer.step.after_steps import AfterSteps
from optlab.optimizer.step.roll_forward import Unfinished, carried_through
from optlab.optimizer.step.step import Update
from optlab.optimizer.wrappers.checks import check_shape, checked_parameters
from optlab.optimizer.wrappers.state import Memory, memories_from_state, memories_to_state
from optlab.optimizer.wrappers.weight_swap import WeightSwap, last_swapper, own_weights
from optlab.optimizer.wrappers.wrapper import AfterStep, Wrapper, concatenate_flat, free_name
from optlab.plan import CaptureError
from optlab.plan.progress import Progress
from optlab.plan.undisturbed import undisturbed, whole


class Source(NamedTuple):
    """A parameter to average, or the float32 copy of it in the flat parameters of an optimizer."""

    parameter: Tensor
    flat: FlatParameters | None = None
    number: int = 0

    @property
    def values(self) -> Any:
        """The current values, in float32 at least."""
        p, flat, i = self
        if flat is not None and flat.master is not None:
            flat.make_ready()
            return flat.master[flat.bounds[i] : flat.bounds[i + 1]].reshape(p.data.shape)
        return p.data.astype(np.result_type(p.data.dtype, np.float32), copy=False)


class Average:
    """The base class of `ModelAverage` and `ExponentialMovingAverage`."""

    holds_arrays = True  # for memory ledgers

    name: str | None
    own_settings: dict[str, Any]
    sources: list[Source]
    memories: list[Memory]
    unfinished: Unfinished
    #: The swap of `apply`; None while the parameters hold their own weights.
    _swap: WeightSwap | None
    #: The formula of the average, from the docstring; a notebook renders it.
    formula = FormulaOfDocstring()
    #: Settings that `own_settings` has only if they were given.
    optional_settings: ClassVar[tuple[str, ...]] = ()
    #: Hints for methods that do not exist.
    instead: ClassVar[dict[str, str]] = {}

    def __init__(self, parameters: Any, name: str | None) -> None:
        self.name = checked_name(name)
        self.forget()
        if parameters is not None:
            self.watch([Source(p) for p in checked_parameters(type(self).__name__, parameters)])

    def __setattr__(self, name: str, value: Any) -> None:
        if name in vars(self).get("own_settings", {}):
            raise AttributeError(
                f"{name} of {type(self).__name__} is given when it is made; make a new one, and "
                "give it the state of this: new.set_state_dict(old.state_dict())."
            )
        super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        hint = self.instead.get(name, "")
        if name in ("functional_init", "functional_step"):
            hint = (
                f" Alone it takes no step: {type(self).__name__}.around(optimizer, ...) is an "
                f"optimizer that averages, too, and has {name}."
            )
        if name in vars(self).get("own_settings", {}):
            hint = f" Write .own_settings[{name!r}]."
        message = f"{type(self).__name__} has no {name!r}.{hint}"
        raise AttributeError(message, name=name, obj=self)

    # What a subclass defines --------------------------------------------------------------------

    def _initial_memory(self, values: Any) -> Memory:
        """Return the memory of a parameter of these values before any update."""
        raise NotImplementedError

    def _accumulate(self, memories: list[tuple[Memory, Any]], progress: Progress) -> None:
        """Add the current values to the average: a pair of memory and values per parameter.

        All that it writes are calls of `progress`: it is called again after an exception.
        """
        raise NotImplementedError

    def _average(self, memory: Memory) -> Any:
        """Return the average, or None if nothing has been averaged yet."""
        raise NotImplementedError

    def _functional_settings(self, given: dict[str, Any]) -> Any:
        """Return the settings of a functional step, some of which were given."""
        raise NotImplementedError

    def _next_memory(self, memory: Memory, values: Any, settings: Any) -> Memory:
        """Return a new memory with these values: what `_accumulate` does, nothing in place."""
        raise NotImplementedError

    # Parameters ---------------------------------------------------------------------------------

    @property
    def parameters(self) -> list[Tensor]:
        """The averaged parameters."""
        return [source.parameter for source in self.sources]

    @classmethod
    def around(cls, optimizer: Any, *args: Any, **kwargs: Any) -> Averaged:
        """Return an optimizer that also averages: each `step` is the optimizer's, then an update.

        Parameters
        ----------
        optimizer : Optimizer
            Its parameters are averaged. A template makes a template, for `optlab.compare`.
        *args, **kwargs
            The arguments of the average, without `parameters`.

        Returns
        -------
        Averaged
            An optimizer with `apply` and `restore`.
        """
        if kwargs.get("parameters") is not None:
            raise TypeError(
                f"{cls.__name__}.around averages the parameters of the optimizer; leave parameters "
                "out."
            )
        return Averaged(optimizer, cls(*args, **kwargs))

    def watch(self, sources: list[Source]) -> None:
        """Add parameters to average."""
        new = [self._initial_memory(source.values) for source in sources]
        # Both in one call: an interrupt between them would leave sources without memory.
        vars(self).update(sources=[*self.sources, *sources], memories=[*self.memories, *new])

    def forget(self) -> None:
        """Reset to an average without parameters."""
        self.sources = []
        self.memories = []
        self._swap = None
        self._depth = 0
        self.unfinished = Unfinished()

    def fresh(self) -> Self:
        """Return an average with the same settings and no parameters."""
        other = copy.copy(self)
        other.forget()
        return other

    @effect
    def clear_grad(self, set_to_zero: bool = True) -> None:
        """Clear the gradients of all parameters, as `Optimizer.clear_grad` does."""
        clear_gradients_of(self.parameters, set_to_zero)

    # Averaging ----------------------------------------------------------------------------------

    def _require_parameters(self) -> None:
        who = type(self).__name__
        if not self.sources:
            raise RuntimeError(
                f"this {who} has no parameters; give it parameters=model.parameters(), or write "
                f"{who}.around(optimizer)."
            )

    def require_own_weights(self, what: str) -> None:
        """Raise if there are no parameters, or if averages, of this or another, are swapped in."""
        self._require_parameters()
        owner = last_swapper(self.parameters)
        if owner is not None:
            raise RuntimeError(
                f"{what} while the averages of {owner} are applied would take them for trained "
                "weights. Leave the `with` block of its apply() first, or call its restore()."
            )

    def averages(self) -> list[Any]:
        """Return the average of each parameter; before any update, the weights themselves.

        Examples
        --------
        >>> import optlab as ol
        >>> w = ol.Parameter([1.0])
        >>> ema = ol.optimizer.ExponentialMovingAverage(0.5, parameters=[w])
        >>> ema.update()
        >>> ema.averages()
        [array([1.], dtype=float32)]
        """
        found = []
        for source, memory in zip(self.sources, self.memories, strict=True):
            average = self._average(memory)
            if average is None:
                own = own_weights(source.parameter)
                average = copied(source.values if own is None else own)
            found.append(average)
        return found

    def _update(self) -> None:
        """Add the current weights to the averages, to those of all parameters or of none."""
        self.unfinished.finish()
        carried_through(self.unfinished, self.accumulate)

    def accumulate(self, progress: Progress) -> None:
        """Add the current weights to the averages, as far as that is not done."""
        pairs = []
        for source, memory in zip(self.sources, self.memories, strict=True):
            values = source.values
            check_shape(source.parameter, values, memory)
            pairs.append((memory, values))
        self._accumulate(pairs, progress)

    @effect
    def apply(self, executor: bool | None = None, need_restore: bool = True) -> Applied:
        """Write the averages into the parameters, until `restore`.

        Parameters
        ----------
        executor : None
            An argument of static graphs, which optlab does not have. A bool in its place is taken
            for `need_restore`.
        need_restore : bool
            Whether leaving the ``with`` block restores the weights; if not, call `restore`.

        Returns
        -------
        context manager
            The averages are written already. Leaving the block restores the weights of every
            parameter to the bit, also after an exception. Blocks may be nested: the outermost
            decides. Two averages of the same parameters may be applied one over the other: the last
            one is visible, and when both are restored, in any order, so are the weights.

        Raises
        ------
        RuntimeError
            If there are no parameters. On leaving, if something moved the parameters in the block;
            the weights are restored then, too.

        Examples
        --------
        >>> import optlab as ol
        >>> w = ol.Parameter([1.0])
        >>> average = ol.optimizer.ModelAverage(0.15, parameters=[w])
        >>> average.step()
        >>> w.set_value([2.0])
        >>> average.step()
        >>> with average.apply():
        ...     print(w.numpy())
        [1.5]
        >>> w.numpy()
        array([2.], dtype=float32)
        """
        if isinstance(executor, bool):
            need_restore = executor
        else:
            _no_executor(executor)
        applied = self._swap
        try:
            self._swap_in()
            return Applied(self, bool(need_restore))
        except BaseException:
            if applied is None:  # else a block around this one restores the weights
                undisturbed(self._swap_out)
            raise

    def _swap_in(self) -> None:
        """Write the averages into the parameters, unless that was done already."""
        if self._swap is not None:
            return
        self._require_parameters()
        averages = self.averages()
        for p, memory in zip(self.parameters, self.memories, strict=True):
            check_shape(p, p.data, memory)
        swap = WeightSwap(self, self.parameters, averages)
        try:
            swap.write()
            self._swap = swap
        except BaseException:
            if self._swap is None:
                undisturbed(swap.take_back)
            raise

    @effect
    def restore(self, executor: None = None) -> None:
        """Restore the weights that the parameters had before `apply`, to the bit.

        Does nothing if the averages are not applied.

        Raises
        ------
        RuntimeError
            If something moved the parameters meanwhile; the weights are restored all the same.
        """
        _no_executor(executor)
        moved = whole(self._swap_out)
        if moved:
            raise RuntimeError(
                f"{moved} while the averages of {type(self).__name__} were applied. The weights of "
                "before were restored, so that change is lost. Train outside of the block."
            )

    def _swap_out(self) -> str:
        """Restore the weights, and return what moved the parameters meanwhile, or no text."""
        self._depth = 0
        swap = self._swap
        if swap is None:
            return ""
        moved = swap.undo(self.averages()[: len(swap.parameters)])  # parameters may have been added
        self._swap = None
        return moved

    # State --------------------------------------------------------------------------------------

    def names(self) -> list[str]:
        """Return the names of the parameters."""
        names = parameter_names(cast("Any", [self]))
        return [names[id(p)] for p in self.parameters]

    def state_dict(self) -> dict[str, Any]:
        """Return the memory of each parameter by its name; arrays are copies."""
        self.unfinished.finish()
        return memories_to_state(self.names(), self.memories)

    def set_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Load a state of `state_dict`; parameters are found by their names.

        Raises
        ------
        TypeError
            If it is no mapping.
        ValueError
            If entries are missing, unexpected, or of another shape or dtype; the message lists
            them. Nothing has changed then.

        Warns
        -----
        UserWarning
            If several parameters of one shape share a name and their averages differ: they are
            then told apart by their order alone.
        """
        write = self.checked_state(state_dict)
        names = self.names()
        given = renamed(state_dict, names)
        by_position = given.keys() != state_dict.keys()
        warn_if_told_apart_by_order(given, self.parameters, names, by_position)
        whole(write)

    set_dict = set_state_dict
    load_state_dict = set_state_dict

    def checked_state(self, state_dict: Mapping[str, Any]) -> Callable[[], None]:
        """Check a state, and return a function that writes it."""
        check_is_mapping(state_dict)
        given = renamed(state_dict, self.names())
        memories, faults = memories_from_state(self.names(), self.memories, given)
        raise_faults(type(self).__name__, faults)

        def write() -> None:
            self.memories = memories

        return write

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in self.own_settings.items())
        n = len(self.sources)
        after = f", {n} parameter{'s' * (n != 1)}" if n else ""
        return f"{type(self).__name__}({values}){after}"

    def _repr_html_(self) -> str:
        from optlab.optimizer.display import average_page

        return average_page(self)


class Applied:
    """The ``with`` block in which parameters hold their averages."""

    def __init__(self, average: Average, need_restore: bool) -> None:
        self.average = average
        self.need_restore = need_restore
        self._outside = 0  # blocks around this one

    def __enter__(self) -> None:
        average = self.average
        self._outside = average._depth
        try:
            average._swap_in()
            average._depth = self._outside + 1
        except BaseException:
            if not self._outside and self.need_restore:
                undisturbed(average._swap_out)
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        whole(partial(self._leave, error is None))

    def _leave(self, reports: bool) -> None:
        average = self.average
        average._depth = self._outside
        if average._depth or not self.need_restore:
            return
        if reports:
            average.restore()
        else:
            average._swap_out()


class Averaged(Wrapper):
    """An optimizer with an average of its weights for evaluation; training is unchanged.

    Made by ``ExponentialMovingAverage.around(optimizer)`` and ``ModelAverage.around(optimizer)``.
    With ``multi_precision`` the float32 copies of the weights are averaged.

    Parameters
    ----------
    inner_optimizer : Optimizer
        Or a template, which makes this a template, too.
    average : ModelAverage or ExponentialMovingAverage
        Made without parameters.

    Notes
    -----
    A step that updates no parameter (no gradients, or not finite ones that are skipped) is not
    averaged. A recording has the average, as `apply` would write it, as the slot ``average``, and
    the difference of the weights from it as the term ``lag``.

    Examples
    --------
    >>> import optlab as ol
    >>> EMA = ol.optimizer.ExponentialMovingAverage
    >>> race = ol.compare(
    ...     "rosenbrock", {"EMA": EMA.around(ol.optimizer.Adam(0.1), decay=0.9)}, steps=20
    ... )
    >>> race["EMA"]["average"].shape
    (20, 2)
    """

    def __init__(self, inner_optimizer: Any, average: Average) -> None:
        super().__init__(inner_optimizer, getattr(average, "name", None))
        if not isinstance(average, Average) or average.sources:
            raise TypeError(
                "the average is a ModelAverage or ExponentialMovingAverage made without "
                f"parameters; got {average!r}."
            )
        self.average = average.fresh()
        self.formula = average.formula

    @property
    def own_settings(self) -> dict[str, Any]:
        """The settings of the average."""
        return {"average": type(self.average).__name__, **self.average.own_settings}

    def _is_own_setting(self, name: str) -> bool:
        average = vars(self).get("average")
        return average is not None and name in average.own_settings

    @effect
    def apply(self, executor: bool | None = None, need_restore: bool = True) -> Applied:
        """Write the averages into the parameters, until `restore`."""
        self._require_parameters()
        self._watch()
        return self.average.apply(executor, need_restore)

    def restore(self, executor: None = None) -> None:
        """Restore the weights that the parameters had before `apply`, to the bit."""
        self.average.restore(executor)

    def _forget(self) -> None:
        self.average = self.average.fresh()

    def _watch(self) -> None:
        new = self.places[len(self.average.sources) :]
        self.average.watch([Source(flat.parameters[i], flat, i) for flat, i in new])

    def _before(self) -> None:
        self._watch()
        self.average.require_own_weights("step()")

    def _after(self, updated: list[bool], progress: Progress) -> None:
        if not any(updated):
            return
        try:
            self.average.accumulate(progress)
        except Exception as error:
            error.add_note(
                f"The step of {self.inner_optimizer.__class__.__name__} was taken before; the "
                "average is as it was. Once this is mended, the next step averages again."
            )
            raise

    def _add_to_row(self, row: Update, acted: Any) -> Update:
        averages = self.average.averages()
        own = [n for n, (flat, _) in enumerate(self.places) if flat is row.arena]
        average = concatenate_flat([averages[n] for n in own])
        return row._replace(
            slots={**row.slots, free_name("average", row.slots): average},
            terms={**row.terms, free_name("lag", row.terms): row.parameter - average},
        )

    def functional_averages(self, parameters: Any, state: Any, /) -> Any:
        """Return the averages in a state of `functional_step`, in a container like `parameters`.

        Parameters
        ----------
        parameters : array or Tensor, or a list, tuple or dict of them
            They are returned themselves where nothing has been averaged yet.
        state : dict
            From `functional_init` or `functional_step`.

        Examples
        --------
        >>> import numpy as np
        >>> import optlab as ol
        >>> ema = ol.optimizer.ExponentialMovingAverage.around(ol.optimizer.SGD(0.1), decay=0.5)
        >>> w = np.array([1.0])
        >>> state = ema.functional_init(w)
        >>> for _ in range(2):
        ...     w, state = ema.functional_step(w, np.ones(1), state)
        >>> ema.functional_averages(w, state).round(4)
        array([0.8333])
        """
        leaves = functional.Leaves(parameters)
        found = []
        for p, memory in zip(leaves.parts, self._functional_memories(leaves, state), strict=True):
            average = self.average._average(memory)
            found.append(functional.fresh(p) if average is None else average)
        return leaves.given_back(found)

    def _functional_memories(self, leaves: Any, state: Any) -> list[Memory]:
        """Return the memory of each leaf in a state."""
        labels = self.average._initial_memory(np.zeros(1, np.float32)).items()
        found: list[Memory] = [{} for _ in leaves.parts]
        for label, example in labels:
            column = leaves.like(functional.entry(state, label), f"state[{label!r}]")
            for memory, x in zip(found, column, strict=True):
                if isinstance(example, int):
                    memory[label] = functional.count_of(x, f"state[{label!r}]")
                elif isinstance(example, float):
                    memory[label] = functional.memory_number(x)
                else:
                    memory[label] = x
        return found

    def _functional_state(self, leaves: Any, inner: Any, memories: list[Memory]) -> dict[str, Any]:
        """Return a state of memories and that of the inner optimizer."""
        columns = {
            label: leaves.build(
                [
                    functional.handed(m[label], p) if hasattr(m[label], "dtype") else m[label]
                    for m, p in zip(memories, leaves.parts, strict=True)
                ]
            )
            for label in memories[0]
        }
        return {"inner_optimizer": inner, **columns}

    def _functional_names(self) -> tuple[str, list[str]]:
        average = self.average
        names = [*average.own_settings, *average.optional_settings]
        return type(average).__name__, list(dict.fromkeys(names))

    def _functional_own(self, named: dict[str, Any]) -> dict[str, Any]:
        """Take the settings of the average out of the hyper-parameters, and return them."""
        who, names = self._functional_names()
        own = functional.take_own(names, named, who, self.inner_optimizer)
        for name in own:
            del named[name]
        return own

    def _functional_start(self, leaves: Any, values: list[Any], named: Any) -> dict[str, Any]:
        named = dict(named)
        self._functional_own(named)
        inner = self.inner_optimizer._functional_start(leaves, values, named)
        memories = [self.average._initial_memory(raw(_wide(x))) for x in values]
        return self._functional_state(leaves, inner, memories)

    def _functional_take(
        self, leaves: Any, values: list[Any], gradients: list[Any], state: Any, named: Any
    ) -> tuple[list[Any], dict[str, Any], list[bool]]:
        named = dict(named)
        settings = self.average._functional_settings(self._functional_own(named))
        memories = self._functional_memories(leaves, state)
        inner = functional.entry(state, "inner_optimizer")
        new, inner, moved = self.inner_optimizer._functional_take(
            leaves, values, gradients, inner, named
        )
        if any(moved):
            memories = [
                self.average._next_memory(memory, _wide(x), settings)
                for memory, x in zip(memories, new, strict=True)
            ]
        return new, self._functional_state(leaves, inner, memories), moved

    def member_memory(self, start: Any) -> Memory:
        """Return the memory of members that start at these points, for `member_after`."""
        return self.average._initial_memory(start)

    def member_after(self, memory: Memory, p: Any) -> tuple[Any, Memory]:
        """Return the weights after a step of the inner optimizer has moved them to `p`."""
        return p, self.average._next_memory(memory, p, self.average._functional_settings({}))

    def over_rows(self, start: Any) -> AfterStep:
        """Return what to do after each step, for parameters that are rows of one plain array."""
        own = self.average.fresh()
        memory = own._initial_memory(start)

        def after(p: Any) -> tuple[Any, dict[str, Any], dict[str, Any]]:
            own._accumulate([(memory, p)], Progress())
            average = own._average(memory)
            return p, {"average": average}, {"lag": p - average}

        return after

    def _captured(self, own: Mapping[str, Any]) -> AfterSteps:
        """Return what to do after each step, for `capture_rule`."""
        callables = [name for name, x in self.own_settings.items() if callable(x)]
        if callables:
            raise CaptureError(f"{callables[0]} of this average is a function.")
        average = self.average
        settings = average._functional_settings({k: own[k] for k in average.own_settings})
        memory = average._initial_memory(np.zeros(1))
        numbers = {k: x for k, x in memory.items() if not hasattr(x, "dtype")}
        arrays = [k for k in memory if k not in numbers]

        def after(t: int, p: Any, slots: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
            known = {**numbers, **{k: slots[k] for k in arrays}}
            new = average._next_memory(known, p, settings)
            numbers.update({k: new[k] for k in numbers})
            return p, {**{k: new[k] for k in arrays}, "average": average._average(new)}

        return AfterSteps({**dict.fromkeys(arrays, 0.0), "average": None}, after, "average")

    def _memories(self) -> list[Memory]:
        self._watch()
        return self.average.memories

    def _set_memories(self, memories: list[Memory]) -> None:
        self.average.memories = memories

    def __repr__(self) -> str:
        values = "".join(f", {k}={v!r}" for k, v in self.average.own_settings.items())
        return f"{type(self.average).__name__}.around({self.inner_optimizer!r}{values})"


def _wide(values: Any) -> Any:
    """Return values in float32 at least."""
    dtype = np.result_type(values.dtype, np.float32)
    return values if values.dtype == dtype else values.astype(dtype)


def _no_executor(executor: Any) -> None:
    if executor is not None:
        raise TypeError(
            "executor belongs to static graphs, which optlab does not have; leave it out, and "
            "write need_restore=... by name."
        )
