"""Errors of ranks that communicate."""

from __future__ import annotations


class CommunicationError(RuntimeError):
    """A call of a communicator that MPI refuses; `kind` is MPI's name of the error.

    Examples
    --------
    >>> import optlab as ol
    >>> def f(comm):
    ...     comm.send("text", dest=5)
    >>> try:
    ...     ol.parallel.LocalWorld(2).run(f)
    ... except ol.parallel.RankError as error:
    ...     print(error.__cause__.kind)
    MPI_ERR_RANK
    """

    __module__ = "optlab.parallel"

    def __init__(self, message: str, kind: str = "MPI_ERR_OTHER") -> None:
        super().__init__(message)
        self.kind = kind


class RankError(RuntimeError):
    """A rank has failed, which ended the others; the message names it, ``__cause__`` is its error.

    Attributes
    ----------
    rank : int or None
        The rank that failed, counted in the whole world; None if no single one did.
    """

    __module__ = "optlab.parallel"

    def __init__(self, message: str, rank: int | None = None) -> None:
        super().__init__(message)
        self.rank = rank


class DeadlockError(RankError):
    """Every rank waits for another; the message says who waits for whom, in which call."""

    __module__ = "optlab.parallel"


class StalledError(RankError):
    """A rank did not answer before the deadline of those that wait for it."""

    __module__ = "optlab.parallel"
