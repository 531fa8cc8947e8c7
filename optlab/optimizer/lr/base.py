"""LRScheduler: what all schedules of the learning rate share."""

from __future__ import annotations

import copy
import functools
import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

from optlab.backend import display
from optlab.backend.arrays import as_float
from optlab.optimizer.formula import FormulaOfDocstring
from optlab.optimizer.lr import arguments
from optlab.optimizer.settings import by_names


def _without_optimizer(init: Callable[..., None]) -> Callable[..., None]:
    """Make an ``__init__`` that says what to do with an optimizer, or with an unknown name."""
    inner = by_names(init)
    first = init.__code__.co_varnames[1:2]

    @functools.wraps(init)
    def checked_init(self: Any, *args: Any, **named: Any) -> None:
        arguments.no_optimizer(type(self).__name__, first, args, named)
        inner(self, *args, **named)

    return checked_init


class LRScheduler:
    """The base class of all schedules: a learning rate that depends on a count of epochs.

    Give it to an optimizer instead of a number, and call `step` when the count goes on: after every
    epoch, or after every update, as you count. ``optimizer.step()`` never does. Calling the
    schedule gives the present rate.

    A schedule of one's own is a class with ``get_lr``, which gives the rate of ``self.last_epoch``.
    What else it has to remember it names in ``state_keys``.

    Parameters
    ----------
    learning_rate : float
        The base rate b.
    last_epoch : int
        Where to go on: the schedule begins at the epoch after this one. By default at epoch 0.
    verbose : bool
        Print a line with every new rate.

    Attributes
    ----------
    base_lr, last_lr : float
        The base rate and the present rate.
    last_epoch : int
        The count e, 0 after construction.

    Raises
    ------
    TypeError, ValueError
        If an argument does not fit.

    Examples
    --------
    >>> import optlab as ol
    >>> class Halving(ol.optimizer.lr.LRScheduler):
    ...     def get_lr(self):
    ...         return self.base_lr / 2**self.last_epoch
    >>> schedule = Halving(0.8)
    >>> schedule.step()
    >>> schedule()
    0.4
    >>> schedule.preview(3)
    [0.4, 0.2, 0.1]
    """

    formula = FormulaOfDocstring()
    _lowest_rate = 0.0  # what is below is refused: it would climb the loss

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if hasattr(vars(cls).get("__init__"), "__code__"):
            cls.__init__ = _without_optimizer(cls.__init__)  # type: ignore[method-assign]

    @_without_optimizer
    def __init__(
        self, learning_rate: Any = 0.1, last_epoch: int = -1, verbose: bool = False
    ) -> None:
        self.base_lr = arguments.rate("learning_rate", learning_rate)
        self.last_lr = self.base_lr
        self.last_epoch = arguments.whole("last_epoch", last_epoch, -1)
        self.verbose = arguments.flag("verbose", verbose)
        self._begin()

    def _begin(self) -> None:
        """Go to the first epoch."""
        if self.last_epoch == -1:
            self.step()
        else:
            self.step(self.last_epoch + 1)

    def __getattr__(self, name: str) -> Any:
        hint = ""
        if name in ("get_last_lr", "lr", "learning_rate", "rate"):
            hint = " The present rate is schedule()."
        raise AttributeError(f"{type(self).__name__} has no {name!r}.{hint}", name=name, obj=None)

    # The rate -----------------------------------------------------------------------------------

    def get_lr(self) -> float:
        """Give the rate of the present epoch. Subclasses say how."""
        raise NotImplementedError(
            f"{type(self).__name__} has no get_lr(self) method; it returns the rate of "
            "self.last_epoch, for example self.base_lr / (1 + self.last_epoch)."
        )

    def _next_lr(self) -> float:
        """Give the rate of an epoch that follows the one before."""
        return self.get_lr()

    def _lr_at(self) -> float:
        """Give the rate of an epoch that was jumped to."""
        return self.get_lr()

    def __call__(self) -> float:
        """Give the present rate."""
        return self.last_lr

    def step(self, epoch: int | None = None) -> None:
        """Go to the next epoch, or to a given one.

        Parameters
        ----------
        epoch : int, optional
            Where to go. The rate is then that of the epoch, wherever the schedule was before.

        Raises
        ------
        TypeError, ValueError
            If `epoch` is no whole number of at least 0, or there is no rate for it. Nothing has
            changed then.

        Examples
        --------
        >>> import optlab as ol
        >>> schedule = ol.optimizer.lr.StepDecay(0.5, step_size=5)
        >>> schedule.step(epoch=7)
        >>> schedule()
        0.05
        """
        before = self.last_epoch
        jumps = epoch is not None
        self.last_epoch = self._epoch(epoch) if jumps else before + 1
        try:
            self.last_lr = self._checked(self._lr_at() if jumps else self._next_lr())
        except BaseException:
            self.last_epoch = before
            raise
        self._tell()

    def _epoch(self, epoch: Any) -> Any:
        """Give the epoch to go to, or say what is wrong with it."""
        try:
            return arguments.whole("epoch", epoch, 0)
        except TypeError as error:
            raise TypeError(
                f"{error} {type(self).__name__}.step() goes to the next one; only "
                "ReduceOnPlateau.step takes a metric."
            ) from None

    def _checked(self, value: Any) -> float:
        """Give a computed rate as a float, if it is one."""
        found = as_float(value, f"the rate of {type(self).__name__} at epoch {self.last_epoch}")
        if not (math.isfinite(found) and found >= self._lowest_rate):
            raise ValueError(
                f"the rate of {type(self).__name__} at epoch {self.last_epoch} is {found}; a "
                "learning rate must be finite and at least 0."
            )
        return found

    def _tell(self) -> None:
        """Print the new rate, if that was asked for."""
        if self.verbose:
            print(  # noqa: T201 - this is what verbose=True asks for
                f"Epoch {self.last_epoch}: {type(self).__name__} set learning rate to "
                f"{self.last_lr}."
            )

    def preview(self, steps: int = 100) -> list[float]:
        """Give the rates of the next updates, and stay where it is.

        Parameters
        ----------
        steps : int
            How many rates: the present one, and those after each of ``steps - 1`` steps.

        Returns
        -------
        list of float

        Examples
        --------
        >>> import optlab as ol
        >>> ol.optimizer.lr.StepDecay(0.5, step_size=2).preview(5)
        [0.5, 0.5, 0.05, 0.05, 0.005000000000000001]
        """
        twin = self._twin()
        rates = [twin.last_lr]
        for _ in range(arguments.whole("steps", steps, 1) - 1):
            twin.step()
            rates.append(twin.last_lr)
        return rates

    def _twin(self) -> LRScheduler:
        """Give a copy that steps without a word."""
        twin = copy.deepcopy(self)
        pending = [twin]
        while pending:
            one = pending.pop()
            one.verbose = False
            pending += one._nested().values()
        return twin

    # State --------------------------------------------------------------------------------------

    def state_keys(self) -> list[str]:
        """Name the attributes that `state_dict` holds. Subclasses with more of them override it."""
        self.keys = ["last_epoch", "last_lr"]
        return self.keys

    def _keys(self) -> list[str]:
        named = self.state_keys()
        return list(self.keys if named is None else named)

    def _nested(self) -> dict[str, LRScheduler]:
        """Give the schedules inside of this one, by the key of their state."""
        return {}

    def state_dict(self) -> dict[str, Any]:
        """Give what a resume needs to be equal to the bit: plain values that JSON can hold.

        Beside the attributes that `state_keys` names it holds the class under ``"schedule"``.
        Settings are no state: make the schedule with the same ones.

        Examples
        --------
        >>> import optlab as ol
        >>> ol.optimizer.lr.StepDecay(0.5, step_size=5).state_dict()
        {'last_epoch': 0, 'last_lr': 0.5, 'schedule': 'StepDecay'}
        """
        state: dict[str, Any] = {key: _plain(getattr(self, key)) for key in self._keys()}
        state |= {key: inner.state_dict() for key, inner in self._nested().items()}
        return {**state, "schedule": type(self).__name__}

    def set_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take a state of `state_dict`, or one that Paddle wrote.

        Raises
        ------
        TypeError, ValueError
            If it belongs to another class of schedule, or lacks a key, or has one too many, or a
            value does not fit. Nothing has changed then.

        Examples
        --------
        >>> import optlab as ol
        >>> first = ol.optimizer.lr.StepDecay(0.5, step_size=2)
        >>> second = ol.optimizer.lr.StepDecay(0.5, step_size=2)
        >>> for epoch in range(5):
        ...     first.step()
        >>> second.set_state_dict(first.state_dict())
        >>> first() == second()
        True
        """
        self._adopt(self._checked_state(state_dict))

    set_dict = set_state_dict
    load_state_dict = set_state_dict

    def _checked_state(self, state: Any, where: str = "") -> dict[str, Any]:
        """Give a state with every value read, or say what does not fit."""
        name = type(self).__name__
        if not isinstance(state, Mapping):
            raise TypeError(
                f"{where}the state of a schedule is a dict, as state_dict() gives it; got "
                f"{state!r} of type {type(state).__name__}."
            )
        saved = state.get("schedule", name)
        if saved != name:
            raise ValueError(
                f"{where}this is the state of a {saved}, but the schedule is a {name}; make one "
                "of the class that was saved, with the same settings."
            )
        given = self._completed(dict(state))
        given.pop("schedule", None)
        keys, nested = self._keys(), self._nested()
        missing = [key for key in (*keys, *nested) if key not in given]
        unexpected = [str(key) for key in given if key not in keys and key not in nested]
        if missing or unexpected:
            said = [f"lacks {', '.join(missing)}"] if missing else []
            said += [f"has unexpected {', '.join(unexpected)}"] if unexpected else []
            raise ValueError(
                f"{where}this state does not fit a {name}: it {' and '.join(said)}. A {name} has "
                f"{', '.join((*keys, *nested))}."
            )
        read = {key: self._state_value(key, given[key], where) for key in keys}
        for key, inner in nested.items():
            read[key] = inner._checked_state(given[key], f"{where}{key}: ")
        return read

    def _completed(self, state: dict[str, Any]) -> dict[str, Any]:
        """Give a state with what Paddle leaves out."""
        return state

    def _state_value(self, key: str, value: Any, where: str) -> Any:
        """Read one value of a state."""
        if key == "last_epoch":
            return arguments.whole(where + key, _plain(value), 0)
        if key == "last_lr":
            return float(arguments.number(where + key, value, least=self._lowest_rate))
        return _plain(value)

    def _adopt(self, read: dict[str, Any]) -> None:
        nested = self._nested()
        for key, value in read.items():
            if key in nested:
                nested[key]._adopt(value)
            else:
                setattr(self, key, value)

    # Looking at it ------------------------------------------------------------------------------

    def _settings(self) -> dict[str, Any]:
        """Give the arguments that it was made with, by name."""
        found: dict[str, Any] = {}
        for name in inspect.signature(type(self)).parameters:
            if name in ("last_epoch", "verbose"):
                continue
            known = self.base_lr if name == "learning_rate" else None
            value = getattr(self, name, known)
            if value is not None:
                found[name] = value
        return found

    def _head(self) -> str:
        settings = ", ".join(f"{name}={_written(v)}" for name, v in self._settings().items())
        verbose = ", verbose=True" if self.verbose else ""
        return f"{type(self).__name__}({settings}{verbose})"

    def __repr__(self) -> str:
        return f"{self._head()}, epoch {self.last_epoch}, rate {self.last_lr:.6g}"

    @property
    def horizon(self) -> int:
        """How many steps show what the schedule does. Subclasses may say it."""
        return 100

    @property
    def steps_left(self) -> int | None:
        """How many rates there are from the present one on; None if there is no end."""
        return None

    def figure(self, steps: int | None = None, **options: Any) -> Any:
        """Draw the rates of the next steps.

        Parameters
        ----------
        steps : int, optional
            How many; by default as many as show what the schedule does.
        **options
            As of `optlab.viz.schedule`.
        """
        return display.renderer("schedule").figure(self, steps=steps, **options)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        try:
            return dict(display.renderer("schedule").mimebundle(self))
        except ModuleNotFoundError:
            return {"text/plain": repr(self)}


def _plain(value: Any) -> Any:
    """Give a NumPy scalar, one-element array or Tensor as a Python number."""
    return value.item() if getattr(value, "size", None) == 1 and hasattr(value, "item") else value


def _written(value: Any) -> str:
    """Write a setting; a function by its name, a schedule without where it is."""
    if isinstance(value, LRScheduler):
        return value._head()
    return getattr(value, "__name__", None) or repr(value)
