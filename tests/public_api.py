"""The public interface as text, one line a name; `tests/test_public_api.py` compares.

`python -m tests.public_api` records it again in `tests/data/public_api.txt`. Do so only where a
name, an argument or a default is meant to change, and let the diff be reviewed.
"""

import importlib
import inspect
import re
from pathlib import Path

RECORD = Path(__file__).with_name("data") / "public_api.txt"

#: Every public module, and every module path that documents, notebooks and the gallery use.
MODULES = [
    "optlab", "optlab.amp", "optlab.autograd", "optlab.autograd.reversal",
    "optlab.autograd.reversal_actions", "optlab.autograd.schedule_costs",
    "optlab.autograd.schedules", "optlab.course", "optlab.distributed", "optlab.distributed.fleet",
    "optlab.distributed.fleet.utils", "optlab.fluid", "optlab.fluid.clip", "optlab.fluid.dygraph",
    "optlab.fluid.layers", "optlab.fluid.optimizer", "optlab.fluid.regularizer", "optlab.incubate",
    "optlab.incubate.optimizer", "optlab.io", "optlab.jit", "optlab.lab", "optlab.lab.data",
    "optlab.lab.models", "optlab.lab.problems", "optlab.nn", "optlab.nn.functional",
    "optlab.nn.initializer", "optlab.nn.loss", "optlab.nn.utils", "optlab.optimizer",
    "optlab.optimizer.lr", "optlab.optimizer.regularizer", "optlab.optimizer.wrappers",
    "optlab.parallel",
    "optlab.plan", "optlab.special", "optlab.trace", "optlab.trace.memory", "optlab.viz",
]  # fmt: skip

#: Paths that must go on handing out these names, though they are no public modules.
PATHS = {
    "optlab.autograd.composed": [],
    "optlab.autograd.dispatch": [],
    "optlab.autograd.operation": ["Operation", "rule"],
    "optlab.autograd.random": [],
    "optlab.autograd.rules": [],
    "optlab.autograd.sparse": ["RowSparse"],
    "optlab.autograd.tape": ["Leaf", "Node"],
    "optlab.autograd.tensor": ["SilentDetachError", "Tensor", "apply", "raw"],
    "optlab.numpy.random": [],
}  # fmt: skip


def signature(thing):
    """Return the arguments of a callable without annotations, or None where it has no signature."""
    try:
        found = inspect.signature(thing)
    except (TypeError, ValueError):
        return None
    bare = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in found.parameters.values()
    ]
    text = str(inspect.Signature(bare))
    return re.sub(r" at 0x[0-9a-f]+|<function ([\w.<>]+)>|<class '(?:\w+\.)*(\w+)'>", r"\1\2", text)


def names_of(module):
    """Return the public names of a module; without `__all__`, what it has of optlab."""
    if hasattr(module, "__all__"):
        return sorted(module.__all__)
    return sorted(
        name for name, thing in vars(module).items() if not name.startswith("_") and is_ours(thing)
    )


def is_ours(thing):
    """Return whether a thing is defined by optlab, and is not a module."""
    return not inspect.ismodule(thing) and (getattr(thing, "__module__", None) or "").startswith(
        "optlab"
    )


def public_classes(cls):
    """Yield the bases of a class that have a public name."""
    for base in cls.__mro__[1:]:
        if is_ours(base) and not base.__name__.startswith("_") and base in _NAMED:
            yield base


_NAMED = set()


#: Dunders that no operator and no statement of a user calls: Python's records about a class.
NOT_COUNTED = set(
    """__abstractmethods__ __annotate__ __annotate_func__ __annotations__ __annotations_cache__
    __callable_proto_members_only__ __class_getitem__ __dict__ __doc__ __firstlineno__
    __getattr__ __init__ __init_subclass__ __match_args__ __module__ __new__
    __non_callable_proto_members__ __orig_bases__ __parameters__ __post_init__
    __protocol_attrs__ __qualname__ __replace__ __signature__ __slotnames__ __slots__
    __static_attributes__ __subclasshook__ __test__ __type_params__ __weakref__
    __wrapped__""".split()
)


def dunders(cls):
    """Return the operators and protocols that a class, or a base of optlab, defines."""
    return {
        name
        for base in cls.__mro__
        if is_ours(base)
        for name in vars(base)
        if re.fullmatch(r"__\w+__", name)
        and not name.startswith("__dataclass_")
        and name not in NOT_COUNTED
    }


def members(cls):
    """Yield the public members and dunders of a class that no public base hands it."""
    public = {name for name in dir(cls) if not name.startswith("_")}
    for name in sorted(public | dunders(cls)):
        member = inspect.getattr_static(cls, name)
        if any(inspect.getattr_static(base, name, None) is member for base in public_classes(cls)):
            continue
        yield name, member


def described(path, thing):
    """Yield the lines of a name: itself, and for a class its members."""
    if not is_ours(thing):
        yield path
        return
    if not callable(thing):
        yield path
        return
    yield f"{path}{signature(thing) or ''}"
    if not inspect.isclass(thing):
        return
    for name, member in members(thing):
        if isinstance(member, (classmethod, staticmethod)):
            member = member.__func__
        # The signature of a dunder is that of Python: its name alone is recorded.
        signed = inspect.isfunction(member) and not name.startswith("__")
        text = signature(member) if signed else None
        yield f"{path}.{name}{text or ''}"


def lines():
    """Return the whole interface, one line a name."""
    modules = {name: importlib.import_module(name) for name in MODULES}
    things = [
        (f"{place}.{name}", getattr(module, name))
        for place, module in modules.items()
        for name in names_of(module)
    ]
    _NAMED.update(thing for _, thing in things if inspect.isclass(thing))
    found = [line for path, thing in things for line in described(path, thing)]
    for place, names in PATHS.items():
        module = importlib.import_module(place)
        found += [f"{place}.{name}" for name in names if getattr(module, name) is not None]
        found += [] if names else [place]
    return sorted(set(found))


if __name__ == "__main__":
    RECORD.write_text("\n".join(lines()) + "\n", encoding="utf-8")
    print(f"{len(lines())} lines in {RECORD}")
