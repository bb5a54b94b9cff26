"""Co-evolving populations of LoRA adapters for reasoning self-play.

Importing this package is cheap on purpose: it pulls in neither torch, ray, verl nor vllm, so that
the Hydra plugin can be discovered inside any AZR environment without slowing it down.
"""

__version__ = "0.1.0"
