"""The base class of optimizers around another one, which act after each of its steps."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np

from optlab.backend import events
from optlab.backend.call_recorder import after_backward, effect
from optlab.optimizer.optimizer import Optimizer, how_to_set
from optlab.optimizer.params.flat import FlatParameters
from optlab.optimizer.params.groups import parameter_names
from optlab.optimizer.params.names import renamed
from optlab.optimizer.rule.hyperparameters import checked_name
from optlab.optimizer.state_dict import check_is_mapping, raise_faults
from optlab.optimizer.step.after_steps import AfterSteps
from optlab.optimizer.step.records import whole_updates
from optlab.optimizer.step.roll_forward import again, roll_forward
from optlab.optimizer.step.step import Update
from optlab.optimizer.wrappers.state import Memory, memories_from_state, memories_to_state
from optlab.plan import CaptureError
from optlab.plan.progress import Progress

#: Takes the weights after a step of the inner optimizer; returns weights, slots and terms.
AfterStep = Callable[[Any], tuple[Any, dict[str, Any], dict[str, Any]]]


class Wrapper(Optimizer):
    """An optimizer around another one, with the parameters, groups and rates of the inner one.

    A subclass defines what to do `_before` a step and `_after` it, its state for each parameter
    (`_memories`), and what it adds to the updates for listeners (`_add_to_row`).

    Attributes
    ----------
    inner_optimizer : Optimizer
        The one that is wrapped.
    """

    kind: ClassVar[str] = "tensor"  # never one call for all runs of a sweep
    inner_optimizer: Optimizer
    #: The settings of its own that are attributes.
    own_names: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.__signature__ = None  # type: ignore[attr-defined]  # that of __init__

    def __init__(self, inner_optimizer: Any, name: str | None = None) -> None:
        _check_inner(type(self).__name__, inner_optimizer)
        self.inner_optimizer = inner_optimizer
        self.name = checked_name(name)
        #: The loss before the step being published, if the inner optimizer has one.
        self._published_loss: list[Any] = []

    def __setattr__(self, name: str, value: Any) -> None:
        inner = vars(self).get("inner_optimizer")
        while isinstance(inner, Wrapper):
            inner = inner.inner_optimizer
        if self._is_own_setting(name):
            raise AttributeError(
                f"{name} of {type(self).__name__} is given when it is made; make a new one, and "
                "give it the state of this: new.set_state_dict(old.state_dict()).",
                name=name,
                obj=None,
            )
        if inner is not None and name in inner.settings and name not in self.own_names:
            raise AttributeError(how_to_set(type(inner), name), name=name, obj=None)
        super().__setattr__(name, value)

    def _is_own_setting(self, name: str) -> bool:
        """Return whether this is a setting of the wrapper that has been set."""
        return name in self.own_names and name in vars(self)

    def __getattr__(self, name: str) -> Any:
        # Groups, schedule, key, policies, ...: those of the inner optimizer.
        if name == "inner_optimizer" or name.startswith("__"):
            raise AttributeError(name)
        if name == "loss_of_step" and self._published_loss:
            return self._published_loss[0]
        return getattr(self.inner_optimizer, name)

    def __getstate__(self) -> dict[str, Any]:
        self.unfinished.finish()
        return self._without_step_hooks()

    @property
    def settings(self) -> dict[str, Any]:  # type: ignore[override]
        """The settings of the inner optimizer, and its own."""
        inner = {"inner_optimizer": _class_names(self.inner_optimizer)}
        return {**self.inner_optimizer.settings, **inner, **self.own_settings}

    @property
    def own_settings(self) -> dict[str, Any]:
        """The settings of the wrapper itself."""
        raise NotImplementedError

    def bind(self, parameters: Any) -> Wrapper:
        """Return a new optimizer with the same settings for `parameters`, wrapped likewise."""
        fresh = copy.copy(self)
        fresh.inner_optimizer = self.inner_optimizer.bind(parameters)
        fresh._published_loss = []
        fresh._adopt_step_hooks(self)
        fresh._forget()
        return fresh

    def layers(self) -> list[Any]:
        """Return the wrappers around the innermost optimizer, the inner ones first."""
        return layers_of(self)[1]

    @property
    def execution(self) -> dict[str, str]:
        """How the rule of the inner optimizer runs, and why."""
        return self.inner_optimizer.execution

    def update(self, *values: Any, **named: Any) -> Any:
        """Raise TypeError: the rule is the inner optimizer's, and `step` adds to it."""
        raise TypeError(
            f"{type(self).__name__} has no update() to call: around an optimizer, step() does "
            "both, the optimizer's step and what comes after it."
        )

    def _functional_names(self) -> tuple[str, list[str]]:
        """Return whose settings a functional step takes for the wrapper, and their names."""
        return type(self).__name__, list(self.own_names)

    # What a subclass defines --------------------------------------------------------------------

    def _forget(self) -> None:
        """Reset the state, for other parameters."""
        raise NotImplementedError

    def _before(self) -> None:
        """Prepare for a step of the inner optimizer."""

    def _after(self, updated: list[bool], progress: Progress) -> Any:
        """Act after a step that has updated these of the parameters (in the order of `places`).

        All that it writes are calls of `progress`: it is called again after an exception.
        """
        raise NotImplementedError

    def _add_to_row(self, row: Update, acted: Any) -> Update:
        """Return a whole update with the slots and terms of the wrapper added."""
        raise NotImplementedError

    def _memories(self) -> list[Memory]:
        """Return the state of each parameter (in the order of `places`)."""
        raise NotImplementedError

    def _set_memories(self, memories: list[Memory]) -> None:
        """Set memories that have been checked."""
        raise NotImplementedError

    def member_memory(self, start: Any) -> Memory:
        """Return the memory of members that start at these points, for `member_after`."""
        raise NotImplementedError

    def member_after(self, memory: Memory, p: Any) -> tuple[Any, Memory]:
        """Return the weights after a step of the inner optimizer has moved them to `p`.

        With the new memory. It is arithmetic alone, and depends on no value: symbols are given.
        """
        raise NotImplementedError

    def over_rows(self, start: Any) -> AfterStep:
        """Return what to do after each step, for parameters that are rows of one plain array.

        The rows are runs computed together, all of which move in every step; the arithmetic of each
        is that of a separate run.
        """
        raise NotImplementedError

    def _captured(self, own: Mapping[str, Any]) -> AfterSteps | None:
        """Return what to do after each step, with these settings of its own, for `capture_rule`.

        None if the weights stay as the inner optimizer leaves them.
        """
        raise CaptureError(f"{type(self).__name__} cannot be captured.")

    # The step -----------------------------------------------------------------------------------

    @property
    def arenas(self) -> list[FlatParameters]:
        """The flat parameters of all groups."""
        return [flat for group in self.groups for flat in group.arenas]

    @property
    def places(self) -> list[tuple[FlatParameters, int]]:
        """The location of each parameter: its flat parameters, and its number there."""
        return [(flat, i) for flat in self.arenas for i in range(len(flat.parameters))]

    @effect
    def step(self, *args: Any, **kwargs: Any) -> Any:
        """Let the inner optimizer take a step, then act.

        Arguments and result are those of the inner optimizer's step; most have none.
        """
        with self._step_hooks(*args, **kwargs):
            return self._step_around(lambda: self.inner_optimizer.step(*args, **kwargs))

    @effect
    def apply_gradients(self, params_grads: Iterable[tuple[Any, Any]]) -> list[Any]:
        """Take a step with these gradients in place of those that the parameters hold."""
        take = partial(self.inner_optimizer.apply_gradients, params_grads)
        with self._step_hooks(params_grads):
            return self._step_around(take)  # type: ignore[no-any-return]

    @after_backward
    def minimize(self, *args: Any, **kwargs: Any) -> Any:
        """Run the backward pass of a loss, unless that was done already, and take a step.

        Arguments and result are those of `Optimizer.minimize`.
        """
        with self._step_hooks(*args, **kwargs):
            return self._step_around(lambda: self.inner_optimizer.minimize(*args, **kwargs))

    def _step_around(self, take: Callable[[], Any]) -> Any:
        """Let the inner optimizer take a step, act after it, and publish the updates.

        If there is an exception after an update (of a warning as an error, of a closure, by Ctrl-C)
        it is raised when this has acted, too.
        """
        self._require_parameters()
        self.unfinished.finish()
        self._before()
        before = [flat.t[i] for flat, i in self.places]
        heard: list[tuple[list[Update], list[Any]]] | None = None
        early: list[list[Update]] = []
        progress = Progress()

        def listen(who: Any, updates: list[Update]) -> None:
            if heard is not None:
                loss = [who.loss_of_step] if hasattr(who, "loss_of_step") else []
                rows = whole_updates(self.arenas, updates, who.get_lr())
                heard.append((rows, loss))

        try:
            if events.step_taken.audience_of(self):
                heard = []
                with events.step_taken.subscribed(listen, of=self.inner_optimizer):
                    result = take()
                early = [[self._add_to_row(row, None) for row in rows] for rows, _ in heard[:-1]]
            else:
                result = take()
            acted = self._after(self._which_updated(before), progress)
        except BaseException as error:
            if heard is not None:
                events.step_taken.unsubscribe(listen)
            self._act_after(error, before, progress)
            raise
        if heard is not None:
            late = [[self._add_to_row(row, acted) for row in rows] for rows, _ in heard[-1:]]
            for rows, (_, self._published_loss) in zip(early + late, heard, strict=True):
                events.step_taken.publish(self, rows)
            self._published_loss = []
        if events.step_finished.listeners:
            events.step_finished.publish(self)
        return result

    def _act_after(self, error: BaseException, before: list[int], progress: Progress) -> None:
        """Act after a step that an exception has ended, if it has updated a parameter."""
        updated = self._which_updated(before)
        if any(updated) or progress.begun:
            go_on = again(partial(self._after, updated), progress)
            roll_forward(self.unfinished, go_on, error, lambda: progress.begun)

    def _which_updated(self, before: list[int]) -> list[bool]:
        """Return which parameters have had an update since they had these step counts."""
        return [flat.t[i] != t for (flat, i), t in zip(self.places, before, strict=True)]

    # Rates, groups and state --------------------------------------------------------------------

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters with its own settings."""
        self.inner_optimizer.add_param_group(param_group)

    def get_lr(self) -> Any:
        """Return the current learning rate of the inner optimizer."""
        return self.inner_optimizer.get_lr()

    @effect
    def set_lr(self, value: Any) -> None:
        """Set the learning rate of the inner optimizer."""
        self.inner_optimizer.set_lr(value)

    def set_lr_scheduler(self, scheduler: Any) -> None:
        """Set the schedule of the learning rate of the inner optimizer."""
        self.inner_optimizer.set_lr_scheduler(scheduler)

    def state_dict(self) -> dict[str, Any]:
        """Return all that a resumed run needs to be equal to the bit.

        Returns
        -------
        dict
            The wrapper's state of each parameter, by the name of the parameter, and the state of
            the inner optimizer as ``"inner_optimizer"``.
        """
        self.unfinished.finish()
        own = memories_to_state(self._names(), self._memories())
        return {"inner_optimizer": self.inner_optimizer.state_dict(), **own}

    def checked_state(self, state_dict: Mapping[str, Any]) -> Callable[[], None]:
        """Check a state with that of the inner optimizer, and return a function that writes it."""
        check_is_mapping(state_dict)
        given = renamed(state_dict, self._names())
        faults = []
        try:
            write_inner = self.inner_optimizer.checked_state(given.pop("inner_optimizer"))
        except KeyError:
            faults.append("inner_optimizer is missing")
        except (TypeError, ValueError) as error:
            faults.append(f"inner_optimizer: {error}")
        memories, more = memories_from_state(self._names(), self._memories(), given)
        raise_faults(type(self).__name__, faults + more)

        def write() -> None:
            write_inner()
            self._set_memories(memories)

        return write

    def _names(self) -> list[str]:
        """Return the names of the parameters, in the order of `places`."""
        names = parameter_names(self.groups)
        return [names[id(flat.parameters[i])] for flat, i in self.places]

    @property
    def own_bytes(self) -> int:
        """The bytes of its state beside the slots of the innermost optimizer."""
        own = [value for memory in self._memories() for value in memory.values()]
        inner = getattr(self.inner_optimizer, "own_bytes", 0)
        return int(inner + sum(value.nbytes for value in own if hasattr(value, "nbytes")))

    def __repr__(self) -> str:
        values = "".join(f", {name}={value!r}" for name, value in self.own_settings.items())
        return f"{type(self).__name__}({self.inner_optimizer!r}{values})"


def layers_of(optimizer: Any) -> tuple[Any, list[Wrapper]]:
    """Return the innermost optimizer and the wrappers around it, the inner ones first."""
    layers = []
    while isinstance(optimizer, Wrapper):
        layers.append(optimizer)
        optimizer = optimizer.inner_optimizer
    return optimizer, layers[::-1]


def _class_names(optimizer: Any) -> str:
    """Return the classes of an optimizer and of those inside it, as ``"LookAhead(Adam)"``."""
    if isinstance(optimizer, Wrapper):
        return f"{type(optimizer).__name__}({_class_names(optimizer.inner_optimizer)})"
    return type(optimizer).__name__


def free_name(name: str, taken: Iterable[str]) -> str:
    """Return a name that is not taken; nested wrappers have slots slow, slow2, ..."""
    taken = set(taken)
    found, count = name, 2
    while found in taken:
        found, count = f"{name}{count}", count + 1
    return found


def concatenate_flat(arrays: list[Any]) -> Any:
    """Return arrays concatenated into a new flat array."""
    return np.concatenate([array.reshape(-1) for array in arrays])


def _check_inner(who: str, inner: Any) -> None:
    """Raise TypeError if the inner optimizer is none."""
    if isinstance(inner, Optimizer):
        return
    if isinstance(inner, type) and issubclass(inner, Optimizer):
        raise TypeError(
            f"{who} wraps an optimizer, not a class: write {inner.__name__}(learning_rate) in "
            f"place of {inner.__name__}."
        )
    raise TypeError(
        f"{who} wraps an optimizer, such as ol.optimizer.SGD(0.1); got {type(inner).__name__}."
    )
