"""A property of ensemble arrays: any program on them equals the program run member by member."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import optlab as ol
from optlab.backend.ensemble import EnsembleArray

LENGTHS = st.integers(1, 3)

#: Steps of a program: from an array and a vector for its last axis (shared or per member).
STEPS: dict[str, Any] = {
    "add": lambda x, v: x + v,
    "multiply": lambda x, v: np.tanh(x) * v,
    "vector on the right": lambda x, v: x @ np.stack([v, v, v], -1),
    "gram": lambda x, v: x[..., :, None] * x[..., None, :] @ v,
    "transpose": lambda x, v: np.swapaxes(x, 0, -1),
    "reverse": lambda x, v: np.transpose(x),
    "normalise": lambda x, v: x - np.mean(x, axis=-1, keepdims=True),
    "sum first": lambda x, v: np.sum(x, axis=0, keepdims=True) + 0 * x,
    "maximum": lambda x, v: np.maximum(x, v),
    "where": lambda x, v: np.where(x > v, x, 2 * v),
    "running sum": lambda x, v: np.cumsum(x, axis=0),
    "new axis": lambda x, v: x[None] if x.ndim < 3 else x[0],
    "read backwards": lambda x, v: x[..., ::-1],
    "read rows": lambda x, v: x[[0, 0, -1]],
    "join": lambda x, v: np.concatenate([x, np.flip(x)], 0)[: x.shape[0]],
    "flatten": lambda x, v: np.reshape(x, (-1, x.shape[-1])),
    "largest": lambda x, v: np.max(x, axis=0, keepdims=True) * x,
    "dot": lambda x, v: (x @ v)[..., None] + x,
    "vector on the left": lambda x, v: v @ np.swapaxes(x[..., None, :], -1, -2) + x[..., :1],
}


def program(steps: list[str], x: Any, v: Any) -> Any:
    """Run the steps; the vector is repeated or cut to the length of the last axis."""
    for step in steps:
        x = STEPS[step](x, v[np.arange(x.shape[-1]) % v.shape[0]])
    return x


@settings(deadline=None, max_examples=150)
@given(
    steps=st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=5),
    shape=st.lists(LENGTHS, min_size=1, max_size=3),
    count=LENGTHS,
    own=st.tuples(st.booleans(), st.booleans()),
    seed=st.integers(0, 2**32 - 1),
)
def test_an_ensemble_equals_separate_runs(
    steps: list[str], shape: list[int], count: int, own: tuple[bool, bool], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    stacked = rng.uniform(-1, 1, (count, *shape)), rng.uniform(-1, 1, (count, shape[-1]))
    together = [EnsembleArray(a) if o else a[0] for a, o in zip(stacked, own, strict=True)]

    def alone(k: int) -> list[Any]:
        return [a[k] if o else a[0] for a, o in zip(stacked, own, strict=True)]

    def derivatives(x: Any, v: Any) -> tuple[Any, ...]:
        y, pullback = ol.vjp(lambda x, v: program(steps, x, v), x, v)
        return y, *pullback(np.cos(np.arange(y.size, dtype=float)).reshape(y.shape))

    got = derivatives(*together)
    for k in range(count):
        for ours, wanted in zip(got, derivatives(*alone(k)), strict=True):
            assert ours.shape == wanted.shape
            member = ours.members[k] if isinstance(ours, EnsembleArray) else ours
            np.testing.assert_allclose(member, wanted, rtol=1e-9, atol=1e-9)
