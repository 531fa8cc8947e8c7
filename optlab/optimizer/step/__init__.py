"""One step: gather gradients, clip, update, write, publish."""
