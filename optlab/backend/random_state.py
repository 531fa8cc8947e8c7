"""The state of a program's random numbers, saved and restored.

It is plain numbers, so that a run can be saved and continued in another process. `random` has the
keys, and how draws are counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from optlab.backend.call_recorder import effect
from optlab.backend.random import Key, Stream, program_stream, set_stream


def get_rng_state() -> dict[str, Any]:
    """Return the position of the program's random numbers, to continue from there later.

    Returns
    -------
    dict
        Plain numbers, which ``ol.save`` and JSON can store: the seed, the number of draws, and the
        epochs that each data loader has yielded (numbered in the order of their first epoch).

    Raises
    ------
    RuntimeError
        Inside a `scope`, whose draws restart each time it is opened.

    Examples
    --------
    >>> from optlab.backend.random import next_key, seed
    >>> _ = seed(3)
    >>> _ = next_key()
    >>> state = get_rng_state()
    >>> state
    {'seed': 3, 'draws': 1, 'epochs': []}
    >>> later = next_key()
    >>> set_rng_state(state)
    >>> next_key() == later
    True
    """
    stream = _outside_scopes("get_rng_state")
    return {
        "seed": stream.key.seed,
        "draws": stream.draws,
        "epochs": [stream.epochs.get(i, 0) for i in range(max(stream.epochs, default=-1) + 1)],
    }


@effect
def set_rng_state(state: Mapping[str, Any]) -> None:
    """Continue the random numbers from a state of `get_rng_state`, also in another process.

    Raises
    ------
    RuntimeError
        Inside a `scope`.
    ValueError
        If it is no such state; nothing has changed then.
    """
    _outside_scopes("set_rng_state")
    try:
        given = {"seed": int(state["seed"]), "draws": int(state["draws"])}
        epochs = [int(count) for count in state["epochs"]]
        if len(state) != 3 or given["draws"] < 0 or any(count < 0 for count in epochs):
            raise ValueError
    except (TypeError, ValueError, KeyError, IndexError):
        raise ValueError(
            "set_rng_state takes what get_rng_state gave, a dict with seed, draws and epochs; got "
            f"{state!r}."
        ) from None
    set_stream(Stream(Key(given["seed"]), given["draws"], epochs))


def _outside_scopes(function: str) -> Stream:
    stream = program_stream()
    if stream is None:
        raise RuntimeError(
            f"{function} is for the random numbers of the whole program; inside random_scope they "
            "start anew each time, so there is nothing to keep."
        )
    return stream


def get_cuda_rng_state() -> list[Any]:
    """Return the states of the random generators of the GPUs: none.

    Random numbers come from keys on every device (`seed`), so no GPU has its own generator.

    Examples
    --------
    >>> get_cuda_rng_state()
    []
    """
    return []


def set_cuda_rng_state(state_list: Sequence[Any]) -> None:
    """Restore what `get_cuda_rng_state` returned: nothing.

    Parameters
    ----------
    state_list : sequence
        Must be empty; `seed` seeds the random numbers of every device.

    Raises
    ------
    ValueError
        If it contains a state.

    Examples
    --------
    >>> set_cuda_rng_state(get_cuda_rng_state())
    """
    if len(state_list):
        raise ValueError(
            f"set_cuda_rng_state got {len(state_list)} states, but no GPU has a random generator "
            "of its own here: ol.seed(n) fixes the numbers of every device."
        )
