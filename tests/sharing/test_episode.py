"""Self-play outside of a run: the rewards are a run's, of invalid and repeated proposals too."""

import pytest

from azr_population.config.schema import PopulationConfig
from azr_population.domains.task import Task
from azr_population.sharing.episode import Episode

PROGRAM = "def f(x):\n    return x + 1"
KNOWN = Task("code_o", PROGRAM, ("1",), ("2",))


def proposal(program, input="1"):
    return f"```python\n{program}\n```\n```input\n{input}\n```"


@pytest.mark.parametrize(
    ("text", "finished", "reason", "expected"),
    [
        (proposal(PROGRAM, "2"), True, "ok", (0.5, [1.0, -0.5, -1.0, 1.0])),
        (proposal(PROGRAM), True, "ok", (0.7, [-0.5, -0.5, -1.0, -0.5])),  # known: 1 - 0.3
        (proposal("def f(x):\n    return x"), True, "identity", (-1.0, [])),
        (proposal(PROGRAM), False, "unparsable", (-1.0, [])),
    ],
)
def test_rewards(text, finished, reason, expected):
    episode = Episode("code_o", text, finished, {KNOWN})
    assert episode.proposal.reason == reason
    if episode.proposal.task is not None:
        for answer in ("3", "4", "", "3"):
            episode.attempt(f"```output\n{answer}\n```" if answer else "I do not know")
    assert episode.reward(PopulationConfig(teacher_reward="adversarial")) == expected
