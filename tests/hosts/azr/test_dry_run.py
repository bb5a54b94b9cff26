"""The rehearsal: what it tells of a run, what it refuses, and the way out that it names."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from omegaconf import OmegaConf
from refusals import refuses

from azr_population.config.inside_azr import PopulationSettings
from azr_population.engines import vllm_versions
from azr_population.errors import UserError
from azr_population.hosts.azr import checks
from azr_population.hosts.azr.azr_plan import resolve
from azr_population.hosts.azr.checks import check_parallel
from azr_population.hosts.azr.dry_run import SMALL, page
from azr_population.hosts.azr.fitting import machine_of, prepare
from azr_population.versions import wandb_fault

ROOT = Path(__file__).parents[3]
ONE_GPU = "trainer.n_gpus_per_node=1"
QWEN_7B = {
    "model_type": "qwen2", "vocab_size": 152_064, "hidden_size": 3584, "intermediate_size": 18_944,
    "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4,
    "max_position_embeddings": 32_768, "tie_word_embeddings": False,
}  # fmt: skip
QWEN_14B = QWEN_7B | {
    "hidden_size": 5120, "intermediate_size": 13_824, "num_hidden_layers": 48,
    "num_attention_heads": 40, "num_key_value_heads": 8,
}  # fmt: skip


def base(folder, sizes=QWEN_7B):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(sizes))
    return folder


def command(path, *dots):
    """AZR's coder-7b command on 8 GPUs, as far as it is looked at."""
    config = OmegaConf.create({
        "data": {"train_batch_size": 64, "max_prompt_length": 6144, "max_response_length": 8096,
                 "train_files": str(path), "val_files": str(path)},
        "algorithm": {"adv_estimator": "reinforce_plus_plus"},
        "actor_rollout_ref": {
            "model": {"path": str(path), "enable_gradient_checkpointing": True},
            "actor": {"optim": {"lr": 1e-6}},
            "rollout": {"name": "vllm", "gpu_memory_utilization": 0.4, "max_num_seqs": 1024,
                        "max_num_batched_tokens": 16_384},
        },
        "trainer": {"n_gpus_per_node": 8, "nnodes": 1, "device": "cuda"},
        "azr": {"problem_types": ["code_i", "code_o", "code_f"], "pretrain_pred_steps": -1,
                "execute_max_timeout": 10, "reward": {"n_samples": 8},
                "data_selection_strategy": {"update_iteration": 1}},
        "population": {"name": "4t4s", "teachers": 4, "students": 4, "gpu_memory": 80,
                       "evolution": {"operators": {"full_gaussian": 1.0}}},
        "hydra": {"overrides": {"task": ["actor_rollout_ref.actor.use_torch_compile=True"]}},
    })  # fmt: skip
    config.merge_with_dotlist(list(dots))
    return config, resolve(config)


def dry_run(config, plan):
    """The page, and whether the run could start."""
    return page(config, prepare(config, plan))


def fit(config, plan):
    """The plan that is played, or the first reason why none is."""
    start = prepare(config, plan)
    for reason in start.faults:
        raise UserError(reason)
    return start.plan


@pytest.fixture
def all_there(monkeypatch):
    monkeypatch.setattr(checks, "missing", lambda config: iter(()))
    monkeypatch.setattr(vllm_versions, "version", lambda: (0, 8, 5))


def test_it_tells_who_plays_what_it_takes_and_what_is_not_used(tmp_path, all_there):
    lines, ready = dry_run(*command(base(tmp_path)))
    text = "\n".join(lines)
    assert ready and "teacher_3, student_0" in text
    for number in ("384", "3,072", "14,240"):
        assert number in text
    assert "teachers 1.5e-06, students 1e-05" in text
    for phase in ("generate", "score", "update", "vLLM stays awake"):
        assert phase in text
    rows = {
        line[:20].strip(): [float(x) for x in re.findall(r"-?[\d.]+", line[20:])]
        for line in lines
        if re.match(r"  \S.* \d+\.\d$", line)
    }
    assert rows["base"] == [15.2] * 3 and rows["AdamW's moments"] == [5.2] * 3
    for left, in_all in zip(rows["left"], rows["in all"], strict=True):
        assert left + in_all == pytest.approx(84.9, abs=0.11)
    assert "actor.use_torch_compile" in text and "population.dry_run" in lines[-1]


def test_it_tells_between_which_rates_the_members_are(tmp_path, all_there):
    drawn = "population.evolution.hyperparameters.lr.init=[1e-6,1e-4]"
    lines, _ = dry_run(*command(base(tmp_path), drawn))
    (line,) = (line for line in lines if "AdamW's steps" in line)
    told = re.search(r"teachers 1.5e-06, students (\S+) to (\S+);", line)
    assert told and 1e-6 <= float(told[1]) < float(told[2]) <= 1e-4


@pytest.mark.parametrize(
    ("reward", "unsolved"), [("learnability", 0), ("adversarial", 1), ("stock", -0.5)]
)
def test_it_says_what_a_proposal_earns(tmp_path, all_there, reward, unsolved):
    lines, _ = dry_run(*command(base(tmp_path), f"population.teacher_reward={reward}"))
    (line,) = (line for line in lines if f"population.teacher_reward={reward}" in line)
    assert f"earns {unsolved:g} if no attempt solves it, 0.5 if half" in line
    assert line.endswith("an invalid proposal -1")


@pytest.mark.parametrize(("sizes", "gib"), [(QWEN_14B, 80), (QWEN_7B, 40), (QWEN_7B, 24)])
def test_what_cannot_fit_is_refused_with_the_settings_that_mend_it(sizes, gib, tmp_path, all_there):
    memory = f"population.gpu_memory={gib}"
    config, plan = command(base(tmp_path, sizes), memory)
    with pytest.raises(UserError) as caught:
        fit(config, plan)
    message = str(caught.value)
    assert "\n" not in message
    lines, ready = dry_run(config, plan)
    assert not ready and f"refused: {message}" in lines
    # The way out is one.
    dots = re.findall(r"[\w.]+=[\w.]+", message.rpartition("; set ")[2])
    mended = command(base(tmp_path, sizes), memory, *dots)
    fit(*mended)
    assert dry_run(*mended)[1]


def test_azrs_own_7b_command_fits_and_a_start_without_gpus_to_look_at_is_let_go(
    tmp_path, monkeypatch, all_there
):
    fit(*command(base(tmp_path)))
    monkeypatch.setenv("PATH", "")  # no nvidia-smi
    fit(*command(base(tmp_path, QWEN_14B), "population.gpu_memory=null"))
    fit(*command(base(tmp_path, QWEN_14B), "trainer.device=cpu"))


def test_the_smallest_gpu_that_is_here_counts(tmp_path, monkeypatch):
    program = tmp_path / "nvidia-smi"
    program.write_text(
        "#!/bin/sh\necho 81559, NVIDIA H100 80GB HBM3\necho 24564, NVIDIA GeForce RTX 4090\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    config = OmegaConf.create({"trainer": {"n_gpus_per_node": 2, "nnodes": 3}})
    machine = machine_of(config, PopulationSettings())
    assert (machine.gpus, machine.known, machine.device.name) == (6, True, "4090")
    assert 0.98 < machine.bytes_each / (24_564 * 2**20) < 1  # the driver has a part


def test_what_is_missing_is_told_line_by_line(tmp_path, monkeypatch):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(checks, "_there", lambda *modules: False)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    config, _ = command(base(tmp_path), "data.val_files=no/such.parquet")
    here = [*checks.missing_gpus(config), *checks.missing_vllm(config)]
    missing = sorted([*checks.missing(config), *here])
    assert [line.split("=")[0].split(" ")[0] for line in missing] == [
        "AZR", "actor_rollout_ref.model.path", "data.val_files", "trainer.n_gpus_per_node",
    ]  # fmt: skip
    assert "rollout.name=hf" in missing[0] and "process_code_reasoning_data" in missing[2]
    # Asked for by name, torch samples; then nobody needs vLLM.
    cured = ["population.rollout=torch", "actor_rollout_ref.rollout.name=hf"]
    assert not list(checks.missing_vllm(command(base(tmp_path), *cured)[0]))
    # On CPUs there are no GPUs to want.
    on_cpus, _ = command(base(tmp_path), *cured, "trainer.device=cpu")
    assert not list(checks.missing_gpus(on_cpus)) and len(list(checks.missing(on_cpus))) == 1
    several, _ = command(base(tmp_path), "data.val_files=[no/a.parquet,hdfs://b,config.json]")
    several.data.val_files[2] = str(tmp_path / "config.json")
    (lost,) = (line for line in checks.missing(several) if line.startswith("data.val_files"))
    assert lost.startswith("data.val_files=no/a.parquet is not there; ")


def test_on_a_login_node_what_it_lacks_is_a_note(tmp_path, monkeypatch):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(checks, "_there", lambda *modules: False)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    folder = base(tmp_path / "base")
    for name in ("tokenizer.json", "model.safetensors"):
        (folder / name).touch()
    for memory, code in (("population.gpu_memory=80", True), ("population.gpu_memory=null", False)):
        config, plan = command(folder, memory)
        lines, ready = dry_run(config, plan)
        notes = [line for line in lines if line.startswith("not on this machine: ")]
        assert ready == code and len(notes) == 2 * code
        lacking = ("vLLM is not installed", "AZR itself imports vLLM")
        assert sum(any(words in line for words in lacking) for line in lines) == 1
        assert any("torch sees no GPU here" in line for line in lines)
    lines, ready = dry_run(*command(folder, "population.gpu_memory=24", ONE_GPU))
    assert not ready and f"for one GPU of 24 GB: {SMALL}" in lines
    assert (ROOT / SMALL.split()[1]).is_file()


def test_a_lost_hub_is_one_line_with_the_way_out(tmp_path, monkeypatch):
    def lost(name, **options):
        raise OSError("no route")

    monkeypatch.setattr("huggingface_hub.snapshot_download", lost)
    config, plan = command("nobody/has-this-base")
    message = next(checks.missing(config))
    assert "(OSError)" in message and "hf download" in message
    with refuses("nobody/has-this-base"):
        checks.config_of_base("nobody/has-this-base")
    assert not dry_run(config, plan)[1]


def test_a_learner_is_offloaded_where_only_that_makes_it_fit(tmp_path, all_there):
    share = "actor_rollout_ref.rollout.gpu_memory_utilization=0.65"
    config, plan = command(base(tmp_path, QWEN_14B), share)
    lines, ready = dry_run(config, plan)
    assert ready and any("population.offload" in line for line in lines)
    assert fit(config, plan).decided["offload"] is True
    assert not plan.decided["offload"] and not config.population.get("offload")
    assert any("population.offload=true" in note for note in prepare(config, plan).notes)
    # Whoever says no is not overruled: the way out is named.
    with refuses("population.offload"):
        fit(*command(base(tmp_path, QWEN_14B), share, "population.offload=false"))
    # The learner of a 7B base stays on its GPU, unless AZR's own keys say otherwise.
    config, plan = command(base(tmp_path))
    assert fit(config, plan).decided["offload"] is False
    azrs = "actor_rollout_ref.actor.fsdp_config.optimizer_offload=true"
    config, plan = command(base(tmp_path), azrs)
    assert fit(config, plan).decided["offload"] is True
    # A sampler that computes with the learner's weights has nothing to wait for.
    config, plan = command(base(tmp_path), azrs, "population.rollout=torch")
    check_parallel(config, plan)
    assert not plan.decided["offload"]
    config, plan = command(base(tmp_path))
    # And what is kept is told to the workers, unless the user has said it.
    assert 0 < fit(config, plan).decided["recompute_above_tokens"] <= 8192
    config, plan = command(base(tmp_path), "population.recompute_above_tokens=0")
    assert fit(config, plan).decided["recompute_above_tokens"] == 0


def test_gpus_that_share_a_vllm_are_of_one_group(tmp_path, all_there):
    key = "actor_rollout_ref.rollout.tensor_model_parallel_size"
    check_parallel(*command(base(tmp_path), f"{key}=4"))
    for dots, way_out in (
        ([f"{key}=3"], f"set {key}=2"),
        ([f"{key}=2", "trainer.n_gpus_per_node=1"], f"set {key}=1"),
        (["population.offload=true", "population.rollout=torch"], "rollout=vllm"),
    ):
        with refuses(way_out):
            check_parallel(*command(base(tmp_path), *dots))


def test_activations_that_are_kept_though_they_do_not_fit_are_recomputed(tmp_path, all_there):
    key = "actor_rollout_ref.model.enable_gradient_checkpointing"
    with refuses(f"{key}=true"):
        fit(*command(base(tmp_path), f"{key}=False"))


QWEN_3B = QWEN_7B | {
    "hidden_size": 2048, "intermediate_size": 11_008, "num_hidden_layers": 36,
    "num_attention_heads": 16, "num_key_value_heads": 2, "vocab_size": 151_936,
    "tie_word_embeddings": True,
}  # fmt: skip


@pytest.mark.parametrize(
    ("script", "sizes"), [("coder7b_24gb", QWEN_7B), ("coder3b_24gb", QWEN_3B)]
)
def test_the_examples_for_24_gb_fit_and_start_as_they_are(script, sizes, tmp_path, all_there):
    played = tmp_path / "scripts" / "selfplay" / f"{script.partition('_')[0]}.sh"
    played.parent.mkdir(parents=True)
    played.write_text('printf "%s\\n" "$@"\n')
    start = ["bash", str(ROOT / "examples" / "azr.sh"), script]
    azr = os.environ | {"AZR_HOME": str(tmp_path)}
    listed = subprocess.run(start, env=azr, check=True, capture_output=True, text=True).stdout
    dots = [word for word in listed.split() if not word.startswith("+")]
    assert "data.train_batch_size=8" in dots
    dots += ["population.gpu=4090", "population.gpu_memory=null"]
    config, plan = command(base(tmp_path, sizes), *dots)
    lines, ready = dry_run(config, plan)
    assert ready, lines
    left = next(line for line in lines if line.startswith("  left")).split()[1:]
    assert min(map(float, left)) >= 1.5
    fit(config, plan)
    refused = command(base(tmp_path, sizes), *dots, "population.offload=false")
    with refuses("population.offload"):
        fit(*refused)


def test_the_kind_of_gpu_is_named_or_the_one_with_such_a_memory(tmp_path, all_there):
    seconds = {}
    for dots in (["population.gpu=H200"], ["population.gpu=A100"], []):
        lines, ready = dry_run(*command(base(tmp_path), *dots))
        assert ready
        (line,) = [line for line in lines if line.startswith("roofline")]
        seconds[" ".join(dots)] = float(line.split()[3])
        (line,) = [line for line in lines if line.startswith("extrapolated: about")]
        bound, measured = seconds[" ".join(dots)], float(line.split()[2])
        assert bound / 0.38 - 1 <= measured <= bound / 0.34 + 1
    assert seconds["population.gpu=H200"] < seconds[""] < seconds["population.gpu=A100"]
    with refuses("population.gpu"):
        dry_run(*command(base(tmp_path), "population.gpu=B9000"))


def test_vllm_sleeps_only_where_it_and_the_learner_do_not_fit_awake(tmp_path, all_there):
    key = "actor_rollout_ref.rollout.engine_kwargs.vllm.enable_sleep_mode"

    def decided(*dots):
        config, plan = command(base(tmp_path), *dots)
        lines, _ = dry_run(config, plan)
        phases = next(line for line in lines if line.startswith("  GB")).split()[1:]
        (line,) = [line for line in lines if line.startswith("vLLM s")]
        fitted = prepare(config, plan).plan.engine.vllm.get("enable_sleep_mode")
        return fitted, "wake" in phases, line.split(" while")[0]

    awake, asleep = "vLLM stays awake", "vLLM sleeps"
    assert decided("population.gpu_memory=80") == (False, False, awake)
    assert decided("population.gpu_memory=48") == (None, True, asleep)
    # The user's word counts, and so does an offloaded learner's, which leaves its room to vLLM.
    assert decided("population.gpu_memory=80", f"{key}=True") == (True, True, asleep)
    assert decided("population.gpu_memory=80", f"{key}=False") == (False, False, awake)
    assert decided("population.gpu_memory=80", "population.offload=true") == (None, True, asleep)


def test_a_logger_that_azr_cannot_use_is_named(tmp_path, all_there, monkeypatch):
    loggers = "trainer.logger=[console,wandb,trackio_of_no_one]"
    monkeypatch.setattr(
        checks, "wandb_fault", lambda: "wandb is another; pip install wandb==0.20.1"
    )
    lines, ready = dry_run(*command(base(tmp_path), loggers))
    assert not ready and "refused: trainer.logger: wandb is another; pip install" in "\n".join(
        lines
    )
    assert any("no trackio_of_no_one (nor is it installed)" in line for line in lines)
    monkeypatch.setattr(checks, "_there", lambda *names: "wandb" not in names)
    lines, ready = dry_run(*command(base(tmp_path), loggers))
    assert "trainer.logger: wandb is not installed" in "\n".join(lines)
    monkeypatch.setattr(checks, "_there", lambda *names: True)
    monkeypatch.setattr(checks, "wandb_fault", lambda: None)
    assert dry_run(*command(base(tmp_path), loggers))[1]


def test_wandb_is_asked_for_the_setting_that_azr_gives():
    wandb = pytest.importorskip("wandb")
    refuses_it = "start_method" not in wandb.Settings.model_fields
    assert (wandb_fault() is not None) == refuses_it


def test_all_refused_keys_are_named_at_once(tmp_path, all_there):
    wrong = ["algorithm.gamma=0.5", "algorithm.adv_estimator=gae", "azr.problem_types=[code_x]"]
    lines, ready = dry_run(*command(base(tmp_path), *wrong))
    refused = "\n".join(line for line in lines if line.startswith("refused: "))
    assert not ready and all(key.partition("=")[0] in refused for key in wrong)


def test_four_cards_of_24_gb_are_told_what_fits(tmp_path, all_there):
    """AZR's own coder-7b command, which has them in pairs."""
    asked = ["population.gpu_memory=24", "trainer.n_gpus_per_node=4"]
    asked += ["actor_rollout_ref.rollout.tensor_model_parallel_size=2"]
    config, plan = command(base(tmp_path), *asked)
    lines, ready = dry_run(config, plan)
    (refused,) = (line for line in lines if line.startswith("refused: "))
    assert not ready and "population.quantization=nf4" in refused
    assert "population.offload=true" in refused
    (cache,) = (line for line in lines if line.startswith("  KV cache"))
    assert "-0" not in cache and "-1" not in cache
    dots = re.findall(r"[\w.]+=[\w.]+", refused.rpartition("; set ")[2])
    assert dry_run(*command(base(tmp_path), *asked, *dots))[1]


def test_the_base_of_a_population_has_its_own_key(tmp_path, all_there, monkeypatch):
    monkeypatch.setattr("azr_population.engines.assembly.installed", lambda name: None)
    lines, _ = dry_run(*command(base(tmp_path), "population.quantization=nf4"))
    text = "\n".join(lines)
    assert "population.quantization=nf4 needs bitsandbytes" in text and "base.quant" not in text
