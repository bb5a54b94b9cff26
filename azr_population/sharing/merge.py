"""A member merged into its base: a whole model that needs neither PEFT nor this package."""

from pathlib import Path

import torch

from azr_population.engines.base_folder import read_config
from azr_population.engines.base_model import (
    dropout_fields,
    load_base,
    load_tokenizer,
    token_scores,
)
from azr_population.engines.canary import TOLERANCES, is_better
from azr_population.engines.engine import EngineSettings
from azr_population.errors import UserError
from azr_population.eval.members import NO_MEMBERS, LoadedMembers, StoredMember, one_member
from azr_population.files import replacing_folder
from azr_population.sharing.check_serving import text_ids
from azr_population.weights.bank import target_layers


def merge(address: str, out: Path, base: Path | None = None, check: bool = False) -> str:
    """Writes W + alpha/r B A, rounded once to the base's dtype, to a new folder with the base's
    tokenizer, chat template and generation config; returns what was written.

    Args:
        address: of one member; see `eval.members`.
        base: as in `find_members`.
        check: whether to load the folder again and compare it with base and adapter.

    Raises UserError: there is no such member, it does not fit the base, the folder exists, or the
    check fails.
    """
    member = one_member(address, base)
    if out.exists():
        raise UserError(f"--merged {out} exists already; name another folder", key="--merged")
    description = read_config(member.base)
    # transformers 4 calls it torch_dtype.
    stored = getattr(description, "dtype", None) or getattr(description, "torch_dtype", None)
    dtype = str(stored or torch.float32).removeprefix("torch.")
    model, _ = load_base(member.base, dtype, "cpu")
    adapter = member.adapter()
    layers = target_layers(model, adapter.spec)
    if unknown := sorted(adapter.factors.keys() - layers.keys()):
        raise UserError(f"{address}: {unknown[0]} is not a linear layer of {member.base}")
    embeddings = model.get_input_embeddings()  # type: ignore[operator]
    with torch.no_grad():
        for name, pair in adapter.factors.items():
            layer = layers[name]
            update = adapter.spec.scaling * pair.B.float() @ pair.A.float()
            weight = layer.get_parameter("weight")
            if weight is embeddings.weight:
                raise UserError(
                    f"{address}: {name} is the base's table of embeddings too (tied), and merged "
                    "the adapter would change both; serve it as an adapter"
                )
            # GPT-2's Conv1D stores its weight transposed.
            update = update if isinstance(layer, torch.nn.Linear) else update.t()
            if update.shape != weight.shape:
                raise UserError(f"{address}: {name} does not fit {member.base}")
            weight.copy_((weight.float() + update).to(weight.dtype))
    with replacing_folder(out) as partial:
        vars(model.config).update(dropout_fields(description))  # the base's own
        model.save_pretrained(partial)  # type: ignore[operator]
        load_tokenizer(member.base, prompt_date=None).save_pretrained(partial)
    done = f"{out}: {member.name} merged into its base, {dtype}"
    return f"{done}; {_compared(out, member, dtype)}" if check else done


def _compared(merged: Path, member: StoredMember, dtype: str) -> str:
    """The distance of the merged folder from base and adapter in float32, on a fixed text. Raises
    UserError: further than rounding to `dtype` explains, or the bare base is nearer."""
    loaded = LoadedMembers([member], EngineSettings("", (), NO_MEMBERS))
    ids = text_ids(loaded.tokenizer)
    bare = loaded.token_scores(None, ids)
    expected = loaded.token_scores(loaded.fitted(member.adapter()), ids)
    loaded.close()
    scores = token_scores(load_base(merged, "float32", "cpu")[0], ids)
    distance, to_base = (scores - expected).abs(), (scores - bare).abs()
    words = (
        f"{distance.mean():.4f} nats a token from base and adapter ({to_base.mean():.4f} from the "
        f"bare base)"
    )
    # NaN is not right.
    if is_better(to_base, distance) or not float(distance.mean()) <= TOLERANCES[dtype]:
        raise UserError(f"{merged} is not base and adapter: {words}")
    return words
