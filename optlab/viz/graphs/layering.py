"""Layered graph layout: layers, order within a layer, positions, and routes of the edges.

The usual four steps (Sugiyama, Tagawa and Toda 1981) in plain NumPy, for some hundred nodes: layers
by longest path, fewer crossings by barycenters, positions by least squares, edges through the gaps.
Edges from one node to several distant readers share one route, from which each branches off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Point = tuple[float, float]
GAP_X, GAP_Y = 18.0, 34.0
_LANE = 8.0  # width of an edge that passes through a layer
_SWEEPS = 12


@dataclass(frozen=True)
class Placed:
    """Centers of the nodes, and the points of each edge."""

    x: Floats
    y: Floats
    routes: list[list[Point]]
    width: float
    height: float


@dataclass
class _Lattice:
    """Nodes and the lanes (dummy nodes) of long edges, by layer; layer 0 is at the bottom."""

    layer: list[int]
    width: list[float]
    links: list[tuple[int, int, float]] = field(default_factory=list)  # upper, lower, weight
    ways: list[list[int]] = field(default_factory=list)  # of each edge, the nodes and lanes on it

    def min_distance(self, left: int, right: int) -> float:
        """Return the least distance of two neighbors in a layer; edges may be closer."""
        narrow = (self.width[left] == _LANE) + (self.width[right] == _LANE)
        return (self.width[left] + self.width[right]) / 2 + GAP_X / (1 + narrow**2)

    def above(self) -> list[list[tuple[int, float]]]:
        """Return the upper neighbors of each vertex, with weights."""
        found: list[list[tuple[int, float]]] = [[] for _ in self.layer]
        for upper, lower, weight in self.links:
            found[lower].append((upper, weight))
        return found

    def below(self) -> list[list[tuple[int, float]]]:
        """Return the lower neighbors of each vertex, with weights."""
        found: list[list[tuple[int, float]]] = [[] for _ in self.layer]
        for upper, lower, weight in self.links:
            found[upper].append((lower, weight))
        return found


def place(
    widths: Sequence[float],
    height: float,
    edges: Sequence[tuple[int, int]],
    *,
    most_width: float = 1150.0,
) -> Placed:
    """Lay out a graph from top to bottom.

    Parameters
    ----------
    widths : sequence of float
        Widths of the nodes in pixels.
    height : float
        Height of every node.
    edges : sequence of (int, int)
        From a node to a later one.
    most_width : float
        Nodes without inputs move up if their layer would become wider than this.

    Examples
    --------
    >>> placed = place([60, 60, 60], 40, [(0, 2), (1, 2)])
    >>> placed.y.tolist()  # two above one
    [20.0, 20.0, 94.0]
    """
    lattice = _lattice(widths, edges, _layers(widths, edges, most_width))
    rows = _order_layers(lattice)
    x = _x_positions(lattice, rows)
    x -= min(x[i] - lattice.width[i] / 2 for i in range(len(widths)))
    depth = max(lattice.layer, default=0)
    y = np.array([(depth - layer) * (height + GAP_Y) + height / 2 for layer in lattice.layer])
    n = len(widths)
    across = max((x[i] + lattice.width[i] / 2 for i in range(len(x))), default=0.0)
    return Placed(
        x[:n], y[:n], _routes(lattice, edges, widths, x, y, height), float(across),
        (depth + 1) * (height + GAP_Y) - GAP_Y,
    )  # fmt: skip


def _layers(
    widths: Sequence[float], edges: Sequence[tuple[int, int]], most_width: float
) -> list[int]:
    """Assign each node its longest distance to the end; many inputs are spread over layers."""
    readers: list[list[int]] = [[] for _ in widths]
    reads = [0] * len(widths)
    for source, target in edges:
        readers[source].append(target)
        reads[target] += 1
    layer = [0] * len(widths)
    for i in reversed(range(len(widths))):
        layer[i] = max((layer[t] + 1 for t in readers[i]), default=0)
    taken: dict[int, float] = {}
    for i, width in enumerate(widths):
        if reads[i]:
            taken[layer[i]] = taken.get(layer[i], 0.0) + width + GAP_X
    for i in sorted(range(len(widths)), key=lambda i: layer[i]):
        if not reads[i]:
            at = layer[i]
            while taken.get(at, 0.0) and taken[at] + widths[i] > most_width:
                at += 1
            layer[i] = at
            taken[at] = taken.get(at, 0.0) + widths[i] + GAP_X
    return layer


def _lattice(
    widths: Sequence[float], edges: Sequence[tuple[int, int]], layer: list[int]
) -> _Lattice:
    """Add lanes where edges pass through layers; all edges from one node share their lanes."""
    found = _Lattice(list(layer), list(widths))
    lanes: dict[tuple[int, int], int] = {}
    strong = {target for _, target in edges}  # stronger links between operations than from inputs
    for source, target in edges:
        way = [source]
        for at in range(layer[source] - 1, layer[target], -1):
            if (source, at) not in lanes:
                lanes[source, at] = len(found.layer)
                found.layer.append(at)
                found.width.append(_LANE)
                found.links.append((way[-1], lanes[source, at], 6.0 if len(way) > 1 else 2.0))
            way.append(lanes[source, at])
        way.append(target)
        found.links.append((way[-2], target, 4.0 if source in strong else 1.0))
        found.ways.append(way)
    return found


def _order_layers(lattice: _Lattice) -> list[list[int]]:
    """Order each layer to reduce crossings, starting from the order of the inputs."""
    above, below = lattice.above(), lattice.below()
    rows: list[list[int]] = [[] for _ in range(max(lattice.layer, default=0) + 1)]
    seen: set[int] = set()
    for end in [i for i, layer in enumerate(lattice.layer) if layer == 0]:
        stack = [end]
        while stack:
            i = stack.pop()
            if i not in seen:
                seen.add(i)
                rows[lattice.layer[i]].append(i)
                stack.extend(upper for upper, _ in reversed(above[i]))
    best, fewest = [row[:] for row in rows], _crossings(rows, lattice)
    for sweep in range(_SWEEPS):
        upwards = sweep % 2 == 0
        place = _positions(rows, len(lattice.layer))
        beside = below if upwards else above
        for row in rows[1:] if upwards else rows[-2::-1]:
            center = {
                i: float(np.mean([place[j] for j, _ in beside[i]])) if beside[i] else place[i]
                for i in row
            }
            row.sort(key=lambda i, center=center: center[i])  # type: ignore[misc]
            for at, i in enumerate(row):
                place[i] = at
        now = _crossings(rows, lattice)
        if now < fewest:
            best, fewest = [row[:] for row in rows], now
        if not fewest:
            break
    return best


def _positions(rows: list[list[int]], count: int) -> list[float]:
    place = [0.0] * count
    for row in rows:
        for at, i in enumerate(row):
            place[i] = float(at)
    return place


def _crossings(rows: list[list[int]], lattice: _Lattice) -> int:
    """Count crossings of edges between adjacent layers."""
    place = np.array(_positions(rows, len(lattice.layer)))
    layer = np.array(lattice.layer)
    links = np.array([(upper, lower) for upper, lower, _ in lattice.links], dtype=int)
    if not len(links):
        return 0
    found = 0
    for at in range(len(rows) - 1):
        here = links[layer[links[:, 1]] == at]
        up, down = place[here[:, 0]], place[here[:, 1]]
        order = np.subtract.outer(up, up) * np.subtract.outer(down, down)
        found += int(np.count_nonzero(order < 0)) // 2
    return found


def _x_positions(lattice: _Lattice, rows: list[list[int]]) -> Floats:
    """Compute positions near the neighbors, in order and with gaps, by least squares."""
    above, below = lattice.above(), lattice.below()
    x = np.zeros(len(lattice.layer))
    for row in rows:
        steps = _offsets(lattice, row)
        x[row] = steps - steps[-1] / 2
    for sweep in range(4 * _SWEEPS):
        last = sweep >= 3 * _SWEEPS
        for row in rows if sweep % 2 else rows[::-1]:
            wanted, weights = [], []
            for i in row:
                near = above[i] + below[i] if last else (above[i] if sweep % 2 == 0 else below[i])
                near = near or above[i] + below[i]
                total = sum(weight for _, weight in near)
                wanted.append(sum(x[j] * weight for j, weight in near) / total if near else x[i])
                weights.append(total or 1.0)
            x[row] = _nearest_positions(np.array(wanted), np.array(weights), _offsets(lattice, row))
    _straighten(lattice, rows, x, above, below)
    return x


def _straighten(
    lattice: _Lattice,
    rows: list[list[int]],
    x: Floats,
    above: list[list[tuple[int, float]]],
    below: list[list[tuple[int, float]]],
) -> None:
    """Align strongly linked nodes vertically, as far as the neighbors in their rows allow."""
    beside: dict[int, tuple[int | None, int | None]] = {}
    for row in rows:
        for at, i in enumerate(row):
            after = row[at + 1] if at + 1 < len(row) else None
            beside[i] = (row[at - 1] if at else None, after)

    def free(i: int) -> tuple[float, float]:
        left, right = beside[i]
        low, high = -np.inf, np.inf
        if left is not None:
            low = x[left] + lattice.min_distance(left, i)
        if right is not None:
            high = x[right] - lattice.min_distance(i, right)
        return low, high

    for chain in _chains(above, below):
        run: list[int] = []
        low, high = -np.inf, np.inf
        for i in chain:
            least, most = free(i)
            if run and max(low, least) > min(high, most):
                x[run] = min(max(float(np.median(x[run])), low), high)
                run, low, high = [], -np.inf, np.inf
            run.append(i)
            low, high = max(low, least), min(high, most)
        x[run] = min(max(float(np.median(x[run])), low), high)


def _chains(
    above: list[list[tuple[int, float]]], below: list[list[tuple[int, float]]]
) -> list[list[int]]:
    """Return the downward chains of mutually strongest links, longest first."""

    def strongest(near: list[tuple[int, float]]) -> int | None:
        best = max((weight for _, weight in near), default=0.0)
        found = {j for j, weight in near if weight == best}
        return found.pop() if len(found) == 1 else None

    follows = {}
    for i in range(len(above)):
        lower = strongest(below[i])
        if lower is not None and strongest(above[lower]) == i:
            follows[i] = lower
    chains = []
    for start in sorted(set(follows) - set(follows.values())):
        chain = [start]
        while chain[-1] in follows:
            chain.append(follows[chain[-1]])
        chains.append(chain)
    return sorted(chains, key=len, reverse=True)


def _offsets(lattice: _Lattice, row: list[int]) -> Floats:
    """Return the least offsets of a row's vertices from its first."""
    steps = [0.0, *(lattice.min_distance(left, right) for left, right in pairwise(row))]
    return np.cumsum(steps, dtype=np.float64)


def _nearest_positions(wanted: Floats, weights: Floats, steps: Floats) -> Floats:
    """Return the positions nearest to the wanted ones that keep order and distances.

    Isotonic regression: neighbors that would come too close form a block at their common mean.

    Examples
    --------
    >>> offsets = np.array([0.0, 10.0, 20.0])
    >>> _nearest_positions(np.array([0.0, 0.0, 50.0]), np.ones(3), offsets).tolist()
    [-5.0, 5.0, 50.0]
    """
    blocks: list[tuple[float, float, int]] = []  # mean, weight, how many
    for value, weight in zip(wanted - steps, weights, strict=True):
        block = (float(value), float(weight), 1)
        while blocks and blocks[-1][0] > block[0]:
            mean, heavy, count = blocks.pop()
            total = heavy + block[1]
            block = ((mean * heavy + block[0] * block[1]) / total, total, count + block[2])
        blocks.append(block)
    return np.repeat([mean for mean, _, _ in blocks], [count for _, _, count in blocks]) + steps


def _routes(
    lattice: _Lattice,
    edges: Sequence[tuple[int, int]],
    widths: Sequence[float],
    x: Floats,
    y: Floats,
    height: float,
) -> list[list[Point]]:
    """Return the points of each edge; several edges arrive at a node side by side."""
    arriving: dict[int, list[int]] = {}
    for at, (_, target) in enumerate(edges):
        arriving.setdefault(target, []).append(at)
    ends = {}
    for target, found in arriving.items():
        found.sort(key=lambda at: (x[lattice.ways[at][-2]], at))
        room = min(widths[target] * 0.6, 26.0 * (len(found) - 1))
        for place, at in enumerate(found):
            share = place / (len(found) - 1) - 0.5 if len(found) > 1 else 0.0
            ends[at] = float(x[target]) + share * room
    routes = []
    for at, way in enumerate(lattice.ways):
        source, target = way[0], way[-1]
        points = [(float(x[source]), float(y[source]) + height / 2)]
        for lane in way[1:-1]:
            points.append((float(x[lane]), float(y[lane]) - height / 2))
            points.append((float(x[lane]), float(y[lane]) + height / 2))
        points.append((ends[at], float(y[target]) - height / 2))
        routes.append(points)
    return routes
