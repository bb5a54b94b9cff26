"""Each patch: the defect, shown on AZR's own code, and then its absence."""

import os
import sys
from pathlib import Path
from types import SimpleNamespace

import needs
import pytest
from refusals import refuses

AZR_HOME = os.environ.get("AZR_HOME", "")
pytestmark = pytest.mark.azr


@pytest.fixture(autouse=True)
def upstream():
    """AZR importable, and every patch undone afterwards."""
    needs.azr_on_path()
    from azr_population.patches import undo
    from azr_population.patches.azr_fixes import NEEDED, OPTIONAL

    yield
    undo([*NEEDED, *OPTIONAL])


def apply(patch):
    from azr_population.patches import apply as apply_patches

    apply_patches([patch])


def test_the_training_loader_gets_a_state(monkeypatch):
    from absolute_zero_reasoner.trainer.ppo import reason_rl_ray_trainer as module

    from azr_population.patches.azr_fixes import DATALOADER_STATE

    class Dataset:
        def __init__(self, **kwargs): ...

        def __len__(self):
            return 4

        def __getitem__(self, index):
            return {}

    monkeypatch.setattr(module, "RLHFDataset", Dataset)
    data = {"train_files": "", "val_files": "", "prompt_key": "", "max_prompt_length": 1,
            "shuffle": False, "train_batch_size": 2}  # fmt: skip
    actor = {"optim": {}}

    def loader():
        from omegaconf import OmegaConf

        trainer = SimpleNamespace(
            tokenizer=None,
            config=OmegaConf.create(
                {
                    "data": data,
                    "trainer": {"total_epochs": 1, "total_training_steps": None},
                    "actor_rollout_ref": {"actor": actor},
                    "critic": {"optim": {}},
                }
            ),
        )
        module.ReasonRLRayPPOTrainer._create_dataloader(trainer)
        return trainer.train_dataloader

    with pytest.raises(AttributeError):
        loader().state_dict()
    apply(DATALOADER_STATE)
    new_loader = loader()
    assert new_loader.state_dict() == {} and new_loader.load_state_dict({}) is None


VALID = {
    "uid": "one",
    "code_validity": True,
    "data_source": "gen_code_o",
    "extra_info": {"index": 0},
    "references": [],
    "answer": {
        "snippet": "def f(a):\n    return a",
        "original_snippet": "def f(a):\n    return a",
        "input": "1",
        "output": "1",
        "imports": [],
        "composite_functions": [],
    },
}


def test_difficulty_estimates_have_folders_of_their_own(azr_manager, tmp_path, monkeypatch):
    from absolute_zero_reasoner.rewards import reward_managers as module

    from azr_population.patches.azr_fixes import TEMP_PARQUET

    class Stop(Exception): ...

    read = []

    def dataset(parquet_files, **kwargs):
        read.append(parquet_files)
        raise Stop

    monkeypatch.setattr(module, "RLHFDataset", dataset)

    def estimate():
        with pytest.raises(Stop):
            azr_manager(folder=tmp_path / "new")._get_problem_generator_rewards_and_valid_programs(
                data_dicts=[VALID], problem_type="gen_code_o", n_samples=2, rollout_actor_wg=None,
                executor=None, output_type_counters={},
            )  # fmt: skip

    with pytest.raises(OSError):
        estimate()
    (tmp_path / "new").mkdir()
    estimate()
    estimate()
    assert read[0] == read[1] == f"{tmp_path}/new/temp.parquet"
    (tmp_path / "new" / "temp.parquet").unlink()
    (tmp_path / "new").rmdir()
    apply(TEMP_PARQUET)
    estimate()
    estimate()
    assert read[2] != read[3] and not list((tmp_path / "new").iterdir())


def row(tokenizer, prompt, response):
    """A row of a batch as AZR's reward manager reads it."""
    import numpy as np
    import torch

    prompt_ids, written = tokenizer(prompt)["input_ids"], tokenizer(response)["input_ids"]
    references = [{"snippet": "def f(a):\n    return a", "imports": []}]
    return SimpleNamespace(
        batch={
            "prompts": torch.tensor(prompt_ids),
            "responses": torch.tensor(written),
            "attention_mask": torch.ones(len(prompt_ids) + len(written), dtype=torch.long),
        },
        non_tensor_batch={
            "reward_model": {"ground_truth": ""},
            "data_source": "gen_code_o",
            "extra_info": {"chosen_references": references, "composite_functions": np.array([])},
        },
    )


RESPONSE = "so </think> <answer>```python\ndef f(a):\n    return a\n```\n```input\n1\n```</answer>"


class Executor:
    """Finds every program valid."""

    def check_all(self, **kwargs):
        return True, "1"


def test_an_overlong_task_is_invalid_and_not_unsolved(azr_manager, tmp_path, tokenizer):
    from azr_population.patches.azr_fixes import OVERLONG_ESTIMATES

    item = row(tokenizer, "User: go\nAssistant: <think>", RESPONSE)

    def validity(limit, kind="gen_code_o"):
        judged = azr_manager(tokenizer, max_prompt_length=limit)._get_data_dict(
            item, kind, Executor(), [], "one", []
        )
        return judged["code_validity"], judged["format_score"]

    # Upstream's estimate would filter it out, take its accuracy for 0 and crash on an empty batch.
    assert validity(20) == (True, 1.0)
    apply(OVERLONG_ESTIMATES)
    assert validity(20) == (False, 0.0)
    assert validity(8000) == (True, 1.0)
    # By the prompt of its own type: code_i's and code_o's differ by the task's input and output.
    shortest = {
        kind: next(limit for limit in range(20, 8000) if validity(limit, kind)[0])
        for kind in ("gen_code_i", "gen_code_o")
    }
    assert len(set(shortest.values())) == 2


def test_stock_takes_an_overlong_task_for_unsolved(azr_manager, azr_executor, tokenizer):
    """What `azr-overlong-estimates` is for: AZR's own estimate of one, and of it alone."""
    from fake_group import FakeGroup

    answer = tokenizer("so </think> <answer>```output\n1\n```</answer>")["input_ids"]
    long = "def f(a):\n    return a" + " + 0" * 4000
    tasks = [VALID, VALID | {"uid": "two", "answer": VALID["answer"] | {"snippet": long}}]

    def solve_rates(data_dicts):
        rewards, _ = azr_manager(
            tokenizer, max_prompt_length=8000
        )._get_problem_generator_rewards_and_valid_programs(
            data_dicts=data_dicts, problem_type="gen_code_o", n_samples=1, executor=azr_executor,
            rollout_actor_wg=FakeGroup(lambda *_: answer, 1), output_type_counters={},
        )  # fmt: skip
        return [reward["accuracy"] for reward in rewards.values()]

    # 1 - solve rate, or 0 where nobody solves it.
    assert solve_rates(tasks) == [0.0, 0.0]
    with pytest.raises(ValueError, match="batch_size"):
        solve_rates(tasks[1:])


def test_the_filter_of_long_prompts_counts_token_ids(tmp_path, tokenizer):
    import pandas as pd
    import transformers

    from azr_population.patches import undo
    from azr_population.patches.azr_fixes import DATASET, PROMPT_FILTER

    dataset = needs.from_azr(DATASET).RLHFDataset
    chats = [[{"role": "user", "content": "word " * count}] for count in (1, 900)]
    pd.DataFrame({"prompt": chats}).to_parquet(tmp_path / "prompts.parquet")

    def filtered():
        files = str(tmp_path / "prompts.parquet")
        return dataset(parquet_files=files, tokenizer=tokenizer, max_prompt_length=100)

    undo([PROMPT_FILTER])  # under today's veRL the import has applied it
    counts_keys = int(transformers.__version__.split(".")[0]) >= 5
    assert len(filtered()) == (2 if counts_keys else 1)
    apply(PROMPT_FILTER)
    kept = filtered()
    assert len(kept) == 1 and kept.tokenizer is tokenizer


def test_a_row_without_the_splitter_is_read(azr_manager, tmp_path, tokenizer):
    from azr_population.patches.azr_fixes import OVERLONG_ESTIMATES, SPLITTER

    apply(OVERLONG_ESTIMATES)  # as in a run: it counts the tokens of the row's solving prompt
    item = row(tokenizer, "no template here", f"<think> {RESPONSE}")

    def read():
        return azr_manager(tokenizer)._get_data_dict(item, "gen_code_o", Executor(), [], "one", [])

    with pytest.raises(IndexError):
        read()
    apply(SPLITTER)
    assert read()["answer"]["input"] == "1" and read()["format_score"] == 1.0


def test_prompts_that_never_fit_end_the_run(tmp_path, tokenizer, monkeypatch):
    from absolute_zero_reasoner.data_construction import constructor
    from absolute_zero_reasoner.trainer.ppo import azr_ray_trainer as module

    from azr_population.patches.azr_fixes import PROMPT_LOOP, TRIES

    class Endless(Exception): ...

    tried = []
    make_prompt = constructor.get_code_problem_generator_prompt

    def prompt(**kwargs):
        tried.append(1)
        if len(tried) > 2 * TRIES:
            raise Endless
        return str(make_prompt(**kwargs))

    monkeypatch.setattr(constructor, "get_code_problem_generator_prompt", prompt)
    task = {"snippet": "def f(a):\n    return a", "input": "1", "output": "1", "imports": []}

    def build():
        module.get_gen_code_io_data(
            io_data=[task], target_data_len=1, problem_type="code_o", instruction_type="answer",
            content_max_length=10, io_n=1, output_path=str(tmp_path / "p"), split="train",
            tokenizer=tokenizer, banned_keywords=[], banned_assertion_keywords=[],
        )  # fmt: skip

    with pytest.raises(Endless):
        build()
    tried.clear()
    apply(PROMPT_LOOP)
    with refuses("content_max_length=10"):
        build()
    assert len(tried) == TRIES


def test_prompts_that_fit_now_and_then_end_no_run():
    from azr_population.patches.azr_fixes import TRIES, _Counting

    counting = _Counting(lambda ids: {"input_ids": ids}, 2)
    for _ in range(TRIES):
        assert counting([1] * 3) and counting([1])


def test_all_steps_are_played():
    from absolute_zero_reasoner.trainer.ppo.azr_ray_trainer import CodeIORayPPOTrainer

    from azr_population.patches.azr_fixes import TOTAL_STEPS

    class Stop(Exception): ...

    class Trainer(CodeIORayPPOTrainer):
        """Counts the steps that the loop begins, and begins none of AZR's work."""

        def __init__(self):
            from omegaconf import OmegaConf

            self.total_training_steps, self.begun = 3, 0
            self.val_reward_fn, self.loaded_datasets, self.tokenizer = None, True, SimpleNamespace()
            self.config = OmegaConf.load(
                Path(AZR_HOME) / "absolute_zero_reasoner/configs/azr_ppo_trainer.yaml"
            )
            self.config.azr.data_selection_strategy.update_iteration = 0
            self.config.azr.problem_types = []
            self.config.azr.data_selection_strategy.composite_scheduler.enabled = True
            self.config.trainer.logger = []

        def _load_checkpoint(self):
            self.dataset_manager = SimpleNamespace(
                get_dataset_size=SimpleNamespace(remote=lambda name: 0)
            )

        def scheduler_step(self):
            self.begun += 1
            self.global_steps += 1

    def played(monkey):
        monkey.setattr(sys.modules[CodeIORayPPOTrainer.__module__].ray, "get", lambda value: value)
        trainer = Trainer()
        trainer.fit()
        return trainer.begun

    with pytest.MonkeyPatch.context() as monkey:
        assert played(monkey) == 2
        apply(TOTAL_STEPS)
        assert played(monkey) == 3


def test_settings_reach_the_reward_manager(monkeypatch):
    from absolute_zero_reasoner.trainer.ppo import azr_ray_trainer as module
    from omegaconf import OmegaConf

    from azr_population.patches.azr_fixes import REWARD_ARGUMENTS

    config = OmegaConf.load(Path(AZR_HOME) / "absolute_zero_reasoner/configs/azr_ppo_trainer.yaml")
    config.azr.data_selection_strategy.num_inputs = 4
    config.azr.data_selection_strategy.batched_estimate = True
    config.azr.data_selection_strategy.banned_keywords_for_errors_and_exceptions = ["raise"]
    asked = {}

    class Manager:
        num_inputs, batched_estimate = 10, False

        def __call__(self, **kwargs):
            asked.update(kwargs)

    def init(self, **kwargs):
        self.config, self.reward_fn, self.val_reward_fn = config, Manager(), None

    monkeypatch.setattr(module.ReasonRLRayPPOTrainer, "__init__", init)
    monkeypatch.setattr(module, "DatasetManager", SimpleNamespace(remote=lambda: None))
    monkeypatch.setattr(module, "PythonExecutor", lambda **kwargs: None)
    stock = module.CodeIORayPPOTrainer().reward_fn
    assert stock.num_inputs == 10 and not stock.batched_estimate
    apply(REWARD_ARGUMENTS)
    trainer = module.CodeIORayPPOTrainer()
    assert trainer.reward_fn.func.num_inputs == 4 and trainer.reward_fn.func.batched_estimate
    trainer.reward_fn(problem_type="gen_code_o")
    assert asked["banned_assertion_keywords"] == ["raise"]
