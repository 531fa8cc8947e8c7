"""Activation checkpointing: functions and chains of layers that run again in the backward pass."""
