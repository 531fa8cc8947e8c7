"""Panels drawn by matplotlib: the static images."""
