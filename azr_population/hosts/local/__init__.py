"""A run on this machine: checked, planned, played, resumed."""
