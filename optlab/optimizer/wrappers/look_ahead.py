"""LookAhead: slow weights that follow the fast weights of an optimizer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from optlab.autograd.tensor.conversions import as_setting
from optlab.backend.arrays import copied
from optlab.optimizer.params.flat import FlatParameters
from optlab.optimizer.rule.hyperparameters import by_names
from optlab.optimizer.step import functional
from optlab.optimizer.step.after_steps import AfterSteps
from optlab.optimizer.step.step import Update
from optlab.optimizer.wrappers.state import Memory
from optlab.optimizer.wrappers.wrapper import AfterStep, Wrapper, concatenate_flat, free_name
from optlab.plan.progress import Call, Progress


class LookAhead(Wrapper):
    r"""Interpolate between the weights before and after every k steps of an optimizer.

    After every step t of the inner optimizer, which moves the fast weights :math:`\theta`:

    .. math::
        \phi &\leftarrow \phi + \alpha (\theta - \phi), \quad \theta \leftarrow \phi
        && \text{if } t \bmod k = 0

    The slow weights :math:`\phi` start as the weights before the first step.

    Parameters
    ----------
    inner_optimizer : Optimizer
        Moves the fast weights, which are the parameters. A template (made without parameters) makes
        this a template, too. It may be another wrapper.
    alpha : float
        The step of the slow weights towards the fast ones, in [0, 1]. With 1 nothing is changed.
    k : int
        The number of steps between two synchronisations, at least 1.
    name : str, optional
        Its name in traces and tables.

    Raises
    ------
    TypeError, ValueError
        If `inner_optimizer` is no optimizer, or alpha or k is out of range.

    Notes
    -----
    t counts the updates of each parameter: a step in which it has no gradient does not count, as
    for every optimizer. The inner optimizer's slots are unchanged by a synchronisation. With
    ``multi_precision`` the slow weights are float32.

    A recording has the slow weights as the slot ``slow``, the fast weights before a synchronisation
    as the term ``fast``, their difference from the slow ones as ``lead``, and the term
    ``synchronised``, 1 at a synchronisation; `Trace.synchronisations` lists these steps.

    Source: Zhang, Lucas, Hinton and Ba 2019, arXiv 1907.08610, algorithm 1.

    Examples
    --------
    >>> import optlab as ol
    >>> w = ol.Parameter([1.0])
    >>> sgd = ol.optimizer.SGD(0.1, parameters=[w])
    >>> lookahead = ol.optimizer.LookAhead(sgd, alpha=0.5, k=2)
    >>> for _ in range(2):
    ...     w.sum().backward()
    ...     lookahead.step()
    ...     lookahead.clear_grad()
    >>> w.numpy()  # halfway between 1.0 and 0.8
    array([0.9], dtype=float32)
    """

    own_names: ClassVar[tuple[str, ...]] = ("alpha", "k")

    @by_names
    def __init__(
        self, inner_optimizer: Any, alpha: float = 0.5, k: int = 5, name: str | None = None
    ) -> None:
        super().__init__(inner_optimizer, name)
        self.alpha = _checked_alpha(alpha)
        self.k = whole_number("k", k)
        self._forget()

    @property
    def own_settings(self) -> dict[str, Any]:
        """The settings of the wrapper itself."""
        return {"alpha": self.alpha, "k": self.k}

    def _forget(self) -> None:
        self._slow: list[Memory] = []

    def _before(self) -> None:
        for flat in self.arenas:
            flat.make_ready()
        self._begin()

    def _begin(self) -> None:
        """Start the slow weights of parameters that have had no step yet."""
        places = self.places
        for place in places[len(self._slow) :]:
            self._slow.append({"slow": copied(_values(*place)), "slow_steps": 0})
        for place, memory in zip(places, self._slow, strict=True):
            if not memory["slow_steps"]:  # other weights may have been loaded since
                memory["slow"] = copied(_values(*place))

    def _after(self, updated: list[bool], progress: Progress) -> _Acted:
        acted = _Acted([memory["slow"] for memory in self._slow], [])
        writes: list[Call] = []
        for (flat, i), memory, moved in zip(self.places, self._slow, updated, strict=True):
            now = {"slow_steps": memory["slow_steps"] + moved}
            meets = moved and now["slow_steps"] % self.k == 0
            acted.synchronised.append(meets)
            if meets:
                slow = now["slow"] = self._moved(memory["slow"], _values(flat, i))
                if self.alpha != 1:
                    writes.append((flat.write, _span(flat, i), slow.reshape(-1)))
                    writes.append((flat.mark_written, i, i + 1, "LookAhead.step()"))
            writes.append((memory.update, now))
        progress.do(writes)
        return acted

    def _moved(self, slow: Any, fast: Any) -> Any:
        """Return the slow weights after a synchronisation."""
        if self.alpha == 1:  # slow + (fast - slow) may round to another number than fast
            return copied(fast)
        moved = fast - slow  # a new array for all three, as listeners may hold the old slow ones
        moved *= self.alpha
        moved += slow
        return moved

    def _functional_start(self, leaves: Any, values: list[Any], named: Any) -> dict[str, Any]:
        named = dict(named)
        self._functional_settings(named)
        return {
            "inner_optimizer": self.inner_optimizer._functional_start(leaves, values, named),
            "slow": leaves.build([functional.handed(functional.fresh(x), x) for x in values]),
            "slow_steps": leaves.build([0] * len(values)),
        }

    def _functional_settings(self, named: dict[str, Any]) -> tuple[Any, int]:
        """Take alpha and k out of the hyper-parameters; return those of this step."""
        own = functional.take_own(self.own_names, named, type(self).__name__, self.inner_optimizer)
        for name in own:
            del named[name]
        k = whole_number("k", own["k"]) if "k" in own else self.k
        return functional.number_of(own.get("alpha", self.alpha), _checked_alpha), k

    def _functional_take(
        self, leaves: Any, values: list[Any], gradients: list[Any], state: Any, named: Any
    ) -> tuple[list[Any], dict[str, Any], list[bool]]:
        named = dict(named)
        alpha, k = self._functional_settings(named)
        counts = leaves.like(functional.entry(state, "slow_steps"), "state['slow_steps']")
        slows = leaves.like(functional.entry(state, "slow"), "state['slow']")
        inner = functional.entry(state, "inner_optimizer")
        new, inner, moved = self.inner_optimizer._functional_take(
            leaves, values, gradients, inner, named
        )
        made, steps = [], []
        for i, (slow, count) in enumerate(zip(slows, counts, strict=True)):
            number = functional.count_of(count, "state['slow_steps']")
            # Before the first step other weights may have been given.
            slow = slow if number else functional.fresh(values[i])
            number += moved[i]
            if moved[i] and number % k == 0:
                if isinstance(alpha, float) and alpha == 1:  # as in `_moved`
                    slow = functional.fresh(new[i])
                else:
                    new[i] = (new[i] - slow) * alpha + slow
                    slow = functional.fresh(new[i])
            made.append(functional.handed(slow, leaves.parts[i]))
            steps.append(number)
        state = {
            "inner_optimizer": inner,
            "slow": leaves.build(made),
            "slow_steps": leaves.build(steps),
        }
        return new, state, moved

    def member_memory(self, start: Any) -> Memory:
        """Return the memory of members that start at these points, for `member_after`."""
        return {"slow": start, "slow_steps": 0}

    def member_after(self, memory: Memory, p: Any) -> tuple[Any, Memory]:
        """Return the weights after a step of the inner optimizer has moved them to `p`."""
        steps = memory["slow_steps"] + 1
        if steps % self.k:
            return p, {**memory, "slow_steps": steps}
        # As in `_moved`.
        slow = p if self.alpha == 1 else (p - memory["slow"]) * self.alpha + memory["slow"]
        return slow, {"slow": slow, "slow_steps": steps}

    def over_rows(self, start: Any) -> AfterStep:
        """Return what to do after each step, for parameters that are rows of one plain array."""
        slow, count = start, 0

        def after(fast: Any) -> tuple[Any, dict[str, Any], dict[str, Any]]:
            nonlocal slow, count
            count += 1
            met, before = count % self.k == 0, slow
            if met:
                slow = self._moved(slow, fast)
            flag = np.full_like(fast, float(met))
            terms = {"fast": fast, "lead": fast - before, "synchronised": flag}
            return slow if met else fast, {"slow": slow}, terms

        return after

    def _captured(self, own: Mapping[str, Any]) -> AfterSteps:
        """Return what to do after each step, for `capture_rule`."""
        alpha, k = _checked_alpha(own["alpha"]), whole_number("k", own["k"])

        def after(t: int, fast: Any, slots: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
            if t % k:
                return fast, slots
            slow = slots["slow"]
            moved = fast if alpha == 1 else (fast - slow) * alpha + slow  # as in `_moved`
            return moved, {"slow": moved}

        return AfterSteps({"slow": None}, after)

    def _add_to_row(self, row: Update, acted: _Acted | None) -> Update:
        flat, places, fast = row.arena, self.places, row.parameter
        own = [n for n, (there, _) in enumerate(places) if there is flat]
        slow = concatenate_flat([self._slow[n]["slow"] for n in own])
        before = slow if acted is None else concatenate_flat([acted.slow_before[n] for n in own])
        met = np.zeros_like(fast)
        for n in own:
            if acted is not None and acted.synchronised[n]:
                met[_span(*places[n])] = 1.0
        terms = {"fast": fast, "lead": fast - before, "synchronised": met}
        return row._replace(
            parameter=fast if acted is None else copied(flat.values),
            slots={**row.slots, free_name("slow", row.slots): slow},
            terms={**row.terms, **{free_name(k, row.terms): term for k, term in terms.items()}},
        )

    def _memories(self) -> list[Memory]:
        self._begin()
        return self._slow

    def _set_memories(self, memories: list[Memory]) -> None:
        self._slow = memories


class _Acted(NamedTuple):
    """The slow weights before a step, and which parameters were synchronised after it."""

    slow_before: list[Any]
    synchronised: list[bool]


def _checked_alpha(value: Any) -> float:
    """Return the step of the slow weights, checked."""
    alpha = as_setting(value, "alpha")
    if not 0 <= alpha <= 1:
        raise ValueError(f"alpha must be in [0, 1]; got {value!r}.")
    return alpha


def whole_number(name: str, value: Any) -> int:
    """Return a whole number of at least 1, checked."""
    number = as_setting(value, name)
    if isinstance(value, bool) or number < 1 or number != number // 1:
        raise ValueError(f"{name} must be a whole number of at least 1; got {value!r}.")
    return int(number)


def _span(flat: FlatParameters, i: int) -> slice:
    return slice(flat.bounds[i], flat.bounds[i + 1])


def _values(flat: FlatParameters, i: int) -> Any:
    """Return the current values of a parameter, or of its float32 copy."""
    return flat.values[_span(flat, i)].reshape(flat.parameters[i].shape)
