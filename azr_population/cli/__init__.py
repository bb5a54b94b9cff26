"""The command line. Every command is a few lines that parse and call the room that does the work;
rooms are imported when a command runs, so that help is fast."""

from azr_population.cli import (  # noqa: F401  (each registers its commands)
    compare_commands,
    look_commands,
    measure_commands,
    part_commands,
    run_commands,
    share_commands,
)
from azr_population.cli.app import app, main

__all__ = ["app", "main"]
