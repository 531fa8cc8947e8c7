"""Optimizers of several ranks."""
