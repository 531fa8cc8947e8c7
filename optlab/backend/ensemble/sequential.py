"""Functions that run member by member, in a loop.

NumPy's versions take no leading axes. The list is exhaustive: no other function falls back to a
loop.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.backend.ensemble.batched_call import Call
from optlab.backend.ensemble.registry import batched, numpy_function, public_name, refusal

SEQUENTIAL = (
    "average bincount convolve corrcoef correlate cov digitize ediff1d geomspace gradient "
    "histogram insert interp isin lexsort linspace logspace meshgrid polyfit polyval resize "
    "searchsorted vander linalg.lstsq linalg.tensorinv linalg.tensorsolve "
    "fft.fft2 fft.ifft2 fft.fftn fft.ifftn fft.rfft2 fft.irfft2 fft.rfftn fft.irfftn fft.hfft "
    "fft.ihfft fft.fftshift fft.ifftshift"
).split()


def _stack_results(call: Call, function: Any, results: list[Any]) -> Any:
    """Stack the results of the members, output by output if a function has several."""
    first = results[0]
    if isinstance(first, (tuple, list)):
        parts = [_stack_results(call, function, list(part)) for part in zip(*results, strict=True)]
        return getattr(type(first), "_make", type(first))(parts)
    if any(np.shape(y) != np.shape(first) for y in results):
        raise refusal(
            f"{public_name(function)} on these arguments",
            "It gives the members results of different shapes; fix the length, for instance with "
            "minlength= or bins=.",
        )
    return call.wrap(np.stack([np.asarray(y) if np.isscalar(y) else y for y in results]))


def _run_sequentially(path: str) -> None:
    function = numpy_function(path)

    @batched(path)
    def rule(call: Call, *args: Any, **kwargs: Any) -> Any:
        results = [
            function(*call.member(args, k), **call.member(kwargs, k)) for k in range(call.count)
        ]
        return _stack_results(call, function, results)


for path in SEQUENTIAL:
    _run_sequentially(path)
