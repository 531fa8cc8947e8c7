"""Pictures of memory over the time of a step."""
