"""A configuration as YAML with the meaning and the bounds of every field, from its declaration."""

import ast
import dataclasses
import inspect
import textwrap
from collections.abc import Iterator
from typing import Any

from azr_population.config.load import to_yaml
from azr_population.config.schema import Config
from azr_population.config.setting import bounds_of


def explained(config: Config) -> str:
    """As `to_yaml`, with a comment behind every field; `config_from_file` reads it too."""
    told = dict(_told(config, ""))
    lines: list[str] = []
    path: list[str] = []
    for line in to_yaml(config).splitlines():
        name, colon, _ = line.strip().partition(":")
        if not colon or name.startswith(("- ", "'", '"')):
            lines.append(line)
            continue
        depth = (len(line) - len(line.lstrip())) // 2
        path[depth:] = [name]
        indent = "  " * depth
        comment = told.get(".".join(path), "")
        lines += textwrap.wrap(
            comment, 100, initial_indent=f"{indent}# ", subsequent_indent=f"{indent}# "
        )
        lines.append(line)
    return "\n".join(lines) + "\n"


def _told(node: Any, prefix: str) -> Iterator[tuple[str, str]]:
    """Dotted keys with meaning and bounds, where there are any."""
    meanings = _meanings(type(node))
    for field in dataclasses.fields(node):
        key, value = f"{prefix}{field.name}", getattr(node, field.name)
        parts = [meanings.get(field.name, ""), " and ".join(bounds_of(field.metadata))]
        yield key, "; ".join(part.rstrip(".") for part in parts if part)
        if dataclasses.is_dataclass(value):
            yield from _told(value, f"{key}.")


def _meanings(kind: type) -> dict[str, str]:
    """The strings below the fields of a dataclass and of those that it extends; of a field that
    holds a dataclass that one's own first line."""
    found: dict[str, str] = {}
    for one in reversed([one for one in kind.__mro__ if dataclasses.is_dataclass(one)]):
        (definition,) = ast.parse(textwrap.dedent(inspect.getsource(one))).body
        assert isinstance(definition, ast.ClassDef)
        name = ""
        for statement in definition.body:
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                name = statement.target.id
            elif name and isinstance(statement, ast.Expr):
                text = getattr(statement.value, "value", None)
                if isinstance(text, str):
                    found[name] = " ".join(text.split())
                name = ""
            else:
                name = ""
    for field in dataclasses.fields(kind):
        held = field.default_factory
        if isinstance(held, type) and dataclasses.is_dataclass(held):
            found.setdefault(field.name, (held.__doc__ or "").partition("\n")[0])
    return found
