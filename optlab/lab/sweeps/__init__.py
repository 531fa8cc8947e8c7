"""Parts of `optlab.sweep` and `optlab.basins`: members, their one loop, progress."""
