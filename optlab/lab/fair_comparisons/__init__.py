"""Comparisons over seeds and budgets, each optimizer tuned by the same budget."""
