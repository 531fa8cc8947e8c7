"""The answer to NumPy's array protocols (NEP 13 and NEP 18) when a function meets a Tensor."""
