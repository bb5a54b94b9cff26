"""A configuration as YAML with the meaning and the bounds of every field; the reference page."""

import textwrap
import typing
from collections.abc import Iterator

from omegaconf import OmegaConf
from pydantic.fields import FieldInfo

from azr_population.config.effects import affects
from azr_population.config.schema import Config, Section

BOUNDS = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}


def explained(config: Config) -> str:
    """As `to_yaml`, with a comment above every field; `config_from_file` reads it too."""
    return "\n".join(_lines(config)) + "\n"


def reference() -> str:
    """`docs/reference.md`: a table for each section."""
    lines = [
        "# Configuration",
        "",
        "Made from `azr_population/config/schema.py` by `python -m azr_population.config.explained "
        "> docs/reference.md`. Defaults are those of the models; groups such as `base=nano` set "
        "their own (`azr-population train --config`).",
    ]
    return "\n".join([*lines, *_tables(Config(), affects(Config))]) + "\n"


def _lines(section: Section, indent: str = "") -> Iterator[str]:
    for name, field in type(section).model_fields.items():
        value = getattr(section, name)
        is_section = isinstance(value, Section)
        meaning = _title(value) if is_section else "; ".join(filter(None, _described(field)))
        start = f"{indent}# "
        yield from textwrap.wrap(meaning, 100, initial_indent=start, subsequent_indent=start)
        if is_section:
            yield f"{indent}{name}:"
            yield from _lines(value, f"{indent}  ")
        else:
            yield textwrap.indent(OmegaConf.to_yaml({name: value}), indent).rstrip("\n")


def _tables(section: Section, changes: dict[str, str], key: str = "") -> Iterator[str]:
    values = vars(section)
    parts = {name: value for name, value in values.items() if isinstance(value, Section)}
    yield from ("", f"## {key or 'run as a whole'}", "")
    yield from ("| key | default | meaning | accepted | affects |", "|---|---|---|---|---|")
    for name, field in type(section).model_fields.items():
        if name not in parts:
            change = changes[f"{key}.{name}".lstrip(".")]
            cells = (f"`{name}`", f"`{values[name]}`", *_described(field), change)
            yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
    for name, part in parts.items():
        yield from _tables(part, changes, f"{key}.{name}".lstrip("."))


def _title(section: Section) -> str:
    return (type(section).__doc__ or "").partition("\n")[0].rstrip(".")


def _described(field: FieldInfo) -> tuple[str, str]:
    """A field's meaning, and its bounds in words."""
    meaning = " ".join((field.description or "").split()).rstrip(".")
    for option in (field.annotation, *typing.get_args(field.annotation)):
        if typing.get_origin(option) is typing.Literal:
            return meaning, "one of " + ", ".join(typing.get_args(option))
    limits = (
        (word, getattr(m, name, None)) for m in field.metadata for name, word in BOUNDS.items()
    )
    return meaning, " and ".join(f"{word} {limit:g}" for word, limit in limits if limit is not None)


if __name__ == "__main__":
    print(reference(), end="")
