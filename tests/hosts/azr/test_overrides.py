"""Each key of AZR's command is AZR's, ours, refused or told; none is ignored in silence."""

import os
import re
from pathlib import Path

import pytest
from omegaconf import OmegaConf
from refusals import refuses

from azr_population.hosts.azr import overrides

AZR_HOME = Path(os.environ.get("AZR_HOME", ""))
THEIRS = ("actor_rollout_ref.", "algorithm.", "critic.", "reward_model.")
"""What AZR hands to veRL's workers, in whose place are ours."""
UNKNOWN = "not known to +population"


def leaves(node, path=""):
    """Dotted keys of all that is no dictionary; of an empty one its own."""
    if not isinstance(node, dict) or not node:
        return [path]
    return [
        leaf for key, value in node.items() for leaf in leaves(value, f"{path}.{key}".strip("."))
    ]


@pytest.mark.azr
def test_every_key_of_azrs_scripts_and_of_its_configuration_is_known():
    keys_by_script = {}
    for script in sorted((AZR_HOME / "scripts").glob("s*/*.sh")):
        for key in re.findall(r"^ +\+?([\w.]+)=", script.read_text(), re.MULTILINE):
            keys_by_script.setdefault(key, set()).add(script.name)
    assert len(keys_by_script) > 80
    folder = AZR_HOME / "absolute_zero_reasoner" / "configs"
    configured = leaves(OmegaConf.to_container(OmegaConf.load(folder / "azr_ppo_trainer.yaml")))
    assert UNKNOWN not in overrides.unused([*keys_by_script, *configured])
    # By name, or as one of a few that share a beginning: never because all of a group is passed on.
    assert not set(map(overrides.full_key, overrides.USED.split())) & set(THEIRS)


@pytest.mark.azr
def test_the_keys_that_are_ours_or_refused_are_there():
    """A key that AZR has renamed would be refused or taken nowhere."""
    folder = AZR_HOME / "absolute_zero_reasoner" / "configs"
    config = OmegaConf.load(folder / "azr_ppo_trainer.yaml")
    beside = {"actor_rollout_ref.model.lora_rank", "actor_rollout_ref.actor.checkpoint.async_save"}
    restricted = [name for keys in overrides.RESTRICTED.values() for name in keys]
    for key in map(overrides.full_key, [*overrides.USED.split(), *restricted]):
        if key[-1] not in "._" and key not in beside:
            parent, _, name = key.rpartition(".")
            assert name in OmegaConf.select(config, parent), key


def test_the_longest_beginning_counts():
    keys = ["optim.lr", "optim.lr_warmup_steps", "fsdp_config"]
    unused = overrides.unused([f"actor_rollout_ref.actor.{key}" for key in keys])
    assert list(unused.values()) == [[f"actor_rollout_ref.actor.{key}"] for key in keys[1:]]
    assert not overrides.unused(["trainer.logger"])


def test_what_is_set_and_not_used_is_told_with_its_reason():
    task = [
        "data.train_batch_size=64", "+actor_rollout_ref.rollout.new_option=1",
        "actor_rollout_ref.actor.use_torch_compile=True", "actor_rollout_ref.rollout.name=vllm",
        "+population=4t4s", "population.seed=3", "actor_rollout_ref.actor.use_torch_compile=False",
    ]  # fmt: skip
    config = OmegaConf.create({"hydra": {"overrides": {"task": task}}})
    unused = overrides.unused(overrides.given(config))
    keys = ["actor_rollout_ref.actor.use_torch_compile", "actor_rollout_ref.rollout.new_option"]
    assert unused[UNKNOWN] == keys[1:] and sorted(unused.values()) == [keys[:1], keys[1:]]
    assert overrides.given(OmegaConf.create({})) == []


@pytest.mark.parametrize(
    "override",
    [
        "actor_rollout_ref.rollout.name=sglang",
        "actor_rollout_ref.rollout.top_k=20",
        "actor_rollout_ref.rollout.ignore_eos=true",
        "actor_rollout_ref.rollout.do_sample=false",
        "actor_rollout_ref.rollout.use_fire_sampling=true",
        "actor_rollout_ref.rollout.multi_turn.enable=true",
        "actor_rollout_ref.model.override_config={rope_theta: 5}",
        "actor_rollout_ref.actor.optim.warmup_style=cosine",
        "actor_rollout_ref.actor.strategy=megatron",
        "trainer.default_hdfs_dir=hdfs://x",
        "trainer.profile_steps=[1]",
        "algorithm.use_pf_ppo=true",
        "azr.pretrain_pred_steps=5",
    ],
)
def test_other_values_are_refused_with_the_one_that_works(override):
    key, _, value = override.partition("=")
    config = OmegaConf.from_dotlist([f"{key}={value}"])
    with refuses(key):
        raise next(overrides.refusals(config))
