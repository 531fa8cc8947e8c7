"""Hooks of layers, which observe or replace inputs, outputs and gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from optlab.autograd.function import Function
from optlab.autograd.tape.grad_mode import recording
from optlab.autograd.tensor.tensor import Tensor

Hook = Callable[..., Any]


class HookHandle:
    """A registered hook, to be removed by `remove` or at the end of a ``with`` block.

    Examples
    --------
    >>> import optlab as ol
    >>> layer = ol.nn.Tanh()
    >>> with layer.register_forward_post_hook(lambda layer, inputs, output: output + 1):
    ...     inside = layer(ol.zeros([1]))
    >>> inside.item(), layer(ol.zeros([1])).item()
    (1.0, 0.0)
    """

    def __init__(self, hooks: list[Any], entry: Any) -> None:
        self._hooks, self._entry = hooks, entry

    def remove(self) -> None:
        """Remove the hook; a second call does nothing."""
        self._hooks[:] = [kept for kept in self._hooks if kept is not self._entry]

    __call__ = remove

    def __enter__(self) -> HookHandle:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


class _Entry:
    """One registration of a hook."""

    __slots__ = ("hook", "with_kwargs")

    def __init__(self, hook: Hook, with_kwargs: bool = False) -> None:
        self.hook, self.with_kwargs = hook, with_kwargs


class Hooks:
    """The hooks of one layer, in the order in which they run."""

    def __init__(self) -> None:
        self.before: list[_Entry] = []
        self.after: list[_Entry] = []
        self.backward: list[_Entry] = []

    def mapped(self, replaced: Callable[[Any], Any]) -> Hooks:
        """Return hooks in the same order, each in place of one of these."""
        made = Hooks()
        for name, entries in vars(self).items():
            new = [_Entry(replaced(entry.hook), entry.with_kwargs) for entry in entries]
            setattr(made, name, new)
        return made

    def run(self, layer: Any, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Call `forward` with all hooks around it."""
        for entry in list(self.before):
            inputs, options = _run_pre_hook(entry, layer, inputs, options)
        call = None
        if self.backward and recording.on:
            call = _ObservedCall(layer, self.backward)
            inputs = call.observe_inputs(inputs)
        output = layer.forward(*inputs, **options)
        if call is not None:
            output = call.observe_output(output)
        for entry in list(self.after):
            given = (inputs, options) if entry.with_kwargs else (inputs,)
            replaced = entry.hook(layer, *given, output)
            output = output if replaced is None else replaced
        return output


def _run_pre_hook(
    entry: _Entry, layer: Any, inputs: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    """Run a forward pre-hook; return the inputs and options for forward."""
    if not entry.with_kwargs:
        replaced = entry.hook(layer, inputs)
        if replaced is None:
            return inputs, options
        return (replaced if isinstance(replaced, tuple) else (replaced,)), options
    replaced = entry.hook(layer, inputs, options)
    if replaced is None:
        return inputs, options
    fits = isinstance(replaced, tuple) and len(replaced) == 2 and isinstance(replaced[1], dict)
    if not fits:
        raise TypeError(
            "a hook with with_kwargs=True returns None or a pair (inputs, keyword arguments); got "
            f"{replaced!r}."
        )
    given, options = replaced
    return (given if isinstance(given, tuple) else (given,)), options


class Hookable:
    """The part of `Layer` that registers hooks."""

    _hooks: Hooks | None = None

    def register_forward_pre_hook(
        self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False
    ) -> HookHandle:
        """Call ``hook(layer, inputs)`` before each forward.

        Parameters
        ----------
        hook : callable
            `inputs` is the tuple of positional inputs. A returned value, or tuple of values,
            replaces them; None leaves them unchanged.
        prepend : bool
            Run it before the hooks registered so far.
        with_kwargs : bool
            Call ``hook(layer, inputs, kwargs)``, which returns None or ``(inputs, kwargs)``.

        Returns
        -------
        HookHandle
            Its ``remove()`` removes the hook.

        Examples
        --------
        >>> import optlab as ol
        >>> layer = ol.nn.ReLU()
        >>> handle = layer.register_forward_pre_hook(lambda layer, inputs: inputs[0] * 2)
        >>> layer(ol.ones([1])).item()
        2.0
        >>> handle.remove()
        """
        return self._register("before", hook, prepend, with_kwargs)

    def register_forward_post_hook(
        self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False
    ) -> HookHandle:
        """Call ``hook(layer, inputs, output)`` after each forward.

        Parameters
        ----------
        hook : callable
            A returned value replaces the output; None leaves it unchanged.
        prepend : bool
            Run it before the hooks registered so far.
        with_kwargs : bool
            Call ``hook(layer, inputs, kwargs, output)``.

        Returns
        -------
        HookHandle
            Its ``remove()`` removes the hook.

        Examples
        --------
        >>> import optlab as ol
        >>> model = ol.nn.Sequential(ol.nn.Tanh(), ol.nn.ReLU())
        >>> shapes = []
        >>> for layer in model:
        ...     handle = layer.register_forward_post_hook(
        ...         lambda layer, inputs, output: shapes.append(output.shape)
        ...     )
        >>> output = model(ol.ones([2, 3]))
        >>> shapes
        [(2, 3), (2, 3)]
        """
        return self._register("after", hook, prepend, with_kwargs)

    def register_backward_hook(self, hook: Hook) -> HookHandle:
        """Call ``hook(layer, grad_input, grad_output)`` after the backward pass of this layer.

        Parameters
        ----------
        hook : callable
            `grad_output` is a tuple with the gradient of each Tensor in the output, in order, also
            of those inside lists, tuples and dicts: zeros if none arrived, None if it requires
            none. `grad_input` has one entry for each positional input: its gradient, or None if it
            is no Tensor or requires none. A returned Tensor, or tuple like `grad_input`, replaces
            it; None leaves it unchanged. Gradients of parameters are not affected: for these use
            `Tensor.register_hook`.

        Returns
        -------
        HookHandle
            Its ``remove()`` removes the hook for later calls of the layer.

        Notes
        -----
        With such a hook, inputs and outputs of the layer are copied.

        Examples
        --------
        >>> import optlab as ol
        >>> layer = ol.nn.Tanh()
        >>> handle = layer.register_backward_hook(
        ...     lambda layer, grad_input, grad_output: print(grad_input, grad_output)
        ... )
        >>> x = ol.to_tensor([0.0], requires_grad=True)
        >>> (layer(x) * 3).sum().backward()
        (Tensor([3.], dtype=float32),) (Tensor([3.], dtype=float32),)
        """
        return self._register("backward", hook, False, False)

    def _register(self, kind: str, hook: Hook, prepend: bool, with_kwargs: bool) -> HookHandle:
        if not callable(hook):
            raise TypeError(f"a hook is a function; got {hook!r}.")
        if self._hooks is None:
            self._hooks = Hooks()
        entries: list[_Entry] = getattr(self._hooks, kind)
        entry = _Entry(hook, with_kwargs)
        entries.insert(0 if prepend else len(entries), entry)
        return HookHandle(entries, entry)


class _ObservedCall:
    """One call of a layer with backward hooks."""

    def __init__(self, layer: Any, hooks: Sequence[_Entry]) -> None:
        self.layer = layer
        self.hooks = list(hooks)
        self.number_of_inputs = 0
        self.observed: list[int] = []
        self.grad_output: tuple[Any, ...] = ()

    def observe_inputs(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        self.number_of_inputs = len(inputs)
        self.observed = [i for i, x in enumerate(inputs) if _needs_gradient(x)]
        if not self.observed:
            return inputs
        through = _ObserveGradients.apply(self.at_inputs, *(inputs[i] for i in self.observed))
        new = dict(zip(self.observed, through, strict=True))
        return tuple(new.get(i, x) for i, x in enumerate(inputs))

    def observe_output(self, output: Any) -> Any:
        found: list[Tensor] = []
        _map_tensors(output, found.append)
        wanted = [i for i, t in enumerate(found) if t.node is not None]
        if not wanted:
            return output

        count = len(found)

        def at_output(grads: tuple[Any, ...]) -> tuple[Any, ...]:
            given = dict(zip(wanted, grads, strict=True))
            return self.at_output(grads, tuple(given.get(i) for i in range(count)))

        through = _ObserveGradients.apply(at_output, *(found[i] for i in wanted))
        new = dict(zip(wanted, through, strict=True))
        rest = iter([new.get(i, t) for i, t in enumerate(found)])
        return _map_tensors(output, lambda t: next(rest))

    def at_output(self, grads: tuple[Any, ...], grad_output: tuple[Any, ...]) -> tuple[Any, ...]:
        self.grad_output = grad_output
        if not self.observed:
            self.run_hooks((None,) * self.number_of_inputs)
        return grads

    def at_inputs(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        found = dict(zip(self.observed, grads, strict=True))
        grad_input = self.run_hooks(tuple(found.get(i) for i in range(self.number_of_inputs)))
        return tuple(grad_input[i] for i in self.observed)

    def run_hooks(self, grad_input: tuple[Any, ...]) -> tuple[Any, ...]:
        """Run the hooks; return `grad_input` as they leave it."""
        for entry in self.hooks:
            replaced = entry.hook(self.layer, grad_input, self.grad_output)
            if replaced is None:
                continue
            replaced = tuple(replaced) if isinstance(replaced, (tuple, list)) else (replaced,)
            if len(replaced) != len(grad_input):
                raise ValueError(
                    f"a backward hook of {type(self.layer).__name__} returned {len(replaced)} "
                    f"gradients for {len(grad_input)} inputs. Return one for each, or None."
                )
            grad_input = tuple(
                old if old is None or new is None else new
                for old, new in zip(grad_input, replaced, strict=True)
            )
        return grad_input


class _ObserveGradients(Function):
    """The identity on Tensors, which passes their gradients through a callback."""

    @staticmethod
    def forward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        callback, *tensors = args
        ctx.callback = callback
        return tuple(Tensor(_copy(t.data)) for t in tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return (None, *ctx.callback(grads))


def _copy(array: Any) -> Any:
    """Copy an array with its memory order, on which the bits of later results depend."""
    return array.copy(order="K") if isinstance(array, np.ndarray) else array.copy()


def _needs_gradient(x: Any) -> bool:
    return isinstance(x, Tensor) and x.node is not None


def _map_tensors(x: Any, new: Callable[[Tensor], Any]) -> Any:
    """Return `x` with `new` applied to each Tensor inside."""
    if isinstance(x, Tensor):
        return new(x)
    if isinstance(x, dict):
        built = x.copy()  # of the same class
        built.update((key, _map_tensors(part, new)) for key, part in x.items())
        return built
    if isinstance(x, (list, tuple)):
        parts = [_map_tensors(part, new) for part in x]
        make: Any = getattr(type(x), "_make", type(x))  # a named tuple
        return make(parts)
    return x
