"""A configuration as YAML with the meaning of every field, its bounds and what it affects: what
`azr-population train --config` prints, and docs/reference.md."""

import textwrap
import typing
from collections.abc import Iterator

from omegaconf import OmegaConf
from pydantic.fields import FieldInfo

from azr_population.config.effects import effect_of
from azr_population.config.schema import Config
from azr_population.config.section import Section

BOUNDS = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
PAGE = """\
# Configuration

All fields with their defaults, made from `azr_population/config/schema.py` by
`python -m azr_population.config.explained > docs/reference.md`. Groups such as `base=nano` set
their own defaults; `azr-population train --config` prints the values of a run in this form. A
section or field affects training unless its comment names something else. `resume` may change what
affects evaluation, duration or nothing.

```yaml
{}```
"""


def explained(config: Config) -> str:
    """YAML of the configuration with a comment above every field; `config_from_file` reads it
    too."""
    return "\n".join(_lines(config, "training")) + "\n"


def _lines(section: Section, inherited: str, indent: str = "") -> Iterator[str]:
    plain = section.model_dump()
    for name, field in type(section).model_fields.items():
        value, effect = getattr(section, name), effect_of(field, inherited)
        is_section = isinstance(value, Section)
        parts = [_title(value)] if is_section else [*_described(field)]
        if effect != inherited:
            parts.append(f"affects {'nothing' if effect == 'none' else effect}")
        comment, start = "; ".join(filter(None, parts)), f"{indent}# "
        yield from textwrap.wrap(comment, 100, initial_indent=start, subsequent_indent=start)
        if is_section:
            yield f"{indent}{name}:"
            yield from _lines(value, effect, f"{indent}  ")
        else:
            yield textwrap.indent(OmegaConf.to_yaml({name: plain[name]}), indent).rstrip("\n")


def _title(section: Section) -> str:
    paragraph = (type(section).__doc__ or "").partition("\n\n")[0]
    return " ".join(paragraph.split()).rstrip(".")


def _described(field: FieldInfo) -> Iterator[str]:
    """A field's meaning, and the values that it takes."""
    yield " ".join((field.description or "").split()).rstrip(".")
    for option in (field.annotation, *typing.get_args(field.annotation)):
        if typing.get_origin(option) is typing.Literal:
            yield "one of " + ", ".join(typing.get_args(option))
    limits = ((word, getattr(m, of, None)) for m in field.metadata for of, word in BOUNDS.items())
    yield " and ".join(f"{word} {_number(limit)}" for word, limit in limits if limit is not None)


def _number(limit: float) -> str:
    return str(limit) if isinstance(limit, int) else f"{limit:g}"


if __name__ == "__main__":
    print(PAGE.format(explained(Config())), end="")
