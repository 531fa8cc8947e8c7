"""Pipelines: sections of a network on workers of their own, micro-batch after micro-batch."""

from optlab.optimizer.wrappers.pipeline.optimizer import PipelineOptimizer
from optlab.optimizer.wrappers.pipeline.schedule import bubble, simulate
from optlab.optimizer.wrappers.pipeline.timeline import PipelineTrace, Span

__all__ = ["PipelineOptimizer", "PipelineTrace", "Span", "bubble", "simulate"]
