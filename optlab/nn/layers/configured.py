"""Layers that are a function with settings: their constructor, call, ``repr`` and docstring."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, dataclass_transform

from optlab.backend.foreign_arguments import hint
from optlab.backend.wrong_arguments import unknown_argument
from optlab.nn.base.layer import Layer
from optlab.nn.docstrings import Entry, complete_docstring
from optlab.nn.functional.arguments import REDUCTIONS, check_reduction

_NAME = {"name": Entry("str, optional", "    Shown by ``repr``.")}


class _ConstructorSignature:
    """Descriptor of the signature of a class, built when it is read."""

    def __get__(self, instance: Any, owner: Any) -> inspect.Signature:
        if instance is not None or owner.__init__ is not Configured.__init__:
            raise AttributeError("__signature__")  # inspect then falls back to __init__
        own = inspect.Parameter.POSITIONAL_OR_KEYWORD
        return inspect.Signature(
            [
                inspect.Parameter(name, own, default=default, annotation=annotation)
                for name, (default, annotation) in owner._settings.items()
            ],
            return_annotation="None",
        )


def _setting_text(value: Any) -> str:
    """Return a setting as text; of an array, its type and shape."""
    if hasattr(value, "__array_function__"):
        return f"<{type(value).__name__} of shape {value.shape}>"
    return getattr(value, "__name__", None) or repr(value)


@dataclass_transform()
class Configured(Layer):
    """A function with settings, as a layer.

    A subclass names the function, and declares its settings as attributes: these are the arguments
    of the constructor, and are passed to the function by name. Settings are inherited; declaring
    one again changes its default. A class without a function, as a base class or with a `forward`
    of its own, says ``settings=True``. Arguments that the docstring of the class does not document
    are documented by that of the function.

    Examples
    --------
    >>> import optlab as ol
    >>> class Root(Unary, function=lambda x, degree, shift: (x + shift) ** (1 / degree)):
    ...     degree: int
    ...     shift: float = 0.0
    ...     name: str | None = None
    >>> layer = Root(3, shift=1.0)
    >>> layer, layer(ol.to_tensor([7.0]))
    (Root(degree=3, shift=1.0), Tensor([2.], dtype=float32))
    """

    #: The function that the layer calls.
    _function: ClassVar[Callable[..., Any]]
    #: The settings: their defaults and annotations.
    _settings: ClassVar[dict[str, tuple[Any, Any]]] = {}
    #: The settings that are passed to the function: all but the name.
    _passed: ClassVar[tuple[str, ...]] = ()

    __signature__ = _ConstructorSignature()

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def __init_subclass__(
        cls, function: Callable[..., Any] | None = None, settings: bool = False, **options: Any
    ) -> None:
        super().__init_subclass__(**options)
        if function is None and not settings:
            return  # a class of the user, with a constructor of its own
        if function is not None:
            cls._function = staticmethod(inspect.unwrap(function))  # its settings are known here
        own = inspect.get_annotations(cls)
        cls._settings = dict(cls._settings)
        for name, annotation in own.items():
            if not name.startswith("_"):
                cls._settings[name] = (vars(cls).get(name, inspect.Parameter.empty), annotation)
        cls._passed = tuple(name for name in cls._settings if name != "name")
        complete_docstring(cls, function, _NAME)

    def __init__(self, *values: Any, **named: Any) -> None:
        super().__init__()
        for name, value in self._read(values, named).items():
            setattr(self, name, value)
        self._check()

    @classmethod
    def _read(cls, values: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
        """Return the settings by name; raise for wrong arguments."""
        known = cls._settings
        call = f"{cls.__name__}({', '.join(known)})"
        if len(values) > len(known):
            raise TypeError(f"{call} takes {len(known)} at most; got {len(values)}.")
        given = dict(zip(known, values, strict=False))
        for name, value in named.items():
            if name not in known:
                raise TypeError(
                    unknown_argument(cls.__name__, name, known, hint=hint(name, value, known))
                )
            if name in given:
                raise TypeError(f"{call} got {name} twice: by position and by name.")
            given[name] = value
        settings = {name: given.get(name, default) for name, (default, _) in known.items()}
        missing = [name for name, value in settings.items() if value is inspect.Parameter.empty]
        if missing:
            raise TypeError(f"{call} needs {', '.join(missing)}.")
        return settings

    def _check(self) -> None:
        """Validate the settings. Subclasses override this."""

    def _call_function(self, *inputs: Any, **options: Any) -> Any:
        """Call the function with the current settings."""
        for name in self._passed:
            options[name] = getattr(self, name)
        return type(self)._function(*inputs, **options)

    def extra_repr(self) -> str:
        """Return the settings that differ from their defaults."""
        return ", ".join(
            f"{name}={_setting_text(value)}"
            for name, (default, _) in self._settings.items()
            if _setting_text(value := getattr(self, name)) != _setting_text(default)
        )


class Unary(Configured):
    """A function of one array with settings, as a layer."""

    def forward(self, x: Any) -> Any:
        """Apply the function to `x`."""
        return self._call_function(x) if self._passed else type(self)._function(x)


class Loss(Configured):
    """A loss with settings, as a layer."""

    #: Reductions of the function.
    _reductions: ClassVar[tuple[str, ...]] = REDUCTIONS

    def _check(self) -> None:
        check_reduction(self.reduction, self._reductions)


class LabelLoss(Loss):
    """A loss of an input and a label, as a layer."""

    def forward(self, input: Any, label: Any) -> Any:
        """Compute the loss."""
        return self._call_function(input, label)
