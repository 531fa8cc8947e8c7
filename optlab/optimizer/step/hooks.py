"""Hooks of an optimizer that run before and after each of its steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from optlab.nn.base.hooks import HookHandle

Hook = Callable[..., Any]


_KINDS = {"_step_pre_hooks", "_step_post_hooks"}


class _Entry:
    """One registration of a hook."""

    __slots__ = ("hook",)

    def __init__(self, hook: Hook) -> None:
        self.hook = hook


class StepHooks:
    """The part of `Optimizer` that registers hooks of its steps."""

    #: Registered hooks, in the order in which they run; empty tuples until there are some.
    _step_pre_hooks: Any = ()
    _step_post_hooks: Any = ()

    def register_step_pre_hook(self, hook: Hook) -> HookHandle:
        """Call ``hook(optimizer, args, kwargs)`` before each step.

        A step is one call of ``step``, ``minimize`` or ``apply_gradients``; the hook sees the
        gradients that are there when it begins, and may change them. `args` and `kwargs` are those
        of the call (the closure of `LBFGS`).

        A plan of `optlab.capture` does not repeat what a hook does: a step with hooks is refused
        there, or runs eagerly with ``strict=False``.

        Parameters
        ----------
        hook : callable
            What it returns is not used.

        Returns
        -------
        HookHandle
            Its ``remove()`` removes the hook.

        Raises
        ------
        TypeError
            If `hook` cannot be called.

        Examples
        --------
        >>> import optlab as ol
        >>> w = ol.Parameter([1.0, 2.0], name="w")
        >>> optimizer = ol.optimizer.SGD(0.1, parameters=[w])
        >>> handle = optimizer.register_step_pre_hook(
        ...     lambda optimizer, args, kwargs: print("gradient", w.grad.numpy())
        ... )
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        gradient [2. 4.]
        >>> handle.remove()
        """
        return self._register_step_hook("_step_pre_hooks", hook)

    def register_step_post_hook(self, hook: Hook) -> HookHandle:
        """Call ``hook(optimizer, args, kwargs)`` after each step.

        Parameters
        ----------
        hook : callable
            As for `register_step_pre_hook`. It is not called after a step that raised.

        Returns
        -------
        HookHandle
            Its ``remove()`` removes the hook.

        Raises
        ------
        TypeError
            If `hook` cannot be called.

        Examples
        --------
        >>> import optlab as ol
        >>> w = ol.Parameter([1.0], name="w")
        >>> optimizer = ol.optimizer.SGD(0.25, parameters=[w])
        >>> with optimizer.register_step_post_hook(lambda *_: print("now", w.numpy())):
        ...     (w * w).sum().backward()
        ...     optimizer.step()
        now [0.5]
        """
        return self._register_step_hook("_step_post_hooks", hook)

    def _register_step_hook(self, kind: str, hook: Hook) -> HookHandle:
        if not callable(hook):
            raise TypeError(
                f"a hook of a step is a function hook(optimizer, args, kwargs); got {hook!r}."
            )
        if kind not in vars(self):
            setattr(self, kind, [])
        entries, entry = vars(self)[kind], _Entry(hook)
        entries.append(entry)
        return HookHandle(entries, entry)

    def _adopt_step_hooks(self, template: Any) -> None:
        """Take over the hooks of a template, in lists of its own."""
        for kind in _KINDS & vars(template).keys():
            setattr(self, kind, list(vars(template)[kind]))

    def _without_step_hooks(self) -> dict[str, Any]:
        """Return the attributes for a pickle or a deep copy: hooks stay with the original."""
        return {name: x for name, x in vars(self).items() if name not in _KINDS}

    @property
    def has_step_hooks(self) -> bool:
        """Whether any hook of its steps is registered."""
        return bool(self._step_pre_hooks or self._step_post_hooks)

    @contextmanager
    def _step_hooks(self, *args: Any, **kwargs: Any) -> Iterator[None]:
        """Run the hooks around a step."""
        for entry in list(self._step_pre_hooks):
            entry.hook(self, args, kwargs)
        yield
        for entry in list(self._step_post_hooks):
            entry.hook(self, args, kwargs)
