"""Figures of real models: landscapes, paths, connections, curvature, decision boundaries."""
