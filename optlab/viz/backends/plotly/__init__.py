"""Panels drawn by plotly."""
