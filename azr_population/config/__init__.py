"""Hydra config groups and the dataclasses that they fill."""
