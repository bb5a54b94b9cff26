"""Runs side by side: what differs, curves with bands over seeds, verdicts with intervals."""
