"""The time to import optlab and make a first Tensor, beside NumPy, which it needs anyway."""

from __future__ import annotations

from benchmarks.row import Peer, Row, at_most


def ours() -> str:
    """Return the statements that a user starts with."""
    return "import optlab as ol; ol.to_tensor([1.0])"


def numpy_alone() -> str:
    """Return the statement that any program with arrays starts with."""
    return "import numpy"


ROWS = [
    Row(
        name="import",
        title="import optlab and a first to_tensor([1.0]) in a fresh interpreter",
        unit="import",
        kind="process",
        ours=ours,
        peers=[Peer("import numpy", numpy_alone, "numpy", at_most(1.5), in_our_environment=True)],
    )
]
