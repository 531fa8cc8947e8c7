"""Activations as layers."""
