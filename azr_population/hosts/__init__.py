"""The two hosts of a population (a local run, a run inside AZR) and the loggers of both."""
