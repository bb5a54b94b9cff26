"""The benchmarks, and the domains' held-out tasks, as Inspect tasks.

    inspect eval azr_population/mbpp_plus -T data=DIR --model azrpop/runs/mine/student_0
    inspect eval azr_population/code --model openai/gpt-4o

Inspect finds them, and the provider `azrpop`, by the entry point of the package.
"""

from collections.abc import Callable
from typing import Any

from inspect_ai import Task as InspectTask
from inspect_ai import task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    GenerateConfig,
)
from inspect_ai.solver import Generate, Solver, TaskState, solver

from azr_population.domains.known import DOMAINS, find_domain
from azr_population.evals import provider as provider
from azr_population.evals.benchmarks import BENCHMARKS, read_benchmark
from azr_population.evals.prompts import Prompt, find_template
from azr_population.evals.scorers import answers, check_grader, domain_answers

_STOPS = 4
"""Stop sequences that OpenAI's protocol allows."""


@solver
def ask() -> Solver:
    """Generates once. Only members get the beginning of their answer: servers' protocol has no
    prefill."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        user = state.messages[-1]
        about = user.metadata or {}
        user.metadata = {**about, "sample": str(state.sample_id), "epoch": state.epoch}
        if state.model.api == "azrpop" and (beginning := about.get("answer_begins")):
            state.messages.append(ChatMessageAssistant(content=beginning, metadata=user.metadata))
        stops = about.get("stops") or []
        if state.model.api != "azrpop":
            stops = stops[:_STOPS]
        options: dict[str, Any] = {"stop_seqs": stops} if stops else {}
        state = await generate(state, **options)
        if len(state.output.choices) != 1:
            raise ValueError(f"{len(state.output.choices)} completions where 1 was asked for")
        return state

    return solve


def benchmark_task(name: str, data: str = "", prompt: str = "") -> InspectTask:
    """A benchmark as a task; its grader proves itself first.

    Args:
        name: of `benchmarks.BENCHMARKS`.
        data: folder of the benchmarks' files.
        prompt: of `prompts.TEMPLATES`; '' is the benchmark's own.

    Raises UserError: the data are missing or damaged, or the grader does not judge right.
    """
    read = read_benchmark(name, data)
    template = find_template(prompt, name)
    check_grader(name, data, prompt)
    samples = [
        _sample(problem.id, template.make(problem), target=getattr(problem, "gold", ""))
        for problem in read.problems
    ]
    return InspectTask(
        dataset=MemoryDataset(samples, name=name),
        solver=ask(),
        scorer=answers(name, data, prompt),
        config=GenerateConfig(temperature=0.0, max_tokens=read.benchmark.max_tokens),
        metadata={"data": read.identity, "prompt": prompt or read.benchmark.prompt},
        name=name,
    )


def _sample(id: str, prompt: Prompt, **fields: Any) -> Sample:
    about = {
        "raw": not prompt.chat,
        "answer_begins": prompt.answer_begins,
        "plain": prompt.plain,
        "stops": list(prompt.stops),
        "plain_stops": list(prompt.plain_stops),
    }
    user = {name: value for name, value in about.items() if value}
    messages: list[ChatMessage] = [ChatMessageUser(content=prompt.text, metadata=user)]
    if prompt.system:
        messages.insert(0, ChatMessageSystem(content=prompt.system))
    return Sample(id=id, input=messages, **fields)


def _register(name: str) -> Callable[..., InspectTask]:
    @task(name=name)
    def benchmark(data: str = "", prompt: str = "") -> InspectTask:
        return benchmark_task(name, data, prompt)

    return benchmark


TASKS = {name: _register(name) for name in BENCHMARKS}
"""The benchmarks' tasks by name."""


def held_out_task(domain: str, tasks_per_type: int, seed: int, prompt_format: str) -> InspectTask:
    """Held-out tasks of a domain, judged by the referee; the grader must take their gold answers.

    Args:
        domain: of `domains.known.DOMAINS`, or a dotted path.
        tasks_per_type: how many of each task type.
        seed: of the tasks.
        prompt_format: of the domain; `chat` for any instruction-tuned model.
    """
    held_out_domain = find_domain(domain)
    format = held_out_domain.format(prompt_format)
    types = held_out_domain.wanted(None)
    tasks = {
        f"{task.type}/{number}": task
        for number, task in enumerate(held_out_domain.eval_tasks(tasks_per_type, seed, types))
    }
    samples = [
        _sample(name, Prompt(format.solve_prompt(task), format.chat), metadata={"type": task.type})
        for name, task in tasks.items()
    ]
    longest = max(format.max_new_tokens(task.type, "solve") for task in tasks.values())
    return InspectTask(
        dataset=MemoryDataset(samples, name=domain),
        solver=ask(),
        scorer=domain_answers(domain, prompt_format, tasks),
        config=GenerateConfig(temperature=0.0, max_tokens=longest),
        name=domain,
    )


def _register_domain(name: str) -> None:
    @task(name=name)
    def domain(
        tasks_per_type: int = 100, seed: int = 7, prompt_format: str = "chat"
    ) -> InspectTask:
        return held_out_task(name, tasks_per_type, seed, prompt_format)


for _entry in DOMAINS:
    _register_domain(_entry.name)
