"""What becomes of each key of AZR's command when a population plays: one table.

A key is AZR's (its code reads it, as ever), ours (we take its value), refused unless it has the one
value that a population can work with, or without effect, which is told at the start. Nothing is
ignored in silence: `tests/azr/test_overrides.py` holds the table against AZR's own scripts and
configuration.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from omegaconf import OmegaConf

from azr_population.errors import UserError

_MISSING = object()


@dataclass(frozen=True)
class Azrs:
    """AZR's own code reads it."""


@dataclass(frozen=True)
class Ours:
    """We take the value; `place` says where it is in our words."""

    place: str


@dataclass(frozen=True)
class Unused:
    """It has no effect."""

    reason: str


@dataclass(frozen=True)
class Only:
    """Any other value is refused."""

    values: tuple[Any, ...]
    reason: str


Fate = Azrs | Ours | Unused | Only

AZRS = Azrs()
FROZEN = Unused(
    "the base is frozen: population.shard_base says whether each GPU holds a part or all"
)
PIECES = Unused("population.micro_batch_tokens says what goes through the learner at once")
ON_POLICY = Unused(
    "members have one update on rows just sampled: the ratio is 1, nothing is clipped"
)
NO_CRITIC, NO_REFERENCE = "there is no critic", "there is no reference policy beside the base"
PLAIN = "log-probabilities are those of the whole vocabulary at temperature 1"
OURS_LOSS = "it is the loss we have"

TABLE: Mapping[str, Fate] = {
    "data.": AZRS,
    "azr.": AZRS,
    "reward_fn.": AZRS,
    "trainer.": AZRS,
    "ray_init.": AZRS,
    "data.train_batch_size": Ours("rows of every member"),
    "data.max_prompt_length": Ours("the longest prompt"),
    "data.max_response_length": Ours("the longest response"),
    "azr.train_propose": Only((True,), "teachers would never learn"),
    "azr.pretrain_pred_steps": Only((-1, 0), "teachers would have fewer rows than students"),
    "trainer.critic_warmup": Only((0,), NO_CRITIC),
    "trainer.n_gpus_per_node": Ours("workers on each node"),
    "trainer.nnodes": Ours("nodes with workers"),
    "trainer.device": Ours("of the workers"),
    "trainer.del_local_ckpt_after_load": Unused("a population's checkpoint is kept"),
    "trainer.default_hdfs_dir": Only((None,), "members are stored in folders"),
    "trainer.profile_steps": Only((None, []), "our workers have no profiler"),
    "trainer.controller_nsight_options.": Unused("our workers have no profiler"),
    "trainer.worker_nsight_options.": Unused("our workers have no profiler"),
    "trainer.max_critic_ckpt_to_keep": Unused(NO_CRITIC),
    "critic.": Unused(NO_CRITIC),
    "reward_model.": Unused("tasks are judged by AZR's executor"),
    "reward_model.enable": Only((False,), "tasks are judged by AZR's executor"),
    "algorithm.adv_estimator": Only(("reinforce_plus_plus",), "the others need a critic or groups"),
    "algorithm.gamma": Only((1.0,), "members are updated with one advantage per row"),
    "algorithm.lam": Unused("it is generalised advantage estimation's"),
    "algorithm.norm_adv_by_std_in_grpo": Unused("it is GRPO's"),
    "algorithm.use_kl_in_reward": Only((False,), NO_REFERENCE),
    "algorithm.kl_": Unused(NO_REFERENCE),
    "algorithm.use_pf_ppo": Only((False, None), OURS_LOSS),
    "algorithm.pf_ppo.": Unused("algorithm.use_pf_ppo is off"),
    "actor_rollout_ref.hybrid_engine": Only((True,), "workers learn and sample"),
    "actor_rollout_ref.ref.": Unused(NO_REFERENCE),
    # The model.
    "actor_rollout_ref.model.path": Ours("the base"),
    "actor_rollout_ref.model.pretrained_tokenizer": AZRS,
    "actor_rollout_ref.model.use_shm": Unused("the base is read from its folder"),
    "actor_rollout_ref.model.external_lib": Only((None,), "workers import nothing by it"),
    "actor_rollout_ref.model.override_config": Only(({}, None), "the base is as its config.json"),
    "actor_rollout_ref.model.trust_remote_code": Unused("no code of a base is run"),
    "actor_rollout_ref.model.enable_gradient_checkpointing": Ours("of the update"),
    "actor_rollout_ref.model.use_remove_padding": Unused("rows of like length go together"),
    "actor_rollout_ref.model.use_liger": Unused("members have kernels of their own"),
    "actor_rollout_ref.model.use_fused_kernels": Unused("members have kernels of their own"),
    "actor_rollout_ref.model.lora_": Unused("members are set by population.lora"),
    "actor_rollout_ref.model.target_modules": Unused("members are set by population.lora"),
    "actor_rollout_ref.model.lora_rank": Only(
        (0,), "members are LoRA adapters themselves: set population.lora.rank"
    ),
    # The update.
    "actor_rollout_ref.actor.strategy": FROZEN,
    "actor_rollout_ref.actor.fsdp_config.": FROZEN,
    "actor_rollout_ref.actor.ulysses_sequence_parallel_size": Unused("a row is on one GPU"),
    "actor_rollout_ref.actor.ppo_mini_batch_size": Unused(
        "a member's rows of a step are one batch"
    ),
    "actor_rollout_ref.actor.ppo_micro_batch_size": PIECES,
    "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu": PIECES,
    "actor_rollout_ref.actor.ppo_max_token_len_per_gpu": PIECES,
    "actor_rollout_ref.actor.use_dynamic_bsz": PIECES,
    "actor_rollout_ref.actor.ppo_epochs": Only((1,), "a member has one update a step in all arms"),
    "actor_rollout_ref.actor.shuffle": Unused("a member's rows of a step are one batch"),
    "actor_rollout_ref.actor.grad_clip": Ours("of each member"),
    "actor_rollout_ref.actor.clip_ratio": ON_POLICY,
    "actor_rollout_ref.actor.clip_ratio_": ON_POLICY,
    "actor_rollout_ref.actor.entropy_coeff": Only((0.0,), "the loss has no entropy term"),
    "actor_rollout_ref.actor.entropy_": Unused("entropies are worked out in chunks anyway"),
    "actor_rollout_ref.actor.use_kl_loss": Only((False,), NO_REFERENCE),
    "actor_rollout_ref.actor.kl_loss_": Unused(NO_REFERENCE),
    "actor_rollout_ref.actor.loss_agg_mode": Only(("token-mean",), OURS_LOSS),
    "actor_rollout_ref.actor.policy_loss.": Unused(OURS_LOSS),
    "actor_rollout_ref.actor.policy_loss.loss_mode": Only(("vanilla",), OURS_LOSS),
    "actor_rollout_ref.actor.use_torch_compile": Unused("the learner is not compiled"),
    "actor_rollout_ref.actor.checkpoint.": Unused("checkpoints hold members and their optimizers"),
    "actor_rollout_ref.actor.profiler.": Unused("our workers have no profiler"),
    "actor_rollout_ref.actor.optim.": Unused("members' rates are constant"),
    "actor_rollout_ref.actor.optim.lr": Ours("members' rates start from it"),
    "actor_rollout_ref.actor.optim.weight_decay": Ours("of each member"),
    "actor_rollout_ref.actor.optim.warmup_style": Only(
        ("constant",), "members' rates are constant"
    ),
    # Sampling.
    "actor_rollout_ref.rollout.name": Only(
        ("vllm", "hf"), "population.rollout says what samples; AZR itself needs no vLLM with hf"
    ),
    "actor_rollout_ref.rollout.mode": Only(("sync",), "members generate in the workers"),
    "actor_rollout_ref.rollout.n": Only((1,), "AZR itself supports no other"),
    "actor_rollout_ref.rollout.temperature": Only((1.0,), PLAIN),
    "actor_rollout_ref.rollout.top_p": Only((1.0,), PLAIN),
    "actor_rollout_ref.rollout.top_k": Only((-1, 0), PLAIN),
    "actor_rollout_ref.rollout.do_sample": Only((True,), PLAIN),
    "actor_rollout_ref.rollout.use_fire_sampling": Only((False,), PLAIN),
    "actor_rollout_ref.rollout.ignore_eos": Only((False,), "a row ends where it ends"),
    "actor_rollout_ref.rollout.multi_turn.": Unused("AZR's tasks have one turn"),
    "actor_rollout_ref.rollout.multi_turn.enable": Only((False,), "AZR's tasks have one turn"),
    "actor_rollout_ref.rollout.chat_scheduler": Unused("it is the asynchronous rollout's"),
    "actor_rollout_ref.rollout.agent.": Unused("it is the asynchronous rollout's"),
    "actor_rollout_ref.rollout.prompt_length": Unused("data.max_prompt_length says it"),
    "actor_rollout_ref.rollout.response_length": Unused("data.max_response_length says it"),
    "actor_rollout_ref.rollout.dtype": Unused("vLLM's base is as the learner's: population.dtype"),
    "actor_rollout_ref.rollout.load_format": Unused("vLLM reads the base from its folder"),
    "actor_rollout_ref.rollout.layered_summon": FROZEN,
    "actor_rollout_ref.rollout.free_cache_engine": Unused("vLLM sleeps while members learn"),
    "actor_rollout_ref.rollout.multi_stage_wake_up": Unused("vLLM wakes in one go"),
    "actor_rollout_ref.rollout.tensor_model_parallel_size": Ours("GPUs that share a vLLM"),
    "actor_rollout_ref.rollout.log_prob_": PIECES,
    "actor_rollout_ref.rollout.calculate_log_probs": Unused("they are taken where they are used"),
    "actor_rollout_ref.rollout.disable_log_stats": Unused("vLLM tells nobody"),
    "actor_rollout_ref.rollout.profiler.": Unused("our workers have no profiler"),
    "actor_rollout_ref.rollout.gpu_memory_utilization": Ours("vLLM's share of each GPU"),
    "actor_rollout_ref.rollout.enable_chunked_prefill": Ours("of vLLM"),
    "actor_rollout_ref.rollout.enforce_eager": Ours("of vLLM"),
    "actor_rollout_ref.rollout.max_model_len": Ours("of vLLM"),
    "actor_rollout_ref.rollout.max_num_batched_tokens": Ours("of vLLM"),
    "actor_rollout_ref.rollout.max_num_seqs": Ours("of vLLM"),
    "actor_rollout_ref.rollout.engine_kwargs.vllm.": Ours("arguments of vLLM"),
    "actor_rollout_ref.rollout.engine_kwargs.sglang.": Unused("SGLang does not sample here"),
    "actor_rollout_ref.rollout.val_kwargs.": Unused("validation is greedy, or at its temperature"),
    "actor_rollout_ref.rollout.val_kwargs.temperature": Ours("of validation and solve rates"),
}
"""By key, or by the beginning of keys where it ends in `.` or `_`; the longest that fits counts."""


def fate(key: str) -> Fate | None:
    """What becomes of a key; None where the table does not know it."""
    fitting = [
        known
        for known in TABLE
        if key == known or (known[-1] in "._" and key.startswith(known)) or f"{key}." == known
    ]
    return TABLE[max(fitting, key=len)] if fitting else None


def given(config: Any) -> list[str]:
    """The keys that the command sets, without their plus signs, each once."""
    task = OmegaConf.select(config, "hydra.overrides.task") or []
    keys = [override.partition("=")[0].lstrip("+~") for override in task]
    return [key for key in dict.fromkeys(keys) if key.split(".")[0] not in ("population", "hydra")]


def refuse(config: Any) -> None:
    """Refuses values that a population cannot work with, given or not. Raises UserError: naming the
    key, its value and the way out."""
    for key, found in TABLE.items():
        if not isinstance(found, Only):
            continue
        value = OmegaConf.select(config, key, default=_MISSING)
        if OmegaConf.is_config(value):
            value = OmegaConf.to_container(value)
        if value is _MISSING or (value is None and None not in found.values):
            continue
        if value not in found.values:
            raise UserError(
                f"{key}={value} is not supported with +population ({found.reason}); set "
                f"{key}={found.values[0]}",
                key=key,
            )


def unused(keys: Sequence[str]) -> dict[str, list[str]]:
    """Of these keys those that have no effect, by the reason."""
    told: dict[str, list[str]] = {}
    for key in keys:
        found = fate(key)
        if found is None:
            told.setdefault("not known to +population", []).append(key)
        elif isinstance(found, Unused):
            told.setdefault(found.reason, []).append(key)
    return told
