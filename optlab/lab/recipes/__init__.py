"""Recipes: models, their data, optimizers and schedules, and the results that they reach."""
