"""Steps as functions: parameters, gradients and state in, new parameters and new state out.

`step` writes in place, this computes the same numbers anew, by the same rule. So it can be
differentiated and vectorized. An optimizer or wrapper takes part by two methods,
`_functional_start` and `_functional_take`, which see the leaves of the parameters as a list.
"""

from __future__ import annotations

import functools
import reprlib
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np

from optlab.autograd import pytrees
from optlab.autograd.tape.row_sparse import RowSparse
from optlab.autograd.tensor.tensor import Tensor, raw
from optlab.backend.arrays import as_array, copied, unwrapped
from optlab.backend.call_recorder import LiveCount, here, is_live
from optlab.backend.dtypes import is_floating
from optlab.backend.ensemble import EnsembleArray, EnsembleError
from optlab.nn.base.parameter import Parameter
from optlab.optimizer.params.labels import label_of
from optlab.optimizer.rule.hyperparameters import COMMON, unknown_setting
from optlab.optimizer.rule.traced import numbers_in, traced

P = ParamSpec("P")
R = TypeVar("R")
State = dict[str, Any]

#: A count beyond it would not be told from the next one.
_MOST_STEPS = 2**53


class Leaves:
    """The parameters that were given: their arrays as a list, and how to put others in their place.

    Attributes
    ----------
    tree
        The parameters as they were given.
    parts : list of Tensor or array
    labels : list of str
        The name of each: the keys of dicts on the way to it, with dots; "" without any.
    build : callable
        Makes a container like `tree` of a list.
    """

    def __init__(self, tree: Any) -> None:
        self.tree = tree
        parts, self.build = pytrees.flatten(tree)
        if not parts:
            raise ValueError("parameters is empty: there is nothing to optimize.")
        self.labels = _names(tree, ())
        self.parts = [as_operand(part, self.label(i)) for i, part in enumerate(parts)]
        for i, part in enumerate(self.parts):
            if not is_floating(part.dtype):
                raise TypeError(
                    f"{self.label(i)} is {part.dtype}; parameters are floating numbers. Write "
                    ".astype('float32')."
                )

    def label(self, i: int) -> str:
        """Return the name of a leaf, or its number, for messages."""
        return repr(self.labels[i]) if self.labels[i] else f"parameter {i}"

    def like(self, tree: Any, what: str) -> list[Any]:
        """Return the leaves of something that is built like the parameters."""
        return pytrees.parts_like(self.tree, tree, what, "the parameters")

    def gradients(self, tree: Any, wide: Sequence[Any]) -> list[Any]:
        """Return gradients, checked; `wide` are the dtypes that they may have, too."""
        found = []
        for i, (p, g) in enumerate(zip(self.parts, self.like(tree, "gradients"), strict=True)):
            g = g if g is None or isinstance(raw(g), RowSparse) else as_operand(g, self.label(i))
            if isinstance(raw(g), RowSparse):
                raise TypeError(
                    f"the gradient of {self.label(i)} is row-sparse; functional_step takes dense "
                    "ones, as ol.grad gives them (Embedding(sparse=False))."
                )
            if g is not None and g.shape != p.shape:
                raise ValueError(
                    f"the gradient of {self.label(i)} has shape {g.shape}, the parameter {p.shape}."
                )
            if g is not None and g.dtype not in (p.dtype, wide[i]):
                raise TypeError(
                    f"the gradient of {self.label(i)} is {g.dtype}, the parameter {p.dtype}; "
                    f"write g.astype({str(p.dtype)!r})."
                )
            found.append(g)
        return found

    def given_back(self, values: Sequence[Any]) -> Any:
        """Return new values in a container like the parameters, Tensors for Tensors."""
        return self.build([handed(x, like) for x, like in zip(values, self.parts, strict=True)])


def handed(x: Any, like: Any) -> Any:
    """Return a result as a Tensor if `like` is one or something traces it, else as an array."""
    if isinstance(x, Tensor):
        if x.node is not None or isinstance(like, Tensor):
            return Tensor(x.data, x.node)
        x = x.data
    x = as_array(x)
    return Tensor(x) if isinstance(like, Tensor) else x


def _names(tree: Any, path: tuple[str, ...]) -> list[str]:
    """Return the keys on the way to each leaf; "" where there is no dict on it."""
    if not pytrees.is_container(tree):
        return [".".join(path)]
    if isinstance(tree, dict):
        return [name for key, part in tree.items() for name in _names(part, (*path, str(key)))]
    if path:
        return [n for i, part in enumerate(tree) for n in _names(part, (*path, str(i)))]
    return [n for part in tree for n in _names(part, ())]


def as_operand(x: Any, label: str) -> Any:
    """Return a parameter or gradient as a Tensor or array."""
    if isinstance(x, Tensor):
        return x if type(x) is Tensor else Tensor(x.data, x.node)
    try:
        array = as_array(x)
        known = array.dtype.kind not in "OSU"
    except (TypeError, ValueError):
        known = False
    if not known:
        raise TypeError(f"{label} must be an array or a Tensor; got {x!r}.")
    return array


# What the methods of optimizers do ----------------------------------------------------------------


def hyperparameters_by_name(method: Callable[P, R]) -> Callable[P, R]:
    """Let a method say how hyper-parameters are given to it, if one is given by position."""
    code: Any = method.__code__
    names = code.co_varnames[1 : code.co_argcount]

    @functools.wraps(method)
    def called(*args: P.args, **named: P.kwargs) -> R:
        if len(args) > code.co_argcount:
            given = reprlib.repr(args[code.co_argcount])
            raise TypeError(
                f"{method.__name__} takes {', '.join(names)} by position and hyper-parameters by "
                f"name; got {given} too. Write {method.__name__}({', '.join(names)}, "
                f"learning_rate={given}) if that is the rate."
            )
        return method(*args, **named)

    return called


def functional_init(optimizer: Any, parameters: Any, named: dict[str, Any]) -> State:
    """Return the state before the first step; see `Optimizer.functional_init`."""
    leaves = Leaves(parameters)
    _refuse_unknown_settings(optimizer, named)
    _refuse_settings_of_parameters(optimizer, parameters)
    values = [_working(optimizer, p) for p in leaves.parts]
    state: State = optimizer._functional_start(leaves, values, named)
    if any(value is not p for value, p in zip(values, leaves.parts, strict=True)):
        state["master"] = leaves.given_back(values)
    return state


def functional_step(
    optimizer: Any, parameters: Any, gradients: Any, state: Any, named: dict[str, Any]
) -> tuple[Any, State]:
    """Return new parameters and the new state; see `Optimizer.functional_step`."""
    leaves = Leaves(parameters)
    _refuse_unknown_settings(optimizer, named)
    _refuse_settings_of_parameters(optimizer, parameters)
    if not isinstance(state, dict):
        raise TypeError(
            "the state is what functional_init(parameters) or the last functional_step gave; got "
            f"{type(state).__name__}."
        )
    values = [_working(optimizer, p) for p in leaves.parts]
    given = leaves.gradients(gradients, [value.dtype for value in values])
    keeps = any(value is not p for value, p in zip(values, leaves.parts, strict=True))
    if keeps:
        masters = leaves.like(entry(state, "master"), "state['master']")
        values = [
            value if value is p else _merged(value, p, as_operand(m, "state['master']"))
            for value, p, m in zip(values, leaves.parts, masters, strict=True)
        ]
    new, made, _ = optimizer._functional_take(leaves, values, given, state, named)
    if keeps:
        made["master"] = leaves.given_back(new)
    narrow = [x.astype(p.dtype) for x, p in zip(new, leaves.parts, strict=True)] if keeps else new
    parts = [
        apart(x, [p, g]) for x, p, g in zip(narrow, leaves.parts, given, strict=True)
    ]  # fmt: skip
    return leaves.given_back(parts), made


def entry(state: Any, name: str) -> Any:
    """Return an entry of a state; raise if it is not there."""
    if not isinstance(state, dict) or name not in state:
        raise ValueError(
            f"the state has no {name!r}; it is what functional_init(parameters) of this optimizer "
            "gives, or its last functional_step."
        )
    return state[name]


def take_own(names: Sequence[str], named: dict[str, Any], owner: str, inner: Any) -> dict[str, Any]:
    """Return those of the hyper-parameters that are a wrapper's own; leave the rest in `named`."""
    own = {name: named[name] for name in names if name in named}
    for name in own:
        if name in inner.settings:
            raise TypeError(
                f"{name} is a setting of {owner} and of {type(inner).__name__} inside it; set it "
                "where they are made."
            )
    return own


def number_of(value: Any, check: Callable[[Any], Any]) -> Any:
    """Return a setting as a Python number, or as a traced one if it has a gradient or members.

    `check` is called with each number, and returns it or raises.
    """
    if is_live(value):
        return here.recorder.of_numbers("setting", check, value)
    if not is_traced(value):
        return check(value)
    if value.size != 1:
        raise TypeError(f"a hyper-parameter is one number; got shape {value.shape}.")
    for one in numbers_in(value):
        check(one)
    return traced(value)


def is_traced(value: Any) -> bool:
    """Return whether something is differentiated, or has a value for each member."""
    return getattr(value, "node", None) is not None or isinstance(raw(value), EnsembleArray)


def count_of(value: Any, what: str) -> int:
    """Return a count of a state, which `vmap` or a file may have made an array."""
    if is_live(value):
        return value  # type: ignore[no-any-return]
    data = raw(value)
    while isinstance(data, EnsembleArray):
        data = data.members
    found = set(np.ravel(data).tolist()) if data is not None else set()
    if len(found) > 1:
        raise EnsembleError(
            f"{what} differs between the examples of a vmap, which take the same operations "
            "together. Run those that differ apart."
        )
    one = found.pop() if found else None
    if not isinstance(one, (int, float)):
        raise TypeError(f"{what} is a whole number; got {value!r}.")
    if not 0 <= one < _MOST_STEPS or one != int(one):
        raise ValueError(
            f"{what} is a whole number from 0 to 2**53; got {reprlib.repr(value)}. A state is what "
            "functional_init or the last functional_step gave."
        )
    return int(one)


def next_count(count: int, moved: bool) -> int:
    """Return a step count after a step, as a number that a captured call may be given anew."""
    if is_live(count):
        return here.recorder.of_numbers(  # type: ignore[no-any-return]
            "next_count", _counted, count, int(moved)
        )
    return _counted(count, moved)


def _counted(count: int, moved: bool) -> LiveCount:
    return LiveCount(count + moved)


def memory_number(value: Any) -> Any:
    """Return a number that is kept in a state as a Python float, or traced."""
    if isinstance(value, (int, float)) or is_live(value):
        return value
    return traced(value) if is_traced(value) else float(numbers_in(value)[0])


def _refuse_unknown_settings(optimizer: Any, named: dict[str, Any]) -> None:
    """Raise for a hyper-parameter that neither the rule has nor a wrapper around it."""
    if not named:
        return
    known: list[str] = []
    owners: list[str] = []
    rule = optimizer
    while hasattr(rule, "inner_optimizer"):
        owner, names = rule._functional_names()
        owners.append(owner)
        known += names
        rule = rule.inner_optimizer
    known += type(rule).hyperparameters
    label = "(".join([*owners, type(rule).__name__]) + ")" * len(owners)
    for name in named:
        if name not in known and name not in COMMON:
            raise TypeError(unknown_setting(label, name, known, ("weight_decay", "grad_clip")))


def _refuse_settings_of_parameters(optimizer: Any, tree: Any) -> None:
    """Raise if a template is given parameters with settings, which arrays do not have."""
    if not optimizer.is_template:
        return
    for p in pytrees.flatten(tree)[0]:
        if isinstance(p, Parameter) and (
            p.learning_rate != 1 or p.regularizer is not None or not p.need_clip
        ):
            raise ValueError(
                f"{label_of(p)} has a rate, a regularizer or need_clip of its own, "
                "which the arrays of the next steps would not have: bind the optimizer, "
                f"{type(optimizer).__name__}(..., parameters=[...]); its parameters' settings "
                "count in every step."
            )


def _working(optimizer: Any, p: Any) -> Any:
    """Return what a rule updates: the parameter, or its float32 copy."""
    if optimizer._common.get("multi_precision", False) and p.dtype.itemsize < 4:
        return p.astype(np.float32)
    return p


def _merged(value: Any, p: Any, master: Any) -> Any:
    """Return the float32 copy where it rounds to the parameter, else the parameter.

    Its gradient is that of the parameter: rounding is differentiated as the identity.
    """
    copy, here = raw(master), raw(p)
    merged = np.where(copy.astype(here.dtype) == here, copy, raw(value))
    if getattr(value, "node", None) is None:
        return master if getattr(master, "node", None) is not None else merged
    return value + (merged - raw(value))


def fresh(x: Any) -> Any:
    """Return the same values in memory of their own."""
    if not isinstance(x, Tensor):
        return copied(x)
    return +x if x.node is not None else Tensor(copied(x.data))


def apart(x: Any, others: Sequence[Any]) -> Any:
    """Return a result in memory of its own: a rule may return what it was given."""
    array = raw(x)
    if getattr(x, "node", None) is not None:
        return +x if any(x is other or array is raw(other) for other in others) else x
    base = getattr(unwrapped(array), "base", None)
    if base is not None or any(array is raw(other) for other in others):
        return copied(array)
    return x
