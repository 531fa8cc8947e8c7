"""Convolutions and transposed convolutions as layers."""
