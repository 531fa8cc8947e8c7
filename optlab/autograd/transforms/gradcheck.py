"""Gradient check against finite differences."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import fill
from typing import Any

import numpy as np

from optlab.autograd import pytrees
from optlab.autograd.tape.grad_mode import no_grad
from optlab.autograd.tensor.tensor import Tensor, raw
from optlab.autograd.transforms.evaluation import check_callable, explained_transform
from optlab.autograd.transforms.functional import vjp
from optlab.backend.dtypes import is_floating
from optlab.backend.random import Key

#: Of arguments up to this size, every entry of the gradient is shown.
_MOST_SHOWN = 10

CAUSES = """\
If the rule looks right, usual causes are: a kink or jump at this very point (move it a little); \
float32 somewhere inside (finite differences need float64); random numbers that differ from call \
to call; a value kept with ctx.y = y, which hides it from the tape (ctx.save_for_backward(y) does \
not); .numpy() or .detach() on the way."""


@explained_transform
def check_grad(
    f: Callable[..., Any],
    *args: Any,
    order: int = 2,
    step: float = 1e-6,
    relative_tolerance: float = 1e-5,
    absolute_tolerance: float = 1e-6,
) -> None:
    """Compare the derivatives of `f` with central finite differences, up to `order`.

    For random u and v it compares <u'J, v> with (<u, f(x + s v)> - <u, f(x - s v)>) / 2s, then
    does the same with the function (u, x) -> u'J for the next order.

    Parameters
    ----------
    f : callable
        Returns one array, or a container of arrays.
    args
        The point of the check, away from kinks: arrays, or dicts, lists and tuples of them.
        Floating numbers are checked, in float64; whole numbers and everything that is no array are
        passed through unchanged.
    order : int
        1 checks the gradient, 2 also the gradient of the gradient, and so on.
    step : float
        Step s of the finite difference.
    relative_tolerance, absolute_tolerance : float
        Largest accepted difference.

    Raises
    ------
    AssertionError
        If they differ; names the argument, the order and the difference. For an argument of ten
        elements or fewer it shows the gradient of the sum of the output, entry by entry.
    TypeError
        If there is no floating number to differentiate by.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> ol.check_grad(np.tanh, np.array([0.3, -1.2]))
    >>> from optlab.autograd import rule
    >>> def wrong(x):
    ...     return x * x
    >>> row = rule(wrong, lambda g, x: g * x)
    >>> ol.check_grad(lambda x: ol.autograd.tensor.apply(row, (x,)), np.array([2.0]))
    Traceback (most recent call last):
        ...
    AssertionError: order 1: the derivative of your function for argument 0 is wrong: ...
      entry          ours  finite diff.  ours / finite diff.
      [0]               2             4                  0.5
    ...
    """
    check_callable(f, "check_grad")
    built = [pytrees.flatten(x) for x in args]
    parts = [part for found, _ in built for part in found]
    labels = [
        label for i, x in enumerate(args) for label in pytrees.leaf_labels(x, f"argument {i}")
    ]
    checked = [i for i, part in enumerate(parts) if _is_floating(part)]
    if not checked:
        raise TypeError(
            "check_grad found no floating number to differentiate by: whole numbers are passed "
            "through as they are. Write 2.0 instead of 2, or convert with .astype(float)."
        )

    def of_floating(*points: Any) -> Any:
        filled = list(parts)
        for i, point in zip(checked, points, strict=True):
            filled[i] = point
        given, start = [], 0
        for found, build in built:
            given.append(build(filled[start : start + len(found)]))
            start += len(found)
        y = f(*given)
        if not pytrees.is_container(y):
            return y
        return np.concatenate([np.reshape(part, (-1,)) for part in pytrees.flatten(y)[0]])

    points = tuple(np.array(raw(parts[i]), dtype=np.float64) for i in checked)
    _Check(order, step, relative_tolerance, absolute_tolerance, _name(f)).run(
        of_floating, points, [labels[i] for i in checked], 1, _name(f)
    )


def _is_floating(part: Any) -> bool:
    try:
        return is_floating(np.asarray(raw(part)).dtype)
    except (TypeError, ValueError):
        return False


def _name(f: Callable[..., Any]) -> str:
    """Return the name of a function for messages, of ``Mine.apply`` that of the class."""
    while hasattr(f, "func"):  # functools.partial
        f = f.func
    owner = getattr(f, "__self__", None)
    name = getattr(f, "__name__", type(f).__name__)
    if isinstance(owner, type) and name == "apply":
        name = owner.__name__
    return "your function" if name == "<lambda>" else name


class _Check:
    """Settings of a check at every order; `name` seeds the random directions."""

    def __init__(
        self, order: int, step: float, relative: float, absolute: float, name: str
    ) -> None:
        self.order = order
        self.step = step
        self.relative = relative
        self.absolute = absolute
        self.name = name

    def differs(self, ours: float, theirs: float) -> bool:
        return not abs(ours - theirs) <= self.absolute + self.relative * abs(theirs)

    def run(
        self,
        f: Callable[..., Any],
        points: tuple[np.ndarray, ...],
        labels: list[str],
        level: int,
        name: str,
    ) -> None:
        """Check one order, then the next."""
        numbers = Key(level, ("check_grad", self.name)).generator()
        value, pullback = vjp(f, *points)
        u = numbers.standard_normal(np.shape(value))
        gradients = pullback(u)
        for position, (x, gradient) in enumerate(zip(points, gradients, strict=True)):
            which = f"order {level}: the derivative of {name} for {labels[position]}"
            if gradient.shape != x.shape:
                raise AssertionError(
                    f"{which} has shape {gradient.shape}, but the argument has shape {x.shape}."
                )
            v = numbers.standard_normal(x.shape)
            # The gradient is a Tensor if `f` closes over parameters that are trained.
            ours = float(np.sum(raw(gradient) * v))
            theirs = self.slope(f, points, position, v, u)
            if self.differs(ours, theirs):
                prose = (
                    f"{which} is wrong: <u'J, v> is {ours:.8g}, but finite differences give "
                    f"{theirs:.8g}. (J is the matrix of all derivatives, u and v are random "
                    "weights for outputs and inputs: the two numbers should be equal, but are no "
                    "derivatives themselves.)"
                )
                table = self.entries(f, points, position, u, level)
                raise AssertionError(f"{fill(prose, 96)}\n{table}{fill(CAUSES, 96)}")
        if level < self.order:

            def next_order(u: Any, *points: Any) -> Tensor:
                pulled = vjp(f, *points)[1](u)
                return np.concatenate([np.reshape(g, (-1,)) for g in pulled])  # type: ignore[return-value]

            # Each order puts the incoming gradient before the function's own arguments.
            arriving = "the arriving gradient"
            self.run(
                next_order, (u, *points), [arriving, *labels], level + 1, f"the gradient of {name}"
            )

    def slope(
        self, f: Callable[..., Any], points: Any, position: int, v: np.ndarray, u: Any
    ) -> float:
        """Return the slope of <u, f> along `v` by finite differences."""
        before, after = list(points), list(points)
        before[position] = points[position] - self.step * v
        after[position] = points[position] + self.step * v
        with no_grad():
            difference = raw(f(*after)) - raw(f(*before))
        return float(np.sum(u * difference)) / (2 * self.step)

    def entries(self, f: Callable[..., Any], points: Any, position: int, u: Any, level: int) -> str:
        """Format the gradient of the sum of the output beside finite differences, by entry."""
        x = points[position]
        if x.size > _MOST_SHOWN:
            return ""
        # A sum can be constant although its parts are not (softmax): then random weights follow.
        plain = tuple(np.ones_like(p) if i < level - 1 else p for i, p in enumerate(points))
        text = ""
        for at, weights, what in (
            (plain, np.ones_like(u), "the sum of"),
            (points, u, "the randomly weighted sum of"),
        ):
            try:
                gradient = vjp(f, *at)[1](weights)[position]
            except Exception:  # noqa: BLE001 - the message must not fail after the check itself
                return ""
            output = "the output" if level == 1 else f"the derivatives of order {level - 1}"
            text = f"The gradient of {what} {output}, entry by entry:\n"
            text += (
                f"  {'entry':<8}{'ours':>11}  {'finite diff.':>12}  {'ours / finite diff.':>19}\n"
            )
            wrong = False
            for place in np.ndindex(x.shape):
                one = np.zeros_like(x)
                one[place] = 1.0
                ours, theirs = float(gradient[place]), self.slope(f, at, position, one, weights)
                ratio = f"{ours / theirs:.4g}" if abs(theirs) > self.absolute else "-"
                differs = self.differs(ours, theirs)
                wrong |= differs
                entry = f"[{', '.join(map(str, place))}]" if place else "()"
                shown = "" if differs else "  (right)"
                text += f"  {entry:<8}{ours:>11.6g}  {theirs:>12.6g}  {ratio:>19}{shown}\n"
            if wrong:
                break
        return text
