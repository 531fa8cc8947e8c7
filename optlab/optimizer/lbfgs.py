"""L-BFGS: quasi-Newton steps with a curvature that is estimated from the last gradients."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np

from optlab.autograd.tape.grad_mode import enable_grad
from optlab.autograd.tensor.conversions import as_setting
from optlab.backend import events
from optlab.backend.call_recorder import effect
from optlab.optimizer.optimizer import Optimizer
from optlab.optimizer.quasi_newton.flat_point import (
    Evaluation,
    check_one_run,
    check_same_kind,
    read_evaluation,
    read_point,
    updates_of_step,
    write_point,
)
from optlab.optimizer.quasi_newton.history import History, largest, starts_of
from optlab.optimizer.quasi_newton.line_search import CURVATURE, Trial, strong_wolfe
from optlab.optimizer.step.roll_forward import carried_through
from optlab.plan.progress import Progress


class LBFGS(Optimizer):
    r"""Take Newton's step with a curvature that is estimated from the last steps.

    .. math::
        p &\leftarrow p - \alpha H g

    H, the inverse Hessian, is never formed: `history_size` pairs of a step s and the change y of
    the gradient over it represent it, and two loops over them give H g.

    Parameters
    ----------
    learning_rate : float
        The step length :math:`\alpha` along the direction; with a line search, the first one tried.
        The very first step is no longer than this.
    max_iter : int
        The most steps in one call of `step`.
    max_eval : int, optional
        The number of closure calls after which `step` ends; by default 5/4 of max_iter.
    tolerance_grad : float
        Stop where no element of the gradient is larger.
    tolerance_change : float
        Stop where no element moves by more, or the loss changes by less.
    history_size : int
        The number of pairs: they take twice as many copies of the parameters, and three more.
    line_search_fn : "strong_wolfe" or None
        Search along the direction for a point that satisfies the strong Wolfe conditions.

    Notes
    -----
    Source: Liu and Nocedal 1989, "On the limited memory BFGS method for large scale optimization";
    Nocedal and Wright 2006, "Numerical optimization", algorithms 7.4 and 7.5. It is meant for full
    batches: the noise of mini-batches spoils the estimated curvature.

    All parameters move along one direction, so groups may have their own decay and clip, but no
    other settings, and must share one dtype and device. Decay is part of the objective, so that the
    line search includes it; a clipped gradient is the gradient of no function, and a line search
    along it may stop early. Parameters without a gradient stay.

    If the parameters are moved between two steps (by `LookAhead` or ``set_value``), the curvature
    is estimated over the whole way.

    Every step is a separate update in traces; its loss is the one before it.

    Examples
    --------
    >>> import optlab as ol
    >>> w = ol.Parameter([3.0, 4.0])
    >>> optimizer = ol.optimizer.LBFGS(line_search_fn="strong_wolfe", parameters=[w])
    >>> def closure():
    ...     optimizer.clear_grad()
    ...     loss = ((w - ol.to_tensor([1.0, 2.0])) ** 2 * ol.to_tensor([1.0, 10.0])).sum()
    ...     loss.backward()
    ...     return loss
    >>> float(optimizer.step(closure).item())
    44.0
    >>> w.numpy().round(3)
    array([1., 2.], dtype=float32)
    """

    hyperparameters: ClassVar[dict[str, Any]] = {
        "learning_rate": 1.0,
        "max_iter": 20,
        "max_eval": None,
        "tolerance_grad": 1e-7,
        "tolerance_change": 1e-9,
        "history_size": 100,
        "line_search_fn": None,
    }
    kind: ClassVar[str] = "tensor"
    ranges: ClassVar[dict[str, tuple[float, float]]] = {
        "max_iter": (1, math.inf),
        "tolerance_grad": (0.0, math.inf),
        "tolerance_change": (0.0, math.inf),
        "history_size": (1, math.inf),
    }
    #: Whether `step` requires a closure, for code that trains with any optimizer.
    needs_closure: ClassVar[bool] = True
    #: The share of the slope that the line search may leave.
    _wolfe_curvature: ClassVar[float] = CURVATURE

    def __init__(self, *values: Any, **named: Any) -> None:
        self.history = History()
        #: The loss before the last step, for recorders, as one call of `step` runs many closures.
        self.loss_of_step = math.nan
        super().__init__(*values, **named)

    def for_parameter(self, parameter: Any, h: Any) -> dict[str, Any]:
        """Raise TypeError for ensembles."""
        check_one_run(parameter.data)
        return {}

    def check(self, h: Any) -> None:
        """Raise for an unknown line search, and for groups with settings of their own."""
        check_one_run(self.settings["learning_rate"])
        if h.line_search_fn not in (None, "strong_wolfe"):
            raise ValueError(
                f"line_search_fn must be 'strong_wolfe' or None; got {h.line_search_fn!r}."
            )
        if h.max_eval is not None and not as_setting(h.max_eval, "max_eval") >= 1:
            raise ValueError(f"max_eval must be at least 1, or None; got {h.max_eval!r}.")
        for name, value in vars(h).items():
            if name != "learning_rate" and value != self.settings[name]:
                raise ValueError(
                    f"LBFGS moves all parameters along one direction: a group cannot have a {name} "
                    "of its own. Use one optimizer for each."
                )

    def _bind(self, parameters: Any) -> None:
        super()._bind(parameters)
        self.history = History(starts=starts_of(list(self._spans())))

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters; the history, and so the estimated curvature, is cleared."""
        super().add_param_group(param_group)
        self.history = History(starts=starts_of(list(self._spans())))

    def minimize(self, *args: Any, **kwargs: Any) -> Any:
        """Raise NotImplementedError, as one backward pass is not enough."""
        raise NotImplementedError(
            "LBFGS evaluates the loss many times in one step; write a closure that clears the "
            "gradients, computes the loss, runs backward and returns the loss, and call "
            "optimizer.step(closure)."
        )

    def apply_gradients(self, params_grads: Any) -> Any:
        """Raise NotImplementedError, as gradients at one point are not enough."""
        return self.minimize()

    @effect
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Take up to `max_iter` steps; the closure computes loss and gradients.

        Parameters
        ----------
        closure : callable
            Clears the gradients, computes the loss, runs backward and returns the loss.

        Returns
        -------
        Tensor
            The first result of the closure: the loss before the call.

        Raises
        ------
        TypeError
            If there is no closure, or it does not return one number.
        RuntimeError
            If the closure leaves no gradient, as without a backward pass. Nothing has changed then.
        ValueError
            If parameters have their own learning rates, or differ in dtype or device.
        FloatingPointError
            If the first gradient, or the point that a step leads to, is not finite and the policy
            is ``not_finite="raise"``.

        Notes
        -----
        An exception, of the closure or by Ctrl-C, leaves everything as after the last of these
        steps. Where the first gradient is zero within `tolerance_grad`, nothing changes; in a trace
        that call is one step, whose update is zero.
        """
        self._require_parameters()
        self.unfinished.finish()
        if not callable(closure):
            raise TypeError(
                "LBFGS.step takes a closure: a function that clears the gradients, computes the "
                "loss, runs backward and returns the loss."
            )
        with self._step_hooks(closure):
            return self._iterate(closure)

    def _iterate(self, closure: Callable[[], Any]) -> Any:
        """Take the steps of `step`."""
        check_same_kind(self.groups)
        for group in self.groups:
            for flat in group.arenas:
                flat.make_ready()
        first = here = self._evaluate(closure, first=True)
        if not self._may_continue(here.gradient):
            return here.returned
        h = self.groups[0].h
        rate = self.get_lr()
        skipped, taken = self.skipped, 0
        most = h.max_iter * 5 // 4 if h.max_eval is None else int(h.max_eval)
        evaluations = 1
        for left in reversed(range(h.max_iter)):
            before = here
            if largest(before.gradient) <= h.tolerance_grad:
                break
            start, known = read_point(self.groups), self.history.copy()
            try:
                slope = self._choose_direction(known, before.gradient, start, rate)
                if slope > -h.tolerance_change:
                    self.history = known
                    break
                direction, alpha = known.direction, known.alpha
                if events.array_kept.listeners:
                    _publish_held("slot", direction, start, *known.steps, *known.changes)
                if h.line_search_fn is not None:
                    found, used = self._search(closure, start, direction, before, slope, alpha)
                    evaluations += used
                    alpha = known.alpha = found.alpha
                    here = found.evaluation
                point = start + alpha * direction
                if not self._may_continue(point, "the point that the step leads to"):
                    write_point(self.groups, start)
                    break
                known.evaluations = self.history.evaluations
                carried_through(self.unfinished, partial(self._move, point, known))
                del point  # the next closure runs without it
            except BaseException:
                if self.history is not known:  # the search has moved the parameters
                    write_point(self.groups, start)
                raise
            self._publish(rate, before, start)
            taken += 1
            if h.line_search_fn is None:
                if not left:
                    break
                here = self._evaluate(closure)
                evaluations += 1
            if (
                largest(direction) * abs(alpha) <= h.tolerance_change
                or abs(here.penalised - before.penalised) < h.tolerance_change
                or evaluations >= most
            ):
                break
        if not taken and self.skipped == skipped:  # it has converged: the step leaves all as it is
            self._publish(rate, first, read_point(self.groups))
        return first.returned

    def state_dict(self) -> dict[str, Any]:
        """Return all that a resumed run needs to be equal to the bit.

        Returns
        -------
        dict
            As of every optimizer. It also has, for information, the documented entries
            ``["state"]["func_evals"]``, the number of closure calls, and ``["state"]["n_iter"]``,
            the number of steps.
        """
        counts = {"func_evals": self.history.evaluations, "n_iter": self.history.iterations}
        return {**super().state_dict(), "state": counts}

    def checked_state(self, state_dict: Mapping[str, Any]) -> Callable[[], None]:
        """Check a state, and return a function that writes it; ``"state"`` is ignored."""
        if isinstance(state_dict, Mapping):
            state_dict = {**state_dict, "state": {}}
        return super().checked_state(state_dict)

    def extra_state(self) -> dict[str, Any]:
        """Return the history, its arrays split by the names of the parameters."""
        return self.history.to_state(list(self._spans()))

    def set_extra_state(self, state: Mapping[str, Any]) -> None:
        """Load a history that `extra_state` returned.

        Raises
        ------
        ValueError
            If it does not fit these parameters. Nothing has changed then.
        """
        try:
            self.history = History.from_state(state, list(self._spans()), read_point(self.groups))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"the state has no history of LBFGS for these parameters: {error!r}. Nothing was "
                "changed."
            ) from error

    @property
    def own_bytes(self) -> int:
        """The bytes of the history: the rule has no slots."""
        return self.history.nbytes

    def _spans(self) -> Iterator[tuple[str, int, int]]:
        """Yield the name of each parameter, and its start and stop in a flat array."""
        start = 0
        for name, flat, number in self._named():
            size = flat.parameters[number].size
            yield name, start, start + size
            start += size

    def _choose_direction(self, known: History, g: Any, start: Any, rate: float) -> float:
        """Learn from a gradient, choose direction and length of the next step; return the slope."""
        if known.iterations == 0:
            known.alpha = min(1.0, 1.0 / known.total(np.abs(g))) * rate
            known.direction = -g
        else:
            known.learn(g, start, self.groups[0].h.history_size)
            known.direction, known.alpha = known.newton_direction(g), rate
        known.iterations += 1
        known.gradient, known.start = g, start
        return known.dot(g, known.direction)

    def _move(self, point: Any, known: History, progress: Progress) -> None:
        """Write a step: the parameters, their step counts and the history."""
        flats = [flat for group in self.groups for flat in group.arenas]
        counts = [(setattr, flat, "t", [t + 1 for t in flat.t]) for flat in flats]
        progress.do([(write_point, self.groups, point), *counts, (setattr, self, "history", known)])

    # The objective along a line ------------------------------------------------------------------

    def _search(
        self,
        closure: Callable[[], Any],
        point: Any,
        direction: Any,
        here: Evaluation,
        slope: float,
        alpha: float,
    ) -> tuple[Trial, int]:
        """Search along a direction; restore the parameters if the closure fails."""

        def evaluate(alpha: float) -> Trial:
            write_point(self.groups, point + alpha * direction)
            there = self._evaluate(closure)
            return Trial(alpha, there.penalised, self.history.dot(there.gradient, direction), there)

        start = Trial(0.0, here.penalised, slope, here)
        try:
            return strong_wolfe(evaluate, start, alpha, largest(direction), self._wolfe_curvature)
        except BaseException:
            write_point(self.groups, point)
            raise

    def _evaluate(self, closure: Callable[[], Any], first: bool = False) -> Evaluation:
        """Call the closure, and return the loss and the flat gradients."""
        with enable_grad():
            returned = closure()
        self.history.evaluations += 1
        there = read_evaluation(self.groups, returned, first)
        if events.array_kept.listeners:
            _publish_held("temporary", there.raw_gradient, there.gradient)
        return there

    def _publish(self, rate: float, before: Evaluation, start: Any) -> None:
        """Publish a step to listeners."""
        self.loss_of_step = before.loss
        if events.step_taken.audience_of(self):
            updates = updates_of_step(self.groups, rate, before, start)
            events.step_taken.publish(self, updates)
        if events.step_finished.listeners:
            events.step_finished.publish(self)

    # Conditions ---------------------------------------------------------------------------------

    def _may_continue(self, values: Any, what: str = "a gradient that the closure left") -> bool:
        """Return whether to continue, by the policy for values that are not finite."""
        if self.not_finite == "pass" or bool(np.isfinite(values).all()):
            return True
        self.skipped += self.not_finite == "skip"
        if self.not_finite == "raise":
            raise FloatingPointError(
                f"{what} is not finite. Nothing was changed. Try a smaller learning rate or "
                "grad_clip; optlab.autograd.detect_anomaly() finds the operation."
            )
        return False


def _publish_held(role: str, *arrays: Any) -> None:
    """Publish the arrays that are held while the closure runs, for memory ledgers."""
    for array in arrays:
        events.array_kept.publish(array, "LBFGS", role, "step")
