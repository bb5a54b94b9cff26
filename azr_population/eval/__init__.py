"""Stored members measured after their run: a held-out eval, cross-play."""
