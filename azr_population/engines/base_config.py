"""A base's config.json, whichever transformers wrote it.

transformers 5 keeps all of RoPE in `rope_parameters`. transformers 4 ignores that field and takes
its defaults (a theta of 10,000) without a word: the model seems to work, and solves half as much.
What transformers 4 writes, transformers 5 reads (tests/engines/test_base_config.py has both ways).
"""

from pathlib import Path
from typing import Any

from azr_population.errors import UserError

_FULL, _LOCAL = "full_attention", "sliding_attention"


def read_config(folder: Path) -> Any:
    """The configuration in a base's folder, as the installed transformers is to have it.

    Raises:
        UserError: transformers 5 wrote it, and the installed one has no name for a part of it.
        OSError, ValueError, KeyError: there is none.
    """
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(folder)
    for name, value in rope_overrides(config, folder).items():
        setattr(config, name, value)
    return config


def rope_overrides(config: Any, folder: Path) -> dict[str, Any]:
    """RoPE in transformers 4's names, where it is the one that is installed and 5 wrote it. Raises
    UserError where it has no name for a part."""
    import transformers

    if not transformers.__version__.startswith("4."):
        return {}
    inner = getattr(config, "text_config", None)
    if getattr(inner, "rope_parameters", None):
        raise _untold(folder, "text_config.rope_parameters")
    rope = getattr(config, "rope_parameters", None) or {}
    fields: dict[str, Any] = {}
    layers = {kind: dict(told) for kind, told in rope.items() if isinstance(told, dict)}
    if layers:
        local = layers.get(_LOCAL, {})
        if layers.keys() != {_FULL, _LOCAL} or local.pop("rope_type", "default") != "default":
            raise _untold(folder, f"rope_parameters of {', '.join(layers)}")
        rope = layers[_FULL]
        fields = {"rope_local_base_freq": local.pop("rope_theta", 10_000.0)}
        if local:
            raise _untold(folder, f"rope_parameters.{_LOCAL}.{next(iter(local))}")
    rope = dict(rope)
    fields |= {
        name: rope.pop(name) for name in ("rope_theta", "partial_rotary_factor") if name in rope
    }
    if rope.get("rope_type", "default") != "default":
        fields["rope_scaling"] = rope
    for name in fields:
        if not hasattr(config, name):
            raise _untold(folder, f"rope_parameters ({name})")
    return fields


def _untold(folder: Path, what: str) -> UserError:
    import transformers

    return UserError(
        f"{folder}/config.json was written by transformers 5, and {what} has no name in the "
        f"installed {transformers.__version__}; use transformers 5 "
        "(constraints/current.txt), or a folder that transformers 4 saved"
    )
