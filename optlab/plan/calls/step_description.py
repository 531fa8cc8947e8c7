"""The operations inside a step of an optimizer, for the text of a plan.

A plan holds the step of an optimizer as one entry, which the optimizer runs, fused where it can.
Its operations are those that a capture of the functional form of the same rule writes down.
"""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np

from optlab.backend import random
from optlab.plan.calls.captured import capture
from optlab.plan.calls.description import describe_steps_with

#: The most operations that are shown: those of the first parameters.
_MOST = 24


def operations_inside(optimizer: Any) -> list[str]:
    """Return the operations of a rule on an optimizer's parameters; none if it has no such form."""
    stream = random.stream_of_this_thread()
    draws = stream.draws
    try:
        values = [np.ones_like(p.data) for group in optimizer.groups for p in group.parameters]
        rate = float(optimizer.get_lr())
        step = capture(
            lambda p, g, state: optimizer.functional_step(p, g, state, learning_rate=rate)
        )
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            state = optimizer.functional_init(values)
            step(values, [np.ones_like(x) for x in values], state)
    except Exception:  # noqa: BLE001  # LBFGS, an ensemble, a rule that no plan can repeat
        return []
    finally:
        stream.draws = draws
    if step.plan is None:
        return []
    # Values of the rule are u0, u1, ...: those of the plan around it are v0, v1, ...
    shown = [re.sub(r"\bv(\d+)", r"u\1", call) for call in step.plan.calls()]
    if len(shown) > _MOST:
        shown = [*shown[:_MOST], f"... {len(shown) - _MOST} more, of the next parameters too"]
    return shown


describe_steps_with(operations_inside)
