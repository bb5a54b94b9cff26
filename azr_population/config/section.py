"""Base of all sections of the configuration: takes plain values, and refuses others in one line."""

import difflib
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError
from typing_extensions import Self

from azr_population.errors import UserError
from azr_population.printable import HIDDEN, redact


class Section(BaseModel):
    """A part of the configuration. Descriptions of fields are the strings below them."""

    model_config = ConfigDict(
        extra="forbid",
        allow_inf_nan=False,
        coerce_numbers_to_str=True,
        use_attribute_docstrings=True,
    )

    @classmethod
    def checked(cls, values: Any, prefix: str = "") -> Self:
        """The section with these plain values. Raises UserError: for the first value that cannot be
        taken, naming its key (`prefix` and the dotted name) and what is accepted; or for a secret,
        because a run stores its configuration."""
        if HIDDEN in repr(redact(values)):
            raise UserError(
                f"{_secret_key(values, prefix)} has a secret, and a run's configuration is stored "
                "and shown; leave it out and put it into the environment"
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


def _secret_key(values: Any, prefix: str) -> str:
    """The key of the first secret."""
    if not isinstance(values, dict):
        return prefix[:-1]
    key, value = next(item for item in values.items() if HIDDEN in repr(redact(dict([item]))))
    return _secret_key(value, f"{prefix}{redact(key)}.")


def unknown_key(kind: type[Section], key: str, prefix: str = "") -> UserError:
    """The error for a key that a configuration does not have, with a similar one."""
    near = difflib.get_close_matches(key.removeprefix(prefix), kind.keys(), n=1, cutoff=0.5)
    has = f"{prefix[:-1]} has {', '.join(kind.model_fields)}" if prefix else ""
    hint = (
        f"did you mean {prefix}{near[0]}?" if near else has or "see azr-population train --config"
    )
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
    return UserError(f"{key}={error['input']!s:.60} is refused: it {message}", key=key)
