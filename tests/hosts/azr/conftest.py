"""Ray and veRL for the plugin's tests; they skip where the two are not installed."""

import os
import sys
import tempfile
from pathlib import Path

import needs
import pytest

EXAMPLES = Path(__file__).parents[3] / "examples"
sys.path[:0] = [str(Path(__file__).parent), str(EXAMPLES)]


@pytest.fixture(scope="session")
def ray_session():
    """A small Ray of our own."""
    needs.verl()
    import ray

    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ["RAY_DISABLE_IMPORT_WARNING"] = "1"
    path = [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    # Sockets in the folder have names of about 70 characters, and 107 are allowed.
    with tempfile.TemporaryDirectory(prefix="ray", dir="/tmp") as folder:
        ray.init(
            num_cpus=10,  # the groups of test_facade.py hold up to nine at once
            # Not really: see test_each_worker_has_a_gpu_of_its_own_and_each_role_its_half.
            num_gpus=2,
            object_store_memory=200_000_000,
            include_dashboard=False,
            _temp_dir=folder,
            log_to_driver=False,
            runtime_env={"env_vars": {"PYTHONPATH": os.pathsep.join(path)}},
        )
        yield
        ray.shutdown()


@pytest.fixture(scope="session")
def tiny_base(tmp_path_factory):
    """The folder of a tiny base."""
    from tiny_base import save_tiny_base

    return save_tiny_base(tmp_path_factory.mktemp("base"))


@pytest.fixture
def vllm_is_there(monkeypatch):
    """Without it `population.rollout=auto` is refused on GPUs before anything else is looked at."""
    monkeypatch.setattr("azr_population.engines.vllm_versions.version", lambda: (0, 8, 5))


@pytest.fixture
def tokenizer(tiny_base):
    """Of the tiny base."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(tiny_base)


@pytest.fixture
def azr_executor():
    """AZR's own executor of programs."""
    needs.verl()
    made = needs.from_azr(needs.AZR_EXECUTOR).PythonExecutor(timeout_length=5, ast_check=True)
    yield made
    made.cleanup()


@pytest.fixture
def azr_manager(tmp_path):
    """Makes AZR's own reward manager of proposals and answers."""

    def make(tokenizer=None, folder=tmp_path, **more):
        from omegaconf import OmegaConf

        managers = needs.from_azr("absolute_zero_reasoner.rewards.reward_managers")
        configs = Path(needs.AZR_HOME) / "absolute_zero_reasoner" / "configs"
        return managers.CodeIORewardManager(
            tokenizer=tokenizer,
            num_examine=0,
            split="train",
            reward_fn_extraction_type="answer_conditional",
            math_metric="deepscaler",
            splitter="Assistant:",
            output_path=str(folder),
            generation_reward_config=OmegaConf.load(
                configs / "azr_ppo_trainer.yaml"
            ).azr.reward.generation_reward_config,
            **more,
        )

    return make
