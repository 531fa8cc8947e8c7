"""The base class of all optimizers.

A rule is a class with its hyper-parameters, its slots, its scalars of step t and its update,
written as in the paper. The base class does everything else: groups, state, the order clip,
regularize, update, write, and running the rule over many parameters at once.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from optlab.autograd.tensor.tensor import Tensor
from optlab.backend import events
from optlab.backend.call_recorder import here, refuse_step_hooks
from optlab.backend.random import Key, next_key
from optlab.optimizer.interface import Interface
from optlab.optimizer.params.groups import Group, check_not_empty, make_groups
from optlab.optimizer.params.labels import Asked
from optlab.optimizer.params.names import check_slot_names
from optlab.optimizer.regularizer import as_regularizer
from optlab.optimizer.rule.declaration import check_class, is_built_in
from optlab.optimizer.rule.formula import FormulaOfDocstring
from optlab.optimizer.rule.hyperparameters import (
    COMMON,
    Signature,
    by_name,
    checked_name,
    is_schedule,
    read_arguments,
)
from optlab.optimizer.state_dict import Stateful
from optlab.optimizer.step import bound, functional, functional_rule
from optlab.optimizer.step.roll_forward import Unfinished
from optlab.optimizer.step.step import take_step

#: Policies for gradients that hold infinities or NaN.
POLICIES = ("pass", "skip", "raise")


_ALIASES_OF_RATE = ("lr", "learning_rate")


def how_to_set(cls: type, name: str) -> str:
    """Return how a setting is changed, for the error of setting it as an attribute."""
    if name in _ALIASES_OF_RATE:
        return f"the rate of {cls.__name__} is set by set_lr(value) or set_lr_scheduler(schedule)."
    return (
        f"{name} of {cls.__name__} is given when the optimizer is made, or in a group of "
        "parameters; make a new one, and give it the state of this: "
        "new.set_state_dict(old.state_dict())."
    )


def no_closure(owner: str, given: Any) -> str:
    """Return the message for a `step` that was given a closure."""
    what = "a function" if callable(given) else f"a {type(given).__name__}"
    return (
        f"{owner}.step() takes nothing, but got {what}: only LBFGS takes a closure. The step uses "
        "the gradients that loss.backward() left; optimizer.minimize(loss) does both, backward and "
        "step."
    )


class Optimizer(Interface, Stateful):
    r"""The base class of all optimizers; a subclass is a rule.

    A subclass gives

    ``hyperparameters``
        Names and default values, ``learning_rate`` first. They become the arguments of the class.
        A bool or a whole number as default makes the argument one.
    ``slots``
        The state of every element of a parameter, such as moments: names and start values. No slot
        is called ``t``: in a state dict that is the step count.
    ``scalars(t, h)``, optional
        Python numbers of step t, from the hyper-parameters h. Whole numbers and bools choose
        between forms of the rule: it is captured anew for each of their values.
    ``update(p, g, s, h, c)``
        Parameter, gradient, slots, hyper-parameters and scalars in; the new parameter, a dict of
        new slots and, optionally, a dict of named terms for traces out. Arrays are never changed in
        place.
    ``kind``
        "elementwise" if every element is updated independently: all parameters of a group are then
        updated in one call, as one flat array, in which a norm or a mean would mix them: a rule
        that takes one is refused at its first step.
        "tensor" or "matrix" if the rule needs one parameter at a time, in its own shape.
    ``slots_for(h)``, ``for_parameter(p, h)``, ``check(h)``, optional
        Slots that depend on the settings; settings that depend on the parameter; errors for
        invalid combinations of settings.
    ``by_rows`` or ``applies_by_rows(h)``, optional
        True if rows without a gradient keep their values and slots, so that a row-sparse gradient
        is applied to its rows alone.
    ``draws``, optional
        True gives the rule a random key of the step and the parameter, as ``c.key``:
        ``c.key.generator()`` is a NumPy generator, the same in every run from the same seed. Cast
        what it draws: ``c.key.generator().standard_normal(p.shape).astype(p.dtype)``. A rule that
        draws has ``kind = "tensor"``.
    ``separate_decay``, optional
        True keeps the decay out of the gradient: the rule gets that of the penalty, or None, as
        ``c.decay``.
    ``ranges``, optional
        Allowed values: name to (lowest, highest), the highest excluded.

    Parameters
    ----------
    parameters : sequence of Tensor or of dict, optional
        What to optimize. A dict is a group, ``{"params": [...], ...}``, with its own values of any
        hyper-parameter, ``weight_decay`` or ``grad_clip``; its ``learning_rate`` multiplies the
        optimizer's. Without parameters the optimizer is a template, which `bind` copies.
    weight_decay : float or Regularizer, optional
        A number c means ``L2Decay(c)``.
    grad_clip : ClipGradByValue, ClipGradByNorm or ClipGradByGlobalNorm, optional
        Clips the raw gradients of a group before decay is added.
    name : str, optional
        Its name in traces and tables.
    multi_precision : bool
        Update float16 and bfloat16 parameters through a float32 copy, which keeps changes that are
        too small for 16 bits. Slots of such parameters are float32 in either case.
    not_finite : {"pass", "skip", "raise"}
        What `step` does if a raw gradient holds infinities or NaN, or if a parameter or a slot that
        is finite would no longer be: use them, leave everything unchanged, or raise
        FloatingPointError (everything is unchanged then, too). What is written is looked at before:
        large steps are tried first, block by block, which takes as long as the step.
        ``optimizer.skipped`` counts the steps that "skip" left out. The members of an ensemble take
        every step together: for them there is no "skip".

    Examples
    --------
    An optimizer of one's own:

    >>> import numpy as np
    >>> import optlab as ol
    >>> class SignDescent(ol.optimizer.Optimizer):
    ...     hyperparameters = {"learning_rate": 0.1}
    ...     def update(self, p, g, s, h, c):
    ...         step = h.learning_rate * np.sign(g)
    ...         return p - step, {}, {"update": -step}
    >>> w = ol.Parameter([1.0, -2.0])
    >>> optimizer = SignDescent(parameters=[w])
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.numpy()
    array([ 0.9, -1.9], dtype=float32)
    """

    hyperparameters: ClassVar[dict[str, Any]] = {"learning_rate": 0.001}
    slots: ClassVar[dict[str, float]] = {}
    kind: ClassVar[str] = "elementwise"
    by_rows: ClassVar[bool] = False
    draws: ClassVar[bool] = False
    separate_decay: ClassVar[bool] = False
    ranges: ClassVar[dict[str, tuple[float, float]]] = {}
    #: The arguments by position, where the documents have another order than the settings.
    positional: ClassVar[tuple[str, ...]] = ()
    #: Arguments, True or False, that change nothing but the speed where they are documented: they
    #: are accepted and ignored, as a step is as fast with either.
    ignored_options: ClassVar[tuple[str, ...]] = ()

    #: Whether the class is one of optlab's own.
    built_in: ClassVar[bool] = True
    #: Whether `verify_elementwise` has seen the rule, at its first application, or need not.
    elementwise_verified = True
    #: Whether the class overrides `step`.
    custom_step: ClassVar[bool] = False
    #: The formula of the update, from the docstring; a notebook renders it.
    formula = FormulaOfDocstring()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.kind not in ("elementwise", "tensor", "matrix"):
            raise ValueError(
                f"{cls.__name__}.kind must be 'elementwise', 'tensor' or 'matrix'; "
                f"got {cls.kind!r}."
            )
        check_class(cls)
        check_slot_names(cls.__name__, cls.slots)
        cls.custom_step = cls.step is not Optimizer.step
        cls.built_in = is_built_in(cls)
        cls.elementwise_verified = is_built_in(cls.update)
        cls.__signature__ = Signature(cls)  # type: ignore[attr-defined]

    def __init__(self, *values: Any, **named: Any) -> None:
        cls = type(self)
        named = by_name(cls, values, named)
        common = {
            key: named.pop(key) if key in named else default
            for key, default in COMMON.items()
            if key not in cls.hyperparameters
        }
        for key in cls.ignored_options:
            if not isinstance(named.pop(key, False), bool):
                raise TypeError(f"{key} of {cls.__name__} must be True or False.")
        rate = named.get("learning_rate")
        self.settings = read_arguments(cls, named)
        self.schedule = rate if is_schedule(rate) else None
        parameters = common.pop("parameters")
        self.name = checked_name(common.pop("name"))
        self._common = common
        if common["not_finite"] not in POLICIES:
            raise ValueError(
                f"not_finite must be one of {', '.join(map(repr, POLICIES))}; "
                f"got {common['not_finite']!r}."
            )
        self.groups: list[Group] = []
        self.key: Key | None = None
        #: The captured forms of the rule, by dtype and settings.
        self.plans: dict[Any, Any] = {}
        #: The number of steps that ``not_finite="skip"`` left out.
        self.skipped = 0
        #: What an exception has left to write of a step; see `optlab.optimizer.step.roll_forward`.
        self.unfinished = Unfinished()
        #: The calls of a step of small parameters, and the steps until they are bound.
        self.bound_step: Any = None
        self.steps_until_bound = bound.AFTER
        #: The usage warnings given so far, or counts for them.
        self.warned: dict[str, int] = {}
        #: Why the rule is not captured, by the dtype of the parameters; see `execution`.
        self.refused: dict[Any, str] = {}
        # The settings of a template are checked now, not when it is bound.
        make_groups(self, [{"params": []}])
        if parameters is not None:
            self._bind(parameters)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _ALIASES_OF_RATE or (
            name in type(self).hyperparameters or (name in COMMON and name != "name")
        ):
            raise AttributeError(how_to_set(type(self), name))
        super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        known = {
            "param_groups": "groups", "defaults": "settings", "state": "state_dict()",
            "_param_groups": "groups", "_parameter_list": "parameters",
            "_learning_rate": "schedule",
        }  # fmt: skip
        hint = f"; write .{known[name]}" if name in known else ""
        if name in _ALIASES_OF_RATE:
            hint = "; write .get_lr()"
        elif name in type(self).hyperparameters:
            hint = f"; write .settings[{name!r}]"
        raise AttributeError(
            f"{type(self).__name__!r} object has no attribute {name!r}{hint}", name=name, obj=None
        )

    # What a rule declares -----------------------------------------------------------------------

    def scalars(self, t: int, h: Any) -> dict[str, Any]:
        """Return scalars that depend only on the step count and the hyper-parameters."""
        return {}

    def update(self, p: Any, g: Any, s: Any, h: Any, c: Any) -> Any:
        """Return the new parameter, new slots and named terms. Subclasses override this."""
        raise NotImplementedError(
            f"{type(self).__name__} has no update(self, p, g, s, h, c) method; it returns the new "
            "parameter, a dict of new slots and a dict of named terms."
        )

    def check(self, h: Any) -> None:
        """Validate combinations of hyper-parameters. Subclasses override this."""

    def slots_for(self, h: Any) -> dict[str, float]:
        """Return the slots for these hyper-parameters. Subclasses with options override this."""
        return self.slots

    def for_parameter(self, parameter: Any, h: Any) -> dict[str, Any]:
        """Return hyper-parameters that differ for this parameter; "learning_rate" is a factor."""
        return {}

    def _idle_rules(self, asked: Sequence[Asked]) -> Iterable[tuple[str, str, list[Asked]]]:
        """Return the settings that choose parameters by name, but in vain, and what they do."""
        return ()

    def applies_by_rows(self, h: Any) -> bool:
        """Return whether rows without a gradient stay unchanged, and so need no update."""
        return self.by_rows

    # Parameters ---------------------------------------------------------------------------------

    @property
    def is_template(self) -> bool:
        """Whether it has no parameters yet."""
        return not self.groups

    @property
    def not_finite(self) -> str:
        """The policy for gradients that are not finite: "pass", "skip" or "raise"."""
        return self._common["not_finite"]  # type: ignore[no-any-return]

    @property
    def decay_and_clip(self) -> tuple[Any, Any]:
        """The regularizer and the gradient clip of parameters without their own."""
        return as_regularizer(self._common.get("weight_decay")), self._common["grad_clip"]

    @property
    def parameters(self) -> list[Tensor]:
        """All parameters, group after group."""
        return [p for group in self.groups for p in group.parameters]

    def bind(self, parameters: Any) -> Optimizer:
        """Return a new optimizer with the same settings for `parameters`.

        A schedule is copied, too: each optimizer has its own.

        Examples
        --------
        >>> import optlab as ol
        >>> template = ol.optimizer.SGD(0.1)
        >>> template.bind([ol.Parameter([1.0])])
        SGD(learning_rate=0.1), 1 parameter of 1 element
        """
        fresh = copy.copy(self)
        fresh.settings = dict(self.settings)
        fresh.schedule = copy.deepcopy(self.schedule)
        fresh.groups = []
        fresh.plans = {}
        fresh.refused = {}
        fresh.skipped, fresh.warned, fresh.unfinished = 0, {}, Unfinished()
        fresh.bound_step, fresh.steps_until_bound = None, bound.AFTER
        fresh._adopt_step_hooks(self)
        vars(fresh).pop("elementwise_verified", None)
        fresh._bind(parameters)
        return fresh

    def __getstate__(self) -> dict[str, Any]:
        self.unfinished.finish()
        # Captured again when needed.
        return self._without_step_hooks() | {"plans": {}, "refused": {}, "bound_step": None}

    def layers(self) -> list[Any]:
        """Return the wrappers around the innermost optimizer, the inner ones first: none here."""
        return []

    def _bind(self, parameters: Any) -> None:
        self.groups = check_not_empty(make_groups(self, parameters))
        if self.draws:
            self.key = next_key()

    # The step -----------------------------------------------------------------------------------

    def step(self, closure: None = None) -> None:
        """Update every parameter that has a gradient.

        Clip the raw gradients of each group, add the decay, apply the rule, write. Parameters
        without a gradient are skipped: their value, slots and step count stay as they are.
        The first step that finds no gradient at all warns, and so does the tenth at a rate of 0
        whose schedule was never stepped.

        Parameters
        ----------
        closure : None
            Only `LBFGS` takes one.

        Raises
        ------
        RuntimeError
            If the optimizer is a template without parameters.
        ValueError, TypeError
            If a gradient or a result of the rule does not fit its parameter, or a closure is given.
            Nothing has changed then.
        FloatingPointError
            If a gradient or a result is not finite and the policy is ``not_finite="raise"``.

        Notes
        -----
        A step is taken completely or not at all: if an exception comes while it is written, such as
        KeyboardInterrupt by Ctrl-C, it is raised when all is written.
        """
        if here.recorder is not None:
            refuse_step_hooks(self)
            here.recorder.effect(Optimizer.step, (self,), {})
            return
        if closure is not None:
            raise TypeError(no_closure(type(self).__name__, closure))
        self._require_parameters()
        if self._step_pre_hooks or self._step_post_hooks:
            with self._step_hooks():
                take_step(self)
        else:
            take_step(self)
        for listener in events.step_finished.listeners:  # as `publish` does, without its call
            listener(self)

    def _step_for_replay(self) -> Any:
        """Return the step that a captured call may take, None if there is none.

        It has memory into which the call writes gradients; see `optlab.plan.calls.bound_program`.
        """
        return bound.step_with_memory_for_gradients(self)

    @functional.hyperparameters_by_name
    def functional_init(self, parameters: Any, /, **hyperparameters: Any) -> dict[str, Any]:
        """Return the state before the first `functional_step`.

        Parameters
        ----------
        parameters : array or Tensor, or a list, tuple or dict of them, nested too
        **hyperparameters
            In place of the optimizer's own. They matter where slots begin at one, as those of
            `Adagrad` at ``initial_accumulator_value``.

        Returns
        -------
        dict
            Step counts, slots, and what else a resumed run needs (a random key, float32 copies,
            slow weights, averages): a dict of containers like `parameters`, of arrays and Python
            numbers, which ``ol.save`` writes.
        """
        return functional.functional_init(self, parameters, hyperparameters)

    @functional.hyperparameters_by_name
    def functional_step(
        self, parameters: Any, gradients: Any, state: Any, /, **hyperparameters: Any
    ) -> tuple[Any, dict[str, Any]]:
        """Return the parameters and the state after a step; change nothing.

        The numbers are those of `step` to the bit: gradients are clipped, decay is added, the rule
        is applied. As a function it can be differentiated (by the parameters, the gradients and
        any hyper-parameter that is a Tensor), vectorized and composed with the transforms.

        Parameters
        ----------
        parameters : array or Tensor, or a list, tuple or dict of them, nested too
            With an optimizer that has parameters, they correspond to these by position in a list,
            and by name in a dict (``"0.weight"`` of `named_parameters`, or ``"linear_0.w_0"``);
            groups and the settings of each parameter count. Other keys are taken in their order
            if all parameters are updated alike, and else refused. With a template all have the
            same settings, and what is excluded by name is told by the keys of the dict.
        gradients
            Built like the parameters; None skips one.
        state : dict
            From `functional_init` or the last step.
        **hyperparameters : float or Tensor
            In place of the optimizer's own, in all groups: any of the rule, ``weight_decay``,
            ``grad_clip``, and those of a wrapper. The ``learning_rate`` is multiplied by the
            factors of groups and parameters, as always. With a schedule it must be given.

        Returns
        -------
        parameters, state
            The parameters in the same containers: arrays for arrays, Tensors for Tensors and where
            something is differentiated.

        Raises
        ------
        TypeError, ValueError
            If something does not fit, or a hyper-parameter is unknown or out of range.

        Examples
        --------
        The slope of a loss after ten steps by the learning rate:

        >>> import numpy as np
        >>> import optlab as ol
        >>> adam = ol.optimizer.Adam()
        >>> def loss(w):
        ...     return np.sum((w - 3) ** 2)
        >>> def final(rate):
        ...     w = np.zeros(2)
        ...     state = adam.functional_init(w)
        ...     for _ in range(10):
        ...         w, state = adam.functional_step(w, ol.grad(loss)(w), state, learning_rate=rate)
        ...     return loss(w)
        >>> round(float(ol.grad(final)(0.1)), 3)
        -77.955
        """
        return functional.functional_step(self, parameters, gradients, state, hyperparameters)

    def _functional_start(self, leaves: Any, values: list[Any], named: Any) -> dict[str, Any]:
        """Return the state of a functional step before the first one."""
        return functional_rule.rule_start(self, leaves, values, named)

    def _functional_take(
        self, leaves: Any, values: list[Any], gradients: list[Any], state: Any, named: Any
    ) -> tuple[list[Any], dict[str, Any], list[bool]]:
        """Return new values, the new state, and which values have moved."""
        return functional_rule.rule_take(self, leaves, values, gradients, state, named)

    @property
    def execution(self) -> dict[str, str]:
        """How the rule runs over each array of parameters, captured or as it is written, and why.

        Examples
        --------
        >>> import optlab as ol
        >>> w = ol.Parameter(ol.zeros([10_000]))
        >>> optimizer = ol.optimizer.SGD(0.1, parameters=[w])
        >>> w.sum().backward()
        >>> optimizer.step()
        >>> optimizer.execution
        {'group 0, float32': 'captured, in place and block by block...'}
        """
        from optlab.optimizer.step.execution import execution

        return execution(self)

    def _repr_html_(self) -> str:
        from optlab.optimizer.display import optimizer_page

        return optimizer_page(self)
