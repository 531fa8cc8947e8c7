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

# NumPy's functions dispatch to Tensors, so they are handed on as they are.
_NUMPY_FUNCTIONS = (
    "abs", "broadcast_to", "clip", "concatenate", "cos", "cosh", "cumsum", "exp", "expand_dims",
    "expm1", "flip", "hypot", "log", "log10", "log1p", "log2", "logaddexp", "matmul",
    "maximum", "minimum", "moveaxis", "power", "ravel", "reshape", "roll",
    "sign", "sin", "sinh", "sqrt", "square", "squeeze", "stack", "std", "swapaxes", "tan",
    "tanh", "transpose", "var", "where",
)  # fmt: skip
_REDUCTIONS = ("max", "mean", "min", "prod", "sum")

_DTYPES = ("bool", "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8")

# Name -> "module:attribute", or a module alone.
_NAMES = {
    # packages
    "amp": "optlab.amp",
    "autograd": "optlab.autograd",
    "data": "optlab.lab.data",
    "fluid": "optlab.fluid",
    "incubate": "optlab.incubate",
    "io": "optlab.io",
    "jit": "optlab.jit",
    "lab": "optlab.lab",
    "memory": "optlab.trace.memory",
    "nn": "optlab.nn",
    "numpy": "optlab.numpy",
    "optimizer": "optlab.optimizer",
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
    "record": "optlab.trace:record",
    "compare": "optlab.lab:compare",
    "sweep": "optlab.lab:sweep",
    "doctor": "optlab._doctor:doctor",
    "explore": "optlab.viz.explorer:explore",
    # NumPy's, with Paddle's arguments
    **{name: "optlab.autograd.dispatch.paddle_reductions:" + name for name in _REDUCTIONS},
    **{name: "numpy:" + name for name in (*_NUMPY_FUNCTIONS, *_DTYPES)},
}

# `from optlab import *` must neither change what sum, min, max, abs, bool and numpy mean, nor need
# the extras `lab` and `formats`.
__all__ = sorted({*_NAMES} - {"abs", "bfloat16", "bool", "max", "min", "sum", "numpy", "viz"})


def __getattr__(name):
    if name not in _NAMES:
        # With an explicit obj Python adds no suggestion of its own.
        raise AttributeError(_unknown(name), name=name, obj=None)
    from importlib import import_module

    place, _, attribute = _NAMES[name].partition(":")
    try:
        found = import_module(place)
    except ModuleNotFoundError as error:
        if not (error.name or "optlab").startswith("optlab"):
            error.add_note(f"ol.{name} needs {error.name}; ol.doctor() says how to install it.")
        raise
    if attribute:
        found = getattr(found, attribute)
    globals()[name] = found  # so that this function runs only once per name
    return found


def __dir__():
    return sorted({*_NAMES, "__version__"})


#: Names of NumPy's functions in other libraries.
_OF_NUMPY = {
    "bmm": "a @ b",
    "cast": "t.astype(dtype)",
    "cat": "np.concatenate([...], axis=...)",
    "clone": "t.copy()",
    "concat": "np.concatenate([...], axis=...)",
    "equal": "np.equal(a, b)",
    "expand": "np.broadcast_to(t, shape)",
    "flatten": "t.flatten(), or np.reshape(t, ...)",
    "gather": "np.take(t, index, axis)",
    "mm": "a @ b",
    "numel": "t.size",
    "permute": "np.transpose(t, axes)",
    "pow": "t ** exponent",
    "topk": "np.sort or np.argsort",
    "unsqueeze": "np.expand_dims(t, axis)",
}


def _unknown(name):
    sentence = f"optlab has no name {name!r}"
    if name.startswith("_"):  # tools probe for such names; a suggestion would not be read
        return sentence
    if name in ("enable_static", "static"):
        return f"{sentence}: there are no static graphs here; everything runs as it is called."
    if name in _OF_NUMPY:
        return f"{sentence}: NumPy's functions take Tensors, write {_OF_NUMPY[name]}."
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
