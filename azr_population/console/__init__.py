"""The terminal: progress of a run, what members wrote."""
