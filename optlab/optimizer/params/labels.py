"""Names of parameters in messages, and for the predicates that tell parameters apart by name."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from optlab.backend.user_frames import stack_level_outside

_MOST_LISTED = 4


def label_of(p: Any, otherwise: Any = "a parameter") -> Any:
    """Return what a message calls a parameter: its name in states, else its own, else `otherwise`.

    Examples
    --------
    >>> import optlab as ol
    >>> label_of(ol.Parameter([1.0], name="w")), label_of(ol.ones([1]))
    ('w', 'a parameter')
    """
    return getattr(p, "structural_name", None) or getattr(p, "name", None) or otherwise


def names_of(p: Any) -> Iterator[str]:
    """Yield the names by which a parameter may be given: its own, and that in states."""
    for name in (getattr(p, "name", None), getattr(p, "structural_name", None)):
        if name:
            yield name


class Unnamed:
    """A Tensor or array without a name, as a predicate sees it: with an empty ``name``.

    Examples
    --------
    >>> import optlab as ol
    >>> seen = as_named(ol.ones([2, 3]))
    >>> seen.name.endswith(".b_0"), seen.shape
    (False, (2, 3))
    """

    name = ""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __getattr__(self, attribute: str) -> Any:
        if attribute == "_array":  # of a copy that is not filled yet
            raise AttributeError(attribute)
        return getattr(self._array, attribute)

    def __repr__(self) -> str:
        return repr(self._array)


def as_named(p: Any) -> Any:
    """Return a parameter as a predicate gets it, certainly with a ``name``."""
    return p if isinstance(getattr(p, "name", None), str) else Unnamed(p)


def tells_structural_names_apart(choose: Callable[[str], Any], parameters: Iterable[Any]) -> bool:
    """Return whether a predicate of names tells the structural names of parameters apart.

    Examples
    --------
    >>> import optlab as ol
    >>> model = ol.nn.Linear(2, 1)
    >>> tells_structural_names_apart(lambda name: "bias" not in name, model.parameters())
    True
    """
    try:
        return (
            len({bool(choose(getattr(p, "structural_name", None) or "")) for p in parameters}) > 1
        )
    except Exception:  # noqa: BLE001 - the function is made for other names
        return False


#: A parameter, the hyper-parameters of its group, and the settings of its own.
Asked = tuple[Any, Any, dict[str, Any]]


def by_rule(asked: Iterable[Asked], setting: str) -> Iterator[tuple[Any, list[Asked]]]:
    """Yield the different values of a setting that is not empty, and whom each was asked about."""
    found: dict[int, tuple[Any, list[Asked]]] = {}
    for p, h, own in asked:
        rule = getattr(h, setting)
        if rule is not None and rule not in ([], ()):
            found.setdefault(id(rule), (rule, []))[1].append((p, h, own))
    yield from found.values()


def warn_of_idle_rules(optimizer: Any, asked: Sequence[Asked]) -> None:
    """Warn, once per optimizer, of each rule by names that makes no difference."""
    for setting, does, concerned in optimizer._idle_rules(asked):
        if setting not in optimizer.warned:
            optimizer.warned[setting] = 1
            _warn(optimizer, setting, does, [p for p, *_ in concerned])


def _warn(optimizer: Any, setting: str, does: str, parameters: Sequence[Any]) -> None:
    listed = ", ".join(map(_both_names, parameters[:_MOST_LISTED]))
    more = len(parameters) - _MOST_LISTED
    advice = (
        "These are the keys of the dict of parameters; to choose by the names of a model's "
        "parameters, make the optimizer with parameters=model.parameters()."
        if optimizer.is_template
        else "Layers name their parameters 'linear_0.w_0' (a weight) and 'linear_0.b_0' (a bias), "
        "as in Paddle; other names: weight_attr=ol.ParamAttr(name='...'), or p.name = '...'."
    )
    warnings.warn(
        f"{setting} of this {type(optimizer).__name__} {does}. The names that it gets look like "
        f"this: {listed}{f', and {more} more' if more > 0 else ''}. {advice}",
        UserWarning,
        stacklevel=stack_level_outside("optlab"),
    )


def _both_names(p: Any) -> str:
    """Return the name of a parameter, and that in its model if it is another."""
    name = as_named(p).name
    place = getattr(p, "structural_name", None)
    return repr(name) if place in (None, name) else f"{name!r} (in the model: {place})"
