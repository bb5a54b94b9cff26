"""From AZR's command to checked settings, and to its population, learner and rollout."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from omegaconf import OmegaConf

from azr_population.config.inside_azr import PopulationSettings
from azr_population.config.schema import (
    ComputeConfig,
    Config,
    LearnerConfig,
    MembersConfig,
    PopulationConfig,
    TaskConfig,
)
from azr_population.engines.assembly import lora_of
from azr_population.engines.engine import ROLLOUTS, EngineSettings
from azr_population.errors import UserError
from azr_population.method.members import Roster
from azr_population.registry import trust

DOMAIN = "code"
"""AZR's three types that its own runs use; stock AZR ends at its first valid `code_e` proposal."""
TAKEN = ("max_num_batched_tokens", "max_num_seqs", "enforce_eager", "max_model_len")
ON_GPUS = ("gpu_memory_utilization", "enable_chunked_prefill")
"""Keys of actor_rollout_ref.rollout for GPUs; on a CPU vLLM knows no share of the GPU, and 0.8.5 no
chunks."""


def run_config(
    settings: PopulationSettings, actor_lr: float, rows: int, kinds: Sequence[str]
) -> Config:
    """The settings as the configuration of a run, with what they leave to AZR's `actor_lr`; `rows`
    are those of `agent_rows`, `kinds` the problem types. Raises UserError: a value out of
    bounds."""
    student = 10.0 * actor_lr if settings.student_lr is None else settings.student_lr
    members = settings.model_dump(include=set(MembersConfig.model_fields)) | {
        "batch_size": 2 * rows * len(kinds),
        "student_lr": student,
        "teacher_lr": 0.15 * student if settings.teacher_lr is None else settings.teacher_lr,
        "agent_lr": student if settings.agent_lr is None else settings.agent_lr,
    }
    return Config(
        seed=settings.seed,
        population=PopulationConfig.checked(members, "population."),
        evolution=settings.evolution,
        matchmaking=settings.matchmaking,
        callbacks=settings.callbacks,
        task=TaskConfig(domain=DOMAIN, types=list(kinds)),
    )


def agent_rows(config: Any, settings: PopulationSettings) -> int:
    """Rows per problem type that the single agent proposes, and solves. Raises UserError:
    `population.batch_size` cannot be split evenly over problem types and halves."""
    if settings.batch_size is None:
        return int(config.data.train_batch_size)
    parts = 2 * len(config.azr.problem_types)
    if settings.batch_size % parts:
        raise UserError(
            f"population.batch_size={settings.batch_size} cannot be split evenly: it must be a "
            f"multiple of {parts} (2 * {len(config.azr.problem_types)} problem types), so that "
            "every member of every arm has as many",
            key="population.batch_size",
        )
    return settings.batch_size // parts


def run_device(config: Any) -> str:
    """The device of an AZR run."""
    return str(OmegaConf.select(config, "trainer.device", default="cuda"))


def learner_config(config: Any, settings: PopulationSettings, rollout: str) -> LearnerConfig:
    """How members are trained in an AZR run that samples with `rollout`: by the settings and by
    `actor_rollout_ref.actor`. Raises UserError: a value out of its bounds."""
    model, actor = config.actor_rollout_ref.model, config.actor_rollout_ref.actor
    azrs = {
        "max_grad_norm": OmegaConf.select(actor, "grad_clip"),
        "weight_decay": OmegaConf.select(actor, "optim.weight_decay"),
        "gradient_checkpointing": OmegaConf.select(model, "enable_gradient_checkpointing"),
    }
    ours = settings.model_dump(include=set(ComputeConfig.model_fields))
    keys = ("fsdp_config.param_offload", "fsdp_config.optimizer_offload")
    offloads = any(OmegaConf.select(actor, key) for key in keys)
    # A sampler that computes with the learner's weights leaves nothing to offload for.
    if settings.offload is None and offloads and ROLLOUTS.find(rollout).own_weights:
        ours["offload"] = True
    given = {name: value for name, value in azrs.items() if value is not None}
    return LearnerConfig.checked(ours | given, "engine.")


def engine_settings(config: Any, settings: PopulationSettings) -> EngineSettings:
    """The engine of an AZR run; the sampler `auto` is vLLM on GPUs and torch on CPUs."""
    device = run_device(config)
    roster = Roster.make(settings.teachers, settings.students)
    rollout = settings.rollout
    if rollout == "auto":
        rollout = "vllm" if device == "cuda" else "torch"
    return EngineSettings(
        base=str(config.actor_rollout_ref.model.path),
        names=tuple(member.name for member in roster),
        lora=lora_of(settings.lora),
        device="cuda" if device == "cuda" else "cpu",
        dtype=settings.dtype or ("bfloat16" if device == "cuda" else "float32"),
        quantization=settings.quantization,
        prompt_date=settings.prompt_date,
        rollout=rollout,
        generate_rows=settings.generate_batch_size,
        generate_tokens=settings.generate_tokens,
        vllm=vllm_options(config, device) if rollout == "vllm" else {},
        learner=learner_config(config, settings, rollout),
        # Otherwise AZR puts a template in its place that adds nothing.
        chat=not OmegaConf.select(config, "actor_rollout_ref.model.pretrained_tokenizer"),
        seed=settings.seed,
        threads=settings.threads,
    )


def read_settings(node: Any) -> PopulationSettings:
    """The settings of a config's `population` node, whose dotted names may then be imported. Raises
    UserError: an unknown key, or a value of the wrong type."""
    plain = plain_values(node) if OmegaConf.is_config(node) else node
    settings = PopulationSettings.checked(plain, "population.")
    trust(settings)
    return settings


def plain_values(node: Any) -> Any:
    """A node of a configuration as plain data, to be stored and shown. References to other keys are
    followed; what asks a resolver (`${oc.env:NAME}`) stays text, or it would tell the value."""
    root, key = OmegaConf.to_container(node._get_root(), resolve=False), node._get_full_key(None)
    escaped = OmegaConf.create(_unasked(root))
    return OmegaConf.to_container(OmegaConf.select(escaped, key) if key else escaped, resolve=True)


def _unasked(value: Any) -> Any:
    """`value` with an escape before each `${` of a text in which a resolver is asked."""
    if isinstance(value, dict):
        return {key: _unasked(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_unasked(item) for item in value]
    asks = isinstance(value, str) and re.search(r"\$\{[^{}]*:", value)
    return re.sub(r"\\*\$\{", r"\\${", value) if asks else value


_AZR_KEYS = {
    "base.dtype": "population.dtype",
    "base.quantization": "population.quantization",
    "base.lora": "population.lora",
    "base.path": "actor_rollout_ref.model.path",
    "engine.max_grad_norm": "actor_rollout_ref.actor.grad_clip",
    "engine.optimizer": "population.optimizer",
    "engine.rollout": "population.rollout",
    "engine.weight_decay": "actor_rollout_ref.actor.optim.weight_decay",
    "run.dir": "population.run_dir",
}
"""A local run's keys, and AZR's for the same."""


def as_typed(message: str) -> str:
    """A message about a local run's keys (`evolution.grace_period`), with the keys that AZR's
    command takes (`population.evolution.grace_period`)."""
    for ours, theirs in _AZR_KEYS.items():
        message = re.sub(rf"(?<![\w.]){re.escape(ours)}\b", theirs, message)
    return re.sub(r"(?<![\w.])(?=(evolution|matchmaking)[.:]|callbacks=)", "population.", message)


IMAGES = "disable_mm_preprocessor_cache"


def vllm_options(config: Any, device: str) -> dict[str, Any]:
    """Arguments of `vllm.LLM` from `actor_rollout_ref.rollout`, `engine_kwargs.vllm` the last.

    As in veRL, a context is as long as a prompt and a response where nobody gave its length.
    """
    rollout = OmegaConf.to_container(config.actor_rollout_ref.rollout, resolve=True)
    assert isinstance(rollout, dict)
    names = TAKEN + (ON_GPUS if device == "cuda" else ())
    options = {key: rollout[key] for key in names if rollout.get(key) is not None}
    if device == "cuda" and (rollout.get("tensor_model_parallel_size") or 1) > 1:
        options["tensor_parallel_size"] = rollout["tensor_model_parallel_size"]
    options.setdefault(
        "max_model_len", config.data.max_prompt_length + config.data.max_response_length
    )
    engine_options = (rollout.get("engine_kwargs") or {}).get("vllm") or {}
    if not engine_options.get(IMAGES):
        engine_options.pop(IMAGES, None)  # AZR's default; vLLM 0.28 no longer has the option
    return options | {key: value for key, value in engine_options.items() if value is not None}
