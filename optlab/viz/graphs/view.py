"""What every picture of a graph shows, ready to be drawn: places, words, and the walk back.

The widget, the plotly figure and the PNG draw this and decide nothing. It holds text and pixels
only: no array, no Tensor, nothing of the tape, so a picture keeps no memory of the run alive.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from optlab.viz.graphs.layering import Point

NODE_HEIGHT = 56.0
NARROWEST = 88.0


@dataclass
class RuleView:
    """The rule by which an operation sends a gradient to one of its inputs.

    Attributes
    ----------
    to : str
        The input, and the node it comes from.
    target : int
        That node.
    code : str
        The rule's source text.
    sent : str
        The gradient that it sends; empty where the walk did not get there.
    """

    to: str
    target: int
    code: str
    sent: str = ""


@dataclass
class Piece:
    """How the gradient at a node stands after a stage: short and in full."""

    stage: int
    short: str
    full: str
    complete: bool = False


@dataclass
class NodeView:
    """A node as it is drawn.

    Attributes
    ----------
    kind : {'operation', 'leaf', 'data', 'rest'}
    title, line : str
        What stands in the node: its name; its value, or its shape and bytes.
    what : str
        What it is, in words.
    facts : list of (str, str)
        Label and text of what the panel tells.
    rules : list of RuleView
    turn : int or None
        The stage in which it passes its gradient on.
    pieces : list of Piece
        How its gradient grows.
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
        """Give how its gradient stands after a stage; None where nothing has arrived yet."""
        found = [piece for piece in self.pieces if piece.stage <= stage]
        return found[-1] if found else None

    def state(self, stage: int) -> str:
        """Say where the walk is: waiting, part, arrived, current or passed."""
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
    """An edge: the nodes it joins, its points, and the stage in which a gradient goes up it."""

    source: int
    target: int
    points: list[Point]
    stage: int | None = None


@dataclass
class GraphView:
    """A whole graph, ready to be drawn.

    Attributes
    ----------
    nodes, edges
    stages : list of str
        What happens in each stage, in words; the first is the graph before backward.
    current : list of list of int
        The nodes whose turn it is in each stage.
    width, height : float
        Pixels.
    title, headline : str
    problem : str
        Why the walk back is not shown, or where it ends.
    leaves : list of (str, str)
        Every leaf, drawn or not, and the gradient that arrives there.
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
        """The number of the last stage."""
        return len(self.stages) - 1

    def to_dict(self) -> dict[str, Any]:
        """Give it in the form in which the browser reads it."""
        return asdict(self)
