"""Pictures of memory studies: what recomputation saves, and what it costs."""
