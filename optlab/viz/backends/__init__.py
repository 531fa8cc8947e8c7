"""Drawing with plotly and with matplotlib: the same panels from the same view models."""
