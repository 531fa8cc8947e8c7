"""The tape: nodes, running an operation, the backward pass, and what guards saved values.

Imports nothing of the rooms above it: rules, tensor, transforms.
"""

from optlab.autograd.tape.nodes import Leaf, Node

__all__ = ["Leaf", "Node"]
