"""The explorer: every term of every step, live."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Mapping
from typing import Any

from optlab import optimizer as library
from optlab.backend.namespaces import nearest
from optlab.backend.text import unique_lines
from optlab.lab.compare import Comparison
from optlab.lab.problems.lookup import NAMED, find
from optlab.lab.problems.networks import Network, digits_mlp
from optlab.lab.problems.surface import Surface
from optlab.lab.templates import checked_templates, named_optimizers
from optlab.optimizer import LookAhead, ModelAverage, Optimizer
from optlab.optimizer.wrappers.average import Average
from optlab.viz.explorer.presets import FOUR
from optlab.viz.explorer.recorded import are_recorded, recorded_runs, trained
from optlab.viz.explorer.state import (
    MOST_OPTIMIZERS,
    OWN,
    Entry,
    State,
    entry_of,
    optimizer_classes,
    preset_state,
    usual_template,
)
from optlab.viz.explorer.widget import Explorer
from optlab.viz.style.labels import labeled

__all__ = ["Entry", "Explorer", "State", "explore"]


def explore(
    problem: Any = None,
    optimizers: Any = None,
    *,
    start: Any = None,
    steps: int | None = None,
    seed: int = 0,
) -> Explorer:
    """Explore optimizers on a problem: a map, series, and every number of every step, live.

    Parameters
    ----------
    problem : Surface, Network, str, callable, Comparison, Trace or Training, optional
        A surface that `optlab.compare` accepts (its name, a formula as text, a function
        ``f(x, y)``, ``f(p)`` or ``f(x)``), or the result of a comparison. By default the
        Rosenbrock valley. A network, such as "digits_mlp", is trained by each optimizer. A
        recorded run of a real model, or a list or dict of them, is shown as it was: a trace, or a
        `Training` of a recipe, whose loss is drawn under the path. The map is the plane in which
        the runs move most (with the probe `Snapshots`), coordinates are the norms of layers (with
        `Norms`).
    optimizers : dict of str to Optimizer, list of Optimizer, Optimizer or list of str, optional
        Templates, which start at their own rates, or names of classes, which start at their best
        rates. On a surface their rates are constant, and one LookAhead, EMA or ModelAverage may be
        around them; a network is trained by any. By default SGD, Momentum, RMSProp and Adam; where
        nothing at all is given, the example "valley" (preset "narrow valley"): Momentum and Adam.
    start : one or two numbers, optional
        By default the start of the problem.
    steps : int, optional
        Updates per run, from 1 to 2000; by default 300 (of a network 200), or as in the comparison.
    seed : int
        Seed of the noise of a noisy problem.

    Returns
    -------
    Explorer
        A widget, which displays itself on the last line of a cell. `Explorer.change` does in Python
        what the mouse does; `Explorer.to_html` and `Explorer.to_png` write files.

    Raises
    ------
    TypeError, ValueError
        If the problem cannot be evaluated at its start, or an argument is invalid.

    Examples
    --------
    >>> import optlab as ol
    >>> explorer = ol.explore(lambda x, y: x**2 + 3 * y**2, ["SGD", "Adam"])
    >>> explorer.change(step=5).what_happened("SGD")[0]
    ('−gradient', '0.5184')
    """
    state = State(seed=seed)
    own: dict[str, Optimizer] = {}
    given: Any = None
    if isinstance(problem, Comparison):
        optimizers = problem.optimizers if optimizers is None else optimizers
        state.steps, state.seed = problem.steps, problem.seed
        if problem.problem.kind == "network":
            problem = labeled(problem)
            state.problem, given = problem.problem.name, problem
        else:
            start = problem.start if start is None else start
            problem = problem.problem
    if are_recorded(problem) or is_network(problem):
        if are_recorded(problem):
            recorded = recorded_runs(problem)
        else:
            network = find(problem)
            assert isinstance(network, Network)
            chosen: Any = list(FOUR) if optimizers is None else _named(optimizers, rates=True)
            if isinstance(chosen, Mapping):  # errors come before any run
                chosen = checked_templates(chosen, "explore")
                _check_count(chosen)
            else:
                _check_names(chosen, list(optimizer_classes()))
            recorded = trained(network, chosen, 200 if steps is None else steps, seed)
        state.problem, state.seed, given = recorded.problem.name, recorded.seed, recorded
        optimizers, steps = recorded.optimizers, recorded.steps
    if given is None:
        if problem is None and optimizers is None and start is None and steps is None:
            state = preset_state("narrow valley", state)
            state.step = 0
        else:
            found = find("rosenbrock" if problem is None else problem)
            assert isinstance(found, Surface)
            if found.dimension > 2:
                raise TypeError(
                    f"{found.title} takes {found.dimension} numbers: no map shows them. Run it "
                    "with ol.compare, which draws its losses."
                )
            if (many := _count(start)) > 2:
                raise ValueError(
                    f"the explorer draws functions of one or two numbers; the start has {many}. "
                    "ol.compare takes any number of them: ol.compare(problem, ..., start=...)."
                )
            named = next((name for name, known in NAMED.items() if known is found), None)
            if named is None and problem == "quadratic":
                named = "quadratic"
            if named is None and isinstance(problem, str):
                named = problem  # a formula: the state says all of it
            state.problem = named or OWN
            given = found
            if start is not None:
                state.start = list(found.checked_start(start))
            elif (defined := found.nearest_defined()) != found.start:
                state.start = list(defined)
    if steps is not None:
        state.steps = steps
    if not state.optimizers:
        state.optimizers, own = _entries(optimizers)
        if any(entry.rate is not None for entry in state.optimizers):
            state.mode = "custom"
    return Explorer(state, given, own)


def is_network(problem: Any) -> bool:
    """Return whether a problem is a network, or the name of one."""
    if isinstance(problem, str):
        named = NAMED.get(problem.lower().replace("-", "_").replace(" ", "_"))
        return named is not None and isinstance(find(named), Network)
    return isinstance(problem, Network) or problem is digits_mlp


def _count(start: Any) -> int:
    """Return how many numbers a start has; 0 where that is not known."""
    try:
        return len(start)
    except TypeError:
        return 0


def _entries(optimizers: Any) -> tuple[list[Entry], dict[str, Optimizer]]:
    """Convert the argument `optimizers` to entries and templates."""
    optimizers = list(FOUR) if optimizers is None else _named(optimizers, rates=False)
    classes = optimizer_classes()
    if isinstance(optimizers, Mapping):
        entries = []
        _check_count(optimizers)  # before many templates are read
        labels = unique_lines(map(str, optimizers))
        for name, template in optimizers.items():
            if not isinstance(template, Optimizer) or not template.is_template:
                raise TypeError(
                    f"{name!r} must be an optimizer made without parameters, such as "
                    f"ol.optimizer.Adam(0.1); got {template!r}."
                )
            if template.schedule is not None:
                raise TypeError(
                    f"{name!r} has the schedule {template.schedule!r}; the explorer's slider sets "
                    "a rate that stays. Draw schedules with optlab.compare(...)."
                )
            rate = float(template.settings["learning_rate"])
            entries.append(entry_of(labels[str(name)], template, rate))
        return entries, {labels[str(name)]: each for name, each in optimizers.items()}
    _check_names(optimizers, list(classes))
    return [entry_of(name, usual_template(classes[name])) for name in optimizers], {}


def _named(optimizers: Any, rates: bool) -> Any:
    """Return one template, or a list of them, as a dict by names; anything else as it is."""
    if isinstance(optimizers, Optimizer):
        return named_optimizers(optimizers, "explore", rates=rates)
    if isinstance(optimizers, Iterable) and not isinstance(optimizers, (str, bytes, Mapping)):
        optimizers = list(optimizers)
        if optimizers and all(isinstance(one, Optimizer) for one in optimizers):
            return named_optimizers(optimizers, "explore", rates=rates)
    return optimizers


def _check_count(optimizers: Mapping[Any, Any]) -> None:
    if len(optimizers) > MOST_OPTIMIZERS:
        State(optimizers=[Entry(str(name), "") for name in optimizers]).check()


def _check_names(optimizers: Any, known: list[str]) -> None:
    """Raise if `optimizers`, which is not a dict, is not a list of known names."""
    what = f"optimizers is a list of names such as {', '.join(FOUR)}, a list of templates such as "
    what += "[ol.optimizer.Adam(0.1)], or a dict of names and templates"
    if isinstance(optimizers, str):
        raise ValueError(f"{what}; got {optimizers!r}. Write [{optimizers!r}].")
    if not isinstance(optimizers, Iterable):
        raise TypeError(f"{what}; got {reprlib.repr(optimizers)}.")
    for one in optimizers:
        if one in known:
            continue
        if not isinstance(one, str):
            kind = type(one).__name__
            hint = f"Names and templates come together in a dict: {{{kind!r}: {kind}(...)}}."
            hint = hint if isinstance(one, Optimizer) else ""
            raise ValueError(f"{what}; got {reprlib.repr(one)} in the list. {hint}".rstrip())
        wrapper = getattr(library, one, None)
        if isinstance(wrapper, type) and issubclass(wrapper, (LookAhead, Average)):
            around = ".around" if issubclass(wrapper, Average) else ""
            more = ", average_window_rate=0.15" if issubclass(wrapper, ModelAverage) else ""
            raise ValueError(
                f"{one} goes around an optimizer, which its name alone does not include. Write "
                f"{{'{one} Adam': ol.optimizer.{one}{around}(ol.optimizer.Adam(0.1){more})}}."
            )
        close = nearest(one, known)
        hint = f" Did you mean {close!r}?" if close else ""
        own = f" An optimizer of your own is given in a dict: {{{one!r}: {one}(0.01)}}."
        own = own if not close and one.isidentifier() else ""
        raise ValueError(f"there is no optimizer {one!r}; there are {', '.join(known)}.{hint}{own}")
