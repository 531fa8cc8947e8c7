"""Plans bound to arrays that stay: calls of NumPy, or one compiled loop."""
