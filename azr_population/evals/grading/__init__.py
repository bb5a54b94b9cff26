"""What counts as right. Programs run in the referee's sandbox and nowhere else."""
