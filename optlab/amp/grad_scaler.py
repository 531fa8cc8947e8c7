"""Loss scaling: keep small gradients representable in float16, and skip steps that overflowed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from optlab.autograd.tape import nodes
from optlab.autograd.tape.row_sparse import RowSparse
from optlab.autograd.tensor.tensor import Tensor, raw
from optlab.backend.arrays import as_float
from optlab.backend.dtypes import widened

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
        return var.astype(widened(var.dtype), copy=False) * self._scale

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
        state = self._met.get(id(optimizer), (None, "", True))[1]
        if state:
            raise RuntimeError(
                f"the gradients of this {type(optimizer).__name__} were {state} already since the "
                "last update(): each training step is scale, backward, unscale_ (at most once), "
                "step, update."
            )
        finite = True
        for p in optimizer.parameters:
            node = p.node
            g = None if node is None else node.grad
            if g is None or g is nodes.ZERO:
                continue
            g = raw(g)
            true, is_finite = _unscale(g, self._scale)
            finite = finite and is_finite
            if true.dtype != p.dtype:
                true = true.astype(p.dtype)
            node.grad = true if isinstance(true, RowSparse) else Tensor(true)
        self._met[id(optimizer)] = (optimizer, _UNSCALED, finite)

    def step(self, optimizer: Any) -> None:
        """Call the optimizer's step, unless a gradient is infinite or NaN.

        Raises
        ------
        RuntimeError
            If this optimizer already took a step since the last `update`.
        """
        if self._begin_step(optimizer):
            optimizer.step()

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
        if self._begin_step(optimizer):
            done = optimizer.minimize(*args, **kwargs)
        self.update()
        return done

    def _begin_step(self, optimizer: Any) -> bool:
        """Record the step of an optimizer, and return whether it is to be taken."""
        if not self._enable:
            return True
        if self._met.get(id(optimizer), (None, "", True))[1] == _STEPPED:
            raise RuntimeError(
                f"this {type(optimizer).__name__} took a step already since the last update(); "
                "call scaler.update() once after the steps of all optimizers."
            )
        if id(optimizer) not in self._met:
            self.unscale_(optimizer)
        finite = self._met[id(optimizer)][2]
        self._met[id(optimizer)] = (optimizer, _STEPPED, finite)
        return finite

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
        self._met = {}
        if not self._dynamic:
            return
        if finite:
            self._bad_steps = 0
            self._good_steps += 1
            if self._good_steps >= self._incr_every_n_steps:
                self._good_steps = 0
                self._multiply_scale(self._incr_ratio)
        else:
            self._good_steps = 0
            self._bad_steps += 1
            if self._bad_steps >= self._decr_every_n_nan_or_inf:
                self._bad_steps = 0
                self._multiply_scale(self._decr_ratio)

    def _multiply_scale(self, ratio: float) -> None:
        """Multiply s, within the normal range of float32."""
        largest, smallest = float(np.finfo(np.float32).max), float(np.finfo(np.float32).tiny)
        scale = self._scale * ratio
        if smallest <= scale <= largest:
            self._scale = scale

    # Settings -----------------------------------------------------------------------------------

    def is_enable(self) -> bool:
        """Return whether scaling is enabled."""
        return self._enable

    def is_use_dynamic_loss_scaling(self) -> bool:
        """Return whether s changes during training."""
        return self._dynamic

    def get_loss_scaling(self) -> float:
        """Return the current s."""
        return self._scale

    def get_init_loss_scaling(self) -> float:
        """Return the initial s."""
        return self._init_loss_scaling

    def set_init_loss_scaling(self, new_init_loss_scaling: float) -> None:
        """Set the initial and the current s."""
        scale = as_float(new_init_loss_scaling, "init_loss_scaling")
        if not 0 < scale < math.inf:
            raise ValueError(f"init_loss_scaling must be finite and greater than 0; got {scale!r}.")
        self._init_loss_scaling = self._scale = scale

    def get_incr_ratio(self) -> float:
        """Return the factor of s after enough good steps."""
        return self._incr_ratio

    def set_incr_ratio(self, new_incr_ratio: float) -> None:
        """Set the factor of s after enough good steps: more than 1."""
        ratio = as_float(new_incr_ratio, "incr_ratio")
        if not 1 < ratio < math.inf:
            raise ValueError(f"incr_ratio must be greater than 1; got {ratio!r}.")
        self._incr_ratio = ratio

    def get_decr_ratio(self) -> float:
        """Return the factor of s after steps that overflowed."""
        return self._decr_ratio

    def set_decr_ratio(self, new_decr_ratio: float) -> None:
        """Set the factor of s after steps that overflowed: between 0 and 1."""
        ratio = as_float(new_decr_ratio, "decr_ratio")
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


def _whole_number(value: Any, name: str, least: int = 1) -> int:
    """Validate an integer that is at least `least`, and return it."""
    count = int(as_float(value, name))
    if count != value or count < least:
        raise ValueError(f"{name} must be a whole number of at least {least}; got {value!r}.")
    return count
