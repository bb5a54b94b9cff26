"""Hydra config groups and the classes that they fill."""

from typing import Literal

Dtype = Literal["float32", "bfloat16", "float16"]
"""Of weights; here because the command line names it without loading the schema."""
