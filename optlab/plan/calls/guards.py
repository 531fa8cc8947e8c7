"""Guards of a plan: what a function reads from outside, which must be what it was.

They are found by reading the code: global names, variables of closures, attributes of objects of
the user's classes and of layers. Two things follow: a plan holds only as long as all of them are
what they were, and a call that changes one of them cannot be repeated by a plan.
"""

from __future__ import annotations

import argparse
import array
import dis
import functools
import inspect
import keyword
import sys
import threading
import types
import weakref
from collections import ChainMap, UserDict, UserList, deque
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

from optlab.autograd.tape.base import TensorBase
from optlab.autograd.tape.constants import checksum_of
from optlab.backend.user_frames import location

_SIMPLE = (int, float, complex, str, bytes, bool, type(None))
#: The most objects that are looked at. A function that reads more from outside is refused.
MOST = 20_000
_MISSING: Any = object()
_CONTAINERS = (list, tuple, set, frozenset, deque)
#: Classes of Python's library that hold what users put into them, as attributes.
_HOLDERS = (argparse.Namespace, UserDict, UserList, ChainMap, threading.local)


#: Names in code that do something to arrays without a recording's knowledge.
_UNSEEN = {
    "data": "A write to t.data, or into it, is t.set_value(...) or t[...] = ... under no_grad",
    "type": "type(x) is that of a recording; write isinstance(x, np.ndarray)",
}


#: Functions that read names which code does not show.
_DYNAMIC = ("globals", "eval", "exec")


class Guards:
    """The global names, closures and objects that a function reads, with what they were.

    Parameters
    ----------
    f : callable
    args, kwargs
        Of the call.
    """

    def __init__(self, f: Any, args: Any, kwargs: Any) -> None:
        self._slots: dict[tuple[int, Any], tuple[Any, Any, str]] = {}
        #: What a call must not change, but may be changed between calls.
        self._states: list[tuple[Callable[[], Any], Any, str]] = []
        self._seen: dict[int, Any] = {}
        self._arrays: dict[int, Any] = {}
        self._codes: list[types.CodeType] = []
        #: The Tensors that it reads from outside, and others that it could read.
        self.tensors: list[Any] = []
        self._nodes: list[tuple[Any, Any]] = []
        self._contents: list[tuple[Any, bytes]] = []
        self._modules: list[types.ModuleType] = []
        self._ours: list[Any] = []
        #: Whether there is more than what is looked at.
        self.incomplete = False
        self._walk([f, *args, *kwargs.values()])
        for _ in range(3):  # functions of a module may read another
            self._walk([x for x, _ in self._read_names()])
        self.renew()
        self._states = [(read, read(), name) for read, _, name in self._states]

    def arrays(self) -> list[Any]:
        """Return the plain arrays that it reads from outside."""
        return list(self._arrays.values())

    def roots(self) -> list[Any]:
        """Return the Tensors, optimizers, schedules and averages that it could reach."""
        # A data loader is none: what it iterates over may be large, and a call cannot do that.
        stateful = [x for x in self._ours if hasattr(type(x), "state_dict")]
        return [*self.tensors, *(x for x in stateful if not hasattr(type(x), "__iter__"))]

    def recomputes(self) -> bool:
        """Return whether it could reach an optimizer that decides what operations save."""
        return any(getattr(x, "recomputes", False) for x in self._ours)

    def renew(self) -> None:
        """Take what is now as what has to hold."""
        self._held = [
            (holder, key, _now(holder, key), name) for holder, key, name in self._slots.values()
        ]
        self._in_dicts: list[tuple[dict[Any, Any], Any, Any]] = []
        self._elsewhere: list[tuple[Any, Any, Any]] = []
        for holder, key, expected, _ in self._held:
            simple = (
                isinstance(holder, dict)
                and not _is_reader(key)
                and not isinstance(expected, _Parts)
            )
            (self._in_dicts if simple else self._elsewhere).append((holder, key, expected))
        self._write_check()

    def _write_check(self) -> None:
        """Make the check that holds in nearly every call: whether all are the same objects."""
        named = [slot for slot in self._elsewhere if _is_attribute(*slot)]
        self._others = [slot for slot in self._elsewhere if not any(slot is x for x in named)]
        self._unchanged = _identity_check(self._in_dicts, named, self._nodes)

    def forget(self) -> None:
        """Let go of what only the capture needed: arguments among it."""
        self._seen, self._states, self.tensors = {}, [], []

    def watch_contents(self, largest: int | None = None) -> None:
        """Let the contents of plain arrays count: what NumPy computes from them is a constant."""
        self._contents = [
            (x, checksum_of(x))
            for x in self._arrays.values()
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
                if not _same(holder.get(key, _MISSING), expected):
                    return False
            others = self._elsewhere
        for holder, key, expected in others:
            if not _same(_now(holder, key), expected):
                return False
        return all([checksum_of(x) == before for x, before in self._contents])  # noqa: C419

    def changed(self) -> str:
        """Return the name of what has changed, and a line that changes it; empty if nothing has."""
        for holder, key, expected, name in self._held:
            if not _same(_now(holder, key), expected):
                return f"{name} ({self.line_of(name)})"
        for read, before, name in self._states:
            if read() != before:
                return f"{name} ({self.line_of(name)})"
        return ""

    def restore(self) -> None:
        """Put back what has changed: names, attributes, entries of lists and dicts."""
        for holder, key, expected, _ in self._held:
            if not _same(_now(holder, key), expected):
                _put_back(holder, key, expected)

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

    def _walk(self, roots: list[Any]) -> None:
        waiting = deque([(x, "") for x in roots])
        while waiting and len(self._seen) < MOST:
            x, name = waiting.popleft()
            if id(x) in self._seen or isinstance(x, (*_SIMPLE, np.generic)):
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
            return [] if _of_library(x.__module__) else self._of_types(x.__mro__, None)
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
                self._state(lambda: _elements(x), name or "an array")
                self._add(x, _elements, name or "an array")
                return [(part, name) for part in x.ravel().tolist()]
            self._arrays[id(x)] = x
            self._state(lambda: checksum_of(x), name or "an array")
            return []
        if isinstance(x, types.FunctionType):
            return [] if _of_library(x.__module__) else self._of_function(x)
        if isinstance(x, types.MethodType):
            return [(x.__self__, name), (x.__func__, name)]
        if isinstance(x, _CONTAINERS):
            if not isinstance(x, (tuple, frozenset)):
                self._state(lambda: _Parts(x), name or f"a {type(x).__name__}")
                self._add(x, _Parts, name or f"a {type(x).__name__}")
            found = [(part, name) for part in x]
            return found + (self._of_attributes(x, vars(x)) if hasattr(x, "__dict__") else [])
        if isinstance(x, dict):
            self._state(lambda: (_Parts(x), _Parts(x.values())), name or "a dict")
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
        if hasattr(type(x), "__next__"):
            self._state(lambda: _state_of_iterator(x), name or "an iterator")
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
                self._add(x, _sublayers, f"the layers of {type(x).__name__}")  # it may go over all
            for key in ("forward", "_hooks"):
                self._add(vars(x), key, f"{type(x).__name__}.{key}")
            self._add(x, "training", f"{type(x).__name__}.training")
            return found + self._of_class(x)
        if any(one.__module__.partition(".")[0] == "optlab" for one in type(x).__mro__):
            self._ours.append(x)
            return [(x.hook, "a hook")] if hasattr(x, "hook") else []
        for kind, read in _READ_AS.items():
            if isinstance(x, kind):
                self._state(functools.partial(read, x), name or f"a {kind.__name__}")
                self._add(x, read, name or f"a {kind.__name__}")
                return [(part, name) for part in read(x).parts]
        if isinstance(x, _HOLDERS):
            # A new attribute counts, too.
            self._state(lambda: _names(x), name or f"a {type(x).__name__}")
            self._add(x, _names, name or f"a {type(x).__name__}")
        elif _of_library(type(x).__module__):
            return []
        own = getattr(x, "__dict__", None)
        found = self._of_attributes(x, own) if isinstance(own, dict) else []
        for one in type(x).__mro__:
            for key in vars(one).get("__slots__", ()):
                self._add(x, key, f"{type(x).__name__}.{key}")
                found.append((getattr(x, key, None), f"{type(x).__name__}.{key}"))
        return found + self._of_class(x)

    def _of_module(self, module: types.ModuleType) -> list[tuple[Any, str]]:
        """Guard the names of a module of the user that code may read."""
        if _of_library(module.__name__):
            return []
        self._modules.append(module)
        return []

    def _read_names(self) -> list[tuple[Any, str]]:
        """Guard what code names of modules of the user, and of objects of the engine."""
        names = {name for code in self._codes for name in code.co_names}
        found = []
        for module in self._modules:
            for name in names & vars(module).keys():
                what = f"{module.__name__}.{name}"
                self._add(vars(module), name, what)
                found.append((vars(module)[name], what))
        for x in self._ours:
            for name in names & getattr(x, "__dict__", {}).keys():
                if isinstance(vars(x)[name], _SIMPLE):
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
            found.append((_get(cell, "cell_contents"), what))
        for code in _codes(f.__code__):
            self._codes.append(code)
            names = set(code.co_names)
            if not names.isdisjoint(_DYNAMIC) and _reads_any_name(code):
                names |= f.__globals__.keys()
            for name in names:
                if name in f.__globals__:
                    value = f.__globals__[name]
                    what = f"the global variable '{name}'"
                    if not isinstance(value, types.ModuleType) or not _of_library(name):
                        self._add(f.__globals__, name, what)
                    found.append((value, what))
        self._add(f, "__defaults__", "a default")
        self._add(f, "__kwdefaults__", "a default")
        for key in vars(f):
            self._add(vars(f), key, f"{f.__name__}.{key}")
        defaults = (*(f.__defaults__ or ()), *(f.__kwdefaults__ or {}).values(), *vars(f).values())
        return found + [(x, "a default") for x in defaults]

    def _of_class(self, x: Any) -> list[tuple[Any, str]]:
        return self._of_types(type(x).__mro__, x)

    def _of_types(self, types_of: Sequence[type], x: Any) -> list[tuple[Any, str]]:
        found: list[tuple[Any, str]] = []
        before: list[type] = []
        for one in types_of:
            if not _of_library(one.__module__):
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


def _is_attribute(holder: Any, key: Any, expected: Any) -> bool:
    """Return whether ``holder.key`` is what is compared."""
    return (
        isinstance(key, str)
        and key.isidentifier()
        and not keyword.iskeyword(key)
        and not isinstance(holder, (dict, type))
        and expected is not _MISSING
        and _get(holder, key) is expected
    )


def _identity_check(
    slots: Sequence[tuple[dict[Any, Any], Any, Any]],
    attributes: Sequence[tuple[Any, str, Any]],
    nodes: Sequence[tuple[Any, Any]],
) -> Callable[[], bool]:
    """Return a function that tells whether all values are the objects that they were.

    As one expression it takes a third of the time of a loop.

    Parameters
    ----------
    slots : sequence of (dict, key, value)
    attributes : sequence of (object, name, value)
    nodes : sequence of (Tensor, node)
    """
    scope: dict[str, Any] = {}
    terms = ["True"]
    for i, (holder, key, expected) in enumerate(slots):
        scope |= {f"d{i}": holder, f"k{i}": key, f"e{i}": expected}
        terms.append(f"k{i} not in d{i}" if expected is _MISSING else f"d{i}[k{i}] is e{i}")
    for i, (holder, name, expected) in enumerate(attributes):
        scope |= {f"h{i}": holder, f"a{i}": expected}
        terms.append(f"h{i}.{name} is a{i}")
    for i, (tensor, node) in enumerate(nodes):
        scope |= {f"t{i}": tensor, f"n{i}": node}
        terms.append(f"t{i}.node is n{i}")
    source = f"lambda: {' and '.join(terms)}"
    return eval(compile(source, "<optlab guards>", "eval"), scope)  # type: ignore[no-any-return]


class _Parts:
    """The parts of a list, or the keys of a dict; equal to the same objects in the same order."""

    __slots__ = ("parts",)

    def __init__(self, x: Any) -> None:
        self.parts = list(x)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Parts)
            and len(self.parts) == len(other.parts)
            and all(map(_same, self.parts, other.parts))
        )

    __hash__ = None  # type: ignore[assignment]


def _state_of_iterator(x: Any) -> str:
    try:
        return repr(x.__reduce__()[1:])
    except Exception:  # noqa: BLE001  # of any class
        return ""


def _reads_any_name(code: types.CodeType) -> bool:
    """Return whether code calls a function that reads names which the code does not show."""
    return any(
        step.argval in _DYNAMIC and step.opname in ("LOAD_GLOBAL", "LOAD_NAME")
        for step in dis.get_instructions(code)
    )


def _codes(code: types.CodeType) -> list[types.CodeType]:
    inner = [c for x in code.co_consts if isinstance(x, types.CodeType) for c in _codes(x)]
    return [code, *inner]


def _get(holder: Any, key: Any) -> Any:
    if key is _Parts or key is tuple:
        return _Parts(holder)
    if _is_reader(key):
        return key(holder)
    if isinstance(holder, type):
        return vars(holder).get(key, _MISSING)
    if isinstance(holder, dict):
        return dict.get(holder, key, _MISSING)
    try:
        return getattr(holder, key, _MISSING)
    except ValueError:  # an empty cell
        return _MISSING


def _sublayers(x: Any) -> tuple[Any, ...]:
    """Return the sublayers that a layer has as attributes, in order."""
    return tuple([part for part in vars(x).values() if hasattr(type(part), "guarded")])


def _elements(x: Any) -> _Parts:
    """Return the elements of an array of objects."""
    return _Parts(x.ravel().tolist())


def _names(x: Any) -> _Parts:
    """Return the names of the attributes of an object, in order."""
    return _Parts(vars(x))


def _items(x: Any) -> _Parts:
    """Return keys and values of a mapping."""
    return _Parts([part for item in x.items() for part in item])


def _bytes(x: Any) -> _Parts:
    """Return the memory of an array of Python's own."""
    return _Parts([bytes(x)])


def _value_of(x: ContextVar[Any]) -> _Parts:
    """Return the value of a context variable."""
    return _Parts([x.get(None)])


def _referent(x: Any) -> _Parts:
    """Return what a weak reference refers to."""
    return _Parts([x()])


#: How classes of Python's library are read that hold other things than attributes.
_READ_AS: dict[Any, Callable[[Any], _Parts]] = {
    types.MappingProxyType: _items,
    array.array: _bytes,
    bytearray: _bytes,
    ContextVar: _value_of,
    weakref.ref: _referent,
}
_READERS = frozenset(map(id, (_Parts, tuple, _sublayers, _elements, _names, *_READ_AS.values())))


def _is_reader(key: Any) -> bool:
    """Return whether the key of a slot is a function that reads its holder."""
    return id(key) in _READERS


def _now(holder: Any, key: Any) -> Any:
    """Return what is compared: an object itself, of a list its parts."""
    value = _get(holder, key)
    return _Parts(value) if type(value) is list and not callable(key) else value


def _put_back(holder: Any, key: Any, before: Any) -> None:
    if key is tuple:
        for new in [k for k in holder if not any(k is old for old in before.parts)]:
            del holder[new]
    elif _is_reader(key) and key is not _Parts:
        return  # what it reads is put back where it stands, or cannot be
    elif isinstance(before, _Parts):
        x = holder if key is _Parts else _get(holder, key)
        if isinstance(x, (list, deque)):
            x.clear()
            x.extend(before.parts)
        elif isinstance(x, set):
            x.clear()
            x.update(before.parts)
    elif isinstance(holder, dict):
        if before is _MISSING:
            holder.pop(key, None)
        else:
            holder[key] = before
    elif before is _MISSING:
        delattr(holder, key)
    else:
        setattr(holder, key, before)


def _same(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return bool(a.hex() == b.hex())
    if isinstance(a, complex):
        return repr(a) == repr(b)
    if isinstance(a, (_Parts, *_SIMPLE)):
        return bool(a == b)
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    return False


#: Not `types`, whose SimpleNamespace holds what users put into it.
_LIBRARIES = (sys.stdlib_module_names | {"optlab", "numpy", "scipy"}) - {"__main__", "types"}


def _of_library(module: str | None) -> bool:
    """Return whether a module is none of the user's."""
    return (module or "").partition(".")[0] in _LIBRARIES
