"""Inspect's provider `azrpop`: members, their base and PEFT folders by a rollout of ours.

    inspect eval azr_population/gsm8k --model azrpop/runs/mine/student_0 -M device=cuda

Requests for all models on one base are sampled together.
"""

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    GenerateConfig,
    ModelAPI,
    ModelOutput,
    ModelUsage,
    modelapi,
)
from inspect_ai.tool import ToolChoice, ToolInfo

from azr_population.engines.engine import Completion, EngineSettings, Sampling
from azr_population.engines.text import render
from azr_population.errors import UserError
from azr_population.eval.benchmark.batcher import Batcher
from azr_population.eval.members import NO_MEMBERS, LoadedMembers, StoredMember, find_members

MAX_TOKENS = 2048
"""Default length of a completion."""


@dataclass(frozen=True)
class Request:
    """One completion of a prompt."""

    target: StoredMember
    messages: list[ChatMessage]
    max_tokens: int
    sampling: tuple[float, float, int]
    """Temperature, top-p and seed."""
    stops: tuple[str, ...]

    @property
    def notes(self) -> dict[str, Any]:
        """The prompt's metadata, from `tasks`."""
        return self.messages[-1].metadata or {}

    @property
    def row(self) -> int:
        """Seeds its draws: depends on sample, epoch and target, not on the batch."""
        text = f"{self.notes.get('sample')} {self.notes.get('epoch')} {self.target.name}"
        return int(hashlib.sha256(text.encode()).hexdigest()[:8], 16)


class SharedRollout:
    """One base and the members on it that are evaluated."""

    def __init__(self, base: Path, dtype: str, device: str, rollout: str, batch_size: int) -> None:
        self.dtype, self.device, self.rollout = dtype, device, rollout
        self.targets: dict[StoredMember, str] = {}
        """Those that may be asked, with the hash of their weights."""
        # Inspect starts samples one by one: a full batch is worth a wait.
        self.batcher = Batcher(
            self.generate, batch_size, lambda request: request.sampling, wait=1.0
        )
        self._loaded: LoadedMembers | None = None
        self._members: dict[StoredMember, str] = {}

    def generate(self, requests: list[Request]) -> list[ModelOutput]:
        """A completion for each request; they are sampled alike."""
        loaded = self._load({request.target for request in requests})
        prompts = [_render(loaded.tokenizer, request) for request in requests]
        # A lone surrogate, which JSON may hold, has no bytes and so no tokens.
        texts = [text.encode("utf-8", "replace").decode() for text, _ in prompts]
        ids = loaded.tokenizer(texts, add_special_tokens=False)["input_ids"]
        longest = loaded.context_length
        fitting = [n for n, prompt in enumerate(ids) if 0 < len(prompt) < longest]
        limits = [min(requests[n].max_tokens, longest - len(ids[n])) for n in fitting]
        temperature, top_p, seed = requests[0].sampling
        groups = loaded.engine.generate(
            [ids[n] for n in fitting],
            [loaded.load(requests[n].target).slot for n in fitting],
            Sampling(tuple(limits), temperature, top_p),
            seed,
            [requests[n].row for n in fitting],
        )
        completions = {n: group[0] for n, group in zip(fitting, groups, strict=True)}
        return [
            _output(loaded.tokenizer, request, completions.get(n), len(ids[n]), prompts[n][1])
            for n, request in enumerate(requests)
        ]

    def _load(self, targets: set[StoredMember]) -> LoadedMembers:
        """An engine with these targets: the one that is loaded, or a new one in its place."""
        wanted = {target: self.targets[target] for target in targets}
        if self._loaded is None or not wanted.items() <= self._members.items():
            if self._loaded is not None:
                self._loaded.close()
                self._loaded = None
            together = sorted(self.targets, key=lambda target: str(target.folder or ""))
            how = EngineSettings("", (), NO_MEMBERS, self.device, self.dtype, rollout=self.rollout)
            self._loaded = LoadedMembers(together, how, scores=False)
            self._members = dict(self.targets)
        return self._loaded


shared_rollout = cache(SharedRollout)
"""The one for these arguments in this process."""


@modelapi(name="azrpop")
class PopulationAPI(ModelAPI):
    """`azrpop/RUN/MEMBER`, `azrpop/RUN/base`, `azrpop/PEFT_FOLDER`, `azrpop/BASE_FOLDER`."""

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig = GenerateConfig(),  # noqa: B008 (Inspect's own signature)
        base: str = "",
        dtype: str = "float32",
        device: str = "cpu",
        rollout: str = "torch",
        batch_size: int = 64,
        weights: str = "",
    ) -> None:
        """`base` takes the place of the one that an adapter names; `weights` is in the log, so that
        a member that was trained on is another model. Raises UserError as `find_members`."""
        super().__init__(model_name, base_url, api_key, [], config)
        self.target = find_members(model_name, Path(base) if base else None)[-1]
        self.shared = shared_rollout(self.target.base, dtype, device, rollout, batch_size)
        self.shared.targets[self.target] = weights

    def max_connections(self) -> int:
        """Connections, as many as a batch holds: the rollout is one queue."""
        return 1024

    def connection_key(self) -> str:
        """The model's name: each has its own limit, so that all of a base come into one batch."""
        return self.model_name

    def max_tokens(self) -> int:
        """The default length of a completion."""
        return MAX_TOKENS

    async def generate(
        self,
        input: list[ChatMessage],
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelOutput:
        """One completion; a last turn of the assistant's is the beginning of its answer."""
        if tools:
            raise UserError("members have not learned to call tools")
        temperature = 1.0 if config.temperature is None else config.temperature
        top_p = 1.0 if temperature == 0 or config.top_p is None else config.top_p
        request = Request(
            self.target,
            input,
            config.max_tokens or MAX_TOKENS,
            (temperature, top_p, config.seed or 0),
            tuple(config.stop_seqs or ()),
        )
        output = await self.shared.batcher.ask(request)
        output.model = self.model_name
        return output


def _render(tokenizer: Any, request: Request) -> tuple[str, bool]:
    """The whole text before the completion with its special tokens, and whether it is plain."""
    messages, begun = request.messages, ""
    if tokenizer.chat_template and not request.notes.get("raw"):
        if isinstance(messages[-1], ChatMessageAssistant):
            begun, messages = messages[-1].text, messages[:-1]
        turns = [{"role": message.role, "content": message.text} for message in messages]
        return str(render(tokenizer, turns)) + begun, False
    begin = tokenizer.bos_token or ""
    starts = bool(begin) and tokenizer("")["input_ids"][:1] == [tokenizer.bos_token_id]
    text = next(message.text for message in reversed(messages) if message.role == "user")
    return (begin if starts else "") + (request.notes.get("plain") or text), True


def _output(
    tokenizer: Any, request: Request, completion: Completion | None, prompt_tokens: int, plain: bool
) -> ModelOutput:
    """The completion up to the first of the stops."""
    if completion is None:  # longer than the context, or without a token that the model knows
        output = ModelOutput.from_content("azrpop", "", stop_reason="model_length")
        output.error = "the prompt does not fit the model's context"
        return output
    ids = completion.token_ids[:-1] if completion.finished else completion.token_ids
    text = tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
    stops = (request.notes.get("plain_stops") if plain else ()) or request.stops
    ends = [text.find(stop) for stop in stops if stop in text]
    stopped = completion.finished or bool(ends)
    output = ModelOutput.from_content(
        "azrpop", text[: min(ends, default=None)], "stop" if stopped else "max_tokens"
    )
    tokens = len(completion.token_ids)
    output.usage = ModelUsage(
        input_tokens=prompt_tokens, output_tokens=tokens, total_tokens=prompt_tokens + tokens
    )
    output.metadata = {"plain": plain}
    return output
