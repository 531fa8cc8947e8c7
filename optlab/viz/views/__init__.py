"""View models, plain data: a map with paths, curves over steps."""
