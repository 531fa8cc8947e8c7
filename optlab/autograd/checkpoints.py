"""Results that are dropped at places the user names: before checkpoints, or all but some."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from optlab.autograd.fingerprints import fingerprint
from optlab.autograd.pieces import Recomputable, RecomputePolicy, References, recomputable_of
from optlab.autograd.tape import Node


class Checkpoints(RecomputePolicy):
    """Holds what backward will read, until a checkpoint closes the segment before it."""

    def close(self, nodes: Iterable[tuple[Node, Any]]) -> int:
        """Drop what lies before these nodes, as far as earlier checkpoints; these themselves stay.

        Parameters
        ----------
        nodes : iterable of (Node, array)

        Returns
        -------
        int
            How many results were dropped.
        """
        stack: list[Any] = []
        for node, array in nodes:
            result, index = recomputable_of(node)
            if result is not None:
                if index is None:
                    result.hold(array)
                result.kept = result.closed = True
                stack += result.edges
        seen, dropped = set(), 0
        while stack:
            node = stack.pop()
            if node is None or not node.order or node in seen:
                continue
            seen.add(node)
            result, _ = recomputable_of(node)
            if result is None:
                stack += node.edges
            elif not result.closed:
                result.closed = True
                dropped += result.array is not None and not result.kept
                result.drop()
                stack += result.edges
        return dropped


#: The segments of the whole program, while a `RecomputeOptimizer` is there.
segments = Checkpoints()


class SaveNothing(RecomputePolicy):
    """Holds nothing but what was selected."""

    def after_recording(
        self, result: Recomputable, y: Any, saved: References, values: Sequence[Any]
    ) -> None:
        """Remember only what it was."""
        result.closed = True
        if not result.kept:
            result.fingerprint = fingerprint(result.name, y)
