"""Errors of calls with wrong arguments: what was given, what is expected, what to write instead.

`explained` wraps a public function, and `explain_class` a constructor. Nothing is checked before a
call: a call that succeeds costs a try block. When one fails, the error is looked at once more:

- arguments that the signature does not have, or that are missing, are named with what to write;
- an error that speaks of the inside (an AttributeError, an IndexError) becomes a TypeError or a
  ValueError about the arguments, with the first as its cause.

Errors that come from functions of the user pass unchanged.
"""

from __future__ import annotations

import functools
import inspect
import os
import reprlib
from collections.abc import Callable, Collection, Iterable, Mapping
from types import FunctionType, TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np

if TYPE_CHECKING:
    import inspect

P = ParamSpec("P")
R = TypeVar("R")
Cls = TypeVar("Cls", bound=type)

#: What to write for an unknown argument: takes its name, its value and the known names; "" if it
#: does not know.
Hint = Callable[[str, Any, Collection[str]], str]

#: Names of arguments that are axes.
_AXES = frozenset(("axis", "axis1", "axis2", "start_axis", "stop_axis"))

#: Errors that say nothing of the arguments.
INTERNAL = (AttributeError, LookupError, ArithmeticError, NameError, RecursionError)


def unknown_argument(
    owner: str,
    name: str,
    known: Collection[str],
    common: Iterable[str] = (),
    hint: str = "",
    noun: str = "argument",
) -> str:
    """Return the message for an unknown argument, with the one that was perhaps meant.

    Parameters
    ----------
    owner, name : str
        The function or class, and the argument.
    known : collection of str
        Its arguments.
    common : iterable of str
        Arguments that it shares with all of its kind.
    hint : str
        What to write instead; by default the name that is spelled like it.
    noun : str
        What arguments are called.

    Examples
    --------
    >>> unknown_argument("softmax", "axes", ["x", "axis"])
    "softmax has no argument 'axes'; it has x, axis. Did you mean 'axis'?"
    """
    rest = [one for one in common if one not in known]
    if not hint:
        import difflib

        close = difflib.get_close_matches(name, [*known, *rest], 1)
        hint = f"Did you mean {close[0]!r}?" if close else ""
    by_name = f", and, as every optimizer, {', '.join(rest)}" if rest else ""
    has = f"it has {', '.join(known)}{by_name}" if known else "it takes none"
    return f"{owner} has no {noun} {name!r}; {has}.{' ' * bool(hint)}{hint}"


def no_hint(name: str, value: Any, known: Collection[str]) -> str:
    """Return no hint: `unknown_argument` looks for a name that is spelled alike."""
    return ""


def explained(
    function: Callable[P, R], hint: Hint = no_hint, name: str | None = None
) -> Callable[P, R]:
    """Let a function say what is wrong with the arguments of a call that failed.

    Examples
    --------
    >>> def turned(x, axis=-1):
    ...     return x.swapaxes(axis, 0)
    >>> explained(turned)(np.ones(2), axes=0)
    Traceback (most recent call last):
    ...
    TypeError: turned has no argument 'axes'; it has x, axis. Did you mean 'axis'?
    """
    label = name or function.__name__

    @functools.wraps(function)
    def called(*args: P.args, **named: P.kwargs) -> R:
        try:
            return function(*args, **named)
        except Exception as error:
            said = explanation(error, label, function, args, named, hint)
            if said is None:
                raise
            raise said from (error if error.__traceback__.tb_next else None)  # type: ignore[union-attr]

    called.explains = True  # type: ignore[attr-defined]
    return called


def _takes_arguments(function: FunctionType) -> bool:
    code = function.__code__
    several = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
    return bool(code.co_argcount or code.co_kwonlyargcount or code.co_flags & several)


def explain_all(face: dict[str, Any], hint: Hint = no_hint, classes: bool = True) -> None:
    """Let the public functions and classes of a package say what is wrong with their arguments.

    Parameters
    ----------
    face : dict
        The globals of the package, with ``__all__``.
    hint : callable
        What to write for unknown arguments.
    classes : bool
        Whether constructors are explained, too.
    """
    package = face["__name__"]
    floor = ".".join(package.split(".")[:2])
    for name in face["__all__"]:
        thing = face[name]
        if isinstance(thing, type):
            for cls in thing.__mro__ if classes else ():
                if f"{cls.__module__}.".startswith(f"{floor}."):
                    explain_class(cls, hint)
        elif (
            isinstance(thing, FunctionType)
            and not hasattr(thing, "explains")
            and _takes_arguments(thing)  # `is_recomputing()` looks who calls it
        ):
            face[name] = explained(thing, hint)
            face[name].__module__ = package  # where a pickle looks for it


def explain_class(cls: Cls, hint: Hint = no_hint) -> Cls:
    """Let the constructor of a class say what is wrong with its arguments, as `explained` does."""
    init = vars(cls).get("__init__")
    if init is None or hasattr(init, "explains"):
        return cls

    @functools.wraps(init)
    def checked_init(self: Any, *args: Any, **named: Any) -> None:
        try:
            init(self, *args, **named)
        except Exception as error:
            label = type(self).__name__
            said = explanation(error, label, init, (self, *args), named, hint, skip=1)
            if said is None:
                raise
            raise said from (error if error.__traceback__.tb_next else None)  # type: ignore[union-attr]

    checked_init.explains = True  # type: ignore[attr-defined]
    cls.__init__ = checked_init  # type: ignore[misc]
    return cls


def closed(method: Callable[P, R]) -> Callable[P, R]:
    """Hide from the signature of a method that it takes more than its arguments: to refuse it.

    A wrapper takes 75 to 240 ns a call, the arguments ``*rest`` and ``**unknown`` 19, so methods
    that are called often declare them, and raise `surplus` when there are any.

    Examples
    --------
    >>> class Row:
    ...     @closed
    ...     def sum(self, axis=None, *rest, **unknown):
    ...         if rest or unknown:
    ...             raise surplus("Row.sum", Row.sum, rest, unknown)
    ...         return 6
    >>> str(inspect.signature(Row.sum))
    '(self, axis=None)'
    >>> Row().sum(axes=0)
    Traceback (most recent call last):
    ...
    TypeError: Row.sum has no argument 'axes'; it has axis. Did you mean 'axis'?
    """
    found = inspect.signature(method)
    own = [one for one in found.parameters.values() if one.name not in ("rest", "unknown")]
    method.__signature__ = found.replace(parameters=own)  # type: ignore[attr-defined]
    return method


def surplus(
    label: str,
    method: Callable[..., Any],
    rest: tuple[Any, ...],
    unknown: Mapping[str, Any],
    hint: Hint = no_hint,
) -> TypeError:
    """Return the error for arguments that a `closed` method does not have.

    Parameters
    ----------
    label : str
        The name of the method, for the message.
    method : callable
    rest, unknown : tuple, dict
        What it was given too much, by position and by name.
    hint : callable
        What to write for unknown arguments.
    """
    known = _parameters(method, 1)
    places = sum(one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD) for one in known)
    args = (*[None] * places, *rest) if rest else ()
    return TypeError(_misfit(label, known, args, unknown, hint))


def explain_methods(cls: type, names: Iterable[str], hint: Hint = no_hint) -> None:
    """Let methods of a class say which arguments they do not have, and what to write.

    Errors from inside a method pass unchanged, but for an axis that no array has.

    Parameters
    ----------
    cls : type
        The class, which gets the methods that it inherits, wrapped.
    names : iterable of str
        Of the methods.
    hint : callable
        What to write for unknown arguments.

    Examples
    --------
    >>> class Row:
    ...     def sum(self, axis=None):
    ...         return 6
    >>> explain_methods(Row, ["sum"])
    >>> Row().sum(axes=0)
    Traceback (most recent call last):
    ...
    TypeError: Row.sum has no argument 'axes'; it has axis. Did you mean 'axis'?
    """
    for name in names:
        method = _explained_method(getattr(cls, name), f"{cls.__name__}.{name}", hint)
        method.__module__, method.__qualname__ = cls.__module__, f"{cls.__qualname__}.{name}"
        setattr(cls, name, method)  # pickles look there


def _explained_method(method: Any, label: str, hint: Hint) -> Any:
    @functools.wraps(method)
    def called(self: Any, *args: Any, **named: Any) -> Any:
        try:
            return method(self, *args, **named)
        except TypeError as error:
            if error.__traceback__.tb_next is not None:  # type: ignore[union-attr]
                raise
            text = _misfit(label, _parameters(method, 1), args, named, hint)
            if not text:
                raise
            raise TypeError(text) from None
        except (OverflowError, ValueError):
            axes = [
                value for p, value in _bound(_parameters(method, 1), args, named) if p.name in _AXES
            ]
            if axes:
                check_axes(axes, self.ndim)
            raise

    called.explains = True  # type: ignore[attr-defined]
    return called


def explanation(
    error: Exception,
    label: str,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    named: Mapping[str, Any],
    hint: Hint = no_hint,
    skip: int = 0,
) -> Exception | None:
    """Return the error to raise in place of one that a call raised; None to leave it.

    Parameters
    ----------
    error : Exception
        With the traceback that begins at the caller of the function.
    label : str
        The name of the function, for messages.
    function : callable
        The function, with the arguments of the call: `args` and `named`.
    hint : callable
        What to write for unknown arguments.
    skip : int
        How many first parameters are not the caller's: 1 for ``self``.
    """
    trace = error.__traceback__
    if type(error) is TypeError and trace is not None and trace.tb_next is None:
        # No frame was entered: the arguments do not fit the signature.
        text = _misfit(label, _parameters(function, skip), args[skip:], named, hint)
        return TypeError(text) if text else None
    internal = isinstance(error, INTERNAL) and not isinstance(error, ValueError)
    if not (internal or type(error) in (TypeError, ValueError)) or not _is_ours(trace):
        return None
    given = _bound(_parameters(function, skip), args[skip:], named)
    text = str(error)
    if _was_raised(trace) and not isinstance(error, AttributeError):
        return None  # whoever wrote that line chose the error and its words
    if internal:
        return _of_values(label, error, given)
    if label in text or any(p.name in text for p, _ in given):
        return None
    return _of_kinds(label, given)


def _parameters(function: Callable[..., Any], skip: int) -> list[inspect.Parameter]:
    import inspect  # takes long to import, and most calls succeed

    return list(inspect.signature(function).parameters.values())[skip:]


def check_axes(axes: Iterable[Any], ndim: int) -> None:
    """Raise the error for an axis that does not exist, if one is too large for NumPy to say so.

    For whole numbers of more than 32 bits NumPy raises a ValueError, of more than 64 bits an
    OverflowError, which name no axis.

    Parameters
    ----------
    axes : iterable
        Axes, tuples of axes, and values that are neither.
    ndim : int
        The number of axes of the array.

    Examples
    --------
    >>> check_axes([10**30], 2)
    Traceback (most recent call last):
        ...
    numpy.exceptions.AxisError: axis 1000000000000000000000000000000 is out of bounds for array ...
    """
    for one in axes:
        for axis in one if isinstance(one, (tuple, list)) else (one,):
            if isinstance(axis, int) and not -(2**31) <= axis < 2**31:
                raise np.exceptions.AxisError(axis, ndim)


# Arguments that do not fit the signature ---------------------------------------------------------


def _misfit(
    label: str,
    known: list[inspect.Parameter],
    args: tuple[Any, ...],
    named: Mapping[str, Any],
    hint: Hint,
) -> str:
    """Return the message for arguments that do not fit a signature; "" if they do."""
    by_position = [p.name for p in known if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    names = [p.name for p in known if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    several = [p for p in known if p.kind is p.VAR_POSITIONAL]
    if not any(p.kind is p.VAR_KEYWORD for p in known):
        for name, value in named.items():
            if name not in names:
                return unknown_argument(label, name, names, hint=hint(name, value, names))
    if not several and len(args) > len(by_position):
        most = f"{len(by_position)} argument{'s' * (len(by_position) != 1)} by position"
        listed = f" ({', '.join(by_position)})" if by_position else ""
        by_name = [name for name in names if name not in by_position]
        rest = f" Give {', '.join(by_name)} by name." if by_name else ""
        together = _as_list(label, by_position, args)
        return f"{label} takes at most {most}{listed}; got {len(args)}.{rest}{together}"
    for name in by_position[: len(args)]:
        if name in named:
            return f"{label} got {name} twice: by position and by name."
    given = {*by_position[: len(args)], *named}
    missing = [
        p.name for p in known if p.default is p.empty and p.name in names and p.name not in given
    ]
    if missing:
        return f"{label}({', '.join(names)}) needs {' and '.join(missing)}."
    return ""


def _as_list(label: str, by_position: list[str], args: tuple[Any, ...]) -> str:
    """Return what to write where the first argument is a list and its items were given alone."""
    if by_position[:1] == ["shape"] and all(isinstance(one, int) for one in args):
        return f" Write {label}({list(args)})."
    return f" Write {label}([x, y])." if by_position[:1] == ["tensors"] else ""


def _bound(
    known: list[inspect.Parameter], args: tuple[Any, ...], named: Mapping[str, Any]
) -> list[tuple[inspect.Parameter, Any]]:
    """Return the arguments that were given, each with its parameter."""
    rest = [p for p in known if p.kind is p.VAR_POSITIONAL]
    by_position = [p for p in known if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    by_position += rest * max(0, len(args) - len(by_position))
    found = list(zip(by_position, args, strict=False))
    return found + [(p, named[p.name]) for p in known if p.name in named]


# Errors from inside ------------------------------------------------------------------------------


def _roots() -> tuple[str, ...]:
    """Return the folders of optlab, NumPy and Python's own library."""
    import sysconfig

    ours = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    numpy = os.path.dirname(os.path.abspath(np.__file__))
    return (ours + os.sep, numpy + os.sep, sysconfig.get_path("stdlib") + os.sep, "<frozen ")


def _is_ours(trace: TracebackType | None) -> bool:
    """Return whether every frame of a traceback is of optlab, NumPy or Python itself.

    Where Python is asked for a function of the user, one is not.
    """
    import sysconfig

    roots = _roots()
    packages = (sysconfig.get_path("purelib") + os.sep, sysconfig.get_path("platlib") + os.sep)
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        compiled = file.endswith(".pyx")  # NumPy's random numbers
        if (
            not compiled
            and not file.startswith(roots[:2])
            and (file.startswith(packages) or not file.startswith(roots))
        ):
            return False
        trace = trace.tb_next
    return True


def _was_raised(trace: TracebackType | None) -> bool:
    """Return whether a line of Python raised the error, and so has chosen its words."""
    from opcode import opmap

    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return False
    return trace.tb_frame.f_code.co_code[trace.tb_lasti] == opmap["RAISE_VARARGS"]


def _of_kinds(label: str, given: list[tuple[inspect.Parameter, Any]]) -> Exception | None:
    """Return the error for the first value that is of another kind than its argument."""
    for parameter, value in given:
        wanted = _wanted(parameter, value)
        if wanted:
            name = parameter.name
            return TypeError(f"{label} cannot take {name}={shown(value)}: {name} must be {wanted}.")
    return None


def _of_values(
    label: str, error: Exception, given: list[tuple[inspect.Parameter, Any]]
) -> Exception:
    """Return the error for values that led to an error inside."""
    found = _of_kinds(label, given)
    if found is not None:
        return found
    listed = ", ".join(f"{p.name}={shown(value)}" for p, value in given)
    # A KeyError is written as the key's repr, with quotes around the whole text.
    text = error.args[0] if isinstance(error, KeyError) and error.args else error
    reason = str(text) or type(error).__name__
    kind = TypeError if isinstance(error, AttributeError) else ValueError
    return kind(
        f"{label} cannot take these arguments together, or one of them: {listed}. "
        f"({type(error).__name__}: {reason})"
    )


def shown(value: Any) -> str:
    """Return a value for a message: an array by its type, shape and dtype.

    Examples
    --------
    >>> shown(np.ones((2, 3))), shown("same")
    ('an ndarray of shape (2, 3) and dtype float64', "'same'")
    """
    kind = type(value)
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        article = "an" if kind.__name__[0] in "aeiouAEIOU" or kind is np.ndarray else "a"
        return f"{article} {kind.__name__} of shape {tuple(value.shape)} and dtype {value.dtype}"
    return reprlib.repr(value)


#: Annotations, as they are written, with what they mean and what fits.
_KINDS: dict[str, tuple[str, tuple[type, ...]]] = {
    "bool": ("True or False", (bool, np.bool_)),
    "int": ("a whole number", (int, np.integer)),
    "float": ("a number", (int, float, np.integer, np.floating)),
    "str": ("text", (str,)),
}


#: Names of arguments that are arrays, wherever their annotation is Any.
_ARRAYS = frozenset(
    "x input label labels logit data x1 x2 y input1 input2 other positive negative anchor query "
    "key value variance weight running_mean running_var vec".split()
)


def _wanted(parameter: inspect.Parameter, value: Any) -> str:
    """Return what an argument must be; "" if the value may be that, or it is not known."""
    if value is parameter.default:
        return ""
    annotation = parameter.annotation
    written = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    parts = [part.strip() for part in written.split("|")]
    if all(part in _KINDS or part == "None" for part in parts):
        if value is None and "None" in parts:
            return ""
        kinds = [_KINDS[part] for part in parts if part != "None"]
        number = getattr(value, "size", None) == 1 and hasattr(value, "item")
        if any(isinstance(value, types) for _, types in kinds) or number:
            return ""
        return " or ".join(text for text, _ in kinds)
    if written == "Any" and parameter.name in _ARRAYS:
        numbers = isinstance(value, (int, float, complex, list, tuple, np.generic))
        if not numbers and not hasattr(value, "__array__") and not callable(value):
            return "an array, a Tensor or numbers"
    return ""
