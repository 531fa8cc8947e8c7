"""The result of `optlab.viz.graph`: a widget, a figure, and a table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from optlab.backend.display import SavedBySave
from optlab.backend.extras import needed_for
from optlab.viz.graphs.view import GraphView

_MOST_ROWS = 60
_KINDS = (".html", ".png", ".svg", ".json")


class GraphPicture(SavedBySave):
    """A graph of operations, and its backward pass.

    On the last line of a cell it displays itself: step with the buttons, the slider or the arrow
    keys. It is a snapshot without arrays: later changes of the Tensors do not affect it.

    Attributes
    ----------
    view : GraphView
        Its content, as text and positions.
    """

    def __init__(self, view: GraphView, table: list[tuple[str, ...]]) -> None:
        self.view = view
        self._table = table
        self._stage = 0
        self._widget: Any = None

    @property
    def stages(self) -> list[str]:
        """Descriptions of the stages of the backward pass; stage 0 is before it."""
        return list(self.view.stages)

    @property
    def stage(self) -> int:
        """The stage shown; set it to step."""
        return self._stage if self._widget is None else int(self._widget.stage)

    @stage.setter
    def stage(self, stage: int) -> None:
        self._stage = self._check_stage(stage)
        if self._widget is not None:
            self._widget.stage = self._stage

    def _check_stage(self, stage: int | None) -> int:
        if stage is None:
            return self.view.last
        if isinstance(stage, bool) or not isinstance(stage, int) or not (
            0 <= stage <= self.view.last
        ):  # fmt: skip
            raise ValueError(
                f"the stages are 0 (before backward) to {self.view.last}; got {stage!r}."
            )
        return stage

    def figure(self, stage: int = 0) -> Any:
        """Draw the graph as a plotly figure, with a slider for the stages.

        Parameters
        ----------
        stage : int
            The stage shown first.
        """
        with needed_for("GraphPicture.figure()"):
            from optlab.viz.graphs.figure import figure

        return figure(self.view, self._check_stage(stage))

    def save(self, path: str | Path, stage: int | None = None) -> Path:
        """Write the graph to a file.

        Parameters
        ----------
        path : path
            Ends in ``.html`` (a page with all stages that needs no kernel), ``.png`` or ``.svg``
            (one stage), or ``.json`` (the content as data).
        stage : int, optional
            The stage of an image, by default the last, with all gradients; the stage that a page
            shows first, by default stage 0.

        Raises
        ------
        ValueError
            If the name has another ending, or there is no such stage.
        """
        target = Path(path)
        if target.suffix not in _KINDS:
            raise ValueError(f"the name must end in {', '.join(_KINDS)}; got {target.name!r}.")
        if target.suffix == ".html":
            with needed_for(f"Writing a graph as {target.suffix[1:].upper()}"):
                from optlab.viz.graphs.export import page

            opens = self._check_stage(0 if stage is None else stage)
            target.write_text(page(self.view, opens, repr(self)), encoding="utf-8")
        elif target.suffix == ".json":
            text = json.dumps(self.view.to_dict(), ensure_ascii=False)
            target.write_text(text, encoding="utf-8")
        else:
            with needed_for(f"Writing a graph as {target.suffix[1:].upper()}"):
                from optlab.viz.graphs.image import png, svg

            at = self._check_stage(stage)
            is_png = target.suffix == ".png"
            content = png(self.view, at, 2.0) if is_png else svg(self.view, at)
            target.write_bytes(content)
        return target

    def __repr__(self) -> str:
        rows = self._table
        if len(rows) > _MOST_ROWS + 2:
            half = _MOST_ROWS // 2
            left_out = f"… {len(rows) - 1 - 2 * half:,} rows left out"
            rows = [*rows[: half + 1], ("", left_out, *[""] * (len(rows[0]) - 2)), *rows[-half:]]
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        numbers = {0, len(widths) - 1, len(widths) - 2}
        lines = [
            "  ".join(
                text.rjust(width) if i in numbers else text.ljust(width)
                for i, (text, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        ]
        said = [f"{self.view.title}: {self.view.headline}", *lines]
        if self.view.problem:
            said.append(self.view.problem)
        return "\n".join(said)

    @property
    def widget(self) -> Any:
        """The same page as an ipywidgets widget, for layouts of your own."""
        from optlab.viz.graphs.widget import GraphStepper

        if self._widget is None:
            self._widget = GraphStepper(self.view, self.stage, repr(self))
        return self._widget

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        try:
            return self.widget._repr_mimebundle_()
        except ModuleNotFoundError:  # as other results, without the extra lab
            return {"text/plain": repr(self)}
