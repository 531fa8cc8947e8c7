"""Faces of packages: the module that public classes name, and errors for unknown names."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Sequence
from types import FunctionType, ModuleType
from typing import Any, TypeVar

Cls = TypeVar("Cls", bound=type)

#: PyTorch's names for what has another name here.
ELSEWHERE = {
    "Module": "Layer", "ModuleList": "LayerList", "ModuleDict": "LayerDict", "init": "initializer",
    "lr_scheduler": "lr",
    "StepLR": "StepDecay", "MultiStepLR": "MultiStepDecay", "ExponentialLR": "ExponentialDecay",
    "CosineAnnealingLR": "CosineAnnealingDecay", "LambdaLR": "LambdaDecay",
}  # fmt: skip
_MOST_LISTED = 40


class _NotCalled(ModuleType):
    """A module with the name of a class, but for capitals."""

    def __call__(self, *args: Any, **named: Any) -> None:
        """Raise an error that names the class."""
        package, _, name = self.__name__.rpartition(".")
        plain = name.replace("_", "")
        [cls] = [one for one in vars(self) if one.lower() == plain]
        raise TypeError(
            f"{self.__name__} is a module, which cannot be called; the class is {package}.{cls}."
        )


class _Definition:
    """``__wrapped__`` of a class: a stand-in with the name and the module of its definition.

    `inspect.getsource` looks for the source of a class in the file of its ``__module__``, but
    follows ``__wrapped__`` first (until Python 3.12; IPython does with every Python). So
    ``ol.optimizer.Adam??`` shows the rule in a notebook.
    """

    def __init__(self, cls: type) -> None:
        self.cls = cls
        self.names: dict[str, Any] = {
            "__module__": cls.__module__,
            "__qualname__": cls.__qualname__,
            "__signature__": _Signature(self),  # `inspect.signature` comes here, too
        }
        line = vars(cls).get("__firstlineno__")  # since Python 3.13; a new __module__ removes it
        if line is not None:
            self.names["__firstlineno__"] = line
        self.hidden = False

    def __get__(self, instance: Any, owner: Any) -> type:
        # A subclass has a source of its own.
        if self.hidden or instance is not None or owner is not self.cls:
            raise AttributeError("__wrapped__")
        return type(self.cls.__name__, (), self.names)


class _Signature:
    """The signature of a class that has a `_Definition`."""

    def __init__(self, definition: _Definition) -> None:
        self.definition = definition

    def __get__(self, instance: Any, owner: Any) -> inspect.Signature:
        self.definition.hidden = True
        try:
            return inspect.signature(self.definition.cls)
        finally:
            self.definition.hidden = False


def set_module(package: str) -> None:
    """Let the public classes of a package name it as their module: ``optlab.nn.Linear``.

    As NumPy's ``set_module``: messages, pickles and pages name what users import from, not the
    file. `doctest` finds the examples of a class in the package then; those of its methods are
    handed to it as ``__test__`` of the file.
    """
    face = vars(sys.modules[package])
    for name in face["__all__"]:
        thing = face.get(name)
        if isinstance(thing, type) and thing.__module__.startswith(f"{package}."):
            examples = vars(sys.modules[thing.__module__]).setdefault("__test__", {})
            for member in vars(thing).values():
                own = getattr(member, "fget", member)  # the function of a property
                path = getattr(own, "__qualname__", "")
                if path.startswith(f"{name}.") and ">>>" in (own.__doc__ or ""):
                    examples[path] = own.__doc__
            type.__setattr__(thing, "__wrapped__", _Definition(thing))
            thing.__module__ = package


def name_methods(cls: Cls) -> Cls:
    """Let the methods of a class that its bases define for it alone name it; a decorator.

    Python's messages then say ``Trace.fork() missing ...``, whatever file the method is in.

    Examples
    --------
    >>> class Reading:
    ...     def row(self, number): ...
    >>> @name_methods
    ... class Table(Reading): ...
    >>> Table.row.__qualname__
    'Table.row'
    """
    for base in cls.__mro__[1:-1]:
        for member in vars(base).values():
            own = getattr(member, "fget", None) or getattr(member, "__func__", member)
            if isinstance(own, FunctionType):
                path = f"{cls.__qualname__}.{own.__name__}"
                if ">>>" in (own.__doc__ or ""):  # `doctest` looks in the file for its own names
                    file = vars(sys.modules[own.__module__])
                    file.setdefault("__test__", {})[path] = own.__doc__
                own.__module__, own.__qualname__ = cls.__module__, path  # pickles look there
    return cls


def not_called(package: str, *rooms: str) -> None:
    """Let modules of a package and of its rooms that are called name their class in the error."""
    face = vars(sys.modules[package])
    classes = {name.lower() for name in face["__all__"] if isinstance(face[name], type)}
    for room in (package, *rooms):
        for name, module in vars(sys.modules[room]).items():
            if isinstance(module, ModuleType) and name.replace("_", "") in classes:
                module.__class__ = _NotCalled


def elsewhere(name: str) -> str:
    """Return the name here of what PyTorch calls `name`."""
    return ELSEWHERE.get(name, name)


def nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the known name that was probably meant; None if none is close.

    Of close names it is the one with the fewest edits, two letters in the wrong order being one; of
    those, the one of the nearest length.

    Examples
    --------
    >>> nearest("Adma", ["Adamax", "Adam", "SGD"]), nearest("sdg", ["SGD"]), nearest("x", ["SGD"])
    ('Adam', 'SGD', None)
    """
    from difflib import get_close_matches

    plain, wanted = {one.lower(): one for one in known}, name.lower()
    close = get_close_matches(wanted, list(plain), 5, cutoff)
    if not close:
        return None
    return plain[min(close, key=lambda one: (_edits(wanted, one), abs(len(one) - len(name))))]


def _edits(one: str, other: str) -> int:
    """Return how many letters differ, are missing, or stand in the wrong order."""
    rows = [list(range(len(other) + 1))]
    for i, letter in enumerate(one, 1):
        row = [i]
        for j, wanted in enumerate(other, 1):
            row.append(min(rows[-1][j] + 1, row[-1] + 1, rows[-1][j - 1] + (letter != wanted)))
            if i > 1 < j and (letter, one[i - 2]) == (other[j - 2], wanted):
                row[j] = min(row[j], rows[-2][j - 2] + 1)
        rows.append(row)
    return rows[-1][-1]


def missing(package: str, name: str, known: Sequence[str]) -> AttributeError:
    """Return the error for an unknown name, with a suggestion if a known name is close.

    Examples
    --------
    >>> print(missing("optlab.optimizer", "Adm", ["Adam", "SGD"]))
    optlab.optimizer has no 'Adm'. Did you mean 'Adam'?
    >>> print(missing("optlab.optimizer", "Lion", ["Adam", "SGD"]))
    optlab.optimizer has no 'Lion'; it has Adam, SGD.
    """
    if name.startswith("_"):  # tools probe for such names
        return AttributeError(f"{package} has no {name!r}")
    meant = ELSEWHERE.get(name)
    if meant in known:
        said = f"{package} has no {name!r}; it is called {meant!r} here."
        return AttributeError(said, name=name, obj=None)
    close = nearest(name, known, 0.75)
    if close:
        said = f"{package} has no {name!r}. Did you mean {close!r}?"
        return AttributeError(said, name=name, obj=None)  # obj=None: Python adds no suggestion
    listed = ", ".join(known) if len(known) <= _MOST_LISTED else f"what dir({package}) lists"
    return AttributeError(f"{package} has no {name!r}; it has {listed}.")
