"""Pieces that are dropped at places the user names: before checkpoints, or all but some."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from optlab.autograd.fingerprints import fingerprint
from optlab.autograd.pieces import Piece, Pieces, References, piece_of
from optlab.autograd.tape import Node


class Checkpoints(Pieces):
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
            piece, index = piece_of(node)
            if piece is not None:
                if index is None:
                    piece.hold(array)
                piece.kept = piece.closed = True
                stack += piece.edges
        seen, dropped = set(), 0
        while stack:
            node = stack.pop()
            if node is None or not node.order or node in seen:
                continue
            seen.add(node)
            piece, _ = piece_of(node)
            if piece is None:
                stack += node.edges
            elif not piece.closed:
                piece.closed = True
                dropped += piece.array is not None and not piece.kept
                piece.drop()
                stack += piece.edges
        return dropped


#: The segments of the whole program, while a `RecomputeOptimizer` is there.
segments = Checkpoints()


class Nothing(Pieces):
    """Holds nothing but what was selected."""

    def made(self, piece: Piece, y: Any, saved: References, values: Sequence[Any]) -> None:
        """Remember only what it was."""
        piece.closed = True
        if not piece.kept:
            piece.fingerprint = fingerprint(piece.name, y)
