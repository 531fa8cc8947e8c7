"""The JavaScript executor: captured plans written as ES modules in float64."""
