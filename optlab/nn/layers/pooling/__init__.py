"""Pooling and unpooling as layers."""
