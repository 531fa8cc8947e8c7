"""Recompute policies without a budget: drop all before checkpoints, or all that is not selected."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from optlab.autograd.checkpoint.fingerprints import fingerprint
from optlab.autograd.remat.tensors import Recomputable, RecomputePolicy, References, recomputable_of
from optlab.autograd.tape.nodes import Node


class Checkpoints(RecomputePolicy):
    """Recompute policy that holds saved results until a checkpoint closes their segment."""

    def close(self, nodes: Iterable[tuple[Node, Any]]) -> int:
        """Drop the results before these nodes up to earlier checkpoints; keep those of the nodes.

        Parameters
        ----------
        nodes : iterable of (Node, array)

        Returns
        -------
        int
            Number of dropped results.
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


#: The segments of the whole program, used by `RecomputeOptimizer`.
segments = Checkpoints()


class SaveNothing(RecomputePolicy):
    """Recompute policy that holds only selected results."""

    def after_recording(
        self, result: Recomputable, y: Any, saved: References, values: Sequence[Any]
    ) -> None:
        """Keep only the fingerprint of a result."""
        result.closed = True
        if not result.kept:
            result.fingerprint = fingerprint(result.name, y)
