"""The error of byte budgets, apart from them: the face of autograd loads it alone."""


class MemoryBudgetError(MemoryError):
    """Error for a byte budget that was exceeded.

    Attributes
    ----------
    smallest : int
        Peak of the run in bytes: the smallest budget that suffices if the same arrays are dropped.
        Under another budget others are dropped, and the peak may be a few per cent higher.

    Examples
    --------
    >>> MemoryBudgetError("too small", 1 << 20).smallest
    1048576
    """

    def __init__(self, message: str, smallest: int) -> None:
        super().__init__(message)
        self.smallest = smallest
