"""Numbers of bytes, read from text and written as text."""

from __future__ import annotations

import re
from typing import Any

_UNITS = {"": 1, "B": 1} | {
    f"{prefix}{infix}B": base**power
    for infix, base in (("", 1000), ("i", 1024))
    for power, prefix in enumerate("KMGT", start=1)
}


def bytes_from(budget: Any, name: str = "budget") -> int:
    """Read a number of bytes: an integer, or text such as ``"64 MiB"``.

    Parameters
    ----------
    budget : int or str
    name : str
        The name of the argument, for messages.

    Raises
    ------
    TypeError, ValueError
        If it is neither.

    Examples
    --------
    >>> bytes_from("64 MiB"), bytes_from("1.5 kB"), bytes_from(4096)
    (67108864, 1500, 4096)
    """
    wrong = (
        f"{name} is a number of bytes, or text such as '64 MiB' (units B, KB, MB, GB, KiB, MiB, "
        f"GiB); got {budget!r}."
    )
    if isinstance(budget, str):
        found = re.fullmatch(r"\s*([0-9.]+(?:[eE][0-9]+)?)\s*([A-Za-z]*)\s*", budget)
        units = {name.lower(): size for name, size in _UNITS.items()}
        if found and found[2].lower() in ("k", "m", "g", "t"):
            amount, letter = found[1], found[2].upper()
            raise ValueError(
                f"{name}={budget!r} leaves open which unit is meant: write '{amount} {letter}iB' "
                f"(of {_UNITS[letter + 'iB']:,} bytes) or '{amount} {letter}B' (of "
                f"{_UNITS[letter + 'B']:,} bytes)."
            )
        if not found or found[2].lower() not in units:
            raise ValueError(wrong)
        try:
            size = float(found[1]) * units[found[2].lower()]
        except ValueError:
            raise ValueError(wrong) from None
        if not found[2] and 0 < size < units["kib"]:
            raise ValueError(
                f"{name}={budget!r} has no unit: write '{found[1]} MiB', or a number for bytes."
            )
    elif isinstance(budget, bool) or not hasattr(budget, "__index__"):
        if not isinstance(budget, float) or budget != budget // 1:
            raise TypeError(wrong)
        size = budget
    else:
        size = budget.__index__()
    if not 0 < size < float("inf"):
        raise ValueError(wrong if size else f"a {name} has to be more than nothing: {wrong}")
    return int(size)


def in_words(size: int) -> str:
    """Return a number of bytes as text that `bytes_from` reads, rounded up to hundredths of a unit.

    Examples
    --------
    >>> in_words(67108864), in_words(1500), in_words(300)
    ('64 MiB', '1.47 KiB', '300 B')
    """
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        factor = _UNITS[unit]
        if size >= factor:
            hundredths = -(-size * 100 // factor)
            return f"{hundredths / 100:g} {unit}"
    return f"{size} B"
