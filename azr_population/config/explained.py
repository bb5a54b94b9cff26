"""A configuration as YAML with the meaning and the bounds of every field; the reference page."""

import textwrap
import typing
from collections.abc import Iterator

from pydantic.fields import FieldInfo

from azr_population.config.differences import affects
from azr_population.config.load import to_yaml
from azr_population.config.schema import Config, Section

BOUNDS = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}


def explained(config: Config) -> str:
    """As `to_yaml`, with a comment above every field; `config_from_file` reads it too."""
    meanings = {
        key: "; ".join(filter(None, (meaning, bounds)))
        for key, meaning, bounds in (*_sections(Config), *described(Config))
    }
    lines: list[str] = []
    path: list[str] = []
    for line in to_yaml(config).splitlines():
        name, colon, _ = line.strip().partition(":")
        if colon and not name.startswith(("- ", "'", '"')):
            depth = (len(line) - len(line.lstrip())) // 2
            path[depth:] = [name]
            start = "  " * depth + "# "
            meaning = meanings.get(".".join(path), "")
            lines += textwrap.wrap(meaning, 100, initial_indent=start, subsequent_indent=start)
        lines.append(line)
    return "\n".join(lines) + "\n"


def reference() -> str:
    """`docs/reference.md`: a table for each section."""
    config, changes = Config().model_dump(), affects(Config)
    lines = [
        "# Configuration",
        "",
        "Made from `azr_population/config/schema.py` by `python -m azr_population.config.explained "
        "> docs/reference.md`. Defaults are those of the models; groups such as `base=nano` set "
        "their own (`azr-population train --config`).",
    ]
    section = None
    for key, meaning, bounds in described(Config):
        parent, _, name = key.rpartition(".")
        if parent != section:
            section = parent
            lines += ["", f"## {parent or 'run as a whole'}", ""]
            lines += ["| key | default | meaning | accepted | affects |", "|---|---|---|---|---|"]
        value: typing.Any = config
        for part in key.split("."):
            value = value[part]
        cells = (f"`{name}`", f"`{value}`", meaning, bounds, changes[key])
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def described(kind: type[Section], prefix: str = "") -> Iterator[tuple[str, str, str]]:
    """Of every field that is not a section: dotted key, meaning, bounds in words."""
    sections = kind.sections()
    for name, field in kind.model_fields.items():
        if name not in sections:
            yield f"{prefix}{name}", _meaning(kind, name), _bounds(field)
    for name, section in sections.items():
        yield from described(section, f"{prefix}{name}.")


def _sections(kind: type[Section], prefix: str = "") -> Iterator[tuple[str, str, str]]:
    for name, section in kind.sections().items():
        yield f"{prefix}{name}", (section.__doc__ or "").partition("\n")[0].rstrip("."), ""
        yield from _sections(section, f"{prefix}{name}.")


def _meaning(kind: type[Section], name: str) -> str:
    """A field that a section declares anew, for another default, keeps the description."""
    fields = (base.model_fields.get(name) for base in kind.__mro__ if issubclass(base, Section))
    texts = (field.description for field in fields if field)
    return " ".join(next(filter(None, texts), "").split()).rstrip(".")


def _bounds(field: FieldInfo) -> str:
    for option in (field.annotation, *typing.get_args(field.annotation)):
        if typing.get_origin(option) is typing.Literal:
            return "one of " + ", ".join(typing.get_args(option))
    limits = (
        (word, getattr(m, name, None)) for m in field.metadata for name, word in BOUNDS.items()
    )
    return " and ".join(f"{word} {limit:g}" for word, limit in limits if limit is not None)


if __name__ == "__main__":
    print(reference(), end="")
