"""Block plans on a GPU: an elementwise rule as one kernel."""
