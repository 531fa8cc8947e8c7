"""`rematerialize`: drop saved values of any code, and recompute them when backward reads them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any

import numpy as np

from optlab.autograd.checkpoint.layer_checks import is_layer, refuse_layer_class
from optlab.autograd.remat.budget import Budget
from optlab.autograd.remat.checkpoints import SaveNothing
from optlab.autograd.remat.tensors import RecomputePolicy, recomputable_of
from optlab.autograd.tape.nodes import Node
from optlab.autograd.tape.saved_tensors import use_policy
from optlab.autograd.tensor.tensor import Tensor
from optlab.backend.memory.sizes import bytes_from, in_words


class rematerialize:
    """Context manager that drops saved values and recomputes them when backward reads them.

    With a budget, arrays are dropped only when memory runs out: first those that are cheapest to
    recompute for their bytes and longest unused. Without one, everything is dropped at once except
    what `keep` selects. Values and gradients are those of plain execution to the bit, random
    numbers included.

    Parameters
    ----------
    keep : str, Layer, callable, or a list of these, optional
        What is never dropped: outputs of operations of this name (``"matmul"``, ``"linear"``), of
        this Layer, or those for which ``keep(name, array)`` is true.
    budget : int or str, optional
        Bytes, or text such as ``"64 MiB"``, for all outputs of operations inside that are alive at
        the same time, in forward and in backward. That includes room for the running operation and
        its derivative: twice the inputs and outputs of the largest so far. Data, parameters and
        their gradients are not counted.

    Attributes
    ----------
    dropped, recomputed : int
        With a budget: the number of dropped arrays, and of operations that ran again.

    Raises
    ------
    TypeError, ValueError
        If `keep` or `budget` is none of these.
    MemoryBudgetError
        When the block is left, if the budget was exceeded; the error has the peak of the run, the
        smallest budget that suffices if the same arrays are dropped. Take the optimizer's step
        after the block, so that it is not taken in this case.
    RecomputationError, RuntimeError
        In backward, if an operation computes another result than the first time, or one of its
        inputs was overwritten.

    Warns
    -----
    UserWarning
        Once, where the budget is first exceeded, in forward or in backward (also after the block).
        When the block is left, if `keep` names an operation or a Layer that did not run inside.

    Notes
    -----
    Backward may run inside the block or after it. Values saved by a `Function` of the user, and
    those that `recompute` keeps, are not dropped. Parameters cost nothing: they are alive anyway.

    Source: Kirisame, Lyubomirsky, Haan, Brennan, He, Roesch, Chen and Tatlock 2021, Dynamic Tensor
    Rematerialization, arXiv 2006.09616.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> x = ol.to_tensor(np.linspace(0, 1, 10000), requires_grad=True)
    >>> with ol.rematerialize(budget="1 MiB") as memory:
    ...     y = x
    ...     for _ in range(20):
    ...         y = np.sin(y)
    ...     loss = np.sum(y)
    >>> loss.backward()
    >>> memory.recomputed > 0
    True
    """

    def __init__(self, keep: Any = None, budget: Any = None) -> None:
        self._layers: list[Any] = []
        #: The names in `keep`, the names of operations that ran, and the ids of Layers that ran.
        self._names: set[str] = set()
        self._met: set[str] = set()
        self._met_layers: set[int] = set()
        selected = self._selection(keep)
        self.budget = None if budget is None else bytes_from(budget)
        self.policy: RecomputePolicy = (
            SaveNothing(selected) if self.budget is None else Budget(self.budget, selected)
        )
        self._policy_block = use_policy(self.policy)
        self._removers: list[Any] = []

    @property
    def dropped(self) -> int:
        """Number of arrays dropped to keep to the budget."""
        return getattr(self.policy, "dropped", 0)

    @property
    def recomputed(self) -> int:
        """Number of operations that ran again."""
        return self.policy.recomputed

    def _selection(self, keep: Any) -> Callable[[Node, Any], bool] | None:
        """Validate `keep`; return a predicate for names and functions, and store the Layers."""
        wanted = [] if keep is None else list(keep) if isinstance(keep, (list, tuple)) else [keep]
        self._keeps = bool(wanted)
        names, met, predicates = self._names, self._met, []
        for one in wanted:
            if isinstance(one, str) and one[:1].isdigit():
                raise TypeError(
                    f"keep takes names of operations; got {one!r}. A budget is given by name: "
                    f"rematerialize(budget={one!r})."
                )
            refuse_layer_class(one, "keep")
            if isinstance(one, str):
                names.add(one)
            elif is_layer(one):
                self._layers.append(one)
            elif _is_operation(one):
                raise TypeError(
                    f"keep takes operations by their names, as text; got the function "
                    f"{one.__name__}: write keep={one.__name__!r}."
                )
            elif callable(one):
                predicates.append(one)
            else:
                raise TypeError(
                    "keep takes names of operations, Layers, functions of (name, array), or a list "
                    f"of these; got {one!r}."
                )
        if not names and not predicates:
            return None

        def selected(node: Node, y: Any) -> bool:
            name = node.operation.name
            met.add(name)
            outputs = y if isinstance(y, tuple) else (y,)
            return name in names or any(f(name, one) for f in predicates for one in outputs)

        return selected

    def __repr__(self) -> str:
        if self.budget is None:
            but = " but what keep says" if self._keeps else ""
            return f"<rematerialize: all dropped at once{but}, {self.recomputed} run again>"
        what = f"a budget of {in_words(self.budget)}"
        return f"<rematerialize with {what}: {self.dropped} dropped, {self.recomputed} run again>"

    def __enter__(self) -> rematerialize:
        if self._removers or self._policy_block.inside:
            raise RuntimeError("this block is entered already; make another rematerialize().")
        for layer in self._layers:
            self._removers.append(layer.register_forward_post_hook(self._keep_output))
        self._policy_block.__enter__()
        return self

    def __exit__(self, kind: Any, *error: object) -> None:
        self._policy_block.__exit__(kind, *error)
        for remover in self._removers:
            remover.remove()
        self._removers.clear()
        if kind is None:
            self._check_kept()
        if kind is None and isinstance(self.policy, Budget):
            self.policy.check_met()

    def _keep_output(self, layer: Any, inputs: Any, output: Any) -> None:
        """Keep the outputs of a layer."""
        self._met_layers.add(id(layer))
        for t in tensors_in(output):
            result, index = recomputable_of(t.node)
            if result is not None and index is None:
                result.hold(t.data)
                result.kept = True

    def _check_kept(self) -> None:
        """Warn of names and Layers in `keep` that did not occur inside."""
        for name in sorted(self._names - self._met):
            near = get_close_matches(name, self._met, 1)
            ran = ", ".join(sorted(self._met)) or "no operation at all"
            hint = f" Did you mean {near[0]!r}?" if near else ""
            warnings.warn(
                f"rematerialize(keep={name!r}) kept nothing: no operation of that name saved "
                f"something inside the block.{hint} These did: {ran}.",
                UserWarning,
                stacklevel=3,
            )
        for layer in self._layers:
            if id(layer) not in self._met_layers:
                warnings.warn(
                    f"rematerialize(keep=...) kept nothing of {type(layer).__name__}: it was not "
                    "called inside the block.",
                    UserWarning,
                    stacklevel=3,
                )


def _is_operation(function: Any) -> bool:
    """Return whether a function is one of NumPy or of ``nn.functional``."""
    module = f"{getattr(function, '__module__', '')}."
    named = isinstance(function, np.ufunc) or module.startswith(("numpy.", "optlab.nn.functional."))
    return named and hasattr(function, "__name__")


def tensors_in(output: Any) -> Iterable[Tensor]:
    """Yield the Tensors in the value of a layer."""
    if isinstance(output, Tensor):
        yield output
    elif isinstance(output, (tuple, list)):
        for part in output:
            yield from tensors_in(part)
    elif isinstance(output, dict):
        yield from tensors_in(list(output.values()))
