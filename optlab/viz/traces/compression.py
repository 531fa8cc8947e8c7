"""Deep gradient compression over the steps: what a rank sent, and what it held back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import plotly.graph_objects as go

from optlab.backend.memory.sizes import in_words
from optlab.viz.backends.matplotlib.draw import draw_png
from optlab.viz.backends.plotly.draw import draw
from optlab.viz.style import layout
from optlab.viz.style.labels import labeled_trace
from optlab.viz.style.text import format_percent
from optlab.viz.traces.figure import trace_scene
from optlab.viz.traces.view import Curve, TraceView, page_of

#: Names of the curves of what is exchanged whole, and of all parameters together.
_WHOLE, _TOTAL = "exchanged whole", "all together"
_MOST = 8


@layout.documented
def dgc(trace: Any, *, note: str = "", width: int = 850, height: int = 420) -> go.Figure:
    """Draw what a rank of `DGCMomentum` sent in each step, and what it held back, by parameter.

    On the left the bytes that the rank put into each step, of all parameters together and of each
    that is compressed; on the right the norm of what it holds back. Vertical lines mark the steps
    at which the sparsity changes.

    Parameters
    ----------
    trace : Trace
        A run of `DGCMomentum`, as `optlab.record` keeps it, or with
        ``probes=[ol.probes.Compression()]`` alone.
    note : str
        Further text under the figure.

    Raises
    ------
    TypeError, ValueError
        If it is no trace, or nothing of an exchange was recorded in it.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> def train(comm):
    ...     w = ol.Parameter(np.zeros(20_000, np.float32), name="w")
    ...     sgd = ol.optimizer.DGCMomentum(0.5, 0.9, 2, sparsity=[0.999], parameters=[w])
    ...     with ol.record(sgd, probes=[ol.probes.Compression()]) as trace:
    ...         for _ in range(5):
    ...             sgd.minimize(((w - 1.0) ** 2).sum())
    ...     return trace
    >>> dgc(ol.parallel.LocalWorld(2).run(train)[0]).layout.title.text
    '<b>What a rank sent and held back</b>'
    """
    return draw(trace_scene(compression_view(labeled_trace(trace), note, width, height)))


@layout.documented
def dgc_png(
    trace: Any, *, note: str = "", width: int = 850, height: int = 420, scale: float = 1.0
) -> bytes:
    """Draw a run of `DGCMomentum` as a PNG image; arguments as for `dgc`."""
    view = compression_view(labeled_trace(trace), note, width, height)
    return draw_png(trace_scene(view), scale)


def compression_view(trace: Any, note: str, width: int, height: int) -> TraceView:
    """Build the view of a run; raise if nothing of an exchange was recorded."""
    if not hasattr(trace, "terms") or not hasattr(trace, "names"):
        raise TypeError(f"dgc takes a trace, what ol.record gave; got {type(trace).__name__}.")
    of = _reader(trace)
    sent, held, shares = of("bytes_sent"), of("residual_norm"), of("sparsity")
    compressed = [name for name, (_, y) in shares.items() if np.nanmax(y, initial=0.0) > 0]
    if not compressed:
        compressed = [name for name, (_, y) in held.items() if np.nanmax(y, initial=0.0) > 0]
    whole = [name for name in sent if name not in compressed]
    steps = next(iter(sent.values()))[0]
    total = np.nansum([y for _, y in sent.values()], axis=0)
    shown = sorted(compressed, key=lambda name: -float(np.nanmax(sent[name][1])))[:_MOST]
    bytes_of = {_TOTAL: (steps, total)} if len(sent) > 1 else {}
    bytes_of |= {name: sent[name] for name in shown}
    if whole:
        bytes_of[_WHOLE] = steps, np.nansum([sent[name][1] for name in whole], axis=0)
    # A norm of zero, before anything is held back, has no place on a logarithmic axis.
    held_of = {name: (held[name][0], np.where(held[name][1] > 0, held[name][1], np.nan))
               for name in shown}  # fmt: skip
    curves = {"Bytes that a rank sends": bytes_of}
    if held_of:
        curves["Norm of what it holds back"] = held_of
    left_out = len(compressed) - len(shown)
    said = ["Vertical lines: the sparsity changes."]
    said += [f"{_WHOLE.capitalize()}: parameters of fewer than 16,384 elements."] if whole else []
    said += [f"Left out: {left_out} smaller compressed parameters."] if left_out else []
    return page_of(
        curves, None, "What a rank sent and held back", _headline(total, shares, compressed),
        " ".join(filter(None, [*said, note])), _changes(shares, compressed), width, height,
    )  # fmt: skip


def _reader(trace: Any) -> Callable[[str], dict[str, Curve]]:
    """Return a function that reads a quantity by parameter."""

    def read(quantity: str) -> dict[str, Curve]:
        if quantity not in trace.names:
            raise ValueError(
                f"nothing of an exchange was recorded in the trace {trace.name!r}: record a run of "
                "DGCMomentum, ol.record(optimizer, probes=[ol.probes.Compression()])."
            )
        steps = np.asarray(trace.steps(quantity), dtype=np.float64)
        return {name: (steps, np.asarray(x, np.float64)) for name, x in trace[quantity].items()}

    return read


def _changes(shares: dict[str, Curve], compressed: list[str]) -> tuple[float, ...]:
    """Return the steps at which the sparsity of a parameter changes."""
    found: set[float] = set()
    for name in compressed:
        steps, y = shares[name]
        found |= set(steps[1:][np.diff(y) != 0].tolist())
    return tuple(sorted(found))


def _headline(total: Any, shares: dict[str, Curve], compressed: list[str]) -> str:
    first, last = float(total[0]), float(total[-1])
    text = f"In the last step a rank sent {in_words(int(last))}"
    if compressed:
        text += f", with {format_percent(float(shares[compressed[0]][1][-1]))} kept back"
    if first > last:
        text += f"; in the first {in_words(int(first))}, {first / last:,.0f} times as much"
    return f"{text}."
