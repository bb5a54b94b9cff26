"""Runs side by side: what differs between them, curves over seeds, verdicts with intervals."""
