"""A student's class as an optimizer of optlab's: it races the library's own in the explorer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

if TYPE_CHECKING:
    from optlab.optimizer import Optimizer


def racer(student_class: Any, learning_rate: float = 0.01, **settings: Any) -> Optimizer:
    """Return an optimizer for `ol.compare` and `ol.explore` whose steps a plain class takes.

    Parameters
    ----------
    student_class : type
        A class with ``step(params, grads)`` on lists of arrays, or a function that makes its
        objects; its first argument is the learning rate.
    learning_rate : float
        The rate; the explorer makes a ladder of rates of it.
    **settings
        Further arguments of the class.

    Returns
    -------
    Optimizer
        A template for races on surfaces. The state is the object's own: recordings show the
        parameters and the update, and nothing of what the object keeps.

    Examples
    --------
    >>> import optlab as ol
    >>> class Descent:
    ...     def __init__(self, learning_rate):
    ...         self.learning_rate = learning_rate
    ...
    ...     def step(self, params, grads):
    ...         return [p - self.learning_rate * g for p, g in zip(params, grads)]
    >>> entries = {"mine": ol.course.racer(Descent, 0.1), "SGD": ol.optimizer.SGD(0.1)}
    >>> ol.compare("parabola", entries, steps=20)
    <Comparison on ...
      mine  loss ...
      SGD   loss ...
    """
    from optlab.optimizer import Optimizer  # a check needs none of it, and is quicker without

    class Racer(Optimizer):
        """An optimizer whose steps are those of a plain class with ``step(params, grads)``."""

        hyperparameters: ClassVar[dict[str, Any]] = {"learning_rate": learning_rate}
        slots: ClassVar[dict[str, Any]] = {}
        kind: ClassVar[str] = "tensor"  # a class may look at all numbers of an array
        last, place = 0, 0

        def __init__(self, *arguments: Any, **named: Any) -> None:
            super().__init__(*arguments, **named)
            # A list among its attributes says that calls change it: no plan is captured of it.
            self.objects: list[Any] = []

        def scalars(self, t: int, h: Any) -> dict[str, Any]:
            """Return the number of the step: at the first one, new objects are made."""
            return {"t": t}

        def update(self, p: Any, g: Any, s: Any, h: Any, c: Any) -> Any:
            """Take the step of the object that belongs to this parameter."""
            step = int(c.t)
            if step == 1 and self.last != 1:
                self.objects = []
            self.place = self.place + 1 if self.last == step else 0
            self.last = step
            if step == 1:
                self.objects.append(student_class(h.learning_rate, **settings))
            [new] = self.objects[self.place].step([p], [g])
            return np.asarray(new), {}, {"update": new - p}

    Racer.__name__ = getattr(student_class, "__name__", "Racer")
    return Racer(learning_rate)
