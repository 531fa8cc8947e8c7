"""The explorer as a widget: requests of the browser, and the interface in Python."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from optlab.lab.compare import Comparison
from optlab.lab.problems.lookup import find
from optlab.optimizer import Optimizer
from optlab.viz import browser
from optlab.viz.browser.cell_runs import close_earlier
from optlab.viz.explorer import export
from optlab.viz.explorer.model import Model, find_problem
from optlab.viz.explorer.state import (
    OWN,
    State,
    entry_of,
    optimizer_classes,
    preset_state,
    usual_template,
)
from optlab.viz.explorer.surface_map import pack_surface_map
from optlab.viz.explorer.wrapping import as_wrapping
from optlab.viz.style.geometry import Box

MOST_STEPS = 2000


class Explorer(anywidget.AnyWidget):
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

    _esm = browser.as_module(export.STATIC)
    _css = browser.style_sheet(export.PLACE, export.STATIC)

    state = traitlets.Dict().tag(sync=True)
    data = traitlets.Dict().tag(sync=True)
    buffers = traitlets.Bytes(b"").tag(sync=True)
    land = traitlets.Dict().tag(sync=True)
    land_buffers = traitlets.Bytes(b"").tag(sync=True)
    options = traitlets.Dict().tag(sync=True)
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
        self._model: Model | None = Model(state, problem, self._own_templates)
        self._serial = 0
        self._sent_map: tuple[Any, Any] | None = None
        traits = self._new_traits()
        super().__init__(options=export.browser_options(), **traits)
        self.on_msg(self._on_message)
        close_earlier(self._release)

    @property
    def model(self) -> Model:
        """The model of the display; computed again if the explorer is closed."""
        if self._model is None:
            problem = find_problem(self.now, self._own_problem)
            self._model = Model(self.now, problem, self._own_templates)
        return self._model

    def _release(self) -> None:
        """Close the widget and free its memory, when its cell runs again."""
        with self.hold_sync():  # clears the copies of the page as well
            self.buffers = self.land_buffers = b""
        self.layout.close()
        self.close()
        self._model = None

    # Sending ------------------------------------------------------------------------------------

    def _new_traits(self, generation: int = 0) -> dict[str, Any]:
        """Return the traits for the current state of the model."""
        self._serial += 1
        header, buffers = self.model.pack()
        found: dict[str, Any] = {
            "state": self.model.state.to_dict(),
            "data": {**header, "serial": self._serial},
            "buffers": buffers,
            "answer": {"serial": self._serial, "generation": generation, "error": ""},
        }
        surface = self.model.surface
        if surface is None:
            return found | {"land": {"serial": self._serial}}
        seen = (surface, self.model.box)
        if seen != self._sent_map:  # the same map is never sent twice
            self._sent_map = seen
            packed, land_buffers = pack_surface_map(self.model.surface_map, surface)
            found |= {"land": {**packed, "serial": self._serial}, "land_buffers": land_buffers}
        return found

    def _publish(self, generation: int = 0) -> None:
        with self.hold_sync():
            for name, value in self._new_traits(generation).items():
                setattr(self, name, value)

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

    def to_html(self, path: str | Path | None = None) -> str | Path:
        """Return one self-contained HTML page with live rates, playback and cursor.

        Parameters
        ----------
        path : path, optional
            The file to write.

        Returns
        -------
        str or Path
            The page, or its path if it was written to a file.
        """
        page = export.page(self._current_model(), dict(self.options))
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
        name = state.selected if name is None else name
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
        """Return the model with the changes made in the browser: rates, cursor, selection."""
        self.model.state = self.now
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
        if state.steps > MOST_STEPS and not self.model.network:
            raise ValueError(f"steps must be from 1 to {MOST_STEPS}; got {state.steps!r}.")
        if not state.optimizers:
            raise ValueError("there must be one optimizer at least.")
        names = [entry.name for entry in state.optimizers]
        for name, rate in rates.items():
            if name not in names:
                raise ValueError(f"there is no optimizer named {name!r}; there are {names}.")
            state.optimizers[names.index(name)].rate = float(rate)
            state.mode = "custom"
        for name, wrapper in around.items():
            if name not in names:
                raise ValueError(f"there is no optimizer named {name!r}; there are {names}.")
            state.optimizers[names.index(name)].around = as_wrapping(wrapper)
        state.check()
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
        fresh = Model(state, problem, self._own_templates, box)
        if box is not None and fresh.box == box and old.surface is problem:
            fresh.reuse_surface_map(old)
        self._model, self._own_problem = fresh, own

    # Requests of the browser --------------------------------------------------------------------

    def _on_message(self, _: Any, content: dict[str, Any], buffers: Any) -> None:
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
            self._serial += 1
            ours = isinstance(error, (TypeError, ValueError))  # their messages are complete
            said = str(error) if ours else f"{type(error).__name__}: {error}"
            self.answer = {"serial": self._serial, "generation": generation, "error": said}

    def _requested(self, state: State, action: str, value: Any) -> State:
        """Return the state that the browser requests."""
        if action == "problem":  # the cursor has no meaning on another surface
            return self._updated(state, {"problem": value, "step": State.step})
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
        name = f"optlab-explorer.{kind}"
        self.send({"generation": generation, "file": name, "type": mime}, [content])

    # The notebook -------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return f"<Explorer: {self.summary()}>"

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """Return the widget, its static image for saved notebooks, and its summary as text."""
        bundle = super()._repr_mimebundle_(**kwargs)
        return browser.with_static_image(bundle, self.summary(), self.to_png(width=900))
