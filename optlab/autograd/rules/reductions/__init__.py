"""Derivative rules of reductions and of cumulative functions."""
