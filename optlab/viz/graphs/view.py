"""View model of a graph: positions, texts, and the stages of the backward pass.

The widget, the plotly figure and the static image only draw it. It contains text and pixels: no
array, no Tensor, nothing of the tape, so it keeps no memory of the run alive.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from optlab.viz.graphs.layering import Point
from optlab.viz.style import theme

NODE_HEIGHT = 56.0
TEXT = theme.FONT_HEADING
"""Size of all text in a node: a page may show it at nine tenths."""
NARROWEST = 88.0
ROUND_ENDS = 16.0
"""Pixels that the round ends of a leaf take from its upper and lower line of text."""


@dataclass
class RuleView:
    """The derivative rule of an operation for one of its inputs.

    Attributes
    ----------
    to : str
        Name of the input.
    target : int
        Index of the node that it comes from.
    code : str
        The source text of the rule.
    sent : str
        The gradient that it sends; empty if the backward pass did not reach it.
    """

    to: str
    target: int
    code: str
    sent: str = ""


@dataclass
class Piece:
    """The gradient accumulated at a node after a stage, in short and in full."""

    stage: int
    short: str
    full: str
    complete: bool = False


@dataclass
class NodeView:
    """A node of the drawing.

    Attributes
    ----------
    kind : {'operation', 'leaf', 'data', 'rest'}
    title, line : str
        Text in the node: its name; its value, or its shape and bytes.
    what : str
        Its kind in words.
    facts : list of (str, str)
        Labels and texts for the panel.
    rules : list of RuleView
    turn : int or None
        The stage in which it sends gradients.
    pieces : list of Piece
        The partial sums of its gradient.
    """

    kind: str
    title: str
    line: str
    what: str
    facts: list[tuple[str, str]] = field(default_factory=list)
    rules: list[RuleView] = field(default_factory=list)
    turn: int | None = None
    pieces: list[Piece] = field(default_factory=list)
    width: float = NARROWEST
    x: float = 0.0
    y: float = 0.0

    def piece(self, stage: int) -> Piece | None:
        """Return its gradient after a stage; None if nothing has arrived yet."""
        found = [piece for piece in self.pieces if piece.stage <= stage]
        return found[-1] if found else None

    def state(self, stage: int) -> str:
        """Return its state in a stage: waiting, part, arrived, current or passed."""
        piece = self.piece(stage)
        if piece is None:
            return "waiting"
        if self.turn == stage:
            return "current"
        if self.turn is not None and self.turn < stage:
            return "passed"
        return "arrived" if piece.complete else "part"


@dataclass
class EdgeView:
    """An edge: its two nodes, its points, and the stage in which a gradient moves along it."""

    source: int
    target: int
    points: list[Point]
    stage: int | None = None


@dataclass
class GraphView:
    """A complete graph, ready to be drawn.

    Attributes
    ----------
    nodes, edges
    stages : list of str
        Description of each stage; the first is the graph before the backward pass.
    current : list of list of int
        The nodes processed in each stage.
    width, height : float
        Pixels.
    title, headline : str
    problem : str
        Why the backward pass is not shown, or where it ends.
    leaves : list of (str, str)
        Every leaf, drawn or not, and its gradient.
    """

    nodes: list[NodeView]
    edges: list[EdgeView]
    stages: list[str]
    current: list[list[int]]
    width: float
    height: float
    title: str
    headline: str
    problem: str = ""
    leaves: list[tuple[str, str]] = field(default_factory=list)

    @property
    def last(self) -> int:
        """Index of the last stage."""
        return len(self.stages) - 1

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain dicts and lists, for the browser."""
        return asdict(self)
