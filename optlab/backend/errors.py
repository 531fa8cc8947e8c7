"""Errors that several modules of the backend raise."""


class EnsembleError(TypeError):
    """An operation needs one answer, and the members of an ensemble have one each."""
