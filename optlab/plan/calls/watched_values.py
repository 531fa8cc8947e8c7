"""Values that a function reads from outside: how they are read, compared and put back.

A slot is a holder and a key: an attribute of an object, an entry of a dict, the contents of a cell.
Where the key is a function, a reader, what it gives of the holder is compared.
"""

from __future__ import annotations

import array
import hashlib
import io
import keyword
import os
import pickle
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any

SIMPLE = (int, float, complex, str, bytes, bool, type(None))
MISSING: Any = object()


def is_attribute(holder: Any, key: Any, expected: Any) -> bool:
    """Return whether ``holder.key`` is what is compared."""
    return (
        isinstance(key, str)
        and key.isidentifier()
        and not keyword.iskeyword(key)
        and not isinstance(holder, (dict, type))
        and expected is not MISSING
        and read_slot(holder, key) is expected
    )


def identity_check(
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
        terms.append(f"k{i} not in d{i}" if expected is MISSING else f"d{i}[k{i}] is e{i}")
    for i, (holder, name, expected) in enumerate(attributes):
        scope |= {f"h{i}": holder, f"a{i}": expected}
        terms.append(f"h{i}.{name} is a{i}")
    for i, (tensor, node) in enumerate(nodes):
        scope |= {f"t{i}": tensor, f"n{i}": node}
        terms.append(f"t{i}.node is n{i}")
    source = f"lambda: {' and '.join(terms)}"
    return eval(compile(source, "<optlab guards>", "eval"), scope)  # type: ignore[no-any-return]


class Parts:
    """The parts of a list, or the keys of a dict; equal to the same objects in the same order."""

    __slots__ = ("parts",)

    def __init__(self, x: Any) -> None:
        self.parts = list(x)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Parts)
            and len(self.parts) == len(other.parts)
            and all(map(same, self.parts, other.parts))
        )

    __hash__ = None  # type: ignore[assignment]


def state_of_iterator(x: Any) -> str:
    """Return where an iterator stands; empty if it does not say."""
    try:
        return repr(x.__reduce__()[1:])
    except Exception:  # noqa: BLE001  # of any class
        return ""


def read_slot(holder: Any, key: Any) -> Any:
    """Return what stands in a slot; `MISSING` for nothing."""
    if key is Parts or key is tuple:
        return Parts(holder)
    if is_reader(key):
        return key(holder)
    if isinstance(holder, type):
        return vars(holder).get(key, MISSING)
    if isinstance(holder, dict):
        return dict.get(holder, key, MISSING)
    try:
        return getattr(holder, key, MISSING)
    except ValueError:  # an empty cell
        return MISSING


def sublayers(x: Any) -> tuple[Any, ...]:
    """Return the sublayers that a layer has as attributes, in order."""
    return tuple([part for part in vars(x).values() if hasattr(type(part), "guarded")])


def elements(x: Any) -> Parts:
    """Return the elements of an array of objects."""
    return Parts(x.ravel().tolist())


def names_of(x: Any) -> Parts:
    """Return the names of the attributes of an object, in order."""
    return Parts(vars(x))


def _items(x: Any) -> Parts:
    """Return keys and values of a mapping."""
    return Parts([part for item in x.items() for part in item])


def _bytes(x: Any) -> Parts:
    """Return the memory of an array of Python's own."""
    return Parts([bytes(x)])


def _value_of(x: ContextVar[Any]) -> Parts:
    """Return the value of a context variable."""
    return Parts([x.get(None)])


def position(x: io.IOBase) -> Any:
    """Return where a file or stream stands; None if it does not say."""
    try:
        return x.tell()
    except (OSError, ValueError):  # it cannot seek; it is closed, or read line by line
        return None


def fingerprint(x: Any) -> Parts:
    """Return the bits of an object that keeps them where attributes do not show them."""
    try:
        return Parts([hashlib.blake2b(pickle.dumps(x, protocol=5)).digest()])
    except Exception:  # noqa: BLE001  # of any class
        return Parts([])


def public_state(x: Any) -> Parts:
    """Return the bits of the public attributes of an object; private ones may be notes of its own.

    A sparse matrix notes whether its indices are sorted when that is first asked.
    """
    return fingerprint({name: part for name, part in vars(x).items() if name[0] != "_"})


def _referent(x: Any) -> Parts:
    """Return what a weak reference refers to."""
    return Parts([x()])


#: How classes of Python's library are read that hold other things than attributes.
READ_AS: dict[Any, Callable[[Any], Parts]] = {
    MappingProxyType: _items,
    array.array: _bytes,
    bytearray: _bytes,
    ContextVar: _value_of,
    weakref.ref: _referent,
    type(os.environ): _items,
}
_READERS = frozenset(
    map(
        id,
        (Parts, tuple, sublayers, elements, names_of, fingerprint, public_state, *READ_AS.values()),
    )
)


def is_reader(key: Any) -> bool:
    """Return whether the key of a slot is a function that reads its holder."""
    return id(key) in _READERS


def now(holder: Any, key: Any) -> Any:
    """Return what is compared: an object itself, of a list its parts."""
    value = read_slot(holder, key)
    return Parts(value) if type(value) is list and not callable(key) else value


def put_back(holder: Any, key: Any, before: Any) -> None:
    """Put back what stood in a slot, where that can be."""
    if key is tuple:
        for new in [k for k in holder if not any(k is old for old in before.parts)]:
            del holder[new]
    elif is_reader(key) and key is not Parts:
        return  # what it reads is put back where it stands, or cannot be
    elif isinstance(before, Parts):
        x = holder if key is Parts else read_slot(holder, key)
        if isinstance(x, (list, deque)):
            x.clear()
            x.extend(before.parts)
        elif isinstance(x, set):
            x.clear()
            x.update(before.parts)
    elif isinstance(holder, dict):
        if before is MISSING:
            holder.pop(key, None)
        else:
            holder[key] = before
    elif before is MISSING:
        delattr(holder, key)
    else:
        setattr(holder, key, before)


def same(a: Any, b: Any) -> bool:
    """Return whether two values are the same object, or equal values of Python to the bit."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return bool(a.hex() == b.hex())
    if isinstance(a, complex):
        return repr(a) == repr(b)
    if isinstance(a, (Parts, *SIMPLE)):
        return bool(a == b)
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return False
