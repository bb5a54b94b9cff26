"""Base of all sections of the configuration: takes plain values, and refuses others in one line."""

import difflib
import json
import re
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import (
    BaseModel,
    ConfigDict,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    field_validator,
)
from pydantic_core import PydanticCustomError
from typing_extensions import Self

from azr_population.errors import UserError
from azr_population.printable import HIDDEN, redact_known

LARGEST = 1e9
"""No number of a configuration is larger, but a seed."""

GROUPS = Path(__file__).parent
"""A folder per group of the configuration, with a file per choice."""


def groups() -> dict[str, list[str]]:
    """The groups of the configuration with their choices, from their files."""
    choices: dict[str, list[str]] = {}
    for file in sorted(GROUPS.glob("*/*.yaml")):
        choices.setdefault(file.parent.name, []).append(file.stem)
    return choices


class Section(BaseModel):
    """A part of the configuration. Descriptions of fields are the strings below them."""

    model_config = ConfigDict(
        extra="forbid",
        allow_inf_nan=False,
        use_attribute_docstrings=True,
    )

    @field_validator("*", mode="wrap")
    @classmethod
    def _check_numbers(
        cls, value: Any, handler: ValidatorFunctionWrapHandler, info: ValidationInfo
    ) -> Any:
        """Refuses true and false for numbers, and numbers that no run can have."""
        name = str(info.field_name)
        numeric = _scalars(cls.model_fields[name].annotation) <= {int, float, type(None)}
        if numeric:
            expected = "should be a number, and not true or false"
            _refuse_entries(value, lambda item: isinstance(item, bool), expected)
        checked = handler(value)
        if numeric and name != "seed":
            expected = f"should be at most {LARGEST:g}"
            _refuse_entries(checked, lambda item: abs(item or 0) > LARGEST, expected)
        return checked

    @classmethod
    def checked(cls, values: Any, prefix: str = "") -> Self:
        """The section with these plain values. Raises UserError: for the first value that cannot be
        taken, naming its key (`prefix` and the dotted name) and what is accepted; or for a secret,
        because a run stores its configuration."""
        words = _own_words(cls)
        if HIDDEN in repr(redact_known(values, words)):
            raise UserError(
                f"{_secret_key(values, prefix, words)} has a secret, and a run's configuration is "
                "stored and shown; leave it out and put it into the environment"
            )
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise _refusal(cls, prefix, error.errors()[0]) from error

    @classmethod
    def sections(cls) -> dict[str, type["Section"]]:
        """The fields that are sections themselves."""
        kinds = ((name, field.annotation) for name, field in cls.model_fields.items())
        return {n: k for n, k in kinds if isinstance(k, type) and issubclass(k, Section)}

    @classmethod
    def keys(cls, prefix: str = "") -> Iterator[str]:
        """All dotted keys, those of sections before those in them."""
        sections = cls.sections()
        for name in cls.model_fields:
            yield f"{prefix}{name}"
            if name in sections:
                yield from sections[name].keys(f"{prefix}{name}.")

    @classmethod
    def takes_text(cls, key: str) -> bool:
        """Whether the field with this dotted key is a text. False for a key that is no field."""
        name, _, inner_key = key.partition(".")
        if inner_key:
            return name in cls.sections() and cls.sections()[name].takes_text(inner_key)
        field = cls.model_fields.get(name)
        return field is not None and str in _alternatives(field.annotation)


def _secret_key(values: Any, prefix: str, own_words: frozenset[str]) -> str:
    """The key of the first secret."""
    hide = partial(redact_known, own_words=own_words)
    for key, value in values.items() if isinstance(values, dict) else ():
        if HIDDEN in repr(hide({key: value})):
            return _secret_key(value, f"{prefix}{hide(key)}.", own_words)
    return prefix[:-1]


@cache
def _own_words(kind: type[Section]) -> frozenset[str]:
    """Keys of a section, and the words of its schema and of the groups: a configuration has them,
    even if an environment variable with a secret name (ACME_TOKEN=students) has one as well."""
    schema = json.dumps(kind.model_json_schema())
    choices = {choice for names in groups().values() for choice in names}
    return frozenset({*re.findall(r"\w+", schema), *kind.keys(), *groups(), *choices})


def _alternatives(annotation: Any) -> set[Any]:
    """The types that a value of this annotation may have: its own, or a union's."""
    if get_origin(annotation) is Annotated:
        return _alternatives(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return {kind for part in get_args(annotation) for kind in _alternatives(part)}
    return {annotation}


def _scalars(annotation: Any) -> set[Any]:
    """The types of the scalars in values of this annotation, in lists and dictionaries too."""
    kinds = set()
    for kind in _alternatives(annotation):
        items = get_args(kind)[-1:] if get_origin(kind) in (list, dict) else ()
        kinds |= {scalar for item in items for scalar in _scalars(item)} or {kind}
    return kinds


def _refuse_entries(value: Any, is_wrong: Callable[[Any], bool], expected: str) -> None:
    """Raises PydanticCustomError for the first wrong scalar, with its entry: the key below the
    field's, and the value there, which is all of a list."""
    for key, entry in _entries(value):
        if any(map(is_wrong, _items(entry))):
            context = {"key": key, "value": entry}
            raise PydanticCustomError("entry", expected, context)


def _entries(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """A value with the dotted keys below it; of a list or a scalar, itself."""
    if not isinstance(value, dict):
        yield key, value
        return
    for name, item in value.items():
        yield from _entries(item, f"{key}.{name}")


def _items(value: Any) -> Iterator[Any]:
    """A value, or the scalars in lists and dictionaries."""
    inner = value.values() if isinstance(value, dict) else value
    if isinstance(value, (dict, list)):
        for item in inner:
            yield from _items(item)
    else:
        yield value


_MEANT = {
    "lr": "population.student_lr={value}",
    "learning_rate": "population.student_lr={value}",
    "output_dir": "run.dir={value}",
    "out": "run.dir={value}",
    "model": "base=hf base.path={value}",
    "size": "population.teachers={value} population.students={value}",
    "enabled": "evolution=none",
}
"""Last part of a key that other programs have -> the overrides that mean it in a local run."""
_MEANT_INSIDE_AZR = _MEANT | {
    "output_dir": "run_dir={value}",
    "out": "run_dir={value}",
    "enabled": "evolution.interval=0",
}
"""The same inside AZR, where there is one group, and the prefix `population.` before every key."""


def meant(kind: type[Section], key: str, value: str = "", prefix: str = "") -> str:
    """The overrides that were probably meant by a key that does not exist: of a key with the same
    last part, what `_MEANT` says, or of a similar key; empty if there are none. All keys of `kind`
    have the prefix."""
    key, last = key.removeprefix(prefix), key.rpartition(".")[2]
    keys, table = list(kind.keys()), _MEANT_INSIDE_AZR if prefix else _MEANT
    overrides = [override.removeprefix(prefix) for override in table.get(last, "").split()]
    if overrides and {override.partition("=")[0] for override in overrides} <= set(keys):
        return " ".join(f"{prefix}{override}" for override in overrides).format(value=value)
    same = [name for name in keys if key == name or name.rpartition(".")[2] == last]
    near = same or difflib.get_close_matches(key, keys, n=1, cutoff=0.5)
    return f"{prefix}{near[0]}={value}" if near else ""


def unknown_key(kind: type[Section], key: str, prefix: str = "", value: str = "") -> UserError:
    """The error for a key that a configuration does not have; `value` is what was typed for it."""
    # A value of several words can hold what only its first word is known to be.
    typed = value if re.fullmatch(r"\S{,80}", value) else "VALUE"
    near = re.sub("=(?= |$)", "", meant(kind, key, typed, prefix))
    has = f"{prefix[:-1]} has {', '.join(kind.model_fields)}" if prefix else ""
    hint = f"did you mean {near}?" if near else has or "see azr-population train --config"
    return UserError(f"{key} is unknown; {hint}", key=key)


def _refusal(kind: type[Section], prefix: str, error: Any) -> UserError:
    key = prefix + ".".join(part for part in error["loc"] if isinstance(part, str))
    if error["type"] == "extra_forbidden":
        return unknown_key(kind, key, prefix)
    if error["type"] == "model_type":
        inside = [other for other in kind.keys(prefix) if other.startswith(f"{key}.")]
        first = f", such as {inside[0]}" if inside else ""
        text = f"{key} is a section and takes no value; set a field of it{first}"
        return UserError(text, key=key)
    message = error["msg"].removeprefix("Input ").removeprefix("Value error, ")
    value = error["input"]
    if error["type"] == "string_type":
        message += "; quote a name that looks like a number"
    if error["type"] == "dict_type":
        message = f"should be names with values, such as {key}.NAME=VALUE"
    if error["type"] == "entry":
        key, value = f"{key}{error['ctx']['key']}", error["ctx"]["value"]
    if key.endswith(".[key]"):  # pydantic's word for a name in a dictionary
        key = key.removesuffix(".[key]")
        return UserError(f"{key} is unknown: its last part {message}", key=key)
    return UserError(f"{key}={value!s:.60} is refused: it {message}", key=key)
