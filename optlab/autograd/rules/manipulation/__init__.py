"""Derivative rules of functions that select, move, join and pad elements."""
