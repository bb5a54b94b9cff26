"""What a run shows: live progress, program complexity, the HTML report."""
