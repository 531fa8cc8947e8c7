"""The parts of L-BFGS: history, line search, the point as one flat vector."""
