"""Names that layers and parameters get by themselves: ``linear_0`` and ``linear_0.w_0``.

They are Paddle's, for predicates such as ``exclude_from_weight_decay_fn`` and for messages alone.
What decides numbers, and the keys of states and traces, goes by `Parameter.structural_name` or by
position, so that a cell that is run again stays the same run.
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from typing import Any

_counters: dict[str, Iterator[int]] = defaultdict(itertools.count)


@cache
def snake_case(name: str) -> str:
    """Return the name of a class in lower case, its words joined as Paddle joins them.

    Examples
    --------
    >>> [snake_case(name) for name in ("Linear", "Conv2DTranspose", "LSTMCell", "PReLU")]
    ['linear', 'conv2d_transpose', 'lstm_cell', 'p_re_lu']
    """
    words = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", words).lower()


class UniqueName:
    """A base and a number, ``linear_0``, unique in this process; a copy gets a number of its own.

    Parameters
    ----------
    base : str
    counts : dict, optional
        How many parameters of each kind it has named.

    Examples
    --------
    >>> import copy
    >>> one = UniqueName("doctest_of_names")
    >>> str(one), str(copy.deepcopy(one)), str(UniqueName("doctest_of_names"))
    ('doctest_of_names_0', 'doctest_of_names_1', 'doctest_of_names_2')
    """

    __slots__ = ("base", "counts", "number")

    def __init__(self, base: str, counts: dict[str, int] | None = None) -> None:
        self.base = base
        self.counts = counts or {}
        self.number = next(_counters[base])

    def __str__(self) -> str:
        return f"{self.base}_{self.number}"

    def __reduce__(self) -> Any:
        return type(self), (self.base, dict(self.counts))

    def of_parameter(self, is_bias: bool = False) -> GeneratedName:
        """Return the name of the next parameter: w_0, w_1, ... or, of a bias, b_0, b_1, ..."""
        kind = "b" if is_bias else "w"
        number = self.counts.get(kind, 0)
        self.counts[kind] = number + 1
        return GeneratedName(self, f"{kind}_{number}")


class GeneratedName:
    """The name of a parameter that was given none; in a copied layer it follows the layer's name.

    Examples
    --------
    >>> str(UniqueName("another_doctest").of_parameter(is_bias=True))
    'another_doctest_0.b_0'
    """

    __slots__ = ("owner", "role")

    def __init__(self, owner: UniqueName, role: str) -> None:
        self.owner = owner
        self.role = role

    def __str__(self) -> str:
        return f"{self.owner}.{self.role}"
