"""How a model is asked for code tasks, by name: the `base.prompt_format` of a run."""

from collections.abc import Callable

from azr_population.domains.code.chat_format import ChatFormat
from azr_population.domains.code.nano_format import NanoFormat
from azr_population.domains.code.short_format import ShortFormat
from azr_population.domains.format import Format
from azr_population.registry import Registry

FORMATS: Registry[Callable[[], Format]] = Registry("base.prompt_format")
"""Name -> makes a format."""
FORMATS.register("nano", "special tokens, for the base that ships")(NanoFormat)
FORMATS.register("chat", "AZR's prompts: instructions and fenced blocks")(ChatFormat)
FORMATS.register("short", "a sentence, for bases that were warmed up on it")(ShortFormat)
