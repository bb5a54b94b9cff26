"""How each key of AZR's command is treated when a population plays.

A key is used (by AZR's own code, or by ours in its place), ignored, which the start prints with the
reason, or restricted to the values that a population can work with. `tests/hosts/azr/
test_overrides.py` holds the three lists against AZR's own scripts and configuration.

In the lists `actor_rollout_ref.` is left out before `actor`, `model`, `ref`, `rollout` and
`hybrid_engine`. A name that ends in `.` or `_` stands for all keys that begin with it; the longest
that fits counts.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from omegaconf import OmegaConf

from azr_population.errors import UserError

_GROUP = "actor_rollout_ref."
_MISSING = object()

NO_CRITIC = "there is no critic"
NO_REFERENCE = "a population has KL to its base if population.kl_loss_coef is above 0"
NO_PROFILER, JUDGED = "our workers have no profiler", "tasks are judged by AZR's executor"
CONSTANT, ONE_TURN = "members' rates are constant", "AZR's tasks have one turn"
OUR_LOSS = "the loss is the policy gradient's, a mean over tokens"

USED = """
data. azr. reward_fn. trainer. ray_init. model.path model.pretrained_tokenizer
model.enable_gradient_checkpointing actor.grad_clip actor.optim.lr actor.optim.weight_decay
actor.fsdp_config.param_offload actor.fsdp_config.optimizer_offload
rollout.tensor_model_parallel_size rollout.gpu_memory_utilization rollout.enable_chunked_prefill
rollout.enforce_eager rollout.max_model_len rollout.max_num_batched_tokens rollout.max_num_seqs
rollout.engine_kwargs.vllm. rollout.val_kwargs.temperature
"""

IGNORED: Mapping[str, str] = {
    "a population's checkpoint is kept": "trainer.del_local_ckpt_after_load",
    NO_PROFILER: "trainer.controller_nsight_options. trainer.worker_nsight_options. "
    "actor.profiler. rollout.profiler.",
    NO_CRITIC: "trainer.max_critic_ckpt_to_keep critic.",
    JUDGED: "reward_model.",
    "population.teacher_reward says what a solve rate is worth; it changes gen_*/accuracy alone": ""
    "azr.reward.generation_reward_config.generation_accuracy_convertion",
    "AZR reads answer_diversity_reward.hierarchical in its place": ""
    "azr.reward.generation_reward_config.f_input_answer_diversity_reward.hierarchical "
    "azr.reward.generation_reward_config.f_output_answer_diversity_reward.hierarchical",
    "it is generalised advantage estimation's": "algorithm.lam",
    "it is GRPO's": "algorithm.norm_adv_by_std_in_grpo",
    NO_REFERENCE: "algorithm.kl_ ref. actor.kl_loss_",
    "algorithm.use_pf_ppo is off": "algorithm.pf_ppo.",
    "the base is read from its folder": "model.use_shm",
    "no code of a base is run": "model.trust_remote_code",
    "rows of like length go together": "model.use_remove_padding",
    "members have kernels of their own": "model.use_liger model.use_fused_kernels",
    "members are set by population.lora": "model.lora_ model.target_modules",
    "the base is frozen, and whole on each GPU": "actor.fsdp_config. rollout.layered_summon",
    "a row is on one GPU": "actor.ulysses_sequence_parallel_size",
    "a member's rows of a step are one batch": "actor.ppo_mini_batch_size actor.shuffle",
    "population.micro_batch_tokens says what goes through the learner at once": ""
    "actor.ppo_micro_batch_size actor.ppo_micro_batch_size_per_gpu actor.ppo_max_token_len_per_gpu "
    "actor.use_dynamic_bsz rollout.log_prob_",
    "members have one update on rows just sampled: nothing is clipped": ""
    "actor.clip_ratio actor.clip_ratio_",
    "entropies are worked out in chunks anyway": "actor.entropy_",
    OUR_LOSS: "actor.policy_loss.",
    "the learner is not compiled": "actor.use_torch_compile",
    "checkpoints hold members and their optimizers": "actor.checkpoint.",
    CONSTANT: "actor.optim.",
    ONE_TURN: "rollout.multi_turn.",
    "it is the asynchronous rollout's": "rollout.chat_scheduler rollout.agent.",
    "data.max_prompt_length says it": "rollout.prompt_length",
    "data.max_response_length says it": "rollout.response_length",
    "vLLM's base is as the learner's: population.dtype": "rollout.dtype",
    "vLLM reads the base from its folder": "rollout.load_format",
    "vLLM sleeps where it does not fit beside the learner": "rollout.free_cache_engine",
    "vLLM wakes in one go": "rollout.multi_stage_wake_up",
    "the engine returns them with every token": "rollout.calculate_log_probs",
    "vLLM logs no statistics": "rollout.disable_log_stats",
    "SGLang does not sample here": "rollout.engine_kwargs.sglang.",
    "validation is greedy, or at its temperature": "rollout.val_kwargs.",
}
"""Reason -> the keys that have no effect."""

RESTRICTED: Mapping[str, Mapping[str, tuple[Any, ...]]] = {
    "teachers would never learn": {"azr.train_propose": (True,)},
    "teachers would have fewer rows than students": {"azr.pretrain_pred_steps": (-1, 0)},
    NO_CRITIC: {"trainer.critic_warmup": (0,)},
    "members are stored in folders": {"trainer.default_hdfs_dir": (None,)},
    NO_PROFILER: {"trainer.profile_steps": (None, [])},
    JUDGED: {"reward_model.enable": (False,)},
    "the others need a critic or groups": {"algorithm.adv_estimator": ("reinforce_plus_plus",)},
    "members are updated with one advantage per row": {"algorithm.gamma": (1.0,)},
    NO_REFERENCE: {"algorithm.use_kl_in_reward": (False,), "actor.use_kl_loss": (False,)},
    OUR_LOSS: {
        "algorithm.use_pf_ppo": (False, None),
        "actor.loss_agg_mode": ("token-mean",),
        "actor.policy_loss.loss_mode": ("vanilla",),
    },
    "workers learn and sample": {"hybrid_engine": (True,)},
    "AZR names a checkpoint as its latest when it is whole": {
        "actor.checkpoint.async_save": (False, None)
    },
    "workers import nothing by it": {"model.external_lib": (None,)},
    "the base is as its config.json": {"model.override_config": ({}, None)},
    "members are LoRA adapters themselves: set population.lora.rank": {"model.lora_rank": (0,)},
    "AZR's main looks for Megatron's workers before ours take their place": {
        "actor.strategy": ("fsdp", "fsdp2")
    },
    "a member has one update a step in all arms": {"actor.ppo_epochs": (1,)},
    "the loss has no entropy term": {"actor.entropy_coeff": (0.0,)},
    CONSTANT: {"actor.optim.warmup_style": ("constant",)},
    "population.rollout says what samples; AZR itself needs no vLLM with hf": {
        "rollout.name": ("vllm", "hf")
    },
    "members generate in the workers": {"rollout.mode": ("sync",)},
    "AZR itself supports no other": {"rollout.n": (1,)},
    "log-probabilities are those of the whole vocabulary at temperature 1": {
        "rollout.temperature": (1.0,),
        "rollout.top_p": (1.0,),
        "rollout.top_k": (-1, 0),
        "rollout.do_sample": (True,),
        "rollout.use_fire_sampling": (False,),
    },
    "an end-of-sequence token ends a row": {"rollout.ignore_eos": (False,)},
    ONE_TURN: {"rollout.multi_turn.enable": (False,)},
}
"""Reason -> the keys that may have these values only."""

_REASONS: dict[str, str | None] = {
    **{key: reason for reason, keys in IGNORED.items() for key in keys.split()},
    **dict.fromkeys(USED.split()),
    **{key: None for keys in RESTRICTED.values() for key in keys},
}
"""Key -> why it is ignored; None where it is not."""


def given(config: Any) -> list[str]:
    """The keys that the command sets, without their plus signs, each once."""
    task = OmegaConf.select(config, "hydra.overrides.task") or []
    keys = [override.partition("=")[0].lstrip("+~") for override in task]
    return [key for key in dict.fromkeys(keys) if key.split(".")[0] not in ("population", "hydra")]


def refusals(config: Any) -> Iterator[UserError]:
    """Values that a population cannot work with, given or not: each names the key, its value and
    the way out."""
    listed = [(reason, *item) for reason, keys in RESTRICTED.items() for item in keys.items()]
    for reason, name, allowed in listed:
        key = full_key(name)
        value = OmegaConf.select(config, key, default=_MISSING)
        if OmegaConf.is_config(value):
            value = OmegaConf.to_container(value)
        if value is not _MISSING and value is not None and value not in allowed:
            yield UserError(
                f"{key}={value} is not supported with +population ({reason}); set "
                f"{key}={allowed[0]}",
                key=key,
            )


def unused(keys: Sequence[str]) -> dict[str, list[str]]:
    """The keys among these that have no effect, by the reason."""
    by_reason: dict[str, list[str]] = {}
    for key in keys:
        entry = _entry(key)
        reason = "not known to +population" if entry is None else _REASONS[entry]
        if reason is not None:
            by_reason.setdefault(reason, []).append(key)
    return by_reason


def full_key(name: str) -> str:
    """A name of the lists as AZR's command has it."""
    ours = name.split(".")[0] in ("actor", "model", "ref", "rollout", "hybrid_engine")
    return f"{_GROUP}{name}" if ours else name


def _entry(key: str) -> str | None:
    """The longest name of the lists that fits the key."""
    name = key.removeprefix(_GROUP)
    fitting = [
        listed
        for listed in _REASONS
        if name == listed
        or (listed[-1] in "._" and name.startswith(listed))
        or f"{name}." == listed
    ]
    return max(fitting, key=len, default=None)
