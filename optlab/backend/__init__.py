"""Floor 0: array modules, random keys, events and the display registry. Nothing here knows of Tensors."""
