"""Calls of the functions of networks, at which all requirements on a rule are checked."""

from tests.nn.cases import (
    activations,
    attentions,
    convolutions,
    embeddings,
    likelihoods,
    losses,
    normalizations,
    poolings,
    recurrences,
    resamplings,
    samplings,
)
from tests.nn.cases.table import CASES, Case

__all__ = [
    "CASES", "Case", "activations", "attentions", "convolutions", "embeddings", "likelihoods",
    "losses", "normalizations", "poolings", "recurrences", "resamplings",
    "samplings",
]  # fmt: skip
