"""All checks, by name."""

from __future__ import annotations

from optlab.course.optimizer_checks import OPTIMIZERS
from optlab.course.plan import Check

CHECKS: dict[str, Check] = {check.name: check for check in [*OPTIMIZERS]}
