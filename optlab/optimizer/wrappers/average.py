"""The base class of averages of weights over the steps, and an optimizer that also averages.

Averages read parameters and never move them, except in `apply`, which swaps the averages in.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, ClassVar, NamedTuple, Self, cast

import numpy as np

from optlab.autograd.tensor.tensor import Tensor
from optlab.backend.arrays import copied
from optlab.optimizer.interface import clear_gradients_of
from optlab.optimizer.params.flat import FlatParameters
from optlab.optimizer.params.groups import parameter_names
from optlab.optimizer.params.names import renamed, warn_if_told_apart_by_order
from optlab.optimizer.rule.formula import FormulaOfDocstring
from optlab.optimizer.rule.hyperparameters import checked_name
from optlab.optimizer.state_dict import check_is_mapping, raise_faults
from optlab.optimizer.step.step import Update
from optlab.optimizer.wrappers.checks import check_shape, checked_parameters
from optlab.optimizer.wrappers.state import Memory, memories_from_state, memories_to_state
from optlab.optimizer.wrappers.weight_swap import WeightSwap, last_swapper, own_weights
from optlab.optimizer.wrappers.wrapper import AfterStep, Wrapper, concatenate_flat, free_name


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
    #: The swap of `apply`; None while the parameters hold their own weights.
    _swap: WeightSwap | None
    #: The formula of the average, from the docstring; a notebook renders it.
    formula = FormulaOfDocstring()
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
        if name in vars(self).get("own_settings", {}):
            hint = f" Write .own_settings[{name!r}]."
        message = f"{type(self).__name__} has no {name!r}.{hint}"
        raise AttributeError(message, name=name, obj=self)

    # What a subclass defines --------------------------------------------------------------------

    def _initial_memory(self, values: Any) -> Memory:
        """Return the memory of a parameter of these values before any update."""
        raise NotImplementedError

    def _accumulate(self, memories: list[tuple[Memory, Any]]) -> None:
        """Add the current values to the average: a pair of memory and values per parameter."""
        raise NotImplementedError

    def _average(self, memory: Memory) -> Any:
        """Return the average, or None if nothing has been averaged yet."""
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
        self.sources = [*self.sources, *sources]
        self.memories = [
            *self.memories,
            *(self._initial_memory(source.values) for source in sources),
        ]

    def forget(self) -> None:
        """Reset to an average without parameters."""
        self.sources = []
        self.memories = []
        self._swap = None
        self._depth = 0

    def fresh(self) -> Self:
        """Return an average with the same settings and no parameters."""
        other = copy.copy(self)
        other.forget()
        return other

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
        """Add the current weights to the averages."""
        pairs = []
        for source, memory in zip(self.sources, self.memories, strict=True):
            values = source.values
            check_shape(source.parameter, values, memory)
            pairs.append((memory, values))
        self._accumulate(pairs)

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
        self._swap_in()
        return Applied(self, bool(need_restore))

    def _swap_in(self) -> None:
        """Write the averages into the parameters, unless that was done already."""
        if self._swap is not None:
            return
        self._require_parameters()
        averages = self.averages()
        for p, memory in zip(self.parameters, self.memories, strict=True):
            check_shape(p, p.data, memory)
        self._swap = WeightSwap(self, self.parameters, averages)

    def restore(self, executor: None = None) -> None:
        """Restore the weights that the parameters had before `apply`, to the bit.

        Does nothing if the averages are not applied.

        Raises
        ------
        RuntimeError
            If something moved the parameters meanwhile; the weights are restored all the same.
        """
        _no_executor(executor)
        moved = self._swap_out()
        if moved:
            raise RuntimeError(
                f"{moved} while the averages of {type(self).__name__} were applied. The weights of "
                "before were restored, so that change is lost. Train outside of the block."
            )

    def _swap_out(self) -> str:
        """Restore the weights, and return what moved the parameters meanwhile, or no text."""
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
        write()

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

    def __enter__(self) -> None:
        self.average._swap_in()
        self.average._depth += 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self.average._depth -= 1
        if self.average._depth or not self.need_restore:
            return
        if error is None:
            self.average.restore()
        else:
            self.average._swap_out()


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

    def _after(self, updated: list[bool]) -> None:
        if not any(updated):
            return
        try:
            self.average._update()
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

    def over_rows(self, start: Any) -> AfterStep:
        """Return what to do after each step, for parameters that are rows of one plain array."""
        own = self.average.fresh()
        memory = own._initial_memory(start)

        def after(p: Any) -> tuple[Any, dict[str, Any], dict[str, Any]]:
            own._accumulate([(memory, p)])
            average = own._average(memory)
            return p, {"average": average}, {"lag": p - average}

        return after

    def _memories(self) -> list[Memory]:
        self._watch()
        return self.average.memories

    def _set_memories(self, memories: list[Memory]) -> None:
        self.average.memories = memories

    def __repr__(self) -> str:
        values = "".join(f", {k}={v!r}" for k, v in self.average.own_settings.items())
        return f"{type(self.average).__name__}.around({self.inner_optimizer!r}{values})"


def _no_executor(executor: Any) -> None:
    if executor is not None:
        raise TypeError(
            "executor belongs to static graphs, which optlab does not have; leave it out, and "
            "write need_restore=... by name."
        )
