"""optlab: a laboratory for optimizers.

A NumPy autograd and optimizer engine that can show everything it does.

>>> import optlab as ol
>>> slope = ol.grad(lambda x: x**3)
>>> float(slope(2.0))
12.0

This module only hands names on. Each name is imported when it is first used (PEP 562), so that
``import optlab`` costs next to nothing and needs neither a browser nor a GPU.
``optlab/__init__.pyi`` lists the same names for editors and type checkers.
"""

__version__ = "0.1.0"

# NumPy's functions dispatch to Tensors, so these, which Paddle does not have, are handed on as they
# are.
_NUMPY_FUNCTIONS = ("concatenate", "expand_dims", "power", "ravel")

#: Paddle's names for NumPy's functions, by the file of `optlab.paddle_names` that holds them.
_PADDLE_NAMES = {
    "elementwise": """
        abs acos acosh add add_n asin asinh atan atan2 atanh cast ceil clip copysign cos cosh
        deg2rad divide exp expm1 floor floor_divide floor_mod fmax fmin frac get_default_dtype
        heaviside hypot increment is_floating_point is_integer is_tensor lerp log log10 log1p
        log2 logaddexp maximum minimum mod multiply nan_to_num neg numel pow rad2deg rank
        reciprocal remainder round rsqrt scale set_default_dtype shape sign sin sinh sqrt square
        subtract tan tanh trunc
    """,
    "comparisons": """
        allclose bitwise_and bitwise_not bitwise_or bitwise_xor equal equal_all greater_equal
        greater_than isclose isfinite isin isinf isnan less_equal less_than logical_and
        logical_not logical_or logical_xor not_equal
    """,
    "reductions": """
        all amax amin any argmax argmin count_nonzero cumprod cumsum diff dist logsumexp max
        mean median min nanmean nansum norm prod quantile std sum var
    """,
    "shapes": """
        broadcast_shape broadcast_tensors broadcast_to chunk concat expand expand_as flatten
        flip hstack meshgrid moveaxis repeat_interleave reshape roll rot90 split squeeze stack
        swapaxes t tile transpose unbind unsqueeze unstack vstack
    """,
    "indexing": """
        argsort bincount diag diagonal gather gather_nd index_add index_sample index_select
        kthvalue masked_fill masked_select nonzero put_along_axis scatter scatter_nd
        scatter_nd_add searchsorted sort take_along_axis topk tril triu unique where
    """,
    "creation": """
        assign clone empty empty_like eye full_like linspace logspace ones_like tolist
        tril_indices triu_indices zeros_like
    """,
    "products": """
        addmm bmm cross dot einsum inner kron matmul mm mv outer
    """,
}

_DTYPES = ("bool", "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8")

# Name -> "module:attribute", or a module alone.
_NAMES = {
    # packages
    "amp": "optlab.amp",
    "autograd": "optlab.autograd",
    "course": "optlab.course",
    "data": "optlab.lab.data",
    "events": "optlab.backend.events",
    "distributed": "optlab.distributed",
    "fluid": "optlab.fluid",
    "incubate": "optlab.incubate",
    "io": "optlab.io",
    "jit": "optlab.jit",
    "lab": "optlab.lab",
    "memory": "optlab.trace.memory",
    "models": "optlab.lab.models",
    "nn": "optlab.nn",
    "numpy": "optlab.numpy",
    "special": "optlab.special",
    "optimizer": "optlab.optimizer",
    "parallel": "optlab.parallel",
    "probes": "optlab.trace.probes",
    "problems": "optlab.lab.problems",
    "regularizer": "optlab.optimizer.regularizer",
    "trace": "optlab.trace",
    "viz": "optlab.viz",
    # Tensors
    "Tensor": "optlab.autograd:Tensor",
    "to_tensor": "optlab.autograd:to_tensor",
    "no_grad": "optlab.autograd:no_grad",
    "enable_grad": "optlab.autograd:enable_grad",
    "is_grad_enabled": "optlab.autograd:is_grad_enabled",
    "zeros": "optlab.autograd:zeros",
    "ones": "optlab.autograd:ones",
    "full": "optlab.autograd:full",
    "arange": "optlab.autograd:arange",
    # devices
    "disable_static": "optlab.jit:disable_static",
    "in_dynamic_mode": "optlab.jit:in_dynamic_mode",
    "get_device": "optlab.backend.device:get_device",
    "set_device": "optlab.backend.device:set_device",
    # dtypes (the others are NumPy's)
    "bfloat16": "optlab.backend.dtypes:bfloat16",
    # random numbers
    "seed": "optlab.backend.random:seed",
    "get_cuda_rng_state": "optlab.backend.random_state:get_cuda_rng_state",
    "get_rng_state": "optlab.backend.random_state:get_rng_state",
    "set_rng_state": "optlab.backend.random_state:set_rng_state",
    "set_cuda_rng_state": "optlab.backend.random_state:set_cuda_rng_state",
    "random_scope": "optlab.backend.random:scope",
    "rand": "optlab.autograd:rand",
    "randn": "optlab.autograd:randn",
    "randint": "optlab.autograd:randint",
    "uniform": "optlab.autograd:uniform",
    "normal": "optlab.autograd:normal",
    "standard_normal": "optlab.autograd:standard_normal",
    "randperm": "optlab.autograd:randperm",
    "bernoulli": "optlab.autograd:bernoulli",
    "poisson": "optlab.autograd:poisson",
    "multinomial": "optlab.autograd:multinomial",
    # capture and replay
    "capture": "optlab.plan.calls.captured:capture",
    "CaptureError": "optlab.plan:CaptureError",
    # derivatives of functions
    "grad": "optlab.autograd:grad",
    "value_and_grad": "optlab.autograd:value_and_grad",
    "vjp": "optlab.autograd:vjp",
    "jvp": "optlab.autograd:jvp",
    "hvp": "optlab.autograd:hvp",
    "jacobian": "optlab.autograd:jacobian",
    "hessian": "optlab.autograd:hessian",
    "check_grad": "optlab.autograd:check_grad",
    # less memory, more time
    "recompute": "optlab.autograd.checkpoint.recompute:recompute",
    "recompute_sequential": "optlab.autograd.checkpoint.sequential:recompute_sequential",
    "rematerialize": "optlab.autograd.remat.rematerialize:rematerialize",
    # files
    "load": "optlab.io:load",
    "save": "optlab.io:save",
    # ensembles
    "ensemble": "optlab.autograd:ensemble",
    "members": "optlab.autograd:members",
    "vmap": "optlab.autograd:vmap",
    # training, recording, comparing
    "Parameter": "optlab.nn:Parameter",
    "ParamAttr": "optlab.nn:ParamAttr",
    "create_parameter": "optlab.nn:create_parameter",
    "hypergradient": "optlab.trace:hypergradient",
    "load_trace": "optlab.trace:load_trace",
    "record": "optlab.trace:record",
    "compare": "optlab.lab:compare",
    "basins": "optlab.lab:basins",
    "sweep": "optlab.lab:sweep",
    "doctor": "optlab._doctor:doctor",
    "set_blas_threads": "optlab.backend.blas_threads:set_blas_threads",
    "explore": "optlab.viz.explorer:explore",
    "erf": "optlab.nn.functional:erf",
    "sigmoid": "optlab.nn.functional:sigmoid",
    "linalg": "optlab.paddle_names.linalg",
    "metric": "optlab.paddle_names.metric",
    **{
        name: f"optlab.paddle_names.{file}:{name}"
        for file, names in _PADDLE_NAMES.items()
        for name in names.split()
    },
    **{name: "numpy:" + name for name in (*_NUMPY_FUNCTIONS, *_DTYPES)},
}

# `from optlab import *` must neither change what sum, min, max, abs, bool and numpy mean, nor need
# the extras `lab` and `formats`.
_PYTHON_S_OWN = {"abs", "all", "any", "bool", "max", "min", "pow", "round", "sum"}
__all__ = sorted({*_NAMES} - _PYTHON_S_OWN - {"bfloat16", "numpy", "viz"})


def __getattr__(name):
    if name not in _NAMES:
        # With an explicit obj Python adds no suggestion of its own.
        raise AttributeError(_unknown(name), name=name, obj=None)
    from importlib import import_module

    from optlab.backend.extras import needed_for
    from optlab.backend.garbage import collection_paused

    place, _, attribute = _NAMES[name].partition(":")
    with needed_for(f"ol.{name}"), collection_paused():
        found = import_module(place)
    if attribute:
        found = getattr(found, attribute)
    globals()[name] = found  # so that this function runs only once per name
    return found


def __dir__():
    return sorted({*_NAMES, "__version__"})


def _unknown(name):
    sentence = f"optlab has no name {name!r}"
    if name.startswith("_"):  # tools probe for such names; a suggestion would not be read
        return sentence
    from optlab.paddle_names.elsewhere import SENTENCES

    if name in SENTENCES:
        return f"{sentence}: {SENTENCES[name]}."
    import sys
    from difflib import get_close_matches

    # NumPy is not imported for this: Python looks up `optlab.cli` here before it imports that.
    function = getattr(sys.modules.get("numpy"), name, None)
    if callable(function) and not isinstance(function, type):
        return f"{sentence}: NumPy's functions take Tensors, write np.{name}(...)."
    by_lower_case = {known.lower(): known for known in _NAMES}
    near = get_close_matches(name.lower(), by_lower_case, cutoff=0.7)
    if near:
        return f"{sentence}. Did you mean ol.{' or ol.'.join(by_lower_case[n] for n in near)}?"
    return (
        f"{sentence}; dir(optlab) lists them. Optimizers are in ol.optimizer, layers in ol.nn, "
        "test functions and data sets in ol.problems."
    )
