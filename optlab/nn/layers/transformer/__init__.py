"""Multi-head attention and the transformer."""
