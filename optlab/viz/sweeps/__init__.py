"""Figures of sweeps: final losses over settings, and basins of attraction."""
