"""The command line. Every command is a few lines that parse and call the room that does the work;
rooms are imported when a command runs, so that help is fast."""

# Each module registers its commands.
from azr_population.cli import measure_commands, part_commands, run_commands  # noqa: F401
from azr_population.cli.app import app, main

__all__ = ["app", "main"]
