"""AZR's own command, from its checkout, on CPUs and with a tiny base."""

import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import ray_heads

from azr_population.versions import installed

AZR_HOME = os.environ.get("AZR_HOME", "")
ENTRY = "absolute_zero_reasoner.main_azr_ppo"
SEEDS = "data/7b_coder_seed_io.jsonl"
CODE_F_SEEDS = "data/7b_coder_code_f_seed_io.jsonl"
HERE = Path(__file__).parent


def pinned():
    """Whether this is the veRL that AZR pins, under which stock AZR runs too."""
    return installed("verl") == "0.4.1"


def command():
    """What starts AZR: its own module under the veRL that it pins, our command under later ones."""
    return ["-m", ENTRY] if pinned() else ["-m", "azr_population.cli", "azr"]


def prepare(folder, hidden=32):
    """Writes a tiny base whose tokenizer knows AZR's prompts, and data for AZR's loaders."""
    home = Path(AZR_HOME)
    from tiny_base import save_tiny_base

    texts = [(home / SEEDS).read_text(), (home / CODE_F_SEEDS).read_text()]
    prompts = home / "absolute_zero_reasoner" / "data_construction" / "prompts.py"
    save_tiny_base(folder / "base", [*texts, *[prompts.read_text()] * 20], 3000, hidden)
    script = (
        "import json, sys\n"
        "from azr_population.patches import verl_shims\n"
        "verl_shims.install()\n"
        "from transformers import AutoTokenizer\n"
        "from absolute_zero_reasoner.data_construction.constructor import get_pred_code_io_data\n"
        "rows = [json.loads(line) for line in open(sys.argv[1])][:64]\n"
        "get_pred_code_io_data(rows, 4, 'code_o', 'answer_conditional', 4000, sys.argv[2], 'test',"
        " AutoTokenizer.from_pretrained(sys.argv[3]))\n"
    )
    arguments = [str(home / SEEDS), str(folder / "test_answer.parquet"), str(folder / "base")]
    subprocess.run(
        [sys.executable, "-c", script, *arguments], cwd=home, env=environment(folder), check=True
    )


def overrides(folder):
    """What makes AZR's coder-7b command small; none of it concerns the population."""
    data = folder / "test_answer.parquet"
    return [
        f"data.train_files={data}",
        f"data.val_files={data}",
        "data.train_batch_size=2",
        "data.val_batch_size=4",
        "data.max_prompt_length=3000",
        "data.max_response_length=24",
        "azr.data_selection_strategy.content_max_length=2900",
        "azr.data_selection_strategy.io_n=1",
        "azr.data_selection_strategy.num_inputs=4",
        f"actor_rollout_ref.model.path={folder / 'base'}",
        "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1",
        "actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu=1",
        "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=1",
        "actor_rollout_ref.ref.include_ref=False",
        # AZR imports vLLM for its default, whoever generates.
        "actor_rollout_ref.rollout.name=hf",
        "actor_rollout_ref.rollout.n=1",
        "actor_rollout_ref.rollout.temperature=1.0",
        "ray_init.num_cpus=4",
        "algorithm.adv_estimator=reinforce_plus_plus",
        "azr.reward.n_samples=2",
        "azr.executor_max_workers=1",
        "azr.execute_max_timeout=5",
        "azr.random_print_max_programs=0",
        f"azr.seed_dataset={SEEDS}",
        f"azr.code_f_seed_dataset={CODE_F_SEEDS}",
        "azr.problem_types=[code_i,code_o,code_f]",
        "reward_fn.extraction_type=answer_conditional",
        "trainer.device=cpu",
        "trainer.n_gpus_per_node=1",
        "trainer.nnodes=1",
        "trainer.logger=[console]",
        "trainer.total_training_steps=3",
        "trainer.save_freq=2",
        "+trainer.val_before_train=False",
        "trainer.resume_mode=auto",
        f"trainer.default_local_dir={folder / 'out'}",
        f"hydra.run.dir={folder / 'hydra'}",
    ]


def environment(folder):
    """One thread, and a Ray of its own."""
    short = Path(tempfile.gettempdir()) / f"azr{os.getpid()}"
    return ray_heads.environment() | {
        "AZR_HOME": AZR_HOME,
        # The tree that these tests lie in, before a copy that may be installed.
        "PYTHONPATH": os.pathsep.join([AZR_HOME, str(HERE.parents[2]), str(HERE)]),
        "RAY_TMPDIR": str(short),
        "RAY_DEFAULT_OBJECT_STORE_MAX_MEMORY_BYTES": "200000000",
        "RAY_DEDUP_LOGS": "0",
        # By itself Ray kills its workers where others have filled the memory.
        "RAY_memory_monitor_refresh_ms": "0",
        "HYDRA_FULL_ERROR": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }


def start(folder, extra, variables=None, place=AZR_HOME):
    """Starts the command in `place` with `extra` overrides; it writes to `folder/log`."""
    (Path(tempfile.gettempdir()) / f"azr{os.getpid()}").mkdir(exist_ok=True)
    with (folder / "log").open("w") as log:
        return subprocess.Popen(
            [sys.executable, *command(), *overrides(folder), *extra],
            cwd=place,
            env=environment(folder) | (variables or {}),
            stdout=log,
            stderr=subprocess.STDOUT,
            # A script in the background of another one ignores Ctrl-C, and what it starts, too.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )


def ended(folder, process, timeout=900):
    """Waits for the command: its exit code, and stdout and stderr as one text without colours."""
    try:
        code = process.wait(timeout)
    finally:
        process.kill()
    return code, re.sub(r"\x1b\[[0-9;]*m", "", (folder / "log").read_text())


def run(folder, extra, variables=None, timeout=900):
    """The whole command, see `start` and `ended`."""
    return ended(folder, start(folder, extra, variables), timeout)


def played(folder, extra, variables=None, timeout=900):
    """What the whole command printed, which has to end well."""
    code, log = run(folder, extra, variables, timeout)
    assert code == 0, log[-3000:]
    return log


def ray_head(folder, cpus):
    """A Ray that runs already, started in AZR's checkout; its address."""
    return ray_heads.ray_head(folder / "head.log", cpus, environment(folder), Path(AZR_HOME))
