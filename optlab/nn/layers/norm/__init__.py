"""Normalizations as layers."""
