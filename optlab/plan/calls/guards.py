"""Guards of a plan: what a function reads from outside, which must be what it was.

They are found by reading the code: global names, variables of closures, attributes of objects of
the user's classes and of layers. Two things follow: a plan holds only as long as all of them are
what they were, and a call that changes one of them cannot be repeated by a plan.
"""

from __future__ import annotations

import argparse
import dis
import functools
import inspect
import io
import os
import sys
import threading
import types
from collections import ChainMap, UserDict, UserList, deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from optlab.autograd.tape.base import TensorBase
from optlab.autograd.tape.constants import checksum_of
from optlab.backend.user_frames import location
from optlab.plan.calls.arguments import arguments_by_name, containers_and_arrays
from optlab.plan.calls.packages import ENGINES, is_installed, of_library, package_of
from optlab.plan.calls.watched_values import (
    MISSING,
    READ_AS,
    SIMPLE,
    Parts,
    elements,
    fingerprint,
    identity_check,
    is_attribute,
    is_reader,
    names_of,
    now,
    position,
    public_state,
    put_back,
    read_slot,
    same,
    state_of_iterator,
    sublayers,
)

#: The most objects that are looked at. A function that reads more from outside is refused.
MOST = 20_000
_CONTAINERS = (list, tuple, set, frozenset, deque)
#: Classes of Python's library that hold what users put into them, as attributes.
_HOLDERS = (argparse.Namespace, UserDict, UserList, ChainMap, threading.local)
#: Packages of whose objects the same is true.
_HOLDING_PACKAGES = ("configparser",)
#: How objects of packages are read that keep arrays in order by themselves: nothing inside of them
#: gets other values for a moment, and what they note for themselves does not count.
_READ_WHOLE = {"numpy": fingerprint, "scipy": public_state}


#: Names in code that do something to arrays without a recording's knowledge.
_UNSEEN = {
    "data": "A write to t.data, or into it, is t.set_value(...) or t[...] = ... under no_grad",
    "type": "type(x) is that of a recording; write isinstance(x, np.ndarray)",
}


#: Functions that read names which code does not show.
_DYNAMIC = ("globals", "eval", "exec")
#: Functions that read the environment.
_OF_ENVIRONMENT = frozenset(["getenv", "getenvb"])


class Guards:
    """The global names, closures and objects that a function reads, with what they were.

    Parameters
    ----------
    f : callable
    args, kwargs
        Of the call. Arrays among them, and the lists, tuples and dicts that hold them, differ from
        call to call: they are only guarded where `f` reads them from outside, too.
    """

    def __init__(self, f: Any, args: Any, kwargs: Any) -> None:
        self._slots: dict[tuple[int, Any], tuple[Any, Any, str]] = {}
        #: What a call must not change, but may be changed between calls.
        self._states: list[tuple[Callable[[], Any], Any, str]] = []
        self._seen: dict[int, Any] = {}
        self._arrays: dict[int, Any] = {}
        #: What plain arrays held before the call, and what they are called.
        self._before: dict[int, tuple[bytes, str]] = {}
        self._codes: list[types.CodeType] = []
        #: The Tensors that it reads from outside, and others that it could read.
        self.tensors: list[Any] = []
        self._nodes: list[tuple[Any, Any]] = []
        self._contents: list[tuple[Any, bytes]] = []
        self._modules: list[types.ModuleType] = []
        self._ours: list[Any] = []
        #: Whether there is more than what is looked at.
        self.incomplete = False
        named = arguments_by_name(f, args, kwargs)
        self._walk([(f, "")])
        self._walk_names()
        outside = set(self._seen)
        self._walk([(x, f"the argument '{name}'") for name, x in named.items()])
        self._walk_names()
        #: What comes with a call, and is another one in the next.
        self._given = containers_and_arrays((args, kwargs)).keys() - outside
        self.renew()
        self._states = [(read, read(), name) for read, _, name in self._states]

    def _walk_names(self) -> None:
        for _ in range(3):  # functions of a module may read another
            self._walk(self._read_names())

    def arrays(self) -> list[Any]:
        """Return the plain arrays that it reads from outside."""
        return [x for number, x in self._arrays.items() if number not in self._given]

    def roots(self) -> list[Any]:
        """Return the Tensors, optimizers, schedules and averages that it could reach."""
        # A data loader is none: what it iterates over may be large, and a call cannot do that.
        stateful = [x for x in self._ours if hasattr(type(x), "state_dict")]
        return [*self.tensors, *(x for x in stateful if not hasattr(type(x), "__iter__"))]

    def recomputes(self) -> bool:
        """Return whether it could reach an optimizer that decides what operations save."""
        return any(getattr(x, "recomputes", False) for x in self._ours)

    def release_arguments(self) -> None:
        """Let go of what comes with the call: the next one has other arrays."""
        for slot in [slot for slot in self._slots if slot[0] in self._given]:
            del self._slots[slot]

    def renew(self) -> None:
        """Take what is now as what has to hold."""
        self._held = [
            (holder, key, now(holder, key), name) for holder, key, name in self._slots.values()
        ]
        self._in_dicts: list[tuple[dict[Any, Any], Any, Any]] = []
        self._elsewhere: list[tuple[Any, Any, Any]] = []
        for holder, key, expected, _ in self._held:
            simple = (
                isinstance(holder, dict) and not is_reader(key) and not isinstance(expected, Parts)
            )
            (self._in_dicts if simple else self._elsewhere).append((holder, key, expected))
        self._write_check()

    def _write_check(self) -> None:
        """Make the check that holds in nearly every call: whether all are the same objects."""
        named = [slot for slot in self._elsewhere if is_attribute(*slot)]
        self._others = [slot for slot in self._elsewhere if not any(slot is x for x in named)]
        self._unchanged = identity_check(self._in_dicts, named, self._nodes)

    def forget(self) -> None:
        """Let go of what only the capture needed: arguments among it."""
        self._seen, self._states, self._before, self.tensors = {}, [], {}, []
        self._arrays = {}

    def watch_contents(self, largest: int | None = None) -> None:
        """Let the contents of plain arrays count: what NumPy computes from them is a constant."""
        self._contents = [
            (x, checksum_of(x))
            for x in self.arrays()
            if not x.dtype.hasobject and (largest is None or x.nbytes <= largest)
        ]

    def watch_nodes(self, tensors: Iterable[Any]) -> None:
        """Let it count whether Tensors need a gradient."""
        self._nodes = [(t, t.node) for t in tensors]
        self._write_check()

    def hold(self) -> bool:
        """Return whether everything is what it was."""
        try:
            unchanged = self._unchanged()
        except (KeyError, AttributeError, ValueError):  # it is not there; of an empty cell
            unchanged = False
        others = self._others
        if not unchanged:
            for tensor, node in self._nodes:
                if tensor.node is not node:
                    return False
            for holder, key, expected in self._in_dicts:
                if not same(holder.get(key, MISSING), expected):
                    return False
            others = self._elsewhere
        for holder, key, expected in others:
            if not same(now(holder, key), expected):
                return False
        return all([checksum_of(x) == before for x, before in self._contents])  # noqa: C419

    def changed(self) -> str:
        """Return the name of what has changed, and a line that changes it; empty if nothing has."""
        for holder, key, expected, name in self._held:
            if not same(now(holder, key), expected):
                return f"{name} ({self.line_of(name)})"
        for read, before, name in self._states:
            if read() != before:
                return f"{name} ({self.line_of(name)})"
        return ""

    def written(self) -> tuple[Any, str] | None:
        """Return a plain array that has been written to, and its name; None if none has."""
        for number, (before, name) in self._before.items():
            if checksum_of(self._arrays[number]) != before:
                return self._arrays[number], name
        return None

    def restore(self) -> None:
        """Put back what has changed: names, attributes, entries of lists and dicts."""
        for holder, key, expected, _ in self._held:
            if not same(now(holder, key), expected):
                put_back(holder, key, expected)

    def line_of(self, name: str = "") -> str:
        """Return the location of the code that writes a name, or else reads it."""
        last = name.rpartition(".")[2].strip("'").rpartition("'")[2] or name
        read = ""
        for code in self._codes:
            if code.co_name == "__init__":
                continue  # there it was made
            line = code.co_firstlineno
            for step in dis.get_instructions(code):
                line = step.starts_line or line
                if step.argval == last:
                    if step.opname.startswith("STORE"):
                        return location(code.co_filename, line)
                    read = read or location(code.co_filename, line)
        if read or not self._codes:
            return read or "its function"
        return location(self._codes[0].co_filename, self._codes[0].co_firstlineno)

    def unseen(self) -> str:
        """Return what to write for names in the code that a recording does not see."""
        for name, instead in _UNSEEN.items():
            for code in self._codes:
                if name in code.co_names:
                    return f"{instead} ({self.line_of(name)}). "
        return "It may write into an array that capture cannot see; return that. "

    # What a function reads ----------------------------------------------------------------------

    def _walk(self, roots: list[tuple[Any, str]]) -> None:
        waiting = deque(roots)
        while waiting and len(self._seen) < MOST:
            x, name = waiting.popleft()
            if id(x) in self._seen or isinstance(x, (*SIMPLE, np.generic)):
                continue
            self._seen[id(x)] = x
            waiting.extend(self._parts_of(x, name))
        self.incomplete = self.incomplete or bool(waiting)

    def _parts_of(self, x: Any, name: str) -> list[tuple[Any, str]]:
        """Guard an object, and return what it holds, with names."""
        if isinstance(x, TensorBase):
            self.tensors.append(x)
            hooks = getattr(x.node, "hooks", None) or ()
            return [(c.cell_contents, "a hook") for f in hooks for c in f.__closure__ or ()]
        if isinstance(x, type):
            return self._of_types(x.__mro__, None)
        if isinstance(x, functools.partial):
            return [(part, name) for part in (x.func, x.args, x.keywords)]
        if isinstance(x, types.ModuleType):
            return self._of_module(x)
        if isinstance(x, property):
            return [(x.fget, name)]
        if isinstance(x, (staticmethod, classmethod)):
            return [(x.__func__, name)]
        if isinstance(x, np.ndarray):
            if x.dtype.hasobject:
                self._add(x, elements, name or "an array")
                return [(part, name) for part in x.ravel().tolist()]
            self._arrays[id(x)] = x
            self._before[id(x)] = (checksum_of(x), name or "an array")
            return []
        if isinstance(x, types.FunctionType):
            return [] if of_library(x.__module__) else self._of_function(x)
        if isinstance(x, types.MethodType):
            return [(x.__self__, name), (x.__func__, name)]
        if isinstance(x, _CONTAINERS):
            if not isinstance(x, (tuple, frozenset)):
                self._add(x, Parts, name or f"a {type(x).__name__}")
            found = [(part, name) for part in x]
            return found + (self._of_attributes(x, vars(x)) if hasattr(x, "__dict__") else [])
        if isinstance(x, dict):
            self._add(x, tuple, name or "a dict")
            for key in x:
                self._add(x, key, name)
            found = [(part, name) for part in x.values()]
            return found + (self._of_attributes(x, vars(x)) if hasattr(x, "__dict__") else [])
        if isinstance(x, np.random.Generator):
            self._state(lambda: repr(x.bit_generator.state), name or "a random generator")
            return []
        if isinstance(x, types.GeneratorType):
            self._state(lambda: x.gi_frame and x.gi_frame.f_lasti, name or "a generator")
            return []
        if isinstance(x, io.IOBase):
            self._state(lambda: position(x), name or "a file")
            return []
        if hasattr(type(x), "__next__"):
            self._state(lambda: state_of_iterator(x), name or "an iterator")
            return []
        inner = inspect.getattr_static(x, "__wrapped__", None)
        if isinstance(inner, types.FunctionType):
            return [(inner, name)]
        if hasattr(type(x), "guarded"):
            attributes = x.guarded()
            attributes.pop("training", None)
            found = self._of_attributes(x, attributes)
            hooks = vars(x).get("_hooks")
            if hooks is not None:
                found += self._of_attributes(hooks, vars(hooks))
            if any(hasattr(type(part), "guarded") for part in attributes.values()):
                self._add(x, sublayers, f"the layers of {type(x).__name__}")  # it may go over all
            for key in ("forward", "_hooks"):
                self._add(vars(x), key, f"{type(x).__name__}.{key}")
            self._add(x, "training", f"{type(x).__name__}.training")
            return found + self._of_class(x)
        if any(one.__module__.partition(".")[0] == "optlab" for one in type(x).__mro__):
            self._ours.append(x)
            return [(x.hook, "a hook")] if hasattr(x, "hook") else []
        whole = _READ_WHOLE.get(_package(type(x))) if _has_dict(x) else None
        if whole is not None or _is_opaque(x):
            self._add(x, whole or fingerprint, name or f"a {type(x).__name__}")
            return []
        for kind, read in READ_AS.items():
            if isinstance(x, kind):
                self._add(x, read, name or f"a {kind.__name__}")
                return [(part, name) for part in read(x).parts]
        if isinstance(x, _HOLDERS) or (_package(type(x)) in _HOLDING_PACKAGES and _has_dict(x)):
            self._add(x, names_of, name or f"a {type(x).__name__}")  # a new attribute counts
        elif of_library(type(x).__module__):
            return []
        own = getattr(x, "__dict__", None)
        found = self._of_attributes(x, own) if isinstance(own, dict) else []
        for one in type(x).__mro__:
            for key in vars(one).get("__slots__", ()):
                self._add(x, key, f"{type(x).__name__}.{key}")
                found.append((getattr(x, key, None), f"{type(x).__name__}.{key}"))
        return found + self._of_class(x)

    def _of_module(self, module: types.ModuleType) -> list[tuple[Any, str]]:
        """Let names of a module count that code may read; not those of the engine and NumPy."""
        if package_of(module.__name__) not in ENGINES:
            self._modules.append(module)
        return []

    def _read_names(self) -> list[tuple[Any, str]]:
        """Guard what code names of modules, and of objects of the engine."""
        names = {name for code in self._codes for name in code.co_names}
        found: list[tuple[Any, str]] = []
        if not names.isdisjoint(_OF_ENVIRONMENT):
            found.append((os.environ, "os.environ"))
        for module in self._modules:
            for name in names & vars(module).keys():
                if vars(module)[name] is sys.modules:
                    continue  # every import changes it
                what = f"{module.__name__}.{name}"
                self._add(vars(module), name, what)
                found.append((vars(module)[name], what))
        for x in self._ours:
            for name in names & getattr(x, "__dict__", {}).keys():
                if isinstance(vars(x)[name], SIMPLE):
                    self._add(vars(x), name, f"{type(x).__name__}.{name}")
        return found

    def _of_attributes(self, x: Any, attributes: dict[str, Any]) -> list[tuple[Any, str]]:
        found = []
        for key, value in list(attributes.items()):
            name = f"{type(x).__name__}.{key}"
            self._add(vars(x), key, name)
            found.append((value, name))
        return found

    def _of_function(self, f: types.FunctionType) -> list[tuple[Any, str]]:
        found: list[tuple[Any, str]] = []
        for cell, name in zip(f.__closure__ or (), f.__code__.co_freevars, strict=True):
            what = f"the variable '{name}'"
            self._add(cell, "cell_contents", what)
            found.append((read_slot(cell, "cell_contents"), what))
        for code in _codes(f.__code__):
            self._codes.append(code)
            names = set(code.co_names)
            if not names.isdisjoint(_DYNAMIC) and _reads_any_name(code):
                names |= f.__globals__.keys()
            function: Any = f  # whose builtins only some stubs of types know
            built_in: dict[str, Any] = function.__builtins__
            for name in names:
                what = f"the global variable '{name}'"
                if name in f.__globals__:
                    value = f.__globals__[name]
                    if not isinstance(value, types.ModuleType) or not of_library(name):
                        self._add(f.__globals__, name, what)
                    found.append((value, what))
                elif name in built_in:
                    self._add(f.__globals__, name, what)  # a global variable would hide it
                    self._add(built_in, name, what)
                    found.append((built_in[name], what))
        self._add(f, "__defaults__", "a default")
        self._add(f, "__kwdefaults__", "a default")
        for key in vars(f):
            self._add(vars(f), key, f"{f.__name__}.{key}")
        defaults = (*(f.__defaults__ or ()), *(f.__kwdefaults__ or {}).values(), *vars(f).values())
        found += [(x, "a default") for x in defaults]
        if is_installed(f.__module__):  # it is not read further: a package may be large
            return [(x, name) for x, name in found if not _is_code_of_installed(x)]
        return found

    def _of_class(self, x: Any) -> list[tuple[Any, str]]:
        return self._of_types(type(x).__mro__, x)

    def _of_types(self, types_of: Sequence[type], x: Any) -> list[tuple[Any, str]]:
        found: list[tuple[Any, str]] = []
        before: list[type] = []
        for one in types_of:
            if not _is_foreign(one, types_of):
                for name, value in vars(one).items():
                    if not name.startswith("__") and hasattr(x, "__dict__"):
                        self._add(vars(x), name, f"{one.__name__}.{name}")
                    if not name.startswith("__"):
                        for other in before:  # which would come first
                            self._add(other, name, f"{other.__name__}.{name}")
                    if isinstance(value, types.FunctionType):
                        self._add(one, name, f"{one.__name__}.{name}")
                        found.append((value, name))
                    elif not name.startswith("__"):
                        self._add(one, name, f"{one.__name__}.{name}")
                        found.append((value, f"{one.__name__}.{name}"))
                before.append(one)
        return found

    def _add(self, holder: Any, key: Any, name: str) -> None:
        self._slots[id(holder), key if isinstance(key, (str, int)) else id(key)] = (
            holder,
            key,
            name,
        )

    def _state(self, read: Callable[[], Any], name: str) -> None:
        self._states.append((read, None, name))


def _reads_any_name(code: types.CodeType) -> bool:
    """Return whether code calls a function that reads names which the code does not show."""
    return any(
        step.argval in _DYNAMIC and step.opname in ("LOAD_GLOBAL", "LOAD_NAME")
        for step in dis.get_instructions(code)
    )


def _codes(code: types.CodeType) -> list[types.CodeType]:
    inner = [c for x in code.co_consts if isinstance(x, types.CodeType) for c in _codes(x)]
    return [code, *inner]


def _package(cls: type) -> str:
    """Return the package of a class."""
    return package_of(cls.__module__)


def _has_dict(x: Any) -> bool:
    return isinstance(getattr(x, "__dict__", None), dict)


def _is_foreign(cls: type, types_of: Sequence[type]) -> bool:
    """Return whether the code of a class is not read: of a library, of an installed package.

    Layers, optimizers and rules of installed packages are read.
    """
    if of_library(cls.__module__):
        return True
    return is_installed(cls.__module__) and all(_package(one) != "optlab" for one in types_of)


def _is_code_of_installed(x: Any) -> bool:
    if isinstance(x, types.ModuleType):
        return is_installed(x.__name__)
    return isinstance(x, (type, types.FunctionType)) and is_installed(x.__module__)


def _is_opaque(x: Any) -> bool:
    """Return whether an object of an installed package has state that attributes do not show."""
    if not is_installed(type(x).__module__):
        return False
    return hasattr(type(x), "__array__") or any(
        not one.__flags__ & _HEAP_TYPE and is_installed(one.__module__) for one in type(x).__mro__
    )


#: The flag of classes that are written in Python.
_HEAP_TYPE = 1 << 9
