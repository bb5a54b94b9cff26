"""A proposed task whose solving prompt is too long is filtered out of AZR's difficulty estimate.

AZR then takes its solve rate to be 0, so that (with the accuracy inverted, as the adversarial
reward has it) an endless program is the best paid one; and when no task is left the estimate
crashes on an empty batch.
"""

import functools
import importlib
from typing import Any

from .mechanism import Patch

_MODULE = "absolute_zero_reasoner.rewards.reward_managers"


def _invalid_when_overlong(original: Any) -> Any:
    @functools.wraps(original)
    def _get_data_dict(self: Any, *args: Any, **kwargs: Any) -> Any:
        data_dict = original(self, *args, **kwargs)
        # Only proposals that passed the executor have both.
        if (
            data_dict.get("code_validity")
            and "answer" in data_dict
            and _prompt_tokens(self, data_dict) > self.max_prompt_length
        ):
            data_dict["code_validity"] = False
            data_dict["format_score"] = 0.0
            del data_dict["answer"]
        return data_dict

    return _get_data_dict


def _prompt_tokens(manager: Any, data_dict: dict[str, Any]) -> int:
    """The length of the prompt that the solver would get, made by AZR's own functions."""
    upstream = importlib.import_module(_MODULE)
    kind, answer = manager.reward_fn_extraction_type, data_dict["answer"]
    template = "{}"
    if kind.startswith("boxed"):
        template = upstream.boxed_instruction
    elif kind.startswith("answer"):
        template = upstream.instruction_following
    if "inputs" in answer:
        shown = len(answer["inputs"]) // 2
        prompt = upstream.get_code_problem_predictor_prompt(
            problem_type="gen_code_f",
            snippet=answer["snippet"],
            message=answer["message"],
            input_output_pairs=zip(
                answer["inputs"][:shown], answer["outputs"][:shown], strict=True
            ),
        )
    else:
        # code_o and code_i prompts differ in whether they show the input or the output.
        prompt = max(
            (
                upstream.get_code_problem_predictor_prompt(
                    problem_type=problem_type,
                    snippet=answer["snippet"],
                    input_args=answer["input"],
                    output=answer["output"],
                )
                for problem_type in ("code_i", "code_o", "code_e")
            ),
            key=len,
        )
    chat = [{"role": "user", "content": template.format(prompt)}]
    return len(manager.tokenizer.apply_chat_template(chat, add_generation_prompt=True))


OVERLONG_ESTIMATES = Patch(
    "azr-overlong-estimates",
    f"{_MODULE}:CodeIORewardManager._get_data_dict",
    "8b5adb2d31fcf2b4",
    "a task whose solving prompt exceeds data.max_prompt_length is invalid, and never unsolved",
    _invalid_when_overlong,
)
