"""SAM: the gradient is taken where the loss is highest nearby."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from optlab.autograd.tape.grad_mode import enable_grad
from optlab.autograd.tape.row_sparse import RowSparse
from optlab.autograd.tensor.conversions import as_setting
from optlab.autograd.tensor.tensor import raw
from optlab.backend.arrays import as_float, copied
from optlab.backend.ensemble import EnsembleArray
from optlab.optimizer.rule.hyperparameters import by_names
from optlab.optimizer.step.after_steps import AfterSteps
from optlab.optimizer.step.step import Update
from optlab.optimizer.wrappers.state import Memory
from optlab.optimizer.wrappers.wrapper import AfterStep, Wrapper, free_name
from optlab.plan import CaptureError
from optlab.plan.progress import Progress


class SAM(Wrapper):
    r"""Minimize the highest loss within a small distance, by two gradients a step.

    .. math::
        \epsilon = \rho \frac{\nabla L(\theta)}{\lVert \nabla L(\theta) \rVert_2}, \qquad
        g = \nabla L(\theta + \epsilon)

    g is the gradient of the inner optimizer's step from :math:`\theta`. The norm is over all
    parameters. With ``adaptive=True`` (ASAM) directions are scaled by the weights,
    :math:`\epsilon = \rho\, \theta^2 \nabla L / \lVert\, |\theta| \nabla L \rVert_2`.

    Parameters
    ----------
    inner_optimizer : Optimizer
        Takes the step. A template makes this a template, too.
    rho : float
        The distance, at least 0. With 0 the steps are those of the inner optimizer.
    adaptive : bool
        Whether the distance is measured relative to each weight.
    name : str, optional
        Its name in traces and tables.

    Raises
    ------
    TypeError, ValueError
        If `inner_optimizer` is no optimizer, or evaluates the loss itself; if rho is below 0.

    Notes
    -----
    ``step(closure)`` calls the closure twice, so a step costs two evaluations: `ol.compare` counts
    both. A layer with running statistics sees both, too. A gradient of zero, or one that is not
    finite, is passed on to the inner optimizer after one evaluation. A recording has
    :math:`\epsilon` as the term ``ascent``; its loss is :math:`L(\theta)`.

    Source: Foret, Kleiner, Mobahi and Neyshabur 2021, arXiv 2010.01412, algorithm 1; ``adaptive``:
    Kwon, Kim, Park and Choi 2021, arXiv 2102.11600.

    Examples
    --------
    >>> import optlab as ol
    >>> w = ol.Parameter([1.0])
    >>> sam = ol.optimizer.SAM(ol.optimizer.SGD(0.1, parameters=[w]), rho=0.5)
    >>> def closure():
    ...     sam.clear_grad()
    ...     loss = (w * w).sum()
    ...     loss.backward()
    ...     return loss
    >>> float(sam.step(closure).item())
    1.0
    >>> w.numpy()  # 1 - 0.1 times the slope at 1.5
    array([0.7], dtype=float32)
    """

    own_names: ClassVar[tuple[str, ...]] = ("rho", "adaptive")
    #: Whether `step` requires a closure, for code that trains with any optimizer.
    needs_closure: ClassVar[bool] = True

    @by_names
    def __init__(
        self, inner_optimizer: Any, rho: float = 0.05, adaptive: bool = False,
        name: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(inner_optimizer, name)
        if getattr(inner_optimizer, "needs_closure", False):
            raise TypeError(
                f"SAM gives its optimizer one gradient a step; {type(inner_optimizer).__name__} "
                "evaluates the loss itself. Wrap one such as SGD, Momentum or Adam."
            )
        self.rho = as_setting(rho, "rho")
        if not 0 <= self.rho < math.inf:
            raise ValueError(f"rho is a distance, finite and at least 0; got {rho!r}.")
        if not isinstance(adaptive, (bool, np.bool_)):
            raise TypeError(f"adaptive is True or False; got {adaptive!r}.")
        self.adaptive = bool(adaptive)
        self._forget()

    @property
    def own_settings(self) -> dict[str, Any]:
        """The settings of the wrapper itself."""
        return {"rho": self.rho, "adaptive": self.adaptive}

    def _forget(self) -> None:
        #: The loss before the last step, for recorders.
        self.loss_of_step = math.nan
        self._ascent: dict[int, Any] = {}

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Take a step; the closure computes loss and gradients, and is called twice.

        Parameters
        ----------
        closure : callable
            Clears the gradients, computes the loss, runs backward and returns the loss.

        Returns
        -------
        Tensor
            The first result of the closure: the loss before the step.

        Raises
        ------
        TypeError
            If there is no closure, or it does not return one number.
        RuntimeError
            If the closure leaves no gradient.

        Notes
        -----
        Whatever happens in the closure, the parameters are where they were before the step.
        """
        if not callable(closure):
            raise TypeError(
                "SAM.step takes a closure, which it calls twice: a function that clears the "
                "gradients, computes the loss, runs backward and returns the loss."
            )
        with self._step_hooks(closure):
            try:
                return self._step_around(lambda: self._take(closure))
            finally:
                self._ascent = {}

    def apply_gradients(self, params_grads: Any) -> list[Any]:
        """Raise TypeError: a step needs a second gradient, elsewhere."""
        raise TypeError("SAM evaluates a second gradient in each step: call step(closure).")

    def minimize(self, *args: Any, **kwargs: Any) -> Any:
        """Raise TypeError: a step needs a second gradient, elsewhere."""
        raise TypeError("SAM evaluates the loss again in each step: call step(closure).")

    def _take(self, closure: Callable[[], Any]) -> Any:
        """Evaluate at the parameters and above them, and let the inner optimizer take its step."""
        flats = self.arenas
        for flat in flats:
            flat.make_ready()
            if isinstance(flat.values, EnsembleArray):
                raise TypeError(
                    "SAM takes no ensembles: each member would go up by a distance of its own. "
                    "Make one SAM for each run, or race them with ol.compare."
                )
        with enable_grad():
            returned = closure()
        self.loss_of_step = as_float(raw(returned), "the loss that the closure returns")
        gradients = [_dense(flat) for flat in flats]
        if all(g is None for g in gradients):
            raise RuntimeError(
                "no parameter of SAM has a gradient after the closure. Does it call "
                "loss.backward(), and clear_grad() before that, not after it? Nothing was changed."
            )
        ascents = self._ascents([flat.values for flat in flats], gradients)
        self._ascent = {}
        if ascents is not None:
            self._ascent = {id(flat): e for flat, e in zip(flats, ascents, strict=True)}
            before = [copied(flat.values) for flat in flats]
            try:
                for flat, start, ascent in zip(flats, before, ascents, strict=True):
                    _write(flat, start + ascent)
                with enable_grad():
                    closure()
            finally:
                for flat, start in zip(flats, before, strict=True):
                    _write(flat, start)
        self.inner_optimizer.step()
        return returned

    def _ascents(self, values: list[Any], gradients: list[Any]) -> list[Any] | None:
        """Return how far to go up, per flat array; None if the gradient gives no direction."""
        scaled = [
            np.zeros_like(w) if g is None else np.abs(w) * g if self.adaptive else g
            for w, g in zip(values, gradients, strict=True)
        ]
        norm = math.sqrt(sum(float(np.vdot(s, s)) for s in map(_as_float64, scaled)))
        if not 0 < norm < math.inf or self.rho == 0:
            return None
        step = self.rho / norm
        return [
            (s * step * np.abs(w) if self.adaptive else s * step).astype(w.dtype)
            for s, w in zip(scaled, values, strict=True)
        ]

    def _after(self, updated: list[bool], progress: Progress) -> None:
        """Do nothing: the parameters are where the inner optimizer has moved them."""

    def _add_to_row(self, row: Update, acted: Any) -> Update:
        ascent = self._ascent.get(id(row.arena))
        if ascent is None:
            ascent = np.zeros_like(row.parameter)
        return row._replace(terms={**row.terms, free_name("ascent", row.terms): ascent})

    def _memories(self) -> list[Memory]:
        return [{} for _ in self.places]

    def _set_memories(self, memories: list[Memory]) -> None:
        """Do nothing: there is no state beside that of the inner optimizer."""

    # What takes one gradient a step ---------------------------------------------------------------

    def _refuse(self, what: str) -> TypeError:
        return TypeError(f"SAM cannot be {what}: each step needs a second gradient, elsewhere.")

    def _functional_start(self, leaves: Any, values: list[Any], named: Any) -> dict[str, Any]:
        raise self._refuse("a functional step")

    def _functional_take(
        self, leaves: Any, values: list[Any], gradients: list[Any], state: Any, named: Any
    ) -> tuple[list[Any], dict[str, Any], list[bool]]:
        raise self._refuse("a functional step")

    def member_memory(self, start: Any) -> Memory:
        """Raise TypeError: runs of SAM go one by one."""
        raise self._refuse("a loop over members")

    def member_after(self, memory: Memory, p: Any) -> tuple[Any, Memory]:
        """Raise TypeError: runs of SAM go one by one."""
        raise self._refuse("a loop over members")

    def over_rows(self, start: Any) -> AfterStep:
        """Raise TypeError: runs of SAM go one by one."""
        raise self._refuse("a loop over rows")

    def _captured(self, own: Mapping[str, Any]) -> AfterSteps | None:
        raise CaptureError("SAM cannot be captured as a rule: a step needs a second gradient.")


def _dense(flat: Any) -> Any:
    """Return the gradients of flat parameters as one flat array; None if there is none."""
    found = flat.gradients()
    if all(g is None for g in found):
        return None
    return np.concatenate(
        [
            np.zeros_like(p.data).reshape(-1)
            if g is None
            else (g.dense() if isinstance(g, RowSparse) else g).reshape(-1)
            for p, g in zip(flat.parameters, found, strict=True)
        ]
    )


def _as_float64(x: Any) -> Any:
    return x.astype(np.float64, copy=False)


def _write(flat: Any, values: Any) -> None:
    flat.write(slice(None), values)
    flat.mark_written(0, len(flat.parameters), "SAM.step()")
