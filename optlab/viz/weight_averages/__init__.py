"""Pictures of averaged and slow weights."""
