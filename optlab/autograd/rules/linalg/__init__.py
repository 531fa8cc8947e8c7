"""Derivative rules of linear algebra."""
