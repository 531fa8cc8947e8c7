"""Capture of whole calls: forward pass, backward pass and update, recorded and replayed."""

# It registers itself with the description of plans.
from optlab.plan.calls import step_description as step_description
