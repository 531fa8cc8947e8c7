"""Checkpointing schedules of chains (Revolve and others): actions, builders, theory, display."""
