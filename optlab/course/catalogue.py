"""All checks, by name."""

from __future__ import annotations

import difflib

from optlab.course.gradient_checks import GRADIENTS
from optlab.course.instrument_checks import INSTRUMENTS
from optlab.course.optimizer_checks import OPTIMIZERS
from optlab.course.plan import Check

CHECKS: dict[str, Check] = {check.name: check for check in [*GRADIENTS, *OPTIMIZERS, *INSTRUMENTS]}


def find(name: str) -> Check:
    """Return the check of a name, in any case, or raise an error that suggests one."""
    if name in CHECKS:
        return CHECKS[name]
    if isinstance(name, str) and name.lower() in CHECKS:
        return CHECKS[name.lower()]
    near = difflib.get_close_matches(str(name), CHECKS, 1, 0.7)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise ValueError(f"there is no check {name!r}: {hint}The checks are {', '.join(CHECKS)}.")
