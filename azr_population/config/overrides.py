"""Overrides as people type them: read by Hydra's parser, checked against the schema.

Hydra takes any key behind a `+`, any key of its own, and lists of values for a sweep, none of which
a run here has a use for.
"""

import re

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException

from azr_population.config.schema import Config, Section, unknown_key
from azr_population.errors import UserError

_DICTIONARIES = (
    r"\+{0,2}(evolution\.operators|evolution\.options|evolution\.selection_options"
    r"|matchmaking\.options|engine\.vllm)"
)
_ENTRIES = re.compile(_DICTIONARIES + r"\.([^=]+)=(.*)")
"""An entry of a field that is a dictionary, which may be new."""
_SEVERAL = re.compile(_DICTIONARIES + r"=(\{.*)", re.DOTALL)
"""Several of them."""


def read_override(text: str) -> Override:
    """One `KEY=VALUE` of the command line. Raises UserError: it is no such thing, its key is none
    of the schema's, or it asks for several runs, for a key less, or for a key more."""
    try:
        override = OverridesParser.create().parse_override(_with_new_entry(text))
    except HydraException as error:
        raise UserError(
            f"{text} cannot be read as KEY=VALUE; quote a value that holds signs, as in "
            "\"run.dir='runs/a=b'\""
        ) from error
    key = override.key_or_group
    if not _ENTRIES.fullmatch(text) and key not in set(Config.keys()):
        raise unknown_key(Config, key)
    if override.is_delete():
        raise UserError(f"{text}: no key can be taken away; leave it out for its default")
    if override.is_sweep_override():
        raise UserError(_several(text, key, _is_list(key)))
    chooses = key in Config.sections() and isinstance(override.value(), str)
    if override.is_add() or (override.is_force_add() and chooses):
        bare = text.lstrip("+")
        raise UserError(f"{text}: leave out the plus, which only AZR's command needs: {bare}")
    return override


def _is_list(key: str) -> bool:
    """Whether the field takes a list."""
    kind: type[Section] = Config
    *sections, name = key.split(".")
    for section in sections:
        kind = kind.sections().get(section, Section)
    field = kind.model_fields.get(name)
    return field is not None and "list[" in str(field.annotation)


def _several(text: str, key: str, is_list: bool) -> str:
    values = text.partition("=")[2]
    if is_list:
        return f"{text}: a list has brackets: {key}=[{values}]"
    numbers = re.fullmatch(r"[\w.,+-]+", values)
    told = values.replace(",", " ") if numbers else "1 2 3"
    return (
        f"{text}: a run has one value; for several runs: for v in {told}; do azr-population train "
        f"{key}=$v run.dir=runs/{key}_$v; done"
    )


def _with_new_entry(text: str) -> str:
    """An override of one entry of a dictionary, such that Hydra takes a new entry too.

    Hydra refuses `evolution.options.dare.p=0.5` without `++`, cannot parse the name of a sequence
    of operators as a key, and takes the dots of a path for levels. What an entry may be called is
    checked afterwards.
    """
    if several := _SEVERAL.fullmatch(text):
        return f"++{several[1]}={several[2]}"
    entry = _ENTRIES.fullmatch(text)
    if not entry:
        return text
    node, name, value = entry.groups()
    plain = f"++{node}.{name}={value}"
    if node == "evolution.options":
        if "+" in name:
            raise UserError(
                f"{text}: options are given by operator and hold in sequences too, as in "
                "evolution.options.full_gaussian.eps=0.1"
            )
        operator, _, option = name.rpartition(".")
        # In a dictionary within a dictionary OmegaConf takes no 1 for 1.0.
        number = f"{value}.0" if re.fullmatch(r"-?\d+", value) else value
        return f"++{node}={{{operator}:{{{option}:{number}}}}}" if "." in operator else plain
    if node == "evolution.operators" and re.search(r"[+.]", name):
        return f"++{node}={{{name}:{value}}}"
    return plain
