"""Errors of sections that run on workers of their own."""

from __future__ import annotations

from optlab.backend.rank_errors import RankError, StalledError


class SectionError(RankError):
    """A section has failed, which ended the others; ``__cause__`` is its error.

    Attributes
    ----------
    section : int or None
        The section that failed; None if no single one did.
    """

    def __init__(self, message: str, section: int | None = None, rank: int | None = None) -> None:
        super().__init__(message, rank)
        self.section = section


class StalledSectionError(SectionError, StalledError):
    """A section did not answer before the deadline of those that wait for it."""
