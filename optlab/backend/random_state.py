"""The state of a program's random numbers: where its draws have arrived, kept and taken back.

It is plain numbers, so that a run can be saved and go on in another process. What draws the
numbers, and how draws are counted, is in `random`.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from optlab.backend.random import Key, Stream, program_stream, set_stream


def get_rng_state() -> dict[str, Any]:
    """Give where the random numbers of the program have arrived, to go on from there later.

    Returns
    -------
    dict
        Plain numbers, which ``ol.save`` and JSON keep: the seed, how often was drawn, and how many
        epochs each data loader has given (they are numbered in the order of their first epoch).

    Raises
    ------
    RuntimeError
        Inside a `scope`, whose draws start anew each time it is opened.

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
    draws = copy.copy(stream.draws)
    return {
        "seed": stream.key.seed,
        "draws": next(draws),
        "epochs": [stream.epochs.get(i, 0) for i in range(max(stream.epochs, default=-1) + 1)],
    }


def set_rng_state(state: Mapping[str, Any]) -> None:
    """Go on with random numbers where `get_rng_state` was called, also in another process.

    Raises
    ------
    RuntimeError
        Inside a `scope`.
    ValueError
        If it is no such state. Nothing has changed then.
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
    """Give the states of the random generators that GPUs have: none.

    Random numbers come from keys on every device (`seed`), so no GPU has a generator of its own.

    Examples
    --------
    >>> get_cuda_rng_state()
    []
    """
    return []


def set_cuda_rng_state(state_list: Sequence[Any]) -> None:
    """Take back what `get_cuda_rng_state` gave: nothing.

    Parameters
    ----------
    state_list : sequence
        It has to be empty; `seed` fixes the random numbers of every device.

    Raises
    ------
    ValueError
        If there is a state in it: it is not ours.

    Examples
    --------
    >>> set_cuda_rng_state(get_cuda_rng_state())
    """
    if len(state_list):
        raise ValueError(
            f"set_cuda_rng_state got {len(state_list)} states, but no GPU has a random generator "
            "of its own here: ol.seed(n) fixes the numbers of every device."
        )
