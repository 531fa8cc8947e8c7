"""Hyper-parameters of an optimizer class: signature, defaults, ranges, and checks of values."""

from __future__ import annotations

import functools
import math
import reprlib
from collections.abc import Callable
from types import GeneratorType
from typing import Any

import numpy as np

from optlab.autograd.tensor.conversions import as_setting, refuse_setting
from optlab.autograd.tensor.tensor import Tensor
from optlab.backend.wrong_arguments import explanation, unknown_argument
from optlab.optimizer.rule.members import read_members

CO_VARKEYWORDS = 8  # as in `inspect`, which takes long to import

REQUIRED: Any = object()

#: Keyword arguments of every optimizer, with their defaults.
COMMON: dict[str, Any] = {
    "parameters": None,
    "weight_decay": None,
    "grad_clip": None,
    "name": None,
    "multi_precision": False,
    "not_finite": "pass",
}

_ABOVE_ONE = math.nextafter(1.0, 2.0)

#: Ranges of settings with one meaning in all rules: (lowest, highest), the highest excluded.
COMMON_RANGES: dict[str, tuple[float, float]] = {
    "learning_rate": (0.0, math.inf),
    "epsilon": (0.0, math.inf),
    "momentum": (0.0, _ABOVE_ONE),  # 1 is motion without friction
    "beta1": (0.0, 1.0),
    "beta2": (0.0, 1.0),
    "rho": (0.0, 1.0),
    "decay": (0.0, 1.0),
}


#: The names of settings in other libraries.
ALIASES = {
    "lr": "learning_rate", "rate": "learning_rate", "eps": "epsilon",
    "alpha": "rho", "nesterov": "use_nesterov", "params": "parameters",
    "parameter_list": "parameters", "clip_grad": "grad_clip", "clip": "grad_clip",
    "la_alpha": "alpha", "la_steps": "k",
}  # fmt: skip


#: Examples of settings that have no default.
_USUAL = {"learning_rate": 0.01, "momentum": 0.9}
_SCHEDULE = (
    "The schedule is the learning_rate: Adam(StepDecay(0.1, step_size=30), ...); call "
    "schedule.step() when its count goes on."
)
#: What to write for settings of other libraries that are none here.
_ELSEWHERE = {
    "scheduler": _SCHEDULE,
    "lr_scheduler": _SCHEDULE,
    "schedule": _SCHEDULE,
    "maximize": "To maximise, minimise the opposite: optimizer.minimize(-value).",
}


def checked(name: str, value: Any, default: Any, ranges: dict[str, tuple[float, float]]) -> Any:
    """Return the value of a hyper-parameter as a Python number or bool, checked."""
    if isinstance(default, bool):
        if not isinstance(value, (bool, np.bool_)):
            raise TypeError(f"{name} must be True or False; got {reprlib.repr(value)}.")
        return bool(value)
    if default is not REQUIRED and not isinstance(default, (int, float)):
        if default is not None:  # else a function or a list of names: the rule says what it takes
            refuse_setting(value, name, _functional(name))
        return value
    if name == "learning_rate" and is_schedule(value):
        return float(value())
    if isinstance(value, type) and callable(getattr(value, "get_lr", None)):
        raise TypeError(
            f"{name} got {value.__name__}, which is a class; give a schedule, made with its "
            f"settings: {value.__name__}(0.1, ...)."
        )
    if isinstance(value, (list, tuple)) and name in ("beta1", "beta2"):
        raise TypeError(
            f"{name} must be one number, but got a {type(value).__name__}. beta1 and beta2 are one "
            "number each: beta1=0.9, beta2=0.99."
        )
    if isinstance(value, (list, tuple, dict, set)) or callable(getattr(value, "parameters", None)):
        raise TypeError(
            f"{name} must be one number, but got a {type(value).__name__}. "
            + (_ENSEMBLE if _is_numbers(value) else _BY_NAME)
        )
    if callable(getattr(value, "add_to", None)) and callable(getattr(value, "penalty", None)):
        raise TypeError(_decoupled_decay_message(name, value))
    if default is REQUIRED or isinstance(default, float):
        refuse_setting(value, name, _functional(name))
        members = read_members(value)
        if members is not None:
            return members.map(lambda one: checked(name, one, default, ranges))
        if _is_numbers(value):
            raise TypeError(
                f"{name} must be one number, but got {np.size(value)}: {reprlib.repr(value)}. "
                f"{_ENSEMBLE}"
            )
    number = as_setting(value, name, _functional(name))
    lowest, highest = ranges.get(name) or COMMON_RANGES.get(name) or (-math.inf, math.inf)
    if not (lowest <= number < highest and math.isfinite(number)):
        if highest < math.inf:
            bound = f"in [{lowest:g}, {highest:g}{']' if highest == _ABOVE_ONE else ')'}"
        else:
            bound = "finite" if lowest == -math.inf else f"finite and at least {lowest:g}"
        raise ValueError(f"{name} must be {bound}; got {number!r}.")
    if isinstance(default, int):
        if number != int(number):
            raise ValueError(f"{name} must be a whole number; got {number!r}.")
        return int(number)
    return number


def _functional(name: str) -> str:
    """Return what to write for a setting that is differentiated."""
    return f"optimizer.functional_step(parameters, gradients, state, {name}=t)"


_BY_NAME = "What to optimize is given by name: parameters=model.parameters()."
_ENSEMBLE = (
    "For one value a member of an ensemble write ol.ensemble(np.array([...])), and give it "
    "parameters that are ensembles, too."
)


def _is_numbers(value: Any) -> bool:
    """Return whether something is a list, tuple or array of several numbers."""
    if isinstance(value, (list, tuple)):
        return len(value) > 1 and all(isinstance(one, (int, float)) for one in value)
    return isinstance(value, np.ndarray) and value.dtype.kind in "iuf" and value.size > 1


def holds_parameters(value: Any) -> bool:
    """Return whether something is a network, a Tensor of several numbers, or a list of Tensors."""
    if isinstance(value, (list, tuple)):
        return any(isinstance(one, (Tensor, dict)) for one in value)
    if isinstance(value, Tensor):
        return value.size != 1
    return isinstance(value, GeneratorType) or callable(getattr(value, "parameters", None))


def _decoupled_decay_message(name: str, regularizer: Any) -> str:
    """Return the message for a regularizer in place of the number of a decoupled decay."""
    kind = type(regularizer).__name__
    coeff = getattr(regularizer, "coeff", 0.01)
    if kind == "L2Decay":
        instead = f"write {name}={coeff:g}"
    else:
        instead = (
            "take an optimizer that adds the penalty to the gradient, such as "
            f"Adam(weight_decay={kind}({coeff:g}))"
        )
    return (
        f"{name} must be a number here, but got {kind}({coeff:g}): this decay is decoupled, it "
        f"shrinks the parameters apart from the gradient. For {kind} {instead}."
    )


def checked_callable(name: str, value: Any, takes: str) -> None:
    """Raise TypeError if an optional setting that is a function is something else."""
    if value is not None and not callable(value):
        raise TypeError(f"{name} must be a function that takes {takes}; got {reprlib.repr(value)}.")


def checked_name(name: Any) -> str | None:
    """Return the name of an optimizer; raise TypeError if it is no text."""
    if name is not None and not isinstance(name, str):
        raise TypeError(f"name must be text, such as name='fine-tuning'; got {reprlib.repr(name)}.")
    return name


def is_schedule(value: Any) -> bool:
    """Return whether something is a schedule, by its methods, as those of `optlab.optimizer.lr`."""
    if isinstance(value, type):
        return False
    return callable(value) and all(hasattr(value, name) for name in ("step", "get_lr"))


def positions(cls: Any) -> list[str]:
    """Return the arguments that a class takes by position: as documented, else its settings."""
    documented = [name for name in cls.positional if name in cls.hyperparameters or name in COMMON]
    return documented or list(cls.hyperparameters)


def by_name(cls: Any, values: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
    """Return all arguments of a class by name.

    Raises
    ------
    TypeError
        If there are too many by position, or one is given twice.
    """
    known = positions(cls)
    for name, value in zip(known, values, strict=False):
        if name != "parameters" and holds_parameters(value):
            raise TypeError(misplaced_parameters(cls.__name__, name, value))
    if len(values) > len(known):
        raise TypeError(
            f"{cls.__name__} takes at most {len(known)} arguments by position "
            f"({', '.join(known)}); give the rest by name, such as parameters=model.parameters()."
        )
    given = dict(zip(known, values, strict=False))
    for name in named:
        if name in given:
            raise TypeError(f"{cls.__name__} got {name} twice, by position and by name.")
    return given | named


def read_arguments(cls: Any, given: dict[str, Any]) -> dict[str, Any]:
    """Read the arguments of an optimizer class into its settings.

    Raises
    ------
    TypeError
        For an unknown or missing argument.
    ValueError
        For a value out of range.
    """
    known = cls.hyperparameters
    if next(iter(known), None) != "learning_rate":
        raise TypeError(
            f"{cls.__name__}.hyperparameters must begin with 'learning_rate'; it has "
            f"{', '.join(known) or 'nothing'}."
        )
    for name in given:
        if name not in known:
            raise TypeError(unknown_setting(cls.__name__, name, known, COMMON))
    missing = [name for name, default in known.items() if default is REQUIRED and name not in given]
    if missing:
        example = ", ".join(f"{name}={_USUAL.get(name, '...')}" for name in missing)
        raise TypeError(f"{cls.__name__} needs {' and '.join(missing)}, such as {example}.")
    for name in [name for name, value in given.items() if value is None]:
        default = known[name]
        if default is REQUIRED or type(default) in (int, float):
            instead = "give a number" if default is REQUIRED else f"leave it out for {default!r}"
            raise ValueError(f"{name} of {cls.__name__} must be one number, not None: {instead}.")
    return {
        name: checked_of(cls, name, given.get(name, default)) for name, default in known.items()
    }


def checked_of(cls: Any, name: str, value: Any) -> Any:
    """Return the value of a setting of a class, checked."""
    default = cls.hyperparameters[name]
    if name == "learning_rate" and type(default) is int:
        default = float(default)  # a learning rate need not be a whole number
    try:
        return checked(name, value, default, cls.ranges)
    except ValueError as error:
        whole = type(default) is int and "must be a whole number" in str(error)
        if whole and not cls.built_in:
            raise ValueError(
                f"{error} It is one because its default in {cls.__name__}.hyperparameters is: if "
                f"it may be any number, write {float(default)} in the class."
            ) from None
        raise


def misplaced_parameters(owner: str, name: str, value: Any) -> str:
    """Return the message for parameters in the place of a setting."""
    return (
        f"{owner} got a {type(value).__name__} in the place of {name}. Parameters are given by "
        f"name, and so is what follows them: {owner}(..., parameters=model.parameters())."
    )


def unknown_setting(owner: str, name: str, known: Any, common: Any = ()) -> str:
    """Return the message for an unknown setting, with the one that was perhaps meant."""
    every = [*known, *(one for one in common if one not in known)]
    hint = f"Did you mean {ALIASES[name]!r}?" if ALIASES.get(name) in every else ""
    if name == "betas" and "beta1" in known:
        hint = "Give beta1=... and beta2=..., one number each."
    elif name == "momentum" and "beta1" in known:
        hint = "What smooths the gradient here is beta1."
    elif name in _ELSEWHERE and "parameters" in every:
        hint = _ELSEWHERE[name]
    elif name in ("momentum", "nesterov", "use_nesterov") and owner == "SGD":
        hint = "With momentum it is ol.optimizer.Momentum(0.1, momentum=0.9, use_nesterov=False)."
    return unknown_argument(owner, name, known, common, hint, "setting")


def by_names(init: Callable[..., None]) -> Callable[..., None]:
    """Decorate an ``__init__`` to list its arguments in the error for an unknown one."""
    code = init.__code__
    known = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
    takes_any = bool(code.co_flags & CO_VARKEYWORDS)

    @functools.wraps(init)
    def checked_init(self: Any, *args: Any, **named: Any) -> None:
        for name in named:
            if name not in known and not takes_any:
                message = unknown_setting(type(self).__name__, name, known)
                inner = getattr(args[0] if args else None, "hyperparameters", ())
                if inner and (name in inner or name in COMMON):
                    message += f" Give {name} to the inner optimizer, {type(args[0]).__name__}."
                raise TypeError(message)
        try:
            init(self, *args, **named)
        except Exception as error:
            label = type(self).__name__
            said = explanation(error, label, init, (self, *args), named, skip=1)
            if said is None:
                raise
            raise said from (error if error.__traceback__.tb_next else None)  # type: ignore[union-attr]

    checked_init.explains = True  # type: ignore[attr-defined]
    return checked_init


class Signature:
    """The signature of an optimizer class, built when it is read."""

    def __init__(self, cls: Any) -> None:
        self.cls = cls

    def __get__(self, instance: Any, owner: Any) -> Any:
        """Return an `inspect.Signature` of the hyper-parameters and the common arguments."""
        from inspect import Parameter
        from inspect import Signature as Built

        defaults = {**COMMON, **self.cls.hyperparameters}
        first = positions(self.cls)
        rest = [name for name in (*self.cls.hyperparameters, *COMMON) if name not in first]
        kinds = dict.fromkeys(first, Parameter.POSITIONAL_OR_KEYWORD)
        kinds |= dict.fromkeys(rest, Parameter.KEYWORD_ONLY)
        return Built(
            [
                Parameter(
                    name,
                    kind,
                    default=Parameter.empty if defaults[name] is REQUIRED else defaults[name],
                )
                for name, kind in kinds.items()
            ]
        )
