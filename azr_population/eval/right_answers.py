"""Right answers as training samples: the upper bound of what a run can teach."""

from collections.abc import Sequence

from azr_population.domains.format import Format
from azr_population.domains.task import Task
from azr_population.engines.engine import Completion, TrainingSample
from azr_population.engines.text import TextEngine


def right_answers(
    engine: TextEngine, format: Format, tasks: Sequence[Task], slot: int
) -> list[TrainingSample]:
    """Training samples for the member at `slot`, as if it had given the right answers."""
    prompts = engine.encode([format.solve_prompt(task) for task in tasks])
    answers = [format.write_answer(task) for task in tasks]
    encoded = engine.tokenizer(answers, add_special_tokens=False)["input_ids"]
    responses = [[*ids, engine.tokenizer.eos_token_id] for ids in encoded]
    chosen = engine.engine.log_probs(prompts, responses, [slot] * len(tasks))
    return [
        TrainingSample(
            Completion(slot, tuple(prompt), tuple(ids), tuple(logprobs.tolist()), True), 1.0
        )
        for prompt, ids, logprobs in zip(prompts, responses, chosen, strict=True)
    ]
