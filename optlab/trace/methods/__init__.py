"""The methods of a trace, by subject; `optlab.trace.trace` is the class that has them."""
