"""Exports of a run: members for the Hub, tasks as a data set or as a taskset."""
