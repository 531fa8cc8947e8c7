"""Landscapes: the loss of a model along lines, curves and planes through its weights."""
