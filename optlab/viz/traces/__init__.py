"""Figures of traces: recorded quantities over the steps, influences of past gradients."""
