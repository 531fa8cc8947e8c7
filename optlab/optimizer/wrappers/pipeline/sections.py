"""The sections of a network: between Layers of a chain, or between the yields of a generator."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from optlab.autograd import pytrees
from optlab.autograd.checkpoint.layer_checks import is_layer
from optlab.autograd.tape.nodes import InputLeaf
from optlab.autograd.tensor.tensor import Tensor
from optlab.backend.device import moved
from optlab.backend.random import Key, scope
from optlab.nn.layers.containers import Sequential
from optlab.optimizer.params.labels import label_of

#: The name of the loss in a list of cuts.
LOSS = "loss"


class Parcel(NamedTuple):
    """What a section hands on: a container of values, some of which wait for a gradient."""

    build: pytrees.Build
    values: list[Any]
    waits: list[bool]

    def opened(self, device: str | None) -> tuple[Any, list[Any]]:
        """Return the container with Tensors of this section, and the leaves of those that wait."""
        parts, leaves = [], []
        for value, waits in zip(self.values, self.waits, strict=True):
            if device is not None and hasattr(value, "dtype"):
                value = moved(value, device)
            if waits:
                leaf = InputLeaf(value.shape, value.dtype)
                leaves.append(leaf)
                parts.append(Tensor(value, leaf))
            else:
                parts.append(Tensor(value) if hasattr(value, "dtype") else value)
        return self.build(parts), leaves


def packed(value: Any) -> tuple[Parcel, list[Any]]:
    """Return what a section computed as a parcel, and the nodes of the values that wait."""
    parts, build = pytrees.flatten(value)
    nodes = [part.node for part in parts if isinstance(part, Tensor) and part.node is not None]
    values = [part.data if isinstance(part, Tensor) else part for part in parts]
    waits = [isinstance(part, Tensor) and part.node is not None for part in parts]
    return Parcel(build, values, waits), nodes


class Program:
    """A network that runs section by section; the criterion belongs to the last one.

    Attributes
    ----------
    titles : list of str
        What each section holds, for messages and pictures.
    """

    titles: list[str]

    @property
    def count(self) -> int:
        """The number of sections."""
        return len(self.titles)

    def run(self, section: int, carried: Any, value: Any, key: Key) -> tuple[Any, Any]:
        """Run one section; return what it computed, and what the next one continues with."""
        raise NotImplementedError

    def parameters(self, section: int) -> list[Any] | None:
        """Return the parameters of a section, None if they are not known before it runs."""
        raise NotImplementedError

    def buffers(self, section: int) -> list[Any]:
        """Return the buffers that a section may write to in training."""
        return []


class Chain(Program):
    """Layers one after the other, cut between some of them."""

    def __init__(self, parts: list[list[tuple[str, Any]]]) -> None:
        self.parts = parts
        self.titles = [_title(part) for part in parts]

    def run(self, section: int, carried: Any, value: Any, key: Key) -> tuple[Any, Any]:
        """Run the Layers of a section, each in a random scope of its own."""
        for name, layer in self.parts[section]:
            with scope(*key.path, name, seed=key.seed):
                value = layer(value)
        return value, None

    def parameters(self, section: int) -> list[Any]:
        """Return the parameters of a section."""
        return [
            p for _, layer in self.parts[section] if is_layer(layer) for p in layer.parameters()
        ]

    def buffers(self, section: int) -> list[Any]:
        """Return the buffers of the Layers that are in training mode."""
        return [
            buffer
            for _, layer in self.parts[section]
            if is_layer(layer)
            for part in layer.sublayers(include_self=True)
            if part.training
            for buffer in part.buffers(include_sublayers=False)
        ]


class Closure(Program):
    """A generator function that names Tensors by ``yield``, cut at some of them."""

    def __init__(self, network: Callable[..., Any], cuts: list[set[str]]) -> None:
        self.network, self.cuts = network, cuts
        ends = [", ".join(sorted(cut)) for cut in cuts] + [LOSS]
        starts = ["the batch", *ends]
        self.titles = [f"{a} to {b}" for a, b in zip(starts, ends, strict=False)]

    def run(self, section: int, carried: Any, value: Any, key: Key) -> tuple[Any, Any]:
        """Run the function to the end of a section."""
        run, segment = (self.network(value), 0) if section == 0 else carried
        last = section == len(self.cuts)
        given = None if section == 0 else value
        while True:
            try:
                with scope(*key.path, "segment", segment, seed=key.seed):
                    named = run.send(given)
            except StopIteration as end:
                if not last:
                    raise RuntimeError(
                        f"the network ended without a yield of {_listed(self.cuts[section])}, "
                        "where cut_list cuts it. It says `tensors = yield {'name': tensor}`."
                    ) from None
                return end.value, None
            segment += 1
            if not isinstance(named, dict) or not all(isinstance(name, str) for name in named):
                raise TypeError(
                    "a network names Tensors by yielding a dict of them, `tensors = yield {'h': "
                    f"h}}`, and goes on with those that it gets; it yielded {type(named).__name__}."
                )
            if not last and set(named) == self.cuts[section]:
                return named, (run, segment)
            given = named

    def parameters(self, section: int) -> None:
        """Return None: what a function uses is known when it has run."""


def cut(network: Any, cut_list: Sequence[Any] | None, criterion: Any) -> Program:
    """Return a network as a program of the sections between the cuts.

    Raises
    ------
    TypeError, ValueError
        If the network cannot be cut, or not there.
    """
    cuts = [_items(entry) for entry in cut_list or []]
    if cuts and _is_loss(cuts[-1], criterion):
        cuts.pop()
    for items in cuts:
        for item in items:
            if isinstance(item, Tensor):
                raise TypeError(
                    "step() cuts after Layers, or where a generator names Tensors: a Tensor in "
                    "cut_list is of one forward pass, which is over. Give the Layer that computes "
                    "it, cut_list=[model[1]], or its name, as in `h = (yield {'h': h})['h']` of a "
                    "network that is a generator function, cut_list=['h']. minimize(loss) takes "
                    "lists of Tensors."
                )
    if inspect.isgeneratorfunction(network) or inspect.isgeneratorfunction(
        getattr(network, "forward", None) if is_layer(network) else None
    ):
        return _closure(network.forward if is_layer(network) else network, cuts)
    if not callable(network) or isinstance(network, type):
        raise TypeError(
            f"step takes a network, a Layer or a function of the batch; got {network!r}."
        )
    return _chain(network, cuts)


def _closure(network: Callable[..., Any], cuts: list[list[Any]]) -> Closure:
    named = []
    for items in cuts:
        if not all(isinstance(item, str) for item in items):
            raise TypeError(
                "a network that is a generator function is cut at the names that it yields: "
                f"cut_list=['h']; got {_shown(items)}."
            )
        named.append(set(items))
    return Closure(network, named)


def _chain(network: Any, cuts: list[list[Any]]) -> Chain:
    links = list(_links(network, ""))
    if cuts and len(links) == 1 and not isinstance(network, Sequential):
        raise TypeError(
            "a network with cuts is an ol.nn.Sequential, cut after some of its Layers, or a "
            "generator function, cut where it names Tensors (`h = (yield {'h': h})['h']`); got "
            f"{type(network).__name__}."
        )
    ends = []
    for items in cuts:
        if len(items) != 1:
            raise ValueError(
                "a cut of a Sequential is after one Layer, whose output goes on; got "
                f"{len(items)} of them: {_shown(items)}."
            )
        ends.append(_place(items[0], links))
    if ends != sorted(set(ends)):
        raise ValueError(
            "cut_list has each Layer once, in the order of the network; got "
            f"{', '.join(links[end][0] for end in ends)}."
        )
    starts = [0, *(end + 1 for end in ends)]
    stops = [*starts[1:], len(links)]
    return Chain([links[a:b] for a, b in zip(starts, stops, strict=True)])


def _links(layer: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yield the Layers of a chain, those of chains inside it too, with their names."""
    if type(layer) is Sequential and layer._hooks is None:
        for part, one in layer._own_layers():  # a Layer that is there twice runs twice
            yield from _links(one, f"{name}.{part}" if name else part)
    else:
        yield name or type(layer).__name__, layer


def _place(item: Any, links: list[tuple[str, Any]]) -> int:
    """Return after which link a cut is."""
    if isinstance(item, str):
        found = [i for i, (name, _) in enumerate(links) if name == item]
        inside = [i for i, (name, _) in enumerate(links) if name.startswith(f"{item}.")]
        found = found or inside[-1:]
        if not found:
            raise ValueError(
                f"the network has no Layer {item!r} to cut after; it has "
                f"{', '.join(name for name, _ in links)}."
            )
        return found[0]
    if not is_layer(item):
        raise TypeError(
            f"cut_list has Layers of the network, such as model[1], or their names; got {item!r}."
        )
    found = [i for i, (_, layer) in enumerate(links) if layer is item]
    if type(item) is Sequential and not found:
        parts = [id(layer) for _, layer in _links(item, "")]
        found = [i for i, (_, layer) in enumerate(links) if parts and id(layer) == parts[-1]]
    if len(found) != 1:
        where = "is not one of the chain" if not found else "is there several times"
        raise ValueError(
            f"the {type(item).__name__} in cut_list {where} of the network (Layers inside another "
            "Layer than a Sequential without hooks are not cut apart); there are "
            f"{', '.join(name for name, _ in links)}."
        )
    return found[0]


def _items(entry: Any) -> list[Any]:
    if isinstance(entry, (list, tuple)) and not is_layer(entry):
        if not entry:
            raise ValueError("an entry of cut_list is empty.")
        return list(entry)
    return [entry]


def _is_loss(items: list[Any], criterion: Any) -> bool:
    """Return whether the last entry of a list of cuts is the loss, as in the documents."""
    item = items[0]
    if len(items) != 1:
        return False
    if isinstance(item, Tensor):
        return item.size == 1
    return item is criterion or (isinstance(item, str) and item == LOSS)


def is_loss_entry(entry: Any) -> bool:
    """Return whether an entry of a list of cuts certainly is the loss."""
    return _is_loss(_items(entry), None)


def check_apart(program: Program, criterion: Any) -> None:
    """Raise if a parameter, or a buffer that training writes to, is used in two sections.

    Raises
    ------
    ValueError
        It names the parameter and the sections.
    """
    seen: dict[int, int] = {}
    for section in range(program.count):
        parameters = [*(program.parameters(section) or ()), *program.buffers(section)]
        if section == program.count - 1 and is_layer(criterion):
            parameters += criterion.parameters()
        for p in parameters:
            other = seen.setdefault(id(p), section)
            if other != section:
                raise ValueError(shared_message(p, other, section, program.titles))


def shared_message(p: Any, a: int, b: int, titles: list[str]) -> str:
    """Return the message for a parameter that two sections use."""
    return (
        f"{label_of(p, 'a buffer')} is used in section {a} ({titles[a]}) and in section {b} "
        f"({titles[b]}): a parameter belongs to one section. Cut so that both uses are in one, or "
        "give each its own parameter."
    )


def _title(part: list[tuple[str, Any]]) -> str:
    if not part:
        return "the loss alone"
    named = [f"{name} {type(layer).__name__}".strip() for name, layer in part]
    return named[0] if len(named) == 1 else f"{named[0]} to {named[-1]}"


def _listed(names: set[str]) -> str:
    return ", ".join(map(repr, sorted(names)))


def _shown(items: list[Any]) -> str:
    return ", ".join(repr(x) if isinstance(x, str) else type(x).__name__ for x in items)
