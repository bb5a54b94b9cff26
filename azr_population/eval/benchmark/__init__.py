"""Benchmarks as Inspect tasks: problems, models, judges, the table."""
