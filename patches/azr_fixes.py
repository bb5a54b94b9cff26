"""What AZR a82124e needs for a population run: a patch for each upstream defect, and which of them
a run applies."""

import copy
import functools
import importlib
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from azr_population.errors import UserError

from .azr_evals import EVALS, REWARD_EVALS
from .mechanism import Patch, apply, around
from .referee_executor import EXECUTOR

_TRAINER = "absolute_zero_reasoner.trainer.ppo.azr_ray_trainer"
_REWARDS = "absolute_zero_reasoner.rewards.reward_managers"
_MANAGER = f"{_REWARDS}:CodeIORewardManager"
DATASET = "absolute_zero_reasoner.utils.dataset.rl_dataset"


@around(
    "azr-dataloader-state",
    "absolute_zero_reasoner.trainer.ppo.reason_rl_ray_trainer:"
    "ReasonRLRayPPOTrainer._create_dataloader",
    "e138b3c06f0e3e85",
)
def DATALOADER_STATE(original: Any, self: Any, *args: Any, **kwargs: Any) -> None:
    """AZR's first checkpoint raises: its plain DataLoader has no `state_dict`, which veRL saves."""
    original(self, *args, **kwargs)
    # AZR's loop never reads this loader (its steps make their own), so it has no state.
    if not hasattr(self.train_dataloader, "state_dict"):
        self.train_dataloader.state_dict = dict
        self.train_dataloader.load_state_dict = lambda state: None


@around(
    "azr-temp-parquet",
    f"{_MANAGER}._get_problem_generator_rewards_and_valid_programs",
    "0bf4dd8efd5fa9a9",
)
def TEMP_PARQUET(original: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
    """AZR writes the prompts of its difficulty estimate to one fixed name, `temp.parquet`. Two runs
    in one output folder (or two reward calls at once) read and delete each other's, and a folder
    that does not exist yet makes the first call fail."""
    Path(self.output_path).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=self.output_path, prefix="estimate_") as folder:
        manager = copy.copy(self)
        manager.output_path = folder
        return original(manager, *args, **kwargs)


@around(
    "azr-overlong-estimates",
    f"{_MANAGER}._get_data_dict",
    "8b5adb2d31fcf2b4",
)
def OVERLONG_ESTIMATES(
    original: Any, self: Any, data_item: Any, problem_type: str, *args: Any, **kwargs: Any
) -> Any:
    """A proposed task whose solving prompt is too long is filtered out of AZR's difficulty
    estimate. AZR then takes its solve rate to be 0, so that (with the adversarial reward) an
    endless program is the best paid one; when no task is left the estimate crashes on an empty
    batch."""
    data_dict = original(self, data_item, problem_type, *args, **kwargs)
    # Only proposals that passed the executor have both.
    if (
        data_dict.get("code_validity")
        and "answer" in data_dict
        and _prompt_tokens(self, data_dict, problem_type) > self.max_prompt_length
    ):
        data_dict["code_validity"] = False
        data_dict["format_score"] = 0.0
        del data_dict["answer"]
    return data_dict


def _prompt_tokens(manager: Any, data_dict: dict[str, Any], problem_type: str) -> int:
    """The length of the prompt that the solver would get, made by AZR's own functions."""
    upstream = importlib.import_module(_REWARDS)
    form, answer = manager.reward_fn_extraction_type, data_dict["answer"]
    template = "{}"
    if form.startswith("boxed"):
        template = upstream.boxed_instruction
    elif form.startswith("answer"):
        template = upstream.instruction_following
    if "inputs" in answer:
        shown = len(answer["inputs"]) // 2
        pairs = zip(answer["inputs"][:shown], answer["outputs"][:shown], strict=True)
        shows = {"message": answer["message"], "input_output_pairs": pairs}
    else:
        shows = {"input_args": answer["input"], "output": answer["output"]}
    prompt = upstream.get_code_problem_predictor_prompt(
        problem_type=problem_type, snippet=answer["snippet"], **shows
    )
    chat = [{"role": "user", "content": template.format(prompt)}]
    # transformers 5 returns a dictionary by default, whose length is not the prompt's.
    return len(
        manager.tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_dict=False)
    )


@around(
    "azr-prompt-filter",
    f"{DATASET}:RLHFDataset._read_files_and_tokenize",
    "87e72d7390856bb3",
)
def PROMPT_FILTER(original: Any, self: Any) -> None:
    """AZR counts `len(tokenizer.apply_chat_template(...))`: under transformers 5 the keys of a
    dictionary, so every prompt passes and the first one that is too long ends the run."""
    tokenizer = self.tokenizer
    token_ids = functools.partial(tokenizer.apply_chat_template, return_dict=False)
    self.tokenizer = SimpleNamespace(apply_chat_template=token_ids)
    try:
        original(self)
    finally:
        self.tokenizer = tokenizer


@around(
    "azr-splitter",
    f"{_MANAGER}._get_data_dict",
    "8b5adb2d31fcf2b4",
)
def SPLITTER(original: Any, self: Any, data_item: Any, *args: Any, **kwargs: Any) -> Any:
    """AZR's reward manager finds the response by splitting the decoded text at
    `reward_fn.splitter`. A tokenizer that does not give the prompt back letter by letter, or a
    validation set with another template, ends the run with an IndexError."""
    try:
        return original(self, data_item, *args, **kwargs)
    except IndexError:
        if isinstance(self.tokenizer, _Response):
            raise
        width = data_item.batch["prompts"].shape[-1]
        length = int(data_item.batch["attention_mask"][width:].sum())
        response = self.tokenizer.decode(
            data_item.batch["responses"][:length], skip_special_tokens=True
        )
        manager = copy.copy(self)
        manager.tokenizer = _Response(f"{self.splitter} {response}", self.tokenizer)
        return original(manager, data_item, *args, **kwargs)


class _Response:
    """In the place of the tokenizer: every text is the splitter and the row's response. The chat
    template, which another patch asks for, stays the tokenizer's."""

    def __init__(self, text: str, tokenizer: Any) -> None:
        self._text, self.apply_chat_template = text, tokenizer.apply_chat_template

    def encode(self, *args: Any, **kwargs: Any) -> list[int]:
        return []

    def decode(self, *args: Any, **kwargs: Any) -> str:
        return self._text


TRIES = 200
"""Prompts in a row that may be too long before the run stops."""


@around(
    "azr-prompt-loop",
    f"{_TRAINER}:get_gen_code_io_data",
    "963188e10a045848",
)
def PROMPT_LOOP(original: Any, *args: Any, **kwargs: Any) -> Any:
    """AZR's builder of proposal prompts loops for ever when every prompt is too long."""
    if "tokenizer" in kwargs and "content_max_length" in kwargs:
        kwargs["tokenizer"] = _Counting(kwargs["tokenizer"], kwargs["content_max_length"])
    return original(*args, **kwargs)


class _Counting:
    """A tokenizer that gives up after `TRIES` prompts in a row that are longer than `limit`."""

    def __init__(self, tokenizer: Any, limit: int) -> None:
        self._tokenizer, self._limit = tokenizer, limit
        self._lengths: list[int] = []

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        encoded = self._tokenizer(*args, **kwargs)
        length = len(encoded["input_ids"])
        self._lengths = [*self._lengths, length] if length > self._limit else []
        if len(self._lengths) >= TRIES:
            raise UserError(
                f"azr.data_selection_strategy.content_max_length={self._limit}: {TRIES} proposal "
                f"prompts in a row were longer (the shortest had {min(self._lengths)} tokens); "
                "raise it and data.max_prompt_length, or lower azr.data_selection_strategy.io_n"
            )
        return encoded

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tokenizer, name)


@around(
    "azr-total-steps",
    f"{_TRAINER}:CodeIORayPPOTrainer.fit",
    "ef7b1276f7305e9b",
)
def TOTAL_STEPS(original: Any, self: Any) -> Any:
    """AZR plays one step less than `trainer.total_training_steps` says: its loop runs while the
    step at hand, counted from 1, is below the total."""
    self.total_training_steps += 1
    try:
        return original(self)
    finally:
        self.total_training_steps -= 1


@around(
    "azr-reward-arguments",
    f"{_TRAINER}:CodeIORayPPOTrainer.__init__",
    "4874adca628cb55f",
)
def REWARD_ARGUMENTS(original: Any, self: Any, *args: Any, **kwargs: Any) -> None:
    """Three settings of `azr.data_selection_strategy` (`num_inputs`, `batched_estimate`,
    `banned_keywords_for_errors_and_exceptions`) reach the proposer, but not AZR's reward manager,
    which judges proposals by its defaults: with another num_inputs every code_f proposal is
    invalid."""
    original(self, *args, **kwargs)
    strategy = self.config.azr.data_selection_strategy
    for manager in (self.reward_fn, self.val_reward_fn):
        if manager is not None:
            manager.num_inputs = strategy.num_inputs
            manager.batched_estimate = strategy.batched_estimate
    if self.reward_fn is not None:
        banned = list(strategy.banned_keywords_for_errors_and_exceptions or [])
        self.reward_fn = functools.partial(self.reward_fn, banned_assertion_keywords=banned)


REFEREE: Mapping[str, Sequence[Patch]] = {
    "azr": EVALS,
    # The reward code evaluates answers with either executor.
    "sandbox": (EXECUTOR, *REWARD_EVALS),
}
"""What ends evaluation in the trainer's process, by `population.referee`."""

NEEDED: Sequence[Patch] = (DATALOADER_STATE, TEMP_PARQUET, OVERLONG_ESTIMATES)
"""Without these a population run crashes or pays for what is no task."""

OPTIONAL: Sequence[Patch] = (SPLITTER, PROMPT_LOOP, TOTAL_STEPS, REWARD_ARGUMENTS)
"""A run is sound without these; where upstream has changed they are left out with a warning."""


def apply_patches(referee: str) -> list[str]:
    """Applies what a run with this referee (`azr` or `sandbox`) needs; returns all names in force.
    Raises UserError: a needed patch does not fit the installed AZR."""
    done: list[str] = []
    # One by one, because two of them wrap the same function.
    for patch in (*REFEREE[referee], *NEEDED):
        done += apply([patch])
    for patch in OPTIONAL:
        try:
            done += apply([patch])
        except UserError as error:
            print(f"azr-population: warning: {error}; the run goes on without it", file=sys.stderr)
    return done
