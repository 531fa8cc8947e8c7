"""`rule_of`: the derivative rule of a function, at a prompt or in a notebook."""

from __future__ import annotations

from typing import Any


class _Explanation(str):
    """Text whose repr is the text itself."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def rule_of(function: Any) -> str:
    """Explain how Tensors support a function, with the source of its derivative rules.

    Parameters
    ----------
    function : str or function
        ``"tanh"``, ``"np.linalg.svd"``, ``"getitem"``, ``"@"``, or the function itself; also a
        helper of a rule, ``"inverse_gaps"``.

    Returns
    -------
    str
        The output of ``optlab rules``; a prompt shows it as printed.

    Raises
    ------
    LookupError
        If there is no such function; the message suggests similar names.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> ol.autograd.rule_of(np.cos)
    np.cos(x)
      One operation with a derivative rule: ...elementwise.py:...
    <BLANKLINE>
          lambda g, x: -g * np.sin(x)
    <BLANKLINE>
      g: the gradient that arrives
    <BLANKLINE>
      With vmap: elementwise, no batching rule needed
    """
    # Imported here: reading the sources is slow.
    from optlab.autograd.reference.entries import entry_of, find, helper_of, near
    from optlab.autograd.reference.text import explain, explain_helper

    if isinstance(function, str):
        entry = find(function)
        if entry is None:
            if (helper := helper_of(function)) is not None:
                return _Explanation(explain_helper(helper))
            meant = " or ".join(near(function))
            hint = f"Did you mean {meant}?" if meant else "No name is spelled like it."
            raise LookupError(f"there is no function {function!r}. {hint}")
    else:
        entry = entry_of(function) or find(getattr(function, "__name__", ""))
        if entry is None:
            raise LookupError(f"the engine knows nothing of {function!r}; np.tanh is an example.")
    return _Explanation(explain(entry))
