"""Floor 3, data: data sets and loaders, and saving and loading without pickle."""

from optlab.backend.foreign_arguments import hint as _hint
from optlab.backend.namespaces import missing as _missing
from optlab.backend.namespaces import set_module as _set_module
from optlab.backend.wrong_arguments import explain_all as _explain_all
from optlab.io.datasets import (
    ConcatDataset,
    Dataset,
    IterableDataset,
    Subset,
    TensorDataset,
    random_split,
)
from optlab.io.fetch import get_worker_info
from optlab.io.files import load, save
from optlab.io.loader import DataLoader
from optlab.io.samplers import (
    BatchSampler,
    DistributedBatchSampler,
    RandomSampler,
    Sampler,
    SequenceSampler,
    WeightedRandomSampler,
)
from optlab.io.structures import UnreadableFileError
from optlab.io.workers import WorkerError

__all__ = [
    "BatchSampler", "ConcatDataset", "DataLoader", "Dataset", "DistributedBatchSampler",
    "IterableDataset", "RandomSampler", "Sampler", "SequenceSampler", "Subset", "TensorDataset",
    "UnreadableFileError", "WeightedRandomSampler", "WorkerError", "get_worker_info",
    "load", "random_split", "save",
]  # fmt: skip

_explain_all(globals(), _hint)
_set_module(__name__)


def __getattr__(name: str) -> object:
    raise _missing("optlab.io", name, __all__)


def __dir__() -> list[str]:
    return __all__
