"""Averaged: an optimizer and an average of its weights, as one optimizer."""

from __future__ import annotations

from typing import Any

from optlab.optimizer.step import Update
from optlab.optimizer.wrappers.averages import Applied, Average, Source
from optlab.optimizer.wrappers.memory import Memory
from optlab.optimizer.wrappers.wrapper import AfterStep, Wrapper, free_name, laid_out


class Averaged(Wrapper):
    """An optimizer whose weights are averaged, for evaluation; training is the inner optimizer's.

    Made by ``ExponentialMovingAverage.around(optimizer)`` and ``ModelAverage.around(optimizer)``.
    With ``multi_precision`` the float32 copies of the weights are averaged.

    Parameters
    ----------
    inner_optimizer : Optimizer
        Or a template, which makes this a template, too.
    average : ModelAverage or ExponentialMovingAverage
        Made without parameters.

    Notes
    -----
    A step that updates no parameter (no gradients, or not finite ones that are skipped) is not
    averaged. A recording has the average, as `apply` would give it, as the slot ``average``, and
    the difference of the weights from it as the term ``lag``.

    Examples
    --------
    >>> import optlab as ol
    >>> EMA = ol.optimizer.ExponentialMovingAverage
    >>> race = ol.compare(
    ...     "rosenbrock", {"EMA": EMA.around(ol.optimizer.Adam(0.1), decay=0.9)}, steps=20
    ... )
    >>> race["EMA"]["average"].shape
    (20, 2)
    """

    def __init__(self, inner_optimizer: Any, average: Average) -> None:
        super().__init__(inner_optimizer, getattr(average, "name", None))
        if not isinstance(average, Average) or average.sources:
            raise TypeError(
                "the average is a ModelAverage or ExponentialMovingAverage made without "
                f"parameters; got {average!r}."
            )
        self.average = average.fresh()
        self.formula = average.formula

    @property
    def own_settings(self) -> dict[str, Any]:
        """What was set of the average."""
        return {"average": type(self.average).__name__, **self.average.own_settings}

    def _is_own_setting(self, name: str) -> bool:
        average = vars(self).get("average")
        return average is not None and name in average.own_settings

    def apply(self, executor: bool | None = None, need_restore: bool = True) -> Applied:
        """Give the parameters their averages, until `restore`."""
        self._require_parameters()
        self._watch()
        return self.average.apply(executor, need_restore)

    def restore(self, executor: None = None) -> None:
        """Give the parameters back the weights that they had before `apply`, to the bit."""
        self.average.restore(executor)

    def _forget(self) -> None:
        self.average = self.average.fresh()

    def _watch(self) -> None:
        new = self.places[len(self.average.sources) :]
        self.average.watch([Source(arena.parameters[i], arena, i) for arena, i in new])

    def _before(self) -> None:
        self._watch()
        self.average.require_own_weights("step()")

    def _after(self, updated: list[bool]) -> None:
        if not any(updated):
            return
        try:
            self.average._update()
        except Exception as error:
            error.add_note(
                f"The step of {self.inner_optimizer.__class__.__name__} was taken before; the "
                "average is as it was. Once this is mended, the next step averages again."
            )
            raise

    def _shown(self, row: Update, acted: Any) -> Update:
        averages = self.average.averages()
        own = [n for n, (arena, _) in enumerate(self.places) if arena is row.arena]
        average = laid_out([averages[n] for n in own])
        return row._replace(
            slots={**row.slots, free_name("average", row.slots): average},
            terms={**row.terms, free_name("lag", row.terms): row.parameter - average},
        )

    def over_rows(self, start: Any) -> AfterStep:
        """Give what is done after each step, for parameters that are rows of one plain array."""
        own = self.average.fresh()
        memory = own._empty(start)

        def after(p: Any) -> tuple[Any, dict[str, Any], dict[str, Any]]:
            own._take([(memory, p)])
            average = own._average(memory)
            return p, {"average": average}, {"lag": p - average}

        return after

    def _memories(self) -> list[Memory]:
        self._watch()
        return self.average.memories

    def _remember(self, memories: list[Memory]) -> None:
        self.average.memories = memories

    def __repr__(self) -> str:
        values = "".join(f", {k}={v!r}" for k, v in self.average.own_settings.items())
        return f"{type(self.average).__name__}.around({self.inner_optimizer!r}{values})"
