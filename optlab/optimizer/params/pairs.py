"""Parameters with their gradients: chosen by name, computed by a backward pass, checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from optlab.autograd.tensor.conversions import has_history, refusal
from optlab.autograd.tensor.tensor import Tensor, raw
from optlab.nn.clip import checked_pairs
from optlab.optimizer.params.flat import gradient_refusal
from optlab.optimizer.params.labels import label_of, names_of


class Pairs(list[tuple[Tensor, Tensor]]):
    """A list of (parameter, gradient) pairs with a short repr."""

    def __repr__(self) -> str:
        n = len(self)
        return f"<{n} (parameter, gradient) pair{'s' * (n != 1)}>"


def refuse_static_graph(name: str, value: Any) -> None:
    """Raise TypeError for an argument that has no meaning without static graphs."""
    if value is not None:
        raise TypeError(
            f"{name} belongs to static graphs, which optlab does not have; leave it None."
        )


def selected(owner: str, own: list[Any], parameters: Any, no_grad_set: Any) -> list[Any]:
    """Return the chosen ones of an owner's parameters, without those that are left out."""
    wanted = own if parameters is None else _found(owner, own, parameters, "parameters")
    given = () if no_grad_set is None else no_grad_set
    left_out = {id(p) for p in _found(owner, own, given, "no_grad_set")}
    return [p for p in wanted if id(p) not in left_out]


def _found(owner: str, own: list[Any], given: Any, argument: str) -> list[Any]:
    if isinstance(given, (str, Tensor)) or not isinstance(given, Iterable):
        written = f"[{given!r}]" if isinstance(given, str) else "[w]"
        raise TypeError(
            f"{argument} must be a list of Tensors or of their names; got "
            f"{type(given).__name__}. Write {argument}={written}."
        )
    names = {name: p for p in own for name in names_of(p)}
    known = {id(p) for p in own}
    found = []
    for entry in given:
        p = names.get(entry) if isinstance(entry, str) else entry
        if id(p) not in known:
            raise _foreign_error(owner, entry, argument)
        found.append(p)
    return found


def _foreign_error(owner: str, entry: Any, argument: str) -> ValueError:
    label = repr(label_of(entry, entry))
    return ValueError(f"{argument} has {label}, which is not a parameter of this {owner}.")


def gradients_by_id(owner: str, own: list[Any], params_grads: Any) -> dict[int, Any]:
    """Return the gradients of (parameter, gradient) pairs by the identity of the parameter."""
    known = {id(p) for p in own}
    given: dict[int, Any] = {}
    for p, g in checked_pairs(params_grads, f"{owner}.apply_gradients"):
        if id(p) not in known:
            raise _foreign_error(owner, p, "params_grads")
        if id(p) in given:
            raise ValueError(f"params_grads has {label_of(p)!r} twice; add up its gradients first.")
        if has_history(g):
            raise refusal(g, *gradient_refusal(p))
        given[id(p)] = raw(g)
    return given


def run_backward(
    loss: Any, parameters: list[Any], callbacks: Sequence[Callable[..., Any]] | None = None
) -> Pairs:
    """Run backward from `loss`, unless that was done; return parameters with their gradients.

    Each of the callbacks is called with every such pair.

    Examples
    --------
    >>> import optlab as ol
    >>> w = ol.Parameter([1.0])
    >>> run_backward((5 * w).sum(), [w], [lambda p, g: print(g)])
    Tensor([5.], dtype=float32)
    <1 (parameter, gradient) pair>
    """
    calls = () if callbacks is None else callbacks
    if not isinstance(calls, (list, tuple)) or not all(map(callable, calls)):
        raise TypeError(
            "callbacks is a list of functions, which are called with each parameter and its "
            f"gradient; got {callbacks!r}. Write callbacks=[lambda parameter, gradient: ...]."
        )
    if not isinstance(loss, Tensor):
        raise TypeError(
            f"the loss must be a Tensor; got {type(loss).__name__}. Write "
            "optimizer.minimize(loss), which runs backward and takes a step; after "
            "loss.backward() it is optimizer.step()."
        )
    if not getattr(loss.node, "backward_done", False):
        loss.backward()
    pairs = Pairs((p, p.grad) for p in parameters if p.grad is not None)
    for p, g in pairs:
        for call in calls:
            call(p, g)
    return pairs
