"""Gradient descent and momentum on quadratics: the modes along the eigenvectors."""
