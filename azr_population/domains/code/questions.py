"""What the referee is asked about a task, and what it says of the answers."""

from collections.abc import Callable, Sequence

from azr_population.domains.code.source import NOT_FINITE, is_finite
from azr_population.domains.code.task import Task, TaskType, shown
from azr_population.domains.domain import Verdict
from azr_population.referee import Question, Referee


def question(task: Task, answers: Sequence[str]) -> Question:
    """The question that judges these answers; for code_f only the hidden pairs decide."""
    first = shown(task) if task.type == TaskType.CODE_F else 0
    return Question(
        type=str(task.type),
        program=task.program,
        inputs=task.inputs[first:],
        outputs=task.outputs[first:],
        answers=tuple(answers),
        imports=task.imports,
    )


def verdicts(
    referee: Referee,
    asked: Sequence[tuple[Task, Sequence[str]]],
    question: Callable[[Task, tuple[str, ...]], Question],
) -> list[list[Verdict]]:
    """For each task the verdicts on these answers. An answer that is an input is refused unasked
    where it holds an infinite number."""
    finite = [
        tuple(a for a in answers if task.type in (TaskType.CODE_O, TaskType.CODE_F) or is_finite(a))
        for task, answers in asked
    ]
    graded = referee.grade(
        [question(task, answers) for (task, _), answers in zip(asked, finite, strict=True)]
    )
    refused = Verdict(False, NOT_FINITE)
    verdicts = []
    for (_, answers), known, grades in zip(asked, finite, graded, strict=True):
        told = {
            answer: Verdict(grade.solved, grade.reason.value)
            for answer, grade in zip(known, grades, strict=True)
        }
        verdicts.append([told.get(answer, refused) for answer in answers])
    return verdicts
