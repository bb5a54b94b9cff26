"""The local host: proposes, verifies, solves and grades on this machine, and holds the exam."""
