"""Floor 3, the names of Paddle 1.8.5: ``optlab.fluid.optimizer`` and what its examples use."""

from optlab.fluid import clip, dygraph, layers, optimizer, regularizer
from optlab.fluid.dygraph import load_dygraph, save_dygraph
from optlab.fluid.instead import EAGER as _EAGER
from optlab.fluid.instead import STATIC as _STATIC
from optlab.fluid.instead import no_such_name as _no_such_name
from optlab.fluid.places import CPUPlace, CUDAPlace
from optlab.nn import ParamAttr

__all__ = [
    "CPUPlace",
    "CUDAPlace",
    "ParamAttr",
    "clip",
    "dygraph",
    "layers",
    "load_dygraph",
    "optimizer",
    "regularizer",
    "save_dygraph",
]

_INSTEAD = {
    **_STATIC,
    "io": "states are saved by ol.save and read by ol.load; data come from ol.io.DataLoader.",
    "save": "write ol.save(model.state_dict(), path).",
    "load": "write model.set_state_dict(ol.load(path)).",
    "initializer": "write ol.nn.initializer, which has Constant, Normal, XavierUniform and others.",
    "nets": "write a class of ol.nn.Layer.",
    "metrics": "compute it from prediction.numpy().",
    "backward": "write loss.backward(), or ol.grad(function).",
    "embedding": "make table = ol.nn.Embedding(num_embeddings, embedding_dim), and call it.",
    "one_hot": "write ol.nn.functional.one_hot(x, num_classes).",
    "core": "it is internal to Paddle.",
    "unique_name": "layers name themselves: layer.full_name().",
    "cpu_places": "write [ol.fluid.CPUPlace()].",
    "cuda_places": "write [ol.fluid.CUDAPlace(0)].",
    "is_compiled_with_cuda": "ol.doctor() says whether there is a GPU.",
    "CUDAPinnedPlace": "there is no such memory here; write ol.fluid.CPUPlace().",
    "enable_dygraph": "everything runs eagerly; leave it out.",
    "enable_imperative": "everything runs eagerly; leave it out.",
    "disable_dygraph": f"{_EAGER}.",
    "disable_imperative": f"{_EAGER}.",
    "in_dygraph_mode": "write ol.in_dynamic_mode().",
    "DistributeTranspiler": "optlab runs in one process.",
}


def __getattr__(name: str) -> object:
    raise _no_such_name("optlab.fluid", name, __all__, _INSTEAD)


def __dir__() -> list[str]:
    return __all__
