"""What the referee is asked about a task."""

from collections.abc import Sequence

from azr_population.domains.code.task import Task, TaskType, shown
from azr_population.referee import Question


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
