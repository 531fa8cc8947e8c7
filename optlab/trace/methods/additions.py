"""What a user adds to a trace: marks, numbers, the steps of another library's run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from optlab.trace.methods.quantities import Quantities
from optlab.trace.probes.presets import read_probes
from optlab.trace.recordings.foreign import ArraysRecording
from optlab.trace.records import Record


class Additions(Quantities):
    """``trace.mark``, ``trace.log`` and ``trace.append``."""

    #: What `append` records with.
    _appends: ArraysRecording | None

    def mark(self, text: str) -> None:
        """Note something at the current step, such as ``"rate lowered"``; figures show it.

        Raises
        ------
        TypeError
            If `text` is no text.

        Examples
        --------
        >>> import optlab as ol
        >>> w = ol.Parameter([3.0], name="w")
        >>> optimizer = ol.optimizer.SGD(0.1, parameters=[w])
        >>> with ol.record(optimizer) as trace:
        ...     (w * w).sum().backward()
        ...     optimizer.step()
        ...     trace.mark("rate lowered")
        >>> trace.marks
        [(1, 'rate lowered')]
        """
        if not isinstance(text, str):
            raise TypeError(f"mark takes a text; got {text!r}. Numbers go to trace.log(name, x).")
        self.complete()
        mark = self._now(), text
        if not (self.is_resumed and mark in self.marks):
            self.marks.append(mark)

    def log(self, name: str, value: Any) -> None:
        """Record a number of your own, or an array of one shape, at the current step.

        Raises
        ------
        TypeError, ValueError
            If `name` is no text or is taken, or `value` has another shape than before.

        Examples
        --------
        >>> import optlab as ol
        >>> w = ol.Parameter([3.0], name="w")
        >>> optimizer = ol.optimizer.SGD(0.1, parameters=[w])
        >>> with ol.record(optimizer) as trace:
        ...     trace.log("accuracy", 0.1)
        ...     (w * w).sum().backward()
        ...     optimizer.step()
        ...     trace.log("accuracy", 0.9)
        >>> trace["accuracy"], trace.steps("accuracy")
        (array([0.1, 0.9]), array([0, 1]))
        """
        if not isinstance(name, str):
            raise TypeError(f"log takes a name and a number; got {name!r} as the name.")
        array = np.array(value)
        if array.dtype.kind not in "biufcV":  # V: the 16-bit floats of ml_dtypes
            raise TypeError(
                f"log records numbers; got {value!r} for {name!r}. trace.mark(text) keeps a text."
            )
        label = f"log {name}"
        if label not in self.records:
            if name in self.names:
                raise ValueError(f"{name!r} is recorded already; log it by another name.")
            self.records[label] = Record(label, label)
        record, now = self.records[label], self._now()
        if len(record.steps) == record.rows_before > 0 and int(record.steps.last()) == now:
            record.drop_last()  # a resumed run logs its first step again
        record.bytes += record.append(now, {name: array})

    def append(
        self,
        *,
        loss: float = math.nan,
        learning_rate: float = math.nan,
        parameters: Mapping[str, Any],
        gradients: Mapping[str, Any] | None = None,
        slots: Mapping[str, Mapping[str, Any]] | None = None,
        terms: Mapping[str, Mapping[str, Any]] | None = None,
        before: Mapping[str, Any] | None = None,
        probes: Any = None,
    ) -> None:
        """Record one step of a run that another library makes, such as Optax or Keras.

        Parameters
        ----------
        loss, learning_rate : float
        parameters : dict of str to array
            After the step. All arrays are copied; whatever ``numpy.array`` takes will do.
        gradients : dict of str to array, optional
        slots, terms : dict of str to dict of str to array, optional
            The state of the optimizer, and named terms of its update, by parameter. The term
            "update" is the change of the parameters where it is not given.
        before : dict of str to array, optional
            The parameters before the first step; needed in the first call.
        probes : str or list, optional
            As for ``ol.record``; only in the first call.

        Raises
        ------
        TypeError
            If the first call lacks `before`, a later one has `before` or `probes`, or the trace is
            that of ``ol.record``.
        ValueError
            If a name or a shape is not that of a parameter.

        Examples
        --------
        >>> import numpy as np
        >>> import optlab as ol
        >>> trace = ol.trace.Trace("gradient descent")
        >>> w = np.array([2.0])
        >>> for _ in range(3):
        ...     start = {"w": w} if not len(trace) else None
        ...     loss, g = w @ w, 2 * w
        ...     w = w - 0.25 * g
        ...     trace.append(loss=loss, learning_rate=0.25, parameters={"w": w},
        ...                  gradients={"w": g}, before=start)
        >>> trace.loss, trace.parameters["w"].ravel()
        (array([4.  , 1.  , 0.25]), array([2.  , 1.  , 0.5 , 0.25]))
        """
        if self._appends is None:
            if before is None or self.steps_taken or self.optimizer is not None:
                raise TypeError(
                    "append begins with before=..., the parameters before the first step, and on a "
                    "trace of its own: trace = ol.trace.Trace('name'). Beside ol.record use "
                    "trace.log(name, x)."
                )
            sizes = [int(np.size(x)) for x in before.values()]
            chosen = read_probes(probes, sizes)
            self._appends = ArraysRecording(self, before, chosen, 1, 200_000_000)
            self._appends.start()
        elif self.steps_taken and (before is not None or probes is not None):
            raise TypeError("before and probes are for the first call of append alone.")
        self._appends.append(
            loss, learning_rate, parameters, gradients or {}, slots or {}, terms or {}
        )
