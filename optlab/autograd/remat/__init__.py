"""Rematerialization: single results are dropped and computed again under a budget of bytes."""
