"""Errors that several modules raise."""


class EnsembleError(TypeError):
    """An operation needs one answer, and the members of an ensemble have one each."""
