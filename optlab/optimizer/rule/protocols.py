"""The interface of an optimizer as the step sees it: an update rule with its parameters.

`optimizer.Optimizer`, which documents its parts, stands above the step that it takes.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

from optlab.backend.random import Key


class UpdateRule(Protocol):
    """What the step, the fused update and the usage warnings read of an optimizer."""

    kind: ClassVar[str]
    draws: ClassVar[bool]
    separate_decay: ClassVar[bool]
    custom_step: ClassVar[bool]
    built_in: ClassVar[bool]
    groups: list[Any]
    schedule: Any
    key: Key | None
    plans: dict[Any, Any]
    refused: dict[Any, str]
    elementwise_verified: bool
    skipped: int
    warned: dict[str, int]
    unfinished: Any
    bound_step: Any
    steps_until_bound: int

    @property
    def not_finite(self) -> str:
        """Return what a step does about gradients that are not finite."""

    def get_lr(self) -> Any:
        """Return the learning rate of this step."""

    def scalars(self, t: int, h: Any) -> dict[str, Any]:
        """Return what depends only on the step count and the hyper-parameters."""

    def update(self, p: Any, g: Any, s: Any, h: Any, c: Any) -> Any:
        """Return the new parameter, a dict of new slots and perhaps one of named terms."""

    def applies_by_rows(self, h: Any) -> bool:
        """Return whether a row-sparse gradient is applied to its rows alone."""
