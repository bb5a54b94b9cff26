"""Domains of tasks: prompts, parsing, judging; one folder each."""
