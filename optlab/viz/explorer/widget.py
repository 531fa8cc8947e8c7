"""The explorer: requests of the browser, and the interface in Python.

A page computes by itself what was captured (`optlab.viz.explorer.live`), tells the kernel its
state, and asks it for the rest.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Container, Mapping
from pathlib import Path
from typing import Any

import traitlets

from optlab.backend.extras import needed_for
from optlab.backend.text import one_line
from optlab.lab.compare import Comparison
from optlab.lab.problems.lookup import find
from optlab.lab.problems.surface import Surface
from optlab.optimizer import Optimizer
from optlab.viz import browser
from optlab.viz.browser.cell_runs import close_earlier
from optlab.viz.browser.live import LiveWidget
from optlab.viz.explorer import export
from optlab.viz.explorer.live import given_to_page, given_whole_and_small
from optlab.viz.explorer.model import Model, find_problem
from optlab.viz.explorer.state import (
    MOST_STEPS,
    OWN,
    State,
    entry_of,
    optimizer_classes,
    preset_state,
    usual_template,
)
from optlab.viz.explorer.wrapping import as_wrapping
from optlab.viz.style.geometry import Box

_PICTURE = 860


class Explorer(LiveWidget):
    """The explorer; created by `optlab.explore`.

    `change` can do everything that the mouse can.

    Parameters
    ----------
    state : State
    problem : Surface, Comparison of a network, or None
        None: the one that the state names.
    own : mapping of str to Optimizer
        Templates given as objects.
    """

    app = export.APP
    shared_names = ("state",)

    state = traitlets.Dict().tag(sync=True)
    answer = traitlets.Dict().tag(sync=True)

    def __init__(
        self, state: State, problem: Any = None, own: Mapping[str, Optimizer] | None = None
    ) -> None:
        state.check()
        if state.steps > MOST_STEPS and not isinstance(problem, Comparison):
            raise ValueError(f"steps must be from 1 to {MOST_STEPS}; got {state.steps!r}.")
        if not state.optimizers and not isinstance(problem, Comparison):
            raise ValueError("there must be one optimizer at least.")
        self._own_templates = dict(own or {})
        self._own_problem = problem
        problem = find_problem(state, problem) if problem is None else problem
        self._own_surface: Surface | None = None
        self._model: Model | None = self._computed_model(state, problem)
        self._computed = _runs_key(state)
        super().__init__(state=state.to_dict())
        self.options = export.browser_options()
        self._sent: dict[str, Any] | None = None
        self.on_msg(self._on_message)
        close_earlier(self._release)

    @property
    def model(self) -> Model:
        """The model of the display; computed again if the explorer is closed."""
        if self._model is None:
            problem = find_problem(self.now, self._own_problem)
            self._model = self._computed_model(self.now, problem)
        return self._model

    def _computed_model(self, state: State, problem: Any, box: Box | None = None) -> Model:
        """Compute a model, which keeps a function of one's own for the way back to it."""
        model = Model(state, problem, self._own_templates, box)
        if state.problem == OWN:
            self._own_surface = problem
        model.own_surface = self._own_surface
        return model

    def _release(self) -> None:
        """Close the widget and free its memory, when its cell runs again."""
        self._sent = None
        self.close()
        self._model = None

    # Sending ------------------------------------------------------------------------------------

    def stored(self) -> dict[str, Any]:
        """Return what the page holds: the state, options, and what it computes with."""
        model = self._current_model()
        # What is saved with a notebook stays small; a page with a kernel asks for the rest.
        self._sent, small = given_whole_and_small(model, self._own_templates)
        return {"state": model.state.to_dict(), "options": self.options, "given": small}

    def picture(self) -> bytes:
        """Return the picture of the current state."""
        return self.to_png(width=_PICTURE)

    def text(self) -> str:
        """Return the display in words."""
        return self.summary()

    def _publish(self, generation: int = 0) -> None:
        """Send the state, and what pages compute with if that has changed."""
        self.state = self.model.state.to_dict()
        self.answer = {"generation": generation, "error": ""}
        message: dict[str, Any] = {"generation": generation, "error": "", "state": self.state}
        if self._sent is not None:  # a page was made
            given = given_to_page(self.model, self._own_templates)
            if given != self._sent:
                self._sent = message["given"] = given
            self.send(message)

    # Interface ----------------------------------------------------------------------------------

    def change(self, **wanted: Any) -> Explorer:
        """Change anything in the display.

        Parameters
        ----------
        **wanted
            Fields of `optlab.viz.explorer.State` (``step``, ``selected``, ``start``, ``problem``,
            ``steps``, ``seed``, ``mode``, ``slot``, ``coordinate``, ``theme``, ``text_size``);
            ``preset``; ``rate``, a dict of names and rates; ``state``, a whole state as JSON.

        Returns
        -------
        Explorer
            The same object.

        Raises
        ------
        TypeError
            If there is no such field.
        ValueError
            If a value is invalid. Nothing is changed then.

        Examples
        --------
        >>> import optlab as ol
        >>> explorer = ol.explore("beale").change(step=10, rate={"Adam": 0.1})
        >>> explorer.now.mode
        'custom'
        """
        named = wanted.get("problem")
        own = None if named is None or isinstance(named, str) else find(named)
        self._apply(self._updated(self.now, wanted), own=own)
        self._publish()
        return self

    @property
    def now(self) -> State:
        """The current state."""
        return State.from_dict(json.loads(json.dumps(self.state)))

    def to_json(self) -> str:
        """Return the state as a short JSON; ``ol.explore().change(state=...)`` restores it."""
        return self.now.to_json()

    def to_html(self, path: str | Path | None = None, *, library: bool = False) -> str | Path:
        """Return one self-contained HTML page, which needs no kernel.

        Start, rates, hyper-parameters, steps, noise and presets are alive in it.

        Parameters
        ----------
        path : path, optional
            The file to write.
        library : bool
            Whether all elementwise optimizers of the library can be added in the page.

        Returns
        -------
        str or Path
            The page, or its path if it was written to a file.
        """
        model = self._current_model()
        page = export.page(model, self.options, self._own_templates, library=library)
        return browser.save_page(page, path)

    def to_png(self, path: str | Path | None = None, width: int = 1300) -> bytes:
        """Return a PNG image of the current state, drawn by matplotlib.

        Parameters
        ----------
        path : path, optional
            The file to write.
        width : int
            Pixels.
        """
        with needed_for("Explorer.to_png()"):
            from optlab.viz.explorer.image import explorer_png

        content = explorer_png(self._current_model(), width)
        if path is not None:
            Path(path).write_bytes(content)
        return content

    def what_happened(
        self, name: str | None = None, step: int | None = None, coordinate: int | None = None
    ) -> list[tuple[str, str]]:
        """Return a step as rows of the panel; by default the step shown."""
        model = self._current_model()
        state = model.state
        name = state.selected if name is None else _known(name, model.runs)
        if model.network:
            raise ValueError("the steps of a network have too many numbers to write out.")
        runs = model.runs.get(name)
        if runs is None:
            raise ValueError(f"there is no optimizer named {name!r}; there are {list(model.runs)}.")
        ended = int(runs.stopped[model.rate_index(name)])
        last = ended if ended >= 0 else state.steps
        step = min(state.step, last) if step is None else step
        if not 1 <= step <= last:
            why = f" ({runs.why[model.rate_index(name)]})" if ended >= 0 else ""
            raise ValueError(f"{name} took steps 1 to {last}{why}; got {step!r}.")
        place = state.coordinate if coordinate is None else coordinate
        rows = model.what_happened(name, step, min(place, len(model.axes) - 1))
        return [(label, text) for label, text, _ in rows]

    def summary(self) -> str:
        """Describe the display in words."""
        return self._current_model().summary()

    def _current_model(self) -> Model:
        """Return the model with the changes made in the browser."""
        state = self.now
        if _runs_key(state) != self._computed:
            self._apply(state)
        self.model.state = state
        return self.model

    # Changing -----------------------------------------------------------------------------------

    def _updated(self, before: State, wanted: Mapping[str, Any]) -> State:
        """Return a state with changes."""
        wanted = dict(wanted)
        state = before
        if "state" in wanted:
            given = wanted.pop("state")
            state = State.from_json(given) if isinstance(given, str) else State.from_dict(given)
        if "preset" in wanted:
            state = preset_state(wanted.pop("preset"), state)
        fields = state.to_dict()
        rates, around = wanted.pop("rate", {}), wanted.pop("around", {})
        unknown = [name for name in wanted if name not in fields]
        if unknown:
            raise TypeError(f"there is nothing named {unknown[0]!r} to change; see State.")
        if "problem" in wanted:
            named = wanted["problem"]
            if not isinstance(named, str):
                wanted["problem"] = OWN
            fields["start"] = None
        fields |= wanted
        if isinstance(fields["start"], (int, float)):
            fields["start"] = [fields["start"]]
        if any(name in wanted for name in ("problem", "start", "steps", "optimizers")):
            fields["preset"] = ""
        state = State.from_dict(fields)
        if "problem" in wanted and not {"optimizers", "mode"} & set(wanted):
            state.mode, state.equal_rate = "best", None  # rates of one surface say nothing here
            for entry in state.optimizers:
                entry.rate = None
        if state.steps > MOST_STEPS and not self.model.network:
            raise ValueError(f"steps must be from 1 to {MOST_STEPS}; got {state.steps!r}.")
        if not state.optimizers:
            raise ValueError("there must be one optimizer at least.")
        names = [entry.name for entry in state.optimizers]
        for given, rate in rates.items():
            name = _known(given, names)
            if name not in names:
                raise ValueError(f"there is no optimizer named {name!r}; there are {names}.")
            state.optimizers[names.index(name)].rate = float(rate)
            state.mode = "custom"
        for given, wrapper in around.items():
            name = _known(given, names)
            if name not in names:
                raise ValueError(f"there is no optimizer named {name!r}; there are {names}.")
            state.optimizers[names.index(name)].around = as_wrapping(wrapper)
        state.check()
        state.selected = _known(state.selected, names)
        if "selected" in wanted and state.selected not in names:
            raise ValueError(f"there is no optimizer named {state.selected!r}; there are {names}.")
        return state

    def _apply(self, state: State, fit: bool = False, own: Any = None) -> None:
        """Compute the model of a state; nothing changes if that fails."""
        if self.model.network:
            self.model.state = state
            return
        problem = self.model.problem
        same_problem = state.problem == self.model.state.problem
        own = self._own_problem if own is None else own
        if not same_problem or state.problem == OWN:
            problem = find_problem(state, own)
            same_problem = problem is self.model.problem
        keep = same_problem and not fit and not state.preset
        box: Box | None = self.model.box if keep else None
        old = self.model
        fresh = self._computed_model(state, problem, box)
        if box is not None and fresh.box == box and old.surface is problem:
            fresh.reuse_surface_map(old)
        if old.problem is problem:
            fresh.heights = old.heights
        self._model, self._own_problem = fresh, own
        self._computed = _runs_key(state)

    # Requests of the browser --------------------------------------------------------------------

    def _on_message(self, _: Any, content: Any, buffers: Any) -> None:
        if not isinstance(content, dict):  # not from our page
            return
        if "ask" in content:  # a box shows it
            return
        if content.get("hello"):  # a page was opened that may be older than the state
            if self._sent is not None:
                known = {"state": self.state, "given": self._sent}
                self.send({"generation": 0, "error": "", "hello": True, **known})
            return
        generation = content.get("generation", 0)
        try:
            state = State.from_dict(content["state"])
            action, value = content["action"], content.get("value")
            if action in ("html", "png"):
                self.state = state.to_dict()
                self._send_file(action, generation)
                return
            self._apply(self._requested(state, action, value), fit=action == "fit")
            self._publish(generation)
        except Exception as error:  # noqa: BLE001 - shown in the widget; the display stays
            ours = isinstance(error, (TypeError, ValueError))  # their messages are complete
            said = str(error) if ours else f"{type(error).__name__}: {error}"
            self.answer = {"generation": generation, "error": said}
            self.send(self.answer)

    def _requested(self, state: State, action: str, value: Any) -> State:
        """Return the state that the browser requests."""
        if action == "problem":  # the cursor has no meaning on another surface
            return self._updated(state, {"problem": value, "step": State.step})
        if action == "compute":  # the state is what it asks for
            return self._updated(state, {})
        if action in ("start", "steps", "seed", "preset"):
            return self._updated(state, {action: value})
        if action == "setting":
            name, key, setting = value
            state = self._updated(state, {"optimizers": state.optimizers})
            [entry] = [entry for entry in state.optimizers if entry.name == name]
            entry.settings[key] = setting
        elif action == "around":
            name, wanted = value
            state = self._updated(state, {"optimizers": state.optimizers})
            [entry] = [entry for entry in state.optimizers if entry.name == name]
            entry.around = as_wrapping(wanted)
        elif action == "add":
            cls = optimizer_classes()[value]
            taken = [entry.name for entry in state.optimizers]
            name, number = value, 2
            while name in taken:
                name, number = f"{value} {number}", number + 1
            state = self._updated(state, {"optimizers": state.optimizers})
            state.optimizers.append(entry_of(name, usual_template(cls)))
            state.selected = name
        elif action == "remove":
            left = [entry for entry in state.optimizers if entry.name != value]
            state = self._updated(state, {"optimizers": left})
        return state

    def _send_file(self, kind: str, generation: int) -> None:
        if kind == "html":
            content, mime = str(self.to_html()).encode("utf-8"), "text/html"
        else:
            content, mime = self.to_png(), "image/png"
        encoded = base64.b64encode(content).decode("ascii")
        self.send(
            {
                "generation": generation,
                "file": f"optlab-explorer.{kind}",
                "type": mime,
                "content": encoded,
            }
        )

    # The notebook -------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return f"<Explorer: {self.summary()}>"


def _runs_key(state: State) -> str:
    """Return what the runs of a model depend on, as text."""
    entries = [[e.name, e.kind, e.settings, e.around, e.rate] for e in state.optimizers]
    asked = [state.problem, state.start, state.steps, state.seed, state.noise]
    return json.dumps([asked, entries])


def _known(name: Any, names: Container[str]) -> Any:
    """Return the label of an optimizer that is named as it was given."""
    return one_line(name) if isinstance(name, str) and name not in names else name
