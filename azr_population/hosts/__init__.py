"""Where a population lives: a run on this machine, a run inside AZR, and who hears of both."""
