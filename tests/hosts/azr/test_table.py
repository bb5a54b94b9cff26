"""The tables of docs/with_azr.md, "What changes against stock AZR", held against AZR's and veRL's
code. Rewards and solve rates are in test_judging.py; steps, over-long tasks and the manager's
settings in test_patches.py; advantages in test_step.py; validation in test_validation.py."""

import contextlib
import importlib.util
import random
import re
from pathlib import Path
from types import SimpleNamespace

import host
import needs
import numpy as np
import pytest
import torch
from omegaconf import OmegaConf
from test_host_commands import composed

from azr_population.hosts.azr.azr_plan import resolve
from azr_population.streams import Streams

pytestmark = pytest.mark.azr
PAGE = (Path(__file__).parents[3] / "docs" / "with_azr.md").read_text()


def cells(first):
    """The cells of a row of the page, by its first one."""
    (row,) = re.findall(rf"^\| {re.escape(first)} \|.*$", PAGE, re.MULTILINE)
    return [cell.strip() for cell in row.strip("|").split("|")][1:]


def batch_sizes():
    """Overrides of AZR's coder-7b script."""
    script = needs.azr_file("scripts/selfplay/coder7b.sh").read_text()
    typed = dict(re.findall(r"^ +([\w.]+)=([\w.-]+) ", script, re.MULTILINE))
    names = ("data.train_batch_size", "actor_rollout_ref.actor.ppo_mini_batch_size")
    return [f"{name}={typed[name]}" for name in names]


def test_rates():
    stock, ours = cells("what is trained")
    assert "all weights" in stock and "10 x" in ours and "1.5 x" in ours
    for arm, rates in {"single": ("agent_lr",), "4t4s": ("student_lr", "teacher_lr")}.items():
        config = composed([*batch_sizes(), f"+population={arm}"])
        # Stock AZR trains a LoRA adapter if this is above 0.
        assert not config.actor_rollout_ref.model.get("lora_rank", 0)
        lr = config.actor_rollout_ref.actor.optim.lr
        played = resolve(config).config.population
        times = [getattr(played, rate) / lr for rate in rates]
        assert times == pytest.approx([10.0, 1.5][: len(rates)])


def test_updates_of_a_step(monkeypatch):
    """veRL's own update of a step's rows: its mini-batches, where it clips, what it logs."""
    if not host.pinned():
        pytest.skip("stock AZR plays on the veRL that it pins, 0.4.1, and this is another one")
    actors = needs.verl("verl.workers.actor.dp_actor")
    memory = "verl.utils.debug.performance._get_current_mem_info"
    monkeypatch.setattr(memory, lambda: ["no GPU"] * 4)
    from tensordict import TensorDict
    from verl import DataProto

    config = composed(batch_sizes())
    rows = 2 * len(config.azr.problem_types) * config.data.train_batch_size
    actor = object.__new__(actors.DataParallelPPOActor)
    actor.config = config.actor_rollout_ref.actor
    OmegaConf.update(actor.config, "ppo_micro_batch_size_per_gpu", 16)
    actor.ulysses_sequence_parallel_size = 1
    actor.actor_module = torch.nn.Linear(1, 1)
    actor.actor_optimizer = torch.optim.SGD(actor.actor_module.parameters(), 0.0)
    steps, gradients = [], []
    actor._optimizer_step = lambda: (steps.append(len(gradients)), torch.tensor(0.0))[1]
    # A row's one token has this probability against the sampler's.
    ratios = torch.tensor([0.79, 0.81, 1.27, 1.29]).repeat(rows // 4)
    worth = torch.tensor([-1.0, -1.0, 1.0, 1.0]).repeat(rows // 4)

    def log_probs(micro_batch, **_):
        given = micro_batch["input_ids"][:, :1].log().requires_grad_()
        given.register_hook(lambda gradient: gradients.append(gradient[:, 0] != 0))
        return None, given

    actor._forward_micro_batch = log_probs
    ones, zeros = torch.ones(rows, 1), torch.zeros(rows, 1)
    data = DataProto(
        TensorDict(
            {
                "responses": ones, "input_ids": ratios[:, None], "attention_mask": ones,
                "position_ids": ones, "old_log_probs": zeros, "advantages": worth[:, None],
            },
            batch_size=rows,
        ),
        meta_info={"temperature": 1.0},
    )  # fmt: skip
    logged = actor.update_policy(data)
    stock, ours = cells("updates in a step")
    assert "one update per member" in ours  # test_run_in_azr.py counts them
    pattern = r"(\d+) rows in mini-batches of (\d+).*three updates.*clipped to ([\d.]+) to ([\d.]+)"
    *sizes, low, high = map(float, re.search(pattern, stock).groups())
    assert sizes == [rows, actor.config.ppo_mini_batch_size] and steps == [8, 16, 24]
    learned = torch.cat(gradients)
    assert torch.equal(learned, ((ratios > low) | (worth > 0)) & ((ratios < high) | (worth < 0)))
    gone = re.search(r"Gone are(.*?)These mean", PAGE, re.DOTALL)[1]
    needs.azr_on_path()
    from azr_population.hosts.azr.trainer import ACTOR

    assert {key for key in logged if f"`{key}`" not in gone} <= set(ACTOR.values())
    worker = Path(importlib.util.find_spec("verl.workers.fsdp_workers").origin).read_text()
    measured = set(re.findall(r'metrics\["(perf/\w+(?:/actor)?)"\]', worker)) - {"perf/mfu"}
    patterns = [key.replace("*", r"\w+") for key in re.findall(r"`(perf/[^`]+)`", gone)]
    assert measured and all(any(re.fullmatch(p, key) for p in patterns) for key in measured)


@pytest.mark.parametrize("pays", ["accuracy", "binary"])
def test_a_program_that_is_right_on_some_pairs(pays, azr_manager, tokenizer, azr_executor):
    """code_f: a solve rate of a population counts answers that are right on all hidden pairs."""
    from fake_group import FakeGroup

    from azr_population.hosts.azr.executors import StepExecutor

    program = "def f(a):\n    return min(a, 3)"
    pairs = {"inputs": ["1", "2", "3", "4"], "outputs": ["1", "2", "3", "4"]}
    task = {
        "snippet": "def f(a):\n    return a", "original_snippet": "", "imports": [], "message": "",
        **pairs, "given_inputs": pairs["inputs"][:2], "given_outputs": pairs["outputs"][:2],
        "hidden_inputs": pairs["inputs"][2:], "hidden_outputs": pairs["outputs"][2:],
    }  # fmt: skip
    proposal = {
        "uid": "one", "code_validity": True, "data_source": "gen_code_f", "references": [],
        "extra_info": {"index": 0}, "answer": task,
    }  # fmt: skip
    answer = tokenizer(f"so </think> <answer>```python\n{program}\n```</answer>")["input_ids"]
    manager = azr_manager(tokenizer, code_f_reward_type=pays)
    step = StepExecutor(azr_executor)
    rewards, _ = manager._get_problem_generator_rewards_and_valid_programs(
        data_dicts=[proposal], problem_type="gen_code_f", n_samples=1, executor=step,
        rollout_actor_wg=FakeGroup(lambda prompt, sample: answer, 1),
        input_type_counters={}, output_type_counters={},
    )  # fmt: skip
    # AZR's solve rate is 1/2 or 0, and 1 - 1/2 or 0 what it pays.
    assert rewards["one"]["accuracy"] == {"accuracy": 0.5, "binary": 0.0}[pays]
    assert not step.solved("code_f", program, task)
    step.close()


def test_the_first_types_time_has_the_merged_calls(monkeypatch):
    """Both calls of a step are begun for its first type: the one for tokens before AZR starts its
    clock, the one for estimates within `reward_fn`."""
    needs.from_azr("absolute_zero_reasoner.trainer.ppo.azr_ray_trainer")
    from azr_population.hosts.azr.trainer import PopulationTrainer

    trainer = object.__new__(PopulationTrainer)
    trainer.group = SimpleNamespace(ahead={}, routed=lambda name: contextlib.nullcontext())
    trainer.step = SimpleNamespace(assign=lambda *_: [], write_advantages=lambda *_: None)
    trainer._begin_step = lambda: None
    trainer._generate_ahead = lambda *_: trainer.group.ahead.update(dict.fromkeys(names))
    clocks = {}

    def compute_batch(self, batch, metrics, timing, problem_type, executor):
        clocks[problem_type] = set(timing)
        return batch, metrics

    monkeypatch.setattr(PopulationTrainer.__mro__[1], "_compute_batch", compute_batch)
    names, timing = ("gen_code_i", "pred_code_i"), {}
    for name in names:
        trainer._compute_batch(SimpleNamespace(meta_info={}), {}, timing, name, None)
    assert clocks == {name: {"gen/gen_code_i"} for name in names}


def test_which_keys_say_that_types_are_counted_by_rank():
    sources = (Path(needs.AZR_HOME) / "absolute_zero_reasoner").rglob("*.py")
    read = {key for path in sources for key in re.findall(r"(\w+)\.hierarchical", path.read_text())}
    assert read == {"answer_diversity_reward"}


ANSWERS = re.findall(r"^\| `(.+?)` \| `(.+?)` \| (right|wrong) \| (right|wrong) \|", PAGE, re.M)


def test_comparison_of_answers(azr_executor):
    from azr_population.patches import EVALS, apply, undo

    assert len(ANSWERS) == 6
    for patches, column in (((), 2), (EVALS, 3)):
        apply(patches)
        try:
            for row in ANSWERS:
                answer, output = row[:2]
                score = azr_executor.eval_output_prediction(
                    code="", gold_output=output, agent_output=answer
                )
                assert score == float(row[column] == "right"), row
        finally:
            undo(patches)


def test_draws_of_prompts():
    stock, ours = cells("draws of prompts and examples")
    assert "nobody seeds" in stock and "for each step" in ours
    needs.from_azr("absolute_zero_reasoner.trainer.ppo.azr_ray_trainer")
    from azr_population.hosts.azr.trainer import PopulationTrainer

    def drawn(step, seed=1):
        trainer = object.__new__(PopulationTrainer)
        nothing = SimpleNamespace(begin=lambda _: None, begin_step=lambda _: None)
        trainer.step = trainer.group = trainer.judge = nothing
        trainer.population = SimpleNamespace(step=step - 1, streams=Streams(seed))
        trainer.global_steps, trainer._executor = step, None
        trainer._begin_step()
        return random.random(), np.random.random()

    assert drawn(1) == drawn(1)
    assert len({*drawn(1), *drawn(2), *drawn(1, seed=2)}) == 6
