"""A member merged into its base: a whole model that needs neither PEFT nor this package."""

from pathlib import Path

import torch

from azr_population.benchmark.targets import find_targets
from azr_population.engines.base_folder import read_config
from azr_population.engines.base_model import load_base, load_tokenizer
from azr_population.errors import UserError
from azr_population.files import replacing_folder
from azr_population.weights.bank import target_layers
from azr_population.weights.peft_folder import load_adapter


def merge(path: str, out: Path, base: Path | None = None) -> str:
    """Writes W + alpha/r B A, rounded once to the base's dtype, to a new folder with the base's
    tokenizer, chat template and generation config; returns what was written. `path` is RUN/MEMBER
    or a PEFT folder. Raises UserError: there is no such member, it does not fit the base, or the
    folder exists."""
    members = [target for target in find_targets(path, base) if target.folder]
    if len(members) != 1 or members[0].folder is None:
        raise UserError(f"{path} is not one member; give RUN/MEMBER or a PEFT folder")
    if out.exists():
        raise UserError(f"--merged {out} exists already; name another folder", key="--merged")
    (member,) = members
    description = read_config(member.base)
    # transformers 4 calls it torch_dtype.
    stored = getattr(description, "dtype", None) or getattr(description, "torch_dtype", None)
    stored = stored or torch.float32
    model, _ = load_base(member.base, str(stored).removeprefix("torch."), "cpu")
    adapter = load_adapter(members[0].folder)
    layers = target_layers(model, adapter.spec)
    if unknown := sorted(adapter.factors.keys() - layers.keys()):
        raise UserError(f"{path}: {unknown[0]} is not a linear layer of {member.base}")
    with torch.no_grad():
        for name, pair in adapter.factors.items():
            layer = layers[name]
            update = adapter.spec.scaling * pair.B.float() @ pair.A.float()
            weight = layer.get_parameter("weight")
            # GPT-2's Conv1D stores its weight transposed.
            update = update if isinstance(layer, torch.nn.Linear) else update.t()
            if update.shape != weight.shape:
                raise UserError(f"{path}: {name} does not fit {member.base}")
            weight.copy_((weight.float() + update).to(weight.dtype))
    with replacing_folder(out) as partial:
        model.save_pretrained(partial)  # type: ignore[operator]
        load_tokenizer(member.base, prompt_date=None).save_pretrained(partial)
    return f"{out}: {member.name} merged into its base, {stored}"
