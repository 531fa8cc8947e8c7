"""State of the explorer: everything that its display depends on, as a short JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import optlab.optimizer as library
from optlab.backend.text import one_line
from optlab.lab import LADDER, ConjugateGradient, Newton, SteepestDescent
from optlab.optimizer import REQUIRED, DGCMomentum, Optimizer
from optlab.optimizer.wrappers import Wrapper, layers_of
from optlab.viz.explorer.presets import PRESETS, AdamWithoutCorrection
from optlab.viz.explorer.wrapping import check_wrapping, wrap_template, wrapping_of

MODES = ("best", "equal", "custom")
TABS = ("loss", "memory", "length", "angle", "plane", "beside")
BESIDE = ("basins", "curvature", "modes", "rates")
VIEWS = ("look", "apart")
MOST_STEPS = 2000
MOST_OPTIMIZERS = 50
"""Each takes 13 runs, and a row of the page."""
SECOND = ("momentum", "beta1", "rho", "decay", "lr_power")
"""The setting of the second slider: the first of these that an optimizer has."""
REFERENCES = (SteepestDescent, ConjugateGradient, Newton)
"""Methods of the textbooks, beside which optimizers are seen."""
OWN = "own"
"""Name of a user's function, which JSON cannot contain: it has to be given again."""


@dataclass
class Entry:
    """One optimizer of the race.

    Attributes
    ----------
    name : str
        Its name in the rows.
    kind : str
        Its class.
    settings : dict
        Its hyper-parameters, without the rate.
    rate : float or None
        The rate chosen by hand; None: the mode decides.
    around : dict
        Its wrapper, such as ``{"kind": "LookAhead", "alpha": 0.5, "k": 5}``; empty: none.
    """

    name: str
    kind: str
    settings: dict[str, Any] = field(default_factory=dict)
    rate: float | None = None
    around: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.name = one_line(str(self.name))


@dataclass
class State:
    """State of the display.

    Attributes
    ----------
    problem : str
        A name that `optlab.problems` knows, or "own".
    start : list of float or None
        None: the start of the problem.
    steps, seed : int
        The same for all optimizers.
    optimizers : list of Entry
    mode : str
        "best": each at the best rate of the ladder; "equal": all at `equal_rate`; "custom": as
        "best", with some rates chosen by hand.
    equal_rate : float or None
        None: the best common rate.
    selected : str
        The name of the optimizer whose slider, arrows and numbers are shown.
    step : int
        The cursor: number of steps taken.
    slot : str
        The quantity of the plot "memory"; empty: the first slot of each optimizer.
    coordinate : int
        The coordinate shown.
    preset : str
        The preset chosen last, if nothing was changed since.
    theme : str
        "auto", "light" or "dark".
    text_size : float
        1 is normal; larger for a projector.
    noise : float or None
        Standard deviation of the noise on every element of the gradient; None: the problem's own.
    tab : str
        The plot beside the map: "loss", "memory", "length", "angle", "plane", all runs, or
        "beside", one of the panels below.
    beside : str
        "basins" of attraction, the "curvature" at a point, the "modes" of a quadratic, or "rates",
        a learning-rate range test.
    view : str
        "look", or "apart": one step taken apart.

    Examples
    --------
    >>> state = State(problem="beale", step=20)
    >>> State.from_json(state.to_json()) == state
    True
    """

    problem: str = "rosenbrock"
    start: list[float] | None = None
    steps: int = 300
    seed: int = 0
    optimizers: list[Entry] = field(default_factory=list)
    mode: str = "best"
    equal_rate: float | None = None
    selected: str = ""
    step: int = 0
    slot: str = ""
    coordinate: int = 0
    preset: str = ""
    theme: str = "auto"
    text_size: float = 1.0
    noise: float | None = None
    tab: str = "loss"
    beside: str = "basins"
    view: str = "look"

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain lists, dicts, numbers and text."""
        return asdict(self)

    def to_json(self) -> str:
        """Convert to JSON, for `from_json`."""
        return json.dumps(self.to_dict(), ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_dict(cls, given: dict[str, Any]) -> State:
        """Build a state from the result of `to_dict`; unknown names are ignored.

        Raises
        ------
        ValueError
            If a value is invalid.
        """
        if not isinstance(given, Mapping):
            raise TypeError(f"a state is a dict, as to_dict gives it; got {type(given).__name__}.")
        known = {f.name for f in fields(cls)}
        values = {name: value for name, value in given.items() if name in known}
        listed = values.pop("optimizers", [])
        _check_count(listed)
        entries = [entry if isinstance(entry, Entry) else Entry(**entry) for entry in listed]
        state = cls(**values, optimizers=entries)
        if state.mode not in MODES:
            raise ValueError(f"mode must be one of {', '.join(MODES)}; got {state.mode!r}.")
        if state.theme not in ("auto", "light", "dark"):
            raise ValueError(f"theme must be auto, light or dark; got {state.theme!r}.")
        if state.tab not in TABS:
            raise ValueError(f"tab must be one of {', '.join(TABS)}; got {state.tab!r}.")
        if state.beside not in BESIDE:
            raise ValueError(f"beside must be one of {', '.join(BESIDE)}; got {state.beside!r}.")
        if state.view not in VIEWS:
            raise ValueError(f"view must be look or apart; got {state.view!r}.")
        state.check()
        return state

    def check(self) -> None:
        """Validate every value.

        Raises
        ------
        ValueError
            If a value is invalid; the message names the first.
        """
        for name, low, high, within in (
            ("step", 0, math.inf, " of at least 0"),
            ("steps", 1, math.inf, f" from 1 to {MOST_STEPS}"),
            ("seed", -math.inf, math.inf, ""), ("coordinate", 0, 1, ", 0 or 1"),
        ):  # fmt: skip
            value = getattr(self, name)
            whole = isinstance(value, int) and not isinstance(value, bool)
            if not (whole and low <= value <= high):
                raise ValueError(f"{name} must be a whole number{within}; got {value!r}.")
        if not (isinstance(self.text_size, (int, float)) and 0.5 <= self.text_size <= 3):
            raise ValueError(f"text_size must be from 0.5 to 3; got {self.text_size!r}.")
        if self.noise is not None and not (
            isinstance(self.noise, (int, float)) and 0 <= self.noise < math.inf
        ):
            raise ValueError(f"noise must be a number of at least 0; got {self.noise!r}.")
        if self.equal_rate is not None and self.equal_rate not in LADDER:
            raise ValueError(
                f"equal_rate must be a rate of the ladder that all have, {LADDER[0]:g}, 0.0002, "
                f"0.0005, ... {LADDER[-1]:g}; got {self.equal_rate!r}."
            )
        _check_count(self.optimizers)
        names = [entry.name for entry in self.optimizers]
        if len(set(names)) < len(names):
            raise ValueError(f"every optimizer needs a name of its own; got {', '.join(names)}.")
        for entry in self.optimizers:
            if entry.rate is not None and not 0 < entry.rate < math.inf:
                raise ValueError(f"the rate of {entry.name} must be above 0; got {entry.rate!r}.")
            check_wrapping(entry.around)

    @classmethod
    def from_json(cls, text: str) -> State:
        """Build a state from the result of `to_json`."""
        return cls.from_dict(json.loads(text))


def _check_count(entries: Any) -> None:
    if len(entries) > MOST_OPTIMIZERS:
        raise ValueError(
            f"the explorer shows up to {MOST_OPTIMIZERS} optimizers at once; got {len(entries):,}. "
            "Many runs of one optimizer are a sweep: ol.sweep(...)."
        )


def optimizer_classes() -> dict[str, type[Optimizer]]:
    """Return the optimizer classes that run on one rank, and the reference methods, by name."""
    found = {
        name: cls
        for name, cls in vars(library).items()
        if isinstance(cls, type)
        and issubclass(cls, Optimizer)
        and cls is not Optimizer
        and not issubclass(cls, (Wrapper, DGCMomentum))
    }
    more = (*REFERENCES, AdamWithoutCorrection)
    return {**found, **{cls.__name__: cls for cls in more}}


def second_setting(settings: Mapping[str, Any]) -> str:
    """Return the setting of the second slider, "" if there is none.

    Examples
    --------
    >>> second_setting({"beta1": 0.9, "beta2": 0.999})
    'beta1'
    """
    return next((name for name in SECOND if type(settings.get(name)) is float), "")


def usual_template(cls: type[Optimizer], settings: Mapping[str, Any] | None = None) -> Optimizer:
    """Build a template with a rate, and usual values of other settings without a default."""
    if getattr(cls, "needs_closure", False):  # quasi-Newton steps are whole ones, with a search
        return cls(**{"line_search_fn": "strong_wolfe", **(settings or {})})
    usual = {
        name: {"learning_rate": 0.01, "momentum": 0.9}[name]
        for name, default in cls.hyperparameters.items()
        if default is REQUIRED or name == "learning_rate"
    }
    return cls(**{**usual, **(settings or {})})


def template_of(entry: Entry, own: dict[str, Optimizer]) -> Optimizer:
    """Build the optimizer that an entry describes.

    Parameters
    ----------
    entry : Entry
    own : dict of str to Optimizer
        Templates given as objects, by name: for classes outside the library, and for settings that
        an entry does not contain (decay and clip).

    Raises
    ------
    ValueError
        If the class is not known.
    TypeError
        If the class has no such setting.
    """
    return wrap_template(_inner_template(entry, own), entry.around)


def _inner_template(entry: Entry, own: dict[str, Optimizer]) -> Optimizer:
    """Build the optimizer of an entry without its wrapper."""
    given = own.get(entry.name)
    if given is not None:
        given, _ = layers_of(given)
    if given is not None and type(given).__name__ == entry.kind:
        decay, clip = given.decay_and_clip
        common = (
            {"grad_clip": clip} if decay is None else {"grad_clip": clip, "weight_decay": decay}
        )
        return type(given)(**{**given.settings, **entry.settings}, **common)
    classes = optimizer_classes()
    if entry.kind not in classes:
        raise ValueError(
            f"there is no optimizer {entry.kind!r} in the library; give it as an object: "
            f"ol.explore(..., {{{entry.name!r}: {entry.kind}(...)}})."
        )
    return usual_template(classes[entry.kind], entry.settings)


def entry_of(name: str, template: Optimizer, rate: float | None = None) -> Entry:
    """Return the entry that describes a template.

    Raises
    ------
    TypeError
        If it is wrapped in a way that the explorer does not support.
    """
    inner, layers = layers_of(template)
    settings = {
        k: v  # JSON cannot contain functions: they remain in the given templates
        for k, v in inner.settings.items()
        if k != "learning_rate" and not callable(v)
    }
    return Entry(name, type(inner).__name__, settings, rate, wrapping_of(name, layers))


def preset_state(name: str, before: State) -> State:
    """Return the state of a preset; theme and text size are kept.

    Raises
    ------
    ValueError
        If there is no such preset.
    """
    if name not in PRESETS:
        raise ValueError(f"there is no preset {name!r}; there are {', '.join(PRESETS)}.")
    preset = PRESETS[name]
    classes = optimizer_classes()
    entries = []
    for label, (kind, settings) in preset.optimizers.items():
        template = usual_template(classes[kind], settings)
        entry = entry_of(label, template, preset.rates.get(label))
        entry.around = dict(preset.around.get(label, {}))
        entries.append(entry)
    return State(
        problem=preset.problem,
        start=None if preset.start is None else list(preset.start),
        steps=preset.steps,
        seed=preset.seed,
        optimizers=entries,
        mode=preset.mode,
        equal_rate=preset.equal_rate,
        selected=preset.selected,
        step=preset.step,
        slot=preset.slot,
        coordinate=preset.coordinate,
        preset=name,
        theme=before.theme,
        text_size=before.text_size,
    )
