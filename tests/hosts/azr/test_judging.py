"""AZR's own reward manager under the judge: whose solve rate counts, and what it is worth."""

import importlib.util
import inspect
import re
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import host
import needs
import pytest
import torch
from fake_group import FakeGroup
from omegaconf import OmegaConf

pytestmark = pytest.mark.azr
SAMPLES = 2


def students(tokenizer, kind="code_o"):
    """Whose `a + k` is solved in the first k of the samples."""
    shown, asked = ("output", "input") if kind == "code_i" else ("input", "output")

    def write(prompt, sample):
        pattern = rf"a \+ (\d)\n.*?```{shown}\n(\d+)"
        ((k, given),) = re.findall(pattern, tokenizer.decode(prompt), re.DOTALL)
        right = int(given) - int(k) if asked == "input" else int(given) + int(k)
        answer = right if sample < int(k) else -1
        reply = f"so </think> <answer>```{asked}\n{answer}\n```</answer>"
        return tokenizer(reply)["input_ids"]

    return FakeGroup(write, SAMPLES)


def proposals(tokenizer, ks):
    """Rows of code_o proposals; None is gibberish."""
    import numpy as np
    import torch
    from verl import DataProto

    from azr_population.engines.engine import Completion
    from azr_population.hosts.azr.batches import COMPLETION, with_responses

    prompt = tokenizer("User: go\nAssistant: <think>")["input_ids"]
    prompts = torch.tensor([prompt] * len(ks))
    replies = [
        "so </think> <answer>no</answer>"
        if k is None
        else f"so </think> <answer>```python\ndef f(a):\n    return a + {k}\n```\n"
        f"```input\n{index}\n```</answer>"
        for index, k in enumerate(ks)
    ]
    written = [tokenizer(reply)["input_ids"] for reply in replies]
    made = DataProto.from_dict(
        tensors=with_responses(
            {
                "input_ids": prompts,
                "attention_mask": torch.ones_like(prompts),
                "position_ids": torch.arange(len(prompt)).expand(len(ks), -1),
            },
            written,
            max(map(len, written)),
            0,
        )
    )
    extra = {"chosen_references": [], "composite_functions": np.array([]), "index": 0}
    completions = [Completion(row % 2, (), tuple(ids), (), True) for row, ids in enumerate(written)]
    made.non_tensor_batch = {
        "reward_model": np.array([{"ground_truth": ""}] * len(ks), dtype=object),
        "data_source": np.array(["gen_code_o"] * len(ks), dtype=object),
        "extra_info": np.array([extra] * len(ks), dtype=object),
        "member": np.array([index % 2 for index in range(len(ks))], dtype=object),
        COMPLETION: np.array(completions, dtype=object),
    }
    return made


@pytest.fixture
def judged(tokenizer, azr_manager, azr_executor):
    """(rewards by row, step, students) of a teacher reward; None is AZR without a judge. `more` are
    keys of `generation_reward_config`."""
    from azr_stand_in import population_of

    from azr_population.config.schema import EvolutionConfig
    from azr_population.hosts.azr.azr_step import AzrStepState
    from azr_population.hosts.azr.judging import Judge
    from azr_population.hosts.azr.settings import PopulationSettings

    def judge(reward, ks, kind="code_o", **more):
        manager = azr_manager(tokenizer)
        manager.generation_reward_config.update(more)
        group = students(tokenizer, kind)
        data = proposals(tokenizer, ks)
        call = manager
        step = None
        if reward is not None:
            settings = PopulationSettings(
                teachers=2, students=2, teacher_reward=reward, evolution=EvolutionConfig(interval=0)
            )
            step = AzrStepState(population_of(settings))
            step.begin(1)
            step.assign(data, f"gen_{kind}")
            call = Judge(manager, step, group)
            call.begin_step(azr_executor)
            call.run_ahead(f"gen_{kind}", data)
        tensor, logged, *_ = call(
            data=data, problem_type=f"gen_{kind}", executor=azr_executor,
            rollout_actor_wg=group,
            n_samples=SAMPLES, banned_words=[], input_type_counters={}, output_type_counters={},
        )  # fmt: skip
        judge.accuracy = logged["accuracy"]
        if step:
            call.executor.close()
        return tensor.sum(dim=1).tolist(), step, group

    return judge


KS = [0, 1, 2, None, 1, 0]


def test_adversarial_pays_one_minus_the_matched_students_solve_rate(judged):
    rewards, step, group = judged("adversarial", KS)
    assert rewards == pytest.approx([1.0, 0.5, 0.0, -1.0, 0.5, 1.0])
    opponents = [row.match.student.slot for row in step.proposals if row.task is not None]
    (asked,) = group.calls
    assert asked["estimate_code_o"].slots == opponents * SAMPLES and set(opponents) == {2, 3}
    assert group.routes == ["estimate_code_o"]
    assert [row.solve_rate for row in step.proposals] == [0.0, 0.5, 1.0, None, 0.5, 0.0]
    assert [[answer.solved for answer in row.attempts] for row in step.proposals] == [
        [False, False], [True, False], [True, True], [], [True, False], [False, False]
    ]  # fmt: skip
    assert step.proposals[1].task.outputs == ("2",) and step.proposals[1].reward == pytest.approx(
        0.5
    )


def test_stock_is_what_azrs_code_pays(judged):
    ours, step, _ = judged("stock", KS)
    theirs, *_ = judged(None, KS)
    assert ours == pytest.approx(theirs)
    assert ours == pytest.approx([-0.5, 0.5, -0.5, -1.0, 0.5, -0.5])
    assert [row.reason for row in step.proposals] == ["ok", "ok", "ok", "unparsable", "ok", "ok"]


@pytest.mark.parametrize("reward", [None, "adversarial", "learnability", "stock"])
def test_the_logged_accuracy_is_azrs_whatever_is_paid(judged, reward):
    judged(reward, KS)
    assert judged.accuracy == pytest.approx([0.0, 0.5, 0.0, 0.0, 0.5, 0.0])


def test_the_table_of_rewards_is_what_is_paid(judged):
    """That of docs/with_azr.md: rows are cases, columns stock AZR and teachers' rewards."""
    page = (Path(__file__).parents[3] / "docs" / "with_azr.md").read_text()
    head, _, *rows = re.search(r"(\| a proposal \|(?:.*\n)*?)\n", page)[1].splitlines()
    columns = [cell.strip(" `") for cell in head.strip("|").split("|")][1:]
    ks = [None, "9 / 0", 0, 1, 2]
    for place, reward in enumerate(columns, start=1):
        cells = [row.strip("|").split("|")[place].strip() for row in rows]
        paid, *_ = judged(None if reward == "stock AZR" else reward, ks)
        assert paid == pytest.approx([float(Fraction(cell)) for cell in cells]), reward


def test_a_conversion_of_solve_rates_changes_the_logged_accuracy_alone(judged):
    """As the start says. Stock AZR pays by it where nobody solves a task."""
    ks = [0, 1, 2]
    converted = {"generation_accuracy_convertion": "inverse"}
    for reward, changes in (("learnability", False), ("stock", False), (None, True)):
        before, *_ = judged(reward, ks)
        after, *_ = judged(reward, ks, **converted)
        assert (before != after) == changes and judged.accuracy == pytest.approx([1.0, 0.5, 0.0])


def test_solve_rates_and_seed_tasks_have_validations_temperature_or_1(judged):
    """AZR marks its calls for validation, in which veRL samples by `val_kwargs`."""
    from azr_population.hosts.azr.facade import PopulationWorkerGroup

    *_, group = judged(None, [1])
    assert group.meta["do_sample"] and group.meta["validate"]
    configs = needs.azr_file("absolute_zero_reasoner/configs/azr_ppo_trainer.yaml")
    assert OmegaConf.load(configs).actor_rollout_ref.rollout.val_kwargs.temperature == 0
    trainer = needs.from_azr("absolute_zero_reasoner.trainer.ppo.azr_ray_trainer")
    seeding = inspect.getsource(trainer.CodeIORayPPOTrainer._init_seed_dataset)
    assert "'do_sample': True,\n" in seeding and "'validate': True,\n" in seeding
    if host.pinned():
        folder = Path(importlib.util.find_spec("verl.workers.rollout").origin).parent
        sampler = (folder / "vllm_rollout" / "vllm_rollout_spmd.py").read_text()
        validating = sampler.partition("elif is_validate:")[2].partition("}")[0]
        assert '"temperature": self.config.val_kwargs.temperature' in validating
    for validation, temperature in ((0.0, 1.0), (0.6, 0.6)):
        facade = SimpleNamespace(_validation_temperature=validation, _max_new_tokens=4)
        assert PopulationWorkerGroup._sampling(facade, group.meta).temperature == temperature


def test_learnability_is_azrs_paper(judged):
    rewards, *_ = judged("learnability", KS)
    assert rewards == pytest.approx([0.0, 0.5, 0.0, -1.0, 0.5, 0.0])


def test_what_does_not_run_is_told_from_what_does_not_parse(judged):
    # "9 / 0" makes a program that parses and raises.
    rewards, step, _ = judged("adversarial", [None, "9 / 0"])
    assert rewards == [-1.0, -1.0]
    assert [row.reason for row in step.proposals] == ["unparsable", "invalid"]


def test_without_a_valid_proposal_nobody_is_asked(judged):
    rewards, step, group = judged("adversarial", [None, None])
    assert rewards == [-1.0, -1.0] and group.calls == []
    assert all(row.task is None and not row.attempts for row in step.proposals)


@pytest.mark.parametrize("kind", ["code_i", "code_o"])
def test_it_judges_alike_whether_programs_run_ahead(judged, kind, monkeypatch, request):
    from azr_population.hosts.azr.executors import StepExecutor
    from azr_population.patches import EVALS, apply, undo

    # As in a run: outputs are compared and not executed.
    apply(EVALS)
    request.addfinalizer(lambda: undo(EVALS))
    made = []
    close = StepExecutor.close
    monkeypatch.setattr(StepExecutor, "close", lambda self: (made.append(self), close(self)))
    ks = [0, 1, 2, None, "9 / 0", 1]
    rewards, step, _ = judged("adversarial", ks, kind)
    monkeypatch.setattr(StepExecutor, "prefetch", lambda self, calls: None)
    alone, one_by_one, _ = judged("adversarial", ks, kind)
    ahead, when_asked = made
    assert ahead.missed == 0 < when_asked.missed
    assert rewards == alone
    for row, other in zip(step.proposals, one_by_one.proposals, strict=True):
        assert (row.reason, row.task, row.reward) == (other.reason, other.task, other.reward)
        assert [a.solved for a in row.attempts] == [a.solved for a in other.attempts]
    assert any(answer.solved for row in step.proposals for answer in row.attempts)


def test_an_answer_that_is_right_in_part_is_not_solved():
    """AZR pays the share of hidden pairs with code_f_reward_type=accuracy."""
    needs.verl()
    from azr_population.engines.engine import Completion
    from azr_population.hosts.azr.batches import COMPLETION
    from azr_population.hosts.azr.judging import Judge

    paid = [1.0, 0.5, -0.5, -1.0]
    written = [Completion(0, (), (1,), (), True) for _ in paid]
    data = SimpleNamespace(non_tensor_batch={COMPLETION: written})
    attempts = Judge._replayed(None, "code_f", torch.tensor(paid)[:, None], data)
    assert [attempt.solved for attempt in attempts] == [True, False, False, False]
    assert [attempt.reward for attempt in attempts] == paid
