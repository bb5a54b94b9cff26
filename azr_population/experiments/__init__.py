"""Recipes: arms x seeds -> runs -> the paper's tables and figures, with intervals over seeds."""
