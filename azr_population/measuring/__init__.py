"""Stored members measured after their run: a held-out exam, cross-play."""
