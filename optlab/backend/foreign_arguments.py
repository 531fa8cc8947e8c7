"""What to write for arguments that functions and layers have in other libraries, but not here."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

#: Names of arguments in other libraries, with the names here of which one may be known.
ALIASES: dict[str, tuple[str, ...]] = {
    "act_layer": ("activation",),
    "anchor": ("input",),
    "axes": ("axis", "perm"),
    "b": ("bias", "y"),
    "correction": ("ddof",),
    "depth": ("num_classes",),
    "dim": ("axis",),
    "dims": ("axis", "perm"),
    "dropout_prob": ("p", "dropout"),
    "dropout_rate": ("p", "dropout"),
    "end_dim": ("stop_axis",),
    "eps": ("epsilon",),
    "epsilon": ("eps",),
    "grad_tensor": ("grad",),
    "gradient": ("grad",),
    "input": ("x", "logit", "input1", "x1"),
    "inputs": ("x", "input"),
    "kernel": ("kernel_size", "kernel_sizes"),
    "keepdim": ("keepdims",),
    "keepdims": ("keepdim",),
    "label": ("labels",),
    "labels": ("label",),
    "logits": ("logit", "x", "input"),
    "n_heads": ("nhead", "num_heads"),
    "norm_first": ("normalize_before",),
    "num_channels": ("num_features",),
    "num_features": ("num_channels",),
    "prob": ("p",),
    "rate": ("p",),
    "retain": ("retain_graph",),
    "return_indices": ("return_mask",),
    "start_dim": ("start_axis",),
    "target": ("label",),
    "targets": ("label",),
    "tau": ("temperature",),
    "tensor": ("x",),
    "vector_size": ("normalized_shape",),
    "weight": ("weight_attr",),
    "x": ("input", "logit"),
    "x1": ("x",),
    "x2": ("y",),
    "y": ("label",),
}

Sentence = Callable[[Any, Collection[str]], str]


def _bias(value: Any, known: Collection[str]) -> str:
    if "bias_ih_attr" in known:  # recurrent layers have two
        if value is True:
            return "Leave it out: there are biases by default."
        to_write = "False" if value is False else "..."
        return f"Write bias_ih_attr={to_write}, bias_hh_attr={to_write}."
    if "bias_attr" not in known:
        return ""
    if value is True:
        return "Leave it out: there is a bias by default."
    return "Write bias_attr=False." if value is False else "Write bias_attr=..."


def _affine(value: Any, known: Collection[str]) -> str:
    names = [name for name in ("weight_attr", "bias_attr") if name in known]
    if not names:
        return ""
    if value:
        return "Leave it out: scale and shift are learned by default."
    return f"Write {', '.join(f'{name}=False' for name in names)}."


def _eps(value: Any, known: Collection[str]) -> str:
    if "epsilon" not in known:
        return ""
    return f"Write epsilon={value!r}." + (
        " (The momentum here is 1 minus PyTorch's: momentum=0.9 for its 0.1.)"
        if "momentum" in known
        else ""
    )


def _reduction(value: Any, known: Collection[str]) -> str:
    return "Write reduction='mean', 'sum' or 'none'." if "reduction" in known else ""


def _batch_first(value: Any, known: Collection[str]) -> str:
    if value or "time_major" not in known:
        return "Leave it out: the batch is the first axis here."
    return "Write time_major=True."


def _inputs(value: Any, known: Collection[str]) -> str:
    if "retain_graph" not in known:
        return ""
    return (
        "Leave it out: every leaf that needs a gradient gets one. For some of them only, write "
        "ol.grad(f)(x), or x.stop_gradient = True for the others."
    )


def _shape(value: Any, known: Collection[str]) -> str:
    if "order" not in known:
        return ""
    plain = isinstance(value, (int, list, tuple))
    return f"Give it by position: reshape({value!r})." if plain else "Give it by position."


def _unbiased(value: Any, known: Collection[str]) -> str:
    if "ddof" not in known:
        return ""
    return (
        f"Write ol.std(t, unbiased={value!r}) or ol.var(t, unbiased={value!r}), which have it, or "
        f"ddof={1 if value else 0}."
    )


#: Sentences for arguments that are no other name for one here.
SENTENCES: dict[str, Sentence] = {
    "affine": _affine,
    "batch_first": _batch_first,
    "bias": _bias,
    "bidirectional": lambda value, known: (
        "Write direction='bidirect'." if "direction" in known and value else ""
    ),
    "count_include_pad": lambda value, known: (
        f"Write exclusive={not value}." if "exclusive" in known else ""
    ),
    "device": lambda value, known: (
        "Leave it out: a layer is moved by layer.to('gpu'), and results are where their input is."
    ),
    "dtype": lambda value, known: "Leave it out, and write .to(dtype=...) or .astype(...).",
    "elementwise_affine": _affine,
    "eps": _eps,
    "inputs": _inputs,
    "inplace": lambda value, known: "Leave it out: the result is a new Tensor.",
    "momentum": lambda value, known: "Leave it out: there are no running statistics here.",
    "pin_memory": lambda value, known: "Leave it out: arrays are moved as they are used.",
    "perm": lambda value, known: "Write np.transpose(x, axes).",
    "reduce": _reduction,
    "shape": _shape,
    "size_average": _reduction,
    "track_running_stats": lambda value, known: (
        "Leave it out"
        + (
            ", or write use_global_stats=False for the statistics of each batch."
            if "use_global_stats" in known and not value
            else ": that is what there is."
        )
    ),
    "transpose_x": lambda value, known: "Write x.mT @ y.",
    "transpose_y": lambda value, known: "Write x @ y.mT.",
    "unbiased": _unbiased,
}


def hint(name: str, value: Any, known: Collection[str]) -> str:
    """Return what to write for an argument that is unknown here; "" for no idea.

    Examples
    --------
    >>> hint("dim", 1, ["x", "axis"]), hint("bias", False, ["weight_attr", "bias_attr"])
    ('Write axis=1.', 'Write bias_attr=False.')
    """
    sentence = SENTENCES.get(name)
    if sentence is not None and (said := sentence(value, known)):
        return said
    for other in ALIASES.get(name, ()):
        if other in known:
            plain = value is None or isinstance(value, (bool, int, float, str, tuple, list))
            return f"Write {other}={value!r}." if plain else f"Write {other}=..."
    return ""
