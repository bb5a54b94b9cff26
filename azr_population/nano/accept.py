"""Acceptance of a nano base: what it proposes and solves at temperature 1, measured by execution.

Programs and answers are executed by the referee and judged by the same rules as in a run. The base
solves its own valid proposals; the figures are per task type.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from azr_population.conf.schema import TaskConfig
from azr_population.nano.corpus import is_held_out
from azr_population.referee import Referee
from azr_population.selfplay.phases import judge_proposals
from azr_population.selfplay.questions import question
from azr_population.tasks.complexity import measure
from azr_population.tasks.nano_format import NanoFormat
from azr_population.tasks.task import Task, TaskType

TARGETS: dict[str, dict[TaskType, tuple[float, float]]] = {
    "valid": {type: (0.80, 1.0) for type in TaskType},
    "unique": {type: (0.90, 1.0) for type in TaskType},
    "solved": {
        TaskType.CODE_O: (0.35, 0.50),
        TaskType.CODE_I: (0.30, 1.0),
        TaskType.CODE_F: (0.10, 1.0),
    },
    "guess": {TaskType.CODE_O: (0.0, 0.15)},
}
"""What a base is accepted for: lowest and highest figure."""

_ROWS = 256


def accept(
    model_dir: str | Path, n: int = 500, seed: int = 1, attempts: int = 4, show: bool = True
) -> dict[str, dict[str, Any]]:
    """Figures by task type, and a table of them on the terminal.

    Args:
        n: proposals per task type.
        attempts: answers per valid task at temperature 1, over which `solved` is the mean.

    Returns, per type: `valid` (share of proposals), `unique` (share of valid ones, by program and
    inputs), `solved` (temperature 1), `greedy`, `guess` (share of valid tasks that share the most
    common answer: the output, the input or the program), `tokens` (of a proposal), `ast_nodes` and
    `lines` (of a valid program), `held_out` (valid programs of the exam's bucket), and `refused`
    (reason -> count).
    """
    base = _Base(model_dir, seed)
    figures = {}
    with Referee() as referee:
        for type in TaskType:
            figures[str(type)] = _measure(base, referee, type, n, attempts)
    if show:
        _print(figures, n)
    return figures


def missed(figures: dict[str, dict[str, Any]]) -> list[str]:
    """The targets that the figures miss, one line each."""
    lines = []
    for name, bounds in TARGETS.items():
        for type, (low, high) in bounds.items():
            value = figures[str(type)][name]
            if not low <= value <= high:
                lines.append(f"{type} {name} {value:.1%}, wanted {low:.0%}-{high:.0%}")
    return lines


class _Base:
    """The model with a plain sampler; prompts in, texts out."""

    def __init__(self, folder: str | Path, seed: int) -> None:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        self.tokenizer = AutoTokenizer.from_pretrained(str(folder), padding_side="left")
        self.model = AutoModelForCausalLM.from_pretrained(str(folder), torch_dtype=torch.float32)
        self.model.eval()
        torch.manual_seed(seed)

    @torch.inference_mode()
    def write(
        self, prompts: Sequence[str], max_new_tokens: int, greedy: bool = False
    ) -> Iterator[tuple[str, int]]:
        """(completion, its number of tokens) for each prompt, in order."""
        for start in range(0, len(prompts), _ROWS):
            part = list(prompts[start : start + _ROWS])
            inputs = self.tokenizer(part, return_tensors="pt", padding=True)
            rows = self.model.generate(
                input_ids=inputs.input_ids,
                attention_mask=inputs.attention_mask,
                do_sample=not greedy,
                temperature=None if greedy else 1.0,
                top_k=None if greedy else 0,
                top_p=None,
                max_new_tokens=max_new_tokens,
            )
            for row in rows[:, inputs.input_ids.shape[1] :]:
                kept = row[row != self.tokenizer.pad_token_id]
                yield self.tokenizer.decode(kept, skip_special_tokens=True), len(kept)


def _measure(
    base: _Base, referee: Referee, type: TaskType, n: int, attempts: int
) -> dict[str, Any]:
    format = NanoFormat()
    written = list(
        base.write([format.propose_prompt(type)] * n, format.max_new_tokens(type, "propose"))
    )
    refused: Counter[str] = Counter()
    tasks = _valid_tasks(referee, type, [text for text, _ in written], refused)
    count = max(1, len(tasks))
    answers = Counter(_answer(task) for task in tasks)
    complexity = [one for one in (measure(task.program) for task in tasks) if one is not None]
    return {
        "valid": len(tasks) / n,
        "unique": len({(task.program, task.inputs) for task in tasks}) / count,
        "solved": _solve_rate(base, referee, tasks, attempts, greedy=False),
        "greedy": _solve_rate(base, referee, tasks, 1, greedy=True),
        "guess": max(answers.values(), default=0) / count,
        "tokens": sum(tokens for _, tokens in written) / n,
        "ast_nodes": sum(one.ast_nodes for one in complexity) / count,
        "lines": sum(one.lines for one in complexity) / count,
        "held_out": sum(is_held_out(task.program) for task in tasks),
        "refused": dict(refused.most_common()),
    }


def _valid_tasks(
    referee: Referee, type: TaskType, texts: Sequence[str], refused: Counter[str]
) -> list[Task]:
    """What parses, executes and passes a run's default rules; why not is counted in `refused`."""
    parsed = [NanoFormat().parse_proposal(type, text) for text in texts]
    proposals = [proposal for proposal in parsed if proposal is not None]
    refused["form"] += len(parsed) - len(proposals)
    verdicts = judge_proposals(proposals, referee, TaskConfig())
    refused.update(verdict for verdict in verdicts if isinstance(verdict, str))
    return [verdict for verdict in verdicts if isinstance(verdict, Task)]


def _solve_rate(
    base: _Base, referee: Referee, tasks: Sequence[Task], attempts: int, greedy: bool
) -> float:
    if not tasks:
        return 0.0
    format = NanoFormat()
    type = tasks[0].type
    prompts = [format.solve_prompt(task) for task in tasks for _ in range(attempts)]
    texts = base.write(prompts, format.max_new_tokens(type, "solve"), greedy)
    answers = [format.parse_answer(type, text) for text, _ in texts]
    questions = []
    for place, task in enumerate(tasks):
        own = answers[place * attempts : (place + 1) * attempts]
        questions.append(question(task, [answer for answer in own if answer is not None]))
    solved = sum(grade.solved for grades in referee.grade(questions) for grade in grades)
    return solved / len(prompts)


def _answer(task: Task) -> str:
    if task.type is TaskType.CODE_O:
        return task.outputs[0]
    return task.inputs[0] if task.type is TaskType.CODE_I else task.program


def _print(figures: dict[str, dict[str, Any]], n: int) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"nano base at temperature 1, {n} proposals per task type")
    columns = ("valid", "unique", "solved", "greedy", "guess")
    for heading in ("task", *columns, "tokens", "AST nodes", "lines"):
        table.add_column(heading, justify="left" if heading == "task" else "right")
    for type in TaskType:
        row = figures[str(type)]
        cells = []
        for name in columns:
            low, high = TARGETS.get(name, {}).get(type, (0.0, 1.0))
            text = f"{row[name]:.1%}"
            cells.append(text if low <= row[name] <= high else f"[red]{text}[/red]")
        sizes = (f"{row[name]:.1f}" for name in ("tokens", "ast_nodes", "lines"))
        table.add_row(str(type), *cells, *sizes)
    console = Console()
    console.print(table)
    for type in TaskType:
        console.print(f"{type} refused: {figures[str(type)]['refused']}")
    for line in missed(figures):
        console.print(f"[red]missed: {line}[/red]")
