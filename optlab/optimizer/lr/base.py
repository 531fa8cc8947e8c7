"""LRScheduler, the base class of all learning-rate schedules."""

from __future__ import annotations

import copy
import functools
import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from optlab.autograd.tensor.conversions import as_setting
from optlab.backend import display
from optlab.backend.call_recorder import effect, here, live
from optlab.optimizer.lr import arguments
from optlab.optimizer.rule.formula import FormulaOfDocstring
from optlab.optimizer.rule.hyperparameters import by_names


def _without_optimizer(init: Callable[..., None]) -> Callable[..., None]:
    """Wrap an ``__init__`` to raise a helpful error for an optimizer or an unknown argument."""
    inner = by_names(init)
    first = init.__code__.co_varnames[1:2]

    @functools.wraps(init)
    def checked_init(self: Any, *args: Any, **named: Any) -> None:
        arguments.no_optimizer(type(self).__name__, first, args, named)
        inner(self, *args, **named)

    return checked_init


_Step = TypeVar("_Step", bound=Callable[..., None])


def whole(step: _Step) -> _Step:
    """Wrap a ``step`` so that an exception in it, also Ctrl-C, leaves the schedule unchanged."""

    @functools.wraps(step)
    def whole_step(self: Any, *args: Any, **named: Any) -> None:
        schedules = [self]
        for one in schedules:
            schedules += one._nested().values()
        before = [(vars(one), dict(vars(one))) for one in schedules]
        try:
            step(self, *args, **named)
        except BaseException:
            for now, then in before:
                now.update(then)
            raise

    return effect(whole_step)  # type: ignore[return-value]


class LRScheduler:
    """Base class of all schedules: a learning rate that depends on a count of epochs.

    Pass it to an optimizer in place of a number, and call `step` to advance the count: after every
    epoch, or after every update. ``optimizer.step()`` never does. Calling the schedule returns the
    current rate.

    A custom schedule is a subclass with ``get_lr``, which returns the rate of ``self.last_epoch``,
    and with ``state_keys`` if it has further state.

    Parameters
    ----------
    learning_rate : float
        The base rate b.
    last_epoch : int
        For resuming: the schedule starts at the epoch after this one. By default at epoch 0.
    verbose : bool
        Print every new rate.

    Attributes
    ----------
    base_lr, last_lr : float
        The base rate and the current rate.
    last_epoch : int
        The count e, 0 after construction.

    Raises
    ------
    TypeError, ValueError
        If an argument is invalid.

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
    _lowest_rate = 0.0  # a lower rate raises: it would ascend the loss

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if hasattr(vars(cls).get("__init__"), "__code__"):
            cls.__init__ = _without_optimizer(cls.__init__)  # type: ignore[method-assign]
        if "get_lr" in vars(cls):
            cls.get_lr = live(cls.get_lr)  # type: ignore[method-assign]

    @_without_optimizer
    def __init__(
        self, learning_rate: Any = 0.1, last_epoch: int = -1, verbose: bool = False
    ) -> None:
        self.base_lr = arguments.rate("learning_rate", learning_rate)
        self.last_lr = self.base_lr
        self.last_epoch = arguments.integer("last_epoch", last_epoch, -1)
        self.verbose = arguments.flag("verbose", verbose)
        self._begin()

    def _begin(self) -> None:
        """Start at the first epoch."""
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
        """Return the rate of the current epoch. Subclasses implement this."""
        raise NotImplementedError(
            f"{type(self).__name__} has no get_lr(self) method; it returns the rate of "
            "self.last_epoch, for example self.base_lr / (1 + self.last_epoch)."
        )

    def _next_lr(self) -> float:
        """Return the rate of the epoch after the previous one."""
        return self.get_lr()

    def _lr_at(self) -> float:
        """Return the rate of an epoch after a jump."""
        return self.get_lr()

    def __call__(self) -> float:
        """Return the current rate."""
        if here.recorder is not None:
            return here.recorder.number(type(self).__call__, self)  # type: ignore[no-any-return]
        return self.last_lr

    @whole
    def step(self, epoch: int | None = None) -> None:
        """Advance to the next epoch, or jump to a given one.

        Parameters
        ----------
        epoch : int, optional
            The epoch to jump to. The rate depends on it alone, not on the epoch before.

        Raises
        ------
        TypeError, ValueError
            If `epoch` is not an integer of at least 0, or there is no rate for it. Nothing is
            changed then.

        Examples
        --------
        >>> import optlab as ol
        >>> schedule = ol.optimizer.lr.StepDecay(0.5, step_size=5)
        >>> schedule.step(epoch=7)
        >>> schedule()
        0.05
        """
        jumps = epoch is not None
        self.last_epoch = self._epoch(epoch) if jumps else self.last_epoch + 1
        self.last_lr = self._checked(self._lr_at() if jumps else self._next_lr())
        self._print_rate()

    def _epoch(self, epoch: Any) -> Any:
        """Validate the epoch to jump to."""
        try:
            return arguments.integer("epoch", epoch, 0)
        except TypeError as error:
            raise TypeError(
                f"{error} {type(self).__name__}.step() goes to the next one; only "
                "ReduceOnPlateau.step takes a metric."
            ) from None

    def _checked(self, value: Any) -> float:
        """Validate a computed rate, and return it as a float."""
        found = as_setting(value, f"the rate of {type(self).__name__} at epoch {self.last_epoch}")
        if not (math.isfinite(found) and found >= self._lowest_rate):
            raise ValueError(
                f"the rate of {type(self).__name__} at epoch {self.last_epoch} is {found}; a "
                "learning rate must be finite and at least 0."
            )
        return found

    def _print_rate(self) -> None:
        """Print the new rate if `verbose`."""
        if self.verbose:
            print(  # noqa: T201 - requested by verbose=True
                f"Epoch {self.last_epoch}: {type(self).__name__} set learning rate to "
                f"{self.last_lr}."
            )

    def preview(self, steps: int = 100) -> list[float]:
        """Return the rates of the next updates without changing the schedule.

        Parameters
        ----------
        steps : int
            Number of rates: the current one, and those after each of ``steps - 1`` steps.

        Returns
        -------
        list of float

        Examples
        --------
        >>> import optlab as ol
        >>> ol.optimizer.lr.StepDecay(0.5, step_size=2).preview(5)
        [0.5, 0.5, 0.05, 0.05, 0.005000000000000001]
        """
        preview = self._silent_copy()
        rates = [preview.last_lr]
        for _ in range(arguments.integer("steps", steps, 1) - 1):
            preview.step()
            rates.append(preview.last_lr)
        return rates

    def _silent_copy(self) -> LRScheduler:
        """Return a deep copy that does not print."""
        copied = copy.deepcopy(self)
        pending = [copied]
        while pending:
            one = pending.pop()
            one.verbose = False
            pending += one._nested().values()
        return copied

    # State --------------------------------------------------------------------------------------

    def state_keys(self) -> list[str]:
        """Return the names of the attributes in `state_dict`. Subclasses with more override it."""
        self.keys = ["last_epoch", "last_lr"]
        return self.keys

    def _keys(self) -> list[str]:
        named = self.state_keys()
        return list(self.keys if named is None else named)

    def _nested(self) -> dict[str, LRScheduler]:
        """Return the inner schedules, by the keys of their states."""
        return {}

    def state_dict(self) -> dict[str, Any]:
        """Return the state for a bit-exact resume, as plain values for JSON.

        Besides the attributes of `state_keys` it contains the class under ``"schedule"``. Settings
        are not part of the state: create the schedule with the same ones.

        Examples
        --------
        >>> import optlab as ol
        >>> ol.optimizer.lr.StepDecay(0.5, step_size=5).state_dict()
        {'last_epoch': 0, 'last_lr': 0.5, 'schedule': 'StepDecay'}
        """
        state: dict[str, Any] = {key: _python_number(getattr(self, key)) for key in self._keys()}
        state |= {key: inner.state_dict() for key, inner in self._nested().items()}
        return {**state, "schedule": type(self).__name__}

    def set_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Load a state of `state_dict`, or one from Paddle.

        Raises
        ------
        TypeError, ValueError
            If it is of another class, lacks a key or has an unknown one, or a value is invalid.
            Nothing is changed then.

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
        self._set_state(self._checked_state(state_dict))

    set_dict = set_state_dict
    load_state_dict = set_state_dict

    def _checked_state(self, state: Any, where: str = "") -> dict[str, Any]:
        """Validate a state, and return it with converted values."""
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
        given = self._with_missing_keys(dict(state))
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

    def _with_missing_keys(self, state: dict[str, Any]) -> dict[str, Any]:
        """Return a state with the keys that Paddle omits."""
        return state

    def _state_value(self, key: str, value: Any, where: str) -> Any:
        """Validate one value of a state, and return it."""
        if key == "last_epoch":
            return arguments.integer(where + key, _python_number(value), 0)
        if key == "last_lr":
            return float(arguments.number(where + key, value, least=self._lowest_rate))
        return _python_number(value)

    def _set_state(self, read: dict[str, Any]) -> None:
        nested = self._nested()
        for key, value in read.items():
            if key in nested:
                nested[key]._set_state(value)
            else:
                setattr(self, key, value)

    # Display ------------------------------------------------------------------------------------

    def _settings(self) -> dict[str, Any]:
        """Return the arguments of the constructor, by name."""
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
        settings = ", ".join(f"{name}={_setting_text(v)}" for name, v in self._settings().items())
        verbose = ", verbose=True" if self.verbose else ""
        return f"{type(self).__name__}({settings}{verbose})"

    def __repr__(self) -> str:
        return f"{self._head()}, epoch {self.last_epoch}, rate {self.last_lr:.6g}"

    @property
    def horizon(self) -> int:
        """Number of steps that shows the course of the schedule. Subclasses may override it."""
        return 100

    @property
    def steps_left(self) -> int | None:
        """Number of rates from the current one on; None if there is no end."""
        return None

    def figure(self, steps: int | None = None, **options: Any) -> Any:
        """Draw the rates of the next steps.

        Parameters
        ----------
        steps : int, optional
            Number of steps; by default enough to show the course of the schedule.
        **options
            As for `optlab.viz.schedule`.
        """
        return display.renderer("schedule").figure(self, steps=steps, **options)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        try:
            return dict(display.renderer("schedule").mimebundle(self))
        except ModuleNotFoundError:
            return {"text/plain": repr(self)}


def _python_number(value: Any) -> Any:
    """Convert a NumPy scalar, one-element array or Tensor to a Python number."""
    return value.item() if getattr(value, "size", None) == 1 and hasattr(value, "item") else value


def _setting_text(value: Any) -> str:
    """Format a setting: a function by its name, a schedule without its epoch."""
    if isinstance(value, LRScheduler):
        return value._head()
    return getattr(value, "__name__", None) or repr(value)
