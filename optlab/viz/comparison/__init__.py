"""Pictures of a comparison of optimizers."""
