"""What AZR's executor said about each answer; AZR's estimate itself only keeps their mean."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from azr_population.domains.code.task import TaskType
from azr_population.domains.code_e.formats import CODE_E
from azr_population.domains.code_e.program import same_name


class Verdicts:
    """AZR's executor, which it hands every call on to, with a memory of the scores of answers."""

    def __init__(self, executor: Any) -> None:
        self._executor = executor
        self._scores: dict[tuple[str, str, str], float | None] = {}
        self.checked = 0
        """How many programs it was asked to check."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._executor, name)

    def check_all(self, *args: Any, **kwargs: Any) -> Any:
        """AZR's method."""
        self.checked += 1
        return self._executor.check_all(*args, **kwargs)

    def eval_input_prediction(
        self, code: str, gold_output: str, agent_input: str, imports: Sequence[str] = ()
    ) -> float | None:
        """AZR's method."""
        score = self._executor.eval_input_prediction(
            code=code, gold_output=gold_output, agent_input=agent_input, imports=imports
        )
        self._scores[code, gold_output, agent_input] = score
        return score

    def eval_output_prediction(
        self, code: str, gold_output: str, agent_output: str, imports: Sequence[str] = ()
    ) -> float | None:
        """AZR's method."""
        score = self._executor.eval_output_prediction(
            code=code, gold_output=gold_output, agent_output=agent_output, imports=imports
        )
        self._scores[code, gold_output, agent_output] = score
        return score

    def eval_k_input_prediction(
        self, code: str, gold_output: str, k_agent_inputs: Sequence[str], imports: Any = ()
    ) -> list[float]:
        """AZR's method."""
        scores = self._executor.eval_k_input_prediction(
            code=code, gold_output=gold_output, k_agent_inputs=k_agent_inputs, imports=imports
        )
        for text, score in zip(k_agent_inputs, scores, strict=True):
            self._scores[code, gold_output, text] = score
        return scores

    def eval_k_output_prediction(
        self, code: str, gold_output: str, k_agent_outputs: Sequence[str], imports: Any = ()
    ) -> list[float]:
        """AZR's method."""
        scores = self._executor.eval_k_output_prediction(
            code=code, gold_output=gold_output, k_agent_outputs=k_agent_outputs, imports=imports
        )
        for text, score in zip(k_agent_outputs, scores, strict=True):
            self._scores[code, gold_output, text] = score
        return scores

    def requests(
        self, manager: Any, kind: str, answer: Mapping[str, Any], responses: Sequence[str]
    ) -> Iterator[dict[str, Any]]:
        """Arguments of each `eval_input_prediction` with which AZR's estimate is going to judge
        these responses; outputs are compared and not executed."""
        imports = list(set(answer["imports"]))
        for response in responses:
            text, read = _read(manager, kind, response)
            if kind == TaskType.CODE_F and read:
                for given, output in _hidden(answer):
                    yield {"code": text, "gold_output": output, "agent_input": given,
                           "imports": imports}  # fmt: skip
            elif kind == TaskType.CODE_I:
                yield {"code": answer["snippet"], "gold_output": answer["output"],
                       "agent_input": text, "imports": imports}  # fmt: skip

    def judge(
        self, manager: Any, kind: str, answer: Mapping[str, Any], responses: Sequence[str]
    ) -> list[tuple[str | None, bool]]:
        """(the answer that AZR's `manager` read in a response, whether it solved the task).

        The answer is None where the response has none.
        """
        judged: list[tuple[str | None, bool]] = []
        for response in responses:
            text, read = _read(manager, kind, response)
            if kind == TaskType.CODE_F:
                scores = [
                    self._scores.get((text, output, given)) for given, output in _hidden(answer)
                ]
                solved = read and bool(scores) and all(score == 1.0 for score in scores)
            elif kind == CODE_E:  # AZR compares names itself and asks no executor
                solved = same_name(text, answer["output"])
            else:
                solved = self._scores.get((answer["snippet"], answer["output"], text)) == 1.0
            judged.append((text if read else None, solved))
        return judged


def _read(manager: Any, kind: str, response: str) -> tuple[str, bool]:
    """What AZR's `manager` reads in a response, and whether there is anything."""
    from absolute_zero_reasoner.rewards.code_reward import parse_code_function
    from absolute_zero_reasoner.rewards.custom_evaluate import extract_answer

    text = extract_answer(
        response, manager.reward_fn_extraction_type, boxed_retry=manager.boxed_retry
    )
    if kind == TaskType.CODE_F:
        parsed, program = parse_code_function(text)
        return program, bool(parsed)
    is_input = kind == TaskType.CODE_I
    text = manager.extract_input_output(text, return_input=is_input, return_output=not is_input)
    return text, bool(text)


def _hidden(answer: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(input, output) pairs that a task of code_f keeps back."""
    return zip(answer["hidden_inputs"], answer["hidden_outputs"], strict=True)
