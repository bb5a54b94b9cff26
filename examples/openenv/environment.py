"""Self-play as an environment of OpenEnv: a proposal, then attempts at it.

    pip install 'openenv>=0.10' 'transformers>=5'
    uvicorn --app-dir examples/openenv environment:app --port 8000

Prompts, judge and rewards are those of a run in the chat format.
"""

from typing import Any, Literal
from uuid import uuid4

from openenv.core.env_server import Action, Environment, Observation, State, create_app
from pydantic import Field

from azr_population.config.schema import PopulationConfig
from azr_population.sharing.episode import Episode, judge


class SelfPlayAction(Action):
    """What the model of the seat wrote."""

    text: str
    finished: bool = Field(True, description="False where a limit of tokens cut it off")


class SelfPlayObservation(Observation):
    """`reward` is that of the attempt just made, or of the proposal if it is invalid."""

    seat: Literal["proposer", "solver"] = Field(description="who is asked next")
    prompt: str = ""
    proposal_reward: float | None = Field(None, description="when the episode is done")


class SelfPlayEnvironment(Environment[SelfPlayAction, SelfPlayObservation, State]):
    """One episode is one proposal of a task of `type` and `samples_per_task` attempts at it."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def reset(
        self,
        seed: int | None = None,
        episode_id: str | None = None,
        type: str = "code_o",
        samples_per_task: int = 4,
        **_: Any,
    ) -> SelfPlayObservation:
        """Asks for a proposal. Raises UserError for an unknown type."""
        [self._type] = judge().domain.resolve_types([type])
        self._population = PopulationConfig(samples_per_task=samples_per_task)
        self._state = State(episode_id=episode_id or str(uuid4()), step_count=0)
        return SelfPlayObservation(seat="proposer", prompt=judge().format.propose_prompt(type))

    def step(
        self, action: SelfPlayAction, timeout_s: float | None = None, **_: Any
    ) -> SelfPlayObservation:
        """Judges the proposal or an attempt at it."""
        self._state.step_count += 1
        if self._state.step_count == 1:
            self._episode = Episode(self._type, action.text, action.finished)
        else:
            self._episode.attempt(action.text, action.finished)
        proposal_reward, rewards = self._episode.reward(self._population)
        row = self._episode.proposal
        if row.task is None:
            return SelfPlayObservation(
                seat="proposer", reward=proposal_reward, done=True, proposal_reward=proposal_reward
            )
        done = len(rewards) == self._population.samples_per_task
        return SelfPlayObservation(
            seat="solver",
            prompt=judge().format.solve_prompt(row.task),
            reward=rewards[-1] if rewards else None,
            done=done,
            proposal_reward=proposal_reward if done else None,
        )

    @property
    def state(self) -> State:
        """The episode's id, and how many steps it has."""
        return self._state


app = create_app(
    SelfPlayEnvironment,
    SelfPlayAction,
    SelfPlayObservation,
    env_name="azr_population",
    max_concurrent_envs=64,
)
