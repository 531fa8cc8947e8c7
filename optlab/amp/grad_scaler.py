"""Loss scaling: keep small gradients representable in float16, and skip steps that overflowed."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from operator import is_
from typing import Any

import numpy as np

from optlab.autograd.tape import nodes
from optlab.autograd.tape.row_sparse import RowSparse
from optlab.autograd.tensor.conversions import as_setting
from optlab.autograd.tensor.tensor import Tensor, raw
from optlab.backend.call_recorder import after_backward, effect, live, live_setting
from optlab.backend.dtypes import widened
from optlab.plan.undisturbed import undisturbed

#: State of an optimizer's gradients since the last `update`.
_UNSCALED, _STEPPED = "unscaled", "stepped"


class GradScaler:
    r"""Dynamic loss scaling, which skips steps with gradients that are not finite.

    float16 has no value below 6e-8, and gradients are often smaller. So the backward pass starts
    from s times the loss, and the gradients are divided by s before the optimizer step. If s was
    too large, some gradient is infinite or NaN: then parameters, slots and step counts stay
    unchanged, and s decreases,

    .. math:: s \leftarrow s \cdot \text{decr\_ratio}
        \text{ after decr\_every\_n\_nan\_or\_inf such steps in a row}, \quad
        s \leftarrow s \cdot \text{incr\_ratio}
        \text{ after incr\_every\_n\_steps good steps in a row.}

    bfloat16 has the range of float32 and needs no scaling.

    Parameters
    ----------
    enable : bool
        False: losses and gradients are unchanged, and every step is taken.
    init_loss_scaling : float
        Initial s. If the loss itself is float16, more than 65504 overflows at the loss: the first
        step is skipped and s halved.
    incr_ratio, decr_ratio : float
        Factors of s: more than 1, less than 1.
    incr_every_n_steps, decr_every_n_nan_or_inf : int
    use_dynamic_loss_scaling : bool
        False: s is constant; steps that overflowed are still skipped.

    Raises
    ------
    ValueError
        If a number is outside its range.

    Notes
    -----
    The division is computed in float32, and its result rounded to the parameter's dtype: for
    float16 parameters, results below 6e-8 become 0. float32 parameters under `auto_cast` lose
    nothing.

    Source: Micikevicius et al. 2018, "Mixed precision training".

    Examples
    --------
    >>> import optlab as ol
    >>> w = ol.Parameter(ol.to_tensor([1.0, 2.0], dtype="float16"))
    >>> optimizer = ol.optimizer.SGD(0.5, parameters=[w])
    >>> scaler = ol.amp.GradScaler(init_loss_scaling=1024.0)
    >>> scaler.scale((w * w).sum()).backward()
    >>> scaler.step(optimizer)
    >>> scaler.update()
    >>> w.tolist()
    [0.0, 0.0]
    """

    def __init__(
        self,
        enable: bool = True,
        init_loss_scaling: float = 65536.0,
        incr_ratio: float = 2.0,
        decr_ratio: float = 0.5,
        incr_every_n_steps: int = 2000,
        decr_every_n_nan_or_inf: int = 1,
        use_dynamic_loss_scaling: bool = True,
    ) -> None:
        self._scale: float
        self._enable = bool(enable)
        self._dynamic = self._enable and bool(use_dynamic_loss_scaling)
        self.set_init_loss_scaling(init_loss_scaling if enable else 1.0)
        self.set_incr_ratio(incr_ratio)
        self.set_decr_ratio(decr_ratio)
        self.set_incr_every_n_steps(incr_every_n_steps)
        self.set_decr_every_n_nan_or_inf(decr_every_n_nan_or_inf)
        self._good_steps = 0
        self._bad_steps = 0
        #: Optimizers since the last update, by identity: their state, and whether all gradients
        #: were finite. The references keep the identities unique.
        self._met: dict[int, tuple[Any, str, bool]] = {}
        #: The gradients that steps ended by an exception have left unscaled.
        self._left: dict[int, tuple[list[Any], tuple[Any, str, bool]]] = {}

    # A step -------------------------------------------------------------------------------------

    def scale(self, var: Tensor) -> Tensor:
        """Return the loss times s, in at least float32.

        Raises
        ------
        TypeError
            If `var` is not a Tensor.
        """
        if not isinstance(var, Tensor):
            raise TypeError(f"scale takes the loss, a Tensor; got {type(var).__name__}.")
        if not self._enable:
            return var
        scaled: Tensor = var.astype(widened(var.dtype), copy=False) * live_setting(self, "_scale")
        return scaled

    @effect
    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of an optimizer's parameters by s, and check that all are finite.

        `step` does this automatically. Call it before, to read or clip the true gradients.

        Raises
        ------
        RuntimeError
            If it was already called since the last `update`.
        """
        if not self._enable:
            return
        state = self._state_of(optimizer)
        if state:
            raise RuntimeError(
                f"the gradients of this {type(optimizer).__name__} were {state} already since the "
                "last update(): each training step is scale, backward, unscale_ (at most once), "
                "step, update."
            )
        done: list[tuple[Any, Any, bool]] = []
        try:
            self._unscale_all(optimizer, done)
        except BaseException:
            if done:  # gradients cannot be scaled back to the bit
                undisturbed(partial(self._unscale_all, optimizer, done))
            raise

    def _unscale_all(self, optimizer: Any, done: list[tuple[Any, Any, bool]]) -> None:
        """Divide the gradients of an optimizer by s, but for those that are done.

        `done` lists nodes, their new gradients and whether these are finite.
        """
        for node, g, _ in done[-1:]:  # it may not be written yet
            node.grad = g
        left = len(done)
        for p in optimizer.parameters:
            node = p.node
            g = None if node is None else node.grad
            if g is None or g is nodes.ZERO:
                continue
            if left:
                left -= 1
                continue
            true, is_finite = _unscale(raw(g), self._scale)
            if true.dtype != p.dtype:
                true = true.astype(p.dtype)
            new = true if isinstance(true, RowSparse) else Tensor(true)
            done.append((node, new, is_finite))
            node.grad = new
        finite = all(is_finite for _, _, is_finite in done)
        self._met[id(optimizer)] = (optimizer, _UNSCALED, finite)

    @effect
    def step(self, optimizer: Any) -> None:
        """Call the optimizer's step, unless a gradient is infinite or NaN.

        Raises
        ------
        RuntimeError
            If this optimizer already took a step since the last `update`.
        """
        self._take(optimizer, optimizer.step)

    @after_backward
    def minimize(
        self, optimizer: Any, *args: Any, **kwargs: Any
    ) -> tuple[list[Any], list[tuple[Any, Any]]]:
        """Call the optimizer's ``minimize(loss, ...)`` like `step`, then `update`.

        Run backward from the loss (the scaled one) if that was not done yet.

        Returns
        -------
        tuple
            The optimizer's result: an empty list and the (parameter, gradient) pairs that were
            used; no pairs if the step was skipped.
        """
        if not self._enable:
            return optimizer.minimize(*args, **kwargs)  # type: ignore[no-any-return]
        loss = args[0] if args else kwargs.get("loss")
        if not isinstance(loss, Tensor):
            raise TypeError(
                "minimize takes the optimizer and the scaled loss: "
                "scaler.minimize(optimizer, scaler.scale(loss))."
            )
        if not getattr(loss.node, "backward_done", False):
            loss.backward()
        done: tuple[list[Any], list[tuple[Any, Any]]] = ([], [])
        before = self._state_of(optimizer)
        try:
            done = self._take(optimizer, partial(optimizer.minimize, *args, **kwargs)) or done
            self.update()
        except BaseException:
            if before != _STEPPED and self._state_of(optimizer) == _STEPPED:
                self.update()
            raise
        return done

    def _state_of(self, optimizer: Any) -> str:
        """Return what was done with an optimizer's gradients since the last update."""
        return self._met.get(id(optimizer), (None, "", True))[1]

    def _take(self, optimizer: Any, step: Callable[[], Any]) -> Any:
        """Take a step of an optimizer if its gradients are finite, and record it.

        After an exception it is recorded if it was taken.
        """
        if not self._enable:
            return step()
        if self._state_of(optimizer) == _STEPPED:
            raise RuntimeError(
                f"this {type(optimizer).__name__} took a step already since the last update(); "
                "call scaler.update() once after the steps of all optimizers."
            )
        before, by_user = _step_counts(optimizer), id(optimizer) in self._met
        try:
            if not by_user:
                self._unscale_once(optimizer)
            finite = self._met[id(optimizer)][2]
            result = step() if finite else None
            self._met[id(optimizer)] = (optimizer, _STEPPED, finite)
        except BaseException:
            met = self._met.get(id(optimizer))
            if met is not None and _step_counts(optimizer) != before:
                self._met[id(optimizer)] = (optimizer, _STEPPED, met[2])
            elif met is not None and not by_user and met[1] == _UNSCALED:
                # The next step may be with these gradients, or with those of another backward pass.
                self._left[id(optimizer)] = (_gradients(optimizer), met)
                del self._met[id(optimizer)]
            raise
        return result

    def _unscale_once(self, optimizer: Any) -> None:
        """Unscale gradients, unless a step that an exception has ended left them unscaled."""
        held, met = self._left.get(id(optimizer), ([], None))
        now = _gradients(optimizer)
        if met is not None and len(now) == len(held) and all(map(is_, now, held)):
            self._met[id(optimizer)] = met
        else:
            self.unscale_(optimizer)

    @effect
    def update(self) -> None:
        """Adapt s to the outcome of the steps since the last update.

        Raises
        ------
        RuntimeError
            If there was no step.
        """
        if not self._enable:
            return
        if not self._met:
            raise RuntimeError(
                "update() follows the steps: call scaler.step(optimizer) first, which looks at the "
                "gradients."
            )
        finite = all(is_finite for _, _, is_finite in self._met.values())
        scale, good, bad = self._scale, self._good_steps, self._bad_steps
        if not self._dynamic:
            pass
        elif finite:
            good, bad = good + 1, 0
            if good >= self._incr_every_n_steps:
                good, scale = 0, self._multiplied(self._incr_ratio)
        else:
            good, bad = 0, bad + 1
            if bad >= self._decr_every_n_nan_or_inf:
                bad, scale = 0, self._multiplied(self._decr_ratio)
        # In one call, so that an interrupt finds all of it before or after.
        vars(self).update(_met={}, _left={}, _scale=scale, _good_steps=good, _bad_steps=bad)

    def _multiplied(self, ratio: float) -> float:
        """Return s multiplied, within the normal range of float32."""
        largest, smallest = float(np.finfo(np.float32).max), float(np.finfo(np.float32).tiny)
        scale = self._scale * ratio
        return scale if smallest <= scale <= largest else self._scale

    # Settings -----------------------------------------------------------------------------------

    def is_enable(self) -> bool:
        """Return whether scaling is enabled."""
        return self._enable

    def is_use_dynamic_loss_scaling(self) -> bool:
        """Return whether s changes during training."""
        return self._dynamic

    @live
    def get_loss_scaling(self) -> float:
        """Return the current s."""
        return self._scale

    def get_init_loss_scaling(self) -> float:
        """Return the initial s."""
        return self._init_loss_scaling

    def set_init_loss_scaling(self, new_init_loss_scaling: float) -> None:
        """Set the initial and the current s."""
        scale = as_setting(new_init_loss_scaling, "init_loss_scaling")
        if not 0 < scale < math.inf:
            raise ValueError(f"init_loss_scaling must be finite and greater than 0; got {scale!r}.")
        self._init_loss_scaling = self._scale = scale

    def get_incr_ratio(self) -> float:
        """Return the factor of s after enough good steps."""
        return self._incr_ratio

    def set_incr_ratio(self, new_incr_ratio: float) -> None:
        """Set the factor of s after enough good steps: more than 1."""
        ratio = as_setting(new_incr_ratio, "incr_ratio")
        if not 1 < ratio < math.inf:
            raise ValueError(f"incr_ratio must be greater than 1; got {ratio!r}.")
        self._incr_ratio = ratio

    def get_decr_ratio(self) -> float:
        """Return the factor of s after steps that overflowed."""
        return self._decr_ratio

    def set_decr_ratio(self, new_decr_ratio: float) -> None:
        """Set the factor of s after steps that overflowed: between 0 and 1."""
        ratio = as_setting(new_decr_ratio, "decr_ratio")
        if not 0 < ratio < 1:
            raise ValueError(f"decr_ratio must lie between 0 and 1; got {ratio!r}.")
        self._decr_ratio = ratio

    def get_incr_every_n_steps(self) -> int:
        """Return the number of good steps in a row that increase s."""
        return self._incr_every_n_steps

    def set_incr_every_n_steps(self, new_incr_every_n_steps: int) -> None:
        """Set the number of good steps in a row that increase s."""
        self._incr_every_n_steps = _whole_number(new_incr_every_n_steps, "incr_every_n_steps")

    def get_decr_every_n_nan_or_inf(self) -> int:
        """Return the number of overflowed steps in a row that decrease s."""
        return self._decr_every_n_nan_or_inf

    def set_decr_every_n_nan_or_inf(self, new_decr_every_n_nan_or_inf: int) -> None:
        """Set the number of overflowed steps in a row that decrease s."""
        count = _whole_number(new_decr_every_n_nan_or_inf, "decr_every_n_nan_or_inf")
        self._decr_every_n_nan_or_inf = count

    # State --------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return s, the settings and the counts, for `load_state_dict`; empty if not enabled.

        Examples
        --------
        >>> import optlab as ol
        >>> ol.amp.GradScaler().state_dict()["scale"]
        array([65536.], dtype=float32)
        """
        if not self._enable:
            return {}
        return {
            "scale": np.array([self._scale], np.float32),
            "incr_ratio": self._incr_ratio,
            "decr_ratio": self._decr_ratio,
            "incr_every_n_steps": self._incr_every_n_steps,
            "decr_every_n_nan_or_inf": self._decr_every_n_nan_or_inf,
            "incr_count": self._good_steps,
            "decr_count": self._bad_steps,
            "use_dynamic_loss_scaling": self._dynamic,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore a state of `state_dict`.

        Raises
        ------
        ValueError
            If something is missing, unknown or outside its range. Nothing is changed then.
        """
        if not self._enable:
            return
        if not state_dict:
            raise ValueError(
                "the state is empty: it was saved from a GradScaler that was not enabled. Leave "
                "load_state_dict out, or make this one with enable=False."
            )
        expected = self.state_dict().keys()
        if state_dict.keys() != expected:
            missing = sorted(expected - state_dict.keys())
            unknown = sorted(state_dict.keys() - expected)
            said = [f"{', '.join(missing)} missing"] * bool(missing)
            said += [f"{', '.join(unknown)} unknown"] * bool(unknown)
            raise ValueError(f"this is no state of a GradScaler: {'; '.join(said)}.")
        scale = float(np.asarray(raw(state_dict["scale"])).reshape(-1)[0])
        settings = {
            name: state_dict[name]
            for name in (
                "incr_ratio", "decr_ratio", "incr_every_n_steps", "decr_every_n_nan_or_inf",
                "use_dynamic_loss_scaling",
            )
        }  # fmt: skip
        fresh = GradScaler(True, scale, **settings)
        fresh._good_steps = _whole_number(state_dict["incr_count"], "incr_count", least=0)
        fresh._bad_steps = _whole_number(state_dict["decr_count"], "decr_count", least=0)
        fresh._init_loss_scaling = self._init_loss_scaling
        self.__dict__.update(fresh.__dict__)

    def __repr__(self) -> str:
        if not self._enable:
            return "GradScaler(enable=False)"
        kind = "changes" if self._dynamic else "stays"
        return f"GradScaler(scale={self._scale:g}, which {kind})"


def _unscale(g: Any, scale: float) -> tuple[Any, bool]:
    """Divide a gradient by `scale` in at least float32; return it and whether it is finite."""
    finite = bool(np.isfinite(g.values if isinstance(g, RowSparse) else g).all())
    return g.astype(widened(g.dtype)) * (1.0 / scale), finite


def _gradients(optimizer: Any) -> list[Any]:
    """Return what the parameters of an optimizer hold as gradients."""
    return [None if p.node is None else p.node.grad for p in optimizer.parameters]


def _step_counts(optimizer: Any) -> list[Any]:
    """Return the step counts of all parameters of an optimizer."""
    groups = getattr(optimizer, "groups", ())
    return [list(flat.t) for group in groups for flat in getattr(group, "arenas", ())]


def _whole_number(value: Any, name: str, least: int = 1) -> int:
    """Validate an integer that is at least `least`, and return it."""
    count = int(as_setting(value, name))
    if count != value or count < least:
        raise ValueError(f"{name} must be a whole number of at least {least}; got {value!r}.")
    return count
