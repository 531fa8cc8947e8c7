"""Comparisons over seeds and budgets: bands, performance profiles, what tuning costs."""
