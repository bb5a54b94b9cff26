"""Advantages by member are veRL's, and what AZR's loop brings comes out in the records."""

import math
from collections import Counter

import needs
import pytest
import torch
from azr_stand_in import Batch, population_of

from azr_population.config.inside_azr import PopulationSettings
from azr_population.config.schema import EvolutionConfig
from azr_population.hosts.azr.azr_step import NOBODY, AzrStepState
from azr_population.hosts.azr.batches import COMPLETION
from azr_population.method.proposals import Attempt

SLOTS = [3, 1, 3, 1, 3, 2]
REWARDS = [1.0, -0.5, 0.5, -1.0, 0.0, 1.0]
LENGTHS = [2, 5, 1, 3, 4, 2]


@pytest.fixture
def step():
    settings = PopulationSettings(teachers=1, students=3, evolution=EvolutionConfig(interval=0))
    step = AzrStepState(population_of(settings))
    step.begin(1)
    return step


def batch(step=None):
    """A batch of answers; `step` has judged them."""
    made = Batch(SLOTS, [[7] * length for length in LENGTHS]).with_rewards(REWARDS)
    if step:
        step.replayed = [
            Attempt(completion, None, True, "solved", 1.0, type="code_o")
            for completion in made.non_tensor_batch[COMPLETION]
        ]
    return made


def rates(settings):
    members = population_of(settings).hyperparameters().items()
    return {slot: of_member.lr for slot, of_member in members}


def test_learning_rates_come_from_azrs_where_none_are_given():
    settings = PopulationSettings(teachers=1, students=1)
    assert rates(settings) == pytest.approx({0: 1.5e-6, 1: 1e-5})
    settings.teacher_lr, settings.student_lr = 0.0, 2e-4
    assert rates(settings) == {0: 0.0, 1: 2e-4}
    single = PopulationSettings(teachers=0, students=0)
    assert rates(single) == pytest.approx({0: 1e-5})


def test_a_teachers_rows_meet_its_matches_and_other_rows_meet_nobody(step):
    proposed, solved = Batch([0] * 7, [[7]] * 7), batch()
    assert step.assign(proposed, "gen_code_o") == [0] * 7
    met = Counter(proposed.non_tensor_batch["opponent"].tolist())
    assert sorted(met) == [1, 2, 3] and sorted(met.values()) == [2, 2, 3]
    assert step.assign(solved, "pred_code_o") == SLOTS
    assert set(solved.non_tensor_batch["opponent"].tolist()) == {NOBODY}


def test_advantages_are_normalised_over_the_members_own_tokens(step):
    new_batch = batch(step)
    step.write_advantages(new_batch, "pred_code_o")
    values = new_batch.batch["advantages"]
    # Member 1: -0.5 on 5 tokens, -1 on 3: mean -0.6875, sample variance 0.0669643.
    expected = [0.1875 / math.sqrt(0.0669643), -0.3125 / math.sqrt(0.0669643)]
    assert [float(values[1, 0]), float(values[3, 0])] == pytest.approx(expected, rel=1e-5)
    assert values[5].abs().max() == 0.0, "one row has nothing to compare with"
    noted = [attempt.advantage for attempt in step.replayed]
    assert noted == pytest.approx([value or None for value in values[:, 0].tolist()])
    assert torch.equal(values != 0, new_batch.batch["response_mask"].bool() & (values[:, :1] != 0))
    assert new_batch.batch["returns"][2].tolist() == [0.5, 0, 0, 0, 0, 0]


def test_a_batchs_advantages_are_noted_at_its_own_attempts(step):
    new_batch = batch(step)
    own, earlier = step.replayed, batch(step).non_tensor_batch[COMPLETION]
    step.replayed = [Attempt(c, None, False, "wrong", -0.5, type="code_i") for c in earlier] + own
    step.write_advantages(new_batch, "pred_code_o")
    noted = [attempt.advantage for attempt in step.replayed]
    assert noted[: len(SLOTS)] == [None] * len(SLOTS) and any(noted[len(SLOTS) :])


def test_they_are_verls(step):
    needs.verl()
    from omegaconf import OmegaConf
    from verl import DataProto
    from verl.trainer.ppo.ray_trainer import compute_advantage

    config = OmegaConf.create({"adv_estimator": "reinforce_plus_plus", "gamma": 1.0, "lam": 1.0})
    new_batch = batch(step)
    step.write_advantages(new_batch, "pred_code_o")
    for slot in (1, 3):
        rows = torch.tensor([row for row, other in enumerate(SLOTS) if other == slot])
        names = ("token_level_rewards", "response_mask")
        alone = DataProto.from_dict(tensors={name: new_batch.batch[name][rows] for name in names})
        alone = compute_advantage(alone, "reinforce_plus_plus", config=config)
        for name in ("advantages", "returns"):
            assert torch.allclose(new_batch.batch[name][rows], alone.batch[name], atol=1e-5), name
        assert abs(float(new_batch.batch["advantages"][rows].sum())) < 1e-4
    # Stock AZR has one call for all rows of a problem type and role.
    together = DataProto.from_dict(tensors={name: new_batch.batch[name] for name in names})
    values = compute_advantage(together, "reinforce_plus_plus", config=config).batch["advantages"]
    assert abs(float(values.sum())) < 1e-4 < abs(float(values[[1, 3]].sum()))
