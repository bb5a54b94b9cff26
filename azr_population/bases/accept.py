"""Acceptance of a base: what it proposes and solves, measured by execution.

Programs and answers are executed by the referee and judged by the same rules as in a run. The base
proposes at temperature 1 and solves its own valid proposals; the figures are per task type.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from azr_population.bases.figures import Figures
from azr_population.bases.nano.corpus import is_held_out
from azr_population.bases.programs import digest, read_digests
from azr_population.bases.writer import Writer
from azr_population.config.schema import TaskConfig
from azr_population.domains.code.complexity import measure
from azr_population.domains.code.domain import Code
from azr_population.domains.code.task import Task, TaskType, reference_answer
from azr_population.domains.format import Format, read_proposal
from azr_population.engines.engine import Completion
from azr_population.pages.console.pulse import sign_of_life
from azr_population.referee import Referee


def accept(
    folder: str | Path,
    format: str = "short",
    n: int = 500,
    seed: int = 1,
    attempts: int = 4,
    known: Sequence[str] = (),
    types: Sequence[TaskType] = tuple(TaskType),
) -> dict[TaskType, Figures]:
    """Figures by task type.

    Args:
        format: of the prompts, as `base.prompt_format` of a run.
        n: proposals per task type.
        attempts: answers per valid task at temperature 1, over which `solved` is the mean.
        known: programs that count as copies beside those of the base's warm-up.
    """
    copies = read_digests(folder) | {digest(program) for program in known}
    writer = Writer(folder, format, seed)
    rules, found = TaskConfig(), {}
    with Referee() as referee, sign_of_life(Path(folder).name) as begin:
        for place, type in enumerate(types, start=1):
            begin(f"{type}, {place} of {len(types)}")
            found[type] = _measure(writer, referee, type, n, attempts, copies, rules)
    return found


def _measure(
    writer: Writer,
    referee: Referee,
    type: TaskType,
    n: int,
    attempts: int,
    copies: set[str],
    rules: TaskConfig,
) -> Figures:
    written = writer.propose(type, n)
    refused: Counter[str] = Counter()
    tasks = valid_tasks(referee, writer.format, type, written, rules, refused)
    complexity = [asdict(known) for task in tasks if (known := measure(task.program))]
    answers = Counter(reference_answer(task) for task in tasks)
    return Figures(
        proposals=n,
        valid=len(tasks),
        unique=len({(task.program, task.inputs) for task in tasks}),
        copied=sum(digest(task.program) in copies for task in tasks) if copies else None,
        solved=_solve_rates(writer, referee, tasks, attempts, greedy=False),
        greedy=_solve_rates(writer, referee, tasks, 1, greedy=True),
        most_common_answer=max(answers.values(), default=0),
        tokens=sum(len(completion.token_ids) for completion in written) / n,
        measures={
            name: sum(measured[name] for measured in complexity) / len(complexity)
            for name in (complexity[0] if complexity else ())
        },
        held_out=sum(is_held_out(task.program) for task in tasks),
        refused=dict(refused.most_common()),
    )


def valid_tasks(
    referee: Referee,
    format: Format,
    type: TaskType,
    written: Sequence[Completion],
    rules: TaskConfig,
    refused: Counter[str],
) -> list[Task]:
    """What is finished, parses, executes and passes the rules; why not is counted in `refused`."""
    parsed = [read_proposal(format, type, completion) for completion in written]
    proposals = [proposal for proposal in parsed if proposal is not None]
    refused["form"] += len(parsed) - len(proposals)
    verdicts = Code().judge(proposals, referee, rules)
    refused.update(verdict for verdict in verdicts if isinstance(verdict, str))
    return [verdict for verdict in verdicts if isinstance(verdict, Task)]


def _solve_rates(
    writer: Writer, referee: Referee, tasks: Sequence[Task], attempts: int, greedy: bool
) -> list[float]:
    """The share of solved attempts at each task."""
    asked = [
        (task, [answer for answer in answers if answer is not None])
        for task, answers in zip(tasks, writer.solve(tasks, attempts, greedy), strict=True)
    ]
    judged = Code().grade(asked, referee)
    return [sum(verdict.solved for verdict in of_task) / attempts for of_task in judged]
