"""The public names of optlab, and the page of the reference that each of them has.

A name is documented once, where a program writes it: ``ol.grad`` and not ``ol.autograd.grad``.
Other places that hand on the same object link to that page.
"""

from __future__ import annotations

import importlib
import inspect
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cache
from typing import Any

#: Public modules in the order of the reference, with the heading of each page. The first module
#: that hands on an object is the one that documents it.
MODULES = {
    "optlab": "ol: tensors, derivatives, races",
    "optlab.optimizer": "ol.optimizer: optimizers",
    "optlab.optimizer.lr": "ol.optimizer.lr: learning-rate schedules",
    "optlab.optimizer.wrappers": "ol.optimizer.wrappers: around an optimizer",
    "optlab.optimizer.regularizer": "ol.regularizer: weight decay",
    "optlab.nn": "ol.nn: layers and losses",
    "optlab.nn.functional": "ol.nn.functional: functions of layers",
    "optlab.nn.initializer": "ol.nn.initializer: initial values",
    "optlab.nn.utils": "ol.nn.utils: helpers",
    "optlab.autograd": "ol.autograd: the tape",
    "optlab.autograd.schedules": "ol.autograd.schedules: checkpointing schedules",
    "optlab.autograd.schedule_costs": "ol.autograd.schedule_costs: what schedules cost",
    "optlab.autograd.reversal": "ol.autograd.reversal: schedules as data",
    "optlab.autograd.reversal_actions": "ol.autograd.reversal_actions: their actions",
    "optlab.numpy.random": "ol.numpy.random: random numbers",
    "optlab.special": "ol.special: special functions",
    "optlab.linalg": "ol.linalg: linear algebra under Paddle's names",
    "optlab.metric": "ol.metric: accuracy",
    "optlab.amp": "ol.amp: mixed precision",
    "optlab.io": "ol.io: data and files",
    "optlab.plan": "optlab.plan: captured steps",
    "optlab.jit": "ol.jit: Paddle's names for static graphs",
    "optlab.parallel": "ol.parallel: many ranks",
    "optlab.trace": "ol.trace: recordings",
    "optlab.probes": "ol.probes: what is seen of a step",
    "optlab.memory": "ol.memory: bytes",
    "optlab.lab": "ol.lab: experiments",
    "optlab.problems": "ol.problems: surfaces and networks",
    "optlab.data": "ol.data: data sets",
    "optlab.models": "ol.models: models",
    "optlab.viz": "ol.viz: figures",
    "optlab.course": "ol.course: checks for a class",
    "optlab.events": "ol.events: what the engine says",
    "optlab.distributed": "ol.distributed: Paddle's place of fleet",
    "optlab.distributed.fleet": "ol.distributed.fleet",
    "optlab.distributed.fleet.utils": "ol.distributed.fleet.utils",
    "optlab.incubate": "ol.incubate",
    "optlab.incubate.optimizer": "ol.incubate.optimizer",
    "optlab.fluid": "ol.fluid: the names of paddle.fluid",
    "optlab.fluid.clip": "ol.fluid.clip",
    "optlab.fluid.dygraph": "ol.fluid.dygraph",
    "optlab.fluid.layers": "ol.fluid.layers",
    "optlab.fluid.optimizer": "ol.fluid.optimizer",
    "optlab.fluid.regularizer": "ol.fluid.regularizer",
    "optlab.nn.loss": "ol.nn.loss: the documents' place of the losses",
}


@dataclass
class Name:
    """A public name: its path, what it is, and where else it can be had."""

    path: str
    thing: Any
    also: list[str] = field(default_factory=list)

    @property
    def own(self) -> bool:
        """Whether it is a class or function of optlab, which gets a page."""
        return _is_ours(self.thing) and (
            inspect.isclass(self.thing) or inspect.isroutine(self.thing)
        )

    @property
    def file(self) -> str:
        """The name of its page; file systems may not tell `curvature` from `Curvature`."""
        return self.path + ("-class" if self.path in _alike() else "")

    @property
    def place(self) -> str:
        """The module whose page lists it first."""
        return self.path.rpartition(".")[0]


def _is_ours(thing: Any) -> bool:
    return str(getattr(thing, "__module__", "") or "").startswith("optlab")


def module(name: str) -> Any:
    """Return a public module, or None where this version of optlab has none of this name."""
    import optlab

    parts = name.split(".")[1:]
    found: Any = optlab
    for part in parts:
        try:
            found = getattr(found, part)
        except AttributeError:
            try:
                found = importlib.import_module(f"{found.__name__}.{part}")
            except ModuleNotFoundError:
                return None
    return found


def names_in(place: Any) -> list[str]:
    """Return the public names of a module, modules left out."""
    import optlab

    if place is optlab:
        found = sorted(optlab._NAMES)
    elif hasattr(place, "__all__"):
        found = sorted(place.__all__)
    else:
        found = [name for name, thing in sorted(vars(place).items()) if _is_ours(thing)]
    return [
        name
        for name in found
        if not name.startswith("_") and not inspect.ismodule(getattr(place, name))
    ]


@cache
def by_module() -> dict[str, dict[str, Name]]:
    """Return the names of every public module by attribute; one object is one `Name` everywhere."""
    seen: dict[int, Name] = {}
    found: dict[str, dict[str, Name]] = defaultdict(dict)
    for place in MODULES:
        here = module(place)
        if here is None:
            continue
        for attribute in names_in(here):
            thing, path = getattr(here, attribute), f"{place}.{attribute}"
            name = seen.get(id(thing)) if _is_ours(thing) else None
            if name is None:
                name = seen[id(thing)] = Name(path, thing)
            else:
                name.also.append(path)
            found[place][attribute] = name
    return dict(found)


def pages() -> list[Name]:
    """Return the names that have a page of their own."""
    unique = {
        name.path: name for names in by_module().values() for name in names.values() if name.own
    }
    return list(unique.values())


@cache
def _alike() -> set[str]:
    """Return the classes whose name is that of a function but for capitals."""
    lower = defaultdict(list)
    for name in pages():
        lower[name.path.lower()].append(name)
    return {
        name.path
        for same in lower.values()
        for name in same
        if len(same) > 1 and inspect.isclass(name.thing)
    }


def members(cls: type) -> list[str]:
    """Return the documented public members of a class that no base with a page hands it."""
    bases = [
        name.thing for name in pages() if inspect.isclass(name.thing) and name.thing is not cls
    ]
    public = [base for base in cls.__mro__[1:] if base in bases]
    found = []
    for name in sorted(name for name in dir(cls) if not name.startswith("_")):
        member = inspect.getattr_static(cls, name)
        owner = next((base for base in cls.__mro__ if name in vars(base)), None)
        if not _is_ours(owner):
            continue
        if any(inspect.getattr_static(base, name, None) is member for base in public):
            continue
        found.append(name)
    return found


@cache
def members_of(cls: Any) -> frozenset[str]:
    """Return the members that the page of a class shows; of a function, none."""
    return frozenset(members(cls)) if inspect.isclass(cls) else frozenset()
