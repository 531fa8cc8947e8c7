"""Optimizer: what all update rules share.

A rule is a class with its hyper-parameters, its slots, its scalars of step t and its update,
written as the paper prints it. This base class owns everything else: groups, the order clip,
regularise, update, write, and how to run the rule over many parameters at once.
"""

from __future__ import annotations

import copy
from typing import Any, ClassVar

from optlab.autograd import tape
from optlab.autograd.tensor import Tensor
from optlab.optimizer.groups import Group, check_not_empty, checked_rate, make_groups
from optlab.optimizer.regularizer import as_regularizer
from optlab.optimizer.settings import Signature, read
from optlab.optimizer.step import take_step


class Optimizer:
    r"""The base class of all optimizers; a subclass is a rule.

    A subclass gives

    ``hyperparameters``
        Names and default values, ``learning_rate`` first. They become the arguments of the class.
    ``slots``
        What the rule remembers for every element of a parameter, with its value at the start.
    ``scalars(t, h)``, optional
        Python floats of step t, from the hyper-parameters h.
    ``update(p, g, s, h, c)``
        Parameter, gradient, slots, hyper-parameters and scalars in; the new parameter, a dict of
        new slots and, if there is something to show, a dict of named terms out. Arrays are never
        changed in place.
    ``kind``
        "elementwise" if every element is updated by itself: all parameters of a group are then
        updated in one pass, side by side in one flat array, so a norm or a mean would mix them.
        "tensor" or "matrix" if the rule needs one parameter at a time, in its own shape.
    ``by_rows``, optional
        True says that a zero gradient leaves parameter and slots as they are, so that a row-sparse
        gradient may be applied to its rows alone.
    ``ranges``, optional
        What values are allowed: name to (lowest, highest), the highest excluded.

    Parameters
    ----------
    parameters : sequence of Tensor or of dict, optional
        What to optimize. A dict is a group: ``{"params": [...], ...}`` with values of its own for
        any hyper-parameter, ``weight_decay`` or ``grad_clip``; its ``learning_rate`` multiplies
        the optimizer's. Without parameters the optimizer is a template that `bind` makes copies of.
    weight_decay : float or Regularizer, optional
        A number c means ``L2Decay(c)``.
    grad_clip : ClipGradByValue, ClipGradByNorm or ClipGradByGlobalNorm, optional
        Clips the raw gradients of a group before decay is added.
    name : str, optional
        What traces and tables call it.

    Examples
    --------
    An optimizer of one's own:

    >>> import numpy as np
    >>> import optlab as ol
    >>> class SignDescent(ol.optimizer.Optimizer):
    ...     hyperparameters = {"learning_rate": 0.1}
    ...     def update(self, p, g, s, h, c):
    ...         step = h.learning_rate * np.sign(g)
    ...         return p - step, {}, {"update": -step}
    >>> w = ol.Parameter([1.0, -2.0])
    >>> optimizer = SignDescent(parameters=[w])
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.numpy()
    array([ 0.9, -1.9], dtype=float32)
    """

    hyperparameters: ClassVar[dict[str, Any]] = {"learning_rate": 0.001}
    slots: ClassVar[dict[str, float]] = {}
    kind: ClassVar[str] = "elementwise"
    by_rows: ClassVar[bool] = False
    ranges: ClassVar[dict[str, tuple[float, float]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.kind not in ("elementwise", "tensor", "matrix"):
            raise ValueError(
                f"{cls.__name__}.kind must be 'elementwise', 'tensor' or 'matrix'; "
                f"got {cls.kind!r}."
            )
        cls.__signature__ = Signature(cls)  # type: ignore[attr-defined]

    def __init__(
        self,
        *values: Any,
        parameters: Any = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
        **named: Any,
    ) -> None:
        self.settings = read(type(self), values, named)
        self.name = name
        self.groups: list[Group] = []
        self._common = {"weight_decay": weight_decay, "grad_clip": grad_clip}
        # A template's regularizer and clip are checked now, not when it is bound.
        make_groups(self, [{"params": []}])
        if parameters is not None:
            self._bind(parameters)

    # What a rule says ---------------------------------------------------------------------------

    def scalars(self, t: int, h: Any) -> dict[str, float]:
        """Give what depends only on the step count and the hyper-parameters."""
        return {}

    def update(self, p: Any, g: Any, s: Any, h: Any, c: Any) -> Any:
        """Give new parameter, new slots and named terms. Subclasses say how."""
        raise NotImplementedError(
            f"{type(self).__name__} has no update(self, p, g, s, h, c) method; it returns the new "
            "parameter, a dict of new slots and a dict of named terms."
        )

    def slots_for(self, h: Any) -> dict[str, float]:
        """Give the slots that these hyper-parameters need. Subclasses with options override it."""
        return self.slots

    # Parameters ---------------------------------------------------------------------------------

    @property
    def is_template(self) -> bool:
        """Whether it has no parameters yet."""
        return not self.groups

    @property
    def decay_and_clip(self) -> tuple[Any, Any]:
        """The regularizer and the gradient clip of parameters that have none of their own."""
        return as_regularizer(self._common["weight_decay"]), self._common["grad_clip"]

    @property
    def parameters(self) -> list[Tensor]:
        """All parameters, group after group."""
        return [p for group in self.groups for p in group.parameters]

    def bind(self, parameters: Any) -> Optimizer:
        """Give a fresh optimizer with the same settings for `parameters`.

        Examples
        --------
        >>> import optlab as ol
        >>> template = ol.optimizer.SGD(0.1)
        >>> template.bind([ol.Parameter([1.0])])
        SGD(learning_rate=0.1), 1 parameter of 1 element
        """
        fresh = copy.copy(self)
        fresh.settings = dict(self.settings)
        fresh.groups = []
        fresh._bind(parameters)
        return fresh

    def _bind(self, parameters: Any) -> None:
        self.groups = check_not_empty(make_groups(self, parameters))

    # The step -----------------------------------------------------------------------------------

    def step(self) -> None:
        """Update every parameter that has a gradient.

        Clip the raw gradients of each group, add the decay, apply the rule, write. Parameters
        without a gradient are skipped: their value, slots and step count stay as they are.

        Raises
        ------
        RuntimeError
            If the optimizer is a template without parameters.
        ValueError, TypeError
            If a gradient does not fit its parameter, or the rule returns something that does not.
            Nothing has changed then.
        """
        if not self.groups:
            raise RuntimeError(
                f"this {type(self).__name__} has no parameters; give it parameters=..., for "
                "example model.parameters()."
            )
        take_step(self)

    # Around the step ----------------------------------------------------------------------------

    def clear_grad(self, set_to_zero: bool = True) -> None:
        """Clear the gradients of all parameters.

        Parameters
        ----------
        set_to_zero : bool
            True leaves gradients of zero (which are gradients: slots still decay and parameters
            still move); False leaves none (the parameter is then skipped by `step`).
        """
        cleared = tape.ZERO if set_to_zero else None
        for group in self.groups:
            for p in group.parameters:
                node = p.node
                if node is not None and (cleared is None or node.grad is not None):
                    node.grad = cleared

    zero_grad = clear_grad

    def minimize(self, loss: Tensor) -> tuple[list[Any], list[tuple[Tensor, Tensor | None]]]:
        """Run backward from `loss`, unless that was done already, and take a step.

        Returns
        -------
        tuple
            An empty list, and the (parameter, gradient) pairs that were used.
        """
        if not isinstance(loss, Tensor):
            raise TypeError(f"minimize takes the loss, a Tensor; got {type(loss).__name__}.")
        if not getattr(loss.node, "walked", False):
            loss.backward()
        self.step()
        return [], [(p, p.grad) for p in self.parameters if p.grad is not None]

    def get_lr(self) -> float:
        """Give the present learning rate."""
        return self.settings["learning_rate"]  # type: ignore[no-any-return]

    def set_lr(self, value: Any) -> None:
        """Set the learning rate.

        Raises
        ------
        ValueError
            If it is negative or not finite. The old rate stays then.
        """
        self.settings["learning_rate"] = checked_rate(value)

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in self.settings.items())
        head = f"{type(self).__name__}({values})"
        if self.is_template:
            return head
        n, size = len(self.parameters), sum(p.size for p in self.parameters)
        return f"{head}, {n} parameter{'s' * (n != 1)} of {size} element{'s' * (size != 1)}"
