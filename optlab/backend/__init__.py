"""Floor 0: array modules, random keys, events, the display registry. No Tensors here."""
