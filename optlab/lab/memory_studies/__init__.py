"""Memory studies: one step measured with several ways of recomputation."""
