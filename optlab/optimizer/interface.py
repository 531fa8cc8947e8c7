"""The methods of an optimizer that training loops call around the step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from types import FunctionType
from typing import Any, ClassVar, cast

from optlab.autograd.tape import nodes
from optlab.autograd.tensor.conversions import has_history, refusal
from optlab.autograd.tensor.tensor import Tensor, raw
from optlab.backend import events
from optlab.backend.call_recorder import after_backward, here, refuse_step_hooks
from optlab.nn.clip import checked_pairs
from optlab.optimizer.params.groups import Group, checked_hyperparameters, make_groups
from optlab.optimizer.params.pairs import (
    Pairs,
    gradients_by_id,
    refuse_static_graph,
    run_backward,
    selected,
)
from optlab.optimizer.regularizer import Regularizer, as_regularizer
from optlab.optimizer.rule.hyperparameters import COMMON, checked, is_schedule
from optlab.optimizer.rule.protocols import UpdateRule
from optlab.optimizer.step.hooks import StepHooks
from optlab.optimizer.step.step import take_step


def clear_gradients_of(parameters: Iterable[Any], set_to_zero: bool) -> None:
    """Set the gradients of parameters to zero where there is one, or to None."""
    value = nodes.ZERO if set_to_zero else None
    for p in parameters:
        node = p.node
        if node is not None and (value is None or node.grad is not None):
            node.grad = value
    if events.gradients_cleared.listeners:
        events.gradients_cleared.publish(parameters)


class Interface(StepHooks):
    """Gradients, learning rates and groups: the documented interface of every optimizer."""

    ranges: ClassVar[dict[str, tuple[float, float]]]
    settings: dict[str, Any]
    schedule: Any
    groups: list[Group]
    #: While a step of `apply_gradients` is published: its gradients, by the ids of parameters.
    given_gradients: dict[int, Any] | None = None
    _common: dict[str, Any]

    def step(self, closure: None = None) -> None:
        """Update every parameter that has a gradient."""
        raise NotImplementedError

    def _require_parameters(self) -> None:
        if not self.groups:
            raise RuntimeError(
                f"this {type(self).__name__} has no parameters; give it parameters=..., for "
                "example model.parameters()."
            )

    # Gradients ----------------------------------------------------------------------------------

    def clear_grad(self, set_to_zero: bool = True) -> None:
        """Clear the gradients of all parameters.

        Parameters
        ----------
        set_to_zero : bool
            True sets gradients to zero (`step` still decays slots and moves parameters with them);
            False removes them (`step` then skips the parameter).
        """
        if here.recorder is not None:
            here.recorder.effect(Interface.clear_grad, (self, set_to_zero), {})
            return
        for group in self.groups:
            clear_gradients_of(group.parameters, set_to_zero)

    clear_gradients = clear_grad

    def zero_grad(self, set_to_zero: bool = True, *, set_to_none: bool | None = None) -> None:
        """Clear the gradients of all parameters: `clear_grad` by its name in PyTorch.

        Parameters
        ----------
        set_to_zero : bool
            As in `clear_grad`.
        set_to_none : bool, optional
            The opposite, by its name in PyTorch: True removes the gradients.
        """
        self.clear_grad(set_to_zero if set_to_none is None else not set_to_none)

    def backward(
        self,
        loss: Tensor,
        startup_program: None = None,
        parameters: Iterable[Any] | None = None,
        no_grad_set: Iterable[Any] | None = None,
        callbacks: Sequence[Callable[..., Any]] | None = None,
    ) -> Pairs:
        """Run the backward pass of `loss`, and return the parameters with their gradients.

        Parameters
        ----------
        loss : Tensor
        startup_program : None
            An argument of static graphs, which optlab does not have.
        parameters : iterable of Tensor or str, optional
            Only these, as Tensors or by name.
        no_grad_set : iterable of Tensor or str, optional
            Not these.
        callbacks : list of callable, optional
            Each is called with every parameter and its gradient, once all gradients are there.

        Returns
        -------
        list of (parameter, gradient)
            For `apply_gradients`. The gradients are those that the parameters hold.

        Raises
        ------
        TypeError
            If `loss` is no Tensor, or `callbacks` no list of functions.
        ValueError
            If a parameter is not among this optimizer's.

        Examples
        --------
        >>> import optlab as ol
        >>> w = ol.Parameter([1.0], name="w")
        >>> optimizer = ol.optimizer.SGD(0.1, parameters=[w])
        >>> pairs = optimizer.backward((5 * w).sum())
        >>> optimizer.apply_gradients([(p, g / 2) for p, g in pairs])
        []
        >>> w.numpy()
        array([0.75], dtype=float32)
        """
        self._require_parameters()
        refuse_static_graph("startup_program", startup_program)
        own = [p for group in self.groups for p in group.parameters]
        chosen = selected(type(self).__name__, own, parameters, no_grad_set)
        return run_backward(loss, chosen, callbacks)

    def apply_gradients(self, params_grads: Iterable[tuple[Any, Any]]) -> list[Any]:
        """Take a step with these gradients in place of those that the parameters hold.

        Parameters
        ----------
        params_grads : iterable of (parameter, gradient)
            As `backward` returns them. A parameter without a pair, or with None, is skipped.

        Returns
        -------
        list
            Empty; for static graphs it lists operations.

        Raises
        ------
        TypeError, ValueError
            If something is no pair, a parameter is not this optimizer's or appears twice, or a
            gradient does not fit. Nothing has changed then.
        SilentDetachError
            If a gradient itself needs a gradient: `functional_step` differentiates steps.
        """
        if here.recorder is not None:
            refuse_step_hooks(self)
            done: list[Any] = here.recorder.effect(
                Interface.apply_gradients, (self, params_grads), {}
            )
            return done
        self._require_parameters()
        given = self._gradients_by_id(params_grads)
        if self.has_step_hooks:
            with self._step_hooks(params_grads):
                take_step(cast("UpdateRule", self), given)
        else:
            take_step(cast("UpdateRule", self), given)
        if events.step_finished.listeners:
            self.given_gradients = given
            try:
                events.step_finished.publish(self)
            finally:
                self.given_gradients = None
        return []

    def apply_optimize(
        self, loss: Any, startup_program: None, params_grads: Iterable[tuple[Any, Any]]
    ) -> list[Any]:
        """Take a step with these gradients; `loss` is not used."""
        refuse_static_graph("startup_program", startup_program)
        return self.apply_gradients(params_grads)

    def append_regularization_ops(
        self, parameters_and_grads: Iterable[tuple[Any, Any]], regularization: Any = None
    ) -> Pairs:
        """Return the pairs with the decay of each parameter added to its gradient.

        A parameter's own regularizer precedes `regularization`. `apply_gradients` adds the decay
        of the optimizer anyway: this is for looking at it, or for gradients used elsewhere.
        """
        default = as_regularizer(regularization)
        who = f"{type(self).__name__}.append_regularization_ops"
        pairs = Pairs()
        for p, g in checked_pairs(parameters_and_grads, who):
            if has_history(g):
                raise refusal(g, f"{who}()", "g + c * p for L2Decay(c), or give g.detach()")
            own: Regularizer | None = getattr(p, "regularizer", None) or default
            changed = g if own is None or g is None else Tensor(own.add_to(raw(g), raw(p)))
            pairs.append((p, changed))
        return pairs

    @after_backward
    def minimize(
        self,
        loss: Any = None,
        startup_program: None = None,
        parameters: Iterable[Any] | None = None,
        no_grad_set: Iterable[Any] | None = None,
    ) -> tuple[list[Any], Pairs]:
        """Run the backward pass of `loss`, unless that was done already, and take a step.

        Parameters
        ----------
        loss : Tensor
        startup_program : None
        parameters, no_grad_set : iterable of Tensor or str, optional
            Only these, or not these, are updated.

        Returns
        -------
        tuple
            An empty list, and the (parameter, gradient) pairs that were used.
        """
        pairs = self.backward(loss, startup_program, parameters, no_grad_set)
        if parameters is None and no_grad_set is None:
            self.step()
        else:
            self.apply_gradients(pairs)
        return [], pairs

    def _gradients_by_id(self, params_grads: Any) -> dict[int, Any]:
        """Return the gradients by the identity of their parameter."""
        own = [p for group in self.groups for p in group.parameters]
        return gradients_by_id(type(self).__name__, own, params_grads)

    # Groups and rates ---------------------------------------------------------------------------

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters with its own settings.

        Raises
        ------
        TypeError, ValueError
            If the group has an unknown key, or a parameter is there already. Nothing has changed
            then.

        Examples
        --------
        >>> import optlab as ol
        >>> a, b = ol.Parameter([1.0]), ol.Parameter([2.0])
        >>> optimizer = ol.optimizer.SGD(0.1, parameters=[a])
        >>> optimizer.add_param_group({"params": [b], "learning_rate": 0.5})
        >>> optimizer
        SGD(learning_rate=0.1), 2 parameters of 2 elements
        """
        if not isinstance(param_group, dict):
            raise TypeError(
                "a group is a dict with the key 'params', a list of Tensors; got "
                f"{type(param_group).__name__}."
            )
        known = {id(p) for group in self.groups for p in group.parameters}
        [*added] = make_groups(self, [param_group], known)
        if not added:
            raise ValueError("the group has no parameters: its 'params' is empty.")
        self.groups.extend(added)

    def get_lr(self) -> Any:
        """Return the current learning rate, a float; of an ensemble, its rates."""
        if here.recorder is not None:
            return here.recorder.number(type(self).get_lr, self)
        if self.schedule is not None:
            return float(self.schedule())
        return self.settings["learning_rate"]

    def set_lr(self, value: Any) -> None:
        """Set the learning rate.

        Raises
        ------
        RuntimeError
            If a schedule sets it.
        ValueError
            If it is negative or not finite, does not fit the other settings, or has another number
            of values than the ensembles have members. The old rate stays then.
        SilentDetachError
            If it is a Tensor that needs a gradient: `functional_step` differentiates steps.
        """
        if here.recorder is not None:
            here.recorder.effect(Interface.set_lr, (self, value), {})
            return
        if self.schedule is not None:
            raise RuntimeError(
                f"the rate of this {type(self).__name__} comes from {self.schedule!r}; call "
                "set_lr_scheduler to use another schedule."
            )
        if is_schedule(value):
            raise TypeError("set_lr takes a number; call set_lr_scheduler(schedule) instead.")
        self.settings["learning_rate"] = self._checked_lr(value)

    def _checked_lr(self, value: Any) -> Any:
        """Return a learning rate, checked together with the other settings and the parameters."""
        rate = checked("learning_rate", value, 0.0, type(self).ranges)
        of_groups = [(vars(group.h), group.parameters) for group in self.groups]
        for settings, parameters in of_groups or [(self.settings, [])]:
            checked_hyperparameters(self, {**settings, "learning_rate": rate}, parameters)
        return rate

    def set_lr_scheduler(self, scheduler: Any) -> None:
        """Set the schedule of the learning rate.

        Raises
        ------
        TypeError
            If it is not a schedule of ``optlab.optimizer.lr``.
        ValueError
            If its current rate does not fit the other settings. The old rate stays then.
        """
        if isinstance(scheduler, type) or not is_schedule(scheduler):
            raise TypeError(
                f"set_lr_scheduler takes a schedule of optlab.optimizer.lr; got {scheduler!r}."
            )
        self.settings["learning_rate"] = self._checked_lr(scheduler)
        self.schedule = scheduler

    def __repr__(self) -> str:
        shown = self._settings_with_schedule()
        shown += [(name, value) for name, value in self._common.items() if value != COMMON[name]]
        values = ", ".join(f"{name}={value!r}" for name, value in shown)
        head = f"{type(self).__name__}({values})"
        if not self.groups:
            return head
        tensors = [p for group in self.groups for p in group.parameters]
        n, size = len(tensors), sum(p.size for p in tensors)
        return f"{head}, {n} parameter{'s' * (n != 1)} of {size} element{'s' * (size != 1)}"

    def _settings_with_schedule(self) -> list[tuple[str, Any]]:
        """Return the settings with the schedule in place of its current rate."""
        shown = dict(self.settings)
        if self.schedule is not None:
            shown["learning_rate"] = self.schedule
        return list(shown.items())


for _method in vars(Interface).values():
    if isinstance(_method, FunctionType):  # Python's error messages name the function called
        _method.__qualname__ = f"Optimizer.{_method.__name__}"
