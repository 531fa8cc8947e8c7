"""Methods of optimizers that training loops of 1.8.5 call, with its argument names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from optlab.optimizer.params.pairs import Pairs


class OldMethods:
    """``backward``, ``minimize`` and ``current_step_lr`` as in ``paddle.fluid`` 1.8.5.

    Examples
    --------
    >>> import optlab as ol
    >>> w = ol.Parameter([1.0])
    >>> optimizer = ol.fluid.optimizer.SGD(0.5, parameter_list=[w])
    >>> optimizer.minimize((2 * w).sum(), parameter_list=[w])
    ([], <1 (parameter, gradient) pair>)
    >>> optimizer.current_step_lr()
    0.5
    """

    def current_step_lr(self) -> Any:
        """Return the current learning rate: `get_lr` under the name of 1.8.5."""
        return self.get_lr()  # type: ignore[attr-defined]

    def backward(
        self,
        loss: Any,
        startup_program: None = None,
        parameter_list: Iterable[Any] | None = None,
        no_grad_set: Iterable[Any] | None = None,
        callbacks: Sequence[Callable[..., Any]] | None = None,
    ) -> Pairs:
        """Run backward from `loss`; return the parameters with gradients, as pairs.

        Each of the `callbacks`, a list of functions, is called with every parameter and its
        gradient.
        """
        pairs: Pairs = super().backward(  # type: ignore[misc]
            loss, startup_program, parameter_list, no_grad_set, callbacks
        )
        return pairs

    def minimize(
        self,
        loss: Any = None,
        startup_program: None = None,
        parameter_list: Iterable[Any] | None = None,
        no_grad_set: Iterable[Any] | None = None,
        grad_clip: Any = None,
    ) -> tuple[list[Any], Pairs]:
        """Run backward from `loss`, unless that was already done, and take a step.

        Parameters
        ----------
        loss : Tensor
        startup_program : None
        parameter_list, no_grad_set : iterable of Tensor or str, optional
            Only these are updated, or not these.
        grad_clip : ClipGradByValue, ClipGradByNorm or ClipGradByGlobalNorm, optional
            Clips the gradients of this call, in place of the optimizer's clip.

        Returns
        -------
        tuple
            An empty list, and the (parameter, gradient) pairs before clipping.
        """
        plain: Any = super()
        if grad_clip is None:
            result: tuple[list[Any], Pairs] = plain.minimize(
                loss, startup_program, parameter_list, no_grad_set
            )
            return result
        if not callable(grad_clip):
            raise TypeError(
                "grad_clip takes ClipGradByValue, ClipGradByNorm or ClipGradByGlobalNorm; "
                f"got {grad_clip!r}."
            )
        groups: list[Any] = self.groups  # type: ignore[attr-defined]
        own = [group.grad_clip for group in groups]
        for group in groups:
            group.grad_clip = grad_clip
        try:
            result = plain.minimize(loss, startup_program, parameter_list, no_grad_set)
        finally:
            for group, clip in zip(groups, own, strict=True):
                group.grad_clip = clip
        return result
