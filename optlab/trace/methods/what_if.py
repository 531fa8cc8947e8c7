"""What a recorded run would have been, and how its past acts on its steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from optlab.trace import forks, influences
from optlab.trace.methods.quantities import Quantities


class WhatIf(Quantities):
    """``trace.fork`` and ``trace.influence``."""

    def fork(
        self,
        step: int,
        *,
        steps: int | None = None,
        loss: Callable[..., Any] | None = None,
        optimizer: Any = None,
        **settings: Any,
    ) -> Self:
        """Return the trace of the run as it would have gone on from a step with other settings.

        The recorded steps up to `step`, and then new ones. With nothing changed it is the recorded
        run to the bit.

        Parameters
        ----------
        step : int
            The last step that stays; 0 forks at the start.
        steps : int, optional
            The length of the whole run; by default that of the recorded one.
        loss : callable, optional
            Takes a dict of parameters by names, and returns the loss; if it takes two arguments,
            the second is the number of the step from 0 (for batches). Traces of ``ol.compare`` know
            their loss, and so do those of ``ol.record(optimizer, loss=f)``. The optimizer is
            brought to `step` by the recorded gradients, or, without values, from the last snapshot
            before it (`ol.probes.Snapshots`).
        optimizer : Optimizer, optional
            The optimizer of the run, for a trace from a file.
        **settings
            ``learning_rate`` (fixed from then on; otherwise the steps have the recorded rates),
            hyper-parameters of the rule, ``weight_decay``, ``grad_clip``.

        Raises
        ------
        TypeError, ValueError
            If a setting is unknown, the loss is, or the trace lacks what is needed; the message
            says what to record.
        RuntimeError
            If the recorded gradients do not lead to the recorded values.

        Examples
        --------
        >>> import optlab as ol
        >>> race = ol.compare("rosenbrock", {"SGD": ol.optimizer.SGD(0.001)}, steps=50)
        >>> what_if = race["SGD"].fork(step=34, learning_rate=0.0005)
        >>> len(what_if), bool((what_if.loss[:35] == race["SGD"].loss[:35]).all())
        (50, True)
        >>> what_if.learning_rate[[33, 34]]
        array([0.001 , 0.0005])
        """
        self.complete()
        found: Self = forks.fork(self, step, steps, loss, optimizer, settings)
        return found

    def influence(
        self, step: int | None = None, direction: Any = None, optimizer: Any = None
    ) -> Any:
        r"""Return how much each past gradient is in the update of a step.

        `optlab.viz.influence` draws it: ``ol.viz.influence(trace, step)``.

        Element (j, ...) is :math:`\partial u_i / \partial g_{j+1,i}`: the derivative of each
        element i of the update of `step` by the same element of the gradient of step j + 1, with
        all other gradients held fixed. For gradient descent the last row is minus the rate and all
        others are 0; for momentum they are its kernel.

        Parameters
        ----------
        step : int, optional
            By default the last recorded one.
        direction : array, or dict of str to array, optional
            Of rules that couple elements (norms, matrices, clipping by norm), whose derivative is
            no such array: the derivative of the component of the update along this direction by
            every element of every gradient is returned.
        optimizer : Optimizer, optional
            The optimizer of the run, for a trace from a file.

        Returns
        -------
        array, shape (step, ...), or dict of str to array
            Newest last; by the names of parameters if there are several.

        Raises
        ------
        TypeError, ValueError
            If the rule needs a direction, or the trace lacks values of every step.

        Examples
        --------
        >>> import optlab as ol
        >>> w = ol.Parameter([3.0], name="w")
        >>> optimizer = ol.optimizer.Momentum(0.1, momentum=0.5, parameters=[w])
        >>> with ol.record(optimizer) as trace:
        ...     for _ in range(4):
        ...         (w * w).sum().backward()
        ...         optimizer.step()
        ...         optimizer.clear_grad()
        >>> trace.influence(step=4)["w"].ravel()
        array([-0.0125, -0.025 , -0.05  , -0.1   ])
        """
        self.complete()
        return influences.influence(self, step, direction, optimizer)
